//! Limits the number of connections, in all and per address (protocol section
//! 7). Guards count down when they are dropped, so that no path forgets to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::peer::AddressKey;
use crate::wait::time_left;
use base::error::Error;
use base::sync::lock;
use base::words;
use config::Limits;

/// How long a new connection waits when its address already has all the
/// unauthenticated connections it may have. Browsers and scripts open many
/// connections at once and send their requests a moment later; without the wait,
/// such a burst would be treated as an attack.
const PLACE_TIME: Duration = Duration::from_secs(1);

/// After how many seconds a refused client should try again.
const RETRY_SECONDS: u32 = 5;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP, or not yet known.
    Http,
    /// `GET /ws` with an upgrade.
    WebSocket,
    /// JSON lines over plain TCP.
    Lines,
}

words! { Transport {
    Http: "http",
    WebSocket: "websocket",
    Lines: "lines",
} }

/// How many connections are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// HTTP, and those that have sent nothing yet.
    pub http: usize,
    /// Those that were upgraded.
    pub websocket: usize,
    /// Those whose first byte was `{`.
    pub lines: usize,
}

impl Connections {
    /// All of them.
    pub fn total(self) -> usize {
        self.http + self.websocket + self.lines
    }

    fn of(&mut self, transport: Transport) -> &mut usize {
        match transport {
            Transport::Http => &mut self.http,
            Transport::WebSocket => &mut self.websocket,
            Transport::Lines => &mut self.lines,
        }
    }
}

/// The counts, shared by all listeners of a server.
pub struct Admissions {
    /// Most connections, whatever the configuration permits.
    most: usize,
    counts: Mutex<Counts>,
    /// Notified when an unauthenticated place becomes free.
    place: Condvar,
}

#[derive(Default)]
struct Counts {
    open: Connections,
    addresses: HashMap<AddressKey, Address>,
    /// Connections that wait on [`Admissions::place`].
    waiting: usize,
}

#[derive(Default)]
struct Address {
    open: usize,
    unauthenticated: usize,
}

impl Admissions {
    /// No connections yet, and never more than `most`.
    pub fn new(most: usize) -> Admissions {
        Admissions {
            most,
            counts: Mutex::default(),
            place: Condvar::new(),
        }
    }

    /// Counts a new connection, without an address for now.
    ///
    /// # Errors
    /// `server_error` 503 when `limits.connections` are open.
    pub fn enter(self: &Arc<Admissions>, limits: &Limits) -> Result<Admission, Error> {
        let mut counts = self.lock();
        let limit = limits.connections.min(self.most);
        if counts.open.total() >= limit {
            return Err(full("too many connections", limit));
        }
        counts.open.http += 1;
        Ok(Admission {
            owner: Arc::clone(self),
            transport: Transport::Http,
            address: None,
            unauthenticated: false,
        })
    }

    /// How many are open now.
    pub fn open(&self) -> Connections {
        self.lock().open
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }
}

fn full(message: &str, limit: usize) -> Error {
    Error::overloaded(format!("{message} (the limit is {limit})"), RETRY_SECONDS)
}

/// One counted connection; dropping it counts down.
pub struct Admission {
    owner: Arc<Admissions>,
    transport: Transport,
    address: Option<AddressKey>,
    unauthenticated: bool,
}

impl Admission {
    /// Counts the connection for `address`, unless it is already counted for one.
    ///
    /// # Errors
    /// `server_error` 503 over `limits.connections_per_address`.
    pub fn belong_to(&mut self, address: AddressKey, limits: &Limits) -> Result<(), Error> {
        if self.address.is_some() {
            return Ok(());
        }
        let mut counts = self.owner.lock();
        let count = counts.addresses.entry(address).or_default();
        if count.open >= limits.connections_per_address {
            // The limit may be 0; then the entry is new and must not stay.
            counts.forget_if_empty(address);
            return Err(full(
                "too many connections from your address",
                limits.connections_per_address,
            ));
        }
        count.open += 1;
        self.address = Some(address);
        Ok(())
    }

