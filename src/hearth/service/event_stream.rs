//! The events of one HTTP response, which are a connection's subscription otherwise.

use std::sync::Arc;

use super::Service;
use super::hub::{ConnectionId, Person, Subscribed};
use net::outbox::{Close, Item, Outbox};
use net::wait::Waker;
use protocol::event::EventSet;
use store::Identity;

/// Events from a number on. Dropping it ends the subscription.
pub struct EventStream {
    service: Arc<Service>,
    connection: ConnectionId,
    /// Closed when the credential is revoked, and when nobody reads.
    outbox: Arc<Outbox>,
}

/// What has happened since the last look.
pub struct NewEvents {
    /// As JSON, in their order.
    pub events: Vec<Arc<str>>,
    /// Why nothing follows.
    pub close: Option<Close>,
}

impl Service {
    /// Subscribes a response, whose thread `waker` wakes, to these events: those after `since`
    /// that are kept, and all that follow.
    pub fn stream_events(
        self: &Arc<Service>,
        identity: &Identity,
        events: EventSet,
        since: Option<u64>,
        waker: &Arc<Waker>,
    ) -> (EventStream, Subscribed) {
        self.reserve_event_numbers();
        let (wake, bound) = (
            Arc::clone(waker),
            self.settings.current().limits.outbox_bytes,
        );
        let outbox = Arc::new(Outbox::new(bound, move || wake.wake()));
        let connection = self.connections.open();
        self.connections
            .authenticated(connection, identity, &outbox);
        let mut subscribed = Subscribed {
            seq: 0,
            events_lost: false,
        };
        let person = Person::reading(identity, None);
        let answer = |answer| subscribed = answer;
        self.hub
            .subscribe(connection, &outbox, events, person, since, answer);
        let stream = EventStream {
            service: Arc::clone(self),
            connection,
            outbox,
        };
        (stream, subscribed)
    }
}

impl EventStream {
    /// Takes what has happened.
    pub fn take(&self) -> NewEvents {
        let taken = self.outbox.take();
        let mut events = Vec::new();
        for item in taken.items {
            match item {
                Item::Event(event) => events.push(event),
                Item::Replay(missed) => events.extend(missed),
                // Nobody sends commands on it.
                Item::Response { .. } | Item::Direct(..) => {}
            }
        }
        NewEvents {
            events,
            close: taken.close,
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.service.hub.leave(self.connection);
        self.service.connections.close(self.connection);
    }
}
