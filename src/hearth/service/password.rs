//! Passwords: argon2id with 19 MiB, 2 passes and 1 lane, which is OWASP's
//! recommendation (Password Storage Cheat Sheet, 2026-08), and few at a time.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use crossbeam_channel::{Receiver, Sender, bounded};
use subtle::ConstantTimeEq;

use base::error::{Error, Result};
use base::language::Said;
use base::secret::{Secret, random_bytes};
use net::capacity;

/// Most hashes that may be computed at a time: each takes 19 MiB. Fewer where there
/// are fewer processors, since more would not finish sooner, and where they would
/// take more than half of the memory.
const AT_A_TIME: usize = 2;
/// Memory of one hash, in bytes.
const HASH_BYTES: u64 = 19 * 1024 * 1024;
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
        let fields = [("least", &*LEAST_CHARACTERS.to_string())];
        return Err(Error::refused("error.password_short", &fields));
    }
    if text.len() > PASSWORD_BYTES {
        let fields = [("most", &*PASSWORD_BYTES.to_string())];
        return Err(Error::refused("error.password_long", &fields));
    }
    Ok(())
}

/// Hashes a new password to its PHC text.
///
/// # Errors
/// `invalid_request` when it is empty or over 1,024 bytes.
pub fn hash(password: &Secret) -> Result<String> {
    if password.is_empty() || password.expose().len() > PASSWORD_BYTES {
        return Err(Error::refused("error.password_bytes", &[]));
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
    text().map_err(|error| match error {
        argon2::password_hash::Error::OutOfMemory => out_of_memory(),
        error => Error::server("the password could not be hashed", error),
    })
}

fn derive(params: &Params, password: &Secret, salt: &[u8]) -> argon2::Result<[u8; 32]> {
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
    let mut memory: Vec<Block> = Vec::new();
    let blocks = params.block_count().max(BUFFER_BYTES / Block::SIZE);
    if !capacity::has_room(BUFFER_BYTES) || memory.try_reserve_exact(blocks).is_err() {
        return Err(argon2::Error::OutOfMemory);
    }
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
        // Heeds the processor quota of a control group.
        let processors = available_parallelism().map_or(1, NonZero::get);
        let fitting = capacity::memory().map_or(AT_A_TIME as u64, |bytes| bytes / 2 / HASH_BYTES);
        let fitting = usize::try_from(fitting).unwrap_or(AT_A_TIME).max(1);
        Verifier {
            permits: bounded(AT_A_TIME.min(processors).min(fitting)),
        }
    }
}

impl Verifier {
    /// Whether `password` is the one of `stored`, a PHC text. Without a stored one it
    /// takes as long and is false. `admit` is called when its turn has come, before
    /// anything is computed; what it returns is handed back.
    ///
    /// # Errors
    /// Those of `admit`; `server_error` 503 when too many sign in at once, or without
    /// memory.
    pub fn verify<T>(
        &self,
        stored: Option<&str>,
        password: &Secret,
        admit: impl FnOnce() -> Result<T>,
    ) -> Result<(bool, T)> {
        self.limited(|| {
            let admitted = admit()?;
            Ok((verify(stored, password)?, admitted))
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
            .map_err(|_| busy("error.sign_ins"))?;
        let done = work();
        let _ = self.permits.1.try_recv();
        Ok(done)
    }
}

fn busy(key: &'static str) -> Error {
    Error::overloaded(Said::of(key, &[]), 10)
}

fn out_of_memory() -> Error {
    busy("error.no_memory")
}

fn verify(stored: Option<&str>, password: &Secret) -> Result<bool> {
    if password.expose().len() > PASSWORD_BYTES {
        return Ok(false);
    }
    let known = stored.and_then(|text| {
        let hash = PasswordHash::new(text).ok()?;
        Some((Params::try_from(&hash).ok()?, hash.salt?, hash.hash?))
    });
    let derived = match &known {
        Some((params, salt, _)) => derive(params, password, salt),
        // No user of this name: takes as long.
        None => derive(&Params::default(), password, &[0; 16]),
    };
    match (derived, known) {
        (Err(argon2::Error::OutOfMemory), _) => Err(out_of_memory()),
        (Ok(digest), Some((_, _, expected))) => Ok(digest.ct_eq(expected.as_bytes()).into()),
        _ => Ok(false),
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
