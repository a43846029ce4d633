//! Events: numbered, kept for a while, and passed to their subscribers.
//!
//! All waiting for turns goes through here, too. A [`Watcher`] gets the turn's events
//! as values and, once it is on disk, its end. Each kind of watcher uses them in its
//! own way: a chat's responder answers its request, a response of the model API
//! grows, a webhook's caller stops waiting.

mod events;
mod kept;
mod recipients;
mod reply;
mod shares;
#[cfg(test)]
mod tests;
mod watcher;

use base::ids::{ConversationId, TurnId};
use base::language::Words;
use base::sync::{Condvar, Mutex, MutexGuard, lock};
use net::outbox::{Item, Outbox};
use protocol::event::{Event, EventKind, EventName, EventSet, EventTrait};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use store::{Readers, Turn};

use events::of_conversation;
use kept::{KeptEvent, KeptEvents};
pub use recipients::{ConnectionId, Person, Recipients};
pub use reply::Reply;
use shares::Shares;
use watcher::Watching;
pub use watcher::{TurnEnded, Watch, Watcher};

/// Numbers every event and passes it on. Publishing never waits for a subscriber:
/// a full outbox closes its connection instead.
pub struct Hub {
    state: Mutex<HubState>,
    /// Notified when nobody watches a turn any longer.
    left: Condvar,
}

#[derive(Default)]
struct HubState {
    /// The number of the newest event.
    seq: u64,
    /// The last number that may be given out: a start after a crash continues above it.
    reserved: u64,
    /// Whether events have got no number, because none was reserved.
    has_lost: bool,
    kept: KeptEvents,
    subscribers: HashMap<ConnectionId, Subscriber>,
    watchers: HashMap<TurnId, Vec<Watching>>,
    /// The replies so far of turns that run, each with the number of its last event.
    written: HashMap<TurnId, (String, u64)>,
    next_watch: u64,
    is_closed: bool,
    shares: Shares,
}

