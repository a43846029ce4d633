//! The turn loop: asks the model, runs the tools it calls, and asks again,
//! until there is a reply, a question to the owner, or an error.
//!
//! Every step is on disk before anything with an effect depends on it, so that
//! the loop can begin again after a crash from the steps alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::context::Context;
use super::context::history::History;
use super::permission::{Narrowing, Rules};
use super::provider::{Cancel, ModelReply, ModelRequest, ProviderError, ToolSpec};
use super::side_by_side::side_by_side;
use super::tool::{Tool, ToolContext, check_arguments, output};
use super::{Assistant, budget, context, permission, repetition};
use crate::clock::Clock;
use crate::config::{Permission, WebhookAccount};
use crate::error::{Error, Result};
use crate::ids::TurnId;
use crate::store::{Approval, Message, NewApproval, Step, Store, ToolCall, Turn, Usage};

/// Tools that run at a time within one turn.
const MOST_AT_A_TIME: usize = 4;
/// Bytes of a tool's result that subscribers are shown.
const SUMMARY_BYTES: usize = 200;

/// What one run of a turn needs.
pub struct TurnRun<'a> {
    /// Provider, tools and settings: those of the moment at which the run
    /// began.
    pub assistant: &'a Assistant,
    /// Where the steps go.
    pub store: &'a Store,
    /// Tells the model what time it is.
    pub clock: &'a Clock,
    /// Where programs run that custom tools name.
    pub data_dir: &'a PathBuf,
    /// The turn as its row says.
    pub turn: &'a Turn,
    /// The person's message that the turn answers.
    pub message: &'a Message,
    /// Whether earlier runs may have left steps and approvals.
    pub is_resumed: bool,
    /// The webhook account that asked, which may narrow what is permitted.
    pub account: Option<&'a WebhookAccount>,
    /// When this run's time is up.
    pub deadline: Instant,
    /// Set by whoever stops the turn.
    pub cancel: &'a Cancel,
    /// Whether somebody wants the pieces of text as they come.
    pub is_streamed: &'a dyn Fn() -> bool,
}

/// What the loop reports while it runs.
pub enum Progress<'a> {
    /// A piece of the reply.
    Text(&'a str),
    /// The model calls a tool.
    ToolCall(&'a ToolCall),
    /// A call has its result; `summary` is its beginning.
    ToolResult {
        /// The [`ToolCall::id`] that it answers.
        call_id: &'a str,
        /// False when the tool failed, was refused or does not exist.
        ok: bool,
        /// At most 200 bytes.
        summary: &'a str,
    },
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// With the reply.
    Replied(String),
    /// Put away, with these questions to the owner, which are on disk.
    Suspended(Vec<Approval>),
    /// Without a reply.
    Failed(Error),
    /// Somebody stopped it.
    Cancelled,
}

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub outcome: Outcome,
    /// Tokens of this run's model calls alone; those of earlier runs of the
    /// turn were reported then.
    pub usage: Usage,
    /// The model that answered last, or was asked.
    pub model: String,
}

/// Why the loop cannot go on.
pub enum Stop {
    /// Of this error.
    Failed(Error),
    /// Somebody stopped the turn.
    Cancelled,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Runs a turn until it ends or waits for a person.
pub fn run(run: &TurnRun<'_>, observe: &mut dyn FnMut(Progress<'_>)) -> Ran {
    let config = &run.assistant.config;
    let model = run
        .account
        .and_then(|account| account.model.as_ref())
        .unwrap_or(&config.model);
    let mut state = Loop {
        run,
        model,
        observe,
        steps: Vec::new(),
        unsaved: 0,
        usage: Usage::default(),
        answered_by: None,
    };
    let outcome = match state.drive() {
        Ok(outcome) => outcome,
        _ if run.cancel.is_cancelled() => Outcome::Cancelled,
        Err(Stop::Cancelled) => Outcome::Cancelled,
        Err(Stop::Failed(error)) => Outcome::Failed(error),
    };
    Ran {
        outcome,
        usage: state.usage,
        model: state.answered_by.unwrap_or_else(|| model.clone()),
    }
}

struct Loop<'a, 'b> {
    run: &'a TurnRun<'a>,
    model: &'a String,
    observe: &'b mut dyn FnMut(Progress<'_>),
    /// Everything that happened so far; the last `unsaved` are not on disk yet.
    steps: Vec<Step>,
    unsaved: usize,
    usage: Usage,
    /// The model of the last reply.
    answered_by: Option<String>,
}

