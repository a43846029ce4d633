//! What a server turned out not to take. Servers and models differ, so the
//! common form is sent first, and a refusal that names its cause changes it once.

use super::dialect::RequestContext;
use super::extra::own_members;
use super::refusal::Refusal;
use crate::model::ChatMessage;
use config::Quirks;

/// Findings about one model of one server. Everything is `false` at first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerCapabilities {
    /// It takes no `temperature`.
    pub no_temperature: bool,
    /// The limit is called `max_completion_tokens` (OpenAI's newer name), not
    /// `max_tokens`, which most others know only.
    pub newer_limit_name: bool,
    /// The other name was tried, too.
    limit_name_changed: bool,
    /// It cannot write as much as it is allowed where nobody set a limit.
    pub small_limit: bool,
    /// It takes no `stream_options`.
    pub no_stream_options: bool,
    /// It cannot use tools.
    pub no_tools: bool,
    /// It takes only the plainest JSON Schemas of tools.
    pub plain_schemas: bool,
    /// It wants no members of its own back.
    pub no_extra: bool,
    /// It takes no marks of what is to be cached.
    pub no_cache_marks: bool,
    /// It takes no word on how hard it is to think.
    pub no_effort: bool,
    /// It takes tools only without thinking (`reasoning_effort` `none`).
    pub effort_none: bool,
    /// It takes tools only by the Responses API.
    pub responses: bool,
}

impl ServerCapabilities {
    /// What is known of a server before the first request.
    pub fn before(quirks: &Quirks, host: &str) -> ServerCapabilities {
        ServerCapabilities {
            newer_limit_name: quirks.newer_limit_name || host == "api.openai.com",
            ..ServerCapabilities::default()
        }
    }

    /// The name of the limit on a reply's tokens.
    pub fn limit_name(&self) -> &'static str {
        if self.newer_limit_name {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }

    /// What to change so that the request is not refused again for this cause,
    /// and the change in words; `None` when nothing is left to change.
    pub fn after(
        self,
        refusal: &Refusal,
        sent: &RequestContext<'_>,
    ) -> Option<(ServerCapabilities, &'static str)> {
        if refusal.is_overflow() {
            return None;
        }
        let mut changed = self;
        // Sent with 400 and with 404.
        if !self.responses && refusal.mentions(&["v1/responses"]) {
            let change = self.toward_responses(&mut changed, refusal, sent);
            return Some((changed, change));
        }
        if !matches!(refusal.status, 200 | 400 | 422) {
            return None;
        }
        let request = sent.request;
        let has_tools = !request.tools.is_empty() && !self.no_tools;
        let no_tools = ["does not support tools", "tool_choice", "auto-tool-choice"];
        let effort = [
            "reasoning_effort",
            "reasoning.effort",
            "output_config",
            "does not support thinking",
        ];
        let effort_was_sent = sent.options.reasoning_effort.is_some() && !self.no_effort;
        let change = if request.temperature.is_some() && refusal.mentions(&["temperature"]) {
            changed.no_temperature = true;
            "without a temperature"
        } else if has_tools
            && !self.responses
            && refusal.mentions(&["reasoning_effort"])
            && refusal.mentions(&["tool", "function"])
        {
            self.toward_responses(&mut changed, refusal, sent)
        } else if (effort_was_sent || self.effort_none) && refusal.mentions(&effort) {
            changed.no_effort = true;
            changed.effort_none = false;
            "without a word on how hard to think"
        } else if request.max_tokens.is_some()
            && !self.limit_name_changed
            && refusal.mentions(&[self.limit_name()])
            && is_unknown_member(refusal)
        {
            changed.newer_limit_name = !self.newer_limit_name;
            changed.limit_name_changed = true;
            "with the other name of the limit on tokens"
        } else if request.max_tokens.is_none() && refusal.mentions(&["max_tokens"]) {
            changed.small_limit = true;
            "for a shorter reply"
        } else if request.stream && refusal.mentions(&["stream_options"]) {
            changed.no_stream_options = true;
            "without stream options"
        } else if refusal.mentions(&["cache_control"]) {
            changed.no_cache_marks = true;
            "without marks for the cache"
        } else if has_tools && refusal.mentions(&no_tools) {
            changed.no_tools = true;
            "without tools"
        } else if has_tools && refusal.mentions(&["schema", "additionalproperties"]) {
            changed.plain_schemas = true;
            "with plainer descriptions of the tools"
        } else if names_sent_member(refusal, sent) {
            changed.no_extra = true;
            "without members of its own"
        } else {
            return None;
        };
        (changed != self).then_some((changed, change))
    }

    /// First without thinking, which costs nothing; then by the other API, or at
    /// once where thinking is wanted.
    fn toward_responses(
        self,
        changed: &mut ServerCapabilities,
        refusal: &Refusal,
        sent: &RequestContext<'_>,
    ) -> &'static str {
        let is_wanted = sent
            .options
            .reasoning_effort
            .is_some_and(|effort| effort != "none");
        if refusal.mentions(&["reasoning_effort"]) && !self.effort_none && !is_wanted {
            changed.effort_none = true;
            "without thinking, which it needs for tools"
        } else {
            changed.effort_none = false;
            changed.responses = true;
            "by the Responses API"
        }
    }
}

/// Whether the complaint is that a member is there, not about its value.
fn is_unknown_member(refusal: &Refusal) -> bool {
    refusal.mentions(&[
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

/// Whether the complaint is about something that the server itself had sent, or
/// that another model of it had.
fn names_sent_member(refusal: &Refusal, sent: &RequestContext<'_>) -> bool {
    let mut members = sent
        .request
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
            // Each API of a server has an origin of its own below its address.
            let origin = extra.get("origin")?.as_str()?;
            origin
                .starts_with(sent.base_url)
                .then(|| own_members(extra, origin))?
        })
        .flat_map(|members| members.keys())
        .peekable();
    if members.peek().is_none() {
        return false;
    }
    let signed = ["signature", "thinking", "encrypted", "rs_"];
    refusal.mentions(&signed)
        || is_unknown_member(refusal)
            && members.any(|name| refusal.mentions(&[&name.to_lowercase()]))
}