struct Subscriber {
    outbox: Arc<Outbox>,
    /// What `subscribe` asked for.
    events: EventSet,
    person: Person,
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
                kept: KeptEvents::after(last),
                ..HubState::default()
            }),
            left: Condvar::new(),
        }
    }

    /// The numbers up to `last` may be given out: it is on disk that they may be in
    /// use.
    pub fn reserved(&self, last: u64) {
        let mut state = self.lock();
        state.reserved = last;
        if std::mem::take(&mut state.has_lost) {
            // Whoever has heard of those before it has missed something.
            state.seq += 1;
            let seq = state.seq;
            state.kept.forget(seq);
        }
    }

    /// Numbers an event, keeps it, and passes it to the turn's watchers and to those
    /// of its subscribers who may see it. Subscribers do not get an event for which
    /// no number is reserved: after a crash, another one would have its number.
    fn publish(&self, event: Event, recipients: Recipients) {
        self.lock().publish(event, recipients);
    }

    /// The readers of a conversation have changed: those who were `before` and are
    /// no longer hear that it is gone, the others get `event`. From now on `now`
    /// decides about its earlier and later events. Calls for one conversation must
    /// come in the order of its changes. `busy` are the conversations with turns.
    pub fn share(
        &self,
        conversation: ConversationId,
        before: Readers,
        now: Readers,
        busy: &HashSet<ConversationId>,
        event: EventKind,
    ) {
        let mut state = self.lock();
        state.shares.note(conversation, now.clone(), false, busy);
        state.kept.share(conversation, &now);
        let gone = of_conversation(conversation, EventKind::ConversationDeleted);
        let former = Recipients::Former {
            before,
            now: now.clone(),
        };
        state.publish(gone, former);
        let shared = of_conversation(conversation, event);
        state.publish(shared, Recipients::Readers(now));
    }

    /// A conversation was deleted: its events are not kept, neither the earlier ones nor
    /// those of what still runs, and its readers hear that it is gone. `busy` are the
    /// conversations with turns.
    pub fn delete(
        &self,
        conversation: ConversationId,
        readers: Readers,
        busy: &HashSet<ConversationId>,
    ) {
        let mut state = self.lock();
        // What still runs is for those who saw it last, not for those who saw it when that
        // began.
        (state.shares).note(conversation, readers.clone(), true, busy);
        // That it is gone remains for those who could not see it any longer before, and
        // were told so.
        state.kept.delete(|kept| {
            kept.conversation == Some(conversation) && kept.name != EventName::ConversationDeleted
        });
        let event = of_conversation(conversation, EventKind::ConversationDeleted);
        state.publish(event, Recipients::Readers(readers));
    }

    /// The messages of these turns were deleted: what was told of them is not kept.
    pub fn delete_turns(&self, turns: &[TurnId]) {
        let is_gone = |kept: &KeptEvent| kept.turn.is_some_and(|turn| turns.contains(&turn));
        self.lock().kept.delete(is_gone);
    }

    /// Whether a conversation was deleted while the server ran.
    pub fn is_deleted(&self, conversation: ConversationId) -> bool {
        self.lock().shares.is_deleted(conversation)
    }

    /// The conversations with events that are kept.
    pub fn conversations(&self) -> HashSet<ConversationId> {
        self.lock().kept.conversations()
    }

    /// The number of the newest event.
    pub fn seq(&self) -> u64 {
        self.lock().seq
    }

    /// Whether anybody would get the pieces of this turn's text.
    pub fn is_streamed(&self, turn: &Turn) -> bool {
        self.lock()
            .is_streamed(turn.id, turn.conversation_id, &turn.readers)
    }

    /// Subscribes a connection; this replaces its earlier subscription.
    /// `answer` is called before any event can reach the outbox; then the kept
    /// events after `since` follow.
    pub fn subscribe(
        &self,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        events: EventSet,
        person: Person,
        since: Option<u64>,
        answer: impl FnOnce(Subscribed),
    ) {
        let mut state = self.lock();
        state.subscriber(connection, outbox, person).events = events;
        // A number that was never given out comes from another database.
        let events_lost =
            since.is_some_and(|since| since > state.seq || state.kept.has_forgotten_after(since));
        answer(Subscribed {
            seq: state.seq,
            events_lost,
        });
        let Some(since) = since else { return };
        let subscriber = &state.subscribers[&connection];
        let missed = state.kept.after_seq(since, person, |kept| {
            let recipients = &kept.recipients;
            state.wants(connection, subscriber, kept.name, kept.turn, recipients)
        });
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
    /// added before the turn starts misses nothing. One that watches for a person gets
    /// what they may see.
    pub fn watch(&self, turn: TurnId, person: Option<Person>, watcher: Box<dyn Watcher>) -> Watch {
        let mut state = self.lock();
        let number = state.next_watch;
        state.next_watch += 1;
        if !state.is_closed {
            state.watchers.entry(turn).or_default().push(Watching {
                number,
                watcher,
                person,
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
        person: Person,
    ) {
        let mut state = self.lock();
        state.subscriber(connection, outbox, person);
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
            self.left.notify_all();
        }
        Some(found.watcher)
    }

    /// What a turn said before the server started again, which its next pieces follow.
    pub fn resumed(&self, turn: TurnId, said: String) {
        let mut state = self.lock();
        let seq = state.seq;
        state.written.entry(turn).or_insert((said, seq));
    }

    /// The reply of a turn so far, and the number of the last event in it.
    pub fn written(&self, turn: TurnId) -> Option<(String, u64)> {
        self.lock().written.get(&turn).cloned()
    }

    /// Whether anybody watches this turn.
    pub fn is_watched(&self, turn: TurnId) -> bool {
        self.lock().watchers.contains_key(&turn)
    }

    /// Whether nobody watches this turn, after a wait of at most `patience` for those who do.
    pub fn is_left(&self, turn: TurnId, patience: Duration) -> bool {
        let is_watched = |state: &mut HubState| state.watchers.contains_key(&turn);
        let waited = self
            .left
            .wait_timeout_while(self.lock(), patience, is_watched);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }

    /// Whether somebody else watches the turn of this watcher.
    pub fn is_shared(&self, watch: Watch) -> bool {
        let state = self.lock();
        let mut watchers = state.watchers.get(&watch.turn).into_iter().flatten();
        watchers.any(|one| one.number != watch.number)
    }

    /// Notifies a turn's watchers of its end, once that is on disk; returns whether
    /// there were any.
    pub fn turn_ended(&self, turn: TurnId, end: &TurnEnded) -> bool {
        let mut state = self.lock();
        state.written.remove(&turn);
        let watchers = state.watchers.remove(&turn).unwrap_or_default();
        drop(state);
        let was_watched = !watchers.is_empty();
        for watching in watchers {
            match (watching.person, &end.result) {
                (Some(person), Ok(reply)) => watching.watcher.ended(&TurnEnded {
                    result: reply.seen_by(person),
                    delivery: end.delivery,
                }),
                _ => watching.watcher.ended(end),
            }
        }
        was_watched
    }

    /// Drops all watchers, because the server stops.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.watchers.clear();
        state.written.clear();
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        lock(&self.state)
    }
}

impl HubState {
    fn publish(&mut self, event: Event, mut recipients: Recipients) {
        let (name, turn) = (event.kind.name(), event.turn_id);
        if let Some(conversation) = event.conversation_id
            && let Some(readers) = recipients.readers_mut()
        {
            self.shares.update(conversation, readers);
        }
        for watching in turn
            .and_then(|turn| self.watchers.get_mut(&turn))
            .into_iter()
            .flatten()
        {
            let is_told_already = matches!(recipients, Recipients::OtherAdmins(_));
            let sees = |person: Person| match recipients.readers_mut() {
                Some(readers) => person.may_see(readers),
                None => !is_told_already,
            };
            if watching.person.is_none_or(sees) {
                watching.watcher.event(&event.kind);
            }
        }
        if self.seq >= self.reserved {
            self.has_lost |= name.is(EventTrait::Kept);
            return;
        }
        self.seq += 1;
        let seq = self.seq;
        if let (EventKind::Delta { text }, Some(turn)) = (&event.kind, turn) {
            let (written, last) = self.written.entry(turn).or_default();
            written.push_str(text);
            *last = seq;
        }
        let is_of_deleted = (event.conversation_id)
            .is_some_and(|conversation| self.shares.is_deleted(conversation));
        let is_kept =
            name.is(EventTrait::Kept) && (!is_of_deleted || name == EventName::ConversationDeleted);
        let subscribers: Vec<&Subscriber> = self.subscribed(name, turn, &recipients).collect();
        if subscribers.is_empty() && !is_kept {
            return;
        }
        let text: Arc<str> = event.to_text(seq, Words::ENGLISH, true).into();
        for Subscriber { outbox, person, .. } in subscribers {
            outbox.push(Item::Event(match event.is_worded() {
                true => event.to_text(seq, person.words, person.is_program).into(),
                false => Arc::clone(&text),
            }));
        }
        if is_kept {
            let kept = KeptEvent {
                seq,
                name,
                turn,
                conversation: event.conversation_id,
                recipients,
                length: text.len(),
                worded: event.is_worded().then(|| event.into()),
            };
            self.kept.push(kept, &text);
        }
    }

    fn is_streamed(&self, turn: TurnId, conversation: ConversationId, readers: &Readers) -> bool {
        let watchers = self.watchers.get(&turn);
        if watchers.is_some_and(|all| all.iter().any(|one| one.watcher.wants_events())) {
            return true;
        }
        let mut readers = readers.clone();
        self.shares.update(conversation, &mut readers);
        let recipients = Recipients::Readers(readers);
        [EventName::Delta, EventName::Reasoning].iter().any(|name| {
            let mut subscribed = self.subscribed(*name, Some(turn), &recipients);
            subscribed.next().is_some()
        })
    }

    fn subscriber(
        &mut self,
        connection: ConnectionId,
        outbox: &Arc<Outbox>,
        person: Person,
    ) -> &mut Subscriber {
        let subscriber = self
            .subscribers
            .entry(connection)
            .or_insert_with(|| Subscriber {
                outbox: Arc::clone(outbox),
                events: EventSet::default(),
                person,
            });
        subscriber.person = person;
        subscriber
    }

    /// Those who get an event of this name and turn.
    fn subscribed<'a>(
        &'a self,
        name: EventName,
        turn: Option<TurnId>,
        recipients: &'a Recipients,
    ) -> impl Iterator<Item = &'a Subscriber> {
        self.subscribers
            .iter()
            .filter(move |(id, one)| self.wants(**id, one, name, turn, recipients))
            .map(|(_, one)| one)
    }

    fn wants(
        &self,
        connection: ConnectionId,
        subscriber: &Subscriber,
        name: EventName,
        turn: Option<TurnId>,
        recipients: &Recipients,
    ) -> bool {
        let is_streamed = || {
            let watchers = turn.and_then(|turn| self.watchers.get(&turn));
            watchers.is_some_and(|all| all.iter().any(|one| one.connection == Some(connection)))
        };
        recipients.include(subscriber.person)
            && !recipients.leave_out(connection)
            && (subscriber.events.contains(name)
                || (name.is(EventTrait::Streamed) && is_streamed()))
    }
}
