//! The session of a client that names this machine: through a relay, or directly, since
//! one address and one protocol serve both ways. Its messages may be encrypted between
//! client and machine, so that a relay cannot read them.

use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tungstenite::Message;

use crate::machine_key;
use crate::noise::{PrivateKey, Purpose, Secured, respond};
use base::error::{Error, Result};
use config::Encryption;
use net::client_handler::{ClientHandler, HandlerFactory};
use net::outbox::{Close, Direct, Item, Outbox};
use protocol::envelope::{self, RequestId};
use protocol::fields::Fields;
use protocol::relay::{ClientNumber, Frame, FrameKind, HEADER_BYTES};

/// Bytes that encryption adds to a message: its flags and its tag.
const ADDED_BYTES: usize = 17;

const MUST_ENCRYPT: Close = Close::new(1008, "this machine requires encryption");
const NOT_AGREED: Close = Close::new(1008, "the encrypted handshake failed");
const PLAIN_TEXT: Close = Close::new(1008, "only encrypted messages are accepted now");
const DOES_NOT_OPEN: Close = Close::new(1002, "an encrypted message cannot be decrypted");
/// An answer that cannot be sent.
const ANSWER_TOO_LARGE: Close = Close::new(1009, "the answer is larger than the relay carries");
/// A message over the limit of its client.
const TOO_LARGE: Close = Close::new(1009, "message too large");

/// This machine, for clients that connect to it directly and name it in the address.
pub struct OwnMachine {
    pub(super) sessions: HandlerFactory,
    pub(super) key: Arc<OnceLock<PrivateKey>>,
}

impl OwnMachine {
    /// Opens a WebSocket that names this machine; none while it has no key.
    pub fn open(&self) -> Option<HandlerFactory> {
        let key = self.key.get()?.clone();
        let sessions = Arc::clone(&self.sessions);
        Some(Arc::new(move |peer, transport, outbox| {
            let client_handler = sessions(peer, transport, Arc::clone(&outbox));
            // There is no relay in between, so encryption is up to the client.
            let encryption = Encryption::Optional;
            let key = key.clone();
            Box::new(PrivateSession::new(client_handler, outbox, key, encryption))
        }))
    }
}

/// A session whose client decides with its first message whether it encrypts.
pub(super) struct PrivateSession {
    client_handler: Box<dyn ClientHandler>,
    outbox: Arc<Outbox>,
    key: PrivateKey,
    encryption: Encryption,
    privacy: Privacy,
    /// How it is being closed, whatever else the handler wants: further messages are ignored.
    pub ended: Option<Close>,
}

/// Whether a client's messages are encrypted.
enum Privacy {
    /// It has sent nothing yet.
    Undecided,
    /// They are not: the relay can read them.
    Plain,
    /// They are encrypted between client and machine.
    Secured(Box<Secured>),
}

impl PrivateSession {
    /// A session that `client_handler` serves through `outbox`.
    pub fn new(
        client_handler: Box<dyn ClientHandler>,
        outbox: Arc<Outbox>,
        key: PrivateKey,
        encryption: Encryption,
    ) -> PrivateSession {
        PrivateSession {
            client_handler,
            outbox,
            key,
            encryption,
            privacy: Privacy::Undecided,
            ended: None,
        }
    }

    /// Takes the first message, unless that asks for the machine's key.
    fn begin(&mut self, text: &str) {
        if let Some(answer) = machine_key::answer(text, || self.key.public_key()) {
            return self.say(answer);
        }
        let fields = Fields::parse(text).ok();
        let member = |name| fields.as_ref().and_then(|fields| fields.get(name));
        let id = RequestId::from_member(member("id")).unwrap_or(None);
        if member("type").and_then(|kind| kind.as_str()) == Some("secure") {
            let noise = member("noise").and_then(|noise| noise.as_str());
            return match agree(noise.unwrap_or_default(), &self.key) {
                Ok((answer, secured)) => {
                    self.privacy = Privacy::Secured(Box::new(secured));
                    let data = json!({ "noise": STANDARD.encode(answer) });
                    self.say(envelope::success(id.as_ref(), data));
                }
                Err(error) => {
                    self.say(envelope::failure(id.as_ref(), &error));
                    self.end(NOT_AGREED);
                }
            };
        }
        if self.encryption == Encryption::Required {
            let error = Error::unauthorized(
                "this machine requires encryption: send \"secure\" first, or use `hearth chat` or \
                 the web page",
            );
            self.say(envelope::failure(id.as_ref(), &error));
            return self.end(MUST_ENCRYPT);
        }
        self.privacy = Privacy::Plain;
        self.client_handler.receive(text);
    }

    /// Sends a text in plain, from before the handshake.
    fn say(&self, text: String) {
        self.outbox.push(Item::Direct(Direct::Text(text), None));
    }

