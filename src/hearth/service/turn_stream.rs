//! Turns that one HTTP request begins and follows: those of clients that speak
//! OpenAI's or Ollama's interface.

use std::sync::{Arc, Mutex};

use super::hub::{ConnectionId, Person, Reply, TurnEnded, Watch, Watcher};
use super::programs::{OnCalls, ProgramOptions, ProgramTurn, Results};
use super::{Service, attachments};
use agent::turn::HandedCalls;
use base::error::{Error, Result};
use base::ids::{TurnId, UserId};
use base::sync::lock;
use net::outbox::Outbox;
use protocol::event::EventKind;
use store::{
    Begun, Exchange, IdempotencyKey, Identity, IncludedFile, NewAttachments, NewTurn,
    ReplayedHistory, Target, TokenScope, Usage, UserRole, Viewer,
};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The owner of the conversations that the message may continue.
    pub user_id: UserId,
    /// The speaker's name for the model.
    pub user: String,
    /// The token that was shown; none where the owner lets a user's programs in
    /// without one.
    pub identity: Option<Identity>,
}

/// A message from a client that sends the whole conversation with it.
#[derive(Debug)]
pub struct Question {
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The client's own name for the chat, if it has one.
    pub chat: Option<String>,
    /// The message to answer.
    pub message: String,
    /// Its files.
    pub files: Vec<IncludedFile>,
    /// The client's instructions to the model for this turn.
    pub instructions: Option<String>,
    /// The caller's key and a fingerprint of its request.
    pub idempotency: Option<(String, [u8; 32])>,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    /// What the client wants beyond the household's settings, and its own tools.
    pub program: Option<ProgramOptions>,
    /// Whether the pieces of the reply are wanted as they come.
    pub stream: bool,
}

/// What happened in a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnProgress {
    /// The model wrote more text.
    Text(String),
    /// The model called a tool: text that follows is a new beginning.
    ToolCall,
    /// A person has to decide before it continues.
    AwaitsApproval {
        /// About the use of this tool.
        tool: String,
    },
}

/// A turn and what happens in it. Dropping it leaves the turn as it is.
pub struct TurnStream {
    service: Arc<Service>,
    connection: ConnectionId,
    /// Closed when the token is revoked, and wakes the response's thread. It
    /// carries nothing.
    outbox: Arc<Outbox>,
    progress: Arc<Mutex<Pending>>,
    /// None until it is watched.
    watch: Option<Watch>,
    turn: TurnId,
    used_before: Usage,
}

/// What happened since the last look.
#[derive(Debug, Default)]
struct Pending {
    progress: Vec<TurnProgress>,
    /// Bytes of text in `progress`.
    bytes: usize,
    /// What the client is to run itself.
    handed: HandedCalls,
    end: Option<Result<Reply>>,
}

/// Collects what happens for the response's thread.
struct Collector {
    pending: Arc<Mutex<Pending>>,
    outbox: Arc<Outbox>,
    is_streamed: bool,
    /// Most bytes of text that wait. A client that is slower gets no more
    /// pieces; the end of the reply makes up for them.
    most_bytes: usize,
}

/// What [`TurnStream::take`] found.
pub struct TurnNews {
    /// In the order in which it happened.
    pub progress: Vec<TurnProgress>,
    /// What the client is to run itself: the turn waits for it, and nothing follows.
    pub handed: HandedCalls,
    /// Set once the turn has ended; nothing follows.
    pub end: Option<Result<Reply>>,
    /// Set when nothing more may be sent: the token was revoked.
    pub is_cut: bool,
}

impl Watcher for Collector {
    fn wants_events(&self) -> bool {
        self.is_streamed
    }

    fn event(&mut self, kind: &EventKind) {
        let mut pending = lock(&self.pending);
        match kind {
            EventKind::Delta { .. } | EventKind::ToolCall { .. } if !self.is_streamed => return,
            EventKind::Delta { text } => {
                if pending.bytes + text.len() > self.most_bytes {
                    self.is_streamed = false;
                    return;
                }
                pending.bytes += text.len();
                pending.progress.push(TurnProgress::Text(text.clone()));
            }
            EventKind::ToolCall { .. } => pending.progress.push(TurnProgress::ToolCall),
            // The client learns which tool a person is asked about, not with what.
            EventKind::ApprovalRequested { tool, .. } => {
                let tool = tool.clone();
                pending.progress.push(TurnProgress::AwaitsApproval { tool });
            }
            _ => return,
        }
        drop(pending);
        self.outbox.wake();
    }

