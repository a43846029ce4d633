//! What the modules above add to the router.

use std::sync::Arc;

use config::Config;
use net::client_handler::HandlerFactory;
use net::http::{Admitted, Head, Refusal, Request, Response};

/// The web front end: answers GET and HEAD of `/`, `/help` and all below
/// `/assets/`.
pub trait Pages: Send + Sync {
    /// The response; its body is left out for HEAD on the wire.
    fn page(&self, head: &Head) -> Response;
}

/// A relay in the same server: takes the connections to other machines.
pub trait Relay: Send + Sync {
    /// Opens a WebSocket that names another machine, or a machine's link.
    ///
    /// # Errors
    /// The response that refuses it.
    fn open(&self, head: &Head) -> Result<HandlerFactory, Response>;

    /// Whether a registration is the relay's to answer: it is at /register, or
    /// carries the relay's token.
    fn takes(&self, head: &Head) -> bool;

    /// Answers a registration.
    ///
    /// # Errors
    /// `invalid_token`, `invalid_request`.
    fn register(&self, request: &Request) -> base::error::Result<Response>;
}

/// This machine, for clients that connect to it directly and name and encrypt as
/// they would through a relay.
pub trait OwnMachine: Send + Sync {
    /// Opens a WebSocket that names this machine; none while it has no key.
    fn open(&self) -> Option<HandlerFactory>;
}

/// Answers further paths, beside those of webhook accounts.
pub trait Extension: Send + Sync {
    /// Whether it answers this path under this configuration.
    fn serves(&self, path: &str, config: &Config) -> bool;

    /// Looks at a head, as [`Handler::admit`](net::http::Handler::admit).
    ///
    /// # Errors
    /// The response that refuses it.
    fn admit<'a>(&'a self, head: &Head, config: &Arc<Config>) -> Result<Admitted<'a>, Response>;

    /// How requests of this path are refused before and after that: for the page that they
    /// come from, and for their bodies.
    fn refusal(&self, _path: &str) -> Refusal {
        Response::error
    }
}
