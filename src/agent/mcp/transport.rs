//! What carries the messages of a session, and the revisions of the protocol.

use std::sync::Arc;

use super::call::{Call, CallError};
use super::peer::Peer;

/// What carries the messages of one session.
pub(super) trait Transport: Send + Sync {
    /// Sends a request, whose outcome has then come to the peer or will do so.
    fn send(&self, peer: &Peer, request: &Call<'_>) -> Result<(), CallError>;

    /// Sends a message that has no answer. A failure is ignored.
    fn notify(&self, message: Vec<u8>);

    /// Tells the server that nobody waits for a request any more.
    fn cancel(&self, message: Vec<u8>) {
        self.notify(message);
    }

    /// The handshake has agreed on this revision of the protocol.
    fn opened(&self, _: Revision) {}

    /// Starts to receive notifications, where the transport needs a stream for
    /// them. `subscription` is the request for them, where one is needed.
    fn listen(&self, peer: &Arc<Peer>, subscription: Option<Vec<u8>>);

    /// Ends the session, and waits for its threads and program. `at_once` gives a
    /// program less time to exit by itself.
    fn close(&self, at_once: bool);
}

/// A revision of the protocol, by its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revision {
    /// One of those that begin with `initialize`.
    Handshake(&'static str),
    /// 2026-07-28: without handshake and session.
    Stateless,
}

/// The revisions that begin with `initialize`, newest first.
const HANDSHAKES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const STATELESS: &str = "2026-07-28";

impl Revision {
    /// The one that the handshake proposes.
    pub(super) const NEWEST_HANDSHAKE: Revision = Revision::Handshake(HANDSHAKES[0]);

    /// The revision of this name that begins with `initialize`, if it is known.
    pub(super) fn of_handshake(name: &str) -> Option<Revision> {
        let known = HANDSHAKES.iter().find(|known| **known == name)?;
        Some(Revision::Handshake(known))
    }

    /// Its name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Revision::Handshake(name) => name,
            Revision::Stateless => STATELESS,
        }
    }
}
