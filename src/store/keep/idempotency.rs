//! Idempotency keys: under each, a request runs once.

use std::time::Duration;

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::TurnId;

/// A key under which a request runs once within 24 hours.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// Whose key it is: `user:ID` or `webhook:ACCOUNT`.
    pub scope: String,
    /// The caller's key, 1 to 255 characters.
    pub key: String,
    /// SHA-256 of the request: another request with the same key is refused.
    pub request: [u8; 32],
    /// The same as the version before this one made it, for a repeat within 24 hours of the
    /// upgrade.
    pub earlier_request: Option<[u8; 32]>,
}

/// How long a key is valid (protocol section 2).
pub(crate) const HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

impl Store {
    /// Whether this key has begun a turn and is still valid.
    ///
    /// # Errors
    /// `invalid_request` with HTTP 422 when it was used for another request; `not_found`
    /// when what it began was deleted.
    pub fn is_known(&self, key: &IdempotencyKey) -> Result<bool> {
        let key = key.clone();
        let earlier = self.deferred_write(move |write| earlier_turn(write, &key))?;
        Ok(earlier.uncommitted().is_some())
    }
}

/// The turn that this key began, if the key is still valid.
///
/// # Errors
/// `invalid_request` with HTTP 422 when it was used for another request; `not_found` when
/// that turn was deleted.
pub(crate) fn earlier_turn(write: &Write<'_>, key: &IdempotencyKey) -> Outcome<Option<TurnId>> {
    let earlier = write.row(
        "SELECT turn_id, request, created_at, EXISTS (SELECT 1 FROM turns WHERE id = turn_id)
         FROM idempotency WHERE scope = ?1 AND key = ?2",
        params![&key.scope, &key.key],
        |row| {
            Ok((
                row.get(0)?,
                row.get::<_, [u8; 32]>(1)?,
                row.get::<_, Timestamp>(2)?,
                row.get(3)?,
            ))
        },
    )?;
    match earlier {
        Some((_, _, created_at, _)) if created_at <= write.now.minus(HOLDS) => Ok(None),
        Some((_, request, ..))
            if request != key.request && Some(request) != key.earlier_request =>
        {
            Err(Error::invalid_request(
                "this idempotency key was used for another request in the last 24 hours",
            )
            .with_status(422)
            .into())
        }
        Some((_, _, _, false)) => Err(Error::not_found(
            "what was asked with this idempotency key was deleted; ask again with another key",
        )
        .into()),
        Some((turn, ..)) => Ok(Some(turn)),
        None => Ok(None),
    }
}

/// Stores that this key began this turn.
pub(crate) fn note(write: &Write<'_>, key: &IdempotencyKey, turn: TurnId) -> Outcome<()> {
    write.run(
        "INSERT OR REPLACE INTO idempotency (scope, key, request, turn_id, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key.scope, key.key, key.request, turn, write.now],
    )
}
