//! Which parts of a conversation fit into a request, and which of them go for good: pure
//! functions.
//!
//! Tokens are [`estimate`](crate::model::estimate)s throughout, uncorrected.

use super::{Context, MessageForm, PromptInput, Results, add_past, with_overtaken};
use crate::model::estimate::{message_tokens, text_tokens};
use crate::model::{ChatMessage, FileKind, earlier_block};
use crate::tools::output::MAX_RESULT_CHARS;
use store::PastTurn;

/// The share of the budget that may be used before something of the past has to go: the
/// next turn needs room.
const COMFORTABLE: f64 = 0.78;
/// The share that may be used after results of tools were shortened: else that would have
/// to be done again soon.
const ROOMY: f64 = 0.6;
/// The share that is used after turns were hidden, so that many pass until the next time.
const AFTERWARDS: f64 = 0.45;
/// The newest turns of the past, whose tool results are not shortened.
pub(crate) const WHOLE_TURNS: usize = 2;
/// Fewest characters that are kept of a result of the present turn.
const LEAST_RESULT: usize = 200;

/// The limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct TokenBudget {
    /// Most tokens of the whole request.
    pub tokens: usize,
    /// Most characters of one tool's result.
    pub result_chars: usize,
    /// Most turns of the past.
    pub turns: usize,
    /// Most tokens of the past.
    pub past: usize,
}

/// Which of the oldest turns are shown otherwise from now on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    /// How many are no longer shown.
    pub hidden: usize,
    /// How many, these included, are shown with short results of tools.
    pub shortened: usize,
}

/// Fits a conversation into a budget, of which the tools take `tool_tokens`.
///
/// The past is shown as it was folded last. Only where it does not fit so, because this
/// message is long or the model another one, tool results in older turns are shortened to a
/// line, and then the oldest turns are left out.
///
/// The present turn is always shown. If it alone is too long, its tool results
/// are shortened; what a person said never is.
pub fn fit<'a>(input: &PromptInput<'a>, tool_tokens: usize, budget: TokenBudget) -> Context<'a> {
    let system = input.system();
    let beside = text_tokens(&system) + tool_tokens;
    let taken = |earlier: &Option<String>| beside + earlier.as_deref().map_or(0, earlier_tokens);
    let mut earlier = input.earlier(input.has_gap);
    // All of the past may have to go, which has to be said.
    let least = input.earlier(input.has_gap || !input.past.is_empty());
    let present = fit_present(input, budget, taken(&least));
    let present_tokens = message_tokens(&present);
    let left = |earlier: &Option<String>| {
        let taken = taken(earlier) + present_tokens;
        budget.tokens.saturating_sub(taken).min(budget.past)
    };

    let mut past = shown(input.past, 0, budget, input.form);
    if past.tokens() > left(&earlier) {
        let older = input.past.len().saturating_sub(WHOLE_TURNS);
        past = shown(input.past, older, budget, input.form);
    }
    if past.tokens() > left(&earlier) {
        earlier = input.earlier(true);
        past.keep_newest(past.newest(left(&earlier), |_| usize::MAX));
    }
    let left_out = input.past.len() - past.turns.len();
    let tokens = taken(&earlier) + present_tokens + past.tokens();
    let mut messages = past.messages;
    messages.extend(present);
    if let Some(ChatMessage::User { content, .. }) = messages.first_mut() {
        content.earlier = earlier;
    }
    Context {
        system,
        messages,
        left_out,
        tokens,
    }
}

/// The tokens of the summary as it stands before the first message.
fn earlier_tokens(summary: &str) -> usize {
    text_tokens(&earlier_block(summary))
}

/// Whether a request of this many tokens leaves enough room for the next one.
pub fn is_comfortable(tokens: usize, budget: TokenBudget) -> bool {
    tokens as f64 <= budget.tokens as f64 * COMFORTABLE
}

