//! Limits the number of connections, in all and per address (protocol section
//! 7). Guards count down when they are dropped, so that no path forgets to.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Notified when a place becomes free.
    place: Condvar,
}

#[derive(Default)]
struct Counts {
    open: Connections,
    addresses: HashMap<AddressKey, Address>,
    /// What may make way for others, the oldest first.
    interruptible: BTreeMap<u64, Arc<Interruptible>>,
    last: u64,
    /// Connections that wait on [`Admissions::place`].
    waiting: usize,
}

/// A connection from the network.
struct Interruptible {
    socket: Arc<TcpStream>,
    /// Whether it waits for its client, which has not signed in.
    is_waiting: AtomicBool,
    /// Whether a whole request has come.
    has_asked: AtomicBool,
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

    /// Counts a new connection, for `address` if that is known. When too many are open, the
    /// oldest that has not signed in makes way.
    ///
    /// # Errors
    /// `server_error` 503 when `limits.connections` are open, or
    /// `limits.connections_per_address` of this address.
    pub fn enter(
        self: &Arc<Admissions>,
        limits: &Limits,
        address: Option<AddressKey>,
    ) -> Result<Admission, Error> {
        let mut counts = self.lock();
        if let Some(address) = address {
            counts.check_address(address, limits)?;
        }
        let limit = limits.connections.min(self.most);
        let deadline = Instant::now() + PLACE_TIME;
        let mut may_interrupt = true;
        while counts.open.total() >= limit {
            let is_leaving = !std::mem::take(&mut may_interrupt) || counts.interrupt_oldest();
            if !is_leaving || time_left(deadline).is_zero() {
                return Err(full("too many connections", limit));
            }
            counts = self.wait_for_place(counts, deadline);
        }
        counts.open.http += 1;
        counts.last += 1;
        if let Some(address) = address {
            counts.addresses.entry(address).or_default().open += 1;
        }
        Ok(Admission {
            owner: Arc::clone(self),
            number: counts.last,
            transport: Transport::Http,
            address,
            unauthenticated: false,
            interruptible: None,
        })
    }

    /// How many are open now.
    pub fn open(&self) -> Connections {
        self.lock().open
    }

    /// How many connections would make way for others now.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        let counts = self.lock();
        let waits = |one: &&Arc<Interruptible>| one.is_waiting.load(Ordering::SeqCst);
        counts.interruptible.values().filter(waits).count()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }

    /// Wakes those that wait, those of other addresses too.
    fn announce_place(&self, counts: &Counts) {
        if counts.waiting > 0 {
            self.place.notify_all();
        }
    }

    fn wait_for_place<'a>(
        &self,
        mut counts: MutexGuard<'a, Counts>,
        deadline: Instant,
    ) -> MutexGuard<'a, Counts> {
        counts.waiting += 1;
        let waited = self.place.wait_timeout(counts, time_left(deadline));
        let mut counts = waited.unwrap_or_else(PoisonError::into_inner).0;
        counts.waiting -= 1;
        counts
    }
}

fn full(message: &str, limit: usize) -> Error {
    Error::overloaded(format!("{message} (the limit is {limit})"), RETRY_SECONDS)
}

