//! A listener on its own port, with handlers that echo.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client_handler::{ClientHandler, HandlerFactory};
use crate::http::{Admitted, Answer as HttpAnswer, Handler, Head, Request, Response};
use crate::listener::{Listener, Listeners};
use crate::outbox::{Close, Item, Outbox, Ticket};
use base::error::Error;
pub use base::testing::{MAX_WAIT, Socket};
use config::{AddressPatterns, Config, Limits};

/// The defaults of protocol section 7.
pub fn limits() -> Limits {
    Limits::default()
}

pub fn patterns(patterns: &[(&str, u8)]) -> AddressPatterns {
    let patterns: Vec<String> = patterns
        .iter()
        .map(|(address, prefix)| format!("{address}/{prefix}"))
        .collect();
    AddressPatterns::parse(&patterns.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

/// One listener, and what opened it.
pub struct TestServer {
    pub listeners: Listeners,
    pub listener: Option<Listener>,
    pub address: SocketAddr,
    /// The outbox of each client_handler that was opened.
    pub outboxes: Receiver<Arc<Outbox>>,
    /// One message for each request to `/wait`, and one answer to let it continue.
    pub arrivals: Receiver<Sender<()>>,
}

/// How a server differs from the usual.
pub struct ServerOptions {
    pub limits: Limits,
    pub trusted: AddressPatterns,
    pub allow_from: AddressPatterns,
    pub http_only: bool,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            limits: limits(),
            trusted: patterns(&[]),
            allow_from: patterns(&[("127.0.0.0", 8), ("203.0.113.0", 24)]),
            http_only: false,
        }
    }
}

pub fn server(limits: Limits) -> TestServer {
    build(ServerOptions {
        limits,
        ..ServerOptions::default()
    })
}

pub fn build(options: ServerOptions) -> TestServer {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (listeners, outboxes) = listeners(options.limits, options.trusted);
    let (arrive, arrivals) = channel();
    let handler = Arc::new(Echo {
        arrive: Mutex::new(arrive),
    });
    let listener = match options.http_only {
        true => listeners.listen_http(socket, options.allow_from, handler),
        false => listeners.listen(socket, options.allow_from, handler),
    };
    TestServer {
        listeners,
        listener: Some(listener.unwrap()),
        address,
        outboxes,
        arrivals,
    }
}

pub fn listeners(limits: Limits, trusted: AddressPatterns) -> (Listeners, Receiver<Arc<Outbox>>) {
    let config = Arc::new(Config {
        limits,
        trusted_proxies: trusted,
        ..Config::default()
    });
    let (opened, outboxes) = channel();
    let opened = Mutex::new(opened);
    let message_bytes = config.limits.message_bytes;
    let unauthenticated = config.limits.unauthenticated_message_bytes;
    let listeners = Listeners::with(
        move || Arc::clone(&config),
        Some(Arc::new(move |peer, transport, outbox| {
            opened.lock().unwrap().send(Arc::clone(&outbox)).ok();
            Box::new(EchoHandler {
                outbox,
                greeting: format!("hello {peer} {transport}"),
                authenticated: false,
                waiting: false,
                message_bytes,
                unauthenticated,
            })
        })),
    );
    (listeners, outboxes)
}

pub fn echo_handler() -> Arc<dyn Handler> {
    let (arrive, _) = channel();
    Arc::new(Echo {
        arrive: Mutex::new(arrive),
    })
}

impl TestServer {
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Waits until so many connections are open.
    pub fn await_connections(&self, count: usize) {
        await_true(|| self.listeners.connections().total() == count);
    }
}

/// Waits for a state that no event announces.
pub fn await_true(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + MAX_WAIT;
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come about in time");
        std::thread::yield_now();
    }
}

struct Echo {
    arrive: Mutex<Sender<Sender<()>>>,
}

impl Handler for Echo {
    fn admit(&self, head: &Head) -> Result<Admitted<'_>, Response> {
        let body_bytes = match head.path.as_str() {
            "/refused" => return Err(Response::error(&Error::not_found("no such path"))),
            "/small" => 10,
            "/streamed" => return Ok(streamed(Duration::from_secs(1))),
            "/patient" => return Ok(streamed(Duration::from_secs(3600))),
            _ => 1024 * 1024,
        };
        Ok(Admitted::new(body_bytes, |request| {
            match request.head.path.as_str() {
                "/pieces" => in_pieces(request.head.query.as_deref()),
                _ => HttpAnswer::Now(self.answer(request)),
            }
        }))
    }

    fn admit_upgrade(&self, head: &Head) -> Result<Option<HandlerFactory>, Response> {
        match head.header("origin") {
            Some(_) => Err(Response::error(&Error::unauthorized("not from there"))),
            None => Ok(None),
        }
    }
}

/// Takes up to 300,000 bytes in pieces of 4,096 and answers with their number and
/// sum; at the byte `!` it stops reading and answers.
fn streamed<'a>(time: Duration) -> Admitted<'a> {
    Admitted::streamed(300_000, time, |_, body| {
        let (length, mut pieces, mut bytes) = (body.length(), 0, 0);
        while let Some(piece) = body.next_piece(4096)? {
            assert!(piece.capacity() <= 16 * 1024, "a small buffer");
            pieces += 1;
            bytes += piece.len();
            if piece.contains(&b'!') {
                break;
            }
        }
        let text = format!("{length:?} {pieces} {bytes}");
        Ok(HttpAnswer::Now(Response::json(200, text)))
    })
}

