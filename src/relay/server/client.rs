//! One client's connection: the relay's token admits it, then it joins its
//! machine's link.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;

use super::link_registry::{Attached, Link};
use super::relay::Relay;
use crate::machine_key;
use base::error::{Error, Result};
use base::ids::MachineId;
use base::secret::Secret;
use net::client_handler::ClientHandler;
use net::outbox::{Close, Direct, Item, Outbox};
use net::peer::Peer;
use net::token_bucket::TokenBucket;
use protocol::envelope;
use protocol::relay::{Client, FrameKind};

/// The field of a first message that may hold the relay's token.
const TOKEN_FIELD: &str = "relay_token";

const NOT_THERE: Close = Close::new(1013, "no such machine is linked now");
const FULL: Close = Close::new(1013, "the machine has reached its limit of clients");
const TOO_OFTEN: Close = Close::new(1008, "too many messages a second");
const UNCONFIRMED: Close = Close::new(1008, "no sign-in in time");
const SILENT: Close = Close::new(1008, "no message arrived in time");

/// A client's side of the relay.
pub struct RelayClient {
    relay: Arc<Relay>,
    peer: Peer,
    outbox: Arc<Outbox>,
    /// None when the machine_id is malformed.
    machine: Option<MachineId>,
    state: State,
    /// Whether a message has arrived.
    has_spoken: bool,
    bucket: TokenBucket,
}

enum State {
    /// It has not sent the token.
    Stranger,
    /// It has the token; nothing was sent to the machine yet.
    Admitted(Arc<Link>),
    Attached(Attached),
    /// It is being closed; further messages are ignored.
    Ended,
}

impl RelayClient {
    /// A client that names `machine`; `is_admitted` if it has sent the token.
    pub fn open(
        relay: Arc<Relay>,
        machine: Option<MachineId>,
        is_admitted: bool,
        peer: Peer,
        outbox: Arc<Outbox>,
    ) -> RelayClient {
        let burst = relay.rules.messages_per_second.saturating_mul(2);
        let mut client = RelayClient {
            relay,
            peer,
            outbox,
            machine,
            state: State::Stranger,
            has_spoken: false,
            bucket: TokenBucket::full(burst, Instant::now()),
        };
        if is_admitted {
            client.look_up();
        }
        client
    }

    /// Finds the machine of an admitted client.
    fn look_up(&mut self) {
        match self.relay.find(self.machine.as_ref()) {
            Ok(link) => self.state = State::Admitted(link),
            Err(error) => self.end(&error, NOT_THERE),
        }
    }

    /// Takes the token out of a first message and returns the rest; none when there
    /// is no token to take.
    fn take_token(&mut self, text: &str) -> Result<Option<String>> {
        let wanted = matches!(self.state, State::Stranger);
        if !wanted && !text.contains(TOKEN_FIELD) {
            return Ok(None);
        }
        let members: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(text).ok();
        let mut members = members.unwrap_or_default();
        let token = members
            .remove(TOKEN_FIELD)
            .and_then(|token| serde_json::from_str::<String>(token.get()).ok());
        match (token, wanted) {
            (Some(token), true) => {
                self.relay.token.check(&Secret::new(token), &self.peer)?;
                self.look_up();
            }
            // It was sent before; the machine must not get it in any case.
            (Some(_), false) => {}
            (None, false) => return Ok(None),
            (None, true) => {
                return Err(Error::invalid_token(
                    "this relay requires its AUTH_TOKEN: `hearth chat` reads it from \
                     HEARTH_RELAY_TOKEN; other clients send it as \"Authorization: Bearer\", as subprotocol \
                     \"bearer.<token>\", or as field \"relay_token\" of the first message",
                ));
            }
        }
        Ok(Some(envelope::to_text(&members)))
    }

