//! Identity: sign-in, tokens, machines.

use std::time::Duration;

use super::Service;
use super::guesser::Guesser;
use super::throttle::Attempt;
use base::error::{Code, Error, Result};
use base::ids::MachineId;
use base::secret::{Secret, fingerprint};
use net::peer::Peer;
use protocol::public_key::PublicKey;
use store::{Identity, NewToken, User, UserRole};

/// What POST /auth returns.
pub struct Login {
    /// Shown to the client once; only its fingerprint is stored.
    pub token: Secret,
    /// How long it is valid from now on.
    pub expires_in: Duration,
}

fn wrong_pair() -> Error {
    Error::worded(Code::InvalidToken, "error.wrong_password", &[])
}

impl Service {
    /// Checks a name and password, throttled by place and by name, and makes a
    /// session token. An unknown user takes as long as a wrong password.
    ///
    /// # Errors
    /// `invalid_token`, `rate_limited`.
    pub fn log_in(&self, peer: &Peer, username: &str, password: &Secret) -> Result<Login> {
        let user = self.store.user(username)?;
        if !self.check_password(peer, username, user.as_ref(), password)? {
            return Err(wrong_pair());
        }
        let login = self.begin_session(peer, &user.ok_or_else(wrong_pair)?)?;
        log::info!(peer:% = peer.place(); "sign-in from {peer}: {username}");
        Ok(login)
    }

    /// Whether this is the password of `user`, who is called `username`; throttled as a
    /// sign-in is. An unknown user takes as long as a wrong password.
    ///
    /// # Errors
    /// `rate_limited`.
    pub(super) fn check_password(
        &self,
        peer: &Peer,
        username: &str,
        user: Option<&User>,
        password: &Secret,
    ) -> Result<bool> {
        let free = self.settings.current().limits.login_failures;
        let place = peer.place();
        let is_known = match user {
            Some(user) => self.store.has_signed_in(user.id, &place)?,
            None => false,
        };
        let stored = user.map(|user| user.password_hash.as_str());
        let (verified, attempts) = self.verifier.verify(stored, password, || {
            Guesser::all(peer, &place, username, is_known)
                .map(|(guesser, share)| self.sign_ins.begin(guesser, free.saturating_mul(share)))
                .collect::<Result<Vec<_>>>()
        })?;
        if !verified {
            attempts.into_iter().for_each(Attempt::failed);
            log::warn!(peer:% = place; "sign-in from {peer} refused");
            return Ok(false);
        }
        for attempt in attempts {
            // Not those of the place: whoever has an account could guess another's.
            if let Guesser::Name(..) = attempt.key() {
                attempt.succeeded();
            }
        }
        Ok(true)
    }

    /// Makes a session token of a person who proved who they are.
    pub(super) fn begin_session(&self, peer: &Peer, user: &User) -> Result<Login> {
        let days = self.settings.current().session_days;
        let expires_in = Duration::from_secs(u64::from(days) * 24 * 3600);
        let (token, session) = self.new_session(user, expires_in);
        self.store.add_session(session, peer.place())?;
        Ok(Login { token, expires_in })
    }

    /// A session of this length, which is yet to be stored.
    pub(super) fn new_session(&self, user: &User, length: Duration) -> (Secret, NewToken) {
        let token = Secret::random_token();
        let session = NewToken {
            expires_at: Some(self.clock.now().plus(length)),
            ..NewToken::session(user.id, user.role, fingerprint(token.expose()))
        };
        (token, session)
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

    /// Who holds this token at this peer: over the socket in the data directory, the
    /// secret of this start is the owner's.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn identify_at(&self, peer: &Peer, token: &Secret) -> Result<Identity> {
        if peer.is_local && self.owner_key.matches(token.expose()) {
            return Ok(Identity::owner());
        }
        self.identify(token)
    }

    /// The person in whose name the machine's owner acts.
    ///
    /// # Errors
    /// `unauthorized` for everybody else, `not_found` where there is no such person.
    pub(super) fn act_as(&self, identity: &Identity, name: &str) -> Result<Identity> {
        if identity.role < UserRole::Owner {
            return Err(Error::unauthorized(
                "\"as_user\" is for whoever owns the machine",
            ));
        }
        Ok(self.find_user(name)?.identity())
    }

    /// Revokes a token and closes the connections that it opened.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn log_out(&self, token: &Secret) -> Result<()> {
        let identity = self.identify(token)?;
        self.revoke(&identity)?;
        self.connections.revoke(identity.token_id, identity.role);
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
