//! What the two transports have in common.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::peer::{CallError, Outcome, Peer, ReadTimeout};
use net::cancel::Cancel;

/// A request to be sent.
pub(super) struct Call<'a> {
    /// Its number, unique within the session.
    pub(super) id: u64,
    /// `tools/call`, ...
    pub(super) method: &'a str,
    /// The tool that it names, if it does.
    pub(super) tool: Option<&'a str>,
    /// The whole message.
    pub(super) message: Vec<u8>,
    pub(super) timeout: ReadTimeout,
    pub(super) cancel: &'a Cancel,
}

/// What carries the messages of one session.
pub(super) trait Transport: Send + Sync {
    /// Sends a request and waits for its outcome.
    fn request(&self, peer: &Peer, request: Call<'_>) -> Outcome;

    /// Sends a message that has no answer. A failure is ignored.
    fn notify(&self, message: Vec<u8>);

    /// The handshake has agreed on this revision of the protocol.
    fn opened(&self, revision: Revision);

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

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Refused(refusal) => write!(f, "it answered: {refusal}"),
            CallError::Closed(reason) | CallError::Unusable(reason) => f.write_str(reason),
            CallError::OlderTransport => f.write_str("it speaks HTTP+SSE"),
            CallError::SessionLost => f.write_str("it has forgotten the session"),
            CallError::Silent(limit) => {
                write!(f, "it did not answer within {}", seconds(*limit))
            }
            CallError::TimedOut => f.write_str("the time for the call was up"),
            CallError::Cancelled => f.write_str("it was stopped"),
        }
    }
}

/// `1 second`, `60 seconds`.
pub(super) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        1 => "1 second".to_owned(),
        count => format!("{count} seconds"),
    }
}
