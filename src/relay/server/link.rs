//! One machine's connection: it proves its key, then carries its clients.

use std::sync::Arc;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::link_registry::{Delivery, Link};
use super::relay::Relay;
use crate::noise::{Initiator, Purpose};
use base::error::{Error, Result, json_problem};
use base::ids::MachineId;
use net::client_handler::ClientHandler;
use net::outbox::{Close, Direct, Item, Outbox};
use net::peer::Peer;
use net::token_bucket::TokenBucket;
use protocol::envelope;
use protocol::public_key::PublicKey;
use protocol::relay::{Frame, FrameKind, Greeting, HEADER_BYTES};

/// Frames for former clients that a machine may send per second, and in one burst:
/// as many as may be in transit when a client leaves.
const STALE_BURST: u32 = 4_096;
const STALE_PER_SECOND: u32 = 256;

const NOT_PROVED: Close = Close::new(1008, "the machine did not prove its key");
const NO_ROOM: Close = Close::new(1013, "the relay has reached its limit of machines");
const BAD_FRAME: Close = Close::new(1002, "not a frame that a machine may send");
const FLOOD: Close = Close::new(1008, "too many frames a second");
const NO_SUCH_CLIENT: Close = Close::new(1008, "a frame for a client that never existed");

/// A machine's side of the relay.
pub struct RelayLink {
    relay: Arc<Relay>,
    peer: Peer,
    outbox: Arc<Outbox>,
    machine: MachineId,
    state: State,
    frames: TokenBucket,
    stale: TokenBucket,
}

enum State {
    /// Waits for the key.
    New,
    /// Waits for the proof that the machine holds the key.
    Asked(Box<Initiator>, Claim),
    Linked(Arc<Link>),
    /// It is being closed; further messages are ignored.
    Ended,
}

/// What a machine says of itself before it has proved anything.
struct Claim {
    public_key: PublicKey,
    reports_sign_ins: bool,
}

impl RelayLink {
    /// A machine that claims to be `machine`.
    pub fn open(
        relay: Arc<Relay>,
        machine: MachineId,
        peer: Peer,
        outbox: Arc<Outbox>,
    ) -> RelayLink {
        let now = Instant::now();
        let (_, burst) = frame_rate(&relay);
        RelayLink {
            relay,
            peer,
            outbox,
            machine,
            state: State::New,
            frames: TokenBucket::full(burst, now),
            stale: TokenBucket::full(STALE_BURST, now),
        }
    }

    /// One step of the handshake.
    fn greet(&mut self, text: &str) -> Result<(), Refusal> {
        let said: Greeting = serde_json::from_str(text).map_err(|error| {
            let problem = match error.is_data() {
                true => "a member is missing or has the wrong type".to_owned(),
                false => json_problem(&error),
            };
            Error::invalid_request(format!(
                "this is not a handshake message of a machine: {problem}"
            ))
        })?;
        match (std::mem::replace(&mut self.state, State::Ended), said) {
            (
                State::New,
                Greeting::Machine {
                    public_key,
                    reports_sign_ins,
                },
            ) => {
                let public_key = PublicKey::parse("public_key", &public_key)?;
                if public_key.machine_id() != self.machine {
                    return Err(Error::invalid_request(
                        "the machine_id of the address does not belong to this public_key",
                    )
                    .into());
                }
                let (initiator, first) = Initiator::begin(Purpose::Link, &public_key)
                    .map_err(|error| Error::server("the link cannot be made", error))?;
                self.say(&Greeting::Prove {
                    noise: STANDARD.encode(first),
                });
                let claim = Claim {
                    public_key,
                    reports_sign_ins,
                };
                self.state = State::Asked(Box::new(initiator), claim);
                Ok(())
            }
            (State::Asked(initiator, claim), Greeting::Proof { noise }) => {
                let answer = STANDARD.decode(noise).unwrap_or_default();
                initiator.finish(&answer).map_err(|_| {
                    Error::invalid_token("the proof was not made with this machine's key")
                })?;
                self.bind(claim)
            }
            _ => Err(Error::invalid_request("this handshake message is out of order").into()),
        }
    }

    fn bind(&mut self, claim: Claim) -> Result<(), Refusal> {
        let rules = &self.relay.rules;
        let link = Link::new(
            claim.public_key,
            Arc::clone(&self.outbox),
            rules.clients_per_machine,
            claim.reports_sign_ins,
        );
        let linked = envelope::to_text(&Greeting::Linked {
            clients: rules.clients_per_machine,
            message_bytes: rules.limits.message_bytes,
            ping_seconds: rules.limits.ping_seconds,
            wants_sign_ins: true,
        });
        self.relay
            .machines
            .bind(&link, linked)
            .map_err(|error| Refusal {
                error,
                close: NO_ROOM,
            })?;
        log::info!(peer:% = self.peer.place(); "machine {} linked from {}", self.machine, self.peer);
        self.state = State::Linked(link);
        Ok(())
    }

