//! One connection's conversation with the service, free of any transport.

use std::sync::Arc;

use super::Service;
use super::outbox::{Close, Item, Outbox};
use super::peer::Peer;
use crate::error::Error;

/// The state of one connection: who it is, what is in flight, what order the
/// responses have. A transport feeds it texts and sends what comes out.
pub struct Session {
    _private: (),
}

impl Session {
    /// A new, unauthenticated session. `transport` is `websocket` or `lines`.
    pub fn new(
        service: Arc<Service>,
        peer: Peer,
        transport: &'static str,
        outbox: Arc<Outbox>,
    ) -> Session {
        let _ = (service, peer, transport, outbox);
        todo!()
    }

    /// Handles one message. Responses arrive in the outbox.
    pub fn receive(&mut self, text: &str) {
        let _ = text;
        todo!()
    }

    /// Answers something that never became a message (a binary frame, a frame
    /// or line over the limit) with an error, in its place in the order.
    pub fn refuse(&mut self, error: Error) {
        let _ = error;
        todo!()
    }

    /// Turns what the outbox held into the texts to send now, in order.
    pub fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        let _ = (item, send);
        todo!()
    }

    /// Whether `auth` has succeeded.
    pub fn is_authenticated(&self) -> bool {
        todo!()
    }

    /// Most bytes that the next message may have.
    pub fn message_bytes(&self) -> usize {
        todo!()
    }

    /// Tells a client that did not authenticate in time, and closes.
    pub fn time_out(&mut self) -> Close {
        todo!()
    }
}
