//! HTTP routes: authentication, machine registration, health (contract section
//! 4.2), and which web pages may use them (protocol section 3).
//!
//! Every request passes twice: [`Router::admit`] sees its head and refuses what
//! can be refused before a byte of the body is read, [`Router::respond`] answers
//! it. What stands above this room is led to by traits: the web front end
//! ([`Pages`]), a relay in the same server ([`Relay`]), further paths such as
//! /metrics ([`Extension`]). All other paths are the webhook channel's.

pub mod authentication;
mod health;
mod origin;
pub mod registration;
mod route;
pub mod upgrade;
mod welcome;

use std::borrow::Cow;
use std::sync::Arc;

use crate::service::Service;
use base::error::{Error, Result};
use net::client_handler::HandlerFactory;
use net::http::{Answer, Handler, Head, Request, Response};
use route::Route;

pub use net::http::checks::upgrade_required;

/// What a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Everything.
    Everything,
    /// Webhooks and /health: the webhook channel's own port, which may be
    /// exposed without exposing the rest.
    WebhooksOnly,
}

/// Answers GET and HEAD of `/` and of what is below `/assets/`: the web front
/// end, which stands above this room.
pub trait Pages: Send + Sync {
    /// The response; its body is left out for HEAD on the wire.
    fn page(&self, head: &Head) -> Response;
}

/// A relay in the same server, which stands above this room: takes what is
/// meant for other machines.
pub trait Relay: Send + Sync {
    /// Opens a WebSocket that names another machine, or that a machine links
    /// with.
    fn open(&self, head: &Head) -> Result<HandlerFactory, Response>;

    /// Whether a registration is the relay's to answer: it is at /register, or
    /// carries the relay's token.
    fn takes(&self, head: &Head) -> bool;

    /// Answers a registration.
    fn register(&self, request: &Request) -> Result<Response>;
}

/// This machine as clients name it that may reach it through a relay too. What
/// encrypts for it stands above this room.
pub trait OwnMachine: Send + Sync {
    /// Opens a WebSocket that names this machine; none while it has no key.
    fn open(&self) -> Option<HandlerFactory>;
}

/// Paths that rooms above this one answer, beside those of webhook accounts.
pub trait Extension: Handler {
    /// Whether this path leads here, under the configuration now in force.
    fn serves(&self, path: &str) -> bool;
}

/// Answers the HTTP requests of one kind of listener.
pub struct Router {
    service: Arc<Service>,
    webhooks: Box<dyn Handler>,
    serves: Serves,
    pages: Option<Arc<dyn Pages>>,
    relay: Option<Arc<dyn Relay>>,
    own_machine: Option<Arc<dyn OwnMachine>>,
    extensions: Vec<Arc<dyn Extension>>,
}

impl Router {
    /// A router over `service`. `webhooks` answers the paths of the webhook
    /// accounts and refuses unknown ones.
    pub fn new(service: Arc<Service>, webhooks: Box<dyn Handler>, serves: Serves) -> Router {
        Router {
            service,
            webhooks,
            serves,
            pages: None,
            relay: None,
            own_machine: None,
            extensions: Vec::new(),
        }
    }

    /// Serves the web front end, in place of the plain page.
    pub fn with_pages(mut self, pages: Option<Arc<dyn Pages>>) -> Router {
        self.pages = pages;
        self
    }

    /// Is a relay for other machines too.
    pub fn with_relay(mut self, relay: Option<Arc<dyn Relay>>) -> Router {
        self.relay = relay;
        self
    }

    /// Is talked to by its own machine_id as through a relay.
    pub fn with_own_machine(mut self, own_machine: Option<Arc<dyn OwnMachine>>) -> Router {
        self.own_machine = own_machine;
        self
    }

    /// Serves further paths. Where several serve one, the first does.
    pub fn with_extensions(mut self, extensions: Vec<Arc<dyn Extension>>) -> Router {
        self.extensions = extensions;
        self
    }

    fn route(&self, path: &str) -> Route {
        match Route::of(path, self.serves) {
            // Only a relay has it; elsewhere an account may.
            Route::Other if path == "/register" && self.is_relay() => Route::Registration,
            Route::Other if self.serves == Serves::Everything => self
                .extensions
                .iter()
                .position(|extension| extension.serves(path))
                .map_or(Route::Other, Route::Extension),
            route => route,
        }
    }

    fn is_relay(&self) -> bool {
        self.relay.is_some() && self.serves == Serves::Everything
    }

    /// Refuses the requests of foreign web pages.
    fn check_origin(&self, head: &Head) -> Result<()> {
        if head.header("origin").is_none() {
            return Ok(());
        }
        let config = self.service.settings().current();
        origin::check(head, &config.allowed_origins, &config.allowed_hosts)
    }

    fn admission(&self, route: Route, head: &Head) -> Result<usize, Response> {
        self.check_origin(head)
            .map_err(|error| Response::error(&error))?;
        match route {
            Route::Other => self.webhooks.admit(head),
            _ if self.is_preflight(route, head) => Ok(0),
            Route::Extension(place) => self.extensions[place].admit(head),
            _ => {
                route.judge(head)?;
                if route == Route::Registration {
                    // The token is looked up with the request; that there is
                    // one is checked here, so that no body is read for nothing.
                    net::http::checks::bearer(head).map_err(|error| Response::error(&error))?;
                }
                Ok(self.body_bytes(route))
            }
        }
    }