/// What has to go of the past for good, if everything else of the next request takes
/// `fixed` tokens; nothing as long as about four fifths of the budget are enough, and there
/// are not too many turns.
///
/// First the results of tools in older turns are shortened. If that does not help much, the
/// oldest turns go, until less than half of the budget is used, and half of the turns.
pub fn fold(
    past: &[PastTurn],
    fixed: usize,
    budget: TokenBudget,
    form: MessageForm<'_>,
) -> Option<Fold> {
    // Tools may take much of a small window: a part of the rest is left for the past.
    let left = budget.tokens.saturating_sub(fixed);
    let part = |share: f64| {
        let usual = (budget.tokens as f64 * share) as usize;
        usual
            .saturating_sub(fixed)
            .max((left as f64 * share / 2.0) as usize)
    };
    let is_few = past.len() < budget.turns;
    if is_few && shown(past, 0, budget, form).tokens() <= part(COMFORTABLE) {
        return None;
    }
    let shortened = past.len().saturating_sub(WHOLE_TURNS);
    let turns = shown(past, shortened, budget, form);
    if is_few && turns.tokens() <= part(ROOMY) {
        let hidden = 0;
        return Some(Fold { hidden, shortened });
    }
    let kept = turns.newest(part(COMFORTABLE), |age| {
        if age < WHOLE_TURNS {
            usize::MAX
        } else {
            part(AFTERWARDS)
        }
    });
    let kept = kept.min(if is_few { usize::MAX } else { budget.turns / 2 });
    let hidden = past.len() - kept;
    Some(Fold {
        hidden,
        shortened: shortened.max(hidden),
    })
}

/// Turns of the past in one of their forms.
struct Shown<'a> {
    messages: Vec<ChatMessage<'a>>,
    /// How many of the messages are of each turn, and their tokens.
    turns: Vec<(usize, usize)>,
}

impl Shown<'_> {
    fn tokens(&self) -> usize {
        self.turns.iter().map(|(_, tokens)| tokens).sum()
    }

    /// How many of the newest turns take no more than `most` tokens, and none of them more,
    /// with those after it, than the `limit` for its age.
    fn newest(&self, most: usize, limit: impl Fn(usize) -> usize) -> usize {
        let mut spent = 0;
        let fits = |(age, (_, tokens)): &(usize, &(usize, usize))| {
            spent += tokens;
            spent <= most.min(limit(*age))
        };
        self.turns.iter().rev().enumerate().take_while(fits).count()
    }

    fn keep_newest(&mut self, kept: usize) {
        let gone = self.turns.drain(..self.turns.len() - kept);
        let messages: usize = gone.map(|(messages, _)| messages).sum();
        self.messages.drain(..messages);
    }
}

/// The turns of the past, at least the oldest `shortened` with short results of tools.
fn shown<'a>(
    past: &'a [PastTurn],
    shortened: usize,
    budget: TokenBudget,
    form: MessageForm<'_>,
) -> Shown<'a> {
    // Most turns are a question and an answer.
    let mut messages = Vec::with_capacity(2 * past.len() + 2);
    let in_order = with_overtaken(past).enumerate();
    let turns = in_order.map(|(place, (turn, is_overtaken))| {
        let results = if turn.is_shortened || place < shortened {
            Results::Line
        } else {
            Results::Capped(MAX_RESULT_CHARS)
        };
        let begin = messages.len();
        let most = budget.tokens;
        add_past(&mut messages, turn, is_overtaken, results, most, form);
        let own = &messages[begin..];
        (own.len(), message_tokens(own))
    });
    let turns = turns.collect();
    Shown { messages, turns }
}

/// The present turn, shortened where it alone is too long.
fn fit_present<'a>(
    input: &PromptInput<'a>,
    budget: TokenBudget,
    fixed: usize,
) -> Vec<ChatMessage<'a>> {
    let whole = input.present(Results::Capped(MAX_RESULT_CHARS));
    if fixed + message_tokens(&whole) <= budget.tokens {
        return whole;
    }
    let shortened = input.present_shortened(MAX_RESULT_CHARS);
    let results = shortened
        .iter()
        .rev()
        .take_while(|message| matches!(message, ChatMessage::ToolResult { .. }))
        .count();
    let results = results + texts(&shortened);
    if results == 0 || fixed + message_tokens(&shortened) <= budget.tokens {
        return shortened;
    }
    let beside = fixed + message_tokens(&input.present_shortened(0));
    // A token has at least one character and a half.
    let left = budget.tokens.saturating_sub(beside) * 3 / 2;
    input.present_shortened((left / results).max(LEAST_RESULT))
}

/// How many of the files are text.
fn texts(messages: &[ChatMessage<'_>]) -> usize {
    let files = messages.iter().flat_map(|message| match message {
        ChatMessage::User { files, .. } => &files[..],
        _ => &[],
    });
    files.filter(|file| file.kind() == FileKind::Text).count()
}

#[cfg(test)]
mod tests;
