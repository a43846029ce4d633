//! Servers on the network: Streamable HTTP (MCP specification, transports). Each
//! message is a POST to one address; the answer is JSON, or an event stream that
//! contains it. Notifications come on a separate stream, if the server offers one, which
//! a thread reads. A stream that breaks is read on where it broke, if its events have ids.
//!
//! A broken exchange fails its request alone. A call that the server may have seen is
//! never sent again.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::call::{CALL, Call, CallError, INITIALIZE, ReadTimeout};
use super::exchange::{ERROR_BYTES, Exchange, Failure, SESSION, Shared, is_event_stream};
use super::message::{self, MESSAGE_BYTES};
use super::peer::Peer;
use super::session::{Revision, Transport};
use crate::model::event_stream::{EventStream, Position, Source};
use base::language::Said;
use base::sync::lock;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientResponse};
use net::task::Task;

/// How long sending a notification may take.
const NOTIFY_LIMIT: Duration = Duration::from_secs(5);
/// How long ending a session may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// How long the stream of notifications may last before it is reopened.
const LISTEN_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// First and longest pause before that, after it ended.
const LISTEN_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Pause before a stream with an answer is read on, where the server names none, and the
/// longest that it may name.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(30);
/// How often a stream is read on in a row without any event.
const RESUMPTIONS: u32 = 5;

/// A session with a server on the network.
pub(super) struct HttpTransport {
    shared: Arc<Shared>,
    listening: Mutex<Option<Task>>,
}

impl HttpTransport {
    /// A session that is still to be opened; nothing is sent yet.
    pub(super) fn new(shared: Arc<Shared>) -> HttpTransport {
        HttpTransport {
            shared,
            listening: Mutex::new(None),
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, peer: &Peer, request: &Call<'_>) -> Result<(), CallError> {
        let result = self.shared.request(peer, request);
        match result.map_err(|failure| failure.into_call_error(&request.timeout)) {
            Err(CallError::Unusable(_) | CallError::Broken(_))
                if request.method == INITIALIZE
                    && self.shared.is_of_older_revision(request.cancel) =>
            {
                Err(CallError::OlderTransport)
            }
            result => result,
        }
    }

    fn notify(&self, message: Vec<u8>) {
        let timeout = ReadTimeout::within(NOTIFY_LIMIT);
        let cancel = Cancel::default();
        self.shared
            .send_off(&Exchange::post(None, &message, timeout, &cancel));
    }

    fn cancel(&self, message: Vec<u8>) {
        // Without sessions, a closed connection is the cancellation.
        if self.shared.state().revision != Some(Revision::Stateless) {
            self.notify(message);
        }
    }

    fn opened(&self, revision: Revision) {
        self.shared.state().revision = Some(revision);
    }

    fn listen(&self, peer: &Arc<Peer>, subscription: Option<Vec<u8>>) {
        let (shared, peer) = (Arc::clone(&self.shared), Arc::clone(peer));
        let name = format!("mcp-listen-{}", shared.name);
        let listen = move |stop: &Cancel| shared.listen(&peer, subscription.as_deref(), stop);
        match Task::start(name, &Cancel::default(), listen) {
            Ok(task) => *lock(&self.listening) = Some(task),
            Err(error) => log::warn!(
                "mcp {}: changes of its tools will not be noticed: {error}",
                self.shared.name
            ),
        }
    }

    fn close(&self, at_once: bool) {
        let listening = lock(&self.listening).take();
        drop(listening);
        if !at_once && self.shared.state().session.is_some() {
            let timeout = ReadTimeout::within(CLOSE_LIMIT);
            self.shared
                .send_off(&Exchange::new("DELETE", timeout, &Cancel::default()));
        }
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.close(true);
    }
}

impl Shared {
    /// Sends a request and reads until the peer has its outcome.
    fn request(&self, peer: &Peer, request: &Call<'_>) -> Result<(), Failure> {
        let exchange = Exchange::post(None, &request.message, request.timeout, request.cancel)
            .naming(request.method, request.tool);
        let mut position = Position::default();
        let mut read = || {
            self.exchange(&exchange, |answer| {
                self.read_answer(answer, peer, request, &mut position)
            })
        };
        let mut result = read();
        if let Err(Failure::Connection(ClientError::Interrupted { stale: true, .. })) = result
            && request.method != CALL
        {
            // Most likely, the server had closed the idle connection and has not seen this.
            result = read();
        }
        self.read_on(peer, request, position, result)?;
        match peer.last_activity(request.id) {
            None => Ok(()),
            Some(_) => Err(Failure::Call(CallError::Broken(Said::of(
                "mcp.no_answer",
                &[],
            )))),
        }
    }

    /// Reads a stream on that broke before the outcome of the request came, where the
    /// server has given its events ids.
    fn read_on(
        &self,
        peer: &Peer,
        request: &Call<'_>,
        mut position: Position,
        mut result: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut in_vain = 0;
        while let Ok(()) | Err(Failure::Connection(ClientError::Interrupted { .. })) = result
            && !position.last_id.is_empty()
            && in_vain < RESUMPTIONS
            && let Some(last_activity) = peer.last_activity(request.id)
        {
            let left = time_left(request.timeout.until(last_activity))?;
            let pause = position.retry.unwrap_or(RESUME_PAUSE).min(MAX_RESUME_PAUSE);
            if request.cancel.wait(pause.min(left)) {
                return Err(Failure::Call(CallError::Cancelled));
            }
            let before = position.clone();
            let exchange = Exchange::stream(&before.last_id, request.timeout, request.cancel);
            result = self.exchange(&exchange, |answer| {
                if answer.status() == 200 {
                    return self.read_answer(answer, peer, request, &mut position);
                }
                // It keeps no events; what became of the request is not known.
                position.last_id.clear();
                Ok(())
            });
            // The request itself was sent, whatever this says.
            if let Err(Failure::Connection(
                error @ (ClientError::Refused(_) | ClientError::Unreachable(_)),
            )) = result
            {
                let reason = error.to_string();
                let stale = false;
                result = Err(ClientError::Interrupted { reason, stale }.into());
            }
            in_vain = if position == before { in_vain + 1 } else { 0 };
        }
        result
    }

