//! Whether a client's messages are encrypted, so that the relay cannot read them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::noise::{PrivateKey, Purpose, Secured, respond};
use base::error::{Error, Result};
use config::Encryption;
use net::outbox::Close;
use protocol::envelope::{self, RequestId};
use protocol::fields::Fields;
use protocol::relay::{ClientNumber, Frame, FrameKind, HEADER_BYTES};
use serde_json::json;

/// Bytes that encryption adds to a message: its flags and its tag.
pub(super) const ADDED_BYTES: usize = 17;

const MUST_ENCRYPT: Close = Close::new(1008, "this machine requires encryption");
const NOT_AGREED: Close = Close::new(1008, "the encrypted handshake failed");
const PLAIN_TEXT: Close = Close::new(1008, "only encrypted messages are accepted now");
const DOES_NOT_OPEN: Close = Close::new(1002, "an encrypted message cannot be decrypted");
/// An answer that cannot be sent.
pub(super) const ANSWER_TOO_LARGE: Close =
    Close::new(1009, "the answer is larger than the relay carries");
/// A message over the limit of its client.
pub(super) const TOO_LARGE: Close = Close::new(1009, "message too large");

/// The encryption of one client.
pub(super) enum Privacy {
    /// It has sent nothing yet.
    Undecided,
    /// Not encrypted: the relay can read it.
    Plain,
    /// Encrypted between client and machine.
    Secured(Box<Secured>),
}

/// What to do with a message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Hand this message to the session.
    Message(String),
    /// Have the session refuse a binary message.
    NoBinary,
    /// Have the session refuse a message over the limit, then close.
    TooLarge,
    /// Send this text as it is.
    Answer(String),
    /// Send this text as it is, then close.
    Refuse(String, Close),
    /// Close.
    Close(Close),
    /// Wait for more.
    Nothing,
}

impl Privacy {
    /// Decides about a text message; the first one decides whether it is encrypted.
    pub fn text(
        &mut self,
        text: String,
        most: usize,
        key: &PrivateKey,
        demand: Encryption,
    ) -> Verdict {
        if text.len() > most {
            return match self {
                Privacy::Secured(_) => Verdict::Close(TOO_LARGE),
                _ => Verdict::TooLarge,
            };
        }
        match self {
            Privacy::Secured(_) => Verdict::Close(PLAIN_TEXT),
            Privacy::Plain => Verdict::Message(text),
            Privacy::Undecided => self.first(text, key, demand),
        }
    }

    fn first(&mut self, text: String, key: &PrivateKey, demand: Encryption) -> Verdict {
        let fields = Fields::parse(&text).ok();
        let member = |name| fields.as_ref().and_then(|fields| fields.get(name));
        let id = RequestId::from_member(member("id")).unwrap_or(None);
        if member("type").and_then(|kind| kind.as_str()) == Some("secure") {
            let noise = member("noise").and_then(|noise| noise.as_str());
            return match agree(noise.unwrap_or_default(), key) {
                Ok((answer, secured)) => {
                    *self = Privacy::Secured(Box::new(secured));
                    let data = json!({ "noise": STANDARD.encode(answer) });
                    Verdict::Answer(envelope::success(id.as_ref(), data))
                }
                Err(error) => Verdict::Refuse(envelope::failure(id.as_ref(), &error), NOT_AGREED),
            };
        }
        if demand == Encryption::Required {
            let error = Error::unauthorized(
                "this machine requires encryption: send \"secure\" first, or use `hearth chat` or \
                 the web page",
            );
            return Verdict::Refuse(envelope::failure(id.as_ref(), &error), MUST_ENCRYPT);
        }
        *self = Privacy::Plain;
        Verdict::Message(text)
    }

    /// Decides about a binary message.
    pub fn binary(&mut self, message: &[u8], most: usize) -> Verdict {
        let Privacy::Secured(secured) = self else {
            return Verdict::NoBinary;
        };
        if secured.joined_bytes() + message.len() > most + ADDED_BYTES {
            return Verdict::Close(TOO_LARGE);
        }
        match secured.open(message) {
            Ok(Some(text)) => Verdict::Message(text),
            Ok(None) => Verdict::Nothing,
            Err(_) => Verdict::Close(DOES_NOT_OPEN),
        }
    }

    /// The encrypted connection, after the handshake.
    pub fn secured(&mut self) -> Option<&mut Secured> {
        match self {
            Privacy::Secured(secured) => Some(secured),
            _ => None,
        }
    }

    /// Puts a text for the client into frames of at most `most` bytes of payload
    /// each.
    ///
    /// # Errors
    /// How to close a client whose text is too large.
    pub fn wrap(
        &mut self,
        client: ClientNumber,
        text: &str,
        most: usize,
        frames: &mut Vec<Vec<u8>>,
    ) -> Result<(), Close> {
        match self {
            Privacy::Secured(secured) => secured
                .seal(text, &mut |message| {
                    frames.push(Frame::new(client, FrameKind::Binary(&message)).encode());
                })
                .map_err(|_| ANSWER_TOO_LARGE),
            _ if text.len() > most - HEADER_BYTES => Err(ANSWER_TOO_LARGE),
            _ => {
                frames.push(Frame::new(client, FrameKind::Text(text)).encode());
                Ok(())
            }
        }
    }
}

