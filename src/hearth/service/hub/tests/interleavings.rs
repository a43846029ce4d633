//! The hub under many schedules of those who publish and those who come and go: run
//! with `make interleavings`.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::*;
use crate::service::turn_wait::TurnWait;
use base::ids::DeliveryId;
use base::sync::thread;
use base::testing::{explore, explore_all};
use net::outbox::Ticket;

/// A connection that reads its outbox at any moment.
struct Listener {
    number: u64,
    person: Person,
    outbox: Arc<Outbox>,
    /// What it has taken, without the answer to `subscribe`.
    seen: Vec<u64>,
    /// The newest event when it subscribed.
    joined_at: Option<u64>,
}

impl Listener {
    fn new(number: u64) -> Listener {
        Listener {
            number,
            person: bob(),
            outbox: outbox(),
            seen: Vec::new(),
            joined_at: None,
        }
    }

    /// Subscribes as a session does: the answer goes through the same outbox.
    fn join(&mut self, hub: &Hub, since: u64) {
        let answer = |subscribed: Subscribed| {
            assert!(!subscribed.events_lost);
            self.outbox.push(Item::Response {
                ticket: Ticket(subscribed.seq),
                text: String::new(),
            });
        };
        let id = ConnectionId(self.number);
        let (outbox, all) = (&self.outbox, EventSet::ALL);
        hub.subscribe(id, outbox, all, self.person, Some(since), answer);
    }

    fn read(&mut self) {
        for item in self.outbox.take().items {
            match item {
                Item::Response { ticket, .. } => {
                    assert_eq!(self.joined_at.replace(ticket.0), None);
                    assert!(self.seen.is_empty(), "an event before the answer");
                }
                Item::Event(text) => self.note(&text),
                Item::Replay(texts) => texts.iter().for_each(|text| self.note(text)),
                Item::Direct(..) => unreachable!("the hub sends none"),
            }
        }
    }

    fn note(&mut self, text: &str) {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let seq = value["seq"].as_u64().unwrap();
        assert!(self.seen.last() < Some(&seq), "{seq} after {:?}", self.seen);
        self.seen.push(seq);
    }
}

/// Publishes the events of a reply, and of another turn beside it. Returns the
/// threads.
fn publish(hub: &Arc<Hub>) -> Vec<thread::JoinHandle<()>> {
    let reply = [delta(7), delta(7), done(7)];
    let another = [delta(8), done(8)];
    [reply.to_vec(), another.to_vec()]
        .into_iter()
        .map(|events| {
            let hub = Arc::clone(hub);
            thread::spawn(move || events.into_iter().for_each(|event| hub.tell(event)))
        })
        .collect()
}

/// The numbers of the events that are kept. Somebody who was there from the start
/// says which they are.
fn kept(hub: &Hub) -> Vec<u64> {
    let late = outbox();
    let id = ConnectionId(99);
    hub.subscribe(id, &late, EventSet::ALL, bob(), Some(0), |_| ());
    numbers(&late)
}

#[test]
fn a_listener_that_joins_during_a_reply_sees_every_event_once() {
    explore("hub: joining during a reply", || {
        let hub = Arc::new(hub_after(0));
        let publishers = publish(&hub);
        let mut listener = Listener::new(1);
        listener.join(&hub, 0);
        listener.read();
        for publisher in publishers {
            publisher.join().unwrap();
        }
        listener.read();
        let joined_at = listener.joined_at.unwrap();
        let kept = kept(&hub);
        assert_eq!(kept.len(), 2);
        // What was kept before it joined, then everything.
        let missed = kept.into_iter().filter(|&seq| seq <= joined_at);
        let expected: Vec<u64> = missed.chain(joined_at + 1..=5).collect();
        assert_eq!(listener.seen, expected, "joined at {joined_at}");
    });
}

