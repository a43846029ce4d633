//! Which parts of a conversation fit into a request: a pure function.
//!
//! Tokens are [`estimate`](super::estimate)s throughout, uncorrected.

use super::estimate::{message_tokens, text_tokens};
use super::{Context, PromptInput, Results, past_messages, with_overtaken};
use crate::model::ChatMessage;

/// The share of the budget that may be used before the oldest turns have to go:
/// the present turn still grows.
const COMFORTABLE: f64 = 0.78;
/// The share that is used after that, so that many turns pass until the next time.
const AFTERWARDS: f64 = 0.45;
/// The newest turns of the past, whose tool results are not shortened.
const WHOLE_TURNS: usize = 2;
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
}

/// A request's content, and what it leaves out.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// What is shown.
    pub context: Context,
    /// How many of the oldest turns are left out.
    pub left_out: usize,
    /// The tokens of the request, its tools included.
    pub tokens: usize,
}

/// Fits a conversation into a budget, of which the tools take `tool_tokens`.
///
/// Everything is shown as long as it takes no more than about four fifths of the
/// budget. After that, tool results in older turns are shortened to a line. If
/// that is not enough, or there are too many turns, the oldest turns are left out
/// until less than half of the budget is used. With `use_all`, only those turns
/// are left out that do not fit at all.
///
/// The present turn is always shown. If it alone is too long, its tool results
/// are shortened; what a person said never is.
pub fn fit(
    input: &PromptInput<'_>,
    tool_tokens: usize,
    budget: TokenBudget,
    use_all: bool,
) -> Fitted {
    let part = |share: f64| match use_all {
        true => budget.tokens,
        false => (budget.tokens as f64 * share) as usize,
    };
    let system = input.system();
    let earlier = input.earlier();
    let remembered = input.remembered();
    let added = [&earlier, &remembered].into_iter().flatten();
    let fixed =
        text_tokens(&system) + tool_tokens + added.map(|text| text_tokens(text)).sum::<usize>();
    let present = fit_present(input, budget, fixed);
    let fixed = fixed + message_tokens(&present);

    let past = choose_past(input, fixed, budget, part(COMFORTABLE), part(AFTERWARDS));
    let left_out = input.past.len() - past.len();
    let tokens = fixed + past.iter().map(|turn| turn.tokens).sum::<usize>();
    let mut messages: Vec<ChatMessage> = past.into_iter().flat_map(|turn| turn.messages).collect();
    let begin = messages.len();
    messages.extend(present);
    put_before(&mut messages[begin], remembered);
    put_before(&mut messages[0], earlier);
    Fitted {
        context: Context { system, messages },
        left_out,
        tokens,
    }
}

/// A turn in one of its forms.
struct Shown {
    messages: Vec<ChatMessage>,
    tokens: usize,
}

impl Shown {
    fn of(messages: Vec<ChatMessage>) -> Shown {
        Shown {
            tokens: message_tokens(&messages),
            messages,
        }
    }
}

/// The turns of the past that are shown when everything else takes `fixed` tokens,
/// oldest first.
fn choose_past(
    input: &PromptInput<'_>,
    fixed: usize,
    budget: TokenBudget,
    comfortable: usize,
    afterwards: usize,
) -> Vec<Shown> {
    let is_few = input.past.len() <= budget.turns;
    let capped = Results::Capped(budget.result_chars);
    let all: Vec<Shown> = with_overtaken(input.past)
        .map(|(turn, is_overtaken)| Shown::of(past_messages(turn, is_overtaken, capped)))
        .collect();
    let tokens = |turns: &[Shown]| fixed + turns.iter().map(|turn| turn.tokens).sum::<usize>();
    if is_few && tokens(&all) <= comfortable {
        return all;
    }
    let older = all.len().saturating_sub(WHOLE_TURNS);
    let mut shortened: Vec<Shown> = with_overtaken(input.past)
        .zip(all)
        .enumerate()
        .map(
            |(place, ((turn, is_overtaken), whole))| match place < older {
                true if !turn.steps.is_empty() => {
                    Shown::of(past_messages(turn, is_overtaken, Results::Line))
                }
                _ => whole,
            },
        )
        .collect();
    if is_few && tokens(&shortened) <= comfortable {
        return shortened;
    }
    // If there are too many turns, half of them go: otherwise the next turn would
    // have one too many again.
    let most_turns = if is_few {
        budget.turns
    } else {
        budget.turns / 2
    };
    let mut spent = fixed;
    let kept = shortened
        .iter()
        .rev()
        .enumerate()
        .take_while(|(age, turn)| {
            spent += turn.tokens;
            let limit = if *age < WHOLE_TURNS {
                comfortable
            } else {
                afterwards
            };
            *age < most_turns && spent <= limit
        })
        .count();
    shortened.split_off(shortened.len() - kept)
}

/// The present turn, shortened where it alone is too long.
fn fit_present(input: &PromptInput<'_>, budget: TokenBudget, fixed: usize) -> Vec<ChatMessage> {
    let whole = input.present(Results::Capped(budget.result_chars));
    if fixed + message_tokens(&whole) <= budget.tokens {
        return whole;
    }
    let shortened = input.present_shortened(budget.result_chars);
    let results = shortened
        .iter()
        .rev()
        .take_while(|message| matches!(message, ChatMessage::ToolResult { .. }))
        .count();
    if results == 0 || fixed + message_tokens(&shortened) <= budget.tokens {
        return shortened;
    }
    let beside = fixed + message_tokens(&input.present_shortened(0));
    // A token has at least one character and a half.
    let left = budget.tokens.saturating_sub(beside) * 3 / 2;
    input.present_shortened((left / results).max(LEAST_RESULT))
}

fn put_before(message: &mut ChatMessage, added: Option<String>) {
    if let (ChatMessage::User { text }, Some(added)) = (message, added) {
        text.insert_str(0, &added);
    }
}

#[cfg(test)]
mod tests;
