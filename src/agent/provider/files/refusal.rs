//! Which files of a request an error is about.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Files, files_of};
use crate::model::{ChatMessage, FileKind, ModelFile};
use crate::provider::error_response::ErrorResponse;
use crate::provider::overflow::Overflow;
use base::ids::AttachmentId;

/// What a server does not take.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// Any file of this kind.
    Kind(FileKind),
    /// More images than this in a request.
    MoreThan(usize),
    /// Single files.
    Files {
        /// Those to leave out.
        out: Vec<AttachmentId>,
        /// Those that were left out before and are not to blame.
        back: Vec<AttachmentId>,
    },
}

/// What was left out of a request so far because somebody had to be accused.
#[derive(Debug, Default)]
pub struct Guesses {
    kinds: Vec<FileKind>,
    first: Vec<AttachmentId>,
    count: usize,
}

/// How errors name images. Those of models that take none may only say what a message must
/// be instead (Groq, DeepSeek).
const IMAGE_WORDS: [&str; 6] = [
    "image",
    "vision",
    "multimodal",
    "mmproj",
    "must be a string",
    "expected a string",
];
/// How errors name documents.
const DOCUMENT_WORDS: [&str; 4] = ["pdf", "document", "`file`", "file input"];
/// Those of them that other words hold: "provisioned", "documentation".
const WHOLE_WORDS: [&str; 2] = ["vision", "document"];
/// What else a request has, which an error may name first, before it speaks of files.
const OTHER_CAUSES: [&str; 12] = [
    "temperature",
    "tools",
    "tool_call",
    "thinking",
    "tool_choice",
    "reasoning_effort",
    "max_tokens",
    "max_completion_tokens",
    "stream_options",
    "response_format",
    "schema",
    "top_p",
];
/// How they say that a model takes none at all: DeepSeek and others that read JSON by its
/// types, OpenRouter, Ollama, llama.cpp, vLLM.
const UNSUPPORTED_WORDS: [&str; 13] = [
    "not support",
    "n't support",
    "unsupported",
    "only supported",
    "unknown variant",
    "no endpoints found",
    "not a multimodal",
    "mmproj",
    "must be a string",
    "expected a string",
    "not enabled",
    "missing data required for image",
    "expected `text`",
];
/// What they say is not supported where another file would be.
const FORM_WORDS: [&str; 6] = [
    "format",
    "media type",
    "media_type",
    "size",
    "dimension",
    "resolution",
];
/// How they say that there are too many, beside "at most 1 image(s)" (vLLM).
const COUNT_WORDS: [&str; 5] = [
    "too many",
    "too much media",
    "number of images",
    "exceeding the maximum of",
    "maximum number of",
];

