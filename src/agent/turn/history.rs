//! What a run of a turn shows the model of its conversation, fitted into the token budget.
//!
//! Messages stay on disk whole: only the model's view of them is folded.

use std::collections::HashSet;

use super::turn_context::TurnContext;
use crate::context::estimate::tool_tokens;
use crate::context::fit::{Fitted, TokenBudget, fit, is_comfortable};
use crate::context::prompt::{MOST_PEOPLE, SystemPrompt};
use crate::context::{Context, PromptInput, window};
use crate::model::{Takes, ToolSpec};
use crate::tool::Address;
use crate::tool::output::MAX_RESULT_CHARS;
use base::error::Result;
use base::ids::MemoryId;
use store::{Memory, Past, Step, Viewer, WantedPast};

/// Most turns of the past that are read and shown.
const MOST_TURNS: usize = 400;
/// Most bytes of the past that are read for each token of the budget: more than
/// any text needs.
const BYTES_PER_TOKEN: usize = 8;
/// Bytes of the past that are read however small the budget is, and however
/// large.
const READ_BYTES: (usize, usize) = (64 * 1024, 8 * 1024 * 1024);
/// How often a model may reject what it is shown in one run: the last is a sixteenth.
const MOST_REFUSALS: u32 = 4;
/// A smaller budget is of no use.
const LEAST_BUDGET: usize = 256;

/// What the model may be shown for whoever asks.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Memories.
    pub recall: bool,
    /// The names of the skills.
    pub read_skills: bool,
}

/// The past of a conversation, for one run of one turn.
pub struct History<'a> {
    run: &'a TurnContext<'a>,
    model: &'a str,
    /// The provider's name for the calibration.
    provider: String,
    /// What is taken for the model's window.
    window: usize,
    /// Most tokens of a request, as the provider counts them.
    budget: usize,
    /// How many contexts the model has rejected as too long.
    refusals: u32,
    /// Whether only these show how large its window is.
    hides_window: bool,
    /// Whether the budget is a guess, because the model's server has not said its window.
    is_guess: bool,
    past: Past,
    memories: Vec<Memory>,
    system_prompt: String,
    /// The uncorrected estimate of the newest context.
    sent: usize,
}

impl<'a> History<'a> {
    /// Reads the past, and the memories that were shown with the message, if they may be.
    /// Unless the model has been asked before, it chooses these first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open(
        run: &'a TurnContext<'a>,
        model: &'a str,
        may: Access,
        may_choose: bool,
    ) -> Result<History<'a>> {
        if run.is_resumed {
            // What other processes have written since it began is noticed with that.
            run.store.flush()?;
        }
        let config = &run.assistant.config;
        let address = config.base_url.as_deref().unwrap_or_default();
        let provider = format!("{} {address}", config.provider);
        let window = run.assistant.provider.window(model);
        let sample = run.assistant.calibration.sample(&provider, model);
        let ceiling = sample.ceiling(window, run.clock.monotonic());
        let budget =
            window::request_tokens(window, config.max_tokens).min(ceiling.unwrap_or(usize::MAX));
        let viewer = may.recall.then(|| run.viewer());
        let mut past = read_past(run, budget, viewer.as_ref(), false)?;
        let is_guess = run.assistant.provider.guesses_window(model);
        if past.folded_for > 0 && budget >= past.folded_for * 3 / 2 && !is_guess {
            // It was folded for a smaller model.
            run.store.unfold(run.turn.conversation_id)?;
            past = read_past(run, budget, viewer.as_ref(), false)?;
        }
        let memories = match &viewer {
            Some(viewer) => memories(run, viewer, &past, may_choose)?,
            None => Vec::new(),
        };
        Ok(History {
            run,
            model,
            provider,
            window,
            budget,
            is_guess,
            refusals: 0,
            hides_window: false,
            past,
            memories,
            system_prompt: system_prompt(run, may.read_skills)?,
            sent: 0,
        })
    }

    /// The next request's content, after these steps of the present turn and with these
    /// tools.
    pub fn context(&mut self, steps: &[Step], tools: &[ToolSpec]) -> Context {
        let input = PromptInput {
            system_prompt: &self.system_prompt,
            zone: &self.run.assistant.zone,
            summary: (self.past.summary.as_ref()).map(|summary| summary.content.as_str()),
            has_gap: self.past.has_more || self.past.has_hidden,
            past: &self.past.turns,
            turn: self.run.turn.id,
            present: self.run.message,
            memories: &self.memories,
            steps,
            channel: &self.run.turn.channel,
            takes: self.takes(),
        };
        let Fitted {
            context, tokens, ..
        } = fit(&input, tool_tokens(tools), self.token_budget());
        self.sent = tokens;
        context
    }

    /// What the model takes beside text.
    pub fn takes(&self) -> Takes {
        self.run.assistant.provider.takes(self.model)
    }

    /// How many turns wait for a person's decision.
    pub fn suspended(&self) -> usize {
        self.past.suspended
    }

    /// Whether the past is to be folded after a reply of this many tokens.
    pub fn is_long(&self, reply_tokens: u64) -> bool {
        let tokens = self.sent + reply_tokens as usize;
        let past = &self.past;
        let is_long = past.has_hidden
            || past.has_more
            || past.turns.len() + 1 >= MOST_TURNS
            || !is_comfortable(tokens, self.token_budget());
        // What is folded stays so: not for a guess.
        is_long && !self.is_guess
    }

    /// Whether text from outside is among the past or the memories, or was once.
    pub fn has_outside_text(&self) -> bool {
        self.past.has_outside_text || self.memories.iter().any(|memory| memory.is_outside)
    }

    /// Whether somebody gave this address to the model, in the past, in the present
    /// message or by these steps.
    pub fn has(&self, address: &Address, steps: &[Step]) -> bool {
        let present = (self.run.message, self.run.turn.channel.as_str(), steps);
        let toolbox = &self.run.assistant.toolbox;
        let looks_outside = |tool: &str| {
            toolbox
                .get(tool)
                .is_some_and(|tool| tool.definition().looks_outside())
        };
        let past = self.past.turns.iter();
        past.map(|turn| (&turn.message, turn.channel.as_str(), &turn.steps[..]))
            .chain([present])
            .any(|(message, channel, steps)| {
                address.is_in(message, channel) || address.is_found_in(steps, &looks_outside)
            })
    }

    /// Whether the database knows that.
    pub fn is_noted(&self) -> bool {
        self.past.has_outside_text
    }

    /// Records that the model has answered the newest context, and how many tokens
    /// it counted (0 if it did not count).
    pub fn answered(&mut self, counted: u64) {
        let calibration = &self.run.assistant.calibration;
        calibration.record_count(&self.provider, self.model, self.sent, counted);
        if std::mem::take(&mut self.hides_window) {
            // It was the length, then.
            let now = self.run.clock.monotonic();
            let most = self.budget.max(self.tokens_sent());
            calibration.record_overflow(&self.provider, self.model, most, self.window, now);
        }
    }

    /// Lowers the budget after the model rejected the newest context as too long: to the
    /// window that the server has named, or to half. Returns whether another attempt makes
    /// sense. Only where it `hides_window` is there something to remember here.
    pub fn shrink(&mut self, hides_window: bool) -> bool {
        let sent = self.tokens_sent();
        self.refusals += 1;
        // A message that is too long by itself says nothing of the model.
        self.hides_window = hides_window && sent <= self.budget;
        let assistant = self.run.assistant;
        let window = assistant.provider.window(self.model);
        let named = window::request_tokens(window, assistant.config.max_tokens);
        self.budget = match named < self.budget.min(sent) {
            true => named,
            false => self.budget.min(sent) / 2,
        };
        self.budget >= LEAST_BUDGET && self.refusals <= MOST_REFUSALS
    }

    /// The tokens of the newest context, as the provider counts them.
    fn tokens_sent(&self) -> usize {
        (self.sent as f64 * self.factor()) as usize
    }

    /// Most tokens of a request, as the provider counts them.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// The system prompt of this run.
    pub fn system_prompt(&self) -> &str {
        &self.system_prompt
    }

    /// The past as it was read.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// The same past, and what is hidden of it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn with_hidden(&self) -> Result<Past> {
        read_past(self.run, self.budget, None, true)
    }

    fn factor(&self) -> f64 {
        let calibration = &self.run.assistant.calibration;
        calibration.sample(&self.provider, self.model).factor
    }

    /// The limits of a request, by estimates.
    pub fn token_budget(&self) -> TokenBudget {
        TokenBudget {
            tokens: (self.budget as f64 / self.factor()) as usize,
            // About a quarter of the request.
            result_chars: self.budget.min(MAX_RESULT_CHARS),
            turns: MOST_TURNS,
        }
    }
}

