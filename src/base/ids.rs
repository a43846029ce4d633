//! Typed, time-ordered identifiers.
//!
//! An id is one positive 63-bit number: milliseconds since 2025-01-01 in the
//! upper 41 bits, and a counter with a random start in the lower 22. It is the
//! row's primary key in the database, so that rows are in order of time,
//! and on the wire it is a prefix and 13 characters of Crockford's base32.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::Timestamp;
use crate::error::Error;
use crate::secret::{BASE32_LOWER, base32_lower, random_bytes, sha256};

const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const COUNTER_BITS: u32 = 22;
/// 2025-01-01T00:00:00Z in milliseconds since 1970.
const EPOCH: i64 = 1_735_689_600_000;
/// Characters of an id after its prefix.
const LENGTH: usize = 13;

/// Makes ids that always increase, even when the clock steps back: a Raspberry Pi
/// has no battery clock. The owner (the store) starts it above the largest id
/// that is already on disk.
#[derive(Debug)]
pub struct Sequence(AtomicI64);

impl Sequence {
    /// A sequence whose ids are all greater than `last`.
    pub fn after(last: i64) -> Sequence {
        Sequence(AtomicI64::new(last.max(0)))
    }

    /// Whether ids are ahead of this time: the clock was, once.
    pub fn is_ahead_of(&self, now: Timestamp) -> bool {
        self.0.load(Ordering::Relaxed) >= first_at(now.shifted(1))
    }

    /// The next id: of the present time, or one more than the last.
    pub fn next<I: From<i64>>(&self, now: Timestamp) -> I {
        let millisecond = (now.as_millis() - EPOCH).max(0) << COUNTER_BITS;
        // The random start keeps two households' ids apart; its range leaves
        // three quarters of the counter for ids of the same millisecond.
        let random = i64::from(u32::from_le_bytes(random_bytes::<4>()) >> (32 - COUNTER_BITS + 2));
        let mut id = 0;
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                let same = last >> COUNTER_BITS >= millisecond >> COUNTER_BITS;
                id = if same { last + 1 } else { millisecond + random };
                Some(id)
            });
        I::from(id)
    }
}

/// Ids for each millisecond before [`EPOCH`]: all of them fit into the first
/// hour after it, before Hearth existed.
const EARLIER_IDS: i64 = 8;

