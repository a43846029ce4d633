//! Replies that one HTTP request waits for: of a turn that the request begins
//! ([`Service::follow`]), or of a model that is asked without a turn.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Service;
use super::hub::{ConnectionId, Person, TurnEnded, Watch, Watcher};
use super::programs::OnCalls;
use super::views::cancelled;
use agent::model::{Heard, ModelReply};
use agent::turn::has_effect;
use base::error::{Code, Error, Result};
use base::ids::TurnId;
use base::sync::lock;
use net::cancel::Cancel;
use net::outbox::Outbox;
use net::task::Task;
use net::wait::Waker;
use protocol::event::EventKind;
use store::{IdempotencyKey, Identity, TurnState, Usage};

/// How much longer a response waits than the model or the turn may take: both end at the
/// deadline by themselves.
const GRACE: Duration = Duration::from_secs(15);

/// What happens before a reply ends.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// A piece of what the model thinks.
    Thought(String),
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

/// What has happened since the last look.
#[derive(Debug, Default)]
pub struct News {
    /// In the order in which it happened.
    pub progress: Vec<Progress>,
    /// Bytes of text in `progress`.
    bytes: usize,
    /// The reply, or the calls that the client is to run itself; its usage is what no earlier
    /// response has told of. Nothing follows.
    pub end: Option<Result<ModelReply>>,
}

/// A reply and what happens until it ends. Dropping it leaves a turn as it is, and stops a
/// model that is asked without one.
pub struct ReplyStream {
    line: Line,
    source: Source,
}

/// Where a reply comes from.
enum Source {
    Turn {
        id: TurnId,
        watch: Watch,
        /// The tokens that earlier responses of the turn have told of.
        used_before: Usage,
        /// The request.
        request: Option<IdempotencyKey>,
        /// Whether the same request is a new one once its answer has gone out.
        is_forgotten: bool,
    },
    Model {
        deadline: Instant,
        _task: Task,
    },
}

/// What connects a reply with the thread of its response, and that with the token of its
/// request.
pub(super) struct Line {
    service: Arc<Service>,
    waker: Arc<Waker>,
    connection: ConnectionId,
    /// Closed when the token is revoked, also with its person, and wakes the response's
    /// thread. It carries nothing.
    outbox: Arc<Outbox>,
    news: Arc<Mutex<News>>,
}

/// Collects what happens in a turn.
struct Collector {
    news: Arc<Mutex<News>>,
    outbox: Arc<Outbox>,
    is_streamed: bool,
    /// Most bytes of text that wait. A client that is slower gets no more
    /// pieces; the end of the reply makes up for them.
    most_bytes: usize,
}

/// What a model is asked with.
pub struct Work<'a> {
    /// The service.
    pub service: &'a Service,
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it when the client has gone.
    pub cancel: &'a Cancel,
    /// Gets text and thoughts as they arrive.
    pub listener: &'a mut dyn FnMut(Heard<'_>),
}

/// One of the places for requests to the model alone, given back when it is dropped.
struct Place(Arc<Service>);

impl Watcher for Collector {
    fn wants_events(&self) -> bool {
        self.is_streamed
    }

    fn event(&mut self, kind: &EventKind) {
        let mut news = lock(&self.news);
        match kind {
            EventKind::Delta { .. } | EventKind::Reasoning { .. } | EventKind::ToolCall { .. }
                if !self.is_streamed =>
            {
                return;
            }
            EventKind::Reasoning { text } => {
                if news.bytes + text.len() > self.most_bytes {
                    return;
                }
                news.bytes += text.len();
                news.progress.push(Progress::Thought(text.clone()));
            }
            EventKind::Delta { text } => {
                if news.bytes + text.len() > self.most_bytes {
                    self.is_streamed = false;
                    return;
                }
                news.bytes += text.len();
                news.progress.push(Progress::Text(text.clone()));
            }
            EventKind::ToolCall { .. } => news.progress.push(Progress::ToolCall),
            // The client learns which tool a person is asked about, not with what.
            EventKind::ApprovalRequested { tool, .. } => {
                let tool = tool.clone();
                news.progress.push(Progress::AwaitsApproval { tool });
            }
            _ => return,
        }
        drop(news);
        self.outbox.wake();
    }

    fn ended(self: Box<Self>, end: &TurnEnded) {
        let end = match &end.result {
            // These interfaces have no word for it; a reply cut short is none.
            Ok(reply) if reply.data.state.is_some() => Err(cancelled()),
            Ok(reply) => Ok(ModelReply {
                text: reply.data.response.clone(),
                usage: reply.usage,
                finish_reason: reply.data.finish_reason,
                ..ModelReply::default()
            }),
            Err(error) => Err(error.clone()),
        };
        lock(&self.news).end.get_or_insert(end);
        self.outbox.wake();
    }
}

