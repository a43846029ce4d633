//! The values of commands' fields, and how each is read.

use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::attachment::{self, PART_BYTES};
use crate::event::EventSet;
use crate::fields::Fields;
use crate::schema::{Definitions, Schema};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::{AttachmentId, MessageId};
use base::people::Audience;
use base::reply::Surface;
use base::secret::Secret;

/// Longest chat message, in bytes of UTF-8.
pub const CHAT_MESSAGE_BYTES: usize = 256 * 1024;
/// Most rows of one list.
pub const LIST_LIMIT: u64 = 500;
/// Rows of a list when the client names no limit.
pub const LIST_DEFAULT: u64 = 50;
/// Longest validity of a token, in seconds: ten years.
const LONGEST_VALIDITY: u64 = 3_650 * 24 * 3_600;

/// Most names of one audience.
const AUDIENCE_NAMES: usize = 100;
const AUDIENCE: &str = "\"private\", \"household\" or a list of at most 100 names";

/// Any JSON; nothing is null.
pub fn any(fields: &mut Fields, name: &str) -> Result<Value> {
    Ok(fields.take(name, || json!({})).unwrap_or_default())
}

/// How somebody proves who they are.
#[derive(Debug)]
pub enum Credential {
    /// A session token, from POST /auth or for a password, or an API token; over
    /// `hearth.sock`, the secret of this start.
    Token {
        /// What POST /auth returned, or what was shown once.
        token: Secret,
        /// The person in whose name the machine's owner acts; nobody else names one.
        as_user: Option<String>,
        /// The language of the browser in which it is, such as `de-AT`: what is written to
        /// this person is written in it, unless they have chosen another. Empty in a terminal.
        language: Option<String>,
    },
    /// What POST /auth takes, for transports without HTTP, such as a relay.
    Password {
        /// The user's name.
        username: String,
        /// In plain text, as the person typed it.
        password: Secret,
        /// As with a token.
        language: Option<String>,
    },
}

impl Credential {
    /// The language of whoever reads the responses; a program names none.
    pub fn language(&self) -> Option<&str> {
        match self {
            Credential::Token { language, .. } | Credential::Password { language, .. } => {
                language.as_deref()
            }
        }
    }

    pub(super) const FIELDS: &[&str] = &["token", "as_user", "language", "username", "password"];

    pub(super) fn schema() -> Value {
        let text = || json!({ "type": "string" });
        json!({
            "type": "object",
            "properties": {
                "token": text(),
                "as_user": text(),
                "language": text(),
                "username": text(),
                "password": text(),
            },
            "anyOf": [{ "required": ["token"] }, { "required": ["username", "password"] }],
        })
    }

    pub(super) fn read(fields: &mut Fields) -> Result<Credential> {
        Ok(match fields.optional_string("username")? {
            Some(username) => Credential::Password {
                username,
                password: secret(fields, "password")?,
                language: fields.optional_string("language")?,
            },
            None => Credential::Token {
                token: secret(fields, "token")?,
                as_user: fields.optional_string("as_user")?,
                language: fields.optional_string("language")?,
            },
        })
    }
}

/// How long an approval holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remember {
    /// This call only.
    Once,
    /// This tool, in this conversation.
    Conversation,
    /// This tool, always: written to `tool_permissions`.
    Always,
}

/// In which order a search answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchOrder {
    /// The best first, with any of the words.
    #[default]
    Relevance,
    /// The newest first, with all of the words or, where there is none, with any.
    Newest,
}

base::words! { SearchOrder {
    Relevance: "relevance",
    Newest: "newest",
} }

/// One of these words, if it is there.
fn word(fields: &mut Fields, name: &str, words: &[&str]) -> Result<Option<String>> {
    let word = fields.optional_string(name)?;
    fields.restrict(name, "enum", json!(words));
    match word {
        Some(word) if !words.contains(&word.as_str()) => {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let (last, others) = quoted.split_last().unwrap_or((&word, &[]));
            Err(Error::invalid_request(format!(
                "\"{name}\" must be {} or {last}",
                others.join(", ")
            )))
        }
        word => Ok(word),
    }
}

pub(super) fn surface(fields: &mut Fields, name: &str) -> Result<Option<Surface>> {
    let word = word(fields, name, &["page", "terminal", "voice", "plain"])?;
    Ok(word.as_deref().and_then(Surface::parse))
}

pub(super) fn search_order(fields: &mut Fields, name: &str) -> Result<SearchOrder> {
    let word = word(fields, name, SearchOrder::WORDS)?;
    Ok(word
        .as_deref()
        .and_then(SearchOrder::parse)
        .unwrap_or_default())
}