    /// Reads an answer as far as it concerns a request.
    fn read_answer(
        &self,
        answer: &mut ClientResponse,
        peer: &Peer,
        request: &Call<'_>,
        position: &mut Position,
    ) -> Result<(), Failure> {
        if !(200..300).contains(&answer.status()) {
            return Err(Failure::Call(self.refusal(answer, request.method)?));
        }
        if request.method == INITIALIZE {
            self.state().session = answer.header(SESSION).map(str::to_owned);
        }
        if is_event_stream(answer) {
            return self.read_events(answer, peer, &request.timeout, Some(request.id), position);
        }
        let body = answer.read_all(MESSAGE_BYTES)?;
        for incoming in message::read(&body).into_iter().flatten() {
            peer.receive(incoming);
        }
        Ok(())
    }

    fn send_off(&self, exchange: &Exchange<'_>) {
        let sent = self.exchange(exchange, |answer| {
            answer.read_all(ERROR_BYTES)?;
            Ok(answer.status())
        });
        match sent.map_err(|failure| failure.into_call_error(&exchange.timeout)) {
            Ok(200..300) => {}
            // A server may not end sessions (405), or have ended this one (404).
            Ok(status) => log::debug!("mcp {}: answered with status {status}", self.name),
            Err(error) => log::debug!("mcp {}: {error}", self.name),
        }
    }

    /// Reads a stream of events until it ends, or until the request has its
    /// outcome.
    fn read_events(
        &self,
        answer: &mut ClientResponse,
        peer: &Peer,
        timeout: &ReadTimeout,
        request: Option<u64>,
        position: &mut Position,
    ) -> Result<(), Failure> {
        let until = Cell::new(timeout.until(Instant::now()));
        let mut source = ProgressSource {
            answer,
            until: &until,
        };
        let mut events = EventStream::new(&mut source);
        let result = loop {
            let event = match events.next() {
                Ok(Some(event)) => event,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            };
            for incoming in message::read(event.data).into_iter().flatten() {
                if let Some(answer) = peer.receive(incoming) {
                    let timeout = ReadTimeout::within(NOTIFY_LIMIT);
                    let cancel = Cancel::default();
                    self.send_off(&Exchange::post(None, &answer, timeout, &cancel));
                }
            }
            match request.map(|id| peer.last_activity(id)) {
                Some(None) => break Ok(()),
                Some(Some(last_activity)) => until.set(timeout.until(last_activity)),
                None => {}
            }
        };
        let Position { last_id, retry } = events.position();
        if !last_id.is_empty() {
            last_id.clone_into(&mut position.last_id);
        }
        position.retry = retry.or(position.retry);
        drop(events);
        if result.is_ok() {
            answer.finish();
        }
        result
    }

    /// Reads the server's notifications until `stop`, the end of the session, or
    /// an answer that says the server offers no stream.
    fn listen(&self, peer: &Peer, subscription: Option<&[u8]>, stop: &Cancel) {
        let (first_pause, longest_pause) = LISTEN_PAUSES;
        let mut pause = first_pause;
        let mut was_open = false;
        let mut position = Position::default();
        loop {
            let timeout = ReadTimeout::within(LISTEN_LIMIT);
            let last_id = position.last_id.clone();
            let exchange = match subscription {
                Some(message) => Exchange::post(None, message, timeout, stop)
                    .naming("subscriptions/listen", None),
                None => Exchange::stream(&last_id, timeout, stop),
            };
            let listened = self.exchange(&exchange, |answer| {
                let status = answer.status();
                if status == 200 && is_event_stream(answer) {
                    was_open = true;
                    pause = first_pause;
                    self.read_events(answer, peer, &timeout, None, &mut position)?;
                }
                Ok(status)
            });
            match listened {
                Ok(200) if was_open => {}
                // It keeps no events.
                Ok(400..500) if was_open && !last_id.is_empty() => position.last_id.clear(),
                // The stream was offered before: the session is lost.
                Ok(400 | 404) if was_open => {
                    return peer.close(CallError::SessionLost.said());
                }
                Ok(500..) if was_open => {}
                Ok(status) => {
                    log::debug!("mcp {}: offers no stream (status {status})", self.name);
                    return;
                }
                Err(Failure::Connection(ClientError::Cancelled)) => return,
                // Whether the server is gone, the next request finds out.
                Err(failure) => {
                    let (name, error) = (&self.name, failure.into_call_error(&timeout));
                    // Many streams are cut now and then.
                    let level = match pause > first_pause {
                        true => log::Level::Info,
                        false => log::Level::Debug,
                    };
                    log::log!(level, "mcp {name}: its notifications do not come: {error}");
                }
            }
            if stop.wait(pause) {
                return;
            }
            pause = (pause * 2).min(longest_pause);
        }
    }
}

fn time_left(until: Instant) -> Result<Duration, ClientError> {
    until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or(ClientError::TimedOut)
}

/// The body of an answer as a stream of events, with a deadline that each report of progress
/// extends. Comments that keep the connection alive do not.
struct ProgressSource<'a> {
    answer: &'a mut ClientResponse,
    until: &'a Cell<Instant>,
}

impl Source for ProgressSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        self.answer.limit_silence(time_left(self.until.get())?);
        self.answer.read(buffer)
    }
}
