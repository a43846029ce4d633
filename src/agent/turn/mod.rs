//! The turn loop: asks the model, runs the tools that it calls, and asks again,
//! until there is a reply, a question to the owner, or an error.
//!
//! Every step is on disk before anything with an effect depends on it, so that
//! the loop can continue from the steps alone after a crash.

mod asker;
mod calls;
mod folding;
mod history;
mod model_call;
pub mod plain;
mod program;
mod question;
mod repetition;
mod title;
mod turn_context;
mod watch;

use std::time::{Duration, Instant};

use crate::model::servers::Candidate;
use crate::model::{ToolSpec, out_of_time};
pub use crate::prompt::{cut_by, said_so_far};
use crate::prompt::{tells_nothing, waiting_note};
use crate::tools::wording::Wording;
use crate::tools::{Change, Offer, Toolbox};
pub use asker::would_run;
use asker::{Asker, is_from_outside};
use base::error::{Error, Result};
use base::ids::AudienceId;
use base::language::{Said, Words};
use base::reply::FinishReason;
use config::FIND_TOOLS;
pub use folding::fold;
use history::History;
use serde_json::Value;
use store::{Approval, Durable, Step, ToolCall, Usage};
pub use title::{title, wants_title};
pub use turn_context::{HandedBack, HandedCalls, Program, Stop, TurnContext};

/// Sent to the model when it may call no more tools.
const NO_CALLS_LEFT: &str = "You have used all your tool calls. Answer now with what you know.";

/// Sent to the model when it goes on with a reply that a stop of the server cut off.
const GO_ON: &str = "The server restarted while you wrote this. The person has read it, and it \
    stays: do not say it again. Go on from there, beginning with the sentence that was cut off.";

/// What the loop reports while it runs.
pub enum Progress<'a> {
    /// A piece of the reply.
    Text(&'a str),
    /// The model calls a tool; for people in their words.
    ToolCall(&'a ToolCall, &'a dyn Fn(Words) -> Wording),
    /// A call has its result.
    ToolResult {
        /// The [`ToolCall::id`] that it answers.
        call_id: &'a str,
        /// False when the tool failed, was refused or does not exist.
        ok: bool,
        /// The beginning of the result, at most 200 bytes.
        summary: &'a str,
        /// Whether an admin can mend why there is none.
        needs_admin: bool,
    },
    /// A piece of what the model thinks.
    Thought(&'a str),
    /// A call has changed something, on disk.
    Changed(&'a Change),
    /// The model's server is busy, and is asked again after this time.
    Waits(Duration),
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// With the reply.
    Replied {
        /// Its text.
        text: String,
        /// Why it is not whole.
        finish_reason: Option<FinishReason>,
    },
    /// A routine has nothing to tell: nothing of it stays.
    Silent {
        /// Whether what it watches is as it was, so that no model was asked.
        is_unchanged: bool,
    },
    /// Suspended until the owner answers these questions, which are on disk.
    Suspended(Durable<Vec<Approval>>),
    /// Without a reply.
    Failed {
        /// Why.
        error: Error,
        /// What the model has written so far.
        said: String,
    },
    /// Stopped by a person.
    Cancelled {
        /// What the model has written so far.
        said: String,
    },
    /// Stopped with the server: it continues at the next start, behind what the model has
    /// written so far, which is on its way to the disk.
    PutOff,
}

/// What came of a run.
#[derive(Debug)]
pub struct TurnReport {
    /// How it ended.
    pub outcome: Outcome,
    /// Tokens of this model in this run; what others used is noted already.
    pub usage: Usage,
    /// The model that answered last, or else the one that was asked.
    pub model: String,
    /// Whether the past has become too long: [`fold`] is to be called after the reply.
    pub is_long: bool,
}

/// Runs a turn until it ends or waits for a person.
pub fn run(run: &TurnContext<'_>, observe: &mut dyn FnMut(Progress<'_>)) -> TurnReport {
    let model = run.model();
    let mut turn_loop = TurnLoop {
        run,
        asker: Asker::default(),
        model,
        observe,
        audience: run.turn.audience_id,
        is_fresh: false,
        steps: Vec::new(),
        unsaved: 0,
        usage: Usage::default(),
        noted: Usage::default(),
        answered_by: None,
        written: String::new(),
        is_outside: false,
        is_noted: false,
        is_long: false,
        offer: Offer::default(),
        searches: Vec::new(),
        has_read: false,
    };
    let outcome = turn_loop.drive().unwrap_or_else(|stop| {
        let said = said_so_far(&turn_loop.steps, &turn_loop.written);
        match stop {
            Stop::Left => Outcome::Replied {
                text: turn_loop.left(),
                finish_reason: None,
            },
            Stop::Failed(error) if !run.cancel.is_cancelled() => {
                // What a server at home says about it is for those who run it.
                let error = if turn_loop.asker.is_admin_alone(run) {
                    error.in_full()
                } else {
                    error
                };
                Outcome::Failed { error, said }
            }
            _ if (run.is_stopping)() => turn_loop.put_off(),
            _ => Outcome::Cancelled { said },
        }
    });
    TurnReport {
        outcome,
        is_long: turn_loop.is_long,
        usage: turn_loop.usage,
        model: turn_loop.answered_by.unwrap_or_else(|| model.clone()),
    }
}

struct TurnLoop<'a, 'b> {
    run: &'a TurnContext<'a>,
    asker: Asker,
    model: &'a String,
    observe: &'b mut dyn FnMut(Progress<'_>),
    /// Who may see what the model is shown: the audience of the conversation when that
    /// was read.
    audience: AudienceId,
    /// Whether that was read just now.
    is_fresh: bool,
    /// Everything that happened so far; the last `unsaved` are not on disk yet.
    steps: Vec<Step>,
    unsaved: usize,
    /// Tokens of the model of the last reply, and those of others that answered before.
    usage: Usage,
    noted: Usage,
    /// The model of the last reply.
    answered_by: Option<String>,
    /// The pieces of the reply that the model writes at present.
    written: String,
    /// Whether text from outside is among what the model is shown.
    is_outside: bool,
    /// Whether the database knows that of the conversation.
    is_noted: bool,
    /// Whether the past has become too long.
    is_long: bool,
    /// Which tools the model is shown, and what it has searched for among the others.
    offer: Offer,
    searches: Vec<String>,
    /// Whether the past was read before, and the memories chosen that go with the message.
    has_read: bool,
}

