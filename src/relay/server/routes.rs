//! The relay's HTTP routes, and the handlers of its WebSockets.

use std::sync::Arc;
use std::time::Instant;

use super::client::RelayClient;
use super::link::RelayLink;
use super::relay::Relay;
use base::error::{Error, Result};
use base::ids::MachineId;
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Admitted, Answer, Handler, Head, Request, Response};
use protocol::registration::{Registration, registered};

/// Most bytes of a registration.
const REGISTRATION_BYTES: usize = 4 * 1024;

impl Relay {
    /// The handler of a WebSocket that names another machine, or with which a
    /// machine links.
    ///
    /// # Errors
    /// The response that refuses it.
    pub fn open(self: &Arc<Relay>, head: &Head) -> Result<HandlerFactory, Response> {
        self.handler(head).map_err(|error| refusal(&error))
    }

    fn handler(self: &Arc<Relay>, head: &Head) -> Result<HandlerFactory> {
        let this = Arc::clone(self);
        let is_admitted = self.token.admits(head)?;
        let named = Named::of(head)?;
        if !named.is_machine {
            return Ok(Arc::new(move |peer, _, outbox| {
                let machine = named.machine.clone();
                let relay = Arc::clone(&this);
                Box::new(RelayClient::open(relay, machine, is_admitted, peer, outbox))
            }));
        }
        if !is_admitted {
            return Err(Error::invalid_token(
                "a machine must send this relay's AUTH_TOKEN as \"Authorization: Bearer\"",
            ));
        }
        let machine = named
            .machine
            .ok_or_else(|| Error::invalid_request("this is not a machine_id"))?;
        Ok(Arc::new(move |peer, _, outbox| {
            let (relay, machine) = (Arc::clone(&this), machine.clone());
            Box::new(RelayLink::open(relay, machine, peer, outbox))
        }))
    }

    /// Whether the relay answers a registration: it is at /register, or
    /// carries the relay's token.
    pub fn takes(&self, head: &Head) -> bool {
        head.path == "/register" || self.token.recognises(head)
    }

    /// Answers a registration by machine_id, or by name and key as on any server.
    ///
    /// # Errors
    /// `invalid_token`, `invalid_request`.
    pub fn register(&self, request: &Request) -> Result<Response> {
        let head = &request.head;
        if !self.token.admits(head)? {
            return Err(Error::invalid_token(
                "the request must have this relay's AUTH_TOKEN as \"Authorization: Bearer\"",
            ));
        }
        let machine = if head.path == "/register" {
            let text = checks::object(&request.body)?.string("machine_id")?;
            text.parse::<MachineId>().map_err(|_| {
                Error::invalid_request("\"machine_id\" must be 32 characters of a-z and 2-7")
            })?
        } else {
            Registration::parse(checks::object(&request.body)?)?
                .public_key
                .machine_id()
        };
        let address = checks::own_address(head)?;
        Ok(Response::json(200, registered(&machine, &address)))
    }
}

/// The query of a WebSocket's address.
struct Named {
    machine: Option<MachineId>,
    is_machine: bool,
}

impl Named {
    fn of(head: &Head) -> Result<Named> {
        let mut named = None;
        let mut is_machine = false;
        for (name, value) in checks::query(head.query.as_deref()) {
            match name {
                "machine_id" if named.is_some() => {
                    return Err(Error::invalid_request("the address has two machine_ids"));
                }
                "machine_id" => named = Some(value),
                "role" => is_machine = value == "machine",
                _ => {}
            }
        }
        let named = named.ok_or_else(|| {
            Error::invalid_request("a relay is reached at /ws?machine_id=<machine_id>")
        })?;
        Ok(Named {
            // A malformed id is not found, like that of any machine that is not linked.
            machine: named.parse().ok(),
            is_machine,
        })
    }
}

/// The routes of a standalone relay.
pub struct Routes {
    relay: Arc<Relay>,
    begun: Instant,
}

impl Routes {
    /// The routes of `relay`.
    pub fn new(relay: Arc<Relay>) -> Routes {
        Routes {
            relay,
            begun: Instant::now(),
        }
    }

    fn registration(&self, request: &Request) -> Response {
        let registered = self.relay.register(request);
        let mut response = registered.unwrap_or_else(|error| refusal(&error));
        response.add("Cache-Control", "no-store");
        response
    }

    fn health(&self) -> Response {
        let seconds = self.begun.elapsed().as_secs();
        Response::json(
            200,
            format!(r#"{{"status":"ok","uptime_seconds":{seconds}}}"#),
        )
    }
}

impl Handler for Routes {
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response> {
        match head.path.as_str() {
            "/health" => {
                checks::method(head, "GET, HEAD")?;
                Ok(Admitted::new(0, |_| Answer::Now(self.health())))
            }
            "/register" | "/ws/register" => {
                checks::method(head, "POST")?;
                checks::json(head).map_err(|error| refusal(&error))?;
                // Checked again with the request; here to avoid reading a body in
                // vain.
                checks::bearer(head).map_err(|error| refusal(&error))?;
                Ok(Admitted::new(REGISTRATION_BYTES, |request| {
                    Answer::Now(self.registration(request))
                }))
            }
            "/ws" => Err(checks::upgrade_required()),
            _ => Err(refusal(&Error::not_found(
                "a relay has /ws, /health, /register and /ws/register",
            ))),
        }
    }

    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response> {
        self.relay.open(head).map(Some)
    }
}

/// An error, with what RFC 9110 section 15.5.2 demands of a 401.
fn refusal(error: &Error) -> Response {
    let mut response = Response::error(error);
    if response.status == 401 {
        response.add("WWW-Authenticate", "Bearer");
    }
    response
}