impl Remember {
    pub(super) fn read(fields: &mut Fields, name: &str) -> Result<Remember> {
        let word = word(fields, name, &["once", "conversation", "always"])?;
        Ok(match word.as_deref() {
            Some("conversation") => Remember::Conversation,
            Some("always") => Remember::Always,
            _ => Remember::Once,
        })
    }
}

/// Where a list of conversations goes on: the `next_cursor` of the page before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationCursor(pub MessageId);

impl FromStr for ConversationCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<ConversationCursor> {
        text.parse().map(ConversationCursor).map_err(|_| {
            Error::invalid_request("\"cursor\" must be the \"next_cursor\" of an earlier response")
        })
    }
}

/// Checks the text of a chat or webhook message.
///
/// # Errors
/// `invalid_request`; HTTP 413 when it is over [`CHAT_MESSAGE_BYTES`].
pub fn check_message(message: &str) -> Result<()> {
    if message.len() > CHAT_MESSAGE_BYTES {
        return Err(Error::too_large(format!(
            "\"message\" has {} bytes; at most {CHAT_MESSAGE_BYTES} are allowed",
            message.len()
        )));
    }
    if message.trim().is_empty() {
        return Err(Error::invalid_request("\"message\" must not be empty"));
    }
    Ok(())
}

/// Checks an idempotency key, called `subject` in the error: 1 to 255 characters.
///
/// # Errors
/// `invalid_request`.
pub fn check_idempotency_key(subject: &str, key: &str) -> Result<()> {
    if (1..=255).contains(&key.chars().count()) {
        Ok(())
    } else {
        Err(Error::invalid_request(format!(
            "{subject} must have 1 to 255 characters"
        )))
    }
}

pub(super) fn message(fields: &mut Fields, name: &str) -> Result<String> {
    let message = fields.string(name);
    fields.restrict(name, "minLength", json!(1));
    let message = message?;
    check_message(&message)?;
    Ok(message)
}

pub(super) fn idempotency_key(fields: &mut Fields, name: &str) -> Result<Option<String>> {
    let key = fields.optional_string(name)?;
    fields.restrict(name, "maxLength", json!(255));
    if let Some(key) = &key {
        check_idempotency_key(&format!("\"{name}\""), key)?;
    }
    Ok(key)
}

pub(super) fn audience(fields: &mut Fields, name: &str) -> Result<Audience> {
    optional_audience(fields, name)?.ok_or_else(|| {
        Error::invalid_request(format!("\"{name}\" is required and must be {AUDIENCE}"))
    })
}

pub(super) fn optional_audience(fields: &mut Fields, name: &str) -> Result<Option<Audience>> {
    let mistyped = || Error::invalid_request(format!("\"{name}\" must be {AUDIENCE}"));
    let schema = || Audience::schema(&mut Definitions::new());
    match fields.take(name, schema) {
        None => Ok(None),
        Some(written) => match Audience::deserialize(written).map_err(|_| mistyped())? {
            Audience::People(names) if names.len() > AUDIENCE_NAMES => Err(mistyped()),
            audience => Ok(Some(audience)),
        },
    }
}

pub(super) fn id<I: FromStr<Err = Error>>(fields: &mut Fields, name: &str) -> Result<I> {
    fields.string(name)?.parse()
}

pub(super) fn optional_id<I: FromStr<Err = Error>>(
    fields: &mut Fields,
    name: &str,
) -> Result<Option<I>> {
    let text = fields.optional_string(name)?;
    text.map(|text| text.parse()).transpose()
}

pub(super) fn attachments(fields: &mut Fields, name: &str) -> Result<Vec<AttachmentId>> {
    let ids = fields.optional_strings(name)?.unwrap_or_default();
    attachment::check_count(ids.len())?;
    ids.iter().map(|id| id.parse()).collect()
}

pub(super) fn part(fields: &mut Fields, name: &str) -> Result<Vec<u8>> {
    let data = attachment::data(fields, name)?;
    if data.len() > PART_BYTES {
        return Err(Error::too_large(format!(
            "\"{name}\" has {} bytes; a part may have at most {PART_BYTES}",
            data.len()
        )));
    }
    Ok(data)
}

pub(super) fn bytes(fields: &mut Fields, name: &str) -> Result<u64> {
    fields.integer(name, 0..=i64::MAX as u64)
}

pub(super) fn offset(fields: &mut Fields, name: &str) -> Result<u64> {
    let offset = fields.optional_integer(name, 0..=i64::MAX as u64)?;
    Ok(offset.unwrap_or(0))
}