/// What is to be done about one call.
enum Plan {
    Run(Arc<dyn Tool>, Map<String, Value>),
    Refuse(String),
    /// The owner, for this reason.
    Ask(String),
}

/// A call that gets its result now: from its tool, or the reason why it is
/// refused.
type Settled = (ToolCall, std::result::Result<Runnable, String>);
/// A tool and its checked arguments.
type Runnable = (Arc<dyn Tool>, Map<String, Value>);

impl Loop<'_, '_> {
    fn drive(&mut self) -> Result<Outcome, Stop> {
        let run = self.run;
        let (store, turn) = (run.store, run.turn);
        let mut history = History::open(run, self.model, self.may_recall())?;
        let mut approvals = Vec::new();
        if run.is_resumed {
            self.steps = store.steps(turn.id)?;
            approvals = store.approvals_of(turn.id)?;
        }
        let offered = permission::offered(&run.assistant.toolbox, &self.rules());
        let most_rounds = run.assistant.config.limits.tool_rounds;
        let mut nudge = None;
        loop {
            self.check_going_on()?;
            if let Some(questions) = self.settle_calls(&approvals)? {
                return Ok(Outcome::Suspended(questions));
            }
            let rounds = self
                .steps
                .iter()
                .filter(|step| matches!(step, Step::Reply { .. }))
                .count();
            let (repeated, repeats) = repetition::most_repeated(&self.steps).unwrap_or_default();
            let hint = repetition::hint(repeated, repeats);
            let is_last = rounds >= most_rounds || repeats >= repetition::ENDED_AFTER;
            if is_last {
                nudge = Some("You have used all your tool calls. Answer now with what you know.");
            }
            let tools: &[ToolSpec] = if is_last { &[] } else { &offered };
            let reply = self.ask_model(&mut history, tools, hint.as_deref().or(nudge))?;
            if !reply.calls.is_empty() && !is_last {
                self.add_calls(reply);
                continue;
            }
            if !reply.text.trim().is_empty() {
                self.save()?;
                return Ok(Outcome::Replied(reply.text));
            }
            if nudge.is_some() {
                let why = if is_last {
                    format!("the model called tools {rounds} times and gave no answer")
                } else {
                    "the model gave an empty answer twice".to_owned()
                };
                return Err(Error::server(why, format!("turn {}", turn.id)).into());
            }
            nudge = Some("Your last answer was empty. Answer the person.");
        }
    }

    fn check_going_on(&self) -> Result<(), Stop> {
        if self.run.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if Instant::now() >= self.run.deadline {
            return Err(ProviderError::TimedOut.into_error().into());
        }
        Ok(())
    }

