//! What the relay answers over HTTP, and whom it opens a WebSocket for.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use super::Rules;
use super::client::{self, RelayClient};
use super::entrance::{Entrance, Token};
use super::guesses::Guesses;
use super::link::RelayLink;
use super::link_registry::{Link, LinkRegistry};
use base::error::{Error, Result};
use base::ids::MachineId;
use net::client_handler::HandlerFactory;
use net::http::checks;
use net::http::{Handler, Head, Request, Response};
use net::peer::Peer;
use protocol::registration::{Registration, registered};

/// Most bytes of a registration.
const REGISTRATION_BYTES: usize = 4 * 1024;
/// Look-ups of machines that are not there that an address may make in a minute.
const FAILED_LOOK_UPS: u32 = 60;

/// A relay: by itself, or as part of a server.
pub struct Relay {
    pub(super) rules: Rules,
    pub(super) entrance: Entrance,
    pub(super) machines: LinkRegistry,
    look_ups: Guesses,
    /// What its own dialogues hold.
    this: std::sync::Weak<Relay>,
}

impl Relay {
    /// A relay with nobody linked.
    pub fn new(token: Token, rules: Rules) -> Arc<Relay> {
        Arc::new_cyclic(|this| Relay {
            machines: LinkRegistry::new(rules.machines),
            entrance: Entrance::new(token),
            look_ups: Guesses::at_most(FAILED_LOOK_UPS),
            rules,
            this: this.clone(),
        })
    }

    /// The link of a machine that `peer` names.
    ///
    /// # Errors
    /// `not_found`, whether the machine never was, is not there now or
    /// cannot be; `rate_limited`.
    pub(super) fn find(&self, machine: Option<&MachineId>, peer: &Peer) -> Result<Arc<Link>> {
        let (address, now) = (client::key(peer), Instant::now());
        self.look_ups.check(address, now)?;
        machine
            .and_then(|machine| self.machines.find(machine))
            .ok_or_else(|| {
                self.look_ups.failed(address, now);
                Relay::not_there()
            })
    }

    /// A machine is not there.
    pub(super) fn not_there() -> Error {
        Error::not_found("no machine of this machine_id is linked to this relay now")
    }

    fn lead(&self, head: &Head) -> Result<HandlerFactory> {
        let this = self
            .this
            .upgrade()
            .ok_or_else(|| Error::overloaded("the relay is stopping", 1))?;
        let is_admitted = self.entrance.admits(head)?;
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
                "a machine must show this relay's AUTH_TOKEN as \"Authorization: Bearer\"",
            ));
        }
        let machine = named
            .machine
            .ok_or_else(|| Error::invalid_request("this is no machine_id"))?;
        Ok(Arc::new(move |peer, _, outbox| {
            let (relay, machine) = (Arc::clone(&this), machine.clone());
            Box::new(RelayLink::open(relay, machine, peer, outbox))
        }))
    }

    /// Registers by machine_id, or by name and key as on any server.
    fn registration(&self, request: &Request) -> Result<Response> {
        let head = &request.head;
        if !self.entrance.admits(head)? {
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

impl Relay {
    /// Opens a WebSocket that names another machine, or that a machine links
    /// with.
    ///
    /// # Errors
    /// The response that refuses it.
    pub fn open(&self, head: &Head) -> Result<HandlerFactory, Response> {
        self.lead(head).map_err(|error| refusal(&error))
    }

    /// Whether a registration is the relay's to answer: it is at /register, or
    /// carries the relay's token.
    pub fn takes(&self, head: &Head) -> bool {
        head.path == "/register" || self.entrance.recognises(head)
    }

    /// Answers a registration.
    ///
    /// # Errors
    /// `invalid_token`, `invalid_request`.
    pub fn register(&self, request: &Request) -> Result<Response> {
        self.registration(request)
    }
}

/// What the address of a WebSocket names.
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
                    return Err(Error::invalid_request("the address names two machines"));
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
            // One that cannot be is not found, as any other that is not there.
            machine: named.parse().ok(),
            is_machine,
        })
    }
}

/// The routes of a relay by itself.
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

    fn health(&self) -> Response {
        let mut text = String::with_capacity(64);
        let seconds = self.begun.elapsed().as_secs();
        let _ = write!(text, r#"{{"status":"ok","uptime_seconds":{seconds}}}"#);
        Response::json(200, text)
    }
}

impl Handler for Routes {
    fn admit(&self, head: &Head) -> Result<usize, Response> {
        match head.path.as_str() {
            "/health" => checks::method(head, "GET, HEAD").map(|()| 0),
            "/register" | "/ws/register" => {
                checks::method(head, "POST")?;
                checks::json(head).map_err(|error| refusal(&error))?;
                // Checked again with the request; here so that no body is read
                // for nothing.
                checks::bearer(head).map_err(|error| refusal(&error))?;
                Ok(REGISTRATION_BYTES)
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

    fn handle(&self, request: &Request) -> Response {
        match request.head.path.as_str() {
            "/health" => self.health(),
            _ => {
                let mut response = self
                    .relay
                    .registration(request)
                    .unwrap_or_else(|error| refusal(&error));
                response
                    .headers
                    .push(("Cache-Control", Cow::Borrowed("no-store")));
                response
            }
        }
    }
}

/// An error, with what RFC 9110 section 15.5.2 demands of a 401.
fn refusal(error: &Error) -> Response {
    let mut response = Response::error(error);
    if response.status == 401 {
        response
            .headers
            .push(("WWW-Authenticate", Cow::Borrowed("Bearer")));
    }
    response
}