    /// Most bytes of a body. A DELETE may have one too: client libraries send
    /// an empty JSON object with it.
    fn body_bytes(&self, route: Route) -> usize {
        if route.is_private() {
            self.service.settings().current().limits.auth_body_bytes
        } else {
            0
        }
    }

    /// Whether a browser asks if a listed page from elsewhere may send a
    /// request (the Fetch standard's CORS-preflight request).
    fn is_preflight(&self, route: Route, head: &Head) -> bool {
        head.method == "OPTIONS"
            && route.is_private()
            && head.header("access-control-request-method").is_some()
            && origin::listed(head, &self.service.settings().current().allowed_origins).is_some()
    }

    fn answer(&self, route: Route, request: &Request) -> Result<Response> {
        let head = &request.head;
        match (route, head.method.as_str()) {
            (Route::Health, _) => Ok(health::respond(&self.service)),
            (Route::Welcome | Route::Asset, _) => match &self.pages {
                Some(pages) => Ok(pages.page(head)),
                None if route == Route::Welcome => Ok(welcome::respond()),
                None => Err(Error::not_found("this Hearth has no web front end")),
            },
            (route, "OPTIONS") if route.is_private() => Ok(preflight(route)),
            (Route::Authentication, "DELETE") => authentication::log_out(&self.service, head),
            (Route::Authentication, _) => authentication::log_in(&self.service, request),
            (Route::Registration, _) => {
                if let Some(relay) = self.relay.as_ref().filter(|relay| relay.takes(head)) {
                    return relay.register(request);
                }
                let config = self.service.settings().current();
                registration::register(&self.service, &config, request)
            }
            (Route::Socket, _) => Ok(upgrade_required()),
            (Route::Extension(place), _) => Ok(self.extensions[place].handle(request)),
            (Route::Other, _) => Ok(self.webhooks.handle(request)),
        }
    }

    /// Adds the headers that depend on where the response goes.
    fn finish(&self, route: Route, head: &Head, mut response: Response) -> Response {
        if route.is_private() {
            response
                .headers
                .push(("Cache-Control", Cow::Borrowed("no-store")));
            if response.status == 401 {
                // Demanded by RFC 9110 section 15.5.2.
                response
                    .headers
                    .push(("WWW-Authenticate", Cow::Borrowed("Bearer")));
            }
        }
        if head.header("origin").is_some() {
            let config = self.service.settings().current();
            share(head, &config.allowed_origins, &mut response);
        }
        response
    }
}

/// Lets a listed page from elsewhere read the response.
fn share(head: &Head, allowed_origins: &[String], response: &mut Response) {
    response.headers.push(("Vary", Cow::Borrowed("Origin")));
    if let Some(origin) = origin::listed(head, allowed_origins) {
        response
            .headers
            .push(("Access-Control-Allow-Origin", Cow::Owned(origin.to_owned())));
    }
}

/// The answer to a CORS-preflight request.
fn preflight(route: Route) -> Response {
    let headers = [
        ("Access-Control-Allow-Methods", route.methods()),
        (
            "Access-Control-Allow-Headers",
            "Authorization, Content-Type",
        ),
        ("Access-Control-Max-Age", "600"),
    ];
    Response {
        status: 204,
        headers: headers
            .map(|(name, value)| (name, Cow::Borrowed(value)))
            .into(),
        body: Cow::Borrowed(b""),
    }
}

impl Handler for Router {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        let route = self.route(&head.path);
        self.admission(route, head)
            .map_err(|response| self.finish(route, head, response))
    }

    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response> {
        let refused = |error: Error| Response::error(&error);
        if self.route(&head.path) != Route::Socket {
            let error = Error::not_found("WebSocket connections are taken at /ws");
            return Err(refused(error));
        }
        let own = self.service.relays().machine_id();
        // Any page may use a relay whose token it holds.
        if self.relay.is_none() || !upgrade::is_for_relay(head, own) {
            self.check_origin(head).map_err(refused)?;
        }
        let led = upgrade::lead(head, own, self.relay.as_deref())?;
        let own_machine = self.own_machine.as_ref();
        Ok(led.or_else(|| {
            own_machine
                .filter(|_| upgrade::names_machine(head))
                .and_then(|own_machine| own_machine.open())
        }))
    }

    fn handle(&self, request: &Request) -> Response {
        let route = self.route(&request.head.path);
        let response = self
            .answer(route, request)
            .unwrap_or_else(|error| Response::error(&error));
        self.finish(route, &request.head, response)
    }

    fn respond(&self, request: &Request) -> Answer {
        match self.route(&request.head.path) {
            Route::Extension(place) if request.head.method != "OPTIONS" => {
                self.extensions[place].respond(request)
            }
            _ => Answer::Now(self.handle(request)),
        }
    }

    fn sent(&self, receipt: &str, reached: bool) {
        self.webhooks.sent(receipt, reached);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    #[test]
    fn only_listed_pages_from_elsewhere_may_read_responses() {
        let listed = ["https://app.example".to_owned()];
        for (origin, shared) in [
            ("https://app.example", true),
            ("https://evil.example", false),
            ("http://localhost", false),
        ] {
            let head = head(
                "POST",
                "/auth",
                &[("host", "localhost"), ("origin", origin)],
            );
            let mut response = preflight(Route::Authentication);
            share(&head, &listed, &mut response);
            let granted = response
                .headers
                .contains(&("Access-Control-Allow-Origin", Cow::Borrowed(origin)));
            assert_eq!(granted, shared, "{origin}");
            assert!(
                response
                    .headers
                    .iter()
                    .all(|(name, _)| !name.contains("Credentials"))
            );
        }
    }
}
