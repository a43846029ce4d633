//! Browsers that a push service tells what waits (RFC 8030).

use rusqlite::{Connection, Row, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{PushId, TokenId, UserId};
use base::secret::Secret;

/// The service of notifications that go to each browser of a person.
pub const PUSH: &str = "push";

/// Most browsers of one person; the one that was named first goes.
pub const PUSH_SUBSCRIPTIONS: usize = 16;

/// What a browser gives whoever is to tell it something (RFC 8030, RFC 8291).
#[derive(Clone, Debug)]
pub struct PushSubscription {
    /// Where messages to it are posted. Whoever knows it reaches the browser.
    pub endpoint: Secret,
    /// Its public key, in base64url.
    pub public_key: String,
    /// What it shares with whoever tells it something, in base64url.
    pub secret: Secret,
}

impl Store {
    /// Stores a browser of this person until the token that names it ends. One that is
    /// known under this endpoint is replaced, whosever it was.
    ///
    /// # Errors
    /// `not_found` when the token is gone.
    pub fn add_push_subscription(
        &self,
        user_id: UserId,
        token_id: TokenId,
        new: PushSubscription,
    ) -> Result<()> {
        self.write(move |write| insert(write, user_id, token_id, &new))
    }

    /// Forgets the browser of this person with this endpoint, and what it was to be told;
    /// returns whether there was one.
    pub fn remove_push_subscription(&self, user_id: UserId, endpoint: &Secret) -> Result<bool> {
        let endpoint = endpoint.clone();
        self.write(move |write| {
            let removed = write.execute(
                "DELETE FROM push_subscriptions WHERE user_id = ?1 AND endpoint = ?2",
                params![user_id, endpoint.expose()],
            )?;
            Ok(removed > 0)
        })
    }

    /// Forgets a browser that its push service does not know any more.
    pub fn push_subscription_gone(&self, id: PushId) -> Result<()> {
        self.write(move |write| {
            write.run("DELETE FROM push_subscriptions WHERE id = ?", params![id])
        })
    }

    /// Whether any browser gets notifications.
    pub fn has_push_subscriptions(&self) -> Result<Provisional<bool>> {
        self.look(|connection| {
            let sql = "SELECT 1 FROM push_subscriptions LIMIT 1";
            connection.exists(sql, params![])
        })
    }

    /// Whether a browser of this person gets notifications.
    pub fn is_told_by_push(&self, user_id: UserId) -> Result<bool> {
        let now = self.now();
        self.read(|connection| connection.exists(OF_USER, params![user_id, now]))
    }
}

/// Those whose token is valid, in the order in which they were named.
pub(crate) const OF_USER: &str = "SELECT s.id FROM push_subscriptions s \
     CROSS JOIN tokens t ON t.id = s.token_id \
     WHERE s.user_id = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2) ORDER BY s.id";

pub(crate) const FIND_SUBSCRIPTION: &str = "SELECT s.* FROM push_subscriptions s \
     CROSS JOIN tokens t ON t.id = s.token_id \
     WHERE s.id = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2)";

fn insert(
    write: &Write<'_>,
    user_id: UserId,
    token_id: TokenId,
    new: &PushSubscription,
) -> Outcome<()> {
    let (endpoint, secret) = (new.endpoint.expose(), new.secret.expose());
    // A page says so each time it is opened: what is known already costs no write, and
    // keeps what waits for it.
    let known = write.exists(
        "SELECT 1 FROM push_subscriptions WHERE endpoint = ?1 AND public_key = ?2
             AND secret = ?3 AND user_id = ?4 AND token_id = ?5",
        params![endpoint, new.public_key, secret, user_id, token_id],
    )?;
    if known {
        return Ok(());
    }
    let gone = "DELETE FROM push_subscriptions WHERE endpoint = ?";
    write.execute(gone, params![endpoint])?;
    let id: PushId = write.id();
    write.insert(
        "push_subscriptions",
        &[
            ("id", &id),
            ("user_id", &user_id),
            ("token_id", &token_id),
            ("endpoint", &endpoint),
            ("public_key", &new.public_key),
            ("secret", &secret),
            ("created_at", &write.now),
        ],
    )?;
    write.run(
        "DELETE FROM push_subscriptions WHERE id IN (
             SELECT id FROM push_subscriptions WHERE user_id = ?1
             ORDER BY id DESC LIMIT -1 OFFSET ?2)",
        params![user_id, PUSH_SUBSCRIPTIONS],
    )
}

/// The browsers of a person that are to be told.
pub(crate) fn of_user(write: &Write<'_>, user_id: UserId) -> Outcome<Vec<PushId>> {
    let parameters = params![user_id, write.now];
    write.values(OF_USER, parameters)
}

/// A browser, unless the token that named it has expired.
pub(crate) fn find(
    connection: &Connection,
    id: PushId,
    now: Timestamp,
) -> Outcome<Option<(PushId, PushSubscription)>> {
    connection.row(FIND_SUBSCRIPTION, params![id, now], from_row)
}

fn from_row(row: &Row<'_>) -> Outcome<(PushId, PushSubscription)> {
    let text = |column: &str| row.get::<_, String>(column).map(Secret::new);
    let subscription = PushSubscription {
        endpoint: text("endpoint")?,
        public_key: row.get("public_key")?,
        secret: text("secret")?,
    };
    Ok((row.get("id")?, subscription))
}
