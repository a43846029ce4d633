//! The relay's half of a link, by hand: the test is the relay, and may lie. And
//! a small relay that forwards, for what only a whole program shows.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::public_key::PublicKey;
use protocol::relay::{Client, ClientNumber, Frame, FrameKind, Greeting};
use relay::noise::{Initiator, PrivateKey, Purpose, Secured};
use serde_json::{Value, json};
use tungstenite::handshake::server::{Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

use super::MAX_WAIT;
use super::socket::{Socket, uninterrupted};

/// The AUTH_TOKEN of the test relays.
pub const TOKEN: &str = "relay-token-0123456789-0123456789";
/// Most bytes of a message that they carry.
pub const MESSAGE_BYTES: usize = 1 << 20;

/// A relay's listening socket.
pub struct Relay {
    listener: TcpListener,
}

/// What a frame from the machine holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Text(String),
    Binary(Vec<u8>),
    Close(u16, String),
}

impl Relay {
    pub fn new() -> Relay {
        Relay::on(0)
    }

    pub fn on(port: u16) -> Relay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Relay { listener }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// A channel of a configuration that leads here.
    pub fn channel(&self) -> Value {
        json!({
            "name": "far", "type": "websocket", "auth_token": TOKEN,
            "url": format!("ws://{}/ws", self.address()),
        })
    }

    /// A configuration with a tcp channel and this relay.
    pub fn config(&self) -> Value {
        json!({ "channels": [{ "name": "lan", "type": "tcp", "port": 0 }, self.channel()] })
    }

    fn accept(&self) -> TcpStream {
        super::eventually("the machine dials", || self.listener.accept().ok()).0
    }

    /// The machine's next connection, upgraded, before any greeting.
    pub fn accept_machine(&self) -> (WebSocket<Socket>, Request) {
        let stream = ready(self.accept());
        let mut seen = None;
        #[allow(clippy::result_large_err)]
        let keep = |request: &Request, response: Response| {
            seen = Some(request.clone());
            Ok(response)
        };
        let socket = tungstenite::accept_hdr(stream, keep).unwrap();
        (socket, seen.unwrap())
    }

    /// The machine's next link, greeted.
    pub fn link(&self) -> Link {
        self.link_for(64)
    }

    /// The same, granting so many clients.
    pub fn link_for(&self, clients: usize) -> Link {
        let (mut socket, request) = self.accept_machine();
        let key = greet(&mut socket, clients);
        Link {
            socket,
            request,
            key,
            kept: HashMap::new(),
            seen: Vec::new(),
        }
    }
}

fn ready(stream: TcpStream) -> Socket {
    stream.set_nonblocking(false).unwrap();
    Socket::new(stream)
}

/// Has the machine prove its key.
pub fn greet(socket: &mut WebSocket<Socket>, clients: usize) -> PublicKey {
    let hear = |socket: &mut WebSocket<Socket>| -> Greeting {
        serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap()
    };
    let say = |socket: &mut WebSocket<Socket>, greeting: &Greeting| {
        let text = serde_json::to_string(greeting).unwrap();
        socket.send(Message::text(text)).unwrap();
    };
    let Greeting::Machine { public_key, .. } = hear(socket) else {
        panic!("no key");
    };
    let key = PublicKey::parse("public_key", &public_key).unwrap();
    let (initiator, first) = Initiator::begin(Purpose::Link, &key).unwrap();
    let noise = STANDARD.encode(first);
    say(socket, &Greeting::Prove { noise });
    let Greeting::Proof { noise } = hear(socket) else {
        panic!("no proof");
    };
    initiator.finish(&STANDARD.decode(noise).unwrap()).unwrap();
    let linked = Greeting::Linked {
        clients,
        message_bytes: MESSAGE_BYTES,
        ping_seconds: 25,
        wants_sign_ins: false,
    };
    say(socket, &linked);
    key
}

/// A link that stands, from the relay's side.
pub struct Link {
    pub socket: WebSocket<Socket>,
    /// The machine's upgrade request.
    pub request: Request,
    /// The key that it proved.
    pub key: PublicKey,
    /// Frames of clients that nobody has looked at.
    kept: HashMap<u32, VecDeque<Heard>>,
    /// Every byte of every frame, in both directions.
    pub seen: Vec<u8>,
}

impl Link {
    /// Sends the bytes of a frame, whatever they are.
    pub fn raw(&mut self, bytes: Vec<u8>) {
        self.seen.extend_from_slice(&bytes);
        self.socket.send(Message::binary(bytes)).unwrap();
    }

    pub fn open(&mut self, number: u32, address: &str) {
        let client = Client {
            address: address.parse().unwrap(),
            secure: true,
        };
        self.raw(Frame::new(ClientNumber(number), FrameKind::Open(client)).encode());
    }

    pub fn text(&mut self, number: u32, text: &str) {
        self.raw(Frame::new(ClientNumber(number), FrameKind::Text(text)).encode());
    }

    pub fn binary(&mut self, number: u32, bytes: &[u8]) {
        self.raw(Frame::new(ClientNumber(number), FrameKind::Binary(bytes)).encode());
    }

