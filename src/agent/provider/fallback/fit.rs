//! Fits a request that was made for another model into a smaller window.

use std::borrow::Cow;

use crate::context::estimate::{message_tokens, text_tokens, tool_tokens};
use crate::model::{ChatMessage, ModelRequest};

/// Fewest bytes that are kept of a tool's result.
const LEAST_RESULT: usize = 200;

/// The messages of a request, without the oldest turns that make it larger than
/// `budget` tokens. What the newest turn has of results of tools is shortened if it
/// alone is too long; what a person said never is.
pub fn newest<'a>(request: &ModelRequest<'a>, budget: usize) -> Cow<'a, [ChatMessage]> {
    let fixed = text_tokens(request.system) + tool_tokens(request.tools);
    let left = budget.saturating_sub(fixed);
    let mut messages = request.messages;
    let mut tokens = message_tokens(messages);
    while tokens > left {
        // A turn begins with a message of a person, which calls and results follow.
        let mut later = messages.iter().skip(1);
        let Some(place) = later.position(|message| matches!(message, ChatMessage::User { .. }))
        else {
            break;
        };
        tokens -= message_tokens(&messages[..=place]);
        messages = &messages[place + 1..];
    }
    if tokens <= left {
        return Cow::Borrowed(messages);
    }
    let is_result = |message: &&ChatMessage| matches!(message, ChatMessage::ToolResult { .. });
    let results = messages.iter().filter(is_result).count().max(1);
    let others = message_tokens(messages.iter().filter(|message| !is_result(message)));
    // Three bytes are a token or more.
    let most = (left.saturating_sub(others) * 3 / results).max(LEAST_RESULT);
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let ChatMessage::ToolResult { content, .. } = message {
            shorten(content, most);
        }
    }
    Cow::Owned(messages)
}

fn shorten(content: &mut String, most: usize) {
    if content.len() <= most {
        return;
    }
    let mut end = most;
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let missing = content.len() - end;
    content.truncate(end);
    content.push_str(&format!(" [... {missing} bytes left out ...]"));
}
