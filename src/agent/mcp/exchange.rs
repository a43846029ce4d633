//! One exchange with a server on the network: its headers, and what a refusal means.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::call::{CallError, INITIALIZE, ReadTimeout};
use super::message;
use super::session::Revision;
use crate::tools::output::shorten;
use base::language::Said;
use base::secret::Secret;
use base::sync::lock;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientRequest, ClientResponse, HttpClient};
use net::tls::Trust;

/// How long an idle connection is kept: less than the 5 seconds after which common servers
/// close theirs, so that a call does not meet one that is being closed.
const IDLE_AGE: Duration = Duration::from_secs(4);
/// Most bytes of an error's body that are read, and characters that are shown.
pub(super) const ERROR_BYTES: usize = 64 * 1024;
const ERROR_CHARS: usize = 300;
const VERSION: &str = "mcp-protocol-version";
pub(super) const SESSION: &str = "mcp-session-id";
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

/// What requests and the listening thread share.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) url: String,
    headers: Vec<(String, Secret)>,
    /// Whether `headers` has a token that may expire.
    has_token: bool,
    http_client: HttpClient,
    state: Mutex<SessionState>,
}

#[derive(Default)]
pub(super) struct SessionState {
    /// The session's id, if the server gave one.
    pub(super) session: Option<String>,
    pub(super) revision: Option<Revision>,
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
    pub(super) fn new(
        http_method: &'a str,
        timeout: ReadTimeout,
        cancel: &'a Cancel,
    ) -> Exchange<'a> {
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

    /// The same, which says in its headers what is called.
    pub(super) fn naming(self, method: &'a str, tool: Option<&'a str>) -> Exchange<'a> {
        Exchange {
            method,
            tool,
            ..self
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
            ClientError::Refused(_) => CallError::Closed(error.said()),
            ClientError::Unreachable(_)
            | ClientError::Exhausted
            | ClientError::Forbidden(_)
            | ClientError::Address(_) => CallError::Unusable(error.said()),
            error => CallError::Broken(error.said()),
        }
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

    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
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
            let status = status.to_string();
            return Ok(CallError::Unusable(Said::of(
                "mcp.refused",
                &[("status", &status)],
            )));
        }
        let mut said = Said::of("mcp.status", &[("status", &status.to_string())]);
        if !text.is_empty() {
            let detail = shorten(text, ERROR_CHARS);
            said = (Said::of("error.detail", &[]).with("said", said)).with("detail", detail);
        }
        // A gateway says so, too, when the server behind it broke off.
        Ok(match status {
            500.. => CallError::Broken(said),
            _ => CallError::Unusable(said),
        })
    }
}

/// Whether an answer is a stream of events.
pub(super) fn is_event_stream(answer: &ClientResponse) -> bool {
    answer
        .header("content-type")
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
}
