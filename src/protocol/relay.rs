//! What a relay and its machines send each other (protocol section 6).
//!
//! A link begins with texts, by which the machine proves that it holds its key:
//!
//! ```text
//! machine                                     relay
//!   {"type":"machine","public_key":..}  ---->   is the key that of the machine_id?
//!                                       <----   {"type":"prove","noise":..}
//!   {"type":"proof","noise":..}         ---->   only the holder of the key can answer that
//!                                       <----   {"type":"linked",..}
//! ```
//!
//! From then on every message is binary and holds one [`Frame`]: many clients
//! share one link. A link that is refused ends with the error envelope.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Bytes before a frame's payload: its kind and its client's number.
pub const HEADER_BYTES: usize = 5;

/// The messages with which a link begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "Members")]
pub enum Greeting {
    /// The machine's first message: which key it claims to hold.
    Machine {
        /// Base64 of its 32 bytes.
        public_key: String,
        /// Whether it will say which clients sign in, if the relay wants to know.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reports_sign_ins: bool,
    },
    /// The relay's challenge.
    Prove {
        /// Base64 of the first message of the Noise handshake.
        noise: String,
    },
    /// The machine's proof.
    Proof {
        /// Base64 of the second message of the Noise handshake.
        noise: String,
    },
    /// The link is established.
    Linked {
        /// Most clients that the relay admits at once.
        clients: usize,
        /// Most bytes of a client's message, and of an answer to it.
        message_bytes: usize,
        /// Seconds between the relay's pings.
        ping_seconds: u64,
        /// Whether the relay wants to know which clients sign in.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        wants_sign_ins: bool,
    },
}

/// The members of any [`Greeting`]: reading one variant after the other would
/// be several times the code. Earlier versions do not know those with a default.
#[derive(Deserialize)]
struct Members {
    r#type: String,
    public_key: Option<String>,
    noise: Option<String>,
    clients: Option<usize>,
    message_bytes: Option<usize>,
    ping_seconds: Option<u64>,
    #[serde(default)]
    reports_sign_ins: bool,
    #[serde(default)]
    wants_sign_ins: bool,
}

impl TryFrom<Members> for Greeting {
    type Error = &'static str;

    fn try_from(members: Members) -> Result<Greeting, &'static str> {
        let linked = || {
            Some(Greeting::Linked {
                clients: members.clients?,
                message_bytes: members.message_bytes?,
                ping_seconds: members.ping_seconds?,
                wants_sign_ins: members.wants_sign_ins,
            })
        };
        let greeting = match members.r#type.as_str() {
            "machine" => members.public_key.map(|public_key| Greeting::Machine {
                public_key,
                reports_sign_ins: members.reports_sign_ins,
            }),
            "prove" => members.noise.map(|noise| Greeting::Prove { noise }),
            "proof" => members.noise.map(|noise| Greeting::Proof { noise }),
            "linked" => linked(),
            _ => return Err("its type is unknown"),
        };
        greeting.ok_or("a member of its type is missing")
    }
}

/// A client's number on one link, never reused while the link lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNumber(pub u32);

impl fmt::Display for ClientNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One message on a link: what one client sends or receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Which client.
    pub client: ClientNumber,
    /// What happens.
    pub kind: FrameKind<'a>,
}

/// What a frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameKind<'a> {
    /// A client has connected (relay to machine only).
    Open(Client),
    /// A text message, unchanged.
    Text(&'a str),
    /// A binary message, unchanged.
    Binary(&'a [u8]),
    /// The client is gone, or is to be disconnected; nothing more follows for
    /// this number.
    Close {
        /// A WebSocket close code (RFC 6455 section 7.4).
        code: u16,
        /// At most 123 bytes.
        reason: &'a str,
    },
    /// The client has signed in (machine to relay, and only if both have said so in
    /// their greetings): the relay counts it as a stranger until then.
    SignedIn,
}

/// Who a client is, as the relay sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Where it connects from.
    pub address: IpAddr,
    /// Whether its connection to the relay is encrypted.
    pub secure: bool,
}

const OPEN: u8 = 1;
const TEXT: u8 = 2;
const BINARY: u8 = 3;
const CLOSE: u8 = 4;
const SIGNED_IN: u8 = 5;

const SHORT: &str = "a frame is too short";

