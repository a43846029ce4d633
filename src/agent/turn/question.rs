//! One question to the model beside the turn: no tools, and nobody waits for the answer.

use std::time::Instant;

use super::turn_context::TurnContext;
use crate::budget;
use crate::model::{ChatMessage, ModelRequest, ProviderError};
use base::error::Result;
use store::Usage;

/// Asks for a text, and adds what it cost to `usage`. None if the model gave none, or the
/// budget is used up; the log says why the text (`what`) is missing.
///
/// # Errors
/// When the database fails.
pub fn ask(
    run: &TurnContext<'_>,
    model: &str,
    instructions: &str,
    text: String,
    what: &str,
    usage: &mut Usage,
) -> Result<Option<String>> {
    let config = &run.assistant.config;
    let now = run.clock.now();
    if budget::check(config, run.store, now, Usage::default(), run.person()?).is_err() {
        return Ok(None);
    }
    let request = ModelRequest {
        model,
        system: instructions,
        messages: &[ChatMessage::User {
            text: text.into(),
            files: Vec::new(),
        }],
        files: &(),
        tools: &[],
        may_call: false,
        client: None,
        temperature: config.temperature,
        max_tokens: config.max_tokens,
        stream: false,
        deadline: run.deadline,
        cancel: run.cancel,
    };
    let began = Instant::now();
    let answer = run.assistant.provider.complete(&request, &mut |_| {});
    run.assistant.meter.note(began.elapsed(), &answer);
    match answer {
        Ok(reply) => {
            usage.add(reply.usage);
            Ok(Some(reply.text))
        }
        Err(ProviderError::Cancelled) => Ok(None),
        Err(error) => {
            let error = error.into_error();
            log::warn!("{}: no {what} yet: {error}", run.turn.id);
            Ok(None)
        }
    }
}
