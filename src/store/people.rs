//! Users, tokens and registered machines.

use super::*;
use crate::ids::{MachineId, TokenId, UserId};

impl Store {
    /// Adds a user. Errors: `invalid_request` when the name is taken (names
    /// differ in more than case).
    pub fn add_user(&self, name: &str, role: UserRole, password_hash: &str) -> Result<User> {
        let _ = (name, role, password_hash);
        todo!()
    }

    /// The user of this name, in any case.
    pub fn user(&self, name: &str) -> Result<Option<User>> {
        let _ = name;
        todo!()
    }

    /// All users, by name.
    pub fn users(&self) -> Result<Vec<User>> {
        todo!()
    }

    /// Sets a password and revokes the user's session tokens. Errors: `not_found`.
    pub fn set_password(&self, id: UserId, password_hash: &str) -> Result<()> {
        let _ = (id, password_hash);
        todo!()
    }

    /// Removes a user and all their tokens. Errors: `not_found`;
    /// `invalid_request` for the last admin.
    pub fn remove_user(&self, id: UserId) -> Result<()> {
        let _ = id;
        todo!()
    }

    /// Stores a token, durably.
    pub fn add_token(&self, new: NewToken) -> Result<Token> {
        let _ = new;
        todo!()
    }

    /// Who holds the token of this fingerprint, unless it is expired or revoked.
    pub fn identity(&self, fingerprint: &[u8; 32]) -> Result<Option<Identity>> {
        let _ = fingerprint;
        todo!()
    }

    /// Whether a token is still valid.
    pub fn is_token_valid(&self, id: TokenId) -> Result<bool> {
        let _ = id;
        todo!()
    }

    /// Tokens, newest first; API tokens only unless `sessions`.
    pub fn tokens(&self, sessions: bool) -> Result<Vec<Token>> {
        let _ = sessions;
        todo!()
    }

    /// Deletes a token. Errors: `not_found`.
    pub fn revoke_token(&self, id: TokenId) -> Result<()> {
        let _ = id;
        todo!()
    }

    /// Notes a machine that registered, by its id. A repeat updates its name.
    pub fn register_machine(
        &self,
        id: &MachineId,
        name: &str,
        public_key: &[u8; 32],
    ) -> Result<()> {
        let _ = (id, name, public_key);
        todo!()
    }
}