    fn end(&mut self, close: Close) {
        self.ended = Some(close);
        self.outbox.close(close);
    }

    /// Puts what the outbox held into frames of `client`, each with at most `most` bytes of
    /// payload.
    ///
    /// # Errors
    /// How to close a client whose text is too large.
    pub fn arrange_frames(
        &mut self,
        item: Item,
        client: ClientNumber,
        most: usize,
        send: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), Close> {
        let framed = |text: &str| Frame::new(client, FrameKind::Text(text)).encode();
        if let Item::Direct(Direct::Text(text), _) = item {
            send(framed(&text));
            return Ok(());
        }
        let mut arranged = Ok(());
        let privacy = &mut self.privacy;
        self.client_handler
            .arrange(item, &mut |text| match privacy {
                _ if arranged.is_err() => {}
                Privacy::Secured(secured) => {
                    let header = Frame::binary_header(client);
                    let sealed = secured.seal_behind(&header, text, send);
                    arranged = sealed.map_err(|_| ANSWER_TOO_LARGE);
                }
                _ if text.len() > most - HEADER_BYTES => arranged = Err(ANSWER_TOO_LARGE),
                _ => send(framed(text)),
            });
        arranged
    }
}

impl ClientHandler for PrivateSession {
    fn receive(&mut self, text: &str) {
        let most = self.client_handler.message_bytes();
        match self.privacy {
            _ if self.ended.is_some() => {}
            Privacy::Secured(_) => self.end(PLAIN_TEXT),
            _ if text.len() > most => {
                self.client_handler.refuse(Error::too_large(format!(
                    "a message may have at most {most} bytes"
                )));
                self.end(TOO_LARGE);
            }
            Privacy::Plain => self.client_handler.receive(text),
            Privacy::Undecided => self.begin(text),
        }
    }

    fn receive_binary(&mut self, bytes: &[u8]) {
        let most = self.client_handler.message_bytes();
        match &mut self.privacy {
            _ if self.ended.is_some() => {}
            Privacy::Secured(secured)
                if secured.joined_bytes() + bytes.len() > most + ADDED_BYTES =>
            {
                self.end(TOO_LARGE);
            }
            Privacy::Secured(secured) => match secured.open(bytes) {
                Ok(Some(text)) => self.client_handler.receive(&text),
                Ok(None) => {}
                Err(_) => self.end(DOES_NOT_OPEN),
            },
            _ => self.client_handler.refuse(Error::invalid_request(
                "binary messages are accepted only after \"secure\"; send JSON as text",
            )),
        }
    }

    fn has_room(&self) -> bool {
        self.client_handler.has_room()
    }

