//! Secrets of people that the database keeps: encrypted with a key in a file of its own, so that
//! a copy of the database alone holds none.

use std::fmt;
use std::io;
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::key_file;
use crate::secret::{Secret, random_bytes};

/// The file's name in the data directory.
pub const SEALING_KEY_FILE: &str = "secrets.key";
const KEY_BYTES: usize = 32;

/// Encrypts and decrypts them.
pub struct SealingKey(LessSafeKey);

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl SealingKey {
    /// The key of a data directory, made if there is none.
    ///
    /// # Errors
    /// The file cannot be read or made, or holds no key; with its path.
    pub fn load_or_make(data_dir: &Path) -> io::Result<SealingKey> {
        let path = data_dir.join(SEALING_KEY_FILE);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let fresh = || Ok(random_bytes::<KEY_BYTES>().to_vec());
        let key = key_file::load_or_make(data_dir, SEALING_KEY_FILE, fresh).map_err(named)?;
        match UnboundKey::new(&CHACHA20_POLY1305, &key) {
            Ok(key) => Ok(SealingKey(LessSafeKey::new(key))),
            Err(_) => Err(named(io::Error::other(
                "it holds no key: restore it from a backup with secrets, or move it away",
            ))),
        }
    }

    /// The secret in a form in which it can be kept.
    pub fn seal(&self, secret: &Secret) -> Vec<u8> {
        let nonce = random_bytes::<NONCE_LEN>();
        let mut sealed = secret.expose().as_bytes().to_vec();
        let nonce_of = Nonce::assume_unique_for_key(nonce);
        let done = self
            .0
            .seal_in_place_append_tag(nonce_of, Aad::empty(), &mut sealed);
        done.expect("a secret is shorter than 256 GiB");
        [&nonce[..], &sealed].concat()
    }

    /// The secret again; none if it was sealed with another key.
    pub fn open(&self, sealed: &[u8]) -> Option<Secret> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = sealed.to_vec();
        let text = self.0.open_in_place(nonce, Aad::empty(), &mut text).ok()?;
        String::from_utf8(text.to_vec()).ok().map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TemporaryDirectory;

    #[test]
    fn a_secret_is_read_with_its_own_key_alone() {
        let (one, other) = (TemporaryDirectory::new(), TemporaryDirectory::new());
        let key = SealingKey::load_or_make(&one).unwrap();
        let secret = Secret::new("pass wörd");
        let sealed = key.seal(&secret);
        assert!(!sealed.windows(4).any(|bytes| bytes == b"pass"));
        assert_ne!(sealed, key.seal(&secret));
        let again = SealingKey::load_or_make(&one).unwrap();
        assert_eq!(again.open(&sealed), Some(secret));
        let foreign = SealingKey::load_or_make(&other).unwrap();
        assert_eq!(foreign.open(&sealed), None);
        assert_eq!(key.open(b"short"), None);
        std::fs::write(one.join(SEALING_KEY_FILE), "nonsense").unwrap();
        let error = SealingKey::load_or_make(&one).unwrap_err();
        assert!(error.to_string().contains("secrets.key"), "{error}");
    }
}
