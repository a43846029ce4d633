//! A relay in a process of its own, and the two ends of what it carries: raw
//! sockets, whose frames are so small and regular that counting bytes is enough.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use protocol::relay::{ClientNumber, Frame, FrameKind};
use support::home::TemporaryDirectory;
use support::process;
use support::program::Program;
use support::relay_peers::{Line, Machine, TOKEN};

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
    program: Program,
    /// Where its log is.
    _folder: TemporaryDirectory,
}

impl Relay {
    pub fn start() -> Relay {
        let folder = TemporaryDirectory::new();
        let program = Program::start_in(
            folder.path(),
            &[
                "relay",
                "--bind",
                "127.0.0.1",
                "--port",
                "0",
                "--messages-per-second",
                UNLIMITED,
                "--connections-per-address",
                UNLIMITED,
            ],
            &[("AUTH_TOKEN", TOKEN), ("HEARTH_LOG", "warn")],
        );
        Relay {
            program,
            _folder: folder,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.program.address
    }

    pub fn resident_kib(&self) -> f64 {
        process::status(self.program.id(), "VmRSS").expect("the relay runs") as f64
    }

    /// A linked machine with one client, which have met: each is blocking.
    pub fn pair(&self) -> Pair {
        let mut machine = Machine::link(self.address());
        let mut client = Line::client(self.address(), &machine.id);
        client.send("hello");
        let number = ClientNumber(machine.meet("hello"));
        Pair {
            client: client.0.get_ref().try_clone().unwrap(),
            machine: machine.line.0.get_ref().try_clone().unwrap(),
            number,
        }
    }
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