    /// Passes one frame on; returns how to close a link that breaks the protocol.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Close> {
        let State::Linked(link) = &self.state else {
            return Ok(());
        };
        let now = Instant::now();
        let (rate, burst) = frame_rate(&self.relay);
        self.frames.take(rate, burst, now).map_err(|_| FLOOD)?;
        let frame = Frame::decode(bytes).map_err(|_| BAD_FRAME)?;
        let deliver = |message| link.deliver(frame.client, message);
        let delivery = match frame.kind {
            // Only a relay says who connects.
            FrameKind::Open(_) => return Err(BAD_FRAME),
            FrameKind::SignedIn => link.signed_in(frame.client),
            FrameKind::Text(text) => deliver(Direct::Text(text.to_owned())),
            FrameKind::Binary(bytes) => deliver(Direct::Binary(bytes.to_owned())),
            FrameKind::Close { code, reason } => deliver(Direct::Close {
                code,
                reason: reason.to_owned(),
            }),
        };
        match delivery {
            Delivery::Sent => Ok(()),
            Delivery::Gone => self
                .stale
                .take(STALE_PER_SECOND, STALE_BURST, now)
                .map_err(|_| FLOOD),
            Delivery::Never => Err(NO_SUCH_CLIENT),
        }
    }

    fn end(&mut self, close: Close) {
        log::info!(
            peer:% = self.peer.place();
            "machine {} from {}: {}",
            self.machine,
            self.peer,
            close.reason
        );
        self.outbox.close(close);
        self.leave();
    }

    fn leave(&mut self) {
        if let State::Linked(link) = std::mem::replace(&mut self.state, State::Ended) {
            let clients = link.clients();
            self.relay.machines.unbind(&link);
            log::info!(peer:% = self.peer.place(); "machine {} unlinked, with {clients} clients", self.machine);
        }
    }

    fn say(&self, greeting: &Greeting) {
        self.push(envelope::to_text(greeting));
    }

    fn push(&self, text: String) {
        self.outbox.push(Item::Direct(Direct::Text(text), None));
    }
}

/// An error that ends a link before it is open.
struct Refusal {
    error: Error,
    close: Close,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal {
            error,
            close: NOT_PROVED,
        }
    }
}

/// Frames that a machine may send per second, and in one burst: as many as all its
/// clients together may send to it.
fn frame_rate(relay: &Relay) -> (u32, u32) {
    let clients = u32::try_from(relay.rules.clients_per_machine).unwrap_or(u32::MAX);
    let rate = relay.rules.messages_per_second.saturating_mul(clients);
    (rate, rate.saturating_mul(2))
}

impl ClientHandler for RelayLink {
    fn receive(&mut self, text: &str) {
        match self.state {
            State::Ended => {}
            State::Linked(_) => self.end(BAD_FRAME),
            _ => {
                if let Err(Refusal { error, close }) = self.greet(text) {
                    self.push(envelope::failure(None, &error));
                    self.end(close);
                }
            }
        }
    }

    fn receive_binary(&mut self, bytes: &[u8]) {
        match self.state {
            State::Ended => {}
            State::Linked(_) => {
                if let Err(close) = self.take(bytes) {
                    self.end(close);
                }
            }
            _ => {
                let error = Error::invalid_request("a machine's first message names its key");
                self.push(envelope::failure(None, &error));
                self.end(NOT_PROVED);
            }
        }
    }

    fn refuse(&mut self, error: Error) {
        self.push(envelope::failure(None, &error));
        self.leave();
    }

    fn is_authenticated(&self) -> bool {
        matches!(self.state, State::Linked(_))
    }

    fn message_bytes(&self) -> usize {
        match self.state {
            State::Linked(_) => self.relay.rules.limits.message_bytes + HEADER_BYTES,
            _ => self.relay.rules.limits.unauthenticated_message_bytes,
        }
    }

    fn time_out(&mut self) -> Close {
        let seconds = self.relay.rules.limits.auth_seconds;
        let error = Error::invalid_token(format!("no proof arrived within {seconds} seconds"));
        self.push(envelope::failure(None, &error));
        NOT_PROVED
    }
}

impl Drop for RelayLink {
    fn drop(&mut self) {
        self.leave();
    }
}
