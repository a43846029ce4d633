//! Fits a request that was made for another model into a smaller window.

use std::borrow::Cow;

use crate::context::estimate::{message_tokens, text_tokens, tool_tokens};
use crate::context::summary::block_with_gap;
use crate::message_text::{EARLIER_TAG, MEMORIES_TAG, take_fence};
use crate::model::{ChatMessage, ModelRequest};
use crate::text::Text;

/// Fewest bytes that are kept of a tool's result.
const LEAST_RESULT: usize = 200;

/// The messages of a request, without the oldest turns that make it larger than
/// `budget` tokens. The summary and the memories that were shown with these stay, and a note
/// says that messages are missing. What the newest turn has of results of tools is shortened
/// if it alone is too long; what a person said never is.
pub fn newest<'a>(request: &ModelRequest<'a>, budget: usize) -> Cow<'a, [ChatMessage]> {
    let left = budget.saturating_sub(fixed_tokens(request));
    let all = request.messages;
    let mut tokens = message_tokens(all);
    if tokens <= left {
        return Cow::Borrowed(all);
    }
    let mut gone = Gone::default();
    let mut before = String::new();
    let mut begin = 0;
    while tokens + text_tokens(&before) > left {
        // A turn begins with a message of a person, which calls and results follow.
        let mut later = all[begin..].iter().skip(1);
        let Some(place) = later.position(|message| matches!(message, ChatMessage::User { .. }))
        else {
            break;
        };
        tokens -= message_tokens(&all[begin..=begin + place]);
        gone.add(&all[begin]);
        begin += place + 1;
        before = gone.shown(left / 2, left / 4);
    }
    if begin > 0 {
        // The newest turn has the room that it needs.
        let forms = [(left / 2, left / 4), (0, left / 4), (0, 0)];
        let forms = forms.map(|(notes, memories)| gone.shown(notes, memories));
        let fits = |form: &&String| tokens + text_tokens(form) <= left;
        before = forms.iter().find(fits).unwrap_or(&forms[2]).clone();
    }
    let mut messages = all[begin..].to_vec();
    if let Some(ChatMessage::User { text, .. }) = messages.first_mut() {
        *text = [&*before, text].concat().into();
    }
    if message_tokens(&messages) <= left {
        return Cow::Owned(messages);
    }
    let is_result = |message: &&ChatMessage| matches!(message, ChatMessage::ToolResult { .. });
    let results = messages.iter().filter(is_result).count().max(1);
    let others = message_tokens(messages.iter().filter(|message| !is_result(message)));
    // Three bytes are a token or more.
    let most = (left.saturating_sub(others) * 3 / results).max(LEAST_RESULT);
    for message in &mut messages {
        if let ChatMessage::ToolResult { content, .. } = message {
            shorten(content, most);
        }
    }
    Cow::Owned(messages)
}

/// The tokens of a request.
pub fn tokens(request: &ModelRequest<'_>) -> usize {
    fixed_tokens(request) + message_tokens(request.messages)
}

fn fixed_tokens(request: &ModelRequest<'_>) -> usize {
    text_tokens(request.system) + tool_tokens(request.tools)
}

/// What was shown with turns that are left out.
#[derive(Default)]
struct Gone<'a> {
    summary: Option<&'a str>,
    /// One block for each message that came with some, oldest first.
    memories: Vec<&'a str>,
}

impl<'a> Gone<'a> {
    fn add(&mut self, message: &'a ChatMessage) {
        let ChatMessage::User { text, .. } = message else {
            return;
        };
        let mut text: &str = text;
        if let Some((block, rest)) = take_fence(EARLIER_TAG, text) {
            self.summary = Some(block);
            text = rest;
        }
        self.memories
            .extend(take_fence(MEMORIES_TAG, text).map(|(block, _)| block));
    }

    /// What goes before the first message that is left, with so many tokens of the summary,
    /// and of the newest memories.
    fn shown(&self, summary: usize, memories: usize) -> String {
        let mut text = block_with_gap(self.summary, summary * 3);
        let mut spent = 0;
        let fits = |block: &&&str| {
            spent += text_tokens(block);
            spent <= memories
        };
        let kept = self.memories.iter().rev().take_while(fits).count();
        for block in &self.memories[self.memories.len() - kept..] {
            text.push_str(block);
        }
        text
    }
}

fn shorten(content: &mut Text, most: usize) {
    if content.len() <= most {
        return;
    }
    let mut end = most;
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let missing = content.len() - end;
    *content = format!("{} [... {missing} bytes left out ...]", &content[..end]).into();
}
