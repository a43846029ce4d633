//! The turns of the past, as the model sees them in every request.

use std::sync::Arc;

use serde_json::Value;

use super::estimate::{message_tokens, text_tokens};
use super::{Results, add_turn, before, cut_by, files, memories, question, said_so_far};
use crate::model::{ChatMessage, Takes};
use crate::tool::output::{MAX_RESULT_CHARS, cap_text, shorten};
use base::calendar::Zone;
use store::{PastTurn, Step, TurnState};

/// Characters kept of the error of a turn that failed.
const ERROR_CHARS: usize = 200;

/// What the messages of an earlier turn depend on beside the turn itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Whether a later turn ended before it.
    pub is_overtaken: bool,
    /// Whether the results of its tools are shown in short.
    pub is_shortened: bool,
    /// Most tokens of a request, of which the question of a turn that failed may take half;
    /// of other turns `None`.
    pub most_tokens: Option<usize>,
    /// The household's clocks.
    pub zone: Zone,
    /// What the model takes beside text.
    pub takes: Takes,
}

/// An earlier turn in one form.
#[derive(Debug, PartialEq)]
pub struct Rendered {
    form: Form,
    /// Its messages.
    pub messages: Vec<ChatMessage>,
    /// Their tokens.
    pub tokens: usize,
}

/// An earlier turn in this form. The one that was asked for last is kept with the turn: in a
/// long conversation, making hundreds of messages anew would take most of a request's time.
pub fn rendered(turn: &PastTurn, form: Form) -> Arc<Rendered> {
    let kept = turn.memo.get::<Rendered>();
    if let Some(kept) = kept.filter(|kept| kept.form == form) {
        debug_assert_eq!(*kept, render(turn, form), "{}: stale", turn.id);
        return kept;
    }
    let rendered = Arc::new(render(turn, form));
    turn.memo.set(&rendered);
    rendered
}

fn render(turn: &PastTurn, form: Form) -> Rendered {
    let mut messages = Vec::new();
    add_past(&mut messages, turn, &form);
    let tokens = message_tokens(&messages);
    Rendered {
        form,
        messages,
        tokens,
    }
}

/// Turns that have ended, and whether later ones ended before each. Only those that are
/// shown count, so that the form of a turn does not change until they go.
pub fn with_overtaken(past: &[PastTurn]) -> impl Iterator<Item = (&PastTurn, bool)> {
    let mut newest = None;
    past.iter().map(move |turn| {
        let is_overtaken = newest > Some(turn.id);
        newest = newest.max(Some(turn.id));
        (turn, is_overtaken)
    })
}

/// Adds the messages of an earlier turn. Its question is shortened if the turn failed and
/// it alone takes most of a request.
fn add_past(messages: &mut Vec<ChatMessage>, turn: &PastTurn, form: &Form) {
    let takes = form.takes;
    let results = match form.is_shortened {
        true => Results::Line,
        false => Results::Capped(MAX_RESULT_CHARS),
    };
    let mut text = question(&turn.message, &turn.channel, form.is_overtaken, &form.zone);
    if let Some(tokens) = form.most_tokens
        && text_tokens(&text) > tokens / 2
    {
        // It was too long for the model, or nearly.
        text = cap_text(text, tokens.min(MAX_RESULT_CHARS));
    }
    let text = before(memories::block(&turn.memories), text);
    let files = files(&turn.message.attachments, results, takes);
    add_turn(messages, text, files, &turn.steps, takes, |_| results);
    // An empty assistant message is refused by some model APIs.
    if let Some(text) = closing_text(turn) {
        messages.push(ChatMessage::Assistant {
            text: text.into(),
            calls: Vec::new(),
            extra: final_extra(&turn.steps),
        });
    }
}

/// The members of the last reply that its provider wants back.
fn final_extra(steps: &[Step]) -> Option<Value> {
    match steps.last() {
        Some(Step::FinalExtra { extra }) => Some(extra.clone()).filter(|extra| !extra.is_null()),
        _ => None,
    }
}

/// The last reply of an earlier turn, and how the turn ended unless that is whole.
pub fn closing_text(turn: &PastTurn) -> Option<String> {
    let reply = turn.reply.as_ref();
    let mut text = reply.map_or("", |reply| reply.content.as_str());
    // What it said beside its calls stands before them.
    let with_calls = said_so_far(&turn.steps, "");
    if turn.state != TurnState::Done || text != with_calls {
        text = text.strip_prefix(&with_calls).unwrap_or(text).trim_start();
    }
    let end = match (turn.state, reply.and_then(|reply| reply.finish_reason)) {
        (TurnState::Cancelled, _) => Some("[A person stopped this turn.]".to_owned()),
        (TurnState::Failed, _) => {
            let error = turn.error.as_deref().unwrap_or("unknown");
            Some(format!(
                "[This turn failed: {}]",
                shorten(error, ERROR_CHARS)
            ))
        }
        (_, Some(reason)) => Some(format!("[This reply was cut off: {}]", cut_by(reason))),
        (_, None) => None,
    };
    match (text.is_empty(), end) {
        (true, end) => end,
        (false, None) => Some(text.to_owned()),
        (false, Some(end)) => Some(format!("{text}\n\n{end}")),
    }
}
