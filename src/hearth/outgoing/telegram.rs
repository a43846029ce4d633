//! What is sent to chats of Telegram (<https://core.telegram.org/bots/api>). The bot's token is
//! part of each address, so that no address is logged or part of an error.

use std::fmt::Display;

use serde_json::{Value, json};

use super::post::Request;
use base::ids::{AttachmentId, ScheduleId};
use base::language::Words;
use config::{TELEGRAM, TelegramChannel};
use net::http_client::form::{FormFile, form};
use protocol::record::Attachment;
use store::{Durable, Notification};

/// Most UTF-16 code units of a message.
const MESSAGE_UNITS: usize = 4_096;

/// The buttons under a question: the key of each one's words, and what a press says before the
/// id of the question.
const OF_QUESTION: [(&str, &str); 2] = [("answer.once", "allow"), ("answer.deny", "deny")];
/// Those under a reminder.
const OF_REMINDER: [(&str, &str); 2] = [("reminder.done", "done"), ("reminder.again", "again")];

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
        media_type: "application/json".to_owned(),
        headers: Vec::new(),
        body: body.as_bytes().to_vec(),
    }
}

/// The bodies of the messages that say this in a chat, in order, with the buttons of the
/// reminder that they tell. It is sent as it is: Telegram refuses Markdown that does not close
/// what it opens.
pub fn messages(words: Words, chat: &str, text: &str, reminder: Option<ScheduleId>) -> Vec<String> {
    let body = |text: &&str| json!({ "chat_id": chat, "text": text });
    let mut bodies: Vec<Value> = pieces(text).iter().map(body).collect();
    if let (Some(last), Some(id)) = (bodies.last_mut(), reminder) {
        last["reply_markup"] = buttons(words, OF_REMINDER, id);
    }
    bodies.iter().map(Value::to_string).collect()
}

/// Most bytes of a file that is sent.
const FILE_BYTES: u64 = 20 * 1024 * 1024;
/// Most bytes of a picture that Telegram takes as one.
const PICTURE_BYTES: u64 = 10 * 1024 * 1024;

/// The body that stands for a file of a reply until it is sent, as [`file_request`] makes it.
pub fn file_message(words: Words, chat: &str, file: &Attachment) -> String {
    let body = match file.bytes > FILE_BYTES {
        true => {
            let text = words.say("telegram.file_large", &[("name", &file.name)]);
            json!({ "chat_id": chat, "text": text })
        }
        false => json!({ "chat_id": chat, "attachment_id": file.attachment_id }),
    };
    body.to_string()
}

/// The file for which this body stands, if it does.
pub fn file_in(body: &str) -> Option<AttachmentId> {
    let body: Value = serde_json::from_str(body).ok()?;
    body["attachment_id"].as_str()?.parse().ok()
}

/// The request that sends a file.
pub fn file_request(
    channel: &TelegramChannel,
    chat: &str,
    (file, bytes): (&Attachment, &[u8]),
) -> Request {
    let is_picture = matches!(&*file.media_type, "image/jpeg" | "image/png" | "image/webp");
    let (method, field) = match is_picture && file.bytes <= PICTURE_BYTES {
        true => ("sendPhoto", "photo"),
        false => ("sendDocument", "document"),
    };
    let sent = FormFile {
        field,
        name: &file.name,
        media_type: &file.media_type,
        bytes,
    };
    let (media_type, body) = form(&[("chat_id", chat)], &sent);
    Request {
        url: method_url(channel, method),
        media_type,
        body,
        ..request(channel, "")
    }
}

fn buttons(words: Words, choices: [(&str, &str); 2], id: impl Display) -> Value {
    let buttons = choices.map(|(label, choice)| {
        let label = words.word(label);
        json!({ "text": label, "callback_data": format!("{choice} {id}") })
    });
    json!({ "inline_keyboard": [buttons] })
}

/// The request that notifies a person in their chat, and what is left to say after it. A question
/// that they may be able to answer has buttons under its end, and so has a reminder.
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
    if let Some(id) = due.own_question {
        body["reply_markup"] = buttons(due.words, OF_QUESTION, id);
    } else if let Some(id) = due.reminder {
        body["reply_markup"] = buttons(due.words, OF_REMINDER, id);
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
