//! The open connections and the tokens that opened them: revoking a token closes
//! its connections.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::hub::ConnectionId;
use base::clock::Timestamp;
use base::ids::{TokenId, UserId};
use base::sync::lock;
use net::outbox::{Close, Outbox};
use store::{Identity, UserRole};

/// The authenticated connections.
#[derive(Default)]
pub struct Connections {
    next: AtomicU64,
    open: Mutex<HashMap<ConnectionId, OpenConnection>>,
}

struct OpenConnection {
    token: TokenId,
    user: UserId,
    role: UserRole,
    expires_at: Option<Timestamp>,
    outbox: Arc<Outbox>,
}

impl OpenConnection {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= now)
    }
}

impl Connections {
    /// A number for a new connection.
    pub fn open(&self) -> ConnectionId {
        ConnectionId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes who signed in on a connection.
    pub fn authenticated(&self, id: ConnectionId, identity: &Identity, outbox: &Arc<Outbox>) {
        let entry = OpenConnection {
            token: identity.token_id,
            user: identity.user_id,
            role: identity.role,
            expires_at: identity.expires_at,
            outbox: Arc::clone(outbox),
        };
        self.lock().insert(id, entry);
    }

    /// Forgets a connection.
    pub fn close(&self, id: ConnectionId) {
        self.lock().remove(&id);
    }

    /// How many are authenticated, or how many of these are a person's.
    pub fn count(&self, of: Option<UserId>) -> usize {
        let open = self.lock();
        let counts = |entry: &&OpenConnection| of.is_none_or(|user| entry.user == user);
        open.values().filter(counts).count()
    }

    /// The tokens of open connections, with the roles that they granted.
    pub fn tokens(&self) -> BTreeSet<(TokenId, UserRole)> {
        let open = self.lock();
        open.values()
            .map(|entry| (entry.token, entry.role))
            .collect()
    }

    /// Closes the connections of a token that is revoked, or grants this role no longer.
    pub fn revoke(&self, token: TokenId, role: UserRole) {
        self.close_where(|entry| entry.token == token && entry.role == role);
    }

    /// Whether the token of a connection has expired.
    pub fn has_expired(&self, id: ConnectionId, now: Timestamp) -> bool {
        let open = self.lock();
        open.get(&id).is_some_and(|entry| entry.has_expired(now))
    }

    /// Closes the connections whose token has expired.
    pub fn expire(&self, now: Timestamp) {
        self.close_where(|entry| entry.has_expired(now));
    }

    /// Moves the expiry of tokens above this id, because the clock was set.
    pub fn clock_set(&self, step: i64, above: i64) {
        for entry in self.lock().values_mut() {
            if entry.token.as_i64() > above {
                entry.expires_at = entry.expires_at.map(|expiry| expiry.shifted(step));
            }
        }
    }

    fn close_where(&self, is_over: impl Fn(&OpenConnection) -> bool) {
        for entry in self.lock().values().filter(|entry| is_over(entry)) {
            entry.outbox.close(Close::REVOKED);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConnectionId, OpenConnection>> {
        lock(&self.open)
    }
}
