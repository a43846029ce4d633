//! How many tokens a request takes, without the model's tokenizer.
//!
//! Four bytes of a Latin text are about a token, one and a half letters of any
//! other, and three bytes of JSON. What a provider counts for a request
//! corrects the estimates of the next ones to the same model.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::model::{ChatMessage, FileKind, ModelFile, Takes, ToolSpec};
use base::sync::lock;

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
/// Smaller estimates say little: the fixed cost of a request outweighs them.
const LEAST_TELLING: usize = 256;
/// A count that is further off than this does not cover the whole request, but for
/// example only what the server had not cached.
const CREDIBLE: std::ops::RangeInclusive<f64> = 0.25..=4.0;
/// Limits of the correction.
const CORRECTION: (f64, f64) = (0.5, 2.0);
/// How long a ceiling holds: servers change.
const LASTING: Duration = Duration::from_secs(24 * 60 * 60);
/// Models that are remembered.
const MODELS: usize = 64;

/// The tokens of a text.
pub fn text_tokens(text: &str) -> usize {
    if text.is_ascii() {
        return text.len().div_ceil(4);
    }
    let (mut latin_bytes, mut other_letters) = (0_usize, 0_usize);
    for character in text.chars() {
        if character <= LAST_LATIN {
            latin_bytes += character.len_utf8();
        } else {
            other_letters += 1;
        }
    }
    latin_bytes.div_ceil(4) + (2 * other_letters).div_ceil(3)
}

/// The tokens of this many bytes of JSON.
fn json_tokens(bytes: usize) -> usize {
    bytes.div_ceil(3)
}

/// The tokens of messages.
pub fn message_tokens<'a>(messages: impl IntoIterator<Item = &'a ChatMessage>) -> usize {
    let of_message = |message: &ChatMessage| match message {
        ChatMessage::User { text, files } => text_tokens(text) + tokens_of_files(files),
        ChatMessage::Assistant { text, calls, extra } => {
            let calls = calls.iter().map(|call| {
                MESSAGE_TOKENS + text_tokens(&call.tool) + json_tokens(call.arguments.len())
            });
            let extra = extra.as_ref().map_or(0, |extra| extra.to_string().len());
            text_tokens(text) + calls.sum::<usize>() + json_tokens(extra)
        }
        ChatMessage::ToolResult { content, files, .. } => {
            text_tokens(content) + tokens_of_files(files)
        }
    };
    messages
        .into_iter()
        .map(|message| MESSAGE_TOKENS + of_message(message))
        .sum()
}

fn tokens_of_files(files: &[ModelFile]) -> usize {
    files.iter().map(|file| file.tokens).sum()
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

/// What earlier requests have shown of one model at one provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSample {
    /// Corrects an estimate: 0.5 to 2.
    pub factor: f64,
    ceiling: Option<Ceiling>,
}

/// Most tokens of a request, after the server rejected a longer one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ceiling {
    tokens: usize,
    /// What was taken for the model's window then.
    window: usize,
    at: Instant,
}

impl TokenSample {
    /// Most tokens of a request to the model, whose window has so many, after the server
    /// rejected a longer one. Forgotten after a day, and when the window is another one.
    pub fn ceiling(&self, window: usize, now: Instant) -> Option<usize> {
        let ceiling = self.ceiling.filter(|ceiling| {
            ceiling.window == window && now.saturating_duration_since(ceiling.at) < LASTING
        })?;
        Some(ceiling.tokens)
    }
}

/// Samples by provider and model, kept while the server runs.
#[derive(Debug, Default)]
pub struct TokenCalibration {
    samples: Mutex<HashMap<(String, String), TokenSample>>,
}

impl TokenCalibration {
    /// What is known about a model.
    pub fn sample(&self, provider: &str, model: &str) -> TokenSample {
        let known = self.samples();
        let known = known.get(&(provider.to_owned(), model.to_owned()));
        known.copied().unwrap_or(TokenSample {
            factor: 1.0,
            ceiling: None,
        })
    }

    /// Notes that a request of `estimated` tokens (uncorrected) took `counted`.
    pub fn record_count(&self, provider: &str, model: &str, estimated: usize, counted: u64) {
        let measured = counted as f64 / estimated.max(1) as f64;
        if estimated < LEAST_TELLING || !CREDIBLE.contains(&measured) {
            return;
        }
        self.update(provider, model, |sample| {
            sample.factor = measured.clamp(CORRECTION.0, CORRECTION.1);
        });
    }

    /// Notes that a request was too long at the time `at`, so that the next ones take at
    /// most `tokens` (corrected), as long as the model's window has `window`.
    pub fn record_overflow(
        &self,
        provider: &str,
        model: &str,
        tokens: usize,
        window: usize,
        at: Instant,
    ) {
        let ceiling = Ceiling { tokens, window, at };
        self.update(provider, model, |sample| sample.ceiling = Some(ceiling));
    }

    fn update(&self, provider: &str, model: &str, change: impl FnOnce(&mut TokenSample)) {
        let mut sample = self.sample(provider, model);
        change(&mut sample);
        let mut samples = self.samples();
        if samples.len() >= MODELS {
            samples.clear();
        }
        samples.insert((provider.to_owned(), model.to_owned()), sample);
    }

    fn samples(&self) -> MutexGuard<'_, HashMap<(String, String), TokenSample>> {
        lock(&self.samples)
    }
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
                    text: "four".into(),
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
    fn figures_of_the_provider_correct_the_estimate() {
        let calibration = TokenCalibration::default();
        let factor = |calibration: &TokenCalibration| calibration.sample("p", "m").factor;
        for (estimated, counted, expected) in [
            (1_000, 1_300, 1.3),
            (1_000, 3_000, 2.0),
            (1_000, 300, 0.5),
            // Not credible, or too little to say anything: nothing changes.
            (1_000, 10, 0.5),
            (1_000, 9_000, 0.5),
            (100, 150, 0.5),
            (0, 150, 0.5),
            (1_000, 900, 0.9),
        ] {
            calibration.record_count("p", "m", estimated, counted);
            assert_eq!(factor(&calibration), expected, "{estimated} {counted}");
        }
        let now = Instant::now();
        calibration.record_overflow("p", "m", 2_000, 8_192, now);
        let sample = calibration.sample("p", "m");
        assert_eq!(sample.factor, 0.9);
        for (window, at, expected) in [
            (8_192, now, Some(2_000)),
            (8_192, now + LASTING / 2, Some(2_000)),
            (8_192, now + LASTING, None),
            (32_768, now, None),
        ] {
            assert_eq!(sample.ceiling(window, at), expected, "{window}");
        }
        for (provider, model) in [("p", "other"), ("q", "m")] {
            let other = calibration.sample(provider, model);
            assert_eq!((other.factor, other.ceiling), (1.0, None));
        }
        for number in 0..1_000 {
            calibration.record_overflow("p", &number.to_string(), 1, 2, now);
        }
        assert!(calibration.samples().len() <= MODELS);
    }
}
