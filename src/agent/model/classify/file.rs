//! What of a request's files an error says that the server does not take.

use super::Overflow;
use crate::model::FileKind;
use crate::model::dialect::RequestContext;
use crate::model::failure::ErrorResponse;
use crate::model::server_capabilities::Feature;

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

/// What of the files an error says that the server does not take.
pub(super) fn refused_file(
    response: &ErrorResponse,
    overflow: Option<Overflow>,
    context: &RequestContext<'_>,
    body: &[u8],
) -> Option<Feature> {
    const DOCUMENTS: &[FileKind] = &[FileKind::Document];
    const IMAGES: &[FileKind] = &[FileKind::Image];
    const BOTH: &[FileKind] = &[FileKind::Document, FileKind::Image];
    let files = context.files;
    let is_telling = matches!(response.status, 200 | 400 | 404 | 413 | 415 | 422 | 500);
    // A bare 413 may be about the bytes as well.
    if !is_telling || overflow.is_some_and(|overflow| overflow != Overflow::Perhaps) {
        return None;
    }
    let response = &response.without_name(context.request.model);
    let first = |words: &[&str]| {
        words
            .iter()
            .filter_map(|word| place_of(response, word))
            .min()
    };
    let other = first(&OTHER_CAUSES).unwrap_or(usize::MAX);
    for (kinds, words) in [(DOCUMENTS, &DOCUMENT_WORDS[..]), (IMAGES, &IMAGE_WORDS)] {
        let sent = files.sent(kinds).len();
        if sent == 0 || first(words).is_none_or(|place| place > other) {
            continue;
        }
        let kind = kinds[0];
        if kind == FileKind::Image
            && let Some(most) = most_images(&response.message).filter(|most| *most < sent)
        {
            return Some(match most {
                0 => Feature::Kind(kind),
                most => Feature::ImagesBeyond(most),
            });
        }
        if response.mentions(&UNSUPPORTED_WORDS) && !response.mentions(&FORM_WORDS) {
            return Some(Feature::Kind(kind));
        }
        return (response.status != 500).then_some(Feature::Files(kinds));
    }
    // What stands between is too small for the request, whatever makes it large.
    let bytes: u64 = files.sent(BOTH).iter().map(|(_, file)| file.bytes).sum();
    let is_large = bytes / 3 * 4 > body.len() as u64 / 2;
    (response.status == 413 && is_large).then_some(Feature::Files(BOTH))
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