/// `/pieces?N`: a body of 10,000 bytes, of which N come, in pieces of 999.
fn in_pieces(query: Option<&str>) -> HttpAnswer {
    let mut left: usize = query.and_then(|count| count.parse().ok()).unwrap();
    let next = move || {
        let piece = vec![b'p'; left.min(999)];
        left -= piece.len();
        Ok(piece)
    };
    HttpAnswer::Pieces(Response::empty(200), Some(10_000), Box::new(next))
}

impl Echo {
    fn answer(&self, request: &Request) -> Response {
        match request.head.path.as_str() {
            "/panic" => panic!("as asked for"),
            "/large" => return Response::json(200, "x".repeat(4 * 1024 * 1024)),
            "/wait" => {
                let (go_on, permission) = channel();
                self.arrive.lock().unwrap().send(go_on).unwrap();
                permission.recv_timeout(MAX_WAIT).unwrap();
            }
            _ => {}
        }
        let Head {
            method,
            path,
            query,
            peer,
            ..
        } = &request.head;
        Response::json(
            200,
            format!(
                "{method} {path} {query:?} {peer} {} {}",
                peer.secure,
                String::from_utf8_lossy(&request.body)
            ),
        )
    }
}

struct EchoHandler {
    outbox: Arc<Outbox>,
    greeting: String,
    authenticated: bool,
    waiting: bool,
    message_bytes: usize,
    unauthenticated: usize,
}

impl EchoHandler {
    fn say(&self, text: &str) {
        self.outbox.push(Item::Response {
            ticket: Ticket(0),
            text: text.to_owned(),
        });
    }
}

impl ClientHandler for EchoHandler {
    fn receive(&mut self, text: &str) {
        match text {
            "{auth}" => {
                self.authenticated = true;
                self.say(&self.greeting);
            }
            "{wait}" => self.waiting = true,
            "{large}" => self.say(&"x".repeat(3 * 1024 * 1024)),
            "{close}" => {
                self.say("bye");
                self.outbox.close(Close::REVOKED);
            }
            text => self.say(text),
        }
    }

    fn refuse(&mut self, error: Error) {
        self.say(&format!("refused {}", error.status()));
    }

    fn arrange(&mut self, item: Item, send: &mut dyn FnMut(&str)) {
        match item {
            Item::Response { text, .. } => send(&text),
            // Whatever comes from outside is what `{wait}` waits for.
            Item::Event(text) => {
                self.waiting = false;
                send(&text);
            }
            Item::Replay(texts) => texts.iter().for_each(|text| send(text)),
            Item::Direct(..) => unreachable!("the WebSocket sends it itself"),
        }
    }

    fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    fn is_idle(&self) -> bool {
        !self.waiting
    }

    fn message_bytes(&self) -> usize {
        match self.authenticated {
            true => self.message_bytes,
            false => self.unauthenticated,
        }
    }

    fn time_out(&mut self) -> Close {
        self.say("too late");
        Close::UNAUTHENTICATED
    }
}

/// A plain client.
pub struct Client {
    pub stream: Socket,
    unread: Vec<u8>,
}

/// A response as it arrived.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client {
            stream: Socket::new(TcpStream::connect(address).unwrap()),
            unread: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends what may be more than the server cares to read.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).ok();
    }

    /// Reads up to and including `end`.
    pub fn read_until(&mut self, end: &str) -> String {
        let end = end.as_bytes();
        loop {
            if let Some(place) = self
                .unread
                .windows(end.len())
                .position(|bytes| bytes == end)
            {
                let rest = self.unread.split_off(place + end.len());
                return String::from_utf8(std::mem::replace(&mut self.unread, rest)).unwrap();
            }
            assert!(self.read_more() > 0, "ended after {:?}", self.unread_text());
        }
    }

    fn read_more(&mut self) -> usize {
        let mut buffer = [0; 65536];
        let count = self.stream.read(&mut buffer).unwrap();
        self.unread.extend_from_slice(&buffer[..count]);
        count
    }

    fn unread_text(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    pub fn line(&mut self) -> String {
        self.read_until("\n").trim_end().to_owned()
    }

    /// Reads a response, whose body is absent after a HEAD request.
    pub fn answer_to(&mut self, is_head: bool) -> Answer {
        let head = self.read_until("\r\n\r\n");
        let status = head[9..12].parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .filter(|_| !is_head)
            .map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            assert!(self.read_more() > 0, "the body was cut short");
        }
        let rest = self.unread.split_off(length);
        let body = String::from_utf8(std::mem::replace(&mut self.unread, rest)).unwrap();
        Answer { status, head, body }
    }

    pub fn answer(&mut self) -> Answer {
        self.answer_to(false)
    }

    /// Waits until the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        assert_eq!(self.unread_text(), "", "something was left to read");
        let mut buffer = [0; 64];
        match self.stream.read(&mut buffer) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    pub fn local_ip(&self) -> IpAddr {
        self.stream.local_addr().unwrap().ip()
    }
}
