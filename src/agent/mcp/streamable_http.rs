//! Servers on the network: Streamable HTTP (MCP specification, transports). Each
//! message is a POST to one address; the answer is JSON, or an event stream that
//! contains it. Notifications come on a separate stream, if the server offers one, which
//! a thread reads. A stream that breaks is read on where it broke, if its events have ids.
//!
//! A broken exchange fails its request alone. A call that the server may have seen is
//! never sent again.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::call::{CALL, Call, CallError, INITIALIZE, ReadTimeout};
use super::message::{self, MESSAGE_BYTES};
use super::peer::Peer;
use super::session::{Revision, Transport};
use crate::model::event_stream::{EventStream, Position, Source};
use crate::tools::output::shorten;
use base::secret::Secret;
use base::sync::lock;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::task::Task;
use net::tls::Trust;

/// How long sending a notification may take.
const NOTIFY_LIMIT: Duration = Duration::from_secs(5);
/// How long ending a session may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// How long an idle connection is kept: less than the 5 seconds after which common servers
/// close theirs, so that a call does not meet one that is being closed.
const IDLE_AGE: Duration = Duration::from_secs(4);
/// Most bytes of an error's body that are read, and characters that are shown.
const ERROR_BYTES: usize = 64 * 1024;
const ERROR_CHARS: usize = 300;
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

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
/// Headers that the protocol sets, so the configuration cannot.
const OWN_HEADERS: [&str; 9] = [
    "accept",
    "content-type",
    "content-length",
    "host",
    "last-event-id",
    VERSION,
    SESSION,
    METHOD,
    NAME,
];

/// A session with a server on the network.
pub(super) struct HttpTransport {
    shared: Arc<Shared>,
    listening: Mutex<Option<Task>>,
}

/// What requests and the listening thread share.
pub(super) struct Shared {
    pub(super) name: String,
    url: String,
    headers: Vec<(String, Secret)>,
    /// Whether `headers` has a token that may expire.
    has_token: bool,
    http_client: HttpClient,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    /// The session's id, if the server gave one.
    session: Option<String>,
    revision: Option<Revision>,
}

/// One request as HTTP.
pub(super) struct Exchange<'a> {
    http_method: &'a str,
    /// If not the server's one address.
    address: Option<&'a str>,
    /// The JSON-RPC method; empty where there is none.
    method: &'a str,
    tool: Option<&'a str>,
    body: Option<&'a [u8]>,
    /// The event after which a stream is read on.
    last_event: Option<&'a str>,
    pub(super) timeout: ReadTimeout,
    cancel: &'a Cancel,
}

impl<'a> Exchange<'a> {
    fn new(http_method: &'a str, timeout: ReadTimeout, cancel: &'a Cancel) -> Exchange<'a> {
        Exchange {
            http_method,
            address: None,
            method: "",
            tool: None,
            body: None,
            last_event: None,
            timeout,
            cancel,
        }
    }

    /// Asks for a stream of events, after this one.
    pub(super) fn stream(
        last_event: &'a str,
        timeout: ReadTimeout,
        cancel: &'a Cancel,
    ) -> Exchange<'a> {
        Exchange {
            last_event: Some(last_event).filter(|id| !id.is_empty()),
            ..Exchange::new("GET", timeout, cancel)
        }
    }

    /// Sends a message, to another address if there is one.
    pub(super) fn post(
        address: Option<&'a str>,
        message: &'a [u8],
        timeout: ReadTimeout,
        cancel: &'a Cancel,
    ) -> Exchange<'a> {
        Exchange {
            address,
            body: Some(message),
            ..Exchange::new("POST", timeout, cancel)
        }
    }
}

/// Why there was no answer.
pub(super) enum Failure {
    Connection(ClientError),
    Call(CallError),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        Failure::Connection(error)
    }
}

