//! The HTTP client of model servers, custom tools, web pages, callbacks and the
//! command line: kept connections, and an absolute deadline for each request.
//!
//! One [`HttpClient`] keeps a short list of idle connections, each in its own
//! ureq agent. The hook of a request's [`Cancel`] shuts its agent down, which
//! breaks the socket call under way and leaves other requests alone. After a
//! failure or a stop the connection is closed.
//!
//! ```text
//! HttpClient::exchange -> take, or connect -> Connection::send
//!     -> CachingResolver::resolve (checks addresses) -> connector::connect_by
//!     -> ClientResponse::read, read_all -> put_back
//! ```

mod connector;
mod error;
pub mod form;
mod own_network;
mod resolver;
mod response;
#[cfg(any(test, feature = "testing"))]
#[expect(missing_docs, reason = "only tests use it")]
pub mod test_server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ureq::http::{HeaderValue, Method, Request, Uri};
use ureq::{Agent, AsSendBody, Proxy, ProxyProtocol, SendBody};

use base::address::is_local_host;
use base::sync::lock;

use crate::cancel::Cancel;
use connector::{ReadLimit, connect_by};
pub use error::ClientError;
pub use own_network::is_own_network;
pub use resolver::AddressCheck;
use resolver::CachingResolver;
pub use response::ClientResponse;

use crate::tls::Trust;

/// Most bytes of a whole answer that callers should read.
pub const BODY_LIMIT: usize = 10 * 1024 * 1024;
/// Idle connections that are kept, over all servers.
const IDLE_AGENTS: usize = 16;
/// How long an idle connection is kept by default.
const IDLE_AGE: Duration = Duration::from_secs(90);
/// Default limit for looking a name up, and then again for connecting (TLS
/// included).
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// For one write to make progress.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// Buffers of one connection, each way: ureq's own default is 128 KiB.
const BUFFER_BYTES: usize = 16 * 1024;
const HEAD_BYTES: usize = 32 * 1024;

/// A request to send.
pub struct ClientRequest<'a> {
    /// `GET`, `POST`, `PROPFIND`, ...
    pub method: &'a str,
    /// `http` or `https`, absolute.
    pub url: &'a str,
    /// Beside `host`, `user-agent`, `accept-encoding` and the length, which are
    /// set here.
    pub headers: &'a [(&'a str, &'a str)],
    /// Sent whole, with its length; `None` sends no body.
    pub body: Option<&'a [u8]>,
    /// When the whole exchange must be over, the body of the answer included.
    pub deadline: Instant,
    /// Breaks the exchange from another thread.
    pub cancel: &'a Cancel,
}

/// Sends requests and keeps connections. Shared by threads; dropping it closes
/// what is kept.
pub struct HttpClient {
    idle: Mutex<Vec<Connection>>,
    /// The certificates that are accepted, for all agents.
    trust: Trust,
    proxy: Option<Proxy>,
    address_check: Option<AddressCheck>,
    connect_limit: Duration,
    idle_age: Duration,
}

/// An agent and what it is connected to.
struct Connection {
    agent: Agent,
    read_limit: Arc<ReadLimit>,
    /// Scheme, host and port.
    origin: String,
    used_at: Instant,
    /// Whether it has answered a request before.
    used: bool,
}

impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient::new()
    }
}

impl HttpClient {
    /// Nothing is opened or allocated before the first request. Addresses outside
    /// the local network are reached through the HTTP proxy that the environment
    /// names, if it names one (`HTTPS_PROXY`, `NO_PROXY`, ...).
    pub fn new() -> HttpClient {
        let proxy = Proxy::try_from_env().filter(|proxy| {
            let usable = matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
            if !usable {
                log::warn!("the proxy of the environment is not an HTTP proxy and is not used");
            }
            usable
        });
        HttpClient {
            proxy,
            ..HttpClient::without_proxy()
        }
    }

    /// A client that uses no proxy, whatever the environment says.
    pub fn without_proxy() -> HttpClient {
        HttpClient {
            idle: Mutex::default(),
            trust: Trust::default(),
            proxy: None,
            address_check: None,
            connect_limit: CONNECT_LIMIT,
            idle_age: IDLE_AGE,
        }
    }

    /// A client that connects to no address which `address_check` refuses,
    /// whatever name resolved to it: such a request fails with
    /// [`ClientError::Forbidden`]. It uses no proxy, because a proxy would look
    /// the name up again.
    pub fn checking(address_check: AddressCheck) -> HttpClient {
        HttpClient {
            address_check: Some(address_check),
            ..HttpClient::without_proxy()
        }
    }

    /// Gives a lookup, and then a connection (TLS included), no more than `limit`
    /// each. Default: 10 seconds.
    pub fn connecting_within(mut self, limit: Duration) -> HttpClient {
        self.connect_limit = limit;
        self
    }

    /// Keeps idle connections for `age`. Default: 90 seconds.
    pub fn keeping_idle(mut self, age: Duration) -> HttpClient {
        self.idle_age = age;
        self
    }

    /// Accepts the certificates that `trust` accepts, instead of those of the
    /// public authorities.
    pub fn trusting(mut self, trust: Trust) -> HttpClient {
        self.trust = trust;
        self
    }

