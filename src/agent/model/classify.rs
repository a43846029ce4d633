//! What to do about a failed request to a model: one function, and the words of the services
//! that it goes by.

use super::dialect::RequestContext;
use super::extra::own_members;
use super::failure::{ErrorResponse, Failure, Overflow, Verdict};
use super::profile::Thoughts;
use super::server_capabilities::{Feature, THOUGHTS};
use crate::model::client_options::ClientOptions;
use crate::model::{ChatMessage, FileKind, ModelRequest};
use net::http_client::ClientError;

/// What servers say when a request is too long, and what stands right before the size of the
/// window, if they name it; in lower case.
const TOO_LONG: &[(&str, &str)] = &[
    // OpenAI, DeepSeek, OpenRouter, vLLM: "... length is 8192 tokens. However, ...".
    ("maximum context length", "maximum context length is "),
    ("context_length_exceeded", ""),
    ("context window", ""),
    // Anthropic: "prompt is too long: 211000 tokens > 200000 maximum".
    ("prompt is too long", "tokens > "),
    // Anthropic: "input length and `max_tokens` exceed context limit: 196211 + 8192 > 200000".
    ("exceed context limit", " > "),
    // Bedrock.
    ("input is too long", ""),
    // Gemini: "The input token count (36211) exceeds the maximum number of tokens allowed
    // (32768)."
    ("maximum number of tokens", "tokens allowed ("),
    // llama.cpp: "request (7052 tokens) exceeds the available context size (4096 tokens)".
    ("available context size", "context size ("),
    ("exceed_context_size", "context size ("),
    // LM Studio: "... when context the overflows. However, the model is loaded with context
    // length of only 4096 tokens".
    ("context length", "context length of only "),
    // Mistral: "too large for model with 32768 maximum context length".
    ("too large for model", "too large for model with "),
    // vLLM: "is longer than the maximum model length of 8192".
    ("maximum model length", "maximum model length of "),
    // xAI: "This model's maximum prompt length is 131072 but the request contains ...".
    ("maximum prompt length", "maximum prompt length is "),
    // Moonshot: "Your request exceeded model token limit: 8192 (requested: 9000)".
    ("exceeded model token limit", "token limit: "),
    // GitHub Copilot: "prompt token count of 36211 exceeds the limit of 32768".
    ("prompt token count", "exceeds the limit of "),
    // Text Generation Inference: "`inputs` tokens + `max_new_tokens` must be <= 32769".
    ("`max_new_tokens` must be", "must be <= "),
    // Groq.
    ("reduce the length of the messages", ""),
    ("maximum context", ""),
    ("too many tokens", ""),
];
/// One request that takes more than the account may use in a minute never passes:
/// "Request too large for gpt-4o ... on tokens per min (TPM): Limit 30000, Requested 31538"
/// (OpenAI with 429, Groq with 413).
const SHARE_OF_A_MINUTE: (&str, &str) = ("request too large", "limit ");
/// Fewest and most tokens that a window may have; another number is something else.
const CREDIBLE: std::ops::RangeInclusive<usize> = 512..=10_000_000;
/// How errors name a reasoning effort: by the member, or by what it turns on or off.
const EFFORT: [&str; 8] = [
    "effort",
    "output_config",
    "adaptive",
    "does not support thinking",
    "thinking is not supported",
    "thinking is not enabled",
    "only works in thinking mode",
    "thinking level",
];
/// OpenRouter's words for a request of which one member, it does not say which, is taken by
/// none of the services behind it.
const SOME_PARAMETER: &str = "can handle the requested parameters";
/// How servers say that a model or its server cannot use tools, without quotation marks.
const NO_TOOLS: [&str; 15] = [
    "does not support tools",
    "auto-tool-choice",
    "tool calling is not supported",
    "support tool use",
    "tool use is not supported",
    "function calling is not enabled",
    "does not support function calling",
    "function calling is not supported",
    "function calling not support",
    "tools param requires",
    "unsupported param: tools",
    "unsupported parameter: tools",
    "tools is not supported",
    "tools are not supported",
    "does not support parameters: [tools",
];
/// How OpenAI says that this account may not stream: "Your organization must be verified to
/// stream this model".
const UNVERIFIED: [&str; 1] = ["verified to stream"];
/// How the templates of models say that they know no message of the system (Gemma, Mistral).
const NO_SYSTEM: [&str; 3] = [
    "system role not supported",
    "system role is not supported",
    "conversation roles must alternate user/assistant",
];
/// How they name what `tool_choice` says.
const TOOL_CHOICE: [&str; 2] = ["tool_choice", "tool choice"];
/// How they say that a value is out of bounds, and not that the member is unknown.
const OUT_OF_BOUNDS: [&str; 6] = [
    "less than",
    "greater than",
    "between",
    "range",
    "at most",
    "<=",
];
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

