//! What a transport needs of a session, so that transports can be tested
//! without the service behind it.

use std::sync::Arc;

use base::error::Error;
use tungstenite::Message;

use crate::outbox::{Close, Item, Outbox};
use crate::peer::Peer;

/// Answers the messages of one connection: a session of the service, or a relay.
pub trait ClientHandler {
    /// Handles one message; responses arrive in the outbox.
    fn receive(&mut self, text: &str);

    /// Handles one binary message. Most handlers understand none.
    fn receive_binary(&mut self, bytes: &[u8]) {
        let _ = bytes;
        self.refuse(Error::invalid_request(
            "binary messages are not understood here; send JSON as text",
        ));
    }

    /// Whether it takes another message now. If not, the connection stops reading
    /// and asks again when the outbox wakes its thread. Only WebSockets ask.
    fn has_room(&self) -> bool {
        true
    }

    /// Answers input that is not a message with an error.
    fn refuse(&mut self, error: Error);

    /// Turns what the outbox held into the texts to send now, in order. Some handlers
    /// have everything sent as it is.
    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        let _ = (item, send);
    }

    /// The same as WebSocket messages. Only encrypted ones are binary.
    fn arrange_messages(&mut self, item: Item, send: &mut dyn FnMut(Message)) {
        self.arrange(item, &mut |text| send(Message::text(text)));
    }

    /// Whether `auth` has succeeded.
    fn is_authenticated(&self) -> bool;

    /// Whether every request has had its response.
    fn is_idle(&self) -> bool {
        true
    }

    /// Largest size of the next message, in bytes.
    fn message_bytes(&self) -> usize;

    /// Sends an error to a client that did not authenticate in time. Returns how
    /// to close the connection.
    fn time_out(&mut self) -> Close;
}

/// Opens the handler of a new connection: the client's address, the transport
/// (`websocket`, `lines` or `relay`), and the outbox for the responses.
pub type HandlerFactory =
    Arc<dyn Fn(Peer, &'static str, Arc<Outbox>) -> Box<dyn ClientHandler> + Send + Sync>;
