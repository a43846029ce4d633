//! `people.NAME.notifications`: where a person's phone is told of what waits for them.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::collections::object;
use super::declaration::{Rule, default_is_absent, section};
use super::key_path::KeyPath;
use super::reader::Reader;
use super::rules::{Flag, Parsed, SecretText, UrlText};
use base::calendar::Zone;
use base::clock::Timestamp;
use base::secret::Secret;
use base::url::masked;

section! {
    /// Where one person is notified.
    #[derive(Clone, Debug)]
    pub struct Notifications {
        /// The person's topic at an ntfy server.
        pub ntfy: Option<Ntfy> = object::<Ntfy>().optional("none");
        /// The person's application at a Gotify server.
        pub gotify: Option<Gotify> = object::<Gotify>().optional("none");
        /// When nothing is sent, in the household's time zone. What comes then is sent at the end.
        pub quiet_hours: Option<QuietHours> = QUIET_HOURS.optional("never");
        /// Whether notifications carry the question, the beginning of the reply or the message.
        pub content: bool = Flag.or(false);
    }
}

section! {
    /// A topic of ntfy (<https://docs.ntfy.sh/publish/>).
    #[derive(Clone, Debug)]
    pub struct Ntfy {
        /// The server's address, without the topic.
        pub url: String = UrlText(&["https", "http"]).or("https://ntfy.sh".to_owned());
        /// The topic. At a public server, whoever knows it reads along.
        pub topic: Secret = TopicText.required();
        /// An access token of the server.
        pub token: Option<Secret> = SecretText.optional("none");
    }
}

section! {
    /// An application of Gotify (<https://gotify.net/docs/pushmsg>).
    #[derive(Clone, Debug)]
    pub struct Gotify {
        /// The server's address.
        pub url: String = UrlText(&["https", "http"]).required();
        /// The application's token.
        pub token: Secret = SecretText.required();
    }
}

default_is_absent!(Notifications);

/// A topic, as ntfy allows it.
struct TopicText;

impl Rule for TopicText {
    type Output = Secret;

    fn expected(&self) -> String {
        "a topic: 1 to 64 of A-Z a-z 0-9 _ -".to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Secret> {
        let topic = SecretText.read(reader, path, value)?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let text = topic.expose();
        if (1..=64).contains(&text.len()) && text.bytes().all(letter) {
            return Some(topic);
        }
        reader.refuse(path, format_args!("must be {}", self.expected()));
        None
    }
}

/// A service that a phone is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushService {
    /// ntfy.
    Ntfy,
    /// Gotify.
    Gotify,
}

impl PushService {
    /// As the settings call it.
    pub fn as_str(self) -> &'static str {
        match self {
            PushService::Ntfy => "ntfy",
            PushService::Gotify => "gotify",
        }
    }
}

/// As `get_config` shows it: without secrets.
impl Serialize for Notifications {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ntfy = self.ntfy.as_ref().map(|ntfy| {
            json!({ "url": masked(&ntfy.url), "topic_set": true, "token_set": ntfy.token.is_some() })
        });
        let gotify = self.gotify.as_ref();
        let gotify = gotify.map(|gotify| json!({ "url": masked(&gotify.url), "token_set": true }));
        let quiet_hours = self.quiet_hours.map(|hours| hours.to_string());
        json!({
            "ntfy": ntfy,
            "gotify": gotify,
            "quiet_hours": quiet_hours,
            "content": self.content,
        })
        .serialize(serializer)
    }
}

impl Notifications {
    /// The services that are set up.
    pub fn services(&self) -> impl Iterator<Item = PushService> {
        let ntfy = self.ntfy.as_ref().map(|_| PushService::Ntfy);
        let gotify = self.gotify.as_ref().map(|_| PushService::Gotify);
        ntfy.into_iter().chain(gotify)
    }

    /// Until when nothing is sent, if that is so now.
    pub fn quiet_until(&self, now: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let hours = self.quiet_hours?;
        zone.end_of_daily(now, hours.from, hours.until)
    }
}

/// A part of every day, which may last over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    /// Its first minute after midnight.
    pub from: u16,
    /// The first minute after it.
    pub until: u16,
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, until) = (self.from, self.until);
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            until / 60,
            until % 60
        )
    }
}

const QUIET_HOURS: Parsed<QuietHours> = Parsed {
    expected: "two times of day, such as 22:00-07:00",
    parse: |text| {
        let (from, until) = text.split_once('-')?;
        let (from, until) = (minute_of_day(from)?, minute_of_day(until)?);
        (from != until).then_some(QuietHours { from, until })
    },
};

/// The minute of a time such as 07:30.
fn minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| {
        let is_number =
            (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u16>().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}
