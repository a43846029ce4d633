//! `push.key`: the key pair by which push services know this server (VAPID, RFC 8292).
//!
//! It is created once and never replaced: browsers that named themselves to one key are
//! not reached with another.

use std::io;
use std::path::Path;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use base::clock::Timestamp;
use base::key_file;
use protocol::push::encode;

/// The file's name in the data directory.
pub const PUSH_KEY_FILE: &str = "push.key";

/// How long a token is valid, in seconds; at most a day (RFC 8292 section 2).
const VALIDITY: i64 = 12 * 60 * 60;

/// The server's key pair.
pub struct PushKey {
    pair: EcdsaKeyPair,
    /// Its public half, in base64url: what a browser's subscription is bound to.
    pub public_key: String,
}

impl PushKey {
    /// The key in a data directory, created if there is none.
    ///
    /// # Errors
    /// The file cannot be read or created, or contains no key: a sentence that names it and says
    /// what to do.
    pub fn load_or_make(data_dir: &Path) -> Result<PushKey, String> {
        let path = data_dir.join(PUSH_KEY_FILE);
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let fresh = || match EcdsaKeyPair::generate_pkcs8(algorithm, &random) {
            Ok(key) => Ok(key.as_ref().to_vec()),
            Err(_) => Err(io::Error::other("no random bytes")),
        };
        let key = key_file::load_or_make(data_dir, PUSH_KEY_FILE, fresh)
            .map_err(|error| unusable(&path, &error))?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &key, &random).map_err(|_| broken(&path))?;
        Ok(PushKey {
            public_key: encode(pair.public_key().as_ref()),
            pair,
        })
    }

    /// The header `Authorization` for a push service of this origin (RFC 8292 section 3).
    /// `contact` is a `mailto:` or `https:` URL.
    pub fn authorization(&self, origin: &str, contact: &str, now: Timestamp) -> Option<String> {
        let head = encode(br#"{"typ":"JWT","alg":"ES256"}"#);
        let expires = now.as_millis() / 1_000 + VALIDITY;
        let claims = json!({ "aud": origin, "exp": expires, "sub": contact }).to_string();
        let signed = format!("{head}.{}", encode(claims.as_bytes()));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), signed.as_bytes())
            .ok()?;
        let signature = encode(signature.as_ref());
        Some(format!(
            "vapid t={signed}.{signature}, k={}",
            self.public_key
        ))
    }
}

fn unusable(path: &Path, error: &io::Error) -> String {
    format!(
        "the key {} cannot be read or created: {error}",
        path.display()
    )
}

fn broken(path: &Path) -> String {
    format!(
        "{} does not contain the server's key: restore it from a backup. Without one, move the \
         file away; browsers are then told nothing until their pages are opened again",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use base::testing::TemporaryDirectory;

    use super::*;

    #[test]
    fn it_is_made_once_for_its_owner_and_never_replaced() {
        let folder = TemporaryDirectory::new();
        let made = PushKey::load_or_make(&folder).unwrap();
        let again = PushKey::load_or_make(&folder).unwrap();
        assert_eq!(made.public_key, again.public_key);
        let path = folder.join(PUSH_KEY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        for broken in ["", "nonsense", "AAAA"] {
            fs::write(&path, broken).unwrap();
            let Err(error) = PushKey::load_or_make(&folder) else {
                panic!("{broken:?} is no key")
            };
            assert!(error.to_string().contains("push.key"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        }
    }
}
