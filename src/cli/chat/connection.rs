//! The WebSocket to the server: opened with deadlines, then non-blocking, so
//! that one loop can wait for it and for the person.

use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tungstenite::client::client_with_config;
use tungstenite::handshake::HandshakeError;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use super::address::Address;
use crate::cli::Failure;

/// How long one address may take to accept.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the upgrade may take, and sending one message.
const EXCHANGE: Duration = Duration::from_secs(10);
/// Largest message that is taken from a server.
const MESSAGE_BYTES: usize = 8 << 20;

/// An open WebSocket.
pub struct Connection {
    socket: WebSocket<TcpStream>,
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

impl Connection {
    /// Connects to a server and upgrades to a WebSocket.
    pub fn open(address: &Address) -> Result<Connection, Failure> {
        let stream = connect(address)?;
        let ready = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(EXCHANGE)))
            .and_then(|()| stream.set_write_timeout(Some(EXCHANGE)));
        ready.map_err(|error| unreachable(address, error))?;
        let config = WebSocketConfig::default()
            .read_buffer_size(16 * 1024)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let (socket, _) =
            client_with_config(address.websocket(), stream, Some(config)).map_err(|error| {
                match error {
                    HandshakeError::Failure(Error::Http(response)) => Failure::failed(format!(
                        "{address} answered {} instead of opening a WebSocket",
                        response.status()
                    )),
                    HandshakeError::Failure(error) => unreachable(address, error),
                    HandshakeError::Interrupted(_) => {
                        unreachable(address, "it did not answer in time")
                    }
                }
            })?;
        socket
            .get_ref()
            .set_nonblocking(true)
            .map_err(|error| unreachable(address, error))?;
        Ok(Connection { socket })
    }

    /// Sends a text, or fails after ten seconds.
    pub fn send(&mut self, text: String) -> Result<(), String> {
        let deadline = Instant::now() + EXCHANGE;
        let mut sent = self.socket.send(Message::text(text));
        loop {
            match sent {
                Ok(()) => return Ok(()),
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(reason(error)),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("the server does not read what is sent".to_owned());
            }
            let mut writable = [PollFd::new(self.socket.get_ref(), PollFlags::OUT)];
            // Whatever poll says, flushing again tells.
            let _ = poll(&mut writable, Timespec::try_from(left).ok().as_ref());
            sent = self.socket.flush();
        }
    }

    /// What has arrived, without waiting. Ask again until it is
    /// [`Read::Nothing`] before polling: more may be in the buffer.
    pub fn receive(&mut self) -> Read {
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
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
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
        Some(error) if error.kind() != ErrorKind::ConnectionRefused => unreachable(address, error),
        _ => Failure::failed(format!(
            "no Hearth answers at {address}: start it with `hearth serve`"
        )),
    })
}

fn unreachable(address: &Address, error: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{address} cannot be reached: {error}"))
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
