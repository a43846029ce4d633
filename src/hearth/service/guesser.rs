//! What failed sign-ins are counted by.

use std::sync::Arc;

use net::peer::Peer;

/// One of the keys that an attempt counts for. Clients of a relay must not be able to lock
/// out the people at home, so theirs are counted apart. A relay may report false
/// addresses: it gets no more attempts by inventing them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Guesser {
    /// An address, as one relay or the socket reports it.
    Place(String),
    /// All clients of a relay.
    Relay(Arc<str>),
    /// A sender of a webhook account or of Telegram.
    Sender(String, String),
    /// All who claim to be this person.
    Name(Option<Arc<str>>, String),
}

/// How many times the failures of one address a relay may have: a whole family
/// comes through it.
const RELAY_SHARE: u32 = 8;

impl Guesser {
    /// Those that an attempt counts for, each with a multiplier of the free failures.
    /// Where this person has signed in before (`is_known`), only the failures of the
    /// place count, so that guesses from elsewhere do not lock the person out.
    pub(super) fn all(
        peer: &Peer,
        place: &str,
        username: &str,
        is_known: bool,
    ) -> impl Iterator<Item = (Guesser, u32)> {
        let place = Guesser::Place(place.to_owned());
        let name = Guesser::Name(peer.relay.clone(), username.to_lowercase());
        let relay = peer.relay.clone().map(Guesser::Relay);
        let shared = relay
            .map(|relay| (relay, RELAY_SHARE))
            .into_iter()
            .chain([(name, 1)]);
        std::iter::once((place, 1)).chain(shared.filter(move |_| !is_known))
    }
}