/// The smallest number of an id of this time: the place in the order of ids of an
/// imported message, even from before Hearth existed.
pub fn first_at(time: Timestamp) -> i64 {
    match time.as_millis() - EPOCH {
        0.. => (time.as_millis() - EPOCH).min(i64::MAX >> COUNTER_BITS) << COUNTER_BITS,
        _ => time.as_millis().max(0) * EARLIER_IDS,
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i64);

        impl $name {
            /// What its text begins with.
            pub const PREFIX: &'static str = $prefix;

            /// The number that is its primary key in the database.
            pub fn as_i64(self) -> i64 {
                self.0
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> $name {
                $name(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_id(f, $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// Unknown ids are `not_found`, whether malformed or just unused:
            /// a client cannot handle the two differently.
            fn from_str(text: &str) -> Result<$name, Error> {
                text.strip_prefix($prefix).and_then(read_id).map($name).ok_or_else(|| {
                    let shown: String = text.chars().take(64).collect();
                    Error::not_found(format!(
                        "there is no {} {shown:?}",
                        stringify!($name).trim_end_matches("Id").to_lowercase(),
                    ))
                })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A conversation.
    ConversationId = "conv_";
    /// One message of a conversation.
    MessageId = "msg_";
    /// One turn: a person's message and the work that produces its reply.
    TurnId = "turn_";
    /// A question to the owner whether a tool may run.
    ApprovalId = "appr_";
    /// A webhook callback with all its attempts. Its text is the `webhook-id`.
    DeliveryId = "dlv_";
    /// A notification for a person's phone.
    NotificationId = "ntf_";
    /// A browser that a push service tells what waits.
    PushId = "push_";
    /// A file that a message carries, or will.
    AttachmentId = "att_";
    /// Something that the assistant was asked to remember.
    MemoryId = "mem_";
    /// One line of a list, such as something to buy.
    ItemId = "item_";
    /// A tool's result that is kept whole.
    ResultId = "res_";
    /// A prompt that runs at a set time.
    ScheduleId = "sched_";
    /// A calendar that is kept elsewhere.
    CalendarId = "cal_";
    /// One time of an event of a calendar.
    EventId = "event_";
    /// A person with an account.
    UserId = "user_";
    /// A session or API token (its row, not the token itself).
    TokenId = "tok_";
    /// Those who may see a thing. Not in the order of time.
    AudienceId = "aud_";
}

impl AudienceId {
    /// Everybody with the role user or admin.
    pub const HOUSEHOLD: AudienceId = AudienceId(1);
}

fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, number: i64) -> fmt::Result {
    f.write_str(prefix)?;
    let mut text = [0; LENGTH];
    for (place, slot) in text.iter_mut().rev().enumerate() {
        *slot = CROCKFORD[(number as u64 >> (5 * place) & 31) as usize];
    }
    f.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
}

fn read_id(text: &str) -> Option<i64> {
    if text.len() != LENGTH {
        return None;
    }
    let mut number: u64 = 0;
    for byte in text.bytes() {
        let digit = CROCKFORD.iter().position(|&letter| letter == byte)? as u64;
        number = number.checked_mul(32)?.checked_add(digit)?;
    }
    i64::try_from(number).ok()
}

/// The self-certifying name of a machine: lower-case base32 of the first 20
/// bytes of SHA-256 of its X25519 public key, 32 characters (protocol section 6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MachineId(String);

impl MachineId {
    /// The machine whose public key this is.
    pub fn of_public_key(public_key: &[u8; 32]) -> MachineId {
        MachineId(base32_lower(&sha256(public_key)[..20]))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for MachineId {
    type Err = Error;

    fn from_str(text: &str) -> Result<MachineId, Error> {
        let valid = text.len() == 32 && text.bytes().all(|byte| BASE32_LOWER.contains(&byte));
        if valid {
            Ok(MachineId(text.to_owned()))
        } else {
            Err(Error::not_found(
                "a machine_id is 32 characters of a-z and 2-7",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_even_when_the_clock_steps_back() {
        let sequence = Sequence::after(0);
        let mut last = 0;
        for now in [
            2_000_000_000_000,
            2_000_000_000_000,
            1_000,
            2_000_000_000_001,
        ] {
            let id: TurnId = sequence.next(Timestamp::from_millis(now));
            assert!(id.as_i64() > last, "{id} after {last}");
            last = id.as_i64();
        }
        let restarted = Sequence::after(last);
        assert!(restarted.next::<TurnId>(Timestamp::from_millis(0)).as_i64() > last);
    }

    #[test]
    fn earlier_times_have_earlier_ids() {
        let hour = EPOCH + 3_600_000;
        let mut last = -1;
        for millis in [0, 1, 1_669_852_800_000, EPOCH - 1, hour, 2_000_000_000_000] {
            let first = first_at(Timestamp::from_millis(millis));
            assert!(first > last, "{millis}");
            last = first;
        }
        assert_eq!(first_at(Timestamp::from_millis(-5)), 0);
        assert!(first_at(Timestamp::from_millis(i64::MAX)) > last);
    }

    #[test]
    fn an_id_survives_its_text() {
        for number in [0, 1, 31, 32, i64::MAX] {
            let id = MessageId::from(number);
            assert_eq!(id.to_string().parse::<MessageId>().unwrap(), id);
        }
        assert_eq!(MessageId::from(1).to_string(), "msg_0000000000001");
    }

    #[test]
    fn what_is_no_id_is_not_found() {
        for text in [
            "",
            "msg_",
            "conv_0000000000001",
            "msg_000000000000l",
            "msg_zzzzzzzzzzzzz",
        ] {
            let error = text.parse::<MessageId>().unwrap_err();
            assert_eq!(error.code(), crate::error::Code::NotFound, "{text}");
        }
    }

    #[test]
    fn base32_is_that_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "my"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(base32_lower(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_machine_is_named_by_its_key() {
        let id = MachineId::of_public_key(&[7; 32]);
        assert_eq!(id.as_str().parse::<MachineId>().unwrap(), id);
        assert!("ABC".parse::<MachineId>().is_err());
    }
}
