//! The keys of files in the format age v1, and their text.

use std::fmt;
use std::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use curve25519_dalek::constants::X25519_BASEPOINT;
use curve25519_dalek::montgomery::MontgomeryPoint;

use super::AgeError;
use crate::secret::{Secret, random_bytes};

const PUBLIC: &str = "age";
const SECRET: &str = "age-secret-key-";

/// A key that files are encrypted to. Its text is `age1` and 58 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(super) [u8; 32]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(PUBLIC, &self.0))
    }
}

impl serde::Serialize for PublicKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for PublicKey {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<PublicKey, AgeError> {
        // A point of low order would leave the file key to anybody.
        let key = bytes(PUBLIC, text).filter(|key| shared(&[1; 32], key).is_some());
        key.map(PublicKey).ok_or(AgeError::Foreign)
    }
}

/// A key that files are decrypted with.
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// A fresh one.
    pub fn generate() -> SecretKey {
        SecretKey(random_bytes())
    }

    /// Its public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(X25519_BASEPOINT.mul_clamped(self.0).to_bytes())
    }

    /// Its text: `AGE-SECRET-KEY-1` and 58 characters.
    pub fn text(&self) -> Secret {
        Secret::new(text(SECRET, &self.0).to_uppercase())
    }

    /// The key in the text of a file, in which lines that begin with `#` are comments; none if
    /// there is none.
    pub fn find(text: &str) -> Option<SecretKey> {
        let mut lines = text.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
        bytes(SECRET, line).map(SecretKey)
    }

    /// What it has in common with the secret of this public key; none if that is no key.
    pub(super) fn shared(&self, public: &[u8; 32]) -> Option<[u8; 32]> {
        shared(&self.0, public)
    }
}

fn shared(secret: &[u8; 32], public: &[u8; 32]) -> Option<[u8; 32]> {
    let shared = MontgomeryPoint(*public).mul_clamped(*secret).to_bytes();
    (shared != [0; 32]).then_some(shared)
}

fn text(prefix: &str, key: &[u8; 32]) -> String {
    let prefix = Hrp::parse(prefix).expect("a valid prefix");
    bech32::encode::<Bech32>(prefix, key).expect("32 bytes are not too long")
}

fn bytes(prefix: &str, text: &str) -> Option<[u8; 32]> {
    let read = CheckedHrpstring::new::<Bech32>(text).ok()?;
    if read.hrp().to_lowercase() != prefix {
        return None;
    }
    let bytes: Vec<u8> = read.byte_iter().collect();
    bytes.try_into().ok()
}
