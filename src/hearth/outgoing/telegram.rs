//! What is sent to chats of Telegram (<https://core.telegram.org/bots/api>). The bot's token is
//! part of each address, so that no address is logged or part of an error.

use serde_json::json;

use super::post::Request;
use config::{TELEGRAM, TelegramChannel};
use store::{Durable, Notification, NotificationCause};

/// Most UTF-16 code units of a message.
const MESSAGE_UNITS: usize = 4_096;

/// The keys of the words of the buttons under a question, and what a press of each says before
/// the id of the question.
pub const BUTTONS: [(&str, &str); 2] = [("answer.once", "allow "), ("answer.deny", "deny ")];

/// The account of deliveries to a chat: each chat is a receiver of its own.
pub fn account_of(chat: &str) -> String {
    format!("{TELEGRAM}:{chat}")
}

/// The chat of such an account.
pub fn chat_of(account: &str) -> Option<&str> {
    account.strip_prefix(TELEGRAM)?.strip_prefix(':')
}

/// The address of a method.
pub fn method_url(channel: &TelegramChannel, method: &str) -> String {
    let base = channel.base_url.trim_end_matches('/');
    format!("{base}/bot{}/{method}", channel.bot_token.expose())
}

/// The request that sends this body, as [`messages`] makes it.
pub fn request(channel: &TelegramChannel, body: &str) -> Request {
    Request {
        setting: "the base_url of the telegram channel",
        url: method_url(channel, "sendMessage"),
        media_type: "application/json",
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

/// The bodies of the messages that say this in a chat, in order. It is sent as it is: Telegram
/// refuses Markdown that does not close what it opens.
pub fn messages(chat: &str, text: &str) -> Vec<String> {
    let body = |text: &&str| json!({ "chat_id": chat, "text": text }).to_string();
    pieces(text).iter().map(body).collect()
}

/// The request that notifies a person in their chat, and what is left to say after it. A question
/// that they may be able to answer has buttons under its end.
///
/// # Errors
/// Why it is not to be sent any more.
pub fn notification(
    due: &Durable<Notification>,
    channel: Option<&TelegramChannel>,
    is_silent: bool,
) -> Result<(Request, Option<String>), String> {
    let channel = channel.ok_or("there is no telegram channel any more")?;
    let chat = due.chat.as_ref().ok_or("the person has no chat any more")?;
    let content = due.content.as_deref().unwrap_or_default();
    let (text, rest) = split(content);
    let mut body = json!({ "chat_id": chat, "text": text });
    if is_silent {
        body["disable_notification"] = json!(true);
    }
    if !rest.is_empty() {
        return Ok((request(channel, &body.to_string()), Some(rest.to_owned())));
    }
    if let (NotificationCause::Approval, Some(id)) = (due.cause, due.own_question) {
        let buttons = BUTTONS.map(|(label, decision)| {
            json!({ "text": due.words.word(label), "callback_data": format!("{decision}{id}") })
        });
        body["reply_markup"] = json!({ "inline_keyboard": [buttons] });
    }
    Ok((request(channel, &body.to_string()), None))
}

/// A text in pieces that fit into messages.
fn pieces(text: &str) -> Vec<&str> {
    let (first, mut rest) = split(text);
    let mut pieces = vec![first];
    while !rest.is_empty() {
        let (piece, more) = split(rest);
        pieces.push(piece);
        rest = more;
    }
    pieces
}

/// What of a text fits into a message, and the rest: split between paragraphs, else lines, else
/// words.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let Some(end) = end_of_message(text) else {
        return (if text.is_empty() { "…" } else { text }, "");
    };
    let fits = &text[..end];
    // Not so early that a message has next to nothing.
    let at = ["\n\n", "\n", " "]
        .iter()
        .find_map(|mark| fits.rfind(mark).filter(|at| *at >= end / 4))
        .unwrap_or(end);
    (text[..at].trim_end(), text[at..].trim_start())
}

/// Where a text has to end at the latest to fit into a message; none if it fits.
fn end_of_message(text: &str) -> Option<usize> {
    let mut units = 0;
    text.char_indices().find_map(|(at, letter)| {
        units += letter.len_utf16();
        (units > MESSAGE_UNITS).then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    #[test]
    fn a_text_is_split_where_it_reads_best() {
        assert_eq!(pieces(" short "), ["short"]);
        assert_eq!(pieces(""), ["…"]);
        let (a, b) = ("a".repeat(3_000), "b".repeat(3_000));
        for mark in ["\n\n", "\n", " "] {
            let text = format!("{a}{mark}{b}");
            assert_eq!(pieces(&text), [a.as_str(), b.as_str()], "{mark:?}");
        }
        let paragraphs = format!("{a}\n\n{}\n{b}", "c ".repeat(400));
        assert_eq!(pieces(&paragraphs)[0], a);
        // Without a place to split, and with letters of two units each.
        for (text, count) in [("x".repeat(9_000), 3), ("🐸".repeat(4_096), 2)] {
            let split = pieces(&text);
            assert_eq!(split.len(), count);
            assert!(split.iter().all(|piece| units(piece) <= MESSAGE_UNITS));
            assert_eq!(split.concat(), text);
        }
    }
}