    fn refuse(&mut self, error: Error) {
        self.client_handler.refuse(error);
    }

    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        self.client_handler.arrange(item, send);
    }

    fn arrange_messages(&mut self, item: Item, send: &mut dyn FnMut(Message)) {
        let Privacy::Secured(secured) = &mut self.privacy else {
            return self.client_handler.arrange_messages(item, send);
        };
        let mut sealed = Ok(());
        self.client_handler.arrange(item, &mut |text| {
            if sealed.is_ok() {
                sealed = secured.seal(text, &mut |message| send(Message::binary(message)));
            }
        });
        if sealed.is_err() {
            self.end(ANSWER_TOO_LARGE);
        }
    }

    fn is_authenticated(&self) -> bool {
        self.client_handler.is_authenticated()
    }

    fn is_idle(&self) -> bool {
        self.client_handler.is_idle()
    }

    fn message_bytes(&self) -> usize {
        self.client_handler.message_bytes() + ADDED_BYTES
    }

    fn time_out(&mut self) -> Close {
        let close = self.client_handler.time_out();
        self.ended = Some(close);
        close
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
    use net::outbox::Ticket;

    const MOST: usize = 4096;
    const CLIENT: ClientNumber = ClientNumber(7);

    /// Answers every message with its own text.
    struct Echo(Arc<Outbox>);

    impl ClientHandler for Echo {
        fn receive(&mut self, text: &str) {
            let (ticket, text) = (Ticket(0), text.to_owned());
            self.0.push(Item::Response { ticket, text });
        }

        fn refuse(&mut self, error: Error) {
            self.receive(error.message());
        }

        fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
            if let Item::Response { text, .. } = item {
                send(&text);
            }
        }

        fn is_authenticated(&self) -> bool {
            true
        }

        fn is_idle(&self) -> bool {
            true
        }

        fn message_bytes(&self) -> usize {
            MOST
        }

        fn time_out(&mut self) -> Close {
            Close::UNAUTHENTICATED
        }
    }

    fn session(key: &PrivateKey, encryption: Encryption) -> PrivateSession {
        let outbox = Arc::new(Outbox::new(1 << 20, || ()));
        let echo = Box::new(Echo(Arc::clone(&outbox)));
        PrivateSession::new(echo, outbox, key.clone(), encryption)
    }

    /// The frames for the client, and how it is closed.
    fn sent(session: &mut PrivateSession) -> (Vec<Vec<u8>>, Option<Close>) {
        let taken = session.outbox.take();
        let mut frames = Vec::new();
        for item in taken.items {
            let mut send = |frame| frames.push(frame);
            if let Err(close) = session.arrange_frames(item, CLIENT, MOST, &mut send) {
                return (frames, Some(close));
            }
        }
        (frames, session.ended.or(taken.close))
    }

    /// The one text that is sent in plain.
    fn plain(session: &mut PrivateSession) -> (String, Option<Close>) {
        let (frames, close) = sent(session);
        let [frame] = &frames[..] else {
            panic!("{} frames", frames.len());
        };
        match Frame::decode(frame).unwrap().kind {
            FrameKind::Text(text) => (text.to_owned(), close),
            kind => panic!("{kind:?}"),
        }
    }

    fn hello(key: &PrivateKey) -> (Initiator, String) {
        let (initiator, first) = Initiator::begin(Purpose::Client, &key.public_key()).unwrap();
        let text = json!({"type": "secure", "id": 1, "noise": STANDARD.encode(first)});
        (initiator, text.to_string())
    }

    /// A client and its machine after their handshake.
    fn agreed() -> (Secured, PrivateSession) {
        let key = PrivateKey::generate();
        let mut session = session(&key, Encryption::Required);
        let (initiator, first) = hello(&key);
        session.receive(&first);
        let answer: Value = serde_json::from_str(&plain(&mut session).0).unwrap();
        assert_eq!(
            (&answer["status"], &answer["id"]),
            (&json!("ok"), &json!(1))
        );
        let noise = STANDARD
            .decode(answer["data"]["noise"].as_str().unwrap())
            .unwrap();
        (initiator.finish(&noise).unwrap(), session)
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
        let (mut client, mut session) = agreed();
        let message = sealed(&mut client, "secret");
        session.receive_binary(&message);
        let (frames, close) = sent(&mut session);
        assert_eq!((frames.len(), close), (1, None));
        assert!(!String::from_utf8_lossy(&frames[0]).contains("secret"));
        let FrameKind::Binary(answer) = Frame::decode(&frames[0]).unwrap().kind else {
            panic!("{frames:?}");
        };
        assert_eq!(client.open(answer).unwrap().as_deref(), Some("secret"));

        // A replay, and what follows one.
        session.receive_binary(&message);
        session.receive_binary(&sealed(&mut client, "late"));
        assert_eq!(sent(&mut session), (Vec::new(), Some(DOES_NOT_OPEN)));

        let (_, mut session) = agreed();
        session.receive("{}");
        assert_eq!(sent(&mut session), (Vec::new(), Some(PLAIN_TEXT)));
    }

    #[test]
    fn pieces_cannot_add_up_to_more_than_the_limit() {
        let (mut client, mut session) = agreed();
        session.receive_binary(&sealed(&mut client, &"x".repeat(MOST)));
        assert_eq!(sent(&mut session).0.len(), 1);
        session.receive_binary(&sealed(&mut client, &"x".repeat(MOST + 1)));
        assert_eq!(sent(&mut session), (Vec::new(), Some(TOO_LARGE)));
    }

    #[test]
    fn a_plain_client_is_accepted_only_where_that_is_allowed() {
        let key = PrivateKey::generate();
        let text = r#"{"type":"auth","id":"a","token":"t"}"#;
        let mut open = session(&key, Encryption::Optional);
        open.receive(text);
        assert_eq!(plain(&mut open), (text.to_owned(), None));
        open.receive_binary(b"x");
        assert!(plain(&mut open).0.contains("only after \"secure\""));
        open.receive(&"x".repeat(MOST));
        assert_eq!(sent(&mut open), (Vec::new(), Some(ANSWER_TOO_LARGE)));

        let mut closed = session(&key, Encryption::Required);
        closed.receive(text);
        let (envelope, close) = plain(&mut closed);
        assert_eq!(close, Some(MUST_ENCRYPT));
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
            let mut session = session(&key, Encryption::Optional);
            session.receive(&text);
            let (answer, close) = plain(&mut session);
            assert_eq!(close, Some(NOT_AGREED), "{text}");
            assert!(answer.contains("invalid_request"), "{text}: {answer}");
        }
        let mut session = session(&key, Encryption::Optional);
        session.receive(&"x".repeat(MOST + 1));
        let (answer, close) = plain(&mut session);
        assert!(answer.contains("at most 4096 bytes"), "{answer}");
        assert_eq!(close, Some(TOO_LARGE));
    }
}
