//! Users and what they sign in with.

use base::clock::Timestamp;
use base::ids::{TokenId, UserId};

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
    /// Every role, the least first.
    pub const ALL: [UserRole; 3] = [UserRole::Viewer, UserRole::User, UserRole::Admin];

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
        UserRole::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// A person with an account.
#[derive(Clone, Debug)]
pub struct User {
    /// Stays when the password or the role changes.
    pub id: UserId,
    /// As typed when it was added; unique without regard to case.
    pub name: String,
    /// The most that any of the user's tokens may do.
    pub role: UserRole,
    /// The argon2id hash in PHC form.
    pub password_hash: String,
    /// When the account was added.
    pub created_at: Timestamp,
}

/// A session or API token to store. Only its fingerprint is kept.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Whose token it is; goes with the user.
    pub user_id: UserId,
    /// What a person calls it; `session` for those of POST /auth.
    pub name: String,
    /// SHA-256 of the token.
    pub fingerprint: [u8; 32],
    /// Narrows the user's role; never widens it.
    pub role: UserRole,
    /// `None` for one that is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// A token as a list shows it.
#[derive(Clone, Debug)]
pub struct Token {
    /// What `hearth token revoke` takes.
    pub id: TokenId,
    /// The owner's name.
    pub user: String,
    /// What a person calls it.
    pub name: String,
    /// As given; the user's own role may be less by now.
    pub role: UserRole,
    /// When it was made.
    pub created_at: Timestamp,
    /// `None` for one that is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// Who presented a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Revoking this token ends what the identity may do.
    pub token_id: TokenId,
    /// The token's owner.
    pub user_id: UserId,
    /// The owner's name.
    pub user: String,
    /// The lesser of the user's role and the token's.
    pub role: UserRole,
    /// When the token ends; `None` for never.
    pub expires_at: Option<Timestamp>,
}
