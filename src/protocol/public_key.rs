//! A machine's public key: an X25519 key (RFC 7748), in base64 on the wire.

use std::fmt;

use ring::agreement;
use ring::rand::SystemRandom;

use crate::attachment::{decode, encode};
use base::error::{Error, Result};
use base::ids::MachineId;

/// Bytes of an X25519 public key (RFC 7748 section 5).
pub const BYTES: usize = 32;

/// A usable public key: not of low order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; BYTES]);

impl PublicKey {
    /// Reads a key in base64: standard or URL-safe alphabet, padded or not. Errors
    /// call it `field`.
    ///
    /// # Errors
    /// `invalid_request` when it is not 32 bytes, or of low order.
    pub fn parse(field: &str, text: &str) -> Result<PublicKey> {
        let standard = text.replace('-', "+").replace('_', "/");
        let bytes: [u8; BYTES] = decode(&standard)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| {
                Error::invalid_request(format!(
                    "\"{field}\" must be the base64 of the {BYTES} bytes of an X25519 public key"
                ))
            })?;
        PublicKey::new(field, bytes)
    }

    /// Checks the bytes of a key. Errors call it `field`.
    ///
    /// # Errors
    /// `invalid_request` when it is of low order.
    pub fn new(field: &str, bytes: [u8; BYTES]) -> Result<PublicKey> {
        if is_low_order(&bytes)? {
            return Err(Error::invalid_request(format!(
                "\"{field}\" is not a usable X25519 public key: it is a point of low order"
            )));
        }
        Ok(PublicKey(bytes))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Its base64, as it is sent.
    pub fn to_base64(self) -> String {
        encode(&self.0)
    }

    /// The machine that holds the private key.
    pub fn machine_id(&self) -> MachineId {
        MachineId::of_public_key(&self.0)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

/// Whether every agreement with this key gives the same all-zero secret
/// (RFC 7748 section 6.1), so that anybody could impersonate its machine. Private
/// keys are multiples of the cofactor, so one agreement is enough to know.
fn is_low_order(public_key: &[u8; BYTES]) -> Result<bool> {
    let private_key =
        agreement::EphemeralPrivateKey::generate(&agreement::X25519, &SystemRandom::new())
            .map_err(|_| {
                Error::server(
                    "the public key could not be checked",
                    "the operating system gave no random bytes",
                )
            })?;
    let peer = agreement::UnparsedPublicKey::new(&agreement::X25519, public_key);
    Ok(agreement::agree_ephemeral(private_key, &peer, |_| ()).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The public key of Alice in RFC 7748 section 6.1.
    const ALICE: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    #[test]
    fn a_key_may_be_written_in_either_alphabet() {
        let key = PublicKey::parse("public_key", ALICE).unwrap();
        assert_eq!(key.as_bytes()[..4], [0x85, 0x20, 0xf0, 0x09]);
        assert_eq!(key.to_base64(), ALICE);
        for same in [
            ALICE.trim_end_matches('='),
            &ALICE.replace('/', "_"),
            ALICE.replace('/', "_").trim_end_matches('='),
        ] {
            assert_eq!(PublicKey::parse("k", same).unwrap(), key, "{same}");
        }
    }

    #[test]
    fn points_of_low_order_are_refused() {
        // All of them: of order 1, 2, 4 and 8, canonical or not. The top bit
        // is ignored by X25519 (RFC 7748 section 5).
        let order_8 = [
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        ];
        let mut points: Vec<[u8; 32]> = order_8
            .iter()
            .map(|hex| {
                std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            })
            .collect();
        points.push([0; 32]);
        points.push(std::array::from_fn(|at| u8::from(at == 0)));
        for first in [0xec, 0xed, 0xee] {
            let mut point = [0xff; 32];
            (point[0], point[31]) = (first, 0x7f);
            points.push(point);
        }
        for mut point in points {
            for _ in 0..2 {
                let error = PublicKey::new("public_key", point).unwrap_err();
                assert!(error.message().contains("low order"), "{point:x?}");
                point[31] |= 0x80;
            }
        }
        assert!(PublicKey::parse("public_key", &encode(&[0; 32])).is_err());
    }
}
