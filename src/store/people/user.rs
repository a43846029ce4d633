//! A person with an account, as a row of the table.

use rusqlite::{Row, params};

use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::from_row;
use base::clock::Timestamp;
use base::ids::UserId;
use base::language::Words;
use base::people::UserRole;

/// What a person has as password who was invited and has not chosen one yet: no hash,
/// which no password matches.
pub(crate) const NO_PASSWORD: &str = "";

/// What a program has as password, which has tokens alone: no hash, which no password matches.
pub const OF_PROGRAM: &str = "program";

/// A person with an account.
#[derive(Clone, Debug)]
pub struct User {
    /// Stays when the password or the role changes.
    pub id: UserId,
    /// As typed when it was added; unique without regard to case.
    pub name: String,
    /// The most that any of the user's tokens may do.
    pub role: UserRole,
    /// The argon2id hash in PHC form; empty for a person who is invited.
    pub password_hash: String,
    /// When the account was added.
    pub created_at: Timestamp,
    /// What people call them, if not by the name.
    pub display_name: Option<String>,
    /// The language that they have chosen, and that of the browser in which they signed in
    /// last, by their codes.
    pub language: Option<String>,
    /// See [`User::language`].
    pub last_language: Option<String>,
}

impl User {
    /// What people call them.
    pub fn called(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// The words that they read: in the language of their choice, else in that of the browser
    /// in which they signed in last. English where nothing is known of them.
    pub fn words(&self) -> Words {
        let language = self.language.as_deref().or(self.last_language.as_deref());
        language.map_or(Words::ENGLISH, Words::of)
    }

    /// Whether this person was invited and has not chosen a password yet.
    pub fn is_invited(&self) -> bool {
        self.password_hash == NO_PASSWORD
    }

    /// Whether this is a program, which signs in with tokens alone.
    pub fn is_program(&self) -> bool {
        self.password_hash == OF_PROGRAM
    }
}

pub(crate) const FIND: &str = "SELECT * FROM users WHERE id = ?";

pub(crate) fn from_row(row: &Row<'_>) -> Outcome<User> {
    Ok(from_row!(row => User {
        id, name, role, password_hash, created_at, display_name, language, last_language
    }))
}

/// Ends what somebody else may have made to get in later: the link that sets a password, and the
/// codes that link senders.
pub(crate) fn end_ways_in(write: &Write<'_>, id: UserId) -> Outcome<()> {
    write.execute("DELETE FROM invitations WHERE user_id = ?", params![id])?;
    write.run("DELETE FROM link_codes WHERE user_id = ?", params![id])
}
