//! The WebSocket to the server: opened with deadlines, then reading without
//! waiting, so that one loop can wait for it and for the person.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tungstenite::client::client_with_config;
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use super::address::Address;
use crate::cli::Failure;
use crate::gate::secure;
use crate::gate::stream::{Patience, Socket, Stream};
use crate::tls::Trust;

/// How long one address may take to accept.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the upgrade may take, and sending one message.
const EXCHANGE: Duration = Duration::from_secs(10);
/// Largest message that is taken from a server.
const MESSAGE_BYTES: usize = 8 << 20;

/// An open WebSocket.
pub struct Connection {
    socket: WebSocket<Line>,
}

/// What reading brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Text(String),
    /// A sign of life without content: a ping.
    Alive,
    /// Nothing for now.
    Nothing,
    /// The end, and why.
    Closed(String),
}

/// A stream of either kind, as tungstenite wants it.
struct Line(Box<dyn Stream>);

impl io::Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Connection {
    /// Connects to a server, which must be one that `trust` accepts if it is
    /// reached with TLS, and upgrades to a WebSocket.
    pub fn open(address: &Address, trust: &Trust) -> Result<Connection, Failure> {
        let stream = connect(address)?;
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(address, &error))?;
        let deadline = Instant::now() + EXCHANGE;
        let mut stream: Box<dyn Stream> = match address.secure {
            true => Box::new(
                secure::connect(stream, &address.host, trust, deadline)
                    .map_err(|error| unreachable(address, &error))?,
            ),
            false => Box::new(Socket::new(Arc::new(stream))),
        };
        stream.set_patience(Patience::Until(deadline));
        stream.set_write_deadline(deadline);
        let config = WebSocketConfig::default()
            .read_buffer_size(16 * 1024)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let opened = client_with_config(address.websocket(), Line(stream), Some(config));
        let (mut socket, _) = opened.map_err(|error| match error {
            HandshakeError::Failure(Error::Http(response)) => {
                let hint = match !address.secure && response.status() == 308 {
                    true => "; it speaks TLS: use wss://",
                    false => "",
                };
                Failure::failed(format!(
                    "{address} answered {} instead of opening a WebSocket{hint}",
                    response.status()
                ))
            }
            HandshakeError::Failure(Error::Io(error)) => unreachable(address, &error),
            HandshakeError::Failure(error) => {
                Failure::failed(format!("{address} cannot be reached: {error}"))
            }
            HandshakeError::Interrupted(_) => unreachable(address, &ErrorKind::TimedOut.into()),
        })?;
        socket.get_mut().0.set_patience(Patience::Never);
        Ok(Connection { socket })
    }

    /// Sends a text, or fails after ten seconds.
    pub fn send(&mut self, text: String) -> Result<(), String> {
        self.begin_write();
        self.socket
            .send(Message::text(text))
            .map_err(|error| match error {
                Error::Io(error) if error.kind() == ErrorKind::TimedOut => {
                    "the server does not read what is sent".to_owned()
                }
                error => reason(error),
            })
    }

    fn begin_write(&mut self) {
        let deadline = Instant::now() + EXCHANGE;
        self.socket.get_mut().0.set_write_deadline(deadline);
    }

    /// What has arrived, without waiting. Ask again until it is
    /// [`Read::Nothing`] before polling: more may be in the buffer.
    pub fn receive(&mut self) -> Read {
        // Pings are answered by reading.
        self.begin_write();
        match self.socket.read() {
            Ok(Message::Text(text)) => Read::Text(text.as_str().to_owned()),
            Ok(Message::Close(frame)) => {
                let said = frame.map(|frame| frame.reason.as_str().to_owned());
                Read::Closed(match said {
                    Some(said) if !said.is_empty() => said,
                    _ => "it closed the connection".to_owned(),
                })
            }
            Ok(_) => Read::Alive,
            Err(Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Read::Nothing
            }
            Err(error) => Read::Closed(reason(error)),
        }
    }

    /// Says goodbye; the server need not answer.
    pub fn close(mut self) {
        self.begin_write();
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().0.as_fd()
    }
}

fn connect(address: &Address) -> Result<TcpStream, Failure> {
    let candidates = (address.host.as_str(), address.port)
        .to_socket_addrs()
        .map_err(|error| {
            Failure::failed(format!(
                "the name {} is not known here: {error}",
                address.host
            ))
        })?;
    let mut last = None;
    for candidate in candidates {
        match TcpStream::connect_timeout(&candidate, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(error) if error.kind() != ErrorKind::ConnectionRefused => unreachable(address, &error),
        _ => Failure::failed(format!(
            "no Hearth answers at {address}: start it with `hearth serve`"
        )),
    })
}

/// Why a server could not be reached, and what to do where it is not trusted.
pub fn unreachable(address: &Address, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::TimedOut => Failure::failed(format!(
            "{address} cannot be reached: it did not answer in time"
        )),
        ErrorKind::InvalidData if address.secure => Failure::failed(format!(
            "{address} cannot be trusted: {error}; if the certificate is your own, name its file, \
             or that of its authority, with --ca-file"
        )),
        _ => Failure::failed(format!("{address} cannot be reached: {error}")),
    }
}

fn reason(error: Error) -> String {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_) => {
            "it closed the connection".to_owned()
        }
        Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}
