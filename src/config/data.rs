//! `backup` and `retention`: where copies of the data go, and when old data is
//! deleted.

use std::path::PathBuf;

use serde::Serialize;

use super::declaration::{Rule, section};
use super::rules::{DIRECTORY, Parsed, integer};
use base::age::PublicKey;

section! {
    /// The section `backup`: the nightly backups.
    #[derive(Clone, Debug, Serialize)]
    pub struct Backup {
        /// Nightly backups to keep; 0 turns them off. A missed backup is made after the next start.
        pub keep: usize = integer(0..=1_000).or(7), writable;
        /// Where to store them, preferably on another disk.
        pub directory: Option<PathBuf> = DIRECTORY.optional("`backups` in the data directory");
        /// When to make them: the local time of day.
        pub at: TimeOfDay = TIME.or(TimeOfDay { hour: 3, minute: 30 }), writable;
        /// The key that they are encrypted to, so that only the file of its secret key reads them: `hearth backup --new-key FILE` makes both.
        pub encrypt_to: Option<PublicKey> = PUBLIC_KEY.optional("not encrypted");
    }
}

section! {
    /// The section `retention`: what is deleted when it is old.
    #[derive(Clone, Debug, Serialize)]
    pub struct Retention {
        /// Days without a message after which a conversation is deleted. Memories stay.
        pub conversations_days: Option<u32> = integer(1..=36_500).optional("kept for ever");
    }
}

/// A time of day, to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// 0 to 23.
    pub hour: i8,
    /// 0 to 59.
    pub minute: i8,
}

impl Serialize for TimeOfDay {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:02}:{:02}", self.hour, self.minute))
    }
}

const PUBLIC_KEY: Parsed<PublicKey> = Parsed {
    expected: "a public key of the format age v1, which begins with \"age1\"",
    parse: |text| text.parse().ok(),
};

const TIME: Parsed<TimeOfDay> = Parsed {
    expected: "config.time_of_day",
    parse,
};

fn parse(text: &str) -> Option<TimeOfDay> {
    let number = |digits: &str, below: i8| {
        let fits = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: i8 = fits.then(|| digits.parse().ok())??;
        (number < below).then_some(number)
    };
    let (hour, minute) = text.split_once(':')?;
    Some(TimeOfDay {
        hour: number(hour, 24)?,
        minute: number(minute, 60)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_has_four_digits() {
        for (text, time) in [
            ("00:00", Some((0, 0))),
            ("23:59", Some((23, 59))),
            ("24:00", None),
            ("03:60", None),
            ("3:30", None),
            ("+3:30", None),
            ("03:30:00", None),
            ("0330", None),
        ] {
            let parsed = parse(text).map(|time| (time.hour, time.minute));
            assert_eq!(parsed, time, "{text}");
        }
    }
}
