//! The relay that a server may be, and the links to those of others.

use std::path::PathBuf;
use std::sync::Arc;

use super::StartError;
use crate::http::{OwnMachine, Relay};
use crate::service::Service;
use crate::service::session::sessions;
use ::relay::server::{self, Rules, Token};
use config::Config;
use net::client_handler::HandlerFactory;
use net::http::{Head, Request, Response};

/// The links to relays, over a service.
pub struct Links(::relay::link::Links);

impl Links {
    /// No links yet.
    ///
    /// # Errors
    /// The machine's key cannot be read or made.
    pub fn new(
        service: Arc<Service>,
        data_dir: PathBuf,
        config: &Config,
    ) -> Result<Links, StartError> {
        let server = ::relay::link::Server {
            settings: Arc::clone(&service.settings),
            clock: service.clock.clone(),
            relays: Arc::clone(&service.relays),
            sessions: sessions(service),
        };
        let links = ::relay::link::Links::new(server, data_dir, config);
        Ok(Links(links.map_err(StartError::new)?))
    }

    /// Opens the links that `config` names and ends the others.
    pub fn apply(&self, config: &Config) {
        self.0.apply(config);
    }

    /// This machine, for clients that connect to it directly and name it.
    pub fn own_machine(&self) -> Option<Arc<dyn OwnMachine>> {
        Some(Arc::new(self.0.own_machine()))
    }

    /// Ends all links and notifies their clients.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl OwnMachine for ::relay::link::OwnMachine {
    fn open(&self) -> Option<HandlerFactory> {
        self.open()
    }
}

impl Relay for Arc<server::Relay> {
    fn open(&self, head: &Head) -> Result<HandlerFactory, Response> {
        server::Relay::open(self, head)
    }

    fn takes(&self, head: &Head) -> bool {
        server::Relay::takes(self, head)
    }

    fn register(&self, request: &Request) -> base::error::Result<Response> {
        server::Relay::register(self, request)
    }
}

/// The relay that this server is for other machines too, if it is one.
///
/// # Errors
/// It has no token, or a short one.
pub fn open(config: &Config) -> Result<Option<Arc<dyn Relay>>, StartError> {
    if !config.relay.enabled {
        return Ok(None);
    }
    let token = config.relay.token().ok_or_else(|| {
        StartError::new(
            "\"relay.enabled\" is set, but neither \"relay.auth_token\" nor the environment variable \
             AUTH_TOKEN; `hearth relay --show-token` makes a good one",
        )
    })?;
    let token = Token::new(token).map_err(StartError::new)?;
    let relay = server::Relay::new(token, Rules::under(config.limits.clone()));
    Ok(Some(Arc::new(relay)))
}