impl<'a> TurnLoop<'a, '_> {
    fn drive(&mut self) -> Result<Outcome, Stop> {
        let run = self.run;
        let (store, turn) = (run.store, run.turn);
        let mut approvals = Vec::new();
        if run.is_resumed {
            let seen = store.snapshot(&run.viewer())?;
            self.steps = seen.steps(turn.id)?;
            approvals = seen.approvals_of(turn.id)?;
        }
        let preferred = run.assistant.servers.preferred(self.model);
        let mut history = self.read_history(preferred)?;
        if self.steps.is_empty()
            && let Some(calls) = watch::calls(run)?
        {
            self.add(calls);
        }
        if self.steps.is_empty() && history.past.suspended > 0 {
            self.note(waiting_note(history.past.suspended));
        }
        self.choose_tools(&history)?;
        let most_rounds = run.assistant.config.limits.tool_rounds;
        let may_not_call = (run.program).is_some_and(|program| program.options(false).may_not_call);
        let mut was_empty = false;
        loop {
            self.check_stop()?;
            if !self.steps.is_empty() {
                // What tools find, they find for those who see the conversation now.
                self.follow_audience(&mut history)?;
            }
            if let Some(questions) = self.settle_calls(&approvals, &history)? {
                return Ok(Outcome::Suspended(questions));
            }
            if watch::is_unchanged(run, &self.steps)? {
                return Ok(Outcome::Silent { is_unchanged: true });
            }
            let rounds = self
                .steps
                .iter()
                .filter(|step| !step.calls().is_empty())
                .count();
            let (repeated, repeats) = repetition::most_repeated(&self.steps).unwrap_or_default();
            let has_called_enough = rounds >= most_rounds || repeats >= repetition::STOP_AFTER;
            let is_last = has_called_enough || may_not_call;
            if let Some(hint) = repetition::hint(repeated, repeats) {
                self.note(hint);
            } else if has_called_enough {
                self.note(NO_CALLS_LEFT.to_owned());
            }
            if self.unsaved > 0 && matches!(self.steps.last(), Some(Step::Note { .. })) {
                // However the turn ends, later ones show what is shown now.
                self.save()?;
            }
            let offered = self.offered_now();
            let reply = self.ask_model(&mut history, &offered, !is_last)?;
            self.is_long = history.is_long(reply.usage.output);
            if !reply.calls.is_empty() && !is_last {
                self.add_calls(reply, &history);
                continue;
            }
            // What it said with its calls has been read, and stays. Some models say all of
            // it then, and nothing in the end.
            let text = said_so_far(&self.steps, &reply.text);
            let finish_reason = reply.finish_reason;
            let is_of_routine = run.turn.schedule_id.is_some();
            if is_of_routine && finish_reason.is_none() && tells_nothing(&reply.text) {
                self.save()?;
                return Ok(match self.done() {
                    Some(text) => Outcome::Replied {
                        text,
                        finish_reason,
                    },
                    None => Outcome::Silent {
                        is_unchanged: false,
                    },
                });
            }
            if !text.is_empty() {
                if let Some(extra) = reply.extra.filter(|_| reply.calls.is_empty()) {
                    self.add(Step::FinalExtra { extra });
                }
                self.save()?;
                return Ok(Outcome::Replied {
                    text,
                    finish_reason,
                });
            }
            let turn = format!("turn {}", turn.id);
            if let Some(reason) = finish_reason {
                return Err(Error::server(cut_before_the_first_word(reason), turn).into());
            }
            if has_called_enough || was_empty {
                // Some models say nothing after what they were to do.
                if let Some(text) = self.done() {
                    self.save()?;
                    let finish_reason = None;
                    return Ok(Outcome::Replied {
                        text,
                        finish_reason,
                    });
                }
                let why = match has_called_enough {
                    true => Said::of("error.rounds", &[("rounds", &rounds.to_string())]),
                    false => Said::of("error.empty_twice", &[]),
                };
                return Err(Error::server(why, turn).into());
            }
            was_empty = true;
            self.note("Your last answer was empty. Answer the person.".to_owned());
        }
    }

    /// Tells the model something, once, behind what it was shown last.
    fn note(&mut self, text: String) {
        let is_last = |step: &Step| matches!(step, Step::Note { text: last } if *last == text);
        if !self.steps.last().is_some_and(is_last) {
            self.add(Step::Note { text });
        }
    }

    /// Reads what the model is shown of the conversation.
    fn read_history(&mut self, model: Candidate<'a>) -> Result<History<'a>, Stop> {
        let run = self.run;
        let may_choose = self.steps.is_empty() && !std::mem::replace(&mut self.has_read, true);
        let history = History::open(run, model, may_choose)?;
        (self.asker, self.audience) = (history.asker.clone(), history.audience);
        self.is_fresh = true;
        self.is_noted |= history.past.has_outside_text;
        if history.has_outside_text() || is_from_outside(run) {
            self.note_outside_text();
        }
        Ok(history)
    }

    /// Chooses the tools that the model of this history is shown, and returns them.
    fn choose_tools(&mut self, history: &History<'a>) -> Result<Vec<ToolSpec>, Stop> {
        self.offer = history.offer()?;
        if self.offer.find().is_some() && self.searches.is_empty() {
            // What was found before stays.
            let (store, conversation) = (self.run.store, self.run.turn.conversation_id);
            let seen = store.snapshot(&self.run.viewer())?;
            let calls = seen.arguments_of(conversation, FIND_TOOLS)?;
            self.searches
                .extend(calls.iter().filter_map(|call| query(call)));
        }
        Ok(self.offered_now())
    }

    /// Reads all that the model is shown again if other people see the conversation by
    /// now; returns whether they do. Ends the turn if whoever asked does not.
    fn follow_audience(&mut self, history: &mut History<'a>) -> Result<bool, Stop> {
        if std::mem::take(&mut self.is_fresh) {
            return Ok(false);
        }
        let (store, turn) = (self.run.store, self.run.turn);
        let audience = store.snapshot(&self.run.viewer())?.audience_of(turn)?;
        if audience.is_none_or(|audience| audience == self.audience) {
            return Ok(false);
        }
        self.save()?;
        store.flush()?;
        *history = self.read_history(history.model)?;
        self.steps = store.snapshot(&self.run.viewer())?.steps(turn.id)?;
        Ok(true)
    }

    fn check_stop(&self) -> Result<(), Stop> {
        if self.run.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if Instant::now() >= self.run.deadline {
            return Err(out_of_time("the tools had not finished").into());
        }
        Ok(())
    }

    /// Notes that text from outside is shown to the model from now on. The database
    /// learns it before it learns of any call that comes of it.
    fn note_outside_text(&mut self) {
        if !self.is_noted {
            self.run
                .store
                .note_outside_text(self.run.turn.conversation_id);
        }
        (self.is_outside, self.is_noted) = (true, true);
    }

    /// Replaces the last words of a model that had something done and says nothing of
    /// it; none if no call has had an effect.
    fn done(&self) -> Option<String> {
        let toolbox = &self.run.assistant.toolbox;
        let succeeded = |call: &&ToolCall| {
            self.steps.iter().any(|step| match step {
                Step::Result { call_id, ok, .. } => *ok && *call_id == call.id,
                _ => false,
            })
        };
        let calls = self.steps.iter().flat_map(Step::calls);
        let did = calls
            .filter(|call| toolbox.may_change(&call.tool))
            .filter(succeeded);
        let mut tools: Vec<&str> = did.map(|call| call.tool.as_str()).collect();
        tools.dedup();
        (!tools.is_empty()).then(|| format!("Done. ({})", tools.join(", ")))
    }

    /// Keeps what the model has said, which a person may have read, until the turn continues.
    fn put_off(&mut self) -> Outcome {
        if self.written.trim().is_empty() {
            // Calls that were stopped run again.
            let is_reply = |step: &Step| matches!(step, Step::Reply { .. });
            let last = self.steps.iter().rposition(is_reply);
            let kept = last.map_or(0, |last| last + 1);
            let stored = self.steps.len() - self.unsaved;
            self.unsaved = kept.saturating_sub(stored);
            self.steps.truncate(stored.max(kept));
        } else {
            let text = std::mem::take(&mut self.written);
            self.add(Step::Reply {
                text,
                calls: Vec::new(),
                result_chars: None,
                extra: None,
            });
            self.add(Step::Note {
                text: GO_ON.to_owned(),
            });
        }
        if let Err(Stop::Failed(error)) = self.save() {
            log::warn!("{}: what was said is lost: {error}", self.run.turn.id);
        }
        Outcome::PutOff
    }

    fn add(&mut self, step: Step) {
        self.steps.push(step);
        self.unsaved += 1;
    }

    fn take_unsaved(&mut self) -> Vec<Step> {
        let unsaved = self.steps[self.steps.len() - self.unsaved..].to_vec();
        self.unsaved = 0;
        unsaved
    }

    fn save(&mut self) -> Result<(), Stop> {
        let unsaved = self.take_unsaved();
        if unsaved.is_empty() {
            return Ok(());
        }
        let (store, turn) = (self.run.store, self.run.turn.id);
        Ok(store.record_steps(turn, unsaved, self.audience)?)
    }
}

/// Whether a tool of the household with an effect has begun to run in these steps.
pub fn has_effect(steps: &[Step], toolbox: &Toolbox) -> bool {
    let is_begun = |call: &ToolCall| {
        let begins = |step: &Step| matches!(step, Step::Started { call_id } if *call_id == call.id);
        steps.iter().any(begins)
    };
    let mut calls = steps.iter().flat_map(Step::calls);
    calls.any(|call| toolbox.may_change(&call.tool) && is_begun(call))
}

/// What a call of the tool that finds others searches for.
fn query(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    arguments["query"].as_str().map(str::to_owned)
}

/// Why there is no reply at all, for the person.
fn cut_before_the_first_word(reason: FinishReason) -> Said {
    let key = match reason {
        FinishReason::Length => "error.cut.length",
        FinishReason::ContentFilter => "error.cut.content_filter",
        FinishReason::Refusal => "error.cut.refusal",
        FinishReason::Interrupted => "error.cut.interrupted",
    };
    Said::of(key, &[])
}