    /// What holds for this turn. A turn that has lost its account may do
    /// nothing unasked.
    fn rules(&self) -> Rules<'_> {
        let run = self.run;
        let config = &run.assistant.config;
        Rules {
            mode: config.permission_mode,
            overrides: &config.tool_permissions,
            narrowing: run
                .turn
                .account
                .as_ref()
                .map(|_| Narrowing::of_account(run.account)),
        }
    }

    /// Whether memories may go with the message unasked: to a stranger only
    /// what could be looked up without asking.
    fn may_recall(&self) -> bool {
        match permission::decide("recall", &self.rules(), false) {
            Permission::Allow => true,
            Permission::Ask => !context::is_untrusted(&self.run.turn.channel),
            Permission::Deny => false,
        }
    }

    /// Asks the model; once more with less of the past when the conversation
    /// is too long for it.
    fn ask_model(
        &mut self,
        history: &mut History<'_>,
        tools: &[ToolSpec],
        nudge: Option<&str>,
    ) -> Result<ModelReply, Stop> {
        let run = self.run;
        let config = &run.assistant.config;
        budget::check(config, run.store, run.clock.now(), self.usage)?;
        let mut refused: Option<(ProviderError, Context)> = None;
        loop {
            let mut context = history.context(&self.steps, tools, &mut self.usage)?;
            if let Some(nudge) = nudge {
                context.system.push('\n');
                context.system.push_str(nudge);
            }
            if let Some((error, earlier)) = &refused
                && *earlier == context
            {
                return Err(error.clone().into_error().into());
            }
            let request = ModelRequest {
                model: self.model,
                system: &context.system,
                messages: &context.messages,
                tools,
                temperature: config.temperature,
                max_tokens: config.max_tokens,
                stream: (run.is_streamed)(),
                deadline: run.deadline,
                cancel: run.cancel,
            };
            let observe = &mut *self.observe;
            let mut is_heard = false;
            let answer = run.assistant.provider.complete(&request, &mut |text| {
                is_heard = true;
                observe(Progress::Text(text));
            });
            match answer {
                Ok(reply) => {
                    self.usage.add(reply.usage);
                    let is_ours = reply.model.as_ref().is_none_or(|model| model == self.model);
                    let is_counted = is_ours && !reply.is_estimated;
                    history.answered(if is_counted { reply.usage.input } else { 0 })?;
                    self.answered_by = reply.model.clone().or(self.answered_by.take());
                    return Ok(reply);
                }
                Err(ProviderError::Cancelled) => return Err(Stop::Cancelled),
                Err(error @ ProviderError::ContextOverflow { .. })
                    if refused.is_none() && !is_heard && history.shrink() =>
                {
                    log::info!(
                        "turn {}: too long for the model: once more with less",
                        run.turn.id
                    );
                    refused = Some((error, context));
                }
                Err(error) => return Err(error.into_error().into()),
            }
        }
    }

    /// Notes a reply with calls. Their ids become unique within the turn, since
    /// some models count from one again in each reply.
    fn add_calls(&mut self, mut reply: ModelReply) {
        let round = self.steps.len();
        for place in 0..reply.calls.len() {
            let (earlier, rest) = reply.calls.split_at_mut(place);
            let call = &mut rest[0];
            let in_steps = self.steps.iter().any(|step| {
                matches!(step, Step::Reply { calls, .. } if calls.iter().any(|c| c.id == call.id))
            });
            if in_steps || earlier.iter().any(|other| other.id == call.id) {
                call.id = format!("{}_{round}_{place}", call.id);
            }
        }
        for call in &reply.calls {
            (self.observe)(Progress::ToolCall(call));
        }
        self.add(Step::Reply {
            text: reply.text,
            calls: reply.calls,
            extra: reply.extra,
        });
    }

    /// Gives every open call of the last reply its result, in their order. What
    /// only reads runs side by side; before and after a tool with an effect,
    /// everything else is done. Calls that need the owner's word come last: for
    /// them the turn is put away.
    fn settle_calls(&mut self, approvals: &[Approval]) -> Result<Option<Vec<Approval>>, Stop> {
        let mut questions = Vec::new();
        let mut together: Vec<Settled> = Vec::new();
        for call in self.open_calls() {
            match self.plan(&call, approvals)? {
                Plan::Refuse(why) => together.push((call, Err(why))),
                Plan::Run(tool, arguments) if tool.is_read_only() => {
                    together.push((call, Ok((tool, arguments))));
                }
                Plan::Run(tool, arguments) => {
                    self.run_together(std::mem::take(&mut together))?;
                    self.run_alone(&call, tool.as_ref(), &arguments)?;
                }
                Plan::Ask(reason) => questions.push(NewApproval {
                    reason,
                    call_id: call.id,
                    tool: call.tool,
                    arguments: call.arguments,
                }),
            }
        }
        self.run_together(together)?;
        if questions.is_empty() {
            self.save()?;
            return Ok(None);
        }
        let run = self.run;
        let wait = std::time::Duration::from_secs(run.assistant.config.limits.approval_seconds);
        let unsaved = self.take_unsaved();
        let expires_at = run.clock.now().plus(wait);
        Ok(Some(run.store.suspend_turn(
            run.turn.id,
            unsaved,
            questions,
            expires_at,
        )?))
    }

    /// The calls of the last reply that have no result yet.
    fn open_calls(&self) -> Vec<ToolCall> {
        let last = self
            .steps
            .iter()
            .rposition(|step| matches!(step, Step::Reply { .. }));
        let Some(last) = last else { return Vec::new() };
        let Step::Reply { calls, .. } = &self.steps[last] else {
            return Vec::new();
        };
        let is_open = |call: &&ToolCall| {
            !self.steps[last..]
                .iter()
                .any(|step| matches!(step, Step::Result { call_id, .. } if *call_id == call.id))
        };
        calls.iter().filter(is_open).cloned().collect()
    }

    fn plan(&self, call: &ToolCall, approvals: &[Approval]) -> Result<Plan, Stop> {
        let run = self.run;
        let Some(tool) = run.assistant.toolbox.get(&call.tool) else {
            return Ok(Plan::Refuse(format!(
                "there is no tool named {:?}",
                call.tool
            )));
        };
        let was_started = self
            .steps
            .iter()
            .any(|step| matches!(step, Step::Started { call_id } if *call_id == call.id));
        if was_started && !tool.is_read_only() {
            return Ok(Plan::Refuse(
                "the server was interrupted while this ran: it may or may not have taken effect"
                    .to_owned(),
            ));
        }
        let arguments = match check_arguments(tool.spec(), &call.arguments) {
            Ok(arguments) => arguments,
            Err(why) => return Ok(Plan::Refuse(why)),
        };
        let asked = approvals
            .iter()
            .find(|approval| approval.call_id == call.id);
        let verdict = asked.and_then(|approval| approval.decision.as_ref());
        let is_allowed_here = match verdict {
            Some(decision) if decision.verdict.is_approval() => true,
            Some(decision) => {
                return Ok(Plan::Refuse(format!(
                    "the owner did not allow this ({} by {})",
                    decision.verdict.as_str(),
                    decision.by
                )));
            }
            None => run
                .store
                .is_allowed_in(run.turn.conversation_id, &call.tool)?,
        };
        Ok(
            match permission::decide(&call.tool, &self.rules(), is_allowed_here) {
                Permission::Allow => Plan::Run(Arc::clone(tool), arguments),
                Permission::Ask => Plan::Ask(permission::reason(tool.as_ref(), &arguments)),
                Permission::Deny => Plan::Refuse("this tool is not permitted here".to_owned()),
            },
        )
    }

    fn tool_context(&self) -> ToolContext<'_> {
        let run = self.run;
        ToolContext {
            store: run.store,
            clock: run.clock,
            conversation_id: run.turn.conversation_id,
            speaker: run.message.speaker.as_deref(),
            deadline: run.deadline,
            cancel: run.cancel,
            data_dir: run.data_dir,
        }
    }

    /// Runs tools that only read, side by side, and notes all results in the
    /// order of the calls.
    fn run_together(&mut self, calls: Vec<Settled>) -> Result<(), Stop> {
        self.check_going_on()?;
        let (context, turn) = (self.tool_context(), self.run.turn.id);
        let results = side_by_side(calls.len(), MOST_AT_A_TIME, |number| {
            let (call, runnable) = &calls[number];
            let (tool, arguments) = runnable.as_ref().map_err(Clone::clone)?;
            run_tool(turn, call, tool.as_ref(), arguments, &context)
        });
        for ((call, runnable), result) in calls.iter().zip(results) {
            let outside = matches!(runnable, Ok((tool, _)) if tool.brings_outside_text());
            self.add_result(call, result, outside);
        }
        Ok(())
    }

    /// Runs a tool with an effect: that it runs is on disk before, and its
    /// result after.
    fn run_alone(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: &Map<String, Value>,
    ) -> Result<(), Stop> {
        self.check_going_on()?;
        self.add(Step::Started {
            call_id: call.id.clone(),
        });
        self.save()?;
        let result = run_tool(
            self.run.turn.id,
            call,
            tool,
            arguments,
            &self.tool_context(),
        );
        self.add_result(call, result, tool.brings_outside_text());
        self.save()
    }

    fn add_result(
        &mut self,
        call: &ToolCall,
        result: std::result::Result<String, String>,
        outside: bool,
    ) {
        let ok = result.is_ok();
        let text = result.unwrap_or_else(|why| why);
        let content = output::cap_result(text);
        let summary = content.floor_char_boundary(SUMMARY_BYTES);
        (self.observe)(Progress::ToolResult {
            call_id: &call.id,
            ok,
            summary: &content[..summary],
        });
        self.add(Step::Result {
            call_id: call.id.clone(),
            ok,
            content,
            outside,
        });
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
        Ok(self.run.store.record_steps(self.run.turn.id, unsaved)?)
    }
}

/// Runs one tool, whatever it does: a panic is a failed call.
fn run_tool(
    turn: TurnId,
    call: &ToolCall,
    tool: &dyn Tool,
    arguments: &Map<String, Value>,
    context: &ToolContext<'_>,
) -> std::result::Result<String, String> {
    let began = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| tool.run(arguments, context)))
        .unwrap_or_else(|_| Err(format!("the tool {:?} failed inside the server", call.tool)));
    log::info!(
        "turn {turn}: tool {} {} in {} ms",
        call.tool,
        if result.is_ok() { "ran" } else { "failed" },
        began.elapsed().as_millis()
    );
    result
}
