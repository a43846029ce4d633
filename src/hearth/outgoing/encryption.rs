//! Messages that only one browser can read (RFC 8291), in the form `aes128gcm` (RFC 8188).

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::rand::SystemRandom;

use base::secret::{hmac_sha256, random_bytes};

/// The size of the one record: what push services take at most (RFC 8030 section 7.2).
const RECORD: u32 = 4_096;
/// What follows the text in its last record (RFC 8188 section 2).
const LAST: u8 = 2;
/// Messages are filled up to a multiple of this, so that their length says little.
const STEP: usize = 256;

/// Encrypts a text of at most 3,800 bytes for a browser with this public key and secret;
/// none when the key is no point of the curve.
pub fn encrypt(public_key: &[u8], secret: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut filled = text.to_vec();
    filled.push(LAST);
    filled.resize(filled.len().next_multiple_of(STEP), 0);
    let private = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).ok()?;
    let own = private.compute_public_key().ok()?;
    let theirs = UnparsedPublicKey::new(&ECDH_P256, public_key);
    let keys = Keys {
        theirs: public_key,
        secret,
        own: own.as_ref(),
        salt: random_bytes(),
    };
    agree_ephemeral(private, &theirs, |shared| keys.seal(shared, filled)).ok()?
}

/// Whether a browser's public key is one.
pub fn is_public_key(public_key: &[u8]) -> bool {
    encrypt(public_key, &[], &[]).is_some()
}

/// What a message is encrypted with, beside what its keys agree on.
struct Keys<'a> {
    theirs: &'a [u8],
    secret: &'a [u8],
    own: &'a [u8],
    salt: [u8; 16],
}

impl Keys<'_> {
    /// The whole message. Each HMAC is one step of HKDF (RFC 5869) of at most 32 bytes.
    fn seal(&self, shared: &[u8], mut filled: Vec<u8>) -> Option<Vec<u8>> {
        let info = [b"WebPush: info\0", self.theirs, self.own, &[1]].concat();
        let material = hmac_sha256(&hmac_sha256(self.secret, shared), &info);
        let prk = hmac_sha256(&self.salt, &material);
        let key = hmac_sha256(&prk, b"Content-Encoding: aes128gcm\0\x01");
        let nonce = hmac_sha256(&prk, b"Content-Encoding: nonce\0\x01");
        let key = UnboundKey::new(&AES_128_GCM, &key[..16]).ok()?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).ok()?;
        let key = LessSafeKey::new(key);
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut filled)
            .ok()?;
        let length = [u8::try_from(self.own.len()).ok()?];
        Some(
            [
                &self.salt[..],
                &RECORD.to_be_bytes(),
                &length,
                self.own,
                &filled,
            ]
            .concat(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::push::{decode, encode};

    /// RFC 8291 section 5, and what its keys agree on from appendix A.
    #[test]
    fn a_message_is_that_of_the_rfc() {
        let bytes = |text| decode(text).unwrap();
        let theirs = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let own = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let secret = bytes("BTBZMqHH6r4Tts7J_aSIgg");
        let keys = Keys {
            theirs: &theirs,
            secret: &secret,
            own: &own,
            salt: bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().unwrap(),
        };
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let text = b"When I grow up, I want to be a watermelon\x02".to_vec();
        assert_eq!(
            encode(&keys.seal(&shared, text).unwrap()),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
        assert!(is_public_key(&theirs));
        assert!(!is_public_key(&[4; 65]));
        assert!(!is_public_key(&theirs[..64]));
    }

    #[test]
    fn the_longest_text_fits_and_its_length_says_little() {
        let private = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let public_key = private.compute_public_key().unwrap();
        let length = |text: usize| {
            let message = encrypt(public_key.as_ref(), &[1; 16], &vec![b'x'; text]);
            message.unwrap().len()
        };
        assert_eq!(length(1), length(200));
        assert!(length(3_800) <= 4_096);
    }
}
