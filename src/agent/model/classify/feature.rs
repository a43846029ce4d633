//! What of a request an error says that the server does not take.

use crate::model::client_options::ClientOptions;
use crate::model::dialect::RequestContext;
use crate::model::failure::ErrorResponse;
use crate::model::profile::Thoughts;
use crate::model::server_capabilities::{Feature, THOUGHTS};
use crate::model::tool_call_builder::own_members;
use crate::model::{ChatMessage, ModelRequest};

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

/// What of the request an error says that the server does not take, if it is not left out
/// already.
pub(super) fn refused_feature(
    response: &ErrorResponse,
    context: &RequestContext<'_>,
) -> Option<Feature> {
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
            context.wants_summary() && says(&["reasoning.summary", "reasoning summar"])
                || sends_effort && says(&["adaptive.display", "thinking.display"]),
            Feature::Summaries,
        ),
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
