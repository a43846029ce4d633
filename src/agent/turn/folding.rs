//! After the reply: what the model is no longer shown of a conversation that has become too
//! long, and the summary that stands for it.
//!
//! A summary costs one model call, which nobody waits for but the next message. It frees
//! about half of the budget, so that most turns need none. Until there is one, the model is
//! told that older messages are missing; the call is made again after some replies.

use std::sync::Arc;
use std::time::Instant;

use super::history::History;
use super::question;
use super::turn_context::TurnContext;
use crate::model::Takes;
use crate::model::estimate::{request_tokens, text_tokens, tool_tokens};
use crate::model::servers::Candidate;
use crate::prompt::fit;
use crate::prompt::summary;
use base::error::Result;
use config::OFFLINE;
use store::{Past, Purpose};

/// Folds the past of the conversation of a turn that has ended, as far as it is too long. Ends
/// at the deadline of the run at the latest, or when the turn's
/// [`Cancel`](net::cancel::Cancel) is cancelled.
///
/// # Errors
/// When the database fails.
pub fn fold(run: &TurnContext<'_>) -> Result<()> {
    let config = &run.assistant.config;
    let (store, conversation) = (run.store, run.turn.conversation_id);
    // First: one that is forgotten while the rest is read is noticed when it is saved.
    let forgotten = store.snapshot(&run.viewer())?.forgotten_memories()?;
    let history = History::open(run, run.assistant.servers.first(run.model()), false)?;
    let audience = history.audience;
    let offered = history.offer()?.after([].into_iter());
    let past = &history.past;
    let earlier = past
        .summary
        .as_ref()
        .map(|summary| summary.content.as_str());
    let fixed = text_tokens(&history.system_prompt)
        + tool_tokens(&offered)
        + earlier.map_or(0, text_tokens);
    let budget = history.token_budget();
    let folded = fit::fold(
        &past.turns,
        fixed,
        budget,
        run.assistant.message_form(history.takes()),
    );
    if let Some(folded) = folded {
        let last = |count: usize| past.turns[..count].last().map(|turn| turn.id);
        let (hidden, shortened) = (last(folded.hidden), last(folded.shortened));
        store.fold(conversation, hidden, shortened, history.budget);
        if folded.hidden > 0 {
            log::info!(
                "{}: {} older turns are no longer shown to the model",
                run.turn.id,
                folded.hidden
            );
        }
    }
    let has_hidden = past.has_hidden || folded.is_some_and(|folded| folded.hidden > 0);
    // The offline model answers from rules and cannot summarise.
    if !has_hidden || config.provider == OFFLINE {
        return Ok(());
    }
    let asked = run.assistant.servers.preferred(run.side_model());
    let (learned, now) = (asked.learned(), run.clock.monotonic());
    if !learned.may_summarise(asked.model, conversation, now) {
        return Ok(());
    }
    let shown = past
        .turns
        .get(folded.map_or(0, |folded| folded.hidden))
        .map(|turn| turn.id);
    let mut hidden = history.with_hidden()?;
    let count = hidden.turns.iter().position(|turn| Some(turn.id) == shown);
    let count = count.unwrap_or(hidden.turns.len());
    Arc::make_mut(&mut hidden.turns).truncate(count);
    let Some(last) = hidden.turns.last().map(|turn| turn.id) else {
        return Ok(());
    };
    let began = Instant::now();
    let summary = summarise(run, &history, &hidden)?;
    learned.learn_summary(asked.model, conversation, summary.is_some(), now);
    if let Some(text) = summary {
        let took = began.elapsed().as_millis();
        log::info!(
            "{}: {} older turns were summarised in {took} ms",
            run.turn.id,
            hidden.turns.len()
        );
        store.save_summary(conversation, last, &text, audience, forgotten)?;
    }
    Ok(())
}

/// Asks the model for a summary; none if it gave none.
fn summarise(
    run: &TurnContext<'_>,
    history: &History<'_>,
    hidden: &Past,
) -> Result<Option<String>> {
    let earlier = hidden.summary.as_ref();
    let text = |model: Candidate<'_>| {
        let most_tokens = match model.is(&history.model) {
            true => history.token_budget().tokens,
            false => request_tokens(model.window(), run.assistant.config.max_tokens),
        };
        summary::transcript(
            earlier.map(|summary| summary.content.as_str()),
            &hidden.turns,
            hidden.has_more,
            most_tokens.saturating_sub(text_tokens(summary::INSTRUCTIONS)),
            run.assistant.message_form(Takes::default()),
        )
    };
    let reply = question::ask(run, summary::INSTRUCTIONS, &text, Purpose::Summary)?;
    Ok(reply.and_then(|text| summary::cleaned(&text)))
}
