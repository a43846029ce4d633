//! Links by which a person chooses a password, once. Only the fingerprint of a link's
//! secret is stored.

use rusqlite::{Row, params};

use crate::engine::database::Store;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{Statements, from_row};
use crate::people::users::{self, NO_PASSWORD, User};
use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::ids::UserId;
use base::people::UserRole;

/// A link to store.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// SHA-256 of the link's secret.
    pub fingerprint: [u8; 32],
    /// Who made it.
    pub created_by: String,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// A link that has not been used.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// Whose password it sets.
    pub user_id: UserId,
    /// The name of that person.
    pub name: String,
    /// What people call them.
    pub called: String,
    /// The role of that person.
    pub role: UserRole,
    /// Whether that person has a password already, which the link replaces.
    pub is_reset: bool,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it works.
    pub expires_at: Timestamp,
}

impl Store {
    /// Adds a person who has no password yet, and the link that sets one.
    ///
    /// # Errors
    /// `invalid_request` when the name is taken, in any case.
    pub fn invite(&self, name: &str, role: UserRole, link: NewInvitation) -> Result<Invitation> {
        let name = name.to_owned();
        self.write(move |write| {
            let user = users::insert(write, name, role, NO_PASSWORD.to_owned())?;
            insert(write, user, link)
        })
    }

    /// Stores a link that sets a person's password, in place of an earlier one.
    ///
    /// # Errors
    /// `not_found`.
    pub fn add_invitation(&self, id: UserId, link: NewInvitation) -> Result<Invitation> {
        self.write(move |write| {
            let user = users::find(write.connection, id)?;
            insert(write, user, link)
        })
    }

    /// The link with this fingerprint, unless it has expired.
    pub fn invitation(&self, fingerprint: &[u8; 32]) -> Result<Option<Invitation>> {
        let now = self.now();
        self.read(|connection| connection.row(FIND, params![fingerprint, now], from_row))
    }

    /// The links that are neither used nor expired, the newest first.
    pub fn invitations(&self) -> Result<Vec<Invitation>> {
        let now = self.now();
        self.read(|connection| connection.rows(LIST, params![now], from_row))
    }

    /// Uses a link: sets the password of its person and ends their sessions, in one
    /// commit. It does not work again.
    ///
    /// # Errors
    /// `invalid_token` when it has expired, was revoked or was used.
    pub fn accept_invitation(&self, fingerprint: [u8; 32], password_hash: &str) -> Result<User> {
        let password_hash = password_hash.to_owned();
        self.write(move |write| {
            let found = write.row(FIND, params![fingerprint, write.now], from_row)?;
            let id = found.ok_or_else(used_up)?.user_id;
            users::set_password(write, id, &password_hash, None)?;
            users::find(write.connection, id)
        })
    }

    /// Makes a person's link useless. Returns whether there was one.
    pub fn revoke_invitation(&self, id: UserId) -> Result<bool> {
        self.write(move |write| Ok(delete(write, id)? > 0))
    }
}

/// The answer for a link that does not work, whatever the reason.
fn used_up() -> Error {
    Error::worded(Code::InvalidToken, "error.link_over", &[])
}

/// Deletes the link of a person.
fn delete(write: &Write<'_>, id: UserId) -> Outcome<usize> {
    write.execute("DELETE FROM invitations WHERE user_id = ?", params![id])
}

fn insert(write: &Write<'_>, user: User, link: NewInvitation) -> Outcome<Invitation> {
    delete(write, user.id)?;
    let id: i64 = write.id();
    write.insert(
        "invitations",
        &[
            ("id", &id),
            ("user_id", &user.id),
            ("fingerprint", &link.fingerprint),
            ("created_by", &link.created_by),
            ("created_at", &write.now),
            ("expires_at", &link.expires_at),
        ],
    )?;
    Ok(Invitation {
        is_reset: !user.is_invited(),
        user_id: user.id,
        called: user.called().to_owned(),
        name: user.name,
        role: user.role,
        created_by: link.created_by,
        created_at: write.now,
        expires_at: link.expires_at,
    })
}

const FIND: &str = "SELECT i.*, u.name, ifnull(u.display_name, u.name) AS called, u.role, \
         u.password_hash <> '' AS is_reset \
     FROM invitations i CROSS JOIN users u ON u.id = i.user_id \
     WHERE i.fingerprint = ?1 AND i.expires_at > ?2";

const LIST: &str = "SELECT i.*, u.name, ifnull(u.display_name, u.name) AS called, u.role, \
         u.password_hash <> '' AS is_reset \
     FROM invitations i CROSS JOIN users u ON u.id = i.user_id \
     WHERE i.expires_at > ?1 ORDER BY i.id DESC";

fn from_row(row: &Row<'_>) -> Outcome<Invitation> {
    Ok(from_row!(row => Invitation {
        user_id, name, called, role, is_reset, created_by, created_at, expires_at
    }))
}
