//! A conversation of a Claude account export (`conversations.json`).

use serde::Deserialize;
use serde_json::Value;

use crate::transfer::importer::{ForeignConversation, attached};
use base::clock::Timestamp;
use store::{ExportedConversation, ExportedMessage, Role};

#[derive(Deserialize)]
struct ClaudeConversation {
    uuid: String,
    name: Option<String>,
    created_at: Option<String>,
    chat_messages: Vec<Value>,
}

/// The conversation and its messages; none when the text has another structure.
pub fn conversation(text: &str) -> Option<ForeignConversation> {
    let found: ClaudeConversation = serde_json::from_str(text).ok()?;
    let began = found.created_at.as_deref().and_then(time);
    let mut now = began;
    let mut messages = Vec::new();
    for value in &found.chat_messages {
        let Some((role, content)) = text_of(value) else {
            continue;
        };
        now = value["created_at"].as_str().and_then(time).or(now);
        messages.push(ExportedMessage::new(
            role,
            content,
            now.unwrap_or(Timestamp::from_millis(0)),
        ));
    }
    let title = found.name.filter(|name| !name.is_empty());
    let title = title.unwrap_or_else(|| "Claude".to_owned());
    let created_at = began.or(messages.first().map(|message| message.timestamp))?;
    Some(ForeignConversation {
        source: format!("claude:{}", found.uuid),
        conversation: ExportedConversation::new(title, created_at),
        messages,
    })
}

/// A time in ISO 8601.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// The role and text of a message, with the text of its attachments; none when it
/// is empty.
fn text_of(message: &Value) -> Option<(Role, String)> {
    let role = match message["sender"].as_str()? {
        "human" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let items = |key: &str| message[key].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts: Vec<String> = items("content")
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str().map(str::to_owned))
        .collect();
    // Older exports have the text alone, and newer ones may have both.
    if texts.is_empty() {
        texts.extend(message["text"].as_str().map(str::to_owned));
    }
    for attachment in items("attachments") {
        texts.push(attached("attachment", attachment.get("file_name")));
        texts.extend(attachment["extracted_content"].as_str().map(str::to_owned));
    }
    texts.extend(
        items("files")
            .iter()
            .map(|file| attached("file", file.get("file_name"))),
    );
    texts.retain(|text| !text.trim().is_empty());
    let text = texts.join("\n\n");
    (!text.is_empty()).then_some((role, text))
}
