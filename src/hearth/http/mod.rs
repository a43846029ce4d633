//! HTTP routes: authentication, machine registration, health (contract section
//! 4.2), and which web pages may use them (protocol section 3).
//!
//! The route and the configuration are found once per request, from its head. The
//! path of a request:
//!
//! ```text
//! Router::admit -> route::find -> origin::check -> Route::check_head, access::asker
//!                  or Incoming::admit -> (the body is read) -> Admitted::respond
//!     -> the handler in the table of paths
//!      | Incoming::accept -> Service::accept_webhook -> (waits) -> Answer::Confirmed
//!     -> finish
//! ```
//!
//! The modules above add the web front end ([`Pages`]) and a relay in the same server
//! ([`Relay`]). All paths that are not in the table (`route`) belong to the webhook
//! channel.

mod attachments;
mod authentication;
mod disposition;
mod events;
pub(crate) mod extension;
mod health;
pub mod origin;
mod registration;
mod route;
mod transfer;
mod trust;
mod upgrade;
mod welcome;

use std::borrow::Cow;
use std::sync::Arc;

use crate::service::Service;
use crate::webhook::incoming::Incoming;
use base::error::{Error, Result};
use config::Config;
use net::client_handler::HandlerFactory;
use net::http::{Admitted, Answer, Handler, Head, Refusal, Response};

use crate::api::access::{self, Exchange};
use extension::Context;
pub use extension::{OwnMachine, Pages, Relay, RouterExtensions};
pub use route::Serves;
use route::{Guard, Handler as RouteHandler, Route};
use upgrade::Target;

/// Answers the HTTP requests of one kind of listener.
pub struct Router {
    service: Arc<Service>,
    webhooks: Incoming,
    serves: Serves,
    extensions: RouterExtensions,
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

    fn route(&self, path: &str, config: &Config) -> Option<&'static Route> {
        route::find(path, self.serves, config, self.extensions.relay.is_some())
    }

    fn admission(
        &self,
        route: Option<&'static Route>,
        head: &Head,
        config: &Arc<Config>,
    ) -> Result<Admitted<'_>, Response> {
        let refusal = route.map_or(Response::error as Refusal, |route| route.guard.refusal());
        check_origin(head, config).map_err(|error| refusal(&error))?;
        let Some(route) = route else {
            let refused = |refusal| match self.serves {
                Serves::Everything => welcome::nothing_here(head, refusal),
                Serves::WebhooksOnly => refusal,
            };
            return self.webhooks.admit(head, config).map_err(refused);
        };
        if is_preflight(route, head, config) {
            let asked = head.header("access-control-request-headers");
            let asked = asked.unwrap_or_default().to_owned();
            return Ok(Admitted::new(0, move |_| {
                Answer::Now(preflight(route, &asked))
            }));
        }
        route.check_head(head, config)?;
        let body_bytes = route.body_bytes(head, &config.limits);
        let service = &self.service;
        let refused = move |error: Error| Answer::Now(refusal(&error));
        let admitted = match route.handler {
            RouteHandler::Nothing => return Err(route.nothing_here(head)),
            RouteHandler::Streamed(admit) => admit(service, head, config)?,
            RouteHandler::Whole(answer) => {
                let config = Arc::clone(config);
                Admitted::new(body_bytes, move |request| {
                    let context = Context {
                        service,
                        config: &config,
                        extensions: &self.extensions,
                        request,
                    };
                    answer(&context).unwrap_or_else(refused)
                })
            }
            RouteHandler::Program(answer) => {
                let may_lack_token = route.guard == Guard::Ollama;
                let asker = access::asker(service, config, head, may_lack_token)
                    .map_err(|error| refusal(&error))?;
                let config = Arc::clone(config);
                Admitted::new(body_bytes, move |request| {
                    let exchange = Exchange {
                        service,
                        config: &config,
                        asker,
                        request,
                    };
                    answer(exchange).unwrap_or_else(refused)
                })
            }
        };
        Ok(match route.guard.is_of_programs() {
            true => {
                let named = (access::REQUEST_ID, access::request_id(head));
                admitted.refusing_as(refusal, Some(named))
            }
            false => admitted,
        })
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
fn is_preflight(route: &Route, head: &Head, config: &Config) -> bool {
    head.method == "OPTIONS"
        && route.guard.is_private()
        && head.header("access-control-request-method").is_some()
        && origin::listed(head, &config.allowed_origins).is_some()
}

/// Adds the headers that depend on where the response goes.
fn finish(route: Option<&Route>, head: &Head, config: &Config, mut response: Response) -> Response {
    if route.is_some_and(|route| route.guard.is_private()) {
        response.add("Cache-Control", "no-store");
    }
    if response.status == 401 {
        // Required by RFC 9110 section 15.5.2. No registered scheme fits a webhook's secret.
        let challenge = route.map_or("X-Service-Secret", |_| "Bearer");
        response.add("WWW-Authenticate", challenge);
    }
    if route.is_some_and(|route| route.guard.is_of_programs()) {
        response.add(access::REQUEST_ID, access::request_id(head));
    }
    origin::share(head, config, &mut response);
    response
}

/// The answer to a CORS-preflight request for these headers: a page that may use the
/// server may send any.
fn preflight(route: &Route, asked: &str) -> Response {
    let headers = [
        ("Access-Control-Allow-Methods", Cow::Borrowed(route.methods)),
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
        let config = self.service.settings.current();
        let route = self.route(&head.path, &config);
        let admitted = self
            .admission(route, head, &config)
            .map_err(|response| finish(route, head, &config, response))?;
        Ok(admitted.map(move |head, response| finish(route, head, &config, response)))
    }

    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response> {
        let refused = |error: Error| Response::error(&error);
        let config = self.service.settings.current();
        if self.serves == Serves::WebhooksOnly || head.path != "/ws" {
            let error = Error::not_found("WebSocket connections are accepted at /ws");
            return Err(refused(error));
        }
        let own = self.service.relays.machine_id();
        let target = Target::by(head.query.as_deref(), own);
        // Any page may use a relay whose token it holds.
        if self.extensions.relay.is_none() || target == Target::Us {
            check_origin(head, &config).map_err(refused)?;
        }
        let handler = upgrade::lead(head, target, self.extensions.relay.as_deref())?;
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
            let route = route::find("/auth", Serves::Everything, &listed, false).unwrap();
            let mut response = preflight(route, "x-a");
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