fn read_past(
    run: &TurnContext<'_>,
    budget: usize,
    viewer: Option<&Viewer>,
    with_hidden: bool,
) -> Result<Past> {
    let wanted = WantedPast {
        viewer,
        most_turns: MOST_TURNS,
        most_bytes: (budget * BYTES_PER_TOKEN).clamp(READ_BYTES.0, READ_BYTES.1),
        with_hidden,
    };
    run.store.past(run.turn.conversation_id, &wanted)
}

/// The memories that go with the message of this turn: those that the model was shown with
/// it before, or else what fits it and was not shown with an earlier one.
fn memories(
    run: &TurnContext<'_>,
    viewer: &Viewer,
    past: &Past,
    may_choose: bool,
) -> Result<Vec<Memory>> {
    let (store, turn) = (run.store, run.turn.id);
    if run.is_resumed || !may_choose {
        // What this run has noted may not be committed yet.
        store.flush()?;
        let shown = store.shown_memories(viewer, turn)?;
        if !may_choose || !shown.is_empty() {
            return Ok(shown);
        }
    }
    let known: HashSet<MemoryId> = past
        .turns
        .iter()
        .flat_map(|turn| &turn.memories)
        .map(|memory| memory.id)
        .collect();
    let message = &run.message.content;
    let vector = match &run.assistant.embedder {
        Some(embedder) if store.has_many_memories(viewer)? => {
            embedder.of_message(message, run.deadline, run.cancel)
        }
        _ => None,
    };
    let chosen = store.relevant_memories(viewer, message, vector.as_ref(), &known)?;
    if !chosen.is_empty() {
        store.note_shown(turn, chosen.iter().map(|memory| memory.id).collect());
    }
    Ok(chosen)
}

/// The system prompt of this turn.
fn system_prompt(run: &TurnContext<'_>, may_read_skills: bool) -> Result<String> {
    let person = run.person()?;
    let people = match run.turn.account {
        // Whoever gets the reply may be anybody.
        Some(_) => Vec::new(),
        None => run.store.household(&run.viewer(), MOST_PEOPLE)?,
    };
    let prompt = SystemPrompt {
        config: &run.assistant.config,
        people: &people,
        skills: match may_read_skills {
            true => run.assistant.skills.overview(),
            false => None,
        },
        surface: run.turn.surface,
        // Not a note beside the message: others who speak here would be told it. So the
        // cache begins anew where people with instructions of their own take turns.
        for_person: person.and_then(|(_, person)| person.instructions.as_deref()),
        of_client: run.turn.instructions.as_deref(),
    };
    Ok(prompt.text())
}
