//! What a server accepts, as far as its errors have shown. Servers and models
//! differ, so the common form is sent first, and an error that names its cause
//! changes it once.

use super::error_response::ErrorResponse;
use super::extra::own_members;
use super::facts::{Thoughts, Traits};
use crate::client_options::ClientOptions;
use crate::model::{ChatMessage, FileKind, ModelRequest};

/// What OpenAI calls the limit on a reply's tokens.
const NEWER_LIMIT_NAME: &str = "max_completion_tokens";
/// The member in which servers ask for thoughts that they miss.
const THOUGHTS: &str = "reasoning_content";
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

/// What one model of one server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerCapabilities {
    /// It accepts no `temperature`.
    pub no_temperature: bool,
    /// The limit is called `max_completion_tokens` (OpenAI's newer name), not
    /// `max_tokens`, which most others know only.
    pub newer_limit_name: bool,
    /// The other name was tried as well.
    limit_name_changed: bool,
    /// It cannot write as much as Hearth's default limit allows.
    pub small_limit: bool,
    /// It accepts no `stream_options`.
    pub no_stream_options: bool,
    /// It cannot use tools.
    pub no_tools: bool,
    /// It cannot be told to leave its tools alone.
    pub no_tool_choice: bool,
    /// It accepts only the plainest JSON Schemas of tools.
    pub plain_schemas: bool,
    /// It knows no `strict` of tools and schemas.
    pub no_strict: bool,
    /// What it wants back of its own extra members.
    pub thoughts: Thoughts,
    /// It accepts no `cache_control`.
    pub no_cache_marks: bool,
    /// It accepts no reasoning effort.
    pub no_effort: bool,
    /// It accepts tools only with `reasoning_effort` `none`.
    pub effort_none: bool,
    /// It accepts tools only through the Responses API.
    pub needs_responses: bool,
    /// It takes no images.
    pub no_images: bool,
    /// It takes no more images in a request.
    pub most_images: Option<usize>,
    /// It takes no PDF files.
    pub no_documents: bool,
    /// Its replies begin with thoughts of which only the end is marked.
    pub opens_thinking: bool,
}

impl ServerCapabilities {
    /// What is known of a model before the first request.
    pub fn before(traits: &Traits) -> ServerCapabilities {
        ServerCapabilities {
            newer_limit_name: traits.limit_name == NEWER_LIMIT_NAME,
            no_stream_options: traits.no_stream_options,
            no_tool_choice: !traits.tool_choice,
            thoughts: traits.thoughts,
            no_effort: !traits.effort,
            needs_responses: traits.responses,
            no_images: !traits.images,
            no_documents: !traits.documents,
            opens_thinking: traits.opens_thinking,
            ..ServerCapabilities::default()
        }
    }

