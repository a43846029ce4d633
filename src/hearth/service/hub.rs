//! Events: numbered, kept for a while, and passed to their subscribers.
//!
//! All waiting for turns goes through here, too. A [`Watcher`] gets the turn's events
//! as values and, once it is on disk, its end. Each kind of watcher uses them in its
//! own way: a chat's responder answers its request, a response of the model API
//! grows, a webhook's caller stops waiting.

mod events;
mod reply;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use base::error::Result;
use base::ids::{DeliveryId, TurnId};
use base::sync::{Mutex, MutexGuard, lock};
use net::outbox::{Item, Outbox};
use protocol::event::{Event, EventKind, EventName, EventSet, EventTrait};

pub use reply::Reply;

/// Events kept for connections that were away (protocol section 5).
const KEPT_EVENTS: usize = 10_000;
/// Bytes that the kept events may take. The handbook names both bounds.
const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// A connection, as the hub and the service's registry know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

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
    turn: TurnId,
    number: u64,
}

/// Numbers every event and passes it on. Publishing never waits for a subscriber:
/// a full outbox closes its connection instead.
pub struct Hub {
    state: Mutex<HubState>,
}

#[derive(Default)]
struct HubState {
    /// The number of the newest event.
    seq: u64,
    /// The last number that may be given out: a start after a crash continues above it.
    reserved: u64,
    kept: VecDeque<KeptEvent>,
    kept_bytes: usize,
    /// The newest event that is no longer kept but once was: a connection that was
    /// away since before it has missed something.
    forgotten: u64,
    subscribers: HashMap<ConnectionId, Subscriber>,
    watchers: HashMap<TurnId, Vec<Watching>>,
    next_watch: u64,
    is_closed: bool,
}

struct KeptEvent {
    seq: u64,
    name: EventName,
    turn: Option<TurnId>,
    text: Arc<str>,
}

struct Subscriber {
    outbox: Arc<Outbox>,
    /// What `subscribe` asked for.
    events: EventSet,
    is_admin: bool,
}

struct Watching {
    number: u64,
    watcher: Box<dyn Watcher>,
    /// The connection to which the turn's events are streamed, if there is one.
    connection: Option<ConnectionId>,
}

/// The answer to `subscribe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// The number of the newest event.
    pub seq: u64,
    /// Whether events after `since` are no longer kept.
    pub events_lost: bool,
}

impl Hub {
    /// A hub whose first event has a number above `last`. It gives out none before
    /// [`Hub::reserved`].
    pub fn after(last: u64) -> Hub {
        Hub {
            state: Mutex::new(HubState {
                seq: last,
                reserved: last,
                forgotten: last,
                ..HubState::default()
            }),
        }
    }

    /// The numbers up to `last` may be given out: it is on disk that they may be in
    /// use.
    pub fn reserved(&self, last: u64) {
        self.lock().reserved = last;
    }

    /// Numbers an event, keeps it, and passes it to the turn's watchers and to
    /// its subscribers. Subscribers do not get an event for which no number is
    /// reserved: after a crash, another one would have its number.
    fn publish(&self, event: Event) {
        let mut state = self.lock();
        let (name, turn) = (event.kind.name(), event.turn_id);
        for watching in turn
            .and_then(|turn| state.watchers.get_mut(&turn))
            .into_iter()
            .flatten()
        {
            watching.watcher.event(&event.kind);
        }
        if state.seq >= state.reserved {
            return;
        }
        state.seq += 1;
        let seq = state.seq;
        let is_kept = name.is(EventTrait::Kept);
        let outboxes: Vec<&Arc<Outbox>> = state.subscribed(name, turn).collect();
        if outboxes.is_empty() && !is_kept {
            return;
        }
        let text: Arc<str> = event.to_text(seq).into();
        for outbox in outboxes {
            outbox.push(Item::Event(Arc::clone(&text)));
        }
        if is_kept {
            state.keep(KeptEvent {
                seq,
                name,
                turn,
                text,
            });
        }
    }

    /// The number of the newest event.
    pub fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Whether anybody would get the pieces of this turn's text.
    pub fn is_streamed(&self, turn: TurnId) -> bool {
        let state = self.lock();
        let watchers = state.watchers.get(&turn);
        watchers.is_some_and(|all| all.iter().any(|one| one.watcher.wants_events()))
            || state
                .subscribed(EventName::Delta, Some(turn))
                .next()
                .is_some()
    }

