//! Servers on the network: Streamable HTTP (MCP specification, transports). Each
//! message is a POST to one address; the answer is JSON, or an event stream that
//! contains it. Notifications come on a separate stream, if the server offers one, which
//! a thread reads.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::message::{self, MESSAGE_BYTES};
use super::peer::{CallError, Outcome, Peer, ReadTimeout};
use super::transport::{Call, Revision, Transport};
use crate::provider::event_stream::{EventStream, Source};
use crate::tool::output::shorten;
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
/// Most bytes of an error's body that are read, and characters that are shown.
const ERROR_BYTES: usize = 64 * 1024;
const ERROR_CHARS: usize = 300;

const VERSION: &str = "mcp-protocol-version";
const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
/// Headers that the protocol sets, so the configuration cannot.
const OWN_HEADERS: [&str; 8] = [
    "accept",
    "content-type",
    "content-length",
    "host",
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
    pub(super) http_method: &'a str,
    /// If not the server's one address.
    pub(super) address: Option<&'a str>,
    /// The JSON-RPC method; empty where there is none.
    pub(super) method: &'a str,
    pub(super) tool: Option<&'a str>,
    pub(super) body: Option<&'a [u8]>,
    pub(super) timeout: ReadTimeout,
    pub(super) cancel: &'a Cancel,
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
    fn request(&self, peer: &Peer, request: Call<'_>) -> Outcome {
        let (_, receiver) = peer.expect(request.id);
        let mut outcome = self.shared.request(peer, &request, &receiver);
        peer.forget(request.id);
        if let Err(CallError::Unusable(_)) = &outcome
            && request.method == "initialize"
            && self.shared.is_of_older_revision(request.cancel)
        {
            outcome = Err(CallError::OlderTransport);
        }
        match &outcome {
            Err(CallError::Closed(reason)) => peer.close(reason),
            Err(CallError::SessionLost) => peer.close(&CallError::SessionLost.to_string()),
            Err(CallError::Cancelled | CallError::Silent(_) | CallError::TimedOut)
                if request.method != "initialize" && !self.shared.is_stateless() =>
            {
                // Without sessions, a closed connection is the cancellation.
                self.notify(message::cancelled(request.id, "nobody waits any more"));
            }
            _ => {}
        }
        outcome
    }

    fn notify(&self, message: Vec<u8>) {
        self.shared.notify(&message);
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
            self.shared.end_session();
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
            http_client: HttpClient::new().trusting(trust),
            state: Mutex::default(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    fn is_stateless(&self) -> bool {
        self.state().revision == Some(Revision::Stateless)
    }

    fn request(&self, peer: &Peer, request: &Call<'_>, receiver: &Receiver<Outcome>) -> Outcome {
        let exchange = Exchange {
            http_method: "POST",
            address: None,
            method: request.method,
            tool: request.tool,
            body: Some(&request.message),
            timeout: request.timeout,
            cancel: request.cancel,
        };
        let read = |answer: &mut ClientResponse| {
            let status = answer.status();
            if !(200..300).contains(&status) {
                return Err(Failure::Call(self.refusal(answer, request.method)?));
            }
            if request.method == "initialize" {
                self.state().session = answer.header(SESSION).map(str::to_owned);
            }
            if is_event_stream(answer) {
                self.read_events(
                    answer,
                    peer,
                    &exchange.timeout,
                    Some((request.id, receiver)),
                )?;
            } else {
                let body = answer.read_all(MESSAGE_BYTES)?;
                for incoming in message::read(&body).into_iter().flatten() {
                    peer.receive(incoming);
                }
            }
            receiver
                .try_recv()
                .map_err(|_| Failure::Call(CallError::Unusable("it gave no answer".to_owned())))
        };
        let mut result = self.exchange(&exchange, read);
        if let Err(Failure::Connection(ClientError::Interrupted { stale: true, .. })) = result {
            // The server had closed the idle connection, and has not seen this.
            result = self.exchange(&exchange, read);
        }
        match result {
            Ok(outcome) => outcome,
            Err(Failure::Call(error)) => Err(error),
            Err(Failure::Connection(error)) => Err(match error {
                ClientError::Cancelled => CallError::Cancelled,
                ClientError::Silent(_) | ClientError::TimedOut => request.timeout.exceeded(),
                ClientError::TooLarge(_) | ClientError::Address(_) => {
                    CallError::Unusable(error.to_string())
                }
                error => CallError::Closed(error.to_string()),
            }),
        }
    }

    /// Sends a message that has no answer.
    fn notify(&self, message: &[u8]) {
        let exchange = Exchange {
            http_method: "POST",
            address: None,
            method: "",
            tool: None,
            body: Some(message),
            timeout: ReadTimeout::within(NOTIFY_LIMIT),
            cancel: &Cancel::default(),
        };
        self.send_off(&exchange);
    }

    fn end_session(&self) {
        let exchange = Exchange {
            http_method: "DELETE",
            address: None,
            method: "",
            tool: None,
            body: None,
            timeout: ReadTimeout::within(CLOSE_LIMIT),
            cancel: &Cancel::default(),
        };
        self.send_off(&exchange);
    }

    fn send_off(&self, exchange: &Exchange<'_>) {
        let sent = self.exchange(exchange, |answer| {
            answer.read_all(ERROR_BYTES)?;
            Ok(answer.status())
        });
        match sent {
            Ok(200..300) => {}
            // A server may not end sessions (405), or have ended this one (404).
            Ok(status) => log::debug!("mcp {}: answered with status {status}", self.name),
            Err(Failure::Connection(error)) => log::debug!("mcp {}: {error}", self.name),
            Err(Failure::Call(error)) => log::debug!("mcp {}: {error}", self.name),
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
        let mut headers: Vec<(&str, &str)> = vec![(
            "accept",
            match exchange.http_method {
                "GET" => "text/event-stream",
                _ => "application/json, text/event-stream",
            },
        )];
        if exchange.body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        if let Some(session) = &session {
            headers.push((SESSION, session));
        }
        if let Some(revision) = revision {
            headers.push((VERSION, revision.name()));
            if revision == Revision::Stateless && !exchange.method.is_empty() {
                headers.push((METHOD, exchange.method));
                headers.extend(exchange.tool.map(|tool| (NAME, tool)));
            }
        }
        for (name, value) in &self.headers {
            headers.push((name, value.expose()));
        }
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
        let has_session = self.state().session.is_some() && method != "initialize";
        let names_session = text.to_ascii_lowercase().contains("session");
        // The program that prints it has a newer one by now.
        if status == 401 && self.has_token && method != "initialize" {
            return Ok(CallError::SessionLost);
        }
        if has_session && (status == 404 || (status == 400 && names_session)) {
            return Ok(CallError::SessionLost);
        }
        if let Some(refusal) = message::refusal(&body) {
            return Ok(CallError::Refused(refusal));
        }
        let shown = shorten(text, ERROR_CHARS);
        Ok(CallError::Unusable(match status {
            401 | 403 => format!(
                "it refused the request with status {status}; a key goes into \"headers\", such as \
                 Authorization"
            ),
            _ if shown.is_empty() => format!("it answered with status {status}"),
            _ => format!("it answered with status {status}: {shown}"),
        }))
    }

    /// Reads a stream of events until it ends, or until the request has its
    /// outcome.
    pub(super) fn read_events(
        &self,
        answer: &mut ClientResponse,
        peer: &Peer,
        timeout: &ReadTimeout,
        request: Option<(u64, &Receiver<Outcome>)>,
    ) -> Result<(), Failure> {
        let until = Cell::new(timeout.until(Instant::now()));
        let mut source = ProgressSource {
            answer,
            until: &until,
        };
        let mut events = EventStream::new(&mut source);
        while let Some(event) = events.next()? {
            for incoming in message::read(event.data).into_iter().flatten() {
                if let Some(answer) = peer.receive(incoming) {
                    self.notify(&answer);
                }
            }
            if let Some((id, receiver)) = request {
                if !receiver.is_empty() {
                    break;
                }
                if let Some(last_activity) = peer.last_activity(id) {
                    until.set(timeout.until(last_activity));
                }
            }
        }
        drop(events);
        answer.finish();
        Ok(())
    }
}

pub(super) fn is_event_stream(answer: &ClientResponse) -> bool {
    answer
        .header("content-type")
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}

/// The body of an answer as a stream of events, with a deadline that each report of progress extends.
/// Comments that keep the connection alive do not.
struct ProgressSource<'a> {
    answer: &'a mut ClientResponse,
    until: &'a Cell<Instant>,
}

impl Source for ProgressSource<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ClientError> {
        let left = self
            .until
            .get()
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(ClientError::TimedOut)?;
        self.answer.limit_silence(left);
        self.answer.read(buffer)
    }
}