#[test]
fn a_listener_that_comes_back_misses_nothing_that_is_kept() {
    explore("hub: coming back", || {
        let hub = Arc::new(hub_after(0));
        let publishers = publish(&hub);
        let mut first = Listener::new(1);
        first.join(&hub, 0);
        thread::yield_now();
        // Whatever it has not read when it leaves is lost with its connection.
        first.read();
        hub.leave(ConnectionId(1));
        let last = first.seen.last().copied().or(first.joined_at).unwrap();
        let mut second = Listener::new(2);
        second.join(&hub, last);
        for publisher in publishers {
            publisher.join().unwrap();
        }
        second.read();
        let seen = [first.seen, second.seen].concat();
        assert!(seen.is_sorted_by(|one, next| one < next), "{seen:?}");
        for seq in kept(&hub) {
            assert!(seen.contains(&seq), "{seq} is not in {seen:?}");
        }
    });
}

/// A conversation is taken from the household while its turn goes on: whoever loses
/// it gets no event after the one that says so, however the threads run, not even
/// in a replay; its owner misses none.
#[test]
fn nothing_follows_the_loss_of_a_conversation() {
    explore("hub: sharing during a reply", || {
        let hub = Arc::new(hub_after(0));
        let (id, busy) = (ConversationId::from(7), HashSet::new());
        let mut owner = Listener {
            person: ada(),
            ..Listener::new(1)
        };
        let mut other = Listener::new(2);
        owner.join(&hub, 0);
        other.join(&hub, 0);
        let publisher = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                for event in [delta(7), delta(7), done(7)] {
                    // With the readers that the turn began with.
                    let recipients = Recipients::Readers(Readers::Household);
                    let conversation_id = Some(id);
                    hub.publish(
                        Event {
                            conversation_id,
                            ..event
                        },
                        recipients,
                    );
                }
            })
        };
        let sharer = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                hub.share(id, Readers::Household, readers(&[ada()]), &busy, renamed());
            })
        };
        thread::yield_now();
        // One who comes while this goes on.
        let mut late = Listener::new(3);
        late.join(&hub, 0);
        sharer.join().unwrap();
        publisher.join().unwrap();
        for listener in [&mut owner, &mut other, &mut late] {
            listener.read();
        }
        // Three of the turn, that it is gone, and that it is shared.
        let gone = *other.seen.last().unwrap();
        assert_eq!(owner.seen.len(), 4, "{:?}", owner.seen);
        assert!(!owner.seen.contains(&gone));
        assert_eq!(other.seen, Vec::from_iter(1..=gone));
        assert!(late.seen.iter().all(|&seq| seq <= gone), "{:?}", late.seen);
        assert!(late.seen.contains(&gone), "it learns of it in any case");
        assert_eq!(replay(&hub, bob()), [gone]);
    });
}

#[test]
fn a_request_that_waits_is_answered_unless_its_callback_is_sent() {
    explore("hub: waiting for a turn", || {
        let hub = Arc::new(hub_after(0));
        let turn = TurnId::from(7);
        let end = TurnEnded {
            result: Err(base::error::Error::not_found("x")),
            delivery: Some(DeliveryId::from(9)),
        };
        let waiting = Arc::new(AtomicUsize::new(0));
        let (began, begin) = base::sync::channel::bounded(1);
        let waits = {
            let (hub, waiting) = (Arc::clone(&hub), Arc::clone(&waiting));
            thread::spawn(move || {
                let place = TurnWait::new(&hub, &waiting, turn, 1).unwrap();
                began.send(()).unwrap();
                // It may time out at any moment.
                place.wait(Duration::from_secs(1)).is_some()
            })
        };
        let ends = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                begin.recv().unwrap();
                hub.turn_ended(turn, &end)
            })
        };
        // Those who end a turn rely on it: the callback is sent by one of the two.
        let (got_it, was_watched) = (waits.join().unwrap(), ends.join().unwrap());
        assert_eq!(got_it, was_watched);
        assert!(!hub.is_watched(turn));
        assert_eq!(waiting.load(std::sync::atomic::Ordering::SeqCst), 0);
    });
}

#[test]
fn closing_releases_whoever_waits() {
    explore_all("hub: closing", || {
        let hub = Arc::new(hub_after(0));
        let waiting = AtomicUsize::new(0);
        let waits = {
            let hub = Arc::clone(&hub);
            thread::spawn(move || {
                let place = TurnWait::new(&hub, &waiting, TurnId::from(7), 1).unwrap();
                assert!(place.wait(Duration::from_secs(60)).is_none());
            })
        };
        hub.close();
        waits.join().unwrap();
    });
}
