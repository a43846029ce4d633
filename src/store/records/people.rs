//! Users and what they sign in with.

use crate::clock::Timestamp;
use crate::ids::{TokenId, UserId};

/// What a user may do. Each role may do all that the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserRole {
    /// Read.
    Viewer,
    /// And chat.
    User,
    /// And configure, decide, deliver again.
    Admin,
}

impl UserRole {
    /// The word for it everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            UserRole::Viewer => "viewer",
            UserRole::User => "user",
            UserRole::Admin => "admin",
        }
    }

    /// The role of a word.
    pub fn parse(word: &str) -> Option<UserRole> {
        [UserRole::Viewer, UserRole::User, UserRole::Admin]
            .into_iter()
            .find(|role| role.as_str() == word)
    }
}

/// A person with an account.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub role: UserRole,
    /// The argon2id hash in PHC form.
    pub password_hash: String,
    pub created_at: Timestamp,
}

/// A session or API token to store. Only its fingerprint is kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub user_id: UserId,
    /// What a person calls it; `session` for those of POST /auth.
    pub name: String,
    pub fingerprint: [u8; 32],
    /// Narrows the user's role; never widens it.
    pub role: UserRole,
    pub expires_at: Option<Timestamp>,
}

/// A token as a list shows it.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: TokenId,
    pub user: String,
    pub name: String,
    pub role: UserRole,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Who presented a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub token_id: TokenId,
    pub user_id: UserId,
    pub user: String,
    /// The lesser of the user's role and the token's.
    pub role: UserRole,
    pub expires_at: Option<Timestamp>,
}
