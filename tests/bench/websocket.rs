//! A WebSocket client (RFC 6455) that is just enough to send commands. It masks
//! with zeros, which the RFC permits and which leaves the text as it is.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::http;

const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const MASK: [u8; 4] = [0; 4];

/// One connection.
pub struct WebSocket {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// What the last message took of the buffer.
    used: usize,
    output: Vec<u8>,
}

impl WebSocket {
    /// A connection that has signed in.
    pub fn signed_in(address: SocketAddr, token: &str) -> WebSocket {
        let mut websocket = WebSocket::connect(address).unwrap();
        websocket.ask(&format!(r#"{{"type":"auth","token":"{token}"}}"#));
        websocket
    }

    fn connect(address: SocketAddr) -> io::Result<WebSocket> {
        let mut socket = http::connect(address)?;
        socket.write_all(
            b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
              Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
              Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )?;
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            socket.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        if !head.starts_with(b"HTTP/1.1 101") {
            return Err(io::Error::other(
                String::from_utf8_lossy(&head).into_owned(),
            ));
        }
        Ok(WebSocket {
            socket,
            buffer: Vec::new(),
            used: 0,
            output: Vec::new(),
        })
    }

    /// The bare socket, for a connection that only stays.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Sends a request and returns its response, which must be a success.
    pub fn ask(&mut self, request: &str) -> &str {
        self.exchange(request)
            .unwrap_or_else(|error| panic!("{request}: {error}"))
    }

    /// Sends a request whose answers are read with [`WebSocket::next`].
    pub fn tell(&mut self, request: &str) {
        self.send(TEXT, request.as_bytes()).unwrap();
    }

    /// The next message, whatever it is.
    pub fn next(&mut self) -> &str {
        let length = self.receive().unwrap();
        std::str::from_utf8(&self.buffer[self.used - length..self.used]).unwrap()
    }

    /// The same, read.
    pub fn ask_data(&mut self, request: &str) -> Value {
        let mut response: Value = serde_json::from_str(self.ask(request)).unwrap();
        response["data"].take()
    }

    fn exchange(&mut self, request: &str) -> io::Result<&str> {
        self.send(TEXT, request.as_bytes())?;
        let length = self.receive()?;
        let text = std::str::from_utf8(&self.buffer[self.used - length..self.used])
            .map_err(io::Error::other)?;
        match text.starts_with(r#"{"status":"ok""#) {
            true => Ok(text),
            false => Err(io::Error::other(text.to_owned())),
        }
    }

    fn send(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        self.output.clear();
        self.output.push(FINAL | opcode);
        match payload.len() {
            length @ 0..=125 => self.output.push(MASKED | length as u8),
            length @ 126..=65535 => {
                self.output.push(MASKED | 126);
                self.output.extend((length as u16).to_be_bytes());
            }
            length => {
                self.output.push(MASKED | 127);
                self.output.extend((length as u64).to_be_bytes());
            }
        }
        self.output.extend(MASK);
        self.output.extend(payload);
        self.socket.write_all(&self.output)
    }

    /// Reads up to the end of the next text message; returns its length.
    fn receive(&mut self) -> io::Result<usize> {
        loop {
            self.buffer.drain(..self.used);
            self.used = 0;
            self.fill(2)?;
            let (opcode, short) = (self.buffer[0] & 0x0f, self.buffer[1]);
            let (head, length) = match short {
                126 => {
                    self.fill(4)?;
                    (
                        4,
                        u16::from_be_bytes([self.buffer[2], self.buffer[3]]).into(),
                    )
                }
                127 => {
                    self.fill(10)?;
                    let bytes = self.buffer[2..10].try_into().expect("eight bytes");
                    (10, u64::from_be_bytes(bytes) as usize)
                }
                short => (2, usize::from(short)),
            };
            self.fill(head + length)?;
            self.used = head + length;
            match opcode {
                TEXT => return Ok(length),
                PING => {
                    let payload = self.buffer[head..self.used].to_vec();
                    self.send(PONG, &payload)?;
                }
                CLOSE => {
                    let reason = String::from_utf8_lossy(&self.buffer[head..self.used]);
                    return Err(io::Error::other(format!("closed: {reason}")));
                }
                _ => {}
            }
        }
    }

    /// Reads until the buffer holds so many bytes.
    fn fill(&mut self, length: usize) -> io::Result<()> {
        let mut filled = self.buffer.len();
        if filled >= length {
            return Ok(());
        }
        self.buffer.resize(length.max(4096), 0);
        while filled < length {
            match self.socket.read(&mut self.buffer[filled..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}
