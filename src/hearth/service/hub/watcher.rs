//! Those who wait for a turn.

use super::{ConnectionId, Person, Reply};
use base::error::Result;
use base::ids::{DeliveryId, TurnId};
use protocol::event::EventKind;

/// The notice of a turn's end.
#[derive(Clone, Debug)]
pub struct TurnEnded {
    /// The reply, or why there is none.
    pub result: Result<Reply>,
    /// The callback that was delayed because somebody watched the turn: a
    /// response replaces it.
    pub delivery: Option<DeliveryId>,
}

impl From<Result<Reply>> for TurnEnded {
    fn from(result: Result<Reply>) -> TurnEnded {
        TurnEnded {
            result,
            delivery: None,
        }
    }
}

/// Somebody who waits for a turn. Called by the thread that runs the turn, so
/// nothing here may block; nor may `event` call the hub.
pub trait Watcher: Send {
    /// Whether [`Watcher::event`] does anything.
    fn wants_events(&self) -> bool {
        false
    }

    /// Something happened in the turn.
    fn event(&mut self, kind: &EventKind) {
        let _ = kind;
    }

    /// The turn has ended, and its end is on disk. Nothing follows.
    fn ended(self: Box<Self>, end: &TurnEnded);
}

/// Identifies a watcher, so that it can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    pub(super) turn: TurnId,
    pub(super) number: u64,
}

/// A watcher and its person.
pub(super) struct Watching {
    pub number: u64,
    pub watcher: Box<dyn Watcher>,
    /// The person who watches, if it is one.
    pub person: Option<Person>,
    /// The connection to which the turn's events are streamed, if there is one.
    pub connection: Option<ConnectionId>,
}
