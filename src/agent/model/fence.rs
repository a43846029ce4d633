//! The marks of messages as a model sees them.
//!
//! **The speaker.** A message begins with who speaks, and when: `[Name, TIME] `. Names are
//! reduced to letters, digits and a few marks, so that a name cannot end its bracket. Only
//! the first bracket of a text counts.
//!
//! **Text from outside.** A webhook's messages, and the results of tools that bring
//! in text from outside the household, are put between `<outside CODE>` and
//! `</outside CODE>`. The code is a digest of the text inside. So nobody can write a
//! text that contains its own end, and the message is the same in every turn, which
//! a random number would prevent.
//!
//! **A message with files** ends with their names, types and sizes, in such a fence.
//!
//! **A schedule's message** ends with a mark. The mark is part of the message, so
//! that people see it, too.

use std::borrow::Cow;

use base::people::by_webhook;
use base::secret::{base32_lower, sha256};
use config::Config;
use store::Memory;

/// Characters kept of a speaker's name. One from a webhook ends with the account's.
pub(crate) const NAME_CHARS: usize = 208;
/// The name of an unknown speaker.
const UNKNOWN: &str = "unknown";
/// The fence around text from outside.
pub(crate) const OUTSIDE_TAG: &str = "outside";
/// The fence around the summary of older turns.
pub(crate) const EARLIER_TAG: &str = "earlier";
/// The fence around memories.
pub(crate) const MEMORIES_TAG: &str = "memories";
/// The fence around what the server tells the model, behind a message or a result.
pub(crate) const NOTE_TAG: &str = "note";
/// The fence around the note that later messages were answered before this one.
pub(crate) const OVERTAKEN_TAG: &str = "overtaken";

/// Where questions of other assistants come from (`/mcp`), as `Conversation::channel`.
pub const MCP_CHANNEL: &str = "mcp";
/// The channels of programs that speak a model's interface, and may run tools of their own:
/// OpenAI's and Ollama's.
pub const PROGRAM_CHANNELS: [&str; 2] = ["openai_api", "ollama_api"];

/// Strangers who write through this account.
const WEBHOOK: &str = "webhook:";
/// Linked senders of this account, whose words are their persons' own.
const SENDER: &str = "sender:";
/// The same where they count as text from outside.
const OUTSIDE_SENDER: &str = "outside_sender:";

/// The channel of what a linked sender of an account sends. It asks as its person; the words
/// are the person's own where whoever passes them on is trusted.
pub fn sender_channel(account: &str, is_trusted: bool) -> String {
    let kind = if is_trusted { SENDER } else { OUTSIDE_SENDER };
    format!("{kind}{account}")
}

/// Whether a linked sender asks through this channel: a person, without the rights of an
/// admin.
pub fn is_of_sender(channel: &str) -> bool {
    channel.starts_with(SENDER) || channel.starts_with(OUTSIDE_SENDER)
}

/// Whether strangers may ask through this channel: not a person does then, but the account.
pub fn is_untrusted(channel: &str) -> bool {
    channel.starts_with(WEBHOOK)
}

/// Whether what arrives through this channel is text from outside: not that of a webhook account
/// which `config` calls trusted.
pub fn is_outside(channel: &str, config: &Config) -> bool {
    match channel.strip_prefix(WEBHOOK) {
        Some(name) => !config
            .webhook_account(name)
            .is_some_and(|account| account.trusted),
        None => channel.starts_with(OUTSIDE_SENDER),
    }
}

pub(crate) fn printable_name(name: &str) -> Cow<'_, str> {
    let name = name.trim();
    let is_plain = |character: char| character.is_alphanumeric() || " ._-@+'".contains(character);
    if name.is_empty() {
        UNKNOWN.into()
    } else if name.len() <= NAME_CHARS && name.chars().all(is_plain) {
        name.into()
    } else {
        let plain = |character| if is_plain(character) { character } else { '_' };
        name.chars().take(NAME_CHARS).map(plain).collect()
    }
}

/// Who said what is remembered.
pub fn provenance(memory: &Memory) -> Option<String> {
    let speaker = memory.speaker.as_deref().map(printable_name);
    match &memory.account {
        None => speaker.map(Cow::into_owned),
        Some(account) => {
            let name = speaker.as_deref().unwrap_or(UNKNOWN);
            Some(by_webhook(name, &printable_name(account)))
        }
    }
}

/// The code of a fence: 80 bits of a digest of its contents.
fn code(body: &str) -> String {
    base32_lower(&sha256(body.as_bytes())[..10])
}

pub(crate) fn fenced(tag: &str, body: &str) -> String {
    let code = code(body);
    format!("<{tag} {code}>\n{body}\n</{tag} {code}>")
}

/// A text that anybody may have written, in its fence.
pub fn outside(text: &str) -> String {
    fenced(OUTSIDE_TAG, text)
}

/// The message of a schedule that was `due` at this time.
pub fn marked_as_scheduled(prompt: &str, due: &str, is_late: bool) -> String {
    let mark = if is_late {
        "late: due at"
    } else {
        "scheduled for"
    };
    format!("{prompt}\n\n[{mark} {due}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_when_a_message_was_due() {
        let time = "2026-11-22 08:00";
        let scheduled = marked_as_scheduled("Bins", time, false);
        let late = marked_as_scheduled("Bins", time, true);
        assert_eq!(scheduled, "Bins\n\n[scheduled for 2026-11-22 08:00]");
        assert_eq!(late, "Bins\n\n[late: due at 2026-11-22 08:00]");
    }

    #[test]
    fn only_webhooks_and_senders_that_are_not_trusted_are_outside() {
        let config = Config::default();
        let [own, passed_on] = [true, false].map(|is_trusted| sender_channel("shop", is_trusted));
        for (channel, found) in [
            ("webhook:shop", (true, true, false)),
            (&own, (false, false, true)),
            (&passed_on, (false, true, true)),
            ("websocket", (false, false, false)),
            ("lines", (false, false, false)),
            ("webhooks", (false, false, false)),
        ] {
            let is = (
                is_untrusted(channel),
                is_outside(channel, &config),
                is_of_sender(channel),
            );
            assert_eq!(is, found, "{channel}");
        }
    }
}
