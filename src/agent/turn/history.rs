//! The past of a conversation during one run of a turn: read, fitted into the
//! token budget, and summarised when it has become too long.
//!
//! A summary costs one model call, inside the turn that needs it. It frees about
//! half of the budget, so that most turns need none. Messages stay on disk whole:
//! only the model's view shrinks.

use std::time::Instant;

use super::turn_context::{Stop, TurnContext};
use crate::context::estimate::{TokenSample, text_tokens, tool_tokens};
use crate::context::fit::{Fitted, TokenBudget, fit};
use crate::context::memories::{self, Remembered};
use crate::context::prompt::{MOST_PEOPLE, SystemPrompt};
use crate::context::{Context, PromptInput, summary, window};
use crate::model::{ChatMessage, ModelRequest, ProviderError, ToolSpec};
use crate::tool::Address;
use crate::tool::output::MAX_RESULT_CHARS;
use base::error::Result;
use base::ids::{AudienceId, TurnId};
use config::OFFLINE;
use store::{Past, Step, Summary, Usage};

/// Most turns of the past that are read and shown.
const MOST_TURNS: usize = 400;
/// Most bytes of the past that are read for each token of the budget: more than
/// any text needs.
const BYTES_PER_TOKEN: usize = 8;
/// Bytes of the past that are read however small the budget is, and however
/// large.
const READ_BYTES: (usize, usize) = (64 * 1024, 8 * 1024 * 1024);
/// A smaller budget is of no use.
const LEAST_BUDGET: usize = 256;

/// The past of a conversation, for one run of one turn.
pub struct History<'a> {
    run: &'a TurnContext<'a>,
    model: &'a str,
    /// Who may see what is read here.
    audience: AudienceId,
    /// The provider's name for the calibration.
    provider: String,
    /// Most tokens of a request, as the provider counts them.
    budget: usize,
    past: Past,
    memories: Option<Remembered>,
    system_prompt: String,
    /// Whether a model was asked for a summary in this run.
    has_summarised: bool,
    /// Up to which turn the past was cut without a summary; on disk once the
    /// model has answered without it.
    unsaved_cut: Option<TurnId>,
    /// The uncorrected estimate of the newest context.
    sent: usize,
}

