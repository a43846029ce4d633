//! The bounded queue of what one connection has to send. Any thread fills it;
//! the connection's own thread empties it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::sync::atomic::{AtomicUsize, Ordering};
use base::sync::{Mutex, lock};

/// Why a connection is closed: a WebSocket close code (RFC 6455 section 7.4)
/// and a reason of at most 123 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// 1000 to 1013, as RFC 6455 lists them.
    pub code: u16,
    /// For debugging the client; holds no secret.
    pub reason: &'static str,
}

impl Close {
    /// A close with this code and reason.
    pub const fn new(code: u16, reason: &'static str) -> Close {
        Close { code, reason }
    }

    /// The credential was refused, or none came in time.
    pub const UNAUTHENTICATED: Close = Close::new(1008, "authentication failed");
    /// The credential was revoked or expired while the connection was open.
    pub const REVOKED: Close = Close::new(1008, "the token is no longer valid");
    /// The client does not read what it asked for.
    pub const TOO_SLOW: Close = Close::new(1013, "too slow: outbox full");
    /// The client keeps sending requests while one is not answered yet.
    pub const TOO_MANY: Close = Close::new(1008, "too many requests at once");
    /// The server is stopping.
    pub const GOING_AWAY: Close = Close::new(1001, "the server is stopping");
}

/// One thing to send.
#[derive(Debug)]
pub enum Item {
    /// An event; shared by all connections that get it.
    Event(Arc<str>),
    /// Events that the connection missed. They do not count against the bound:
    /// the hub keeps their texts anyway.
    Replay(Vec<Arc<str>>),
    /// A response to the request that holds this ticket.
    Response {
        /// The request that it answers.
        ticket: Ticket,
        /// The whole envelope.
        text: String,
    },
    /// A message that is sent unchanged, past the client handler. Only on
    /// WebSockets. One with a load is not counted; backpressure applies to its
    /// sender.
    Direct(Direct, Option<Load>),
}

/// What a WebSocket sends unchanged.
#[derive(Debug)]
pub enum Direct {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
    /// The last one: the connection is closed after it.
    Close {
        /// A code that RFC 6455 section 7.4 lets an endpoint send; any other
        /// becomes 1000.
        code: u16,
        /// Shortened to the 123 bytes that fit.
        reason: String,
    },
}

impl Direct {
    fn len(&self) -> usize {
        match self {
            Direct::Text(text) => text.len(),
            Direct::Binary(bytes) => bytes.len(),
            Direct::Close { reason, .. } => reason.len(),
        }
    }
}

/// How many bytes of one sender still wait in the queues of others. Above its room
/// that sender is not read from, which slows down it and nobody else.
#[derive(Debug)]
pub struct Backlog {
    bytes: AtomicUsize,
    room: usize,
    /// Wakes the connection that waits for room.
    owner: Arc<Outbox>,
}

impl Backlog {
    /// The room of one client among others.
    pub const ROOM: usize = 64 * 1024;

    /// An empty backlog of `room` bytes, which wakes the connection with the outbox
    /// `owner` when there is room again.
    pub fn new(owner: Arc<Outbox>, room: usize) -> Arc<Backlog> {
        Arc::new(Backlog {
            bytes: AtomicUsize::new(0),
            room,
            owner,
        })
    }

    /// Whether the sender may be read from.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) <= self.room
    }

    /// Adds `bytes` until the load is dropped.
    pub fn load(self: &Arc<Backlog>, bytes: usize) -> Load {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        Load {
            backlog: Arc::clone(self),
            bytes,
        }
    }
}

/// A part of a [`Backlog`]; dropping it marks it as sent.
#[derive(Debug)]
pub struct Load {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Drop for Load {
    fn drop(&mut self) {
        let backlog = &self.backlog;
        let before = backlog.bytes.fetch_sub(self.bytes, Ordering::SeqCst);
        if before > backlog.room && before - self.bytes <= backlog.room {
            backlog.owner.wake();
        }
    }
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Item::Event(text) => text.len(),
            Item::Replay(_) => 0,
            Item::Response { text, .. } => text.len(),
            Item::Direct(_, Some(_)) => 0,
            Item::Direct(direct, None) => direct.len(),
        }
    }
}

