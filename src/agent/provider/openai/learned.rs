//! What a server turned out not to take. Servers and models differ, so the
//! common form is sent first, and a refusal that names its cause changes it once.

use super::request::own_members;
use crate::agent::provider::refusal::Refusal;
use crate::agent::provider::{ChatMessage, ModelRequest};

/// Findings about one model of one server. Everything is `false` at first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// It takes no `temperature`.
    pub no_temperature: bool,
    /// The limit is called `max_completion_tokens` (OpenAI's newer name), not
    /// `max_tokens`, which most others know only.
    pub newer_limit_name: bool,
    /// The other name was tried, too.
    limit_name_changed: bool,
    /// It takes no `stream_options`.
    pub no_stream_options: bool,
    /// It cannot use tools.
    pub no_tools: bool,
    /// It wants no members of its own back.
    pub no_extra: bool,
}

impl Learned {
    /// What is known of a host before the first request.
    pub fn of_host(host: &str) -> Learned {
        Learned {
            newer_limit_name: host == "api.openai.com",
            ..Learned::default()
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

    /// What to change so that the request is not refused again for this cause;
    /// `None` when nothing is left to change.
    pub fn after(
        self,
        refusal: &Refusal,
        request: &ModelRequest<'_>,
        origin: &str,
    ) -> Option<Learned> {
        if !matches!(refusal.status, 200 | 400 | 422) {
            return None;
        }
        let mut changed = self;
        let tools = ["does not support tools", "tool_choice", "auto-tool-choice"];
        if request.temperature.is_some() && refusal.mentions(&["temperature"]) {
            changed.no_temperature = true;
        } else if request.max_tokens.is_some()
            && !self.limit_name_changed
            && refusal.mentions(&[self.limit_name()])
            && is_unknown_member(refusal)
        {
            changed.newer_limit_name = !self.newer_limit_name;
            changed.limit_name_changed = true;
        } else if request.stream && refusal.mentions(&["stream_options"]) {
            changed.no_stream_options = true;
        } else if !request.tools.is_empty() && refusal.mentions(&tools) {
            changed.no_tools = true;
        } else if is_unknown_member(refusal) && names_sent_member(refusal, request, origin) {
            changed.no_extra = true;
        }
        (changed != self).then_some(changed)
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

fn names_sent_member(refusal: &Refusal, request: &ModelRequest<'_>, origin: &str) -> bool {
    let mut sent = request
        .messages
        .iter()
        .flat_map(|message| match message {
            ChatMessage::Assistant { calls, extra, .. } => {
                let of_calls = calls.iter().filter_map(|call| call.extra.as_ref());
                of_calls.chain(extra).collect()
            }
            _ => Vec::new(),
        })
        .filter_map(|extra| own_members(extra, origin))
        .flat_map(|members| members.keys());
    sent.any(|name| refusal.mentions(&[&name.to_lowercase()]))
}
