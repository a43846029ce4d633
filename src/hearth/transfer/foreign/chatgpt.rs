//! A conversation of a ChatGPT account export (`conversations.json`): a tree of
//! nodes, of which the branch that ends in `current_node` was shown last.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::transfer::importer::{ForeignConversation, attached};
use base::clock::Timestamp;
use store::{ExportedConversation, ExportedMessage, Role};

#[derive(Deserialize)]
struct ChatGptConversation {
    title: Option<String>,
    create_time: Option<f64>,
    conversation_id: Option<String>,
    id: Option<String>,
    current_node: Option<String>,
    mapping: HashMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    message: Option<Value>,
    parent: Option<String>,
    #[serde(default)]
    children: Vec<String>,
}

/// The conversation and its messages; none when the text has another structure.
pub fn conversation(text: &str) -> Option<ForeignConversation> {
    let found: ChatGptConversation = serde_json::from_str(text).ok()?;
    let id = found.conversation_id.as_deref().or(found.id.as_deref())?;
    let mut messages: Vec<ExportedMessage> = Vec::new();
    let mut now = found.create_time.and_then(seconds);
    for node in branch(&found) {
        let Some(value) = &node.message else {
            continue;
        };
        let Some((role, content)) = text_of(value) else {
            continue;
        };
        now = value["create_time"].as_f64().and_then(seconds).or(now);
        match messages.last_mut() {
            // One answer comes in parts, around the tools that were used.
            Some(last) if role == Role::Assistant && last.role == role => {
                last.content.push_str("\n\n");
                last.content.push_str(&content);
            }
            _ => messages.push(ExportedMessage::new(
                role,
                content,
                now.unwrap_or(Timestamp::from_millis(0)),
            )),
        }
    }
    let title = found.title.clone().unwrap_or_else(|| "ChatGPT".to_owned());
    let created_at = (found.create_time.and_then(seconds))
        .or(messages.first().map(|message| message.timestamp))?;
    Some(ForeignConversation {
        source: format!("chatgpt:{id}"),
        conversation: ExportedConversation::new(title, created_at),
        messages,
    })
}

/// The nodes from the root to the current one.
fn branch(conversation: &ChatGptConversation) -> Vec<&Node> {
    let mapping = &conversation.mapping;
    let current = conversation
        .current_node
        .as_ref()
        .filter(|id| mapping.contains_key(*id));
    let mut here = match current {
        Some(current) => mapping.get(current),
        None => newest_leaf(mapping),
    };
    let mut nodes = Vec::new();
    while let Some(node) = here {
        nodes.push(node);
        // A circle has no root.
        if nodes.len() > mapping.len() {
            return Vec::new();
        }
        here = node.parent.as_ref().and_then(|parent| mapping.get(parent));
    }
    nodes.reverse();
    nodes
}

/// The leaf that the newest children lead to.
fn newest_leaf(mapping: &HashMap<String, Node>) -> Option<&Node> {
    let mut here = mapping.values().find(|node| node.parent.is_none())?;
    for _ in 0..mapping.len() {
        match here.children.last().and_then(|child| mapping.get(child)) {
            Some(child) => here = child,
            None => break,
        }
    }
    Some(here)
}

/// The role and text of a message; none for those of the system and of tools, and
/// for hidden ones.
fn text_of(message: &Value) -> Option<(Role, String)> {
    let role = Role::parse(message["author"]["role"].as_str()?)?;
    let is_hidden = message["metadata"]["is_visually_hidden_from_conversation"] == true;
    let is_for_tool = message["recipient"].as_str().is_some_and(|to| to != "all");
    if is_hidden || is_for_tool {
        return None;
    }
    let content = &message["content"];
    let text = match content["content_type"].as_str()? {
        "text" | "multimodal_text" => {
            let parts = content["parts"].as_array()?;
            let texts: Vec<String> = parts.iter().filter_map(part).collect();
            texts.join("\n\n")
        }
        "code" => format!("```\n{}\n```", content["text"].as_str()?),
        _ => return None,
    };
    (!text.trim().is_empty()).then_some((role, text))
}

fn part(part: &Value) -> Option<String> {
    if let Some(text) = part.as_str() {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    match part["content_type"].as_str()? {
        "image_asset_pointer" => Some(attached("image", None)),
        "audio_transcription" => part["text"].as_str().map(str::to_owned),
        // Audio and video come with a transcription.
        "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" => None,
        other => Some(attached(other, None)),
    }
}

/// Seconds since 1970, as in `1700000000.123`.
fn seconds(seconds: f64) -> Option<Timestamp> {
    let millis = seconds * 1000.0;
    (millis.is_finite() && millis >= 0.0).then(|| Timestamp::from_millis(millis.round() as i64))
}
