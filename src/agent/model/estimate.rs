//! How many tokens a request takes, without the model's tokenizer.
//!
//! Four bytes of a Latin text are about a token, one and a half letters of any
//! other, and three bytes of JSON. What a provider counts for a request
//! corrects the estimates of the next ones to the same model.

use crate::model::{ChatMessage, FileKind, ModelFile, Takes, ToolSpec};

/// The tokens that a message takes in addition to its text.
const MESSAGE_TOKENS: usize = 4;
/// The tokens of an image: services count 800 to 1,600 for a photograph.
const IMAGE_TOKENS: usize = 1_300;
/// The fewest and the most tokens that are counted of a PDF, whose pages nobody knows.
const DOCUMENT_TOKENS: (usize, usize) = (3_000, 30_000);
const DOCUMENT_BYTES_PER_TOKEN: usize = 100;
/// The tokens of a sentence about a file that is not shown.
pub const NAMED_TOKENS: usize = 40;
/// The last character of Unicode's Latin blocks.
const LAST_LATIN: char = '\u{24F}';
/// Tokens that are left for a reply of unknown length.
const USUAL_REPLY: usize = 4_096;
/// Tokens that are always kept free besides the reply: estimates are not exact.
const LEAST_MARGIN: usize = 1_024;

/// The tokens of a text.
pub fn text_tokens(text: &str) -> usize {
    tokens_of([text])
}

/// The tokens of a text in pieces.
fn tokens_of(pieces: impl IntoIterator<Item = impl AsRef<str>>) -> usize {
    let (mut latin_bytes, mut other_letters) = (0_usize, 0_usize);
    for piece in pieces {
        let text = piece.as_ref();
        if text.is_ascii() {
            latin_bytes += text.len();
            continue;
        }
        for character in text.chars() {
            if character <= LAST_LATIN {
                latin_bytes += character.len_utf8();
            } else {
                other_letters += 1;
            }
        }
    }
    latin_bytes.div_ceil(4) + (2 * other_letters).div_ceil(3)
}

/// The tokens of this many bytes of JSON.
fn json_tokens(bytes: usize) -> usize {
    bytes.div_ceil(3)
}

/// The tokens of messages.
pub fn message_tokens<'a>(messages: impl IntoIterator<Item = &'a ChatMessage<'a>>) -> usize {
    let file_tokens_of = |files: &[ModelFile]| files.iter().map(|file| file.tokens).sum::<usize>();
    let of_message = |message: &ChatMessage<'_>| match message {
        ChatMessage::Assistant { text, calls, extra } => {
            let calls = calls.iter().map(|call| {
                MESSAGE_TOKENS + text_tokens(&call.tool) + json_tokens(call.arguments.len())
            });
            let extra = extra.as_ref().map_or(0, |extra| extra.to_string().len());
            text_tokens(text) + calls.sum::<usize>() + json_tokens(extra)
        }
        ChatMessage::User { content, files } => {
            tokens_of(content.pieces(files)) + file_tokens_of(files)
        }
        ChatMessage::ToolResult { content, files, .. } => {
            tokens_of(content.pieces(&[])) + file_tokens_of(files)
        }
    };
    messages
        .into_iter()
        .map(|message| MESSAGE_TOKENS + of_message(message))
        .sum()
}

/// The tokens of a file of this kind and size, of which a text is shown up to so many
/// characters.
pub fn file_tokens(kind: FileKind, bytes: u64, most_chars: usize, takes: Takes) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match kind {
        FileKind::Image if takes.images => IMAGE_TOKENS,
        FileKind::Document if takes.documents => {
            (DOCUMENT_TOKENS.0 + bytes / DOCUMENT_BYTES_PER_TOKEN).min(DOCUMENT_TOKENS.1)
        }
        FileKind::Text => NAMED_TOKENS + json_tokens(bytes.min(most_chars)),
        _ => NAMED_TOKENS,
    }
}

