//! Passwords: argon2id with 19 MiB, 2 passes and 1 lane, which is OWASP's
//! recommendation (Password Storage Cheat Sheet, 2026-08), and few at a time.

use std::thread::available_parallelism;
use std::time::Duration;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use crossbeam_channel::{Receiver, Sender, bounded};
use subtle::ConstantTimeEq;

use base::error::{Error, Result};
use base::secret::{Secret, random_bytes};

/// Most hashes that may be computed at a time: each takes 19 MiB. Fewer where there
/// are fewer processors, since more would not finish sooner.
const AT_A_TIME: usize = 2;
/// How long a sign-in waits for its turn before the server says it is busy.
const WAIT: Duration = Duration::from_secs(10);
/// Longest password, in bytes: hashing time must not depend on the client.
const PASSWORD_BYTES: usize = 1024;

/// Bytes of the buffer in which a hash is computed. It needs 19 MiB, but the C
/// library returns only blocks over 32 MiB to the system at once and keeps smaller
/// ones in the thread's heap. Pages that are not touched cost nothing.
const BUFFER_BYTES: usize = 33 * 1024 * 1024;

/// Fewest characters of a new password.
pub const LEAST_CHARACTERS: usize = 8;

/// Checks the length of a new password.
///
/// # Errors
/// `invalid_request`.
pub fn check(password: &Secret) -> Result<()> {
    let text = password.expose();
    if text.chars().count() < LEAST_CHARACTERS {
        return Err(Error::invalid_request(format!(
            "a password must have at least {LEAST_CHARACTERS} characters"
        )));
    }
    if text.len() > PASSWORD_BYTES {
        return Err(Error::invalid_request(format!(
            "a password must have at most {PASSWORD_BYTES} bytes"
        )));
    }
    Ok(())
}

/// Hashes a new password to its PHC text.
///
/// # Errors
/// `invalid_request` when it is empty or over 1,024 bytes.
pub fn hash(password: &Secret) -> Result<String> {
    if password.is_empty() || password.expose().len() > PASSWORD_BYTES {
        return Err(Error::invalid_request(
            "a password must have 1 to 1024 bytes",
        ));
    }
    let salt = random_bytes::<16>();
    let text = || -> Result<String, argon2::password_hash::Error> {
        let params = Params::default();
        let digest = derive(&params, password, &salt)?;
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(&params)?,
            salt: Some(Salt::new(&salt)?),
            hash: Some(Output::new(&digest)?),
        };
        Ok(hash.to_string())
    };
    text().map_err(|error| Error::server("the password could not be hashed", error))
}

fn derive(params: &Params, password: &Secret, salt: &[u8]) -> argon2::Result<[u8; 32]> {
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let mut memory: Vec<Block> = Vec::with_capacity(BUFFER_BYTES / Block::SIZE);
    memory.resize(params.block_count(), Block::new());
    let mut digest = [0; 32];
    let bytes = password.expose().as_bytes();
    argon2.hash_password_into_with_memory(bytes, salt, &mut digest, &mut memory)?;
    Ok(digest)
}

/// Checks passwords, a few at a time, and takes as long for a user who does not
/// exist.
pub struct Verifier {
    permits: (Sender<()>, Receiver<()>),
}

impl Default for Verifier {
    fn default() -> Verifier {
        Verifier {
            // Heeds the processor quota of a control group.
            permits: bounded(available_parallelism().map_or(1, |count| count.get().min(AT_A_TIME))),
        }
    }
}

impl Verifier {
    /// Whether `password` is the one of `stored`, a PHC text. Without a stored one it
    /// takes as long and is false. `admit` is called when its turn has come, before
    /// anything is computed; what it returns is handed back.
    ///
    /// # Errors
    /// Those of `admit`; `server_error` 503 when too many sign in at once.
    pub fn verify<T>(
        &self,
        stored: Option<&str>,
        password: &Secret,
        admit: impl FnOnce() -> Result<T>,
    ) -> Result<(bool, T)> {
        self.limited(|| {
            let admitted = admit()?;
            Ok((verify(stored, password), admitted))
        })?
    }

    /// [`hash`], within the same limit as sign-ins.
    ///
    /// # Errors
    /// Those of [`hash`]; `server_error` 503 when too many sign in at
    /// once.
    pub fn hash(&self, password: &Secret) -> Result<String> {
        self.limited(|| hash(password))?
    }

    fn limited<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.permits
            .0
            .send_timeout((), WAIT)
            .map_err(|_| Error::overloaded("too many people sign in at once; try again", 10))?;
        let done = work();
        let _ = self.permits.1.try_recv();
        Ok(done)
    }
}

fn verify(stored: Option<&str>, password: &Secret) -> bool {
    if password.expose().len() > PASSWORD_BYTES {
        return false;
    }
    let known = stored.and_then(|text| {
        let hash = PasswordHash::new(text).ok()?;
        Some((Params::try_from(&hash).ok()?, hash.salt?, hash.hash?))
    });
    match known {
        Some((params, salt, expected)) => derive(&params, password, &salt)
            .is_ok_and(|digest| digest.ct_eq(expected.as_bytes()).into()),
        // No user of this name: takes as long.
        None => {
            let _ = derive(&Params::default(), password, &[0; 16]);
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
            let verified = verifier.verify(stored, &Secret::new(password), || Ok(()));
            assert_eq!(verified.unwrap(), (accepted, ()));
        }
        assert!(hash(&Secret::new("")).is_err());
        let refused = || Err::<(), _>(Error::rate_limited("wait", 1));
        let right = Secret::new("correct horse");
        assert!(verifier.verify(Some(&stored), &right, refused).is_err());
    }
}
