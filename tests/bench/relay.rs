//! A relay in a process of its own, and the two ends of what it carries: raw
//! sockets, whose frames are so small and regular that counting bytes is enough.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::ids::MachineId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::relay::{ClientNumber, Frame, FrameKind, Greeting};
use relay::noise::{PrivateKey, Purpose, respond};
use tungstenite::{ClientRequestBuilder, Message, WebSocket};

use crate::home::BINARY;
use crate::http::{Http, PATIENCE};
use crate::process;

/// Admits everybody here to the relay.
pub const TOKEN: &str = "a-token-of-more-than-32-characters";
/// So high that it never limits.
const UNLIMITED: &str = "1000000";
/// A WebSocket frame's first byte: final, text or binary.
const TEXT: u8 = 0x81;
const BINARY_FRAME: u8 = 0x82;
/// Bytes before a small frame's payload, from a server and from a client.
const SERVER_HEAD: usize = 2;
const LINK_HEAD: usize = 5;

/// The running relay; ended when dropped.
pub struct Relay {
    child: Child,
    address: SocketAddr,
}

impl Relay {
    pub fn start() -> Relay {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = Command::new(BINARY)
            .args(["relay", "--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--messages-per-second", UNLIMITED])
            .args(["--connections-per-address", UNLIMITED])
            .env("AUTH_TOKEN", TOKEN)
            .env("HEARTH_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{BINARY}: {error}"));
        let relay = Relay {
            child,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        let began = Instant::now();
        while !Http::is_healthy(relay.address) {
            assert!(began.elapsed() < PATIENCE, "the relay did not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        relay
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn resident_kib(&self) -> f64 {
        process::status_kib(self.child.id(), "VmRSS").expect("the relay runs")
    }

    /// A linked machine with one client, which have met: each is blocking.
    pub fn pair(&self) -> Pair {
        let key = PrivateKey::generate();
        let id = key.public_key().machine_id();
        let mut machine = self.dial(&id, "&role=machine");
        let public_key = key.public_key().to_base64();
        say(&mut machine, &Greeting::Machine { public_key });
        let Greeting::Prove { noise } = serde_json::from_str(&text(&mut machine)).unwrap() else {
            panic!("no challenge");
        };
        let first = STANDARD.decode(noise).unwrap();
        let (answer, _) = respond(Purpose::Link, &key, &first).unwrap();
        let noise = STANDARD.encode(answer);
        say(&mut machine, &Greeting::Proof { noise });
        assert!(text(&mut machine).contains("linked"));

        let mut client = self.dial(&id, "");
        client.send(Message::text("hello")).unwrap();
        let open = machine.read().unwrap().into_data();
        let number = Frame::decode(&open).unwrap().client;
        let hello = machine.read().unwrap().into_data();
        assert_eq!(
            Frame::decode(&hello).unwrap().kind,
            FrameKind::Text("hello"),
            "they have met"
        );
        Pair {
            client: client.get_ref().try_clone().unwrap(),
            machine: machine.get_ref().try_clone().unwrap(),
            number,
        }
    }

    /// A WebSocket that names this machine.
    pub fn dial(&self, id: &MachineId, more: &str) -> WebSocket<TcpStream> {
        let url = format!("ws://{}/ws?machine_id={id}{more}", self.address);
        let request = ClientRequestBuilder::new(url.parse().unwrap())
            .with_header("Authorization", format!("Bearer {TOKEN}"));
        tungstenite::client(request, connect(self.address))
            .unwrap()
            .0
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A blocking connection whose every wait ends.
pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

fn say(machine: &mut WebSocket<TcpStream>, greeting: &Greeting) {
    let text = serde_json::to_string(greeting).unwrap();
    machine.send(Message::text(text)).unwrap();
}

fn text(machine: &mut WebSocket<TcpStream>) -> String {
    machine.read().unwrap().into_text().unwrap().to_string()
}

/// A machine's link and its client.
pub struct Pair {
    pub client: TcpStream,
    pub machine: TcpStream,
    number: ClientNumber,
}

/// What one end sends at a time, and what it gets back.
#[derive(Clone)]
pub struct Batch {
    pub out: Vec<u8>,
    /// Bytes that arrive for the other end's batch.
    pub back: usize,
}

impl Batch {
    /// Sends all of it.
    pub fn send(&self, socket: &mut impl Write) {
        socket.write_all(&self.out).unwrap();
    }

    /// Reads all that comes back.
    pub fn receive(&self, socket: &mut impl Read, buffer: &mut Vec<u8>) {
        buffer.resize(self.back, 0);
        socket.read_exact(buffer).unwrap();
    }
}

impl Pair {
    /// Batches of `count` messages of `bytes` each, for the client and for the
    /// machine.
    pub fn batches(&self, count: usize, bytes: usize) -> (Batch, Batch) {
        let message = "x".repeat(bytes);
        let passed = Frame::new(self.number, FrameKind::Text(&message)).encode();
        let client = Batch {
            out: masked(TEXT, message.as_bytes()).repeat(count),
            back: count * (SERVER_HEAD + bytes),
        };
        let machine = Batch {
            out: masked(BINARY_FRAME, &passed).repeat(count),
            back: count * (SERVER_HEAD + LINK_HEAD + bytes),
        };
        (client, machine)
    }
}

/// A small frame as a client sends it, masked with zeros (RFC 6455 section 5.3).
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    assert!(length < 126, "a small frame");
    let mut frame = vec![first, 0x80 | length, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    frame
}