    /// What the machine sends next for this client.
    pub fn next(&mut self, number: u32) -> Heard {
        // The machine's pings alone would keep it waiting for ever.
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            assert!(Instant::now() < deadline, "nothing came for {number}");
            if let Some(heard) = self.kept.get_mut(&number).and_then(VecDeque::pop_front) {
                return heard;
            }
            let Message::Binary(bytes) = self.socket.read().unwrap() else {
                continue;
            };
            self.seen.extend_from_slice(&bytes);
            let frame = Frame::decode(&bytes).unwrap();
            let heard = match frame.kind {
                FrameKind::Text(text) => Heard::Text(text.to_owned()),
                FrameKind::Binary(bytes) => Heard::Binary(bytes.to_owned()),
                FrameKind::Close { code, reason } => Heard::Close(code, reason.to_owned()),
                FrameKind::Open(_) => panic!("a machine opens nothing"),
                FrameKind::SignedIn => panic!("this relay does not want to know"),
            };
            self.kept
                .entry(frame.client.0)
                .or_default()
                .push_back(heard);
        }
    }

    /// The next message of a plain client.
    pub fn receive(&mut self, number: u32) -> Value {
        match self.next(number) {
            Heard::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("no text: {other:?}"),
        }
    }

    /// The next response, past any events.
    pub fn response(&mut self, number: u32) -> Value {
        loop {
            let message = self.receive(number);
            if message.get("status").is_some() {
                return message;
            }
        }
    }

    /// A plain client's request and the data of its response.
    pub fn ask(&mut self, number: u32, request: Value) -> Value {
        self.text(number, &request.to_string());
        let response = self.response(number);
        assert_eq!(response["status"], "ok", "{request}: {response}");
        response["data"].clone()
    }

    /// A plain client that has signed in.
    pub fn sign_in(&mut self, number: u32, token: &str) {
        self.open(number, "203.0.113.7");
        self.ask(number, json!({ "type": "auth", "token": token }));
    }

    /// How a client ended, past everything else.
    pub fn closed(&mut self, number: u32) -> (u16, String) {
        loop {
            if let Heard::Close(code, reason) = self.next(number) {
                return (code, reason);
            }
        }
    }

    /// Waits for the machine to end the link.
    pub fn ended(&mut self) {
        while self.socket.read().is_ok() {}
    }

    /// Closes the link with a code.
    pub fn close(mut self, code: u16) {
        let frame = CloseFrame {
            code: code.into(),
            reason: "".into(),
        };
        self.socket.close(Some(frame)).unwrap();
        self.ended();
    }
}

/// A client that the relay cannot read.
pub struct Hidden {
    pub number: u32,
    pub secured: Secured,
}

impl Hidden {
    /// Opens a client and agrees on keys.
    pub fn open(link: &mut Link, number: u32) -> Hidden {
        link.open(number, "203.0.113.8");
        let (initiator, first) = Initiator::begin(Purpose::Client, &link.key).unwrap();
        let request = json!({ "type": "secure", "id": "s", "noise": STANDARD.encode(first) });
        let data = link.ask(number, request);
        let noise = STANDARD.decode(data["noise"].as_str().unwrap()).unwrap();
        Hidden {
            number,
            secured: initiator.finish(&noise).unwrap(),
        }
    }

