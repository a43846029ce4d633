//! A client's messages as the model gets them, without the household's.

use serde_json::Value;

use super::transcript::{Part, Said};
use agent::model::ChatMessage;
use agent::plain::BroughtFiles;
use base::error::{Error, Result};
use protocol::attachment;
use store::ToolCall;

/// A client's messages.
#[derive(Default)]
pub struct PlainChat {
    /// System messages, joined.
    pub system: String,
    /// The others.
    pub messages: Vec<ChatMessage>,
    /// The files that came since the last reply. Earlier ones are only marked.
    pub files: BroughtFiles,
}

impl PlainChat {
    /// Reads them all.
    ///
    /// # Errors
    /// `invalid_request` for an unknown role, a result without its call, what is neither
    /// text nor a file since the last reply, and where neither a user's message nor a result
    /// is last.
    pub fn read(messages: Vec<Said>) -> Result<PlainChat> {
        let mut chat = PlainChat::default();
        let mut called: Vec<ToolCall> = Vec::new();
        // Each with the place of its message.
        let mut newest: Vec<(usize, Part)> = Vec::new();
        for said in messages {
            let role = said.role.clone();
            let calls = said.tool_calls.clone().unwrap_or_default();
            let id = said.tool_call_id.clone();
            let (text, parts) = said.read()?;
            match role.as_str() {
                "system" | "developer" => {
                    if !chat.system.is_empty() {
                        chat.system.push_str("\n\n");
                    }
                    chat.system.push_str(&text);
                }
                "user" => {
                    let place = chat.messages.len();
                    newest.extend(parts.into_iter().map(|part| (place, part)));
                    let (text, files) = (text.into(), Vec::new());
                    chat.messages.push(ChatMessage::User { text, files });
                }
                "assistant" => {
                    let calls = calls.iter().enumerate();
                    let calls: Vec<ToolCall> = calls
                        .map(|(place, call)| ToolCall {
                            id: call.id.clone().unwrap_or_else(|| format!("call{place:05}")),
                            provider_id: None,
                            tool: call.function.name.clone(),
                            arguments: match &call.function.arguments {
                                Value::String(text) => text.clone(),
                                arguments => arguments.to_string(),
                            },
                            extra: None,
                        })
                        .collect();
                    if calls.is_empty() && !text.trim().is_empty() {
                        newest.clear();
                    }
                    called.clone_from(&calls);
                    let (text, extra) = (text.into(), None);
                    chat.messages
                        .push(ChatMessage::Assistant { text, calls, extra });
                }
                "tool" | "function" => {
                    let named = |call: &ToolCall| id.as_ref().is_none_or(|id| *id == call.id);
                    let place = called.iter().position(named).ok_or_else(|| {
                        Error::invalid_request("a tool's result must follow its call")
                    })?;
                    let call = called.remove(place);
                    chat.messages.push(ChatMessage::ToolResult {
                        call_id: call.id,
                        tool: call.tool,
                        content: text.into(),
                        ok: true,
                        files: Vec::new(),
                    });
                }
                _ => {
                    let shown: String = role.chars().take(50).collect();
                    return Err(Error::invalid_request(format!(
                        "a message's role is system, user, assistant or tool, not {shown:?}"
                    )));
                }
            }
        }
        attachment::check_count(newest.len())?;
        for (place, part) in newest {
            let file = chat.files.add(part.into_file()?);
            if let ChatMessage::User { files, .. } = &mut chat.messages[place] {
                files.push(file);
            }
        }
        match chat.messages.last() {
            Some(ChatMessage::User { .. } | ChatMessage::ToolResult { .. }) => Ok(chat),
            _ => Err(Error::invalid_request(
                "the last of \"messages\" must be a user's, or a tool's result",
            )),
        }
    }
}