    /// Answers the one request that the relay handles itself; false for any other.
    fn answers(&self, text: &str) -> bool {
        let link = match &self.state {
            State::Admitted(link) => link,
            State::Attached(attached) => attached.link(),
            _ => return false,
        };
        match machine_key::answer(text, || link.public_key) {
            Some(answer) => self.say(answer),
            None => return false,
        }
        true
    }

    /// Passes a message on; the first one joins the link.
    fn pass(&mut self, kind: FrameKind<'_>) {
        if let State::Admitted(link) = &self.state {
            let client = Client {
                address: self.peer.address,
                secure: self.peer.secure,
            };
            match link.enter(client, &self.outbox) {
                Ok(Some(attached)) => {
                    log::info!(
                        peer:% = self.peer.place();
                        "client {} of machine {} from {}",
                        attached.number,
                        link.machine,
                        self.peer
                    );
                    self.state = State::Attached(attached);
                }
                Ok(None) => self.end(&Relay::not_there(), NOT_THERE),
                Err(error) => self.end(&error, FULL),
            }
        }
        if let State::Attached(attached) = &self.state {
            attached.pass(kind);
        }
    }

    /// Whether the client may send another message now.
    fn is_within_rate(&mut self) -> bool {
        if matches!(self.state, State::Ended) {
            return false;
        }
        let rate = self.relay.rules.messages_per_second;
        let burst = rate.saturating_mul(2);
        let Err(wait) = self.bucket.take(rate, burst, Instant::now()) else {
            return true;
        };
        let error = Error::rate_limited(
            format!("this relay accepts {rate} messages a second from a client"),
            wait,
        );
        self.end(&error, TOO_OFTEN);
        false
    }

    fn end(&mut self, error: &Error, close: Close) {
        self.say(envelope::failure(None, error));
        self.outbox.close(close);
        self.state = State::Ended;
    }

    fn say(&self, text: String) {
        self.outbox.push(Item::Direct(Direct::Text(text), None));
    }
}

impl ClientHandler for RelayClient {
    fn receive(&mut self, text: &str) {
        if !self.is_within_rate() {
            return;
        }
        let mut rest = None;
        if !std::mem::replace(&mut self.has_spoken, true) {
            match self.take_token(text) {
                Ok(without) => rest = without,
                Err(error) => return self.end(&error, Close::UNAUTHENTICATED),
            }
        }
        let text = rest.as_deref().unwrap_or(text);
        if !self.answers(text) {
            self.pass(FrameKind::Text(text));
        }
    }

    fn receive_binary(&mut self, bytes: &[u8]) {
        if !self.is_within_rate() {
            return;
        }
        self.has_spoken = true;
        if let State::Stranger = self.state {
            let error = Error::invalid_token("the first message must be text with \"relay_token\"");
            return self.end(&error, Close::UNAUTHENTICATED);
        }
        self.pass(FrameKind::Binary(bytes));
    }

    fn has_room(&self) -> bool {
        match &self.state {
            State::Attached(attached) => attached.has_room(),
            _ => true,
        }
    }

    fn refuse(&mut self, error: Error) {
        self.say(envelope::failure(None, &error));
    }

    fn is_authenticated(&self) -> bool {
        // Until then it has its address's share of strangers, and as long to sign in.
        matches!(&self.state, State::Attached(attached) if attached.is_signed_in())
    }

    fn message_bytes(&self) -> usize {
        match self.state {
            State::Stranger => self.relay.rules.limits.unauthenticated_message_bytes,
            _ => self.relay.rules.limits.message_bytes,
        }
    }

    fn time_out(&mut self) -> Close {
        let seconds = self.relay.rules.limits.auth_seconds;
        let (what, close) = match self.state {
            State::Attached(_) => ("sign-in was confirmed by the machine", UNCONFIRMED),
            _ => ("message arrived", SILENT),
        };
        let error = Error::invalid_token(format!("no {what} within {seconds} seconds"));
        self.say(envelope::failure(None, &error));
        close
    }
}