/// The tokens of tool specifications.
pub fn tool_tokens(tools: &[ToolSpec]) -> usize {
    let of_tool = |tool: &ToolSpec| {
        let parameters = tool.parameters.to_string().len();
        json_tokens(tool.name.len() + tool.description.len() + parameters) + MESSAGE_TOKENS
    };
    tools.iter().map(of_tool).sum()
}

/// Most tokens of a request to a model with this window
/// ([`Provider::window`](crate::model::Provider::window)): all but the reply
/// (`max_tokens`) and a margin.
pub fn request_tokens(window: usize, max_tokens: Option<u32>) -> usize {
    let reply = match most_reply(max_tokens, window) {
        Some(most) => most as usize,
        None => USUAL_REPLY.min(window / 4),
    };
    let margin = LEAST_MARGIN.max(window / 20).min(window / 8);
    window - reply - margin
}

/// Most tokens of a reply: no more than half of the window, for servers refuse a request
/// that leaves less room than that.
pub fn most_reply(max_tokens: Option<u32>, window: usize) -> Option<u32> {
    let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
    max_tokens.map(|most| most.min(half))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use store::ToolCall;

    #[test]
    fn texts_are_estimated_by_their_script() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("four", 1),
            ("hello", 2),
            ("größer", 2),
            ("привет", 4),
            ("你好吗", 2),
            ("say 你好吗", 3),
        ] {
            assert_eq!(text_tokens(text), tokens, "{text}");
        }
    }

    #[test]
    fn messages_and_tools_cost_what_is_sent_of_them() {
        let call = ToolCall {
            id: "1".to_owned(),
            provider_id: None,
            tool: "look".to_owned(),
            arguments: "{\"a\":1}".to_owned(),
            extra: None,
        };
        for (message, tokens) in [
            (
                ChatMessage::User {
                    content: "four".into(),
                    files: Vec::new(),
                },
                5,
            ),
            (
                ChatMessage::Assistant {
                    text: "four".into(),
                    calls: vec![call],
                    extra: Some(json!("abcd")),
                },
                4 + 1 + (4 + 1 + 3) + 2,
            ),
            (
                ChatMessage::ToolResult {
                    call_id: "1".to_owned(),
                    tool: "look".to_owned(),
                    content: "12345678".into(),
                    ok: true,
                    files: Vec::new(),
                },
                6,
            ),
        ] {
            assert_eq!(message_tokens([&message]), tokens, "{message:?}");
        }
        let tool = ToolSpec {
            name: "look".to_owned(),
            description: "Look at it.".to_owned(),
            parameters: json!({}).into(),
        };
        assert_eq!(tool_tokens(&[tool]), 4 + 6);
    }

    #[test]
    fn files_cost_what_the_model_takes_of_them() {
        let (none, all) = (
            Takes::default(),
            Takes {
                images: true,
                documents: true,
            },
        );
        for (kind, bytes, takes, tokens) in [
            (FileKind::Image, 5_000_000, all, 1_300),
            (FileKind::Image, 5_000_000, none, 40),
            (FileKind::Document, 100_000, all, 4_000),
            (FileKind::Document, u64::MAX, all, 30_000),
            (FileKind::Document, u64::MAX, none, 40),
            (FileKind::Text, 300, none, 140),
            (FileKind::Text, u64::MAX, none, 1_040),
            (FileKind::Other, u64::MAX, all, 40),
        ] {
            assert_eq!(
                file_tokens(kind, bytes, 3_000, takes),
                tokens,
                "{kind:?} {bytes}"
            );
        }
    }

    #[test]
    fn the_reply_and_a_margin_are_kept_free() {
        for (window, max_tokens, expected) in [
            (8_192, None, 8_192 - 2_048 - 1_024),
            (128_000, None, 128_000 - 4_096 - 6_400),
            (128_000, Some(16_000), 128_000 - 16_000 - 6_400),
            (8_192, Some(8_192), 4_096 - 1_024),
            (2_048, None, 2_048 - 512 - 256),
            (2_048, Some(1_000_000), 1_024 - 256),
        ] {
            let found = request_tokens(window, max_tokens);
            assert_eq!(found, expected, "{window} {max_tokens:?}");
        }
    }
}
