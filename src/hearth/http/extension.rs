//! What the modules above add to the router, and what handlers get.

use std::sync::Arc;

use crate::service::Service;
use config::Config;
use net::client_handler::HandlerFactory;
use net::http::{Head, Request, Response};
use net::listener::Admissions;

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

/// What the modules above add to the router of every port.
#[derive(Clone, Default)]
pub struct RouterExtensions {
    /// The web front end, in place of the plain page.
    pub pages: Option<Arc<dyn Pages>>,
    /// Makes the server a relay for other machines.
    pub relay: Option<Arc<dyn Relay>>,
    /// Lets clients name this machine as they would at a relay.
    pub own_machine: Option<Arc<dyn OwnMachine>>,
    /// Counts the connections, for the metrics.
    pub admissions: Option<Arc<Admissions>>,
}

/// A request and what it is answered with.
pub struct Context<'a> {
    pub service: &'a Arc<Service>,
    pub config: &'a Config,
    pub extensions: &'a RouterExtensions,
    pub request: &'a Request,
}
