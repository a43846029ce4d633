//! Session and API tokens. Only the fingerprint of a token is stored.

use rusqlite::{Row, params};

use crate::database::Store;
use crate::failure::Outcome;
use crate::job::Write;
use crate::query::{check_changed, find, row, rows};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{TokenId, UserId};
pub use base::role::UserRole;

/// The name of every session token, and of no API token.
pub const SESSION: &str = "session";

/// Places remembered from which a person signed in; the oldest goes first.
pub const PLACES: usize = 32;

/// Most rows of one list.
const MOST: i64 = 10_000;

/// A session or API token to store. Only its fingerprint is kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its owner; the token is deleted with the user.
    pub user_id: UserId,
    /// A name for people; [`SESSION`] for those of POST /auth.
    pub name: String,
    /// SHA-256 of the token.
    pub fingerprint: [u8; 32],
    /// Can only lower the role of its owner.
    pub role: UserRole,
    /// Absent if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// A token as lists show it.
#[derive(Clone, Debug)]
pub struct Token {
    /// What `hearth token revoke` takes.
    pub id: TokenId,
    /// The owner's name.
    pub user: String,
    /// A name for people.
    pub name: String,
    /// As given; the owner's role may be lower by now.
    pub role: UserRole,
    /// When it was created.
    pub created_at: Timestamp,
    /// Absent if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// The user of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Revoking this token ends its access.
    pub token_id: TokenId,
    /// The token's owner.
    pub user_id: UserId,
    /// The owner's name.
    pub user: String,
    /// The lower of the roles of token and owner.
    pub role: UserRole,
    /// When the token expires; absent for never.
    pub expires_at: Option<Timestamp>,
}

impl Store {
    /// Stores a token, durably.
    ///
    /// # Errors
    /// `not_found` when its owner does not exist.
    pub fn add_token(&self, new: NewToken) -> Result<Token> {
        self.write(move |write| insert(write, new))
    }

    /// Stores the token of a sign-in with a password, and the place where the person
    /// is, for [`Store::has_signed_in`]; durably.
    ///
    /// # Errors
    /// `not_found` when its owner does not exist.
    pub fn add_session(&self, new: NewToken, place: String) -> Result<()> {
        self.write(move |write| {
            let user_id = new.user_id;
            insert(write, new)?;
            write.execute(
                "INSERT OR REPLACE INTO sign_ins (user_id, place, at) VALUES (?1, ?2, ?3)",
                params![user_id, place, write.now],
            )?;
            write.execute(
                "DELETE FROM sign_ins WHERE user_id = ?1 AND place IN (
                     SELECT place FROM sign_ins WHERE user_id = ?1
                     ORDER BY place = ?2 DESC, at DESC LIMIT -1 OFFSET ?3)",
                params![user_id, place, PLACES as i64],
            )?;
            Ok(())
        })
    }

    /// Whether this person has signed in with their present password from this place,
    /// one of the last `PLACES`.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn has_signed_in(&self, user_id: UserId, place: &str) -> Result<bool> {
        self.read(|connection| {
            let found = row(
                connection,
                "SELECT 1 FROM sign_ins WHERE user_id = ?1 AND place = ?2",
                params![user_id, place],
                |_| Ok(()),
            )?;
            Ok(found.is_some())
        })
    }

    /// The user of the token with this fingerprint, unless it is expired or revoked.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn identity(&self, fingerprint: &[u8; 32]) -> Result<Option<Identity>> {
        let now = self.now();
        self.read(|connection| {
            row(
                connection,
                FIND_IDENTITY,
                params![fingerprint, now],
                identity_from_row,
            )
        })
    }

    /// The lower of the roles of a token and its owner; none once it is no longer
    /// valid.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn token_role(&self, id: TokenId) -> Result<Option<UserRole>> {
        let now = self.now();
        self.read(|connection| {
            row(
                connection,
                "SELECT t.role, u.role AS user_role FROM tokens t JOIN users u ON u.id = t.user_id
                 WHERE t.id = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2)",
                params![id, now],
                granted_role,
            )
        })
    }

    /// Tokens, newest first, at most 10,000; without those of sessions unless
    /// `sessions`.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn tokens(&self, sessions: bool) -> Result<Vec<Token>> {
        self.read(|connection| {
            rows(
                connection,
                "SELECT t.*, u.name AS user FROM tokens t JOIN users u ON u.id = t.user_id
                 WHERE ?1 OR t.name <> ?2 ORDER BY t.id DESC LIMIT ?3",
                params![sessions, SESSION, MOST],
                from_row,
            )
        })
    }

    /// Deletes a token.
    ///
    /// # Errors
    /// `not_found`.
    pub fn revoke_token(&self, id: TokenId) -> Result<()> {
        self.write(move |write| {
            let deleted = write.execute("DELETE FROM tokens WHERE id = ?", params![id])?;
            check_changed(deleted, "token", id)
        })
    }
}

fn insert(write: &Write<'_>, new: NewToken) -> Outcome<Token> {
    let user_name = "SELECT name FROM users WHERE id = ?";
    let user = find(write.connection, "user", user_name, new.user_id, |row| {
        row.get(0)
    })?;
    let token = Token {
        id: write.id(),
        user,
        name: new.name,
        role: new.role,
        created_at: write.now,
        expires_at: new.expires_at,
    };
    write.execute(
        "INSERT INTO tokens (id, user_id, name, fingerprint, role, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            token.id,
            new.user_id,
            token.name,
            new.fingerprint,
            token.role,
            token.created_at,
            token.expires_at,
        ],
    )?;
    Ok(token)
}

pub(crate) const FIND_IDENTITY: &str = "SELECT t.id, t.user_id, t.role, t.expires_at, \
     u.name AS user, u.role AS user_role \
     FROM tokens t CROSS JOIN users u ON u.id = t.user_id \
     WHERE t.fingerprint = ?1 AND (t.expires_at IS NULL OR t.expires_at > ?2)";

fn granted_role(row: &Row<'_>) -> rusqlite::Result<UserRole> {
    let token_role: UserRole = row.get("role")?;
    let user_role: UserRole = row.get("user_role")?;
    Ok(token_role.min(user_role))
}

fn identity_from_row(row: &Row<'_>) -> rusqlite::Result<Identity> {
    Ok(Identity {
        token_id: row.get("id")?,
        user_id: row.get("user_id")?,
        user: row.get("user")?,
        role: granted_role(row)?,
        expires_at: row.get("expires_at")?,
    })
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get("id")?,
        user: row.get("user")?,
        name: row.get("name")?,
        role: row.get("role")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
    })
}
