//! Identity: sign-in, tokens, machines.

use std::time::Duration;

use super::Service;
use base::error::{Code, Error, Result};
use base::ids::MachineId;
use base::secret::{Secret, fingerprint};
use net::peer::Peer;
use protocol::public_key::PublicKey;
use store::{Identity, NewToken, UserRole};

/// What POST /auth returns.
pub struct Login {
    /// Shown to the client once; only its fingerprint is stored.
    pub token: Secret,
    /// How long it is valid from now on.
    pub expires_in: Duration,
}

impl Service {
    /// Checks a name and password, throttled by peer and by name, and makes a
    /// session token. An unknown user takes as long as a wrong password.
    ///
    /// # Errors
    /// `invalid_token`, `rate_limited`.
    pub fn log_in(&self, peer: &Peer, username: &str, password: &Secret) -> Result<Login> {
        // Clients of a relay must not be able to lock out the people at home.
        let name = (peer.relay.clone(), username.to_lowercase());
        self.check_guesses(peer)?;
        self.login_names.check(&name)?;
        let config = self.settings.current();
        let user = self.store.user(username)?;
        let stored = user.as_ref().map(|user| user.password_hash.as_str());
        let verified = self.verifier.verify(stored, password)?;
        let Some(user) = user.filter(|_| verified) else {
            self.note_wrong_guess(peer);
            self.login_names.failed(&name, config.limits.login_failures);
            log::warn!("sign-in from {peer} refused");
            return Err(Error::invalid_token("wrong user name or password"));
        };
        self.login_names.succeeded(&name);
        let token = Secret::random_token();
        let expires_in = Duration::from_secs(u64::from(config.session_days) * 24 * 3600);
        self.store.add_token(NewToken {
            user_id: user.id,
            name: "session".to_owned(),
            fingerprint: fingerprint(token.expose()),
            role: user.role,
            expires_at: Some(self.clock.now().plus(expires_in)),
        })?;
        log::info!("sign-in from {peer}: {}", user.name);
        Ok(Login { token, expires_in })
    }

    /// Who holds this token.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn identify(&self, token: &Secret) -> Result<Identity> {
        self.store
            .identity(&fingerprint(token.expose()))?
            .ok_or_else(|| Error::invalid_token("the token is wrong, expired or revoked"))
    }

    /// Who holds this token, which `peer` sent. A token cannot be guessed, but tokens
    /// that come through a relay are throttled like sign-ins.
    ///
    /// # Errors
    /// `invalid_token`, `rate_limited`.
    pub fn identify_peer(&self, peer: &Peer, token: &Secret) -> Result<Identity> {
        if peer.relay.is_none() {
            return self.identify(token);
        }
        self.check_guesses(peer)?;
        let identified = self.identify(token);
        if identified
            .as_ref()
            .is_err_and(|error| error.code() == Code::InvalidToken)
        {
            self.note_wrong_guess(peer);
        }
        identified
    }

    fn check_guesses(&self, peer: &Peer) -> Result<()> {
        for (guesser, _) in peer.throttle_keys() {
            self.login_guessers.check(&guesser)?;
        }
        Ok(())
    }

    fn note_wrong_guess(&self, peer: &Peer) {
        let free = self.settings.current().limits.login_failures;
        for (guesser, share) in peer.throttle_keys() {
            self.login_guessers
                .failed(&guesser, free.saturating_mul(share));
        }
    }

    /// Revokes a token and closes the connections that it opened.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn log_out(&self, token: &Secret) -> Result<()> {
        let identity = self.identify(token)?;
        self.revoke(&identity)?;
        self.connections.revoke(identity.token_id);
        Ok(())
    }

    /// Revokes the token of an identity. Its connections stay open, so that one of
    /// them can still get its response; the caller closes them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn revoke(&self, identity: &Identity) -> Result<()> {
        self.store.revoke_token(identity.token_id)?;
        log::info!("{} signed out", identity.user);
        Ok(())
    }

    /// Registers a machine for relay connectivity (role `user`).
    ///
    /// # Errors
    /// `unauthorized` for a viewer.
    pub fn register_machine(
        &self,
        who: &Identity,
        name: &str,
        public_key: &PublicKey,
    ) -> Result<MachineId> {
        if who.role < UserRole::User {
            return Err(Error::unauthorized(
                "registering a machine needs the role user",
            ));
        }
        let id = public_key.machine_id();
        self.store
            .register_machine(&id, name, public_key.as_bytes())?;
        log::info!("machine {id} registered by {}", who.user);
        Ok(id)
    }
}
