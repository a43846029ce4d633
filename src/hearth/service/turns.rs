//! Stores turns with their messages, starts, reads and stops them. `running` runs
//! them.

use serde_json::Value;

use super::caller::{Caller, Responder};
use super::commands::check_audience;
use super::hub::{Person, Reply, TurnEnded, Watch};
use super::queue::{Requester, Reservation, TurnJob, Withdrawn};
use super::{Service, attachments, views};
use agent::turn::said_so_far;
use base::error::{Code, Error, Result};
use base::ids::{ConversationId, TokenId, TurnId};
use base::language::{Said, Words};
use base::reply::Surface;
use base::secret::sha256;
use config::Limits;
use protocol::command::Chat;
use serde_json::json;
use store::{
    Approval, Begun, Decision, Durable, IdempotencyKey, Identity, NewAttachments, NewTurn,
    Replaced, Target, Turn, TurnEnd, TurnState, Usage, UserRole, Verdict, Viewer,
};

/// Where replies are read that a client asks for without saying so.
fn usual_surface(transport: &str) -> Surface {
    match transport {
        "lines" => Surface::Terminal,
        _ => Surface::Plain,
    }
}

/// Who asked for a turn, with this credential.
pub(super) fn requester_of(turn: &Turn, credential: Option<TokenId>) -> Requester {
    Requester::new(turn.user_id, turn.account.as_deref(), credential)
}

/// What must be the same in a repeat of a message: as JSON, in which no field can pass for
/// another; and in lines, as earlier versions have it.
fn fingerprints(chat: &Chat) -> [[u8; 32]; 2] {
    let conversation = chat.conversation_id.map_or(0, |id| id.as_i64());
    let fields = json!([
        conversation,
        chat.message,
        chat.attachments,
        chat.replaces,
        chat.model,
        chat.audience,
    ]);
    let mut lines = format!("{conversation}\n{}", chat.message);
    for attachment in &chat.attachments {
        lines.push_str(&format!("\n{attachment}"));
    }
    if let Some(replaces) = chat.replaces {
        lines.push_str(&format!("\nreplaces {replaces}"));
    }
    if let Some(model) = &chat.model {
        lines.push_str(&format!("\nmodel {model:?}"));
    }
    if let Some(audience) = &chat.audience {
        lines.push_str(&format!("\n{audience:?}"));
    }
    [fields.to_string(), lines].map(|request| sha256(request.as_bytes()))
}

impl Service {
    /// Stores a person's message, starts its turn and answers `responder` at its
    /// end. The turn belongs to the server: it continues when the client leaves.
    pub(super) fn chat(&self, caller: &Caller<'_>, chat: Chat, responder: Responder) {
        if let Err(error) = self.check_chat(caller.identity, &chat) {
            return responder.refuse(error);
        }
        let [request, earlier_request] = fingerprints(&chat);
        let audience = chat.audience.unwrap_or_else(|| self.usual_audience());
        let is_version = chat.replaces.is_some();
        let target = chat.conversation_id.map_or(Target::New, Target::Existing);
        let (viewer, channel) = (caller.identity.viewer(), caller.transport);
        let new = NewTurn {
            owner: Some(caller.identity.user_id),
            speaker: Some(caller.identity.user.clone()),
            surface: chat.surface.or(Some(usual_surface(caller.transport))),
            attachments: NewAttachments::Uploaded(chat.attachments),
            tools: caller.identity.scope.tools.clone(),
            replaces: chat.replaces.map(|message| Replaced {
                message,
                limits: attachments::limits(&self.settings.current().limits),
            }),
            model: chat.model,
            idempotency: chat.idempotency_key.map(|key| IdempotencyKey {
                scope: caller.identity.scope.key_scope(caller.identity.user_id),
                key,
                request,
                earlier_request: Some(earlier_request),
            }),
            ..NewTurn::new(viewer, target, audience, channel, chat.message)
        };
        let credential = Some(caller.identity.token_id);
        let stored = self.reserve_place(&new, credential).and_then(|place| {
            // Nothing is acknowledged before the turn ends, so both may be committed
            // together.
            let begun = self.store.begin_turn_deferred(new)?;
            Ok((place, begun.uncommitted()))
        });
        let (_place, begun) = match stored {
            Ok(stored) => stored,
            Err(error) => return responder.refuse(error),
        };
        let person = Person::reading(caller.identity, responder.words);
        let turn = begun.turn().id;
        let watch = self.hub.watch(turn, Some(person), Box::new(responder));
        if chat.stream {
            self.hub
                .stream(watch, caller.connection, caller.outbox, person);
        }
        // What another version replaces is hidden, on disk.
        let changed = match &begun {
            Begun::New { turn, .. } if is_version => {
                Some((turn.conversation_id, turn.readers.clone()))
            }
            _ => None,
        };
        self.start(begun, credential, Some(watch));
        if let Some((conversation, readers)) = changed {
            self.hub.publish_change(conversation, readers);
        }
    }

