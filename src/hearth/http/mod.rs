//! HTTP routes: authentication, machine registration, health (contract section
//! 4.2), and which web pages may use them (protocol section 3).
//!
//! The route and the configuration are found once per request, from its head. The
//! path of a request:
//!
//! ```text
//! Router::admit -> Route::of -> origin::check -> Route::check_head, Incoming::admit
//!                  or Extension::admit -> (the body is read) -> Admitted::respond
//!     -> authentication, registration, attachments, health, welcome, Pages
//!      | Incoming::accept -> Service::accept_webhook -> (waits) -> Answer::Confirmed
//!      | ModelApi, Metrics
//!     -> finish
//! ```
//!
//! The modules above add the web front end ([`Pages`]), a relay in the same server
//! ([`Relay`]) and further paths such as /metrics ([`Extension`]). All other paths
//! belong to the webhook channel.

mod attachments;
pub mod authentication;
mod disposition;
mod extension;
mod health;
pub mod origin;
pub mod registration;
mod route;
pub mod upgrade;
mod welcome;

use std::borrow::Cow;
use std::sync::Arc;

use crate::service::Service;
use crate::webhook::incoming::Incoming;
use base::error::{Error, Result};
use config::Config;
use net::client_handler::HandlerFactory;
use net::http::checks::{bearer, upgrade_required};
use net::http::{Admitted, Answer, Handler, Head, Request, Response};

pub use extension::{Extension, OwnMachine, Pages, Relay};
use route::Route;
pub use route::Serves;

/// Answers the HTTP requests of one kind of listener.
pub struct Router {
    service: Arc<Service>,
    webhooks: Incoming,
    serves: Serves,
    extensions: RouterExtensions,
}

/// What the modules above add to the router of every port.
#[derive(Clone)]
pub struct RouterExtensions {
    /// The web front end, in place of the plain page.
    pub pages: Option<Arc<dyn Pages>>,
    /// Makes the server a relay for other machines.
    pub relay: Option<Arc<dyn Relay>>,
    /// Lets clients name this machine as they would at a relay.
    pub own_machine: Option<Arc<dyn OwnMachine>>,
    /// Further paths. Where several serve one, the first does.
    pub paths: Vec<Arc<dyn Extension>>,
}

impl Router {
    /// A router over `service`. `webhooks` answers the paths of the webhook
    /// accounts and refuses unknown paths.
    pub fn new(
        service: Arc<Service>,
        webhooks: Incoming,
        serves: Serves,
        extensions: RouterExtensions,
    ) -> Router {
        Router {
            service,
            webhooks,
            serves,
            extensions,
        }
    }

    fn route(&self, path: &str, config: &Config) -> Route {
        match Route::of(path, self.serves) {
            // A relay's path; elsewhere a webhook account may have it.
            Route::Other if path == "/register" && self.is_relay() => Route::Registration,
            Route::Other if self.serves == Serves::Everything => self
                .extensions
                .paths
                .iter()
                .position(|extension| extension.serves(path, config))
                .map_or(Route::Other, Route::Extension),
            route => route,
        }
    }

    fn is_relay(&self) -> bool {
        self.extensions.relay.is_some() && self.serves == Serves::Everything
    }

