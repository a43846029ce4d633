//! Who may do what: sessions, commands, events, approvals and the workers.

pub mod outbox;
pub mod password;
pub mod peer;
pub mod session;

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{Settings, WebhookAccount};
use crate::error::Result;
use crate::ids::{MachineId, TurnId};
use crate::secret::Secret;
use crate::store::{Identity, Store};
use peer::Peer;

/// Everything that the ways in have in common.
pub struct Service {
    settings: Arc<Settings>,
    store: Store,
    clock: Clock,
}

/// What POST /auth returns.
pub struct Login {
    pub token: Secret,
    pub expires_in: Duration,
}

/// What an incoming webhook asks for.
pub struct WebhookRequest {
    pub message: String,
    pub user_id: Option<String>,
    /// The caller's own name of the conversation.
    pub conversation_id: Option<String>,
    pub idempotency_key: Option<String>,
    /// The raw body, whose fingerprint guards the idempotency key.
    pub body: Vec<u8>,
}

/// What was accepted, durably.
pub struct Accepted {
    /// The caller's own name, or the id of the new conversation.
    pub conversation_id: String,
    pub turn_id: TurnId,
}

impl Service {
    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long the server has run.
    pub fn uptime(&self) -> Duration {
        todo!()
    }

    /// Checks a name and password, throttled by peer and by name, and makes a
    /// session token. Errors: `invalid_token`, `rate_limited`.
    pub fn log_in(&self, peer: &Peer, username: &str, password: &Secret) -> Result<Login> {
        let _ = (peer, username, password);
        todo!()
    }

    /// Who holds this token. Errors: `invalid_token`.
    pub fn identify(&self, token: &Secret) -> Result<Identity> {
        let _ = token;
        todo!()
    }

    /// Revokes a token and closes the connections that it opened.
    /// Errors: `invalid_token`.
    pub fn log_out(&self, token: &Secret) -> Result<()> {
        let _ = token;
        todo!()
    }

    /// Registers a machine for relay connectivity (role `user`).
    pub fn register_machine(
        &self,
        who: &Identity,
        name: &str,
        public_key: &[u8; 32],
    ) -> Result<MachineId> {
        let _ = (who, name, public_key);
        todo!()
    }

    /// Accepts a webhook message: when this returns, it is on disk and its turn
    /// will run and be called back. Errors: `rate_limited` (account's rate),
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another body).
    pub fn accept_webhook(
        &self,
        account: &WebhookAccount,
        request: WebhookRequest,
    ) -> Result<Accepted> {
        let _ = (account, request);
        todo!()
    }
}
