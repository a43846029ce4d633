//! Secrets: a string that cannot be printed, constant-time comparison, random
//! tokens and their fingerprints.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

/// The letters of [`base32_lower`].
pub(crate) const BASE32_LOWER: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A secret string. `Debug` prints a placeholder and there is no `Display` and
/// no `Serialize`, so that it cannot reach a log, an event or a response by
/// accident; [`Secret::expose`] marks each place that uses it. By default it is empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret that came from outside.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// A fresh token: `hearth_` and 256 random bits in lower-case base32.
    pub fn random_token() -> Secret {
        Secret(format!("hearth_{}", base32_lower(&random_bytes::<32>())))
    }

    /// A fresh webhook secret in the form of Standard Webhooks: `whsec_` and 256
    /// random bits in base64.
    pub fn random_webhook() -> Secret {
        Secret(format!("whsec_{}", STANDARD.encode(random_bytes::<32>())))
    }

    /// A fresh password that a person can type: 20 characters, 100 random bits.
    pub fn random_password() -> Secret {
        let text = base32_lower(&random_bytes::<13>());
        let groups: Vec<&str> = (0..4)
            .map(|group| &text[group * 5..group * 5 + 5])
            .collect();
        Secret(groups.join("-"))
    }

    /// The secret itself, for the one place that must use it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the secret is the empty string.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares in a time that depends on neither content.
    pub fn matches(&self, candidate: &str) -> bool {
        // Digests have one length, so that the comparison does not reveal ours.
        fingerprint(&self.0).ct_eq(&fingerprint(candidate)).into()
    }

    /// Whether `tag` is the HMAC-SHA256 of `message` under this secret, compared
    /// in a time that does not depend on it.
    pub fn signed(&self, message: &[u8], tag: &[u8; 32]) -> bool {
        hmac_sha256(self.0.as_bytes(), message).ct_eq(tag).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// SHA-256 of a text: the form in which a token is stored.
pub fn fingerprint(text: &str) -> [u8; 32] {
    sha256(text.as_bytes())
}

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes)
        .as_ref()
        .try_into()
        .expect("a SHA-256 digest has 32 bytes")
}

/// Bytes as lowercase hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HMAC-SHA256 of `message` under `key`.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
        .as_ref()
        .try_into()
        .expect("an HMAC-SHA256 tag has 32 bytes")
}

/// Random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the operating system gives random bytes once it has booted");
    bytes
}

/// A random number in `0.0..1.0`, for jitter.
pub fn random_fraction() -> f64 {
    f64::from(u32::from_le_bytes(random_bytes::<4>())) / (f64::from(u32::MAX) + 1.0)
}

/// A short reference that joins a client's error message to a log line.
pub fn reference() -> String {
    base32_lower(&random_bytes::<5>())
}

/// Lower-case base32 (RFC 4648) without padding.
pub fn base32_lower(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut buffer, mut bits) = (0u32, 0);
    for &byte in bytes {
        buffer = buffer << 8 | u32::from(byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(BASE32_LOWER[(buffer >> bits & 31) as usize] as char);
        }
    }
    if bits > 0 {
        text.push(BASE32_LOWER[(buffer << (5 - bits) & 31) as usize] as char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_cannot_be_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "[secret]");
    }

    #[test]
    fn only_the_same_text_matches() {
        let secret = Secret::new("correct horse");
        assert!(secret.matches("correct horse"));
        for wrong in ["", "correct", "correct horse ", "Correct horse"] {
            assert!(!secret.matches(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn tokens_and_passwords_are_fresh_and_long() {
        let token = Secret::random_token();
        assert_eq!(token.expose().len(), "hearth_".len() + 52);
        assert_ne!(token, Secret::random_token());
        assert_eq!(Secret::random_password().expose().len(), 23);
    }

    #[test]
    fn hmac_is_that_of_rfc_4231_test_case_2() {
        let tag = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(tag[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