impl Files<'_> {
    /// What of the files an error about a request with this body says. The files that the
    /// model has `taken` before are innocent for as long as there are others.
    pub fn refusal(
        &self,
        response: &ErrorResponse,
        body: &[u8],
        taken: &BTreeSet<AttachmentId>,
        guesses: &mut Guesses,
    ) -> Option<Refusal> {
        if !matches!(response.status, 200 | 400 | 404 | 413 | 415 | 422 | 500) {
            return None;
        }
        // A bare 413 may be about the bytes as well.
        if response
            .overflow()
            .is_some_and(|overflow| overflow != Overflow::Perhaps)
        {
            return None;
        }
        let response = &response.without_name(self.request.model);
        let kinds = [
            (FileKind::Document, &DOCUMENT_WORDS[..]),
            (FileKind::Image, &IMAGE_WORDS[..]),
        ];
        let other = OTHER_CAUSES
            .iter()
            .filter_map(|word| place_of(response, word));
        let other = other.min().unwrap_or(usize::MAX);
        for (kind, words) in kinds {
            let places = words.iter().filter_map(|word| place_of(response, word));
            let is_about = places.min().is_some_and(|place| place <= other);
            let sent = self.sent(&[kind]);
            if !is_about || sent.is_empty() {
                continue;
            }
            if kind == FileKind::Image
                && let Some(most) = most_images(&response.message).filter(|most| *most < sent.len())
            {
                return Some(match most {
                    0 => Refusal::Kind(kind),
                    most => Refusal::MoreThan(most),
                });
            }
            if response.mentions(&UNSUPPORTED_WORDS) && !response.mentions(&FORM_WORDS) {
                return Some(Refusal::Kind(kind));
            }
            if response.status == 500 {
                return None;
            }
            if let Some(out) = self.named(response, body) {
                let back = Vec::new();
                return Some(Refusal::Files { out, back });
            }
            return Some(self.accused(vec![kind], taken, guesses));
        }
        // What stands between is too small for the request, whatever makes it large.
        let kinds = vec![FileKind::Document, FileKind::Image];
        let sent = self.sent(&kinds);
        let of_files = sent.iter().map(|(_, file)| file.bytes).sum::<u64>() / 3 * 4;
        let is_large = of_files > body.len() as u64 / 2;
        (response.status == 413 && is_large).then(|| self.accused(kinds, taken, guesses))
    }

    /// The files of these kinds that the request shows, with the places of their messages.
    fn sent(&self, kinds: &[FileKind]) -> Vec<(usize, &ModelFile)> {
        let messages = self.request.messages.iter().enumerate();
        let messages = messages.filter(|(_, message)| {
            self.traits.message_after_results || !matches!(message, ChatMessage::ToolResult { .. })
        });
        messages
            .flat_map(|(place, message)| files_of(message).iter().map(move |file| (place, file)))
            .filter(|(_, file)| kinds.contains(&file.kind()) && self.kept.contains(&file.id))
            .collect()
    }

    /// All images and documents that the request shows.
    pub fn all_sent(&self) -> impl Iterator<Item = AttachmentId> + '_ {
        let sent = self.sent(&[FileKind::Document, FileKind::Image]);
        sent.into_iter().map(|(_, file)| file.id)
    }

    /// The files of these kinds to leave out, where nobody says which: first the newest that
    /// the model has not taken before. If it was not them, all others: the person asks about
    /// the newest. Then all.
    fn accused(
        &self,
        kinds: Vec<FileKind>,
        taken: &BTreeSet<AttachmentId>,
        guesses: &mut Guesses,
    ) -> Refusal {
        let sent = self.sent(&kinds);
        let ids = |of: &dyn Fn(&(usize, &ModelFile)) -> bool| -> Vec<AttachmentId> {
            let found = sent.iter().filter(|one| of(one));
            found.map(|(_, file)| file.id).collect()
        };
        if guesses.kinds != kinds {
            *guesses = Guesses {
                kinds,
                ..Guesses::default()
            };
        }
        guesses.count += 1;
        if guesses.count > 1 {
            let back = std::mem::take(&mut guesses.first);
            let out = ids(&|_| true);
            return Refusal::Files { out, back };
        }
        let is_new = |(_, file): &(usize, &ModelFile)| !taken.contains(&file.id);
        let newest = sent.last().map(|(place, _)| *place);
        let newest_new = sent.iter().rev().find(|one| is_new(one));
        // Only together can those be too much that were taken before.
        let is_size = guesses.kinds.len() > 1 || newest_new.is_none();
        let mut out = match newest_new {
            Some((place, _)) if !is_size => ids(&|one| one.0 == *place && is_new(one)),
            _ => ids(&|one| Some(one.0) != newest),
        };
        if out.is_empty() {
            out = ids(&|_| true);
        }
        guesses.first.clone_from(&out);
        let back = Vec::new();
        Refusal::Files { out, back }
    }

    /// The files that an error names by their place in the request, such as
    /// `messages.2.content.0`.
    fn named(&self, response: &ErrorResponse, body: &[u8]) -> Option<Vec<AttachmentId>> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, alias = "input")]
            messages: Vec<&'a RawValue>,
        }
        let named = path_in(&response.message).or_else(|| path_in(&response.labels))?;
        let (place, inner) = named.split_first()?;
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        let (mut before, mut count, mut all) = (0, 0, 0);
        for (at, message) in body.messages.iter().enumerate() {
            let message: Value = serde_json::from_str(message.get()).ok()?;
            if at == *place {
                let (earlier, held) = media_at(&message, inner)?;
                (before, count) = (all + earlier, held);
            }
            all += media(&message);
        }
        let sent: Vec<AttachmentId> = self.all_sent().collect();
        let is_same = count > 0 && all == sent.len();
        is_same.then(|| sent[before..before + count].to_vec())
    }
}

