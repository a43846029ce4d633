//! What a transport needs of a session, so that transports can be tested
//! without the service behind it.

use std::sync::Arc;

use base::error::Error;
use tungstenite::Message;

use crate::outbox::{Close, Item, Outbox};
use crate::peer::Peer;

/// What answers the messages of one connection: a session of the service, or a
/// relay.
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
    /// the handler has encrypted.
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

/// Opens the handler of a new connection: the client's address, the transport
/// (`websocket`, `lines` or `relay`), and where the responses go.
pub type HandlerFactory =
    Arc<dyn Fn(Peer, &'static str, Arc<Outbox>) -> Box<dyn ClientHandler> + Send + Sync>;