pub(super) fn part_length(fields: &mut Fields, name: &str) -> Result<usize> {
    let length = fields.optional_integer(name, 1..=PART_BYTES as u64)?;
    Ok(length.map_or(PART_BYTES, |length| length as usize))
}

/// How long a reminder is put off.
pub(super) fn snooze_minutes(fields: &mut Fields, name: &str) -> Result<u64> {
    Ok(fields.optional_integer(name, 1..=10_080)?.unwrap_or(10))
}

/// An array of anything.
pub(super) fn optional_array(fields: &mut Fields, name: &str) -> Result<Option<Value>> {
    match fields.take(name, || json!({ "type": "array" })) {
        None | Some(Value::Null) => Ok(None),
        Some(array @ Value::Array(_)) => Ok(Some(array)),
        Some(_) => Err(Error::invalid_request(format!("{name:?} must be an array"))),
    }
}

pub(super) fn secret(fields: &mut Fields, name: &str) -> Result<Secret> {
    fields.string(name).map(Secret::new)
}

pub(super) fn optional_secret(fields: &mut Fields, name: &str) -> Result<Option<Secret>> {
    Ok(fields.optional_string(name)?.map(Secret::new))
}

pub(super) fn false_by_default(fields: &mut Fields, name: &str) -> Result<bool> {
    Ok(fields.optional_bool(name)?.unwrap_or(false))
}

pub(super) fn true_by_default(fields: &mut Fields, name: &str) -> Result<bool> {
    Ok(fields.optional_bool(name)?.unwrap_or(true))
}

pub(super) fn limit(fields: &mut Fields, name: &str) -> Result<usize> {
    let limit = fields.optional_integer(name, 1..=LIST_LIMIT)?;
    Ok(limit.unwrap_or(LIST_DEFAULT) as usize)
}

pub(super) fn events(fields: &mut Fields, name: &str) -> Result<EventSet> {
    match fields.optional_strings(name)? {
        Some(names) => EventSet::of(&names),
        None => Ok(EventSet::ALL),
    }
}

pub(super) fn sequence_number(fields: &mut Fields, name: &str) -> Result<Option<u64>> {
    fields.optional_integer(name, 0..=u64::MAX)
}

/// A time in ISO 8601 that may be absent.
pub(super) fn optional_time(fields: &mut Fields, name: &str) -> Result<Option<Timestamp>> {
    let text = fields.optional_string(name)?;
    fields.restrict(name, "format", json!("date-time"));
    let wrong = |error| Error::invalid_request(format!("\"{name}\" must be a time: {error}"));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}

pub(super) fn refresh_minutes(fields: &mut Fields, name: &str) -> Result<Option<u32>> {
    let minutes = fields.optional_integer(name, 5..=24 * 60)?;
    Ok(minutes.and_then(|minutes| u32::try_from(minutes).ok()))
}

pub(super) fn expiry(fields: &mut Fields, name: &str) -> Result<Option<Duration>> {
    let seconds = fields.optional_integer(name, 1..=LONGEST_VALIDITY)?;
    Ok(seconds.map(Duration::from_secs))
}

/// A text of so many characters that may be absent, or empty.
pub(super) fn optional_text<const MOST: usize>(
    fields: &mut Fields,
    name: &str,
) -> Result<Option<String>> {
    let text = fields.optional_string(name)?;
    fields.restrict(name, "maxLength", json!(MOST));
    match text.map(|text| text.trim().to_owned()) {
        Some(text) if text.chars().count() > MOST => Err(Error::invalid_request(format!(
            "\"{name}\" must have at most {MOST} characters"
        ))),
        text => Ok(text),
    }
}

/// A text of so many characters, which is not empty.
pub(super) fn short_text<const MOST: usize>(fields: &mut Fields, name: &str) -> Result<String> {
    let text = fields.string(name);
    fields.restrict(name, "maxLength", json!(MOST));
    check_short(text?, name, MOST)
}

/// The same, which may be absent.
pub(super) fn optional_short_text<const MOST: usize>(
    fields: &mut Fields,
    name: &str,
) -> Result<Option<String>> {
    let text = fields.optional_string(name)?;
    fields.restrict(name, "maxLength", json!(MOST));
    text.map(|text| check_short(text, name, MOST)).transpose()
}

fn check_short(text: String, name: &str, most: usize) -> Result<String> {
    if text.trim().is_empty() || text.chars().count() > most {
        return Err(Error::invalid_request(format!(
            "\"{name}\" must have 1 to {most} characters, not only white space"
        )));
    }
    Ok(text)
}

/// Strings that may be absent.
pub(super) fn texts(fields: &mut Fields, name: &str) -> Result<Vec<String>> {
    Ok(fields.optional_strings(name)?.unwrap_or_default())
}