/// Where an error names something: 0 in its labels, or the place in its message.
fn place_of(response: &ErrorResponse, word: &str) -> Option<usize> {
    let is_whole = WHOLE_WORDS.contains(&word);
    let find = |text: &str| {
        let mut found = text.match_indices(word).map(|(place, _)| place);
        found.find(|place| {
            let before = text[..*place].chars().next_back();
            let behind = &text[place + word.len()..];
            let behind = behind.strip_prefix('s').unwrap_or(behind).chars().next();
            let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphabetic);
            !is_whole || !is_letter(before) && !is_letter(behind)
        })
    };
    find(&response.labels)
        .map(|_| 0)
        .or_else(|| find(&response.message.to_lowercase()))
}

/// How many images an error says that a request may have.
fn most_images(message: &str) -> Option<usize> {
    let message = message.to_lowercase();
    let number = |text: &str| {
        let end = text.find(|letter: char| !letter.is_ascii_digit());
        text[..end.unwrap_or(text.len())].parse().ok()
    };
    if let Some((_, behind)) = message.split_once("at most ")
        && let Some((_, noun)) = behind.split_once(' ')
        && noun.starts_with("image")
    {
        return number(behind);
    }
    if !COUNT_WORDS.iter().any(|words| message.contains(words)) {
        return None;
    }
    // Behind how many there are, and never part of a word or of a number of bytes.
    let words = message.split(|letter: char| letter.is_whitespace() || "()".contains(letter));
    let words = words.map(|word| word.trim_end_matches(['.', ',', ';']));
    words.filter_map(|word| word.parse().ok()).next_back()
}

/// The numbers of the first path below `messages` or `input` in a text.
fn path_in(text: &str) -> Option<Vec<usize>> {
    ["messages", "input"].iter().find_map(|root| {
        let mut found = text.match_indices(root);
        found.find_map(|(place, _)| {
            let path = &text[place + root.len()..];
            let is_part = |letter: char| letter.is_alphanumeric() || "_.[]".contains(letter);
            let path = &path[..path.find(|letter| !is_part(letter)).unwrap_or(path.len())];
            let mut steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty());
            let first: usize = steps.next()?.parse().ok()?;
            let rest = steps.filter_map(|step| step.parse().ok());
            Some([first].into_iter().chain(rest).collect())
        })
    })
}

/// What a message or block holds.
fn blocks(value: &Value) -> &[Value] {
    let list = |name| value.get(name).and_then(Value::as_array);
    let list = list("content").or_else(|| list("output"));
    list.map_or(&[], Vec::as_slice)
}

/// How many images and documents a message or block holds.
fn media(value: &Value) -> usize {
    let kinds = [
        "image",
        "document",
        "image_url",
        "file",
        "input_image",
        "input_file",
    ];
    let kind = value.get("type").and_then(Value::as_str);
    match kind.is_some_and(|kind| kinds.contains(&kind)) {
        true => 1,
        false => blocks(value).iter().map(media).sum(),
    }
}

/// How many of them stand before a place in a message, and how many there.
fn media_at(value: &Value, path: &[usize]) -> Option<(usize, usize)> {
    let Some((place, inner)) = path.split_first() else {
        return Some((0, media(value)));
    };
    let within = blocks(value);
    let here = within.get(*place)?;
    let before: usize = within[..*place].iter().map(media).sum();
    let (earlier, held) = media_at(here, inner)?;
    Some((before + earlier, held))
}

#[cfg(test)]
mod tests;
