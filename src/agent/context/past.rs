//! The turns of the past, as the model sees them in every request.

use std::sync::Arc;

use serde_json::Value;

use super::estimate::{message_tokens, text_tokens};
use super::{Results, add_turn, before, closing_text, files, memories, question};
use crate::model::{ChatMessage, Takes};
use crate::tool::output::{MAX_RESULT_CHARS, cap_text};
use base::calendar::Zone;
use store::{PastTurn, Step};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::*;

    #[test]
    fn an_earlier_turn_is_rendered_once_for_each_form() {
        let steps = vec![
            calls("", &[("1", "look")]),
            started("1"),
            result("1", true, &"line\n".repeat(100)),
        ];
        let turn = past("What is there?", steps, Some("Lines."));
        let form = Form {
            is_overtaken: false,
            is_shortened: false,
            most_tokens: None,
            zone: utc(),
            takes: Takes::default(),
        };
        let other_forms = [
            Form {
                is_overtaken: true,
                ..form.clone()
            },
            Form {
                is_shortened: true,
                ..form.clone()
            },
            Form {
                zone: Zone::named("Asia/Tokyo").unwrap(),
                ..form.clone()
            },
        ];
        let first = rendered(&turn, form.clone());
        assert!(Arc::ptr_eq(&first, &rendered(&turn, form.clone())));
        for other in other_forms {
            assert_ne!(rendered(&turn, other).messages, first.messages);
        }
        let again = rendered(&turn, form);
        assert!(!Arc::ptr_eq(&first, &again));
        assert_eq!(first.messages, again.messages);
    }
}
