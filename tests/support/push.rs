//! A browser that is told something through a push service: its keys, how it reads a
//! message (RFC 8291), and what a push service checks (RFC 8292). Written apart from the
//! program, after the RFCs.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::rand::SystemRandom;
use ring::signature::ECDSA_P256_SHA256_FIXED;
use ring::{aead, hkdf, signature};
use serde_json::{Value, json};

use super::receiver::Callback;

/// A browser. Its key reads one message.
pub struct Browser {
    private: EphemeralPrivateKey,
    keys: Keys,
}

/// What it has beside its private key.
pub struct Keys {
    pub public: Vec<u8>,
    pub secret: Vec<u8>,
}

/// Bytes of a text in base64url.
pub fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

impl Browser {
    pub fn new() -> Browser {
        let private = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        let public = private.compute_public_key().unwrap().as_ref().to_vec();
        let secret = b"sixteen bytes ok".to_vec();
        let keys = Keys { public, secret };
        Browser { private, keys }
    }

    /// As it tells a server where to reach it.
    pub fn subscription(&self, endpoint: &str) -> Value {
        json!({ "endpoint": endpoint, "expirationTime": null, "keys": {
            "p256dh": URL_SAFE_NO_PAD.encode(&self.keys.public),
            "auth": URL_SAFE_NO_PAD.encode(&self.keys.secret),
        } })
    }

    /// Reads a message.
    pub fn read(self, message: &[u8]) -> Value {
        let sender = UnparsedPublicKey::new(&ECDH_P256, &message[21..86]);
        let keys = self.keys;
        let text = agree_ephemeral(self.private, &sender, |shared| keys.open(shared, message));
        serde_json::from_slice(&text.unwrap()).unwrap()
    }
}

/// A length of HKDF's output.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive(salt: &[u8], material: &[u8], info: &[u8], length: usize) -> Vec<u8> {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, salt);
    let mut key = vec![0; length];
    let prk = salt.extract(material);
    let info = [info];
    let output = prk.expand(&info, Length(length)).unwrap();
    output.fill(&mut key).unwrap();
    key
}

impl Keys {
    /// The text of a message, once the keys have agreed on a secret.
    pub fn open(&self, shared: &[u8], message: &[u8]) -> Vec<u8> {
        let (salt, rest) = message.split_at(16);
        assert_eq!(rest[..4], 4_096u32.to_be_bytes());
        assert_eq!(rest[4], 65);
        let (sender, sealed) = rest[5..].split_at(65);
        let info = [b"WebPush: info\0", &self.public[..], sender].concat();
        let material = derive(&self.secret, shared, &info, 32);
        let key = derive(salt, &material, b"Content-Encoding: aes128gcm\0", 16);
        let nonce = derive(salt, &material, b"Content-Encoding: nonce\0", 12);
        let key = aead::UnboundKey::new(&aead::AES_128_GCM, &key).unwrap();
        let nonce = aead::Nonce::try_assume_unique_for_key(&nonce).unwrap();
        let mut opened = sealed.to_vec();
        let key = aead::LessSafeKey::new(key);
        let text = key.open_in_place(nonce, aead::Aad::empty(), &mut opened);
        let text = text.expect("the message is for this browser");
        let end = text.iter().rposition(|byte| *byte != 0).unwrap();
        assert_eq!(text[end], 2, "the delimiter of the last record");
        text[..end].to_vec()
    }
}

/// The claims of the token with which a server shows who it is, after a look at its
/// signature. `key` is the server's `push_key`.
pub fn claims(callback: &Callback, key: &str) -> Value {
    let header = callback.header("authorization").unwrap();
    let (token, named) = header
        .strip_prefix("vapid t=")
        .and_then(|rest| rest.split_once(", k="))
        .unwrap_or_else(|| panic!("{header}"));
    assert_eq!(named, key);
    let (signed, tag) = token.rsplit_once('.').unwrap();
    let public = signature::UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes(key));
    let verified = public.verify(signed.as_bytes(), &bytes(tag));
    verified.expect("the token is signed by the server");
    let (head, claims) = signed.split_once('.').unwrap();
    let head: Value = serde_json::from_slice(&bytes(head)).unwrap();
    assert_eq!(head, json!({ "typ": "JWT", "alg": "ES256" }));
    serde_json::from_slice(&bytes(claims)).unwrap()
}