    fn ended(self: Box<Self>, end: &TurnEnded) {
        lock(&self.pending).end = Some(end.result.clone());
        self.outbox.wake();
    }
}

impl Service {
    /// Stores a message and starts its turn, which runs like any other. `wake`
    /// is called, from any thread, whenever [`TurnStream::take`] may find news.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another request).
    pub fn follow(
        self: &Arc<Service>,
        asker: &Asker,
        question: Question,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<TurnStream> {
        let (viewer, scope, person) = rights(asker);
        let message = question.message.clone();
        let new = NewTurn {
            viewer,
            owner: Some(asker.user_id),
            audience: self.usual_audience(),
            target: Target::ReplayedHistory(ReplayedHistory {
                user_id: asker.user_id,
                history: question.history,
                chat: question.chat,
                instructions: question.instructions,
            }),
            channel: question.channel.to_owned(),
            account: None,
            message: question.message,
            speaker: Some(asker.user.clone()),
            // The client says so in its own instructions, if it wants anything.
            surface: None,
            attachments: match question.files.is_empty() {
                true => NewAttachments::None,
                false => NewAttachments::Included(
                    question.files,
                    attachments::limits(&self.settings.current().limits),
                ),
            },
            idempotency: question.idempotency.map(|(key, request)| IdempotencyKey {
                scope: format!("{}:{}", scope.key_scope(asker.user_id), question.channel),
                key,
                request,
            }),
            replaces: None,
            model: None,
            tools: scope.tools,
        };
        let _place = self.reserve_place(&new)?;
        let begun = self.store.begin_turn_deferred(new)?.uncommitted();
        let turn = begun.turn().id;
        // It is read from the database as soon as the turn runs.
        if let Begun::New {
            has_history: true, ..
        } = begun
        {
            self.store.flush()?;
        }
        let (mut stream, collector) = self.collect(asker, turn, question.stream, wake);
        let watch = self.hub.watch(turn, Some(person), collector);
        match (self.programs.get(turn), question.program) {
            // The request came before: its program goes on, perhaps with calls that it has.
            (Some(program), _) => program.follow(stream.response()),
            (None, Some(wants)) => {
                let program = ProgramTurn::new(asker.user_id, message, wants, stream.response());
                self.programs.add(turn, program);
            }
            (None, None) => {}
        }
        self.start(begun, Some(watch));
        stream.watch = Some(watch);
        Ok(stream)
    }

    /// Follows on the turn that waits for these results of the client's own tools, after
    /// this message of its person, or that has taken them before; `None` if there is none.
    pub fn follow_on(
        self: &Arc<Service>,
        asker: &Asker,
        message: &str,
        results: &Results,
        stream: bool,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<TurnStream> {
        let (viewer, _, person) = rights(asker);
        let waiting = self.programs.waiting(asker.user_id, message, results);
        if let Some((turn, used, program)) = waiting {
            let (mut stream, collector) = self.collect(asker, turn, stream, wake);
            stream.watch = Some(self.hub.watch(turn, Some(person), collector));
            stream.used_before = used;
            program.go_on(&results.returned, stream.response());
            return Some(stream);
        }
        let (turn, used) = self.programs.has_taken(asker.user_id, results)?;
        let known = self.find_turn(&viewer, turn).ok()?;
        // What was streamed before is not there any more: the end brings all of it.
        let (mut stream, collector) = self.collect(asker, turn, false, wake);
        let watch = self.hub.watch(turn, Some(person), collector);
        stream.watch = Some(watch);
        stream.used_before = used;
        if let Some(program) = self.programs.get(turn) {
            program.follow(stream.response());
        }
        self.start(Begun::Repeat(known.into_inner()), Some(watch));
        Some(stream)
    }

    /// A stream of what happens in a turn, and what collects it.
    fn collect(
        self: &Arc<Service>,
        asker: &Asker,
        turn: TurnId,
        is_streamed: bool,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> (TurnStream, Box<Collector>) {
        let outbox = Arc::new(Outbox::new(0, wake));
        let progress = Arc::<Mutex<Pending>>::default();
        let collector = Collector {
            pending: Arc::clone(&progress),
            outbox: Arc::clone(&outbox),
            is_streamed,
            most_bytes: self.settings.current().limits.outbox_bytes,
        };
        let connection = self.connections.open();
        if let Some(identity) = &asker.identity {
            self.connections
                .authenticated(connection, identity, &outbox);
        }
        let stream = TurnStream {
            service: Arc::clone(self),
            connection,
            outbox,
            progress,
            watch: None,
            turn,
            used_before: Usage::default(),
        };
        (stream, Box::new(collector))
    }

    /// The user of this name, for programs that the owner lets in without a
    /// token.
    ///
    /// # Errors
    /// `unauthorized` when there is none, or it may not chat.
    pub fn asker_without_token(&self, name: &str) -> Result<Asker> {
        match self.store.user(name)? {
            Some(user) if user.role >= UserRole::User => Ok(Asker {
                user_id: user.id,
                user: user.name,
                identity: None,
            }),
            _ => {
                log::warn!("openai_api.ollama_user: no user {name:?} who may chat");
                Err(Error::unauthorized(
                    "the server's setting openai_api.ollama_user names nobody who may chat",
                ))
            }
        }
    }
}

/// What an asker sees and may do.
fn rights(asker: &Asker) -> (Viewer, TokenScope, Person) {
    match &asker.identity {
        Some(identity) => (
            identity.viewer(),
            identity.scope.clone(),
            Person::from(identity),
        ),
        // Nobody has shown to be this person: what it asks and begins is the
        // household's.
        None => (
            Viewer::person(asker.user_id, UserRole::User).household_only(),
            TokenScope {
                tools: None,
                household_only: true,
            },
            Person {
                id: asker.user_id,
                role: UserRole::User,
                household_only: true,
            },
        ),
    }
}

impl TurnStream {
    /// Where the calls of the client's own tools go.
    fn response(&self) -> (ConnectionId, OnCalls) {
        let (progress, outbox) = (Arc::clone(&self.progress), Arc::clone(&self.outbox));
        let on_calls: OnCalls = Box::new(move |calls| {
            lock(&progress).handed = HandedCalls::clone(calls);
            outbox.wake();
        });
        (self.connection, on_calls)
    }

    /// The turn.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// The tokens that earlier responses of the turn have told of.
    pub fn used_before(&self) -> Usage {
        self.used_before
    }

    /// Stops the turn, whose client has gone. A server that stops leaves it for its next
    /// start.
    pub fn cancel(&self) {
        if self.service.queue.is_stopping() {
            return;
        }
        let by = "the program that asked (it hung up)";
        if let Err(error) = self.service.cancel(&Viewer::server(), self.turn, by) {
            log::warn!("{}: it could not be stopped: {error}", self.turn);
        }
    }

    /// What has happened since the last call.
    pub fn take(&self) -> TurnNews {
        let pending = std::mem::take(&mut *lock(&self.progress));
        TurnNews {
            progress: pending.progress,
            handed: pending.handed,
            end: pending.end,
            is_cut: self.outbox.take().close.is_some(),
        }
    }
}

impl Drop for TurnStream {
    fn drop(&mut self) {
        self.service.programs.leave(self.turn, self.connection);
        if let Some(watch) = self.watch {
            self.service.hub.unwatch(watch);
        }
        self.service.connections.close(self.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::MessageId;

    #[test]
    fn pieces_of_text_are_collected_up_to_the_bound() {
        let progress = Arc::<Mutex<Pending>>::default();
        let mut collector = Collector {
            pending: Arc::clone(&progress),
            outbox: Arc::new(Outbox::new(0, || ())),
            is_streamed: true,
            most_bytes: 6,
        };
        let text = |text: &str| EventKind::Delta { text: text.into() };
        let call = EventKind::ToolCall {
            tool: "clock".into(),
            arguments: serde_json::json!({}),
            call_id: "1".into(),
        };
        let message_id = MessageId::from(1);
        for kind in [
            text("a"),
            text("b"),
            call,
            EventKind::Done {
                message_id,
                in_reply_to: None,
                finish_reason: None,
            },
            text("cdef"),
        ] {
            collector.event(&kind);
        }
        let collected = std::mem::take(&mut lock(&progress).progress);
        let expected = [
            TurnProgress::Text("a".into()),
            TurnProgress::Text("b".into()),
            TurnProgress::ToolCall,
            TurnProgress::Text("cdef".into()),
        ];
        assert_eq!(collected, expected);
        collector.event(&text("g"));
        assert!(!collector.wants_events(), "it is too slow");
        let end = Error::not_found("x");
        Box::new(collector).ended(&TurnEnded::from(Err(end)));
        assert!(lock(&progress).progress.is_empty() && lock(&progress).end.is_some());
    }
}
