//! Events: numbered, kept for a while, and given to whoever asked for them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::ids::TurnId;
use net::outbox::{Item, Outbox};
use protocol::command::EventSet;
use protocol::event::{Event, Name};

/// Events kept for connections that were away (protocol section 5).
const KEPT_EVENTS: usize = 10_000;
/// Bytes that the kept events may take; reached before [`KEPT_EVENTS`] only
/// when messages are long.
const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// A connection, as the hub and the service's registry know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// Gives every event its number and passes it on. Publishing never waits for a
/// subscriber: a full outbox closes its connection instead.
pub struct Hub {
    state: Mutex<State>,
}

struct State {
    /// The number of the newest event.
    seq: u64,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    subscribers: HashMap<ConnectionId, Subscriber>,
}

struct Kept {
    seq: u64,
    name: Name,
    turn: Option<TurnId>,
    text: Arc<str>,
}

struct Subscriber {
    outbox: Arc<Outbox>,
    /// What `subscribe` asked for.
    events: EventSet,
    /// Turns of its own that it streams.
    turns: Vec<TurnId>,
    is_admin: bool,
}

/// What `subscribe` is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// The number of the newest event.
    pub seq: u64,
    /// Whether events after `since` are no longer kept.
    pub events_lost: bool,
}

impl Subscriber {
    fn wants(&self, name: Name, turn: Option<TurnId>) -> bool {
        if name.is_admin_only() && !self.is_admin {
            return false;
        }
        self.events.contains(name)
            || (name.is_streamed() && turn.is_some_and(|turn| self.turns.contains(&turn)))
    }
}

impl Hub {
    /// A hub whose first event has a number above `last`.
    pub fn after(last: u64) -> Hub {
        Hub {
            state: Mutex::new(State {
                seq: last,
                kept: VecDeque::new(),
                kept_bytes: 0,
                subscribers: HashMap::new(),
            }),
        }
    }