/// What to do about a failed request.
pub fn classify(failure: &Failure, context: &RequestContext<'_>, body: &[u8]) -> Verdict {
    // Where another server can be asked, nobody waits for one that is away or busy.
    let has_next = context.request.has_next;
    let response = match failure {
        Failure::Reported(response) => response,
        Failure::Client(ClientError::Unreachable(_) | ClientError::Refused(_)) if has_next => {
            return Verdict::NextServer;
        }
        Failure::Client(
            ClientError::Interrupted { .. }
            | ClientError::Unreachable(_)
            | ClientError::Refused(_)
            | ClientError::Exhausted,
        )
        | Failure::CutShort => return Verdict::Wait(None),
        Failure::Client(ClientError::TooLarge(_)) | Failure::Withheld(_) => return Verdict::GiveUp,
        Failure::Client(_) | Failure::NotJson(_) | Failure::NoReply | Failure::NoWord => {
            return Verdict::NextServer;
        }
    };
    let overflow = Overflow::of(response.status, &response.labels, &response.message);
    let feature = refused_file(response, overflow, context, body)
        .or_else(|| refused_feature(response, context).filter(|_| overflow.is_none()));
    if let Some(feature) = feature {
        return Verdict::Without(feature);
    }
    if let Some(overflow) = overflow {
        return Verdict::Shorter(overflow);
    }
    match (response.retry(), response.status) {
        (Some(_), _) if has_next && response.is_busy() => Verdict::NextServer,
        (Some(wait), _) => Verdict::Wait(wait),
        (None, 300..=399 | 401..=404 | 408 | 409 | 429 | 500..=599) => Verdict::NextServer,
        (None, _) if response.is_about_model() => Verdict::NextServer,
        (None, _) => Verdict::GiveUp,
    }
}

impl Overflow {
    /// What an error with this status, these labels (in lower case) and this message says of
    /// the length of a request; none if it is about something else.
    pub fn of(status: u16, labels: &str, message: &str) -> Option<Overflow> {
        let said = message.to_lowercase();
        let texts = match status {
            200 | 400 | 413 | 422 | 500 => TOO_LONG,
            _ => &[],
        };
        let share = matches!(status, 413 | 429).then_some(&SHARE_OF_A_MINUTE);
        let mut found = texts
            .iter()
            .chain(share)
            .filter(|(text, _)| said.contains(text) || labels.contains(text))
            .peekable();
        if found.peek().is_some() {
            let window = found.find_map(|(_, before)| number_after(&said, before));
            return Some(window.map_or(Overflow::Unnamed, Overflow::Window));
        }
        let is_silent = status == 400 && said.trim().is_empty();
        (status == 413 || is_silent).then_some(Overflow::Perhaps)
    }
}

/// The number right behind these words.
fn number_after(said: &str, before: &str) -> Option<usize> {
    if before.is_empty() {
        return None;
    }
    let (_, rest) = said.split_once(before)?;
    let is_part = |letter: &char| letter.is_ascii_digit() || *letter == ',';
    let digits = rest.chars().take_while(is_part);
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    let tokens = digits.parse().ok()?;
    CREDIBLE.contains(&tokens).then_some(tokens)
}

