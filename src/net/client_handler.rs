//! What a transport needs of a session, so that transports can be tested
//! without the service behind it.

use std::io;
use std::sync::Arc;

use tungstenite::Message;

use super::connection::Connection;
use super::registry::Registered;
use super::wait::Waker;
use crate::outbox::{Close, Item, Outbox};
use crate::peer::Peer;
use base::error::Error;

/// One connection's conversation with whoever answers it: the service's session, or a relay.
pub trait ClientHandler {
    /// Handles one message; responses arrive in the outbox.
    fn receive(&mut self, text: &str);

    /// Handles one binary message. Most dialogues understand none.
    fn receive_binary(&mut self, bytes: &[u8]) {
        let _ = bytes;
        self.refuse(Error::invalid_request(
            "binary messages are not understood here; send JSON as text",
        ));
    }

    /// Whether it takes another message now. If not, the connection is not
    /// read from, and it is asked again when the outbox has woken the
    /// connection's thread. Only WebSockets ask.
    fn has_room(&self) -> bool {
        true
    }

    /// Answers something that never became a message.
    fn refuse(&mut self, error: Error);

    /// Turns what the outbox held into the texts to send now, in order.
    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str));

    /// The same as messages of a WebSocket, of which only those are binary that
    /// the client_handler has encrypted.
    fn arrange_messages(&mut self, item: Item, send: &mut dyn FnMut(Message)) {
        self.arrange(item, &mut |text| send(Message::text(text)));
    }

    /// Whether `auth` has succeeded.
    fn is_authenticated(&self) -> bool;

    /// Whether every request has had its response.
    fn is_idle(&self) -> bool;

    /// Most bytes that the next message may have.
    fn message_bytes(&self) -> usize;

    /// Tells a client that did not authenticate in time, and closes.
    fn time_out(&mut self) -> Close;
}

/// Opens the client_handler of a new connection: who is there, over which transport
/// (`websocket`, `lines` or `relay`), and where the responses go.
pub type HandlerFactory =
    Arc<dyn Fn(Peer, &'static str, Arc<Outbox>) -> Box<dyn ClientHandler> + Send + Sync>;

/// A client_handler and the way its responses take.
pub struct ConnectionIo {
    /// Takes what the client sends.
    pub client_handler: Box<dyn ClientHandler>,
    /// Holds what the client is to get; bounded by `limits.outbox_bytes`.
    pub outbox: Arc<Outbox>,
    /// Wakes the connection's thread when the outbox has something new.
    pub waker: Arc<Waker>,
}

impl ConnectionIo {
    /// Opens a client_handler for `connection`. From now on the connection is ended
    /// through its outbox.
    ///
    /// # Errors
    /// No descriptor is left for the wake-ups.
    pub fn open(
        connection: &Connection,
        registered: &Registered,
        open: &HandlerFactory,
        peer: Peer,
    ) -> io::Result<ConnectionIo> {
        let waker = Arc::new(Waker::new()?);
        let wake = Arc::clone(&waker);
        let outbox = Arc::new(Outbox::new(
            connection.config.limits.outbox_bytes,
            move || wake.wake(),
        ));
        registered.set_outbox(&outbox);
        let transport = connection.admission.transport().as_str();
        Ok(ConnectionIo {
            client_handler: open(peer, transport, Arc::clone(&outbox)),
            outbox,
            waker,
        })
    }
}
