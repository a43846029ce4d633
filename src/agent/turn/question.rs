//! One question to the model beside the turn: no tools, and nobody waits for the answer.

use std::time::Instant;

use super::asker::Asker;
use super::turn_context::TurnContext;
use crate::model::budget;
use crate::model::servers::Candidate;
use crate::model::{ChatMessage, ModelRequest, ProviderError};
use base::error::{Error, Result};
use base::language::Words;
use store::{Purpose, Snapshot, Usage};

/// Asks for a text with what `text` makes for the model that is asked, and notes what that cost.
/// None if the model gave none, or the budget is used up; the log says why the text is missing.
///
/// # Errors
/// When the database fails.
pub fn ask(
    run: &TurnContext<'_>,
    instructions: &str,
    text: &dyn Fn(Candidate<'_>) -> String,
    purpose: Purpose,
) -> Result<Option<String>> {
    let config = &run.assistant.config;
    let now = run.clock.now();
    let seen = run.store.snapshot(&run.viewer())?;
    let asker = Asker::of(run.turn, run.message.speaker.as_deref(), &seen)?;
    drop(seen);
    if budget::check(config, run.store, now, Usage::default(), asker.person(run)).is_err() {
        return Ok(None);
    }
    let ask = |model: Candidate<'_>| {
        let request = ModelRequest {
            model: model.model,
            system: instructions,
            messages: &[ChatMessage::User {
                content: text(model).into(),
                files: Vec::new(),
            }],
            files: &(),
            tools: &[],
            may_call: false,
            purpose,
            conversation: None,
            client: None,
            words: Words::ENGLISH,
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            stream: false,
            has_next: model.has_next,
            deadline: run.deadline,
            cancel: run.cancel,
        };
        let began = Instant::now();
        Snapshot::none_open();
        let answer = model.complete(&request, &mut |_| {});
        run.assistant.meter.note(began.elapsed(), &answer);
        Ok::<_, Error>(answer)
    };
    let answer = run.assistant.servers.ask(run.side_model(), ask)?;
    match answer {
        Ok(reply) => {
            let model = reply.model.as_ref().unwrap_or(run.side_model());
            run.store
                .note_usage(run.turn.id, reply.usage, model, purpose);
            Ok(Some(reply.text))
        }
        Err(ProviderError::Cancelled) => Ok(None),
        Err(error) => {
            let error = error.into_error();
            log::warn!("{}: no {} yet: {error}", run.turn.id, purpose.as_str());
            Ok(None)
        }
    }
}