/// One counted connection; dropping it counts down.
pub struct Admission {
    owner: Arc<Admissions>,
    number: u64,
    transport: Transport,
    address: Option<AddressKey>,
    unauthenticated: bool,
    /// Absent where it never makes way for another.
    interruptible: Option<Arc<Interruptible>>,
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
        counts.check_address(address, limits)?;
        counts.addresses.entry(address).or_default().open += 1;
        self.address = Some(address);
        Ok(())
    }

    /// From now on, the connection on `socket` may make way for another, while it waits for a
    /// client that has not signed in.
    pub fn may_make_way(&mut self, socket: &Arc<TcpStream>) {
        let interruptible = Arc::new(Interruptible {
            socket: Arc::clone(socket),
            is_waiting: AtomicBool::new(false),
            has_asked: AtomicBool::new(false),
        });
        let mut counts = self.owner.lock();
        let number = self.number;
        counts
            .interruptible
            .insert(number, Arc::clone(&interruptible));
        self.interruptible = Some(interruptible);
    }

    /// It waits for input of a client that has not signed in.
    pub fn awaits_request(&self) {
        if let Some(interruptible) = &self.interruptible {
            interruptible.is_waiting.store(true, Ordering::SeqCst);
        }
    }

    /// Its client has sent a whole request.
    pub fn has_request(&self) {
        if let Some(interruptible) = &self.interruptible {
            interruptible.has_asked.store(true, Ordering::SeqCst);
            interruptible.is_waiting.store(false, Ordering::SeqCst);
        }
    }

    /// Counts the connection as unauthenticated. Waits up to a second when the
    /// address has too many. A connection without an address is not limited.
    ///
    /// # Errors
    /// `server_error` 503 over `limits.unauthenticated_per_address`.
    pub fn begin_unauthenticated(&mut self, limits: &Limits) -> Result<(), Error> {
        if let Some(address) = self.address
            && !self.unauthenticated
        {
            self.take_unauthenticated_place(address, limits)?;
        }
        self.awaits_request();
        Ok(())
    }

    fn take_unauthenticated_place(
        &mut self,
        address: AddressKey,
        limits: &Limits,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + PLACE_TIME;
        let mut counts = self.owner.lock();
        loop {
            let count = counts.addresses.entry(address).or_default();
            if count.unauthenticated < limits.unauthenticated_per_address {
                count.unauthenticated += 1;
                self.unauthenticated = true;
                return Ok(());
            }
            if time_left(deadline).is_zero() {
                return Err(full(
                    "too many unauthenticated connections from your address",
                    limits.unauthenticated_per_address,
                ));
            }
            counts = self.owner.wait_for_place(counts, deadline);
        }
    }

    /// The connection has authenticated, or does not need to.
    pub fn end_unauthenticated(&mut self) {
        if let Some(interruptible) = &self.interruptible {
            interruptible.is_waiting.store(false, Ordering::SeqCst);
        }
        if std::mem::take(&mut self.unauthenticated) {
            let mut counts = self.owner.lock();
            if let Some(count) = self.address.and_then(|key| counts.addresses.get_mut(&key)) {
                count.unauthenticated -= 1;
            }
            self.owner.announce_place(&counts);
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
        counts.interruptible.remove(&self.number);
        self.owner.announce_place(&counts);
    }
}

impl Counts {
    fn check_address(&self, address: AddressKey, limits: &Limits) -> Result<(), Error> {
        let open = self.addresses.get(&address).map_or(0, |count| count.open);
        match open < limits.connections_per_address {
            true => Ok(()),
            false => Err(full(
                "too many connections from your address",
                limits.connections_per_address,
            )),
        }
    }

    /// Ends the input of the oldest connection that has not signed in and waits for its
    /// client, and with it the connection. One that idles between two requests goes only
    /// where each has had a request. Returns whether there was one.
    fn interrupt_oldest(&self) -> bool {
        let waiting = self.interruptible.values();
        let waiting = waiting.filter(|one| one.is_waiting.load(Ordering::SeqCst));
        let oldest = waiting.min_by_key(|one| one.has_asked.load(Ordering::SeqCst));
        let Some(oldest) = oldest else { return false };
        oldest.is_waiting.store(false, Ordering::SeqCst);
        // A request that has arrived meanwhile is answered all the same.
        let _ = oldest.socket.shutdown(Shutdown::Read);
        true
    }

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
        let mut first = admissions.enter(&limits, None).unwrap();
        let mut second = admissions.enter(&limits, None).unwrap();
        let mut third = admissions.enter(&limits, None).unwrap();
        let error = admissions.enter(&limits, None).err().unwrap();
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
            let mut admission = admissions.enter(&limits, None).unwrap();
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
