//! A reply of the model without the household: no tools, memory or past but what the
//! program that asks brings along. Nothing of it is stored but what it cost.

use std::time::Instant;

use crate::Assistant;
use crate::budget;
use crate::context::prompt::LIMITS;
use crate::model::{ChatMessage, ModelReply, ModelRequest, ToolSpec};
use crate::wishes::Wishes;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::UserId;
use net::cancel::Cancel;
use store::{Store, Usage};

/// Who asks for what.
pub struct PlainRequest<'a> {
    /// The person, whose budget it is.
    pub user: (UserId, &'a str),
    /// The program's own system prompt.
    pub system: &'a str,
    /// All that was said, the question last.
    pub messages: &'a [ChatMessage],
    /// The program's tools, which it runs itself.
    pub tools: &'a [ToolSpec],
    /// What it wants of the reply.
    pub wishes: &'a Wishes,
    /// Whether to pass on pieces of text as they arrive.
    pub stream: bool,
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
}

/// Asks the model. What the household tells the model about the person holds here too.
///
/// # Errors
/// `server_error`: the budget is used up, or the model gave no answer.
pub fn reply(
    assistant: &Assistant,
    store: &Store,
    clock: &Clock,
    asked: &PlainRequest<'_>,
    on_text: &mut dyn FnMut(&str),
) -> Result<ModelReply> {
    let config = &assistant.config;
    let (user, name) = asked.user;
    let person = config.person(name);
    let its = person.map(|person| (user, person));
    budget::check(config, store, clock.now(), Usage::default(), its)?;
    let about = person.and_then(|person| person.instructions.as_deref());
    let limits = about.filter(|_| !asked.system.is_empty()).map(|_| LIMITS);
    let parts = [Some(asked.system), limits, about];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    let system = parts.join("\n\n");
    let of_program = asked.wishes.max_tokens;
    let request = ModelRequest {
        model: &config.model,
        system: system.trim(),
        messages: asked.messages,
        files: &(),
        tools: asked.tools,
        may_call: !asked.wishes.may_not_call,
        wishes: Some(asked.wishes),
        temperature: asked.wishes.temperature.or(config.temperature),
        max_tokens: of_program.into_iter().chain(config.max_tokens).min(),
        stream: asked.stream,
        deadline: asked.deadline,
        cancel: asked.cancel,
    };
    let began = Instant::now();
    let answer = assistant.provider.complete(&request, on_text);
    assistant.meter.note(began.elapsed(), &answer);
    let mut reply = answer.map_err(crate::model::ProviderError::into_error)?;
    let model = reply.model.as_deref().unwrap_or(&config.model);
    store.note_usage_of(user, reply.usage, model);
    let is_offered = |tool: &String| asked.tools.iter().any(|one| one.name == *tool);
    let called = reply.calls.len();
    reply
        .calls
        .retain(|call| request.may_call && is_offered(&call.tool));
    if reply.calls.is_empty() && called > 0 && reply.text.is_empty() {
        let why = "the model called only tools that the request does not offer, and said nothing";
        return Err(Error::server(why, "a plain reply"));
    }
    Ok(reply)
}