    /// The name of the limit on a reply's tokens.
    pub fn limit_name(&self) -> &'static str {
        if self.newer_limit_name {
            NEWER_LIMIT_NAME
        } else {
            "max_tokens"
        }
    }

    /// The same without files of this kind, and a description of the change.
    pub fn without(mut self, kind: FileKind) -> (ServerCapabilities, &'static str) {
        if kind == FileKind::Document {
            self.no_documents = true;
            return (self, "without PDF files");
        }
        self.no_images = true;
        (self, "without images")
    }

    /// The same with at most so many images in a request, and a description of the change.
    pub fn with_most_images(mut self, most: usize) -> (ServerCapabilities, &'static str) {
        self.most_images = Some(most);
        (self, "with only as many images as it takes")
    }

    /// What to change so that the server does not answer the next request with
    /// the same error, and a description of the change; `None` if nothing is left to
    /// change. The request went to `base_url` with the configured `effort`.
    pub fn after_error(
        self,
        response: &ErrorResponse,
        request: &ModelRequest<'_>,
        base_url: &str,
        effort: Option<&str>,
    ) -> Option<(ServerCapabilities, &'static str)> {
        if response.overflow().is_some() {
            return None;
        }
        let mut changed = self;
        // Sent with 400 and with 404.
        if !self.needs_responses && response.mentions(&["v1/responses"]) {
            let change = self.toward_responses(&mut changed, response, effort);
            return Some((changed, change));
        }
        // What stands between may know only the older interface.
        if self.needs_responses && matches!(response.status, 404 | 405 | 501) {
            changed.needs_responses = false;
            return Some((changed, "through Chat Completions"));
        }
        // A broken server answers 500 as well, and a wrong address 404.
        let says_which = refuses_tools(response) || response.mentions(&[SOME_PARAMETER]);
        let is_telling = matches!(response.status, 200 | 400 | 422)
            || matches!(response.status, 404 | 500) && says_which;
        if !is_telling {
            return None;
        }
        let client = request.client;
        // The program relies on it.
        let must_call = client.is_some_and(|client| client.must_call.is_some());
        if must_call && response.mentions(&TOOL_CHOICE)
            || client.is_some() && response.mentions(&[SOME_PARAMETER])
        {
            return None;
        }
        let has_tools = !request.tools.is_empty() && !self.no_tools;
        let effort_was_sent = effort.is_some() && !self.no_effort;
        let change = if misses_thoughts(response) {
            changed.thoughts = Thoughts::WithEveryReply(THOUGHTS);
            "with the thoughts of every reply"
        } else if request.temperature.is_some() && response.mentions(&["temperature"]) {
            let is_asked_for = client.is_some_and(|client| client.temperature.is_some());
            if is_asked_for && response.mentions(&OUT_OF_BOUNDS) {
                return None;
            }
            changed.no_temperature = true;
            "without a temperature"
        } else if has_tools
            && !self.needs_responses
            && response.mentions(&["reasoning_effort"])
            && response.mentions(&["tool", "function"])
        {
            self.toward_responses(&mut changed, response, effort)
        } else if (effort_was_sent || self.effort_none) && response.mentions(&EFFORT)
            || effort_was_sent && response.mentions(&[SOME_PARAMETER])
        {
            changed.no_effort = true;
            changed.effort_none = false;
            "without a reasoning effort"
        } else if request.max_tokens.is_some()
            && !self.limit_name_changed
            && response.mentions(&[self.limit_name()])
            && is_unknown_member(response)
        {
            changed.newer_limit_name = !self.newer_limit_name;
            changed.limit_name_changed = true;
            "with the other name of the token limit"
        } else if request.max_tokens.is_none() && response.mentions(&["max_tokens"]) {
            changed.small_limit = true;
            "for a shorter reply"
        } else if client.is_some_and(ClientOptions::is_strict) && names_strict(response) {
            changed.no_strict = true;
            "without `strict`"
        } else if request.stream && response.mentions(&["stream_options"]) {
            changed.no_stream_options = true;
            "without stream options"
        } else if response.mentions(&["cache_control"]) {
            changed.no_cache_marks = true;
            "without cache marks"
        } else if has_tools && !request.may_call && response.mentions(&["tool_choice"]) {
            changed.no_tool_choice = true;
            "without tools where it must answer in words"
        } else if has_tools
            && (refuses_tools(response) || request.may_call && response.mentions(&["tool_choice"]))
        {
            changed.no_tools = true;
            "without tools"
        } else if has_tools
            && response.mentions(&["schema", "additionalproperties"])
            && !response.mentions(&["response_format", "output_config"])
        {
            changed.plain_schemas = true;
            "with plainer descriptions of the tools"
        } else if self.refuses_thoughts(response) || names_sent_member(response, request, base_url)
        {
            changed.thoughts = Thoughts::Nothing;
            "without its own extra members"
        } else {
            return None;
        };
        (changed != self).then_some((changed, change))
    }

    /// Whether the error is about members that are in every request.
    fn refuses_thoughts(self, response: &ErrorResponse) -> bool {
        let is_sent = match self.thoughts {
            Thoughts::WithEveryReply(member) => response.mentions(&[member]),
            _ => self.needs_responses && response.mentions(&["encrypted"]),
        };
        is_sent && is_unknown_member(response)
    }

    /// First turns thinking off, which costs nothing, unless the configuration asks
    /// for thinking; then changes to the other API.
    fn toward_responses(
        self,
        changed: &mut ServerCapabilities,
        response: &ErrorResponse,
        effort: Option<&str>,
    ) -> &'static str {
        let is_wanted = effort.is_some_and(|effort| effort != "none");
        if response.mentions(&["reasoning_effort"]) && !self.effort_none && !is_wanted {
            changed.effort_none = true;
            "without thinking, so that it may use tools"
        } else {
            changed.effort_none = false;
            changed.needs_responses = true;
            "through the Responses API"
        }
    }
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

#[cfg(test)]
mod tests;