    /// Subscribes a connection; this replaces its earlier subscription.
    /// `answer` is called before any event can reach the outbox; then the kept
    /// events after `since` follow.
    pub fn subscribe(
        &self,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        events: EventSet,
        is_admin: bool,
        since: Option<u64>,
        answer: impl FnOnce(Subscribed),
    ) {
        let mut state = self.lock();
        state.subscriber(connection, outbox, is_admin).events = events;
        // A number that was never given out comes from another database.
        let events_lost = since.is_some_and(|since| since > state.seq || since < state.forgotten);
        answer(Subscribed {
            seq: state.seq,
            events_lost,
        });
        let Some(since) = since else { return };
        let subscriber = &state.subscribers[&connection];
        let missed: Vec<Arc<str>> = state
            .kept
            .iter()
            .filter(|kept| {
                kept.seq > since && state.wants(connection, subscriber, kept.name, kept.turn)
            })
            .map(|kept| Arc::clone(&kept.text))
            .collect();
        if !missed.is_empty() {
            subscriber.outbox.push(Item::Replay(missed));
        }
    }

    /// Forgets a connection. The turns that it watches continue.
    pub fn leave(&self, connection: ConnectionId) {
        let mut state = self.lock();
        state.subscribers.remove(&connection);
        for watching in state.watchers.values_mut().flatten() {
            if watching.connection == Some(connection) {
                watching.connection = None;
            }
        }
    }

    /// Notifies `watcher` of what happens in a turn from now on. A watcher that is
    /// added before the turn starts misses nothing.
    pub fn watch(&self, turn: TurnId, watcher: Box<dyn Watcher>) -> Watch {
        let mut state = self.lock();
        let number = state.next_watch;
        state.next_watch += 1;
        if !state.is_closed {
            state.watchers.entry(turn).or_default().push(Watching {
                number,
                watcher,
                connection: None,
            });
        }
        Watch { turn, number }
    }

    /// Streams the events of a watched turn to a connection, too.
    pub fn stream(
        &self,
        watch: Watch,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        is_admin: bool,
    ) {
        let mut state = self.lock();
        state.subscriber(connection, outbox, is_admin);
        let watchers = state.watchers.get_mut(&watch.turn).into_iter().flatten();
        for watching in watchers.filter(|one| one.number == watch.number) {
            watching.connection = Some(connection);
        }
    }

    /// Removes a watcher; returns it unless it was notified of the end.
    pub fn unwatch(&self, watch: Watch) -> Option<Box<dyn Watcher>> {
        let mut state = self.lock();
        let watchers = state.watchers.get_mut(&watch.turn)?;
        let place = watchers.iter().position(|one| one.number == watch.number)?;
        let found = watchers.swap_remove(place);
        if watchers.is_empty() {
            state.watchers.remove(&watch.turn);
        }
        Some(found.watcher)
    }

    /// Whether anybody watches this turn.
    pub fn is_watched(&self, turn: TurnId) -> bool {
        self.lock().watchers.contains_key(&turn)
    }

    /// Notifies a turn's watchers of its end, once that is on disk; returns whether
    /// there were any.
    pub fn turn_ended(&self, turn: TurnId, end: &TurnEnded) -> bool {
        let watchers = self.lock().watchers.remove(&turn).unwrap_or_default();
        let was_watched = !watchers.is_empty();
        for watching in watchers {
            watching.watcher.ended(end);
        }
        was_watched
    }

    /// Drops all watchers, because the server stops.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.watchers.clear();
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        lock(&self.state)
    }
}

impl HubState {
    fn subscriber(
        &mut self,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        is_admin: bool,
    ) -> &mut Subscriber {
        let subscriber = self
            .subscribers
            .entry(connection)
            .or_insert_with(|| Subscriber {
                outbox: Arc::clone(outbox),
                events: EventSet::default(),
                is_admin,
            });
        subscriber.is_admin = is_admin;
        subscriber
    }

    /// The outboxes that get an event of this name and turn.
    fn subscribed(
        &self,
        name: EventName,
        turn: Option<TurnId>,
    ) -> impl Iterator<Item = &Arc<Outbox>> {
        self.subscribers
            .iter()
            .filter(move |(id, one)| self.wants(**id, one, name, turn))
            .map(|(_, one)| &one.outbox)
    }

    fn wants(
        &self,
        connection: ConnectionId,
        subscriber: &Subscriber,
        name: EventName,
        turn: Option<TurnId>,
    ) -> bool {
        let is_streamed = || {
            let watchers = turn.and_then(|turn| self.watchers.get(&turn));
            watchers.is_some_and(|all| all.iter().any(|one| one.connection == Some(connection)))
        };
        (subscriber.is_admin || !name.is(EventTrait::AdminOnly))
            && (subscriber.events.contains(name)
                || (name.is(EventTrait::Streamed) && is_streamed()))
    }

    fn keep(&mut self, kept: KeptEvent) {
        self.kept_bytes += kept.text.len();
        self.kept.push_back(kept);
        while self.kept.len() > KEPT_EVENTS || self.kept_bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.kept_bytes -= oldest.text.len();
            self.forgotten = oldest.seq;
        }
    }
}