/// What of the request an error says that the server does not take, if it is not left out
/// already.
fn refused_feature(response: &ErrorResponse, context: &RequestContext<'_>) -> Option<Feature> {
    let (request, form) = (context.request, context.capabilities);
    let effort = context.options.reasoning_effort;
    let says = |words: &[&str]| response.mentions(words);
    // First thinking is turned off, which costs nothing, unless the configuration asks for it.
    let toward_responses = match says(&["reasoning_effort"])
        && !form.effort_none
        && effort.is_none_or(|effort| effort == "none")
    {
        true => Feature::Thinking,
        false => Feature::ChatCompletions,
    };
    // Sent with 400 and with 404.
    if !form.needs_responses && says(&["v1/responses"]) {
        return Some(toward_responses);
    }
    // What stands between may know only the older interface.
    if form.needs_responses && matches!(response.status, 404 | 405 | 501) {
        return Some(Feature::Responses);
    }
    // A broken server answers 500 as well, and a wrong address 404.
    let says_which = refuses_tools(response) || says(&[SOME_PARAMETER]) || says(&NO_SYSTEM);
    let is_telling = matches!(response.status, 200 | 400 | 422)
        || matches!(response.status, 403) && says(&UNVERIFIED)
        || matches!(response.status, 404 | 500) && says_which;
    let client = request.client;
    // The program relies on what it asks for.
    let must_call = client.is_some_and(|client| client.must_call.is_some());
    let has_own_temperature = client.is_some_and(|client| client.temperature.is_some());
    let is_wish = must_call && says(&TOOL_CHOICE)
        || client.is_some() && says(&[SOME_PARAMETER])
        || has_own_temperature && says(&["temperature"]) && says(&OUT_OF_BOUNDS);
    if !is_telling || is_wish {
        return None;
    }
    let has_tools = !request.tools.is_empty() && !form.no_tools;
    let sends_effort = context.effort().is_some();
    let is_unknown = is_unknown_member(response);
    // The first that the error is about.
    let about = [
        (misses_thoughts(response), Feature::BareReplies),
        (
            !request.system.is_empty() && says(&NO_SYSTEM),
            Feature::SystemRole,
        ),
        (
            request.temperature.is_some() && says(&["temperature"]),
            Feature::Temperature,
        ),
        (
            has_tools
                && !form.needs_responses
                && says(&["reasoning_effort"])
                && says(&["tool", "function"]),
            toward_responses,
        ),
        (
            (sends_effort || form.effort_none) && says(&EFFORT)
                || sends_effort && says(&[SOME_PARAMETER]),
            Feature::Effort,
        ),
        (
            request.max_tokens.is_some()
                && !form.limit_name_changed
                && says(&[form.limit_name()])
                && is_unknown,
            Feature::LimitName,
        ),
        (
            request.max_tokens.is_none() && says(&["max_tokens"]),
            Feature::LongReply,
        ),
        (
            client.is_some_and(ClientOptions::is_strict) && names_strict(response),
            Feature::Strict,
        ),
        (
            request.stream && says(&["stream_options"]),
            Feature::StreamOptions,
        ),
        (request.stream && says(&UNVERIFIED), Feature::Stream),
        (
            says(&["cache_control", "prompt_cache_key"]),
            Feature::CacheMarks,
        ),
        (
            has_tools && !request.may_call && says(&["tool_choice"]),
            Feature::ToolChoice,
        ),
        (
            has_tools && (refuses_tools(response) || request.may_call && says(&["tool_choice"])),
            Feature::Tools,
        ),
        (
            has_tools
                && says(&["schema", "additionalproperties"])
                && !says(&["response_format", "output_config"]),
            Feature::FullSchemas,
        ),
        (
            refuses_thoughts(response, context)
                || names_sent_member(response, request, context.base_url),
            Feature::OwnMembers,
        ),
    ];
    let (_, feature) = about.into_iter().find(|(is_about, _)| *is_about)?;
    (form.without(feature).0 != form).then_some(feature)
}