    /// Counts the connection as unauthenticated. Waits up to a second when the
    /// address has too many. A connection without an address is not limited.
    ///
    /// # Errors
    /// `server_error` 503 over `limits.unauthenticated_per_address`.
    pub fn begin_unauthenticated(&mut self, limits: &Limits) -> Result<(), Error> {
        let Some(address) = self.address else {
            return Ok(());
        };
        if self.unauthenticated {
            return Ok(());
        }
        let deadline = Instant::now() + PLACE_TIME;
        let mut counts = self.owner.lock();
        loop {
            let count = counts.addresses.entry(address).or_default();
            if count.unauthenticated < limits.unauthenticated_per_address {
                count.unauthenticated += 1;
                self.unauthenticated = true;
                return Ok(());
            }
            let left = time_left(deadline);
            if left.is_zero() {
                return Err(full(
                    "too many unauthenticated connections from your address",
                    limits.unauthenticated_per_address,
                ));
            }
            counts.waiting += 1;
            counts = self
                .owner
                .place
                .wait_timeout(counts, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            counts.waiting -= 1;
        }
    }

    /// The connection has authenticated, or does not need to.
    pub fn end_unauthenticated(&mut self) {
        if std::mem::take(&mut self.unauthenticated) {
            let mut counts = self.owner.lock();
            if let Some(count) = self.address.and_then(|key| counts.addresses.get_mut(&key)) {
                count.unauthenticated -= 1;
            }
            // Waiters of other addresses wake too and wait on.
            if counts.waiting > 0 {
                self.owner.place.notify_all();
            }
        }
    }

    /// The connection turned out to speak `transport`.
    pub fn speaks(&mut self, transport: Transport) {
        let mut counts = self.owner.lock();
        *counts.open.of(self.transport) -= 1;
        *counts.open.of(transport) += 1;
        self.transport = transport;
    }

    /// What it speaks.
    pub fn transport(&self) -> Transport {
        self.transport
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.end_unauthenticated();
        let mut counts = self.owner.lock();
        *counts.open.of(self.transport) -= 1;
        if let Some(address) = self.address {
            if let Some(count) = counts.addresses.get_mut(&address) {
                count.open -= 1;
            }
            counts.forget_if_empty(address);
        }
    }
}

impl Counts {
    fn forget_if_empty(&mut self, address: AddressKey) {
        if let Entry::Occupied(entry) = self.addresses.entry(address)
            && entry.get().open == 0
        {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::limits;

    fn key(text: &str) -> AddressKey {
        AddressKey::of(text.parse().unwrap())
    }

    fn is_empty(admissions: &Admissions) -> bool {
        let counts = admissions.lock();
        counts.open == Connections::default() && counts.addresses.is_empty()
    }

    #[test]
    fn limits_hold_and_counts_return_to_zero() {
        let admissions = Arc::new(Admissions::new(usize::MAX));
        let limits = Limits {
            connections: 3,
            connections_per_address: 2,
            ..limits()
        };
        let mut first = admissions.enter(&limits).unwrap();
        let mut second = admissions.enter(&limits).unwrap();
        let mut third = admissions.enter(&limits).unwrap();
        let error = admissions.enter(&limits).err().unwrap();
        assert_eq!(error.status(), 503);
        assert_eq!(error.message(), "too many connections (the limit is 3)");

        first.belong_to(key("192.0.2.1"), &limits).unwrap();
        second.belong_to(key("192.0.2.1"), &limits).unwrap();
        let error = third.belong_to(key("192.0.2.1"), &limits).unwrap_err();
        assert_eq!(error.retry_after(), Some(RETRY_SECONDS));
        let said = "too many connections from your address (the limit is 2)";
        assert_eq!(error.message(), said);
        third.belong_to(key("192.0.2.2"), &limits).unwrap();

        first.speaks(Transport::WebSocket);
        assert_eq!(
            admissions.open(),
            Connections {
                http: 2,
                websocket: 1,
                lines: 0
            }
        );
        drop((first, second, third));
        assert!(is_empty(&admissions));
    }

    #[test]
    fn a_burst_waits_for_places_and_an_attack_does_not_get_any() {
        let admissions = Arc::new(Admissions::new(usize::MAX));
        let limits = Limits {
            unauthenticated_per_address: 1,
            ..limits()
        };
        let enter = || {
            let mut admission = admissions.enter(&limits).unwrap();
            admission.belong_to(key("192.0.2.1"), &limits).unwrap();
            admission
        };
        let mut first = enter();
        first.begin_unauthenticated(&limits).unwrap();
        let mut second = enter();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| second.begin_unauthenticated(&limits).is_ok());
            first.end_unauthenticated();
            assert!(waiter.join().unwrap());
        });
        let begun = Instant::now();
        assert_eq!(
            first.begin_unauthenticated(&limits).unwrap_err().status(),
            503
        );
        assert!(begun.elapsed() >= PLACE_TIME);
        drop((first, second));
        assert!(is_empty(&admissions));
    }
}