    /// Numbers an event, keeps it and gives it to its subscribers.
    pub fn publish(&self, event: Event) {
        let mut state = self.lock();
        state.seq += 1;
        let seq = state.seq;
        let (name, turn) = (event.kind.name(), event.turn_id);
        let wanted = state
            .subscribers
            .values()
            .any(|subscriber| subscriber.wants(name, turn));
        if !wanted && !name.is_kept() {
            return;
        }
        let text: Arc<str> = event.to_text(seq).into();
        for subscriber in state
            .subscribers
            .values()
            .filter(|one| one.wants(name, turn))
        {
            subscriber.outbox.push(Item::Event(Arc::clone(&text)));
        }
        if let (Name::Done | Name::Failed, Some(turn)) = (name, turn) {
            state.forget_turn(turn);
        }
        if name.is_kept() {
            state.keep(Kept {
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
        self.lock()
            .subscribers
            .values()
            .any(|one| one.wants(Name::Delta, Some(turn)))
    }

    /// Subscribes a connection, in place of what it had subscribed before.
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
        let subscriber = state.subscriber(connection, outbox);
        subscriber.events = events;
        subscriber.is_admin = is_admin;
        let oldest = state.kept.front().map_or(state.seq + 1, |kept| kept.seq);
        // A number of the future comes from another database: all bets are off.
        let events_lost =
            since.is_some_and(|since| since > state.seq || since.saturating_add(1) < oldest);
        answer(Subscribed {
            seq: state.seq,
            events_lost,
        });
        let Some(since) = since else { return };
        let subscriber = &state.subscribers[&connection];
        let missed: Vec<Arc<str>> = state
            .kept
            .iter()
            .filter(|kept| kept.seq > since && subscriber.wants(kept.name, kept.turn))
            .map(|kept| Arc::clone(&kept.text))
            .collect();
        if !missed.is_empty() {
            subscriber.outbox.push(Item::Replay(missed));
        }
    }

    /// Streams a turn to the connection that began it, until the turn ends.
    pub fn watch(
        &self,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        is_admin: bool,
        turn: TurnId,
    ) {
        let mut state = self.lock();
        let subscriber = state.subscriber(connection, outbox);
        subscriber.is_admin = is_admin;
        if !subscriber.turns.contains(&turn) {
            subscriber.turns.push(turn);
        }
    }

    /// Forgets a connection.
    pub fn leave(&self, connection: ConnectionId) {
        self.lock().subscribers.remove(&connection);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn subscriber(&mut self, connection: ConnectionId, outbox: &Arc<Outbox>) -> &mut Subscriber {
        self.subscribers
            .entry(connection)
            .or_insert_with(|| Subscriber {
                outbox: Arc::clone(outbox),
                events: EventSet::default(),
                turns: Vec::new(),
                is_admin: false,
            })
    }

    fn forget_turn(&mut self, turn: TurnId) {
        self.subscribers.retain(|_, subscriber| {
            subscriber.turns.retain(|&streamed| streamed != turn);
            !subscriber.turns.is_empty() || subscriber.events != EventSet::default()
        });
    }

    fn keep(&mut self, kept: Kept) {
        self.kept_bytes += kept.text.len();
        self.kept.push_back(kept);
        while self.kept.len() > KEPT_EVENTS || self.kept_bytes > KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.kept_bytes -= oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::MessageId;
    use protocol::event::Kind;

    fn outbox() -> Arc<Outbox> {
        Arc::new(Outbox::new(1 << 20, || ()))
    }

    fn event(turn: i64, kind: Kind) -> Event {
        Event {
            turn_id: Some(TurnId::from(turn)),
            conversation_id: None,
            kind,
        }
    }

    fn delta(turn: i64) -> Event {
        event(turn, Kind::Delta { text: "x".into() })
    }

    fn done(turn: i64) -> Event {
        event(
            turn,
            Kind::Done {
                message_id: MessageId::from(1),
            },
        )
    }

    fn numbers(outbox: &Outbox) -> Vec<u64> {
        let number = |text: &str| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            value["seq"].as_u64().unwrap()
        };
        outbox
            .take()
            .items
            .iter()
            .flat_map(|item| match item {
                Item::Event(text) => vec![number(text)],
                Item::Replay(texts) => texts.iter().map(|text| number(text)).collect(),
                Item::Response { .. } | Item::Direct(..) => vec![],
            })
            .collect()
    }

    #[test]
    fn a_subscriber_gets_what_it_asked_for() {
        let hub = Hub::after(0);
        let (all, some) = (outbox(), outbox());
        let only_done = EventSet::of(&["chat.done".to_owned()]).unwrap();
        hub.subscribe(ConnectionId(1), &all, EventSet::ALL, true, None, |_| ());
        hub.subscribe(ConnectionId(2), &some, only_done, false, None, |_| ());
        hub.publish(delta(1));
        hub.publish(done(1));
        assert_eq!((numbers(&all), numbers(&some)), (vec![1, 2], vec![2]));
    }

    #[test]
    fn what_was_missed_is_replayed_without_the_pieces_of_text() {
        let hub = Hub::after(100);
        for event in [done(1), delta(2), done(2)] {
            hub.publish(event);
        }
        let late = outbox();
        let mut answers = Vec::new();
        hub.subscribe(
            ConnectionId(1),
            &late,
            EventSet::ALL,
            false,
            Some(101),
            |one| answers.push(one),
        );
        assert_eq!(
            answers,
            [Subscribed {
                seq: 103,
                events_lost: false
            }]
        );
        assert_eq!(numbers(&late), [103]);
    }

    #[test]
    fn a_gap_that_is_no_longer_kept_is_told() {
        let hub = Hub::after(0);
        for _ in 0..KEPT_EVENTS + 2 {
            hub.publish(done(1));
        }
        for (since, lost) in [(0, true), (1, true), (2, false), (20_000, true)] {
            let late = outbox();
            hub.subscribe(
                ConnectionId(1),
                &late,
                EventSet::ALL,
                false,
                Some(since),
                |answer| {
                    assert_eq!(answer.events_lost, lost, "since {since}");
                },
            );
        }
    }

    #[test]
    fn a_streamed_turn_ends_with_its_last_event() {
        let hub = Hub::after(0);
        let own = outbox();
        hub.watch(ConnectionId(1), &own, false, TurnId::from(7));
        assert!(hub.is_streamed(TurnId::from(7)) && !hub.is_streamed(TurnId::from(8)));
        for event in [delta(7), delta(8), done(7), delta(7)] {
            hub.publish(event);
        }
        assert_eq!(numbers(&own), [1, 3]);
        assert!(!hub.is_streamed(TurnId::from(7)));
    }

    #[test]
    fn approvals_are_shown_to_admins_alone() {
        let hub = Hub::after(0);
        let (admin, user) = (outbox(), outbox());
        hub.subscribe(ConnectionId(1), &admin, EventSet::ALL, true, None, |_| ());
        hub.subscribe(ConnectionId(2), &user, EventSet::ALL, false, None, |_| ());
        hub.publish(event(1, Kind::ConfigUpdated { fields: vec![] }));
        assert_eq!((numbers(&admin), numbers(&user)), (vec![1], vec![]));
    }
}