impl Line {
    pub fn open(service: &Arc<Service>, identity: Option<&Identity>, waker: &Arc<Waker>) -> Line {
        let wake = Arc::clone(waker);
        let outbox = Arc::new(Outbox::new(0, move || wake.wake()));
        let connection = service.connections.open();
        if let Some(identity) = identity {
            let connections = &service.connections;
            connections.authenticated(connection, identity, &outbox);
        }
        Line {
            service: Arc::clone(service),
            waker: Arc::clone(waker),
            connection,
            outbox,
            news: Arc::default(),
        }
    }

    /// Watches a turn.
    pub fn watch(&self, turn: TurnId, person: Person, is_streamed: bool) -> Watch {
        let collector = Collector {
            news: Arc::clone(&self.news),
            outbox: Arc::clone(&self.outbox),
            is_streamed,
            most_bytes: self.service.settings.current().limits.outbox_bytes,
        };
        let hub = &self.service.hub;
        hub.watch(turn, Some(person), Box::new(collector))
    }

    /// Where the calls of the client's own tools go.
    pub fn response(&self) -> (ConnectionId, OnCalls) {
        let (news, outbox) = (Arc::clone(&self.news), Arc::clone(&self.outbox));
        let on_calls: OnCalls = Box::new(move |handed| {
            let reply = ModelReply {
                text: handed.said.clone(),
                calls: handed.calls.clone(),
                usage: handed.usage,
                ..ModelReply::default()
            };
            lock(&news).end.get_or_insert(Ok(reply));
            outbox.wake();
        });
        (self.connection, on_calls)
    }

    pub fn follow(
        self,
        id: TurnId,
        watch: Watch,
        used_before: Usage,
        request: Option<IdempotencyKey>,
        is_forgotten: bool,
    ) -> ReplyStream {
        let source = Source::Turn {
            id,
            watch,
            used_before,
            request,
            is_forgotten,
        };
        ReplyStream { line: self, source }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.service.connections.close(self.connection);
    }
}

impl Service {
    /// Asks a model without a turn, on a thread of its own, which ends with the response.
    ///
    /// # Errors
    /// 503 while as many are asked as there are workers, and without a thread.
    pub fn ask_model(
        self: &Arc<Service>,
        identity: Option<&Identity>,
        waker: &Arc<Waker>,
        ask: impl FnOnce(Work<'_>) -> Result<ModelReply> + Send + 'static,
    ) -> Result<ReplyStream> {
        let config = self.settings.current();
        let taken = self.plain_requests.fetch_add(1, Ordering::SeqCst);
        let place = Place(Arc::clone(self));
        if taken >= config.workers {
            return Err(Error::overloaded("the model is asked too much at once", 5));
        }
        let line = Line::open(self, identity, waker);
        let deadline = Instant::now() + Duration::from_secs(config.limits.turn_seconds);
        let (news, waker) = (Arc::clone(&line.news), Arc::clone(waker));
        let run = move |cancel: &Cancel| {
            let reply = ask(Work {
                service: &place.0,
                deadline,
                cancel,
                listener: &mut |heard| {
                    let progress = match heard {
                        Heard::Text(text) => Progress::Text(text.to_owned()),
                        Heard::Thought(thought) => Progress::Thought(thought.to_owned()),
                        Heard::Waits(_) => return,
                    };
                    lock(&news).progress.push(progress);
                    waker.wake();
                },
            });
            lock(&news).end = Some(reply);
            waker.wake();
        };
        let task = Task::start("plain-reply", &Cancel::default(), run).map_err(|error| {
            log::warn!("no thread for a plain reply: {error}");
            Error::overloaded("the server has no thread left", 5)
        })?;
        let source = Source::Model {
            deadline,
            _task: task,
        };
        Ok(ReplyStream { line, source })
    }
}

impl ReplyStream {
    /// What wakes the response's thread.
    pub fn waker(&self) -> &Arc<Waker> {
        &self.line.waker
    }

    /// What has happened since the last call.
    pub fn take(&self) -> News {
        let mut news = std::mem::take(&mut *lock(&self.line.news));
        if self.line.outbox.take().close.is_some() {
            let goes_on = match self.source {
                Source::Turn { .. } => "; the turn goes on",
                Source::Model { .. } => "",
            };
            let why = format!("the token is no longer valid{goes_on}");
            news.progress.clear();
            news.end = Some(Err(Error::invalid_token(why)));
        } else if let Some(Err(error)) = news.end {
            if error == cancelled() {
                // A person stopped it: the same request is a new one.
                self.forget_request();
            }
            news.end = Some(Err(self.once(error)));
        }
        if let Some(Ok(reply)) = &mut news.end {
            reply.usage = self.untold(reply.usage);
        }
        news
    }