/// Whether the error is about members that are in every request.
fn refuses_thoughts(response: &ErrorResponse, context: &RequestContext<'_>) -> bool {
    let is_sent = match context.capabilities.thoughts {
        Thoughts::WithEveryReply(member) => response.mentions(&[member]),
        _ => context.capabilities.needs_responses && response.mentions(&["encrypted"]),
    };
    is_sent && is_unknown_member(response)
}

/// Whether an error is about what the program that asks has brought along or wished for, of
/// which nothing follows for the requests of others.
pub fn is_about_wishes(response: &ErrorResponse, request: &ModelRequest<'_>) -> bool {
    let Some(client) = request.client else {
        return false;
    };
    let mut sampling = client.sampling.keys();
    let of_tools = ["schema", "properties", "parameters", "tools.", "tools["];
    !request.tools.is_empty() && response.mentions(&of_tools)
        || client.temperature.is_some() && response.mentions(&["temperature"])
        || client.max_tokens.is_some()
            && response.mentions(&["max_", "num_predict"])
            && !is_unknown_member(response)
        || !client.stop.is_empty() && response.mentions(&["stop"])
        || client.format.is_some() && response.mentions(&["format", "json", "schema", "mime type"])
        || (client.must_call.is_some() || client.may_not_call) && response.mentions(&TOOL_CHOICE)
        || sampling.any(|name| response.mentions(&[&name.to_lowercase()]))
}

/// Whether the error is about the member `strict`, and not about what is restricted.
fn names_strict(response: &ErrorResponse) -> bool {
    let text = format!("{} {}", response.labels, response.message);
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| word == "strict")
}

/// Whether the error says that the model or its server cannot use tools.
fn refuses_tools(response: &ErrorResponse) -> bool {
    let is_mark = |letter| matches!(letter, '`' | '\'' | '"');
    let message = response.message.to_lowercase().replace(is_mark, "");
    NO_TOOLS.iter().any(|words| message.contains(words))
}

/// Whether the error asks for the thoughts of earlier replies.
fn misses_thoughts(response: &ErrorResponse) -> bool {
    let words = ["passed back", "missing", "required", "must be provided"];
    response.mentions(&[THOUGHTS]) && response.mentions(&words) && !is_unknown_member(response)
}

/// Whether the error is about the presence of a member, not about its value.
fn is_unknown_member(response: &ErrorResponse) -> bool {
    response.mentions(&[
        "unsupported",
        "not supported",
        "unknown",
        "unrecognized",
        "unexpected",
        "extra",
        "not permitted",
        "not allowed",
        "instead",
    ])
}

/// Whether the error is about extra members that this server, or another model
/// of it, had sent.
fn names_sent_member(response: &ErrorResponse, request: &ModelRequest<'_>, base_url: &str) -> bool {
    let mut members = request
        .messages
        .iter()
        .flat_map(|message| match message {
            ChatMessage::Assistant { calls, extra, .. } => {
                let of_calls = calls.iter().filter_map(|call| call.extra.as_ref());
                of_calls.chain(extra).collect()
            }
            _ => Vec::new(),
        })
        .filter_map(|extra| {
            // Each API of a server has its own origin below the server's address.
            let origin = extra.get("origin")?.as_str()?;
            origin
                .starts_with(base_url)
                .then(|| own_members(extra, origin))?
        })
        .flat_map(|members| members.keys())
        .peekable();
    if members.peek().is_none() {
        return false;
    }
    let signed = ["signature", "thinking", "encrypted", "rs_"];
    response.mentions(&signed)
        || is_unknown_member(response)
            && members.any(|name| response.mentions(&[&name.to_lowercase()]))
}

/// What of the files an error says that the server does not take.
fn refused_file(
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

#[cfg(test)]
mod tests;