impl<'a> History<'a> {
    /// Reads the past, and the memories that fit the message if they may be added, for
    /// a conversation that has this audience. Names the skills if they may be read.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open(
        run: &'a TurnContext<'a>,
        model: &'a str,
        audience: AudienceId,
        may_recall: bool,
        may_read_skills: bool,
    ) -> Result<History<'a>> {
        let config = &run.assistant.config;
        let address = config.base_url.as_deref().unwrap_or_default();
        let provider = format!("{} {address}", config.provider);
        let TokenSample { ceiling, .. } = run.assistant.calibration.sample(&provider, model);
        let window = run.assistant.provider.window(model);
        let budget =
            window::request_tokens(window, config.max_tokens).min(ceiling.unwrap_or(usize::MAX));
        let bytes = (budget * BYTES_PER_TOKEN).clamp(READ_BYTES.0, READ_BYTES.1);
        let conversation = run.turn.conversation_id;
        Ok(History {
            run,
            model,
            audience,
            provider,
            budget,
            past: run.store.past(conversation, MOST_TURNS, bytes)?,
            memories: match may_recall {
                true => memories::relevant(run.store, &run.viewer(), &run.message.content)?,
                false => None,
            },
            system_prompt: system_prompt(run, may_read_skills)?,
            has_summarised: false,
            unsaved_cut: None,
            sent: 0,
        })
    }

    /// The next request's content, after these steps of the present turn and with
    /// these tools; `is_outside` says whether any of it comes from outside. Summarises
    /// the oldest turns if they no longer fit; adds the cost to `usage`.
    ///
    /// # Errors
    /// When the turn is stopped, or the database fails.
    pub fn context(
        &mut self,
        steps: &[Step],
        tools: &[ToolSpec],
        is_outside: bool,
        usage: &mut Usage,
    ) -> Result<Context, Stop> {
        let tool_tokens = tool_tokens(tools);
        let budget = self.token_budget();
        let mut fitted = fit(&self.input(steps, is_outside), tool_tokens, budget, false);
        if fitted.left_out > 0 && !self.has_summarised {
            self.summarise_oldest(fitted.left_out, budget, usage)?;
            fitted = fit(
                &self.input(steps, is_outside),
                tool_tokens,
                self.token_budget(),
                false,
            );
        }
        if fitted.left_out > 0 {
            fitted = fit(
                &self.input(steps, is_outside),
                tool_tokens,
                self.token_budget(),
                true,
            );
        }
        let Fitted {
            context, tokens, ..
        } = fitted;
        self.sent = tokens;
        Ok(context)
    }

    /// Whether text from outside is among the past or the memories, or was once.
    pub fn has_outside_text(&self) -> bool {
        let memories = self.memories.as_ref();
        self.past.has_outside_text || memories.is_some_and(|known| known.is_outside)
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
    ///
    /// # Errors
    /// When the summary cannot be saved.
    pub fn answered(&mut self, counted: u64) -> Result<()> {
        let calibration = &self.run.assistant.calibration;
        calibration.record_count(&self.provider, self.model, self.sent, counted);
        if let (Some(turn_id), Some(summary)) = (self.unsaved_cut.take(), &self.past.summary) {
            let conversation = self.run.turn.conversation_id;
            self.run
                .store
                .save_summary(conversation, turn_id, &summary.content, self.audience)?;
        }
        Ok(())
    }

    /// Halves the budget after the model rejected the newest context as too long.
    /// Returns whether another attempt makes sense.
    pub fn shrink(&mut self) -> bool {
        let sent = (self.sent as f64 * self.factor()) as usize;
        // A message that is too long by itself says nothing of the model.
        let was_unexpected = sent <= self.budget;
        self.budget = self.budget.min(sent) / 2;
        if was_unexpected && self.budget >= LEAST_BUDGET {
            let calibration = &self.run.assistant.calibration;
            calibration.record_overflow(&self.provider, self.model, self.budget);
        }
        self.budget >= LEAST_BUDGET
    }

    fn factor(&self) -> f64 {
        let calibration = &self.run.assistant.calibration;
        calibration.sample(&self.provider, self.model).factor
    }

    fn token_budget(&self) -> TokenBudget {
        TokenBudget {
            tokens: (self.budget as f64 / self.factor()) as usize,
            // By the budget alone, so that a result is the same in every turn:
            // about a quarter of the request.
            result_chars: self.budget.min(MAX_RESULT_CHARS),
            // Where turns were left unread, some are folded in any case.
            turns: match self.past.has_more {
                true => self.past.turns.len().saturating_sub(1),
                false => MOST_TURNS,
            },
        }
    }

    fn input<'m>(&'m self, steps: &'m [Step], is_outside: bool) -> PromptInput<'m> {
        PromptInput {
            system_prompt: &self.system_prompt,
            summary: self
                .past
                .summary
                .as_ref()
                .map(|summary| summary.content.as_str()),
            memories: self.memories.as_ref().map(|known| known.text.as_str()),
            past: &self.past.turns,
            suspended: self.past.suspended,
            turn: self.run.turn.id,
            present: self.run.message,
            steps,
            channel: &self.run.turn.channel,
            is_outside,
        }
    }

    /// Replaces the oldest `count` turns by a summary, or by a note that they are
    /// left out if the model gives none.
    fn summarise_oldest(
        &mut self,
        count: usize,
        budget: TokenBudget,
        usage: &mut Usage,
    ) -> Result<(), Stop> {
        self.has_summarised = true;
        let began = Instant::now();
        let written = self.summarise(count, budget, usage)?;
        let (run, id) = (self.run, self.run.turn.id);
        let Some(turn_id) = self.past.turns[..count].last().map(|turn| turn.id) else {
            return Ok(());
        };
        let content = match written {
            Some(text) => {
                let took = began.elapsed().as_millis();
                log::info!("{id}: {count} older turns were summarised in {took} ms");
                let conversation = run.turn.conversation_id;
                run.store
                    .save_summary(conversation, turn_id, &text, self.audience)?;
                text
            }
            None => {
                log::info!("{id}: {count} older turns are no longer shown to the model");
                self.unsaved_cut = Some(turn_id);
                let earlier = self.past.summary.as_ref();
                summary::without_summary(earlier.map(|summary| summary.content.as_str()))
            }
        };
        self.past.summary = Some(Summary { turn_id, content });
        self.past.turns.drain(..count);
        self.past.has_more = false;
        Ok(())
    }

    /// Asks the model for a summary; `None` if it gave none.
    fn summarise(
        &self,
        count: usize,
        budget: TokenBudget,
        usage: &mut Usage,
    ) -> Result<Option<String>, Stop> {
        let run = self.run;
        let config = &run.assistant.config;
        // It answers from rules and cannot summarise.
        if config.provider == OFFLINE {
            return Ok(None);
        }
        let earlier = self.past.summary.as_ref();
        let text = summary::transcript(
            earlier.map(|summary| summary.content.as_str()),
            &self.past.turns[..count],
            self.past.has_more,
            budget
                .tokens
                .saturating_sub(text_tokens(summary::INSTRUCTIONS)),
        );
        // The reply itself needs its time.
        let now = Instant::now();
        let deadline = now + run.deadline.saturating_duration_since(now) / 2;
        let request = ModelRequest {
            model: self.model,
            system: summary::INSTRUCTIONS,
            messages: &[ChatMessage::User { text }],
            tools: &[],
            may_call: false,
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            stream: false,
            deadline,
            cancel: run.cancel,
        };
        let began = Instant::now();
        let answer = run.assistant.provider.complete(&request, &mut |_| {});
        run.assistant.meter.note(began.elapsed(), &answer);
        match answer {
            Ok(reply) => {
                usage.add(reply.usage);
                Ok(summary::cleaned(&reply.text))
            }
            Err(ProviderError::Cancelled) => Err(Stop::Cancelled),
            Err(error) => {
                let error = error.into_error();
                log::warn!("{}: no summary: {error}", run.turn.id);
                Ok(None)
            }
        }
    }
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
        for_person: person.and_then(|(_, person)| person.instructions.as_deref()),
        of_client: run.turn.instructions.as_deref(),
    };
    Ok(prompt.text())
}