    /// The turn that answers, if there is one.
    pub fn turn(&self) -> Option<TurnId> {
        match self.source {
            Source::Turn { id, .. } => Some(id),
            Source::Model { .. } => None,
        }
    }

    /// Notes that the answer goes out: the same request is a new one from now on, unless it
    /// brought results, which count once.
    pub fn answered(&self) {
        if let Source::Turn {
            is_forgotten: true, ..
        } = self.source
        {
            self.forget_request();
        }
    }

    fn forget_request(&self) {
        if let Source::Turn { request, .. } = &self.source
            && let Some(request) = request.clone()
        {
            self.line.service.store.forget_request(request);
        }
    }

    /// The error with a status that nobody takes for an invitation to try again, once a tool
    /// has had an effect.
    fn once(&self, error: Error) -> Error {
        let Source::Turn { id, .. } = self.source else {
            return error;
        };
        let service = &self.line.service;
        let seen = service.server_snapshot();
        // Where that cannot be read, it may have.
        match seen.and_then(|seen| seen.steps(id)) {
            Ok(steps) if !has_effect(&steps, &service.assistant().toolbox) => error,
            _ => error
                .rephrased(|text| format!("{text} (a tool has already run)"))
                .with_status(424),
        }
    }

    /// Tokens that a turn has used, as recorded, and no earlier response has told of.
    pub fn usage_so_far(&self) -> Usage {
        let Source::Turn { id, .. } = self.source else {
            return Usage::default();
        };
        let service = &self.line.service;
        // Their commit may be on its way.
        let turn = (service.store.flush()).and_then(|()| service.server_snapshot()?.turn(id));
        turn.map_or_else(|_| Usage::default(), |turn| self.untold(turn.usage))
    }

    fn untold(&self, all: Usage) -> Usage {
        let before = match self.source {
            Source::Turn { used_before, .. } => used_before,
            Source::Model { .. } => Usage::default(),
        };
        Usage {
            input: all.input.saturating_sub(before.input),
            output: all.output.saturating_sub(before.output),
            cached: all.cached.saturating_sub(before.cached),
        }
    }

    /// How long a response may wait that may take `longest`.
    pub fn deadline(&self, longest: Duration) -> Instant {
        match self.source {
            Source::Turn { .. } => Instant::now() + longest + GRACE,
            Source::Model { deadline, .. } => deadline + GRACE,
        }
    }

    /// The error for a client that has waited until the deadline.
    pub fn late(&self) -> Error {
        let Source::Turn { id, .. } = self.source else {
            return Error::server("the model did not answer in time", "a plain reply");
        };
        let turn = self
            .line
            .service
            .server_snapshot()
            .and_then(|seen| seen.turn(id));
        let why = match turn {
            Ok(turn) if turn.state == TurnState::WaitingApproval => {
                "the answer waits for somebody's permission to use a tool"
            }
            _ => "the answer is not there yet",
        };
        let text = format!("{why}; the turn goes on, and its reply will be in the conversation");
        self.once(Error::new(Code::ServerError, text).with_status(504))
    }

    /// Stops the turn, whose client has gone, unless another request waits for it. A server
    /// that stops leaves it for its next start.
    pub fn cancel(&self) {
        let service = &self.line.service;
        if let Source::Turn { id, watch, .. } = self.source
            && !service.hub.is_shared(watch)
            && !service.queue.is_stopping()
        {
            service.stop_turn(id, "the program that asked (it hung up)");
        }
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        let Line {
            service,
            connection,
            ..
        } = &self.line;
        if let Source::Turn { id, watch, .. } = self.source {
            service.programs.leave(id, *connection);
            service.hub.unwatch(watch);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.plain_requests.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::MessageId;

    #[test]
    fn pieces_of_text_are_collected_up_to_the_bound() {
        let news = Arc::<Mutex<News>>::default();
        let mut collector = Collector {
            news: Arc::clone(&news),
            outbox: Arc::new(Outbox::new(0, || ())),
            is_streamed: true,
            most_bytes: 6,
        };
        let text = |text: &str| EventKind::Delta { text: text.into() };
        let call = EventKind::ToolCall {
            tool: "clock".into(),
            arguments: serde_json::json!({}),
            label: String::new(),
            sentence: String::new(),
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
        let collected = std::mem::take(&mut lock(&news).progress);
        let expected = [
            Progress::Text("a".into()),
            Progress::Text("b".into()),
            Progress::ToolCall,
            Progress::Text("cdef".into()),
        ];
        assert_eq!(collected, expected);
        collector.event(&text("g"));
        assert!(!collector.wants_events(), "it is too slow");
        let end = Error::not_found("x");
        Box::new(collector).ended(&TurnEnded::from(Err(end)));
        assert!(lock(&news).progress.is_empty() && lock(&news).end.is_some());
    }
}
