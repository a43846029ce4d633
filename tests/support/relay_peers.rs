//! A relay in this process, a small machine that links to it, and clients.

use std::net::{SocketAddr, TcpListener};

use base::ids::MachineId;
use base::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::relay::{ClientNumber, Frame, FrameKind, Greeting};
use relay::noise::{PrivateKey, Purpose, respond};
use relay::server::{Options, RelayServer, Token};
use serde_json::{Value, json};
use tungstenite::{ClientRequestBuilder, Message, WebSocket};

use super::socket::{Socket, connect};

pub const TOKEN: &str = "a-token-of-more-than-32-characters";

/// A relay on a port of its own.
pub fn relay(change: impl FnOnce(&mut Options)) -> RelayServer {
    let mut options = Options::new(Token::new(Secret::new(TOKEN)).unwrap());
    change(&mut options);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    RelayServer::start(options, socket).unwrap()
}

/// One WebSocket, of a client or a machine.
pub struct Line(pub WebSocket<Socket>);

/// What arrives on a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    Text(String),
    Binary(Vec<u8>),
    /// A close code and its reason.
    Closed(u16, String),
    /// The end without a close.
    Cut,
}

/// The way to `/ws` with this query.
pub fn request(address: SocketAddr, query: &str) -> ClientRequestBuilder {
    ClientRequestBuilder::new(format!("ws://{address}/ws{query}").parse().unwrap())
}

/// The same with the token in its header.
pub fn with_token(address: SocketAddr, query: &str) -> ClientRequestBuilder {
    request(address, query).with_header("Authorization", format!("Bearer {TOKEN}"))
}

impl Line {
    /// Connects, or says what the HTTP status was instead.
    pub fn open(address: SocketAddr, request: ClientRequestBuilder) -> Result<Line, u16> {
        match tungstenite::client(request, connect(address)) {
            Ok((websocket, _)) => Ok(Line(websocket)),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                let body = response.body().clone().unwrap_or_default();
                let envelope: Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(envelope["status"], "error", "{envelope}");
                Err(response.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A client of this machine with the token in its header.
    pub fn client(address: SocketAddr, machine: &MachineId) -> Line {
        let query = format!("?machine_id={machine}");
        Line::open(address, with_token(address, &query)).unwrap()
    }

    pub fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    pub fn send_binary(&mut self, bytes: &[u8]) {
        self.0.send(Message::binary(bytes.to_vec())).unwrap();
    }

    /// The next message; panics when none comes in time.
    pub fn next(&mut self) -> Arrival {
        loop {
            return match self.0.read() {
                Ok(Message::Text(text)) => Arrival::Text(text.to_string()),
                Ok(Message::Binary(bytes)) => Arrival::Binary(bytes.to_vec()),
                Ok(Message::Close(frame)) => match frame {
                    Some(frame) => Arrival::Closed(frame.code.into(), frame.reason.to_string()),
                    None => Arrival::Cut,
                },
                Ok(_) => continue,
                Err(tungstenite::Error::Io(error))
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    panic!("no message came in time")
                }
                Err(_) => Arrival::Cut,
            };
        }
    }

    /// The next message, which is an error envelope of this code.
    pub fn refused(&mut self, code: &str) -> Value {
        match self.next() {
            Arrival::Text(text) => {
                let envelope: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(envelope["code"], code, "{envelope}");
                envelope
            }
            other => panic!("{other:?}"),
        }
    }

    /// Reads on until the end, and returns its close code.
    pub fn close_code(&mut self) -> u16 {
        loop {
            match self.next() {
                Arrival::Closed(code, _) => return code,
                Arrival::Cut => panic!("cut without a close"),
                _ => {}
            }
        }
    }
}

/// A machine that has linked, and answers what a test tells it to.
pub struct Machine {
    pub id: MachineId,
    pub line: Line,
}

/// What a machine gets of a client.
#[derive(Debug, PartialEq)]
pub enum Got {
    Open(String),
    Text(String),
    Binary(Vec<u8>),
    Close(u16),
}

impl Machine {
    /// Links with a fresh key.
    pub fn link(address: SocketAddr) -> Machine {
        Machine::link_with(address, &PrivateKey::generate())
    }

    /// Links with this key, through the whole greeting, as a machine that does not say
    /// which clients sign in.
    pub fn link_with(address: SocketAddr, key: &PrivateKey) -> Machine {
        Machine::greet(address, key, false)
    }

    /// Links with a fresh key, and promises to say which clients sign in.
    pub fn link_reporting(address: SocketAddr) -> Machine {
        Machine::greet(address, &PrivateKey::generate(), true)
    }

    fn greet(address: SocketAddr, key: &PrivateKey, reports_sign_ins: bool) -> Machine {
        let mut machine = Machine::dial(address, key);
        machine.prove(key, reports_sign_ins);
        match machine.line.next() {
            Arrival::Text(text) if text.contains("linked") => machine,
            other => panic!("not linked: {other:?}"),
        }
    }

    /// Connects, and says no more.
    pub fn dial(address: SocketAddr, key: &PrivateKey) -> Machine {
        let id = key.public_key().machine_id();
        let query = format!("?machine_id={id}&role=machine");
        let line = Line::open(address, with_token(address, &query)).unwrap();
        Machine { id, line }
    }

    pub fn say(&mut self, greeting: &Greeting) {
        self.line.send(&serde_json::to_string(greeting).unwrap());
    }

    /// Names the key and answers the challenge.
    pub fn prove(&mut self, key: &PrivateKey, reports_sign_ins: bool) {
        self.say(&Greeting::Machine {
            public_key: key.public_key().to_base64(),
            reports_sign_ins,
        });
        let Arrival::Text(text) = self.line.next() else {
            panic!("no challenge");
        };
        let Ok(Greeting::Prove { noise }) = serde_json::from_str(&text) else {
            panic!("no challenge: {text}");
        };
        let first = STANDARD.decode(noise).unwrap();
        let (answer, _) = respond(Purpose::Link, key, &first).unwrap();
        self.say(&Greeting::Proof {
            noise: STANDARD.encode(answer),
        });
    }

    pub fn send(&mut self, client: u32, kind: FrameKind<'_>) {
        let frame = Frame::new(ClientNumber(client), kind).encode();
        self.line.send_binary(&frame);
    }

    /// The next frame.
    pub fn next(&mut self) -> (u32, Got) {
        let Arrival::Binary(bytes) = self.line.next() else {
            panic!("the link is over");
        };
        let frame = Frame::decode(&bytes).unwrap();
        let got = match frame.kind {
            FrameKind::Open(client) => Got::Open(client.address.to_string()),
            FrameKind::Text(text) => Got::Text(text.to_owned()),
            FrameKind::Binary(bytes) => Got::Binary(bytes.to_vec()),
            FrameKind::Close { code, .. } => Got::Close(code),
            FrameKind::SignedIn => panic!("a relay signs nobody in"),
        };
        (frame.client.0, got)
    }

    /// The number of the next client, which says `text` first.
    pub fn meet(&mut self, text: &str) -> u32 {
        let (number, got) = self.next();
        assert!(matches!(got, Got::Open(_)), "{got:?}");
        assert_eq!(self.next(), (number, Got::Text(text.to_owned())));
        number
    }
}

/// `{"type":"ping"}`, as a client that knows only the contract would send it.
pub fn ping() -> String {
    json!({"type": "ping"}).to_string()
}