/// Answers a client's handshake.
fn agree(noise: &str, key: &PrivateKey) -> Result<(Vec<u8>, Secured)> {
    let malformed = || {
        Error::invalid_request(
            "\"noise\" must be the base64 of the first message of a Noise handshake \
             (Noise_NK_25519_AESGCM_SHA256) with this machine's key",
        )
    };
    let message = STANDARD.decode(noise).map_err(|_| malformed())?;
    respond(Purpose::Client, key, &message).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::noise::Initiator;

    const MOST: usize = 4096;
    const CLIENT: ClientNumber = ClientNumber(7);

    fn hello(key: &PrivateKey) -> (Initiator, String) {
        let (initiator, first) = Initiator::begin(Purpose::Client, &key.public_key()).unwrap();
        let text = json!({"type": "secure", "id": 1, "noise": STANDARD.encode(first)});
        (initiator, text.to_string())
    }

    /// A client and its machine after their handshake.
    fn agreed() -> (Secured, Privacy, PrivateKey) {
        let key = PrivateKey::generate();
        let mut privacy = Privacy::Undecided;
        let (initiator, first) = hello(&key);
        let Verdict::Answer(answer) = privacy.text(first, MOST, &key, Encryption::Required) else {
            panic!("no answer");
        };
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (&answer["status"], &answer["id"]),
            (&json!("ok"), &json!(1))
        );
        let noise = STANDARD
            .decode(answer["data"]["noise"].as_str().unwrap())
            .unwrap();
        (initiator.finish(&noise).unwrap(), privacy, key)
    }

    fn sealed(secured: &mut Secured, text: &str) -> Vec<u8> {
        let mut sealed = Vec::new();
        secured
            .seal(text, &mut |message| sealed.push(message))
            .unwrap();
        sealed.remove(0)
    }

    #[test]
    fn after_the_handshake_only_encrypted_messages_are_accepted() {
        let (mut client, mut privacy, key) = agreed();
        let message = sealed(&mut client, "hello");
        assert_eq!(
            privacy.binary(&message, MOST),
            Verdict::Message("hello".to_owned())
        );
        assert_eq!(
            privacy.binary(&message, MOST),
            Verdict::Close(DOES_NOT_OPEN),
            "a replay"
        );

        let mut frames = Vec::new();
        privacy.wrap(CLIENT, "secret", MOST, &mut frames).unwrap();
        assert_eq!(frames.len(), 1);
        assert!(!String::from_utf8_lossy(&frames[0]).contains("secret"));

        let (_, mut privacy, _) = agreed();
        let text = "{}".to_owned();
        assert_eq!(
            privacy.text(text, MOST, &key, Encryption::Optional),
            Verdict::Close(PLAIN_TEXT)
        );
    }

    #[test]
    fn pieces_cannot_add_up_to_more_than_the_limit() {
        let (mut client, mut privacy, _) = agreed();
        let fits = sealed(&mut client, &"x".repeat(MOST));
        assert!(matches!(privacy.binary(&fits, MOST), Verdict::Message(_)));
        let large = sealed(&mut client, &"x".repeat(MOST + 1));
        assert_eq!(privacy.binary(&large, MOST), Verdict::Close(TOO_LARGE));
    }

    #[test]
    fn a_plain_client_is_accepted_only_where_that_is_allowed() {
        let key = PrivateKey::generate();
        let text = || r#"{"type":"auth","id":"a","token":"t"}"#.to_owned();
        let mut privacy = Privacy::Undecided;
        let taken = privacy.text(text(), MOST, &key, Encryption::Optional);
        assert_eq!(taken, Verdict::Message(text()));
        assert_eq!(privacy.binary(b"x", MOST), Verdict::NoBinary);
        let mut frames = Vec::new();
        assert_eq!(
            privacy.wrap(CLIENT, &"x".repeat(MOST), MOST, &mut frames),
            Err(ANSWER_TOO_LARGE)
        );

        let refused = Privacy::Undecided.text(text(), MOST, &key, Encryption::Required);
        let Verdict::Refuse(envelope, MUST_ENCRYPT) = refused else {
            panic!("{refused:?}");
        };
        let envelope: Value = serde_json::from_str(&envelope).unwrap();
        assert_eq!(
            (&envelope["code"], &envelope["id"]),
            (&json!("unauthorized"), &json!("a"))
        );
    }

    #[test]
    fn a_handshake_that_fails_is_refused() {
        let key = PrivateKey::generate();
        let mut low_order = vec![0; 32];
        low_order.extend([7; 16]);
        let (_, for_another) = hello(&PrivateKey::generate());
        for text in [
            r#"{"type":"secure"}"#.to_owned(),
            r#"{"type":"secure","noise":"?"}"#.to_owned(),
            r#"{"type":"secure","noise":7}"#.to_owned(),
            json!({"type": "secure", "noise": STANDARD.encode(low_order)}).to_string(),
            for_another,
        ] {
            let verdict = Privacy::Undecided.text(text.clone(), MOST, &key, Encryption::Optional);
            assert!(
                matches!(&verdict, Verdict::Refuse(answer, NOT_AGREED) if answer.contains("invalid_request")),
                "{text}: {verdict:?}"
            );
        }
        let long = "x".repeat(MOST + 1);
        let verdict = Privacy::Undecided.text(long, MOST, &key, Encryption::Optional);
        assert_eq!(verdict, Verdict::TooLarge);
    }
}