    fn admission(
        &self,
        route: Route,
        head: &Head,
        config: &Arc<Config>,
    ) -> Result<Admitted<'_>, Response> {
        let refusal = match route {
            Route::Extension(place) => self.extensions.paths[place].refusal(&head.path),
            _ => Response::error,
        };
        check_origin(head, config).map_err(|error| refusal(&error))?;
        if is_preflight(route, head, config) {
            let asked = head.header("access-control-request-headers");
            let asked = asked.unwrap_or_default().to_owned();
            return Ok(Admitted::new(0, move |_| {
                Answer::Now(preflight(route, &asked))
            }));
        }
        match route {
            Route::Other => self.webhooks.admit(head, config),
            Route::Extension(place) => {
                let admitted = self.extensions.paths[place].admit(head, config)?;
                Ok(admitted.refusing_as(refusal))
            }
            _ => {
                route.check_head(head)?;
                if route == Route::Registration {
                    // The token is looked up with the complete request. Its
                    // presence is checked here, so that no body is read in vain.
                    bearer(head).map_err(|error| Response::error(&error))?;
                }
                match route {
                    Route::Attachments => return attachments::put(&self.service, head, config),
                    Route::Attachment => return attachments::get(&self.service, head),
                    _ => {}
                }
                let config = Arc::clone(config);
                let body_bytes = match route.is_private() {
                    // A DELETE may have a body too: client libraries send an
                    // empty JSON object with it.
                    true => config.limits.auth_body_bytes,
                    false => 0,
                };
                Ok(Admitted::new(body_bytes, move |request| {
                    let answer = self.answer(route, &config, request);
                    Answer::Now(answer.unwrap_or_else(|error| Response::error(&error)))
                }))
            }
        }
    }

    fn answer(&self, route: Route, config: &Config, request: &Request) -> Result<Response> {
        let head = &request.head;
        match (route, head.method.as_str()) {
            (Route::Health, _) => Ok(health::respond(&self.service)),
            // The page could not load its scripts under a name that is not allowed.
            (Route::Welcome, _) if origin::check_host(head, &config.allowed_hosts).is_err() => {
                Ok(welcome::unknown_name(head, &config.allowed_hosts))
            }
            (Route::Welcome | Route::Asset, _) => match &self.extensions.pages {
                Some(pages) => Ok(pages.page(head)),
                None if route == Route::Welcome => Ok(welcome::respond()),
                None => Err(Error::not_found("this Hearth has no web front end")),
            },
            (Route::Authentication, "DELETE") => authentication::log_out(&self.service, head),
            (Route::Authentication, _) => authentication::log_in(&self.service, request),
            (Route::Registration, _) => {
                match self
                    .extensions
                    .relay
                    .as_ref()
                    .filter(|relay| relay.takes(head))
                {
                    Some(relay) => relay.register(request),
                    None => registration::register(&self.service, config, request),
                }
            }
            (
                Route::Attachments
                | Route::Attachment
                | Route::Socket
                | Route::Extension(_)
                | Route::Other,
                _,
            ) => Ok(upgrade_required()),
        }
    }
}

/// Refuses the requests of foreign web pages.
fn check_origin(head: &Head, config: &Config) -> Result<()> {
    match head.header("origin") {
        Some(_) => origin::check(head, &config.allowed_origins, &config.allowed_hosts),
        None => Ok(()),
    }
}

/// Whether a browser asks if a listed page from elsewhere may send a request
/// (the Fetch standard's CORS-preflight request).
fn is_preflight(route: Route, head: &Head, config: &Config) -> bool {
    head.method == "OPTIONS"
        && route.is_private()
        && head.header("access-control-request-method").is_some()
        && origin::listed(head, &config.allowed_origins).is_some()
}

/// Adds the headers that depend on where the response goes.
fn finish(route: Route, head: &Head, config: &Config, mut response: Response) -> Response {
    if route.is_private() {
        response.add("Cache-Control", "no-store");
    }
    if response.status == 401 {
        // Required by RFC 9110 section 15.5.2. No registered scheme fits a webhook's secret.
        let challenge = match route {
            Route::Other => "X-Service-Secret",
            _ => "Bearer",
        };
        response.add("WWW-Authenticate", challenge);
    }
    origin::share(head, config, &mut response);
    response
}

/// The answer to a CORS-preflight request for these headers: a page that may use the
/// server may send any.
fn preflight(route: Route, asked: &str) -> Response {
    let headers = [
        (
            "Access-Control-Allow-Methods",
            Cow::Borrowed(route.methods()),
        ),
        ("Access-Control-Allow-Headers", Cow::Owned(asked.to_owned())),
        ("Access-Control-Max-Age", Cow::Borrowed("600")),
    ];
    Response {
        headers: headers.into(),
        ..Response::empty(204)
    }
}

impl Handler for Router {
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response> {
        let config = self.service.settings().current();
        let route = self.route(&head.path, &config);
        let admitted = self
            .admission(route, head, &config)
            .map_err(|response| finish(route, head, &config, response))?;
        Ok(admitted.map(move |head, response| finish(route, head, &config, response)))
    }

    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response> {
        let refused = |error: Error| Response::error(&error);
        let config = self.service.settings().current();
        if self.route(&head.path, &config) != Route::Socket {
            let error = Error::not_found("WebSocket connections are accepted at /ws");
            return Err(refused(error));
        }
        let own = self.service.relays().machine_id();
        // Any page may use a relay whose token it holds.
        if self.extensions.relay.is_none() || !upgrade::is_for_relay(head, own) {
            check_origin(head, &config).map_err(refused)?;
        }
        let handler = upgrade::lead(head, own, self.extensions.relay.as_deref())?;
        let own_machine = self.extensions.own_machine.as_ref();
        Ok(handler.or_else(|| {
            own_machine
                .filter(|_| upgrade::names_machine(head))
                .and_then(|own_machine| own_machine.open())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    #[test]
    fn only_listed_pages_from_elsewhere_may_read_responses() {
        let listed = Config {
            allowed_origins: vec!["https://app.example".to_owned()],
            ..Config::default()
        };
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
            let mut response = preflight(Route::Authentication, "x-a");
            origin::share(&head, &listed, &mut response);
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