    /// The messages of a text.
    pub fn seal(&mut self, value: &Value) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        self.secured
            .seal(&value.to_string(), &mut |message| messages.push(message))
            .unwrap();
        messages
    }

    pub fn send(&mut self, link: &mut Link, value: &Value) {
        for message in self.seal(value) {
            link.binary(self.number, &message);
        }
    }

    pub fn receive(&mut self, link: &mut Link) -> Value {
        loop {
            let Heard::Binary(message) = link.next(self.number) else {
                panic!("not encrypted");
            };
            if let Some(text) = self.secured.open(&message).unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    pub fn event(&mut self, link: &mut Link, name: &str) -> Value {
        loop {
            let message = self.receive(link);
            if message["event"] == name {
                return message;
            }
        }
    }

    pub fn ask(&mut self, link: &mut Link, request: Value) -> Value {
        self.send(link, &request);
        loop {
            let response = self.receive(link);
            if response.get("status").is_some() {
                assert_eq!(response["status"], "ok", "{request}: {response}");
                return response["data"].clone();
            }
        }
    }
}

/// A relay that forwards, for one machine; ends when it is dropped.
pub struct Forwarder {
    pub address: SocketAddr,
    /// Makes it give clients another machine's key.
    pub lies: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<u8>>>,
}

impl Forwarder {
    pub fn start() -> Forwarder {
        let relay = Relay::new();
        let address = relay.address();
        let (stop, lies) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (stopped, lying) = (Arc::clone(&stop), Arc::clone(&lies));
        let thread = thread::spawn(move || forward(&relay, &stopped, &lying));
        Forwarder {
            address,
            lies,
            stop,
            thread: Some(thread),
        }
    }

    /// Ends it and returns everything that it saw.
    pub fn seen(mut self) -> Vec<u8> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward(relay: &Relay, stop: &AtomicBool, lies: &AtomicBool) -> Vec<u8> {
    let mut machine: Option<(WebSocket<Socket>, PublicKey)> = None;
    let mut clients: HashMap<u32, WebSocket<Socket>> = HashMap::new();
    let (mut last, mut seen) = (0, Vec::new());
    while !stop.load(Ordering::SeqCst) {
        if let Ok((stream, from)) = relay.listener.accept() {
            let stream = ready(stream);
            let mut first = [0; 4];
            uninterrupted(MAX_WAIT, || stream.peek(&mut first)).unwrap();
            if &first == b"POST" {
                register(stream);
                continue;
            }
            let mut is_machine = false;
            #[allow(clippy::result_large_err)]
            let look = |request: &Request, response: Response| {
                let token = &request.headers()["authorization"];
                assert_eq!(token.to_str().unwrap(), format!("Bearer {TOKEN}"));
                is_machine = request.uri().query().unwrap().contains("role=machine");
                Ok(response)
            };
            let mut socket = tungstenite::accept_hdr(stream, look).unwrap();
            if is_machine {
                let key = greet(&mut socket, 64);
                socket.get_ref().set_nonblocking(true).unwrap();
                machine = Some((socket, key));
            } else if let Some((link, _)) = &mut machine {
                last += 1;
                let client = Client {
                    address: from.ip(),
                    secure: false,
                };
                let frame = Frame::new(ClientNumber(last), FrameKind::Open(client)).encode();
                link.send(Message::binary(frame)).unwrap();
                socket.get_ref().set_nonblocking(true).unwrap();
                clients.insert(last, socket);
            }
        }
        let Some((link, key)) = &mut machine else {
            thread::park_timeout(Duration::from_millis(1));
            continue;
        };
        let mut gone = Vec::new();
        for (number, client) in &mut clients {
            let kind = match client.read() {
                Ok(Message::Text(text)) if text.contains("machine_key") => {
                    let key = match lies.load(Ordering::SeqCst) {
                        true => PrivateKey::generate().public_key(),
                        false => *key,
                    };
                    let answer =
                        json!({ "status": "ok", "data": { "public_key": key.to_base64() } });
                    client.send(Message::text(answer.to_string())).unwrap();
                    continue;
                }
                Ok(message) => message,
                Err(tungstenite::Error::Io(error))
                    if error.kind() == std::io::ErrorKind::WouldBlock =>
                {
                    continue;
                }
                Err(_) => {
                    gone.push(*number);
                    continue;
                }
            };
            let kind = match &kind {
                Message::Text(text) => FrameKind::Text(text),
                Message::Binary(bytes) => FrameKind::Binary(bytes),
                _ => continue,
            };
            let frame = Frame::new(ClientNumber(*number), kind).encode();
            seen.extend_from_slice(&frame);
            link.send(Message::binary(frame)).unwrap();
        }
        for number in gone {
            clients.remove(&number);
            let kind = FrameKind::Close {
                code: 1000,
                reason: "",
            };
            let frame = Frame::new(ClientNumber(number), kind).encode();
            let _ = link.send(Message::binary(frame));
        }
        match link.read() {
            Ok(Message::Binary(bytes)) => {
                seen.extend_from_slice(&bytes);
                let frame = Frame::decode(&bytes).unwrap();
                let Some(client) = clients.get_mut(&frame.client.0) else {
                    continue;
                };
                let _ = match frame.kind {
                    FrameKind::Text(text) => client.send(Message::text(text)),
                    FrameKind::Binary(bytes) => client.send(Message::binary(bytes.to_owned())),
                    _ => client.close(None),
                };
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock =>
            {
                thread::park_timeout(Duration::from_millis(1));
            }
            Err(_) => machine = None,
        }
    }
    seen
}

/// Answers POST /ws/register with 404 and POST /register as a relay does.
fn register(mut stream: Socket) {
    let mut request = Vec::new();
    let deadline = Instant::now() + MAX_WAIT;
    let (head, body) = loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).unwrap();
        request.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && body.ends_with('}')
        {
            break (head.to_owned(), body.to_owned());
        }
        assert!(count > 0 && Instant::now() < deadline, "{text}");
    };
    let id = serde_json::from_str::<Value>(&body).unwrap()["machine_id"].clone();
    let (status, answer) = if !head.contains(&format!("Bearer {TOKEN}")) {
        (
            "401 Unauthorized",
            json!({ "status": "error", "error": "wrong token" }),
        )
    } else if head.starts_with("POST /register ") {
        let data = json!({ "machine_id": id, "relay_url": "ws://elsewhere/ws" });
        ("200 OK", json!({ "status": "ok", "data": data }))
    } else {
        (
            "404 Not Found",
            json!({ "status": "error", "error": "no such path" }),
        )
    };
    let answer = answer.to_string();
    let length = answer.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
    );
    stream.write_all(text.as_bytes()).unwrap();
}
