//! Clients that cost as little as they can, and the load that many of them make.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::MAX_WAIT;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, Utf8Bytes};

use crate::table::Latencies;

/// A bare connection whose every wait ends.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, MAX_WAIT)?;
    socket.set_read_timeout(Some(MAX_WAIT))?;
    socket.set_write_timeout(Some(MAX_WAIT))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// A kept-alive HTTP connection: one write and, as a rule, one read for each request.
pub struct Http {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Http {
    pub fn connect(address: SocketAddr) -> io::Result<Http> {
        Ok(Http {
            socket: connect(address)?,
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Sends a request and returns the status and the body of its response.
    pub fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, &[u8])> {
        self.socket.write_all(request)?;
        let mut filled = 0;
        loop {
            let read = self.socket.read(&mut self.buffer[filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if let Some((status, body, end)) = parse(&self.buffer[..filled])
                && filled >= end
            {
                return Ok((status, &self.buffer[body..end]));
            }
        }
    }

    /// Whether GET /health is answered with 200.
    pub fn is_healthy(address: SocketAddr) -> bool {
        Http::connect(address)
            .and_then(|mut http| Ok(http.exchange(&get("/health"))?.0 == 200))
            .unwrap_or(false)
    }
}

/// Status and the body's begin and end, once the head is there.
fn parse(bytes: &[u8]) -> Option<(u16, usize, usize)> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).expect("a head is text");
    let status = text[9..12].parse().expect("a status");
    let length: usize = text
        .split("\r\n")
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    Some((status, head + 4, head + 4 + length))
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n").into_bytes()
}

pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A WebSocket connection that has signed in.
pub struct WebSocket(tungstenite::WebSocket<TcpStream>);

impl WebSocket {
    pub fn signed_in(address: SocketAddr, token: &str) -> WebSocket {
        // The usual 128 KiB would be most of the memory of thousands of clients.
        let config = WebSocketConfig::default().read_buffer_size(4096);
        let url = format!("ws://{address}/ws");
        let socket = connect(address).unwrap();
        let websocket = tungstenite::client::client_with_config(url, socket, Some(config));
        let mut websocket = WebSocket(websocket.unwrap().0);
        websocket.ask(&format!(r#"{{"type":"auth","token":"{token}"}}"#));
        websocket
    }

    /// Sends a request whose answers are read with [`WebSocket::next`].
    pub fn tell(&mut self, request: &str) {
        self.0.send(Message::text(request)).unwrap();
    }

    /// The next message, whatever it is.
    pub fn next(&mut self) -> Utf8Bytes {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                return text;
            }
        }
    }

    /// Sends a request and returns its response, which must be a success.
    pub fn ask(&mut self, request: &str) -> Utf8Bytes {
        self.tell(request);
        let response = self.next();
        assert!(response.starts_with(r#"{"status":"ok""#), "{response}");
        response
    }

    /// The data of the response.
    pub fn ask_data(&mut self, request: &str) -> Value {
        let mut response: Value = serde_json::from_str(&self.ask(request)).unwrap();
        response["data"].take()
    }
}

/// What a load came to.
pub struct Load {
    pub per_second: f64,
    pub latencies: Latencies,
    pub count: usize,
}

/// Runs `clients` threads for `time`. `connect` makes each client; `ask` makes one request,
/// by its number, and waits for its answer. Each client asks once every `interval`, and they
/// begin one after the other within the first, so that the load is even; a request that begins
/// late because the one before it was slow counts from when it was due. Without an interval,
/// each asks as fast as it can.
pub fn load<C: Send>(
    clients: usize,
    time: Duration,
    interval: Duration,
    connect: impl Fn() -> C,
    ask: impl Fn(&mut C, usize) + Sync,
) -> Load {
    let ready = Barrier::new(clients);
    let one = |number: usize, mut client: C| {
        ready.wait();
        let began = Instant::now() + interval * number as u32 / clients as u32;
        let (mut durations, mut now) = (Vec::new(), began);
        while now.saturating_duration_since(began) < time {
            let mut before = now;
            if !interval.is_zero() {
                before = began + interval * durations.len() as u32;
                std::thread::sleep(before.saturating_duration_since(now));
            }
            ask(&mut client, durations.len());
            now = Instant::now();
            durations.push(now - before);
        }
        (now.saturating_duration_since(began), durations)
    };
    let connected: Vec<C> = (0..clients).map(|_| connect()).collect();
    let ended: Vec<(Duration, Vec<Duration>)> = std::thread::scope(|scope| {
        let one = &one;
        let start = |(number, client)| scope.spawn(move || one(number, client));
        let threads: Vec<_> = connected.into_iter().enumerate().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
        threads.into_iter().map(join).collect()
    });
    let rate =
        |(took, durations): &(Duration, Vec<Duration>)| durations.len() as f64 / took.as_secs_f64();
    let per_second = ended.iter().map(rate).sum();
    let durations: Vec<Duration> = ended.into_iter().flat_map(|(_, all)| all).collect();
    Load {
        per_second,
        count: durations.len(),
        latencies: Latencies::new(durations),
    }
}

/// Asks one after the other, so many times.
pub fn one_by_one(count: usize, mut ask: impl FnMut(usize)) -> Latencies {
    let durations = (0..count).map(|number| {
        let began = Instant::now();
        ask(number);
        began.elapsed()
    });
    Latencies::new(durations.collect())
}