/// A request's place on its connection. It shows the session whether the response
/// must wait, and for which others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// The queue of one connection. Share it as `Arc<Outbox>`.
pub struct Outbox {
    queue: Mutex<Queue>,
    bound: usize,
    wake: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    close: Option<Close>,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbox")
    }
}

/// What [`Outbox::take`] found.
#[derive(Debug, Default)]
pub struct Taken {
    /// In the order in which they were pushed.
    pub items: VecDeque<Item>,
    /// Set when the connection is to be closed after the items were sent.
    pub close: Option<Close>,
}

impl Outbox {
    /// An outbox that holds at most `bound` bytes. It calls `wake` for everything
    /// new, from the thread that pushed it.
    pub fn new(bound: usize, wake: impl Fn() + Send + Sync + 'static) -> Outbox {
        Outbox {
            queue: Mutex::default(),
            bound,
            wake: Box::new(wake),
        }
    }

    /// Adds an item; never blocks. When the outbox is full its connection is
    /// closed as [`Close::TOO_SLOW`], and what waited is dropped with it.
    /// Returns whether the item will be sent.
    pub fn push(&self, item: Item) -> bool {
        let mut queue = lock(&self.queue);
        if queue.close.is_some() {
            return false;
        }
        let mut dropped = VecDeque::new();
        // A single item always fits, however large: only a backlog means slow.
        if queue.bytes > 0 && queue.bytes + item.len() > self.bound {
            dropped = std::mem::take(&mut queue.items);
            queue.bytes = 0;
            queue.close = Some(Close::TOO_SLOW);
        } else {
            queue.bytes += item.len();
            queue.items.push_back(item);
        }
        let is_open = queue.close.is_none();
        drop(queue);
        // Outside the lock, because their loads wake other connections.
        drop(dropped);
        (self.wake)();
        is_open
    }

    /// Closes the connection once everything queued is sent. Only the first call
    /// counts.
    pub fn close(&self, close: Close) {
        lock(&self.queue).close.get_or_insert(close);
        (self.wake)();
    }

    /// Wakes the connection's thread although nothing was added.
    pub fn wake(&self) {
        (self.wake)();
    }

    /// Takes everything queued.
    pub fn take(&self) -> Taken {
        let mut queue = lock(&self.queue);
        queue.bytes = 0;
        Taken {
            items: std::mem::take(&mut queue.items),
            close: queue.close,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(bytes: usize) -> Item {
        Item::Event("x".repeat(bytes).into())
    }

    #[test]
    fn a_backlog_over_the_bound_closes_the_connection() {
        let outbox = Outbox::new(10, || ());
        outbox.push(event(20));
        assert_eq!(
            outbox.take().items.len(),
            1,
            "one large item is not a backlog"
        );
        outbox.push(event(6));
        outbox.push(event(6));
        let taken = outbox.take();
        assert!(taken.items.is_empty());
        assert_eq!(taken.close, Some(Close::TOO_SLOW));
    }

    #[test]
    fn a_load_is_its_senders_and_wakes_it_when_there_is_room_again() {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let sender = Arc::new(Outbox::new(10, move || {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        let backlog = Backlog::new(sender, Backlog::ROOM);
        let outbox = Outbox::new(10, || ());
        let message =
            |bytes: usize| Item::Direct(Direct::Binary(vec![0; bytes]), Some(backlog.load(bytes)));
        for _ in 0..3 {
            assert!(outbox.push(message(Backlog::ROOM / 2)));
        }
        assert!(!backlog.has_room());
        assert_eq!(woken.load(Ordering::SeqCst), 0);
        drop(outbox.take());
        assert!(backlog.has_room());
        assert_eq!(woken.load(Ordering::SeqCst), 1);
        outbox.close(Close::REVOKED);
        assert!(!outbox.push(message(Backlog::ROOM + 1)));
        assert!(backlog.has_room(), "what is refused does not weigh");
    }

    #[test]
    fn the_first_reason_to_close_stands() {
        let outbox = Outbox::new(10, || ());
        outbox.close(Close::REVOKED);
        outbox.close(Close::GOING_AWAY);
        outbox.push(event(1));
        let taken = outbox.take();
        assert_eq!((taken.items.len(), taken.close), (0, Some(Close::REVOKED)));
    }
}