    fn check_chat(&self, identity: &Identity, chat: &Chat) -> Result<()> {
        if let Some(audience) = &chat.audience {
            check_audience(identity, audience)?;
            if chat.conversation_id.is_some() {
                return Err(Error::invalid_request(
                    "\"audience\" is for a new conversation; share_conversation changes that of \
                     another",
                ));
            }
        }
        if chat.replaces.is_some() && chat.conversation_id.is_none() {
            return Err(Error::invalid_request(
                "\"replaces\" needs the \"conversation_id\" of the message",
            ));
        }
        self.check_model(identity, chat.model.as_deref())
    }

    /// Reserves a place in the queue for a message that is about to be stored. One
    /// whose idempotency key was used before needs none: its turn may be the one that
    /// waits.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `rate_limited` (the conversation's queue).
    pub(super) fn reserve_place(
        &self,
        new: &NewTurn,
        credential: Option<TokenId>,
    ) -> Result<Option<Reservation<'_>>> {
        let limits = &self.settings.current().limits;
        let requester = Requester::new(new.owner, new.account.as_deref(), credential);
        let reserve = |conversation| self.queue.reserve(conversation, requester, limits);
        let reserved = match &new.target {
            Target::Existing(conversation) => reserve(Some(*conversation)),
            target => self
                .check_suspended(new, target, limits)
                .and_then(|()| reserve(None)),
        };
        match (reserved, &new.idempotency) {
            (Err(_), Some(key)) if !self.queue.is_stopping() && self.store.is_known(key)? => {
                Ok(None)
            }
            (reserved, _) => reserved.map(Some),
        }
    }

    /// Checks that not too many turns wait for a person in the conversation that the sender
    /// names, or whose history it sends.
    fn check_suspended(&self, new: &NewTurn, target: &Target, limits: &Limits) -> Result<()> {
        if !self.queue.has_suspended() {
            return Ok(());
        }
        let conversation = match target {
            Target::Named { account, name } => self.store.conversation_named(account, name)?,
            Target::OfSender { account, name, .. } => match (new.owner, name) {
                (Some(owner), Some(name)) => {
                    self.store.conversation_of_sender(owner, account, name)?
                }
                _ => None,
            },
            Target::ReplayedHistory(replayed) => self
                .store
                .snapshot(&new.viewer)?
                .conversation_replayed(replayed)?,
            Target::Existing(_) | Target::New => None,
        };
        match conversation {
            Some(conversation) => self.queue.check_suspended(conversation, limits),
            None => Ok(()),
        }
    }

    /// Publishes the message of a stored turn and queues the turn: that of whoever showed
    /// `credential`. For a repeated idempotency key whose earlier turn has ended, `watch` is
    /// notified now.
    pub(super) fn start(&self, begun: Begun, credential: Option<TokenId>, watch: Option<Watch>) {
        match (&begun, watch) {
            (
                Begun::New {
                    turn,
                    message,
                    has_history,
                },
                _,
            ) => {
                // Whoever comes back later gets it under its number.
                self.reserve_event_numbers();
                log::info!(
                    "{}: from {} by {}",
                    turn.id,
                    turn.channel,
                    message.speaker.as_deref().unwrap_or("somebody")
                );
                let job = TurnJob {
                    turn: turn.id,
                    conversation: turn.conversation_id,
                    requester: requester_of(turn, credential),
                    // Steps that came with it are read with it.
                    fresh: (!has_history).then(|| Box::new((turn.clone(), message.clone()))),
                };
                self.queue.announce(job, || self.hub.publish_begin(&begun));
            }
            (Begun::Repeat(turn), Some(watch)) => {
                if let Ok(turn) = self.server_snapshot().and_then(|seen| seen.turn(turn.id))
                    && turn.state.is_final()
                    && let Some(watcher) = self.hub.unwatch(watch)
                {
                    watcher.ended(&self.result_of(&turn).into());
                }
            }
            (Begun::Repeat(_), None) => {}
            (Begun::Again(turn), _) => {
                log::info!("{}: goes on, as its request came again", turn.id);
                self.hub
                    .publish_change(turn.conversation_id, turn.readers.clone());
                self.queue.submit(TurnJob {
                    turn: turn.id,
                    conversation: turn.conversation_id,
                    requester: requester_of(turn, credential),
                    fresh: None,
                });
            }
        }
    }

    fn result_of(&self, turn: &Durable<Turn>) -> Result<Reply> {
        let viewer = Viewer::server();
        let reply = turn
            .reply_id
            .map(|reply| self.store.snapshot(&viewer)?.message(reply));
        Reply::new(turn, reply.transpose()?)
    }

    /// Notifies the watchers of a turn whose beginning was lost with a failed commit, or
    /// with its conversation. There are none when it was ended elsewhere.
    pub(super) fn turn_lost(&self, turn: TurnId, conversation: ConversationId) {
        if self.hub.is_watched(turn) {
            let lost = if self.hub.is_deleted(conversation) {
                Error::not_found(format!("there is no conversation {conversation}"))
            } else {
                let detail = format!("{turn} is gone");
                Error::server("the message could not be stored", detail)
            };
            self.hub.turn_ended(turn, &TurnEnded::from(Err(lost)));
        }
    }

    pub(super) fn find_turn(&self, viewer: &Viewer, id: TurnId) -> Result<Durable<Turn>> {
        self.settled(|| self.store.snapshot(viewer)?.turn(id))
    }

    /// What `read` finds, even if it has not reached the disk yet: subscribers
    /// learn of a turn up to 5 ms earlier.
    pub(super) fn settled<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(error) if error.code() == Code::NotFound => {
                self.store.flush()?;
                read()
            }
            found => found,
        }
    }

    /// Stops a turn for a person: one in which they have asked, or as an admin one that
    /// they see.
    ///
    /// # Errors
    /// `not_found` where they do not see it; `unauthorized`; `server_error`.
    pub(super) fn cancel(&self, id: TurnId, by: &Identity) -> Result<Value> {
        let turn = self.find_turn(&by.viewer(), id)?;
        if by.role < UserRole::Admin && turn.user_id != Some(by.user_id) {
            return Err(Error::unauthorized(Said::of("error.not_your_turn", &[])));
        }
        self.stop(id, &by.user)
    }

    /// Stops a turn, whoever has asked in it.
    ///
    /// # Errors
    /// `not_found`; `server_error`.
    pub fn stop(&self, id: TurnId, by: &str) -> Result<Value> {
        let turn = self.find_turn(&Viewer::server(), id)?;
        if turn.state.is_final() {
            return Ok(json!({ "turn_id": id, "state": turn.state.as_str() }));
        }
        log::info!("{id}: {by} stops it");
        match self.queue.withdraw(id, turn.conversation_id) {
            Withdrawn::Signalled => Ok(json!({ "turn_id": id, "state": "cancelling" })),
            Withdrawn::Taken | Withdrawn::Unknown => {
                let approvals = self.server_snapshot()?.approvals_of(id)?;
                let said = said_so_far(&self.server_snapshot()?.steps(id)?, "");
                self.conclude(&turn, TurnEnd::Cancelled { said }, Usage::default(), "");
                self.publish_expired(id, &approvals, by);
                Ok(json!({ "turn_id": id, "state": TurnState::Cancelled.as_str() }))
            }
        }
    }

    /// Publishes that undecided approvals expired with their turn, once its end is on
    /// disk.
    pub(super) fn publish_expired(&self, turn: TurnId, approvals: &[Approval], by: &str) {
        let has_ended = |turn: Durable<Turn>| turn.state.is_final();
        if !self
            .server_snapshot()
            .and_then(|seen| seen.turn(turn))
            .is_ok_and(has_ended)
        {
            return;
        }
        for approval in approvals.iter().filter(|one| one.decision.is_none()) {
            let decision = Decision {
                verdict: Verdict::Expired,
                by: by.to_owned(),
            };
            self.publish_decision(approval, &decision);
        }
    }

    /// The data of `get_turn`.
    pub(super) fn turn_view(
        &self,
        viewer: &Viewer,
        words: Option<Words>,
        id: TurnId,
    ) -> Result<Value> {
        let turn = self.find_turn(viewer, id)?;
        let reply = match turn.reply_id {
            Some(reply) => Some(self.store.snapshot(viewer)?.message(reply)?.into_inner()),
            None => None,
        };
        let mut turn = turn.into_inner();
        let written = match turn.state.is_final() {
            true => None,
            false => self.hub.written(id),
        };
        // Pieces of the reply may be out before the commit that says that it runs.
        if written.is_some() && turn.state == TurnState::Queued {
            turn.state = TurnState::Running;
        }
        let mut view = views::turn(turn, reply, words);
        (view.text, view.seq) = written.unzip();
        Ok(json!(view))
    }
}
