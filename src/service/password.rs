//! Passwords: argon2id with 19 MiB, 2 passes and 1 lane, which is OWASP's
//! recommendation (Password Storage Cheat Sheet, 2026-08), and few at a time.

use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::error::{Error, Result};
use crate::secret::{Secret, random_bytes};

/// Hashes that may be computed at a time: each takes 19 MiB.
const AT_A_TIME: usize = 2;
/// How long a sign-in waits for its turn before the server says it is busy.
const WAIT: Duration = Duration::from_secs(10);
/// Longest password, in bytes: hashing time must not depend on the client.
const PASSWORD_BYTES: usize = 1024;

/// Hashes a new password to its PHC text.
///
/// Errors: `invalid_request` when it is empty or over 1,024 bytes.
pub fn hash(password: &Secret) -> Result<String> {
    if password.is_empty() || password.expose().len() > PASSWORD_BYTES {
        return Err(Error::invalid_request(
            "a password must have 1 to 1024 bytes",
        ));
    }
    Argon2::default()
        .hash_password_with_salt(password.expose().as_bytes(), &random_bytes::<16>())
        .map(|hash| hash.to_string())
        .map_err(|error| Error::server("the password could not be hashed", error))
}

/// Checks passwords, a few at a time, in a time that does not tell whether the
/// user exists.
pub struct Verifier {
    permits: (Sender<()>, Receiver<()>),
}

impl Default for Verifier {
    fn default() -> Verifier {
        Verifier {
            permits: bounded(AT_A_TIME),
        }
    }
}

impl Verifier {
    /// Whether `password` is the one of `stored`, a PHC text; without a stored
    /// one, works as long and says no.
    ///
    /// Errors: `server_error` 503 when too many sign in at once.
    pub fn verify(&self, stored: Option<&str>, password: &Secret) -> Result<bool> {
        self.permits
            .0
            .send_timeout((), WAIT)
            .map_err(|_| Error::overloaded("too many people sign in at once; try again", 10))?;
        let verified = verify(stored, password);
        let _ = self.permits.1.try_recv();
        Ok(verified)
    }
}

fn verify(stored: Option<&str>, password: &Secret) -> bool {
    if password.expose().len() > PASSWORD_BYTES {
        return false;
    }
    let bytes = password.expose().as_bytes();
    match stored.and_then(|text| PasswordHash::new(text).ok()) {
        Some(hash) => Argon2::default().verify_password(bytes, &hash).is_ok(),
        None => {
            let mut unused = [0; 32];
            let _ = Argon2::default().hash_password_into(bytes, &[0; 16], &mut unused);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_itself_is_accepted() {
        let stored = hash(&Secret::new("correct horse")).unwrap();
        assert!(
            stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{stored}"
        );
        let verifier = Verifier::default();
        for (stored, password, accepted) in [
            (Some(stored.as_str()), "correct horse", true),
            (Some(stored.as_str()), "wrong horse", false),
            (Some("not a hash"), "correct horse", false),
            (None, "correct horse", false),
        ] {
            assert_eq!(
                verifier.verify(stored, &Secret::new(password)).unwrap(),
                accepted
            );
        }
        assert!(hash(&Secret::new("")).is_err());
    }
}