impl<'a> Frame<'a> {
    /// A frame of `client`.
    pub fn new(client: ClientNumber, kind: FrameKind<'a>) -> Frame<'a> {
        Frame { client, kind }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let known;
        let code_bytes;
        let (kind, parts): (u8, [&[u8]; 2]) = match &self.kind {
            FrameKind::Open(client) => {
                known = serde_json::to_vec(client).expect("an address and a bool are JSON");
                (OPEN, [&known, &[]])
            }
            FrameKind::Text(text) => (TEXT, [text.as_bytes(), &[]]),
            FrameKind::Binary(bytes) => (BINARY, [bytes, &[]]),
            FrameKind::Close { code, reason } => {
                code_bytes = code.to_be_bytes();
                (CLOSE, [&code_bytes, reason.as_bytes()])
            }
            FrameKind::SignedIn => (SIGNED_IN, [&[], &[]]),
        };
        [&header(kind, self.client), parts[0], parts[1]].concat()
    }

    /// What stands before the payload of a [`FrameKind::Binary`].
    pub fn binary_header(client: ClientNumber) -> [u8; HEADER_BYTES] {
        header(BINARY, client)
    }

    /// The client whose [`FrameKind::Close`] these bytes are.
    pub fn closed_client(bytes: &[u8]) -> Option<ClientNumber> {
        match *bytes.first_chunk::<HEADER_BYTES>()? {
            [CLOSE, client @ ..] => Some(ClientNumber(u32::from_be_bytes(client))),
            _ => None,
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Why the message is not a frame. The link cannot go on after one: its two ends would no
    /// longer agree on who is connected.
    pub fn decode(bytes: &'a [u8]) -> Result<Frame<'a>, &'static str> {
        let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(SHORT)?;
        let [kind, client @ ..] = *header;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| "a frame's text is not UTF-8");
        let kind = match kind {
            OPEN => {
                let client = serde_json::from_slice(payload);
                FrameKind::Open(client.map_err(|_| "a frame does not say who its client is")?)
            }
            TEXT => FrameKind::Text(text(payload)?),
            BINARY => FrameKind::Binary(payload),
            CLOSE => {
                let (code, reason) = payload.split_first_chunk().ok_or(SHORT)?;
                FrameKind::Close {
                    code: u16::from_be_bytes(*code),
                    reason: text(reason)?,
                }
            }
            SIGNED_IN => FrameKind::SignedIn,
            _ => return Err("no frame has this kind"),
        };
        Ok(Frame::new(ClientNumber(u32::from_be_bytes(client)), kind))
    }
}

fn header(kind: u8, ClientNumber(client): ClientNumber) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = client.to_be_bytes();
    [kind, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_frame_comes_back_as_it_was() {
        for kind in [
            FrameKind::Open(Client {
                address: "2001:db8::7".parse().unwrap(),
                secure: true,
            }),
            FrameKind::Text("{\"type\":\"ping\"}"),
            FrameKind::Text(""),
            FrameKind::Binary(&[0, 255, 1]),
            FrameKind::Close {
                code: 1013,
                reason: "too slow: outbox full",
            },
            FrameKind::SignedIn,
        ] {
            let frame = Frame::new(ClientNumber(0xdead_beef), kind);
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame.clone()));
        }
    }

    #[test]
    fn malformed_frames_are_errors() {
        for (bytes, error) in [
            (&b""[..], SHORT),
            (b"\x02\0\0\0", SHORT),
            (b"\x04\0\0\0\x01\x03", SHORT),
            (b"\x09\0\0\0\x01", "no frame has this kind"),
            (b"\x02\0\0\0\x01\xff", "a frame's text is not UTF-8"),
            (b"\x04\0\0\0\x01\x03\xf5\xff", "a frame's text is not UTF-8"),
            (
                b"\x01\0\0\0\x01{}",
                "a frame does not say who its client is",
            ),
        ] {
            assert_eq!(Frame::decode(bytes), Err(error), "{bytes:x?}");
        }
    }

    #[test]
    fn greetings_are_what_the_protocol_says() {
        let linked = |wants_sign_ins| Greeting::Linked {
            clients: 64,
            message_bytes: 1 << 20,
            ping_seconds: 25,
            wants_sign_ins,
        };
        let machine = |reports_sign_ins| Greeting::Machine {
            public_key: "a2V5".to_owned(),
            reports_sign_ins,
        };
        for (greeting, text) in [
            (
                linked(false),
                r#"{"type":"linked","clients":64,"message_bytes":1048576,"ping_seconds":25}"#,
            ),
            (
                linked(true),
                r#"{"type":"linked","clients":64,"message_bytes":1048576,"ping_seconds":25,"wants_sign_ins":true}"#,
            ),
            (machine(false), r#"{"type":"machine","public_key":"a2V5"}"#),
            (
                machine(true),
                r#"{"type":"machine","public_key":"a2V5","reports_sign_ins":true}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&greeting).unwrap(), text);
            assert_eq!(serde_json::from_str::<Greeting>(text).unwrap(), greeting);
        }
        assert!(serde_json::from_str::<Greeting>(r#"{"type":"machine"}"#).is_err());
    }
}