impl Failure {
    /// What it means for a request with these time limits.
    pub(super) fn into_call_error(self, timeout: &ReadTimeout) -> CallError {
        let error = match self {
            Failure::Call(error) => return error,
            Failure::Connection(error) => error,
        };
        match error {
            ClientError::Cancelled => CallError::Cancelled,
            ClientError::Silent(_) | ClientError::TimedOut => timeout.exceeded(),
            ClientError::Refused(_) => CallError::Closed(error.to_string()),
            ClientError::Unreachable(_)
            | ClientError::Exhausted
            | ClientError::Forbidden(_)
            | ClientError::Address(_) => CallError::Unusable(error.to_string()),
            error => CallError::Broken(error.to_string()),
        }
    }
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
    /// A server at this address. `token` is sent as a bearer token with each request.
    pub(super) fn new(
        name: &str,
        url: &str,
        headers: &[(String, Secret)],
        token: Option<Secret>,
        trust: Trust,
    ) -> Shared {
        let has_token = token.is_some();
        let token = token.map(|token| {
            let value = Secret::new(format!("Bearer {}", token.expose()));
            ("authorization".to_owned(), value)
        });
        let is_own = |name: &str| {
            OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name))
                || has_token && name.eq_ignore_ascii_case("authorization")
        };
        let headers = headers.iter().filter(|(name, _)| !is_own(name)).cloned();
        Shared {
            name: name.to_owned(),
            url: url.to_owned(),
            headers: headers.chain(token).collect(),
            has_token,
            http_client: HttpClient::new().trusting(trust).keeping_idle(IDLE_AGE),
            state: Mutex::default(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    /// Sends a request and reads until the peer has its outcome.
    fn request(&self, peer: &Peer, request: &Call<'_>) -> Result<(), Failure> {
        let exchange = Exchange {
            method: request.method,
            tool: request.tool,
            ..Exchange::post(None, &request.message, request.timeout, request.cancel)
        };
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
            Some(_) => Err(Failure::Call(CallError::Broken(
                "it gave no answer".to_owned(),
            ))),
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

    pub(super) fn exchange<T>(
        &self,
        exchange: &Exchange<'_>,
        read: impl FnOnce(&mut ClientResponse) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (session, revision) = {
            let state = self.state();
            (state.session.clone(), state.revision)
        };
        let accept = match exchange.http_method {
            "GET" => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut headers: Vec<(&str, &str)> = vec![("accept", accept)];
        headers.extend(exchange.body.map(|_| ("content-type", "application/json")));
        headers.extend(exchange.last_event.map(|id| ("last-event-id", id)));
        headers.extend(session.as_deref().map(|session| (SESSION, session)));
        headers.extend(revision.map(|revision| (VERSION, revision.name())));
        if revision == Some(Revision::Stateless) && !exchange.method.is_empty() {
            headers.push((METHOD, exchange.method));
            headers.extend(exchange.tool.map(|tool| (NAME, tool)));
        }
        let configured = self.headers.iter();
        headers.extend(configured.map(|(name, value)| (name.as_str(), value.expose())));
        let outgoing = ClientRequest {
            method: exchange.http_method,
            url: exchange.address.unwrap_or(&self.url),
            headers: &headers,
            body: exchange.body,
            deadline: exchange.timeout.deadline,
            cancel: exchange.cancel,
        };
        self.http_client
            .exchange_within(&outgoing, Some(exchange.timeout.silence), read)
    }

    /// The error that an unsuccessful answer means.
    pub(super) fn refusal(
        &self,
        answer: &mut ClientResponse,
        method: &str,
    ) -> Result<CallError, Failure> {
        let status = answer.status();
        let body = match answer.read_all(ERROR_BYTES) {
            Ok(body) => body,
            Err(ClientError::TooLarge(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let text = String::from_utf8_lossy(&body);
        let text = text.trim();
        let has_session = self.state().session.is_some() && method != INITIALIZE;
        let names_session = text.to_ascii_lowercase().contains("session");
        // The program that prints it has a newer one by now.
        if status == 401 && self.has_token && method != INITIALIZE {
            return Ok(CallError::SessionLost);
        }
        if has_session && (status == 404 || (status == 400 && names_session)) {
            return Ok(CallError::SessionLost);
        }
        if let Some(refusal) = message::refusal(&body) {
            return Ok(CallError::Refused(refusal));
        }
        if let 401 | 403 = status {
            return Ok(CallError::Unusable(format!(
                "it refused the request with status {status}; a key goes into \"headers\", such as \
                 Authorization"
            )));
        }
        let mut said = format!("it answered with status {status}");
        if !text.is_empty() {
            said.push_str(&format!(": {}", shorten(text, ERROR_CHARS)));
        }
        // A gateway says so, too, when the server behind it broke off.
        Ok(match status {
            500.. => CallError::Broken(said),
            _ => CallError::Unusable(said),
        })
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
                Some(message) => Exchange {
                    method: "subscriptions/listen",
                    ..Exchange::post(None, message, timeout, stop)
                },
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
                    return peer.close(&CallError::SessionLost.to_string());
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

pub(super) fn is_event_stream(answer: &ClientResponse) -> bool {
    answer
        .header("content-type")
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}

fn time_left(until: Instant) -> Result<Duration, ClientError> {
    until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or(ClientError::TimedOut)
}

/// The body of an answer as a stream of events, with a deadline that each report of progress extends.
/// Comments that keep the connection alive do not.
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
