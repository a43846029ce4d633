//! One turn on a worker's thread: run, with its progress published, and ended.

use std::time::{Duration, Instant};

use super::approvals::BY_TIME;
use super::hub::{Reply, TurnEnded};
use super::queue::TurnJob;
use super::state::{Deferred, Service};
use agent::turn::{self, Outcome, Program, TurnContext, said_so_far};
use base::error::{Code, Error, Result};
use base::ids::TurnId;
use net::cancel::Cancel;
use store::{Message, RunOutcome, Turn, TurnEnd, Usage, Viewer};

/// How long the next message waits for the title of its conversation.
const TITLE_LIMIT: Duration = Duration::from_secs(20);
/// How long a turn that continues after a restart waits for MCP servers to start:
/// it may need one of their tools.
const MCP_LIMIT: Duration = Duration::from_secs(15);
/// How long a turn is tried again whose conversation cannot be read.
const UNREADABLE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Service {
    /// Runs one turn on a worker's thread.
    pub(super) fn run_turn(&self, job: TurnJob, cancel: &Cancel) {
        let (id, conversation) = (job.turn, job.conversation);
        let loaded = match job.fresh {
            Some(fresh) => Ok(Some((fresh.0, fresh.1, false))),
            None => self.load_turn(id),
        };
        let (turn, message, is_resumed) = match loaded {
            Ok(Some(loaded)) => loaded,
            Ok(None) => return self.queue.turn_ended(id, conversation),
            Err(error) if error.code() == Code::NotFound => {
                // Its beginning was lost with a failed commit.
                self.turn_lost(id, conversation);
                return self.queue.turn_ended(id, conversation);
            }
            Err(error) => {
                self.hub.turn_ended(id, &TurnEnded::from(Err(error)));
                return self.defer(Deferred::Run(id, conversation));
            }
        };
        self.store.mark_running(id, self.clock.now());
        let began = Instant::now();
        if is_resumed {
            self.mcp.wait_until_settled(MCP_LIMIT, cancel);
            self.hub.resumed(id, self.said(id));
        }
        let assistant = self.assistant();
        let config = &assistant.config;
        let account = turn
            .account
            .as_deref()
            .and_then(|name| config.webhook_account(name));
        let turn_seconds = account
            .and_then(|account| account.timeout_seconds)
            .unwrap_or(config.limits.turn_seconds);
        let program = self.programs.get(id);
        let run = TurnContext {
            assistant: &assistant,
            store: &self.store,
            clock: &self.clock,
            data_dir: &self.data_dir,
            turn: &turn,
            message: &message,
            is_resumed,
            account,
            deadline: began + Duration::from_secs(turn_seconds),
            cancel,
            is_stopping: &|| self.queue.is_stopping(),
            program: program.as_deref().map(|program| program as &dyn Program),
            // What a routine says may be that there is nothing to tell.
            is_streamed: &|| turn.schedule_id.is_none() && self.hub.is_streamed(&turn),
        };
        let ran = turn::run(&run, &mut |progress| {
            let languages = || self.store.languages();
            self.hub.publish_progress(&turn, progress, languages);
        });
        let took = began.elapsed().as_millis();
        match ran.outcome {
            Outcome::Suspended(approvals) => {
                for approval in approvals.iter() {
                    log::info!("{id}: waits for permission: {}", approval.reason);
                }
                // Before the turn is reported as waiting: whoever asked learns what it took.
                self.store
                    .note_usage(id, ran.usage, &ran.model, run.purpose());
                self.publish_requests(&turn, &approvals);
                self.notify_of_requests(&approvals);
                if !self.queue.turn_suspended(id, conversation) {
                    let said = self.said(id);
                    self.conclude(&turn, TurnEnd::Cancelled { said }, Usage::default(), "");
                    self.publish_expired(id, &approvals, BY_TIME);
                }
            }
            Outcome::Replied {
                text: reply,
                finish_reason,
            } => {
                let (model, usage) = (&ran.model, ran.usage);
                log::info!(
                    "{id}: done in {took} ms by {model} ({} tokens in, {} out)",
                    usage.input,
                    usage.output
                );
                let for_title = turn::wants_title(&run).then(|| reply.clone());
                let end = TurnEnd::Done {
                    reply,
                    finish_reason,
                };
                // Whoever asked does not wait for what follows, but the next message does.
                if self.end(&turn, end, ran.usage, &ran.model) {
                    if let Some(reply) = for_title {
                        self.give_title(&run, &reply);
                    }
                    if ran.is_long {
                        self.fold(&run, turn_seconds);
                    }
                    self.queue.turn_ended(id, conversation);
                }
            }
            Outcome::Silent { is_unchanged } => {
                let outcome = match is_unchanged {
                    true => RunOutcome::Unchanged,
                    false => RunOutcome::Silent,
                };
                log::info!("{id}: {} after {took} ms", outcome.as_str());
                self.silence(&turn, outcome, ran.usage, &ran.model);
            }
            // It failed because the disk did, not the model.
            Outcome::Failed { error, .. } if self.is_of_disk(&turn, &error) => {
                log::warn!(
                    "{id}: failed, because the database cannot be read or written; it is tried \
                     again once it can, unless its message was not stored either"
                );
                self.hub.turn_ended(id, &TurnEnded::from(Err(error)));
                self.defer(Deferred::Run(id, conversation));
            }
            Outcome::Failed { error, said } => {
                log::warn!("{id}: failed after {took} ms: {error}");
                let end = TurnEnd::Failed { error, said };
                self.conclude(&turn, end, ran.usage, &ran.model);
            }
            // The turn is unfinished on disk.
            Outcome::PutOff => {
                log::info!("{id}: stopped; it goes on at the next start");
                self.store
                    .note_usage(id, ran.usage, &ran.model, run.purpose());
                self.queue.turn_ended(id, conversation);
            }
            Outcome::Cancelled { said } => {
                log::info!("{id}: cancelled after {took} ms");
                self.conclude(&turn, TurnEnd::Cancelled { said }, ran.usage, &ran.model);
            }
        }
    }

    /// Whether a turn failed because the database cannot be written, or could not be read. The
    /// second may be so for ever: then it is tried for a day.
    fn is_of_disk(&self, turn: &Turn, error: &Error) -> bool {
        let age = self.clock.now().since(turn.created_at);
        !self.store.is_writable() || error.is_of_storage() && age < UNREADABLE_LIMIT
    }

    /// The turn, its message and whether it may have steps already; `None`
    /// when it has ended.
    fn load_turn(&self, id: TurnId) -> Result<Option<(Turn, Message, bool)>> {
        let turn = self.find_turn(&Viewer::server(), id)?;
        if turn.state.is_final() {
            return Ok(None);
        }
        let message = self.server_snapshot()?.message(turn.message_id)?;
        // Not by `started_at`: its commit may have failed where that of a step did not.
        Ok(Some((turn.into_inner(), message.into_inner(), true)))
    }

    /// What a turn has said on disk.
    fn said(&self, id: TurnId) -> String {
        let seen = self.server_snapshot();
        said_so_far(
            &seen.and_then(|seen| seen.steps(id)).unwrap_or_default(),
            "",
        )
    }

    /// Gives a conversation that has just begun a title, if the model has one soon.
    fn give_title(&self, run: &TurnContext<'_>, reply: &str) {
        let (id, conversation) = (run.turn.id, run.turn.conversation_id);
        let run = TurnContext {
            deadline: Instant::now() + TITLE_LIMIT,
            ..*run
        };
        let message = &run.message.content;
        let given = self
            .store
            .is_untitled(conversation, message)
            .and_then(|is| {
                let title = if is { turn::title(&run, reply)? } else { None };
                let Some(title) = title else { return Ok(()) };
                if let Some(readers) = self.store.give_title(conversation, message, &title)? {
                    self.hub.publish_title(conversation, readers, title);
                }
                Ok(())
            });
        if let Err(error) = given {
            log::warn!("{id}: its conversation gets no title: {error}");
        }
    }

    /// Folds the past of a turn's conversation, which has become too long, as far as that
    /// is done within the time of a turn and before the server stops.
    fn fold(&self, run: &TurnContext<'_>, seconds: u64) {
        let run = TurnContext {
            deadline: Instant::now() + Duration::from_secs(seconds),
            ..*run
        };
        if let Err(error) = turn::fold(&run) {
            log::warn!("{}: its conversation stays long: {error}", run.turn.id);
        }
    }

    /// Ends a routine's turn of which nothing stays but a line among the runs.
    fn silence(&self, turn: &Turn, outcome: RunOutcome, usage: Usage, model: &str) {
        let (id, conversation) = (turn.id, turn.conversation_id);
        match self.store.silence_turn(id, outcome, usage, model) {
            Ok((changed, is_empty)) => {
                self.hub.delete_turns(&changed.deleted);
                if is_empty {
                    let busy = self.queue.conversations();
                    self.hub.delete(conversation, changed.readers, &busy);
                } else {
                    self.hub.publish_change(conversation, changed.readers);
                }
                if let Some(schedule) = turn.schedule_id {
                    self.hub.publish_schedule(schedule, turn.readers.clone());
                }
            }
            Err(error) if error.code() == Code::NotFound => self.turn_lost(id, conversation),
            Err(error) => {
                log::warn!("{id}: {error}");
                return self.defer(Deferred::Run(id, conversation));
            }
        }
        self.queue.turn_ended(id, conversation);
    }

    /// Ends a turn, and lets the conversation's next turn run.
    pub(super) fn conclude(&self, turn: &Turn, end: TurnEnd, usage: Usage, model: &str) {
        if self.end(turn, end, usage, model) {
            self.queue.turn_ended(turn.id, turn.conversation_id);
        }
    }

    /// Ends a turn: commits its state, reply and callback at once, then publishes the
    /// events and notifies the watchers. Returns whether the conversation's next turn may
    /// run: not while the database cannot be written.
    pub(super) fn end(&self, turn: &Turn, end: TurnEnd, usage: Usage, model: &str) -> bool {
        self.programs.remove(turn.id);
        let (delivery, is_awaited) = self.callback_of(turn, &end);
        let ending = end.clone();
        let notifications = self.notifications_of(turn, &end);
        let notifies = !notifications.is_empty();
        let finished = self
            .store
            .finish_turn(turn.id, end, usage, model, delivery, notifications);
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) if error.code() == Code::NotFound => {
                // Its beginning was lost with a failed commit, or somebody else
                // ended it and notified the watchers.
                self.turn_lost(turn.id, turn.conversation_id);
                return true;
            }
            Err(error) => {
                self.hub.turn_ended(turn.id, &TurnEnded::from(Err(error)));
                let turn = Box::new(turn.clone());
                let model = model.to_owned();
                self.defer(Deferred::Conclude {
                    turn,
                    end: ending,
                    usage,
                    model,
                });
                return false;
            }
        };
        let took = self.clock.now().since(turn.created_at);
        self.meter.turn_ended(took, &ending);
        self.hub.publish_end(&finished);
        if let Some(delivery) = &finished.delivery {
            self.delivery_changed(delivery);
        }
        if notifies {
            self.look_for_due();
        }
        let delivery = finished.delivery.as_ref().filter(|_| is_awaited);
        let delivery = delivery.map(|delivery| delivery.id);
        let turn = finished.map_ref(|finished| finished.turn.clone());
        let result = Reply::new(&turn, finished.map(|finished| finished.reply).transpose());
        let was_watched = self
            .hub
            .turn_ended(turn.id, &TurnEnded { result, delivery });
        if let Some(delivery) = delivery
            && !was_watched
        {
            // Nobody waits any longer: the callback is sent now.
            self.response_sent(delivery, false);
        }
        true
    }
}