    /// Sends a request and lets `read` take what it wants of the answer. Until
    /// `read` returns, `request.cancel` breaks whatever the two wait for.
    ///
    /// No redirect is followed, nothing is sent twice, and every status is an
    /// answer, not an error.
    ///
    /// # Errors
    /// Why there is no answer, or what `read` returns.
    pub fn exchange<T, E: From<ClientError>>(
        &self,
        request: &ClientRequest<'_>,
        read: impl FnOnce(&mut ClientResponse) -> Result<T, E>,
    ) -> Result<T, E> {
        self.exchange_within(request, None, read)
    }

    /// [`HttpClient::exchange`] in which each read waits no longer than `silence`,
    /// also before the first byte of the answer: [`ClientError::Silent`].
    ///
    /// # Errors
    /// As [`HttpClient::exchange`].
    pub fn exchange_within<T, E: From<ClientError>>(
        &self,
        request: &ClientRequest<'_>,
        silence: Option<Duration>,
        read: impl FnOnce(&mut ClientResponse) -> Result<T, E>,
    ) -> Result<T, E> {
        if request.cancel.is_cancelled() {
            return Err(ClientError::Cancelled.into());
        }
        let uri: Uri = request
            .url
            .parse()
            .map_err(|error| ClientError::Address(format!("{error}")))?;
        let mut connection = self.take(&uri)?;
        let agent = connection.agent.clone();
        let mut ended = false;
        let result = request.cancel.guard(
            move || agent.shutdown(),
            || {
                let mut answer = connection.send(request, uri, silence)?;
                let result = read(&mut answer);
                ended = answer.ended;
                result
            },
        );
        // The hook may have been taken and not yet run: then it would shut the
        // agent down under its next user.
        let cancelled = request.cancel.is_cancelled();
        match result {
            Err(_) if cancelled => Err(ClientError::Cancelled.into()),
            result => {
                if ended && !cancelled {
                    self.put_back(connection);
                }
                result
            }
        }
    }

    fn take(&self, uri: &Uri) -> Result<Connection, ClientError> {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(ClientError::Address("it has no host".to_owned()));
        };
        if !matches!(scheme, "http" | "https") {
            return Err(ClientError::Address(
                "it must begin with http:// or https://".to_owned(),
            ));
        }
        let origin = format!("{scheme}://{authority}");
        let mut idle = lock(&self.idle);
        idle.retain(|connection| connection.used_at.elapsed() < self.idle_age);
        if let Some(place) = idle
            .iter()
            .rposition(|connection| connection.origin == origin)
        {
            return Ok(idle.swap_remove(place));
        }
        drop(idle);
        Ok(self.connect(origin, authority.host()))
    }

    fn connect(&self, origin: String, host: &str) -> Connection {
        let read_limit = Arc::new(ReadLimit::default());
        let proxy = self.proxy.clone().filter(|_| !is_local_host(host));
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // Those of WebDAV.
            .allow_non_standard_methods(true)
            .user_agent(concat!("hearth/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .proxy(proxy)
            .no_delay(true)
            .timeout_resolve(Some(self.connect_limit))
            .timeout_connect(Some(self.connect_limit))
            .timeout_per_write(Some(WRITE_LIMIT))
            .max_response_header_size(HEAD_BYTES)
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .max_idle_age(self.idle_age)
            .build();
        let connector = connect_by(self.trust.clone(), Arc::clone(&read_limit));
        Connection {
            agent: Agent::with_parts(
                config,
                connector,
                CachingResolver::checking(self.address_check.clone()),
            ),
            read_limit,
            origin,
            used_at: Instant::now(),
            used: false,
        }
    }

    fn put_back(&self, mut connection: Connection) {
        connection.used = true;
        connection.used_at = Instant::now();
        let mut idle = lock(&self.idle);
        if idle.len() >= IDLE_AGENTS {
            let oldest = (0..idle.len()).min_by_key(|&place| idle[place].used_at);
            oldest.map(|place| idle.swap_remove(place));
        }
        idle.push(connection);
    }
}

impl Connection {
    fn send(
        &mut self,
        request: &ClientRequest<'_>,
        uri: Uri,
        silence: Option<Duration>,
    ) -> Result<ClientResponse, ClientError> {
        let left = request
            .deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or(ClientError::TimedOut)?;
        self.read_limit.set(silence);
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|error| ClientError::Address(format!("{error}")))?;
        let mut head = Request::builder().method(method).uri(uri);
        for (name, value) in request.headers {
            // From bytes, since a value may hold more than ASCII (RFC 9110, 5.5).
            let mut value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| ClientError::Address(format!("the header {name:?}")))?;
            // Some hold secrets; none belongs into a log.
            value.set_sensitive(true);
            head = head.header(*name, value);
        }
        let (mut body, mut none) = (request.body, ());
        let body = match &mut body {
            Some(bytes) => bytes.as_body(),
            None => none.as_body(),
        };
        let request = head.body(body).map_err(ureq::Error::from);
        let response = request.and_then(|request| self.run(request, left));
        let response = response.map_err(|error| {
            let error = ClientError::from_ureq(error, &self.read_limit);
            error.on_connection(self.used)
        })?;
        let (head, body) = response.into_parts();
        Ok(ClientResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.into_reader(),
            read_limit: Arc::clone(&self.read_limit),
            ended: false,
        })
    }

    fn run(
        &self,
        request: Request<SendBody<'_>>,
        left: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(Some(left))
            .build();
        self.agent.run(request)
    }
}

#[cfg(test)]
mod tests;
