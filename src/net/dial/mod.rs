//! Opens outgoing WebSockets: for `hearth chat`, and for a machine's link to its
//! relay. One deadline covers every step.

mod error;
mod tcp;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use tungstenite::client::{IntoClientRequest, client_with_config};
use tungstenite::handshake::HandshakeError;
use tungstenite::http::{HeaderName, HeaderValue};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error as WebSocketError, WebSocket};

use base::url::Url;

use crate::stream::{ReadTimeout, Socket, Stream};
use crate::tls::Trust;
use crate::tls::stream as tls_stream;

pub use error::DialError;
use error::host_and_port;

/// Bytes that a socket reads at a time, and gathers before it writes.
const BUFFER_BYTES: usize = 16 * 1024;
/// Most characters shown of an error that the other side sent.
const SHOWN_CHARACTERS: usize = 200;

/// An open WebSocket. Its stream does not wait when it reads.
pub type OpenSocket = WebSocket<Box<dyn Stream>>;

/// What to open.
pub struct Dial<'a> {
    /// A `ws://` or `wss://` URL.
    pub url: &'a str,
    /// Headers of the upgrade request. Their values are never shown.
    pub headers: &'a [(HeaderName, String)],
    /// Which certificates are accepted, for `wss://`.
    pub trust: &'a Trust,
    /// Largest message that is accepted, in bytes.
    pub message_bytes: usize,
    /// When the socket must be open.
    pub deadline: Instant,
    /// Called with each socket before it connects. Another thread can shut the
    /// socket down to end any wait on it.
    pub begun: &'a dyn Fn(&Arc<TcpStream>),
}

/// Opens a WebSocket. Its stream then reads without waiting. A write waits until
/// the write deadline; set that before each write.
///
/// # Errors
/// The URL is malformed, the server cannot be reached, or it refuses the upgrade.
pub fn open(dial: &Dial<'_>) -> Result<OpenSocket, DialError> {
    let url = websocket_url(dial.url)?;
    let malformed = || DialError::malformed(&url.to_string());
    let mut request = format!("{}{}", url.origin(), url.path_and_query())
        .into_client_request()
        .map_err(|_| malformed())?;
    for (name, value) in dial.headers {
        let mut value = HeaderValue::from_str(value).map_err(|_| malformed())?;
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    let mut stream = open_stream(&url, dial)?;
    stream.set_read_timeout(ReadTimeout::Until(dial.deadline));
    stream.set_write_deadline(dial.deadline);
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(dial.message_bytes))
        .max_frame_size(Some(dial.message_bytes));
    let (mut socket, _) =
        client_with_config(request, stream, Some(config)).map_err(|error| refusal(&url, error))?;
    socket.get_mut().set_read_timeout(ReadTimeout::Never);
    Ok(socket)
}

/// Connects, with TLS for `wss://`.
fn open_stream(url: &Url, dial: &Dial<'_>) -> Result<Box<dyn Stream>, DialError> {
    let socket = Socket::new(tcp::connect(url, dial.deadline, dial.begun)?);
    if !url.is_secure() {
        return Ok(Box::new(socket));
    }
    let host = url.authority.host.to_string();
    match tls_stream::connect(socket, &host, dial.trust, dial.deadline) {
        Ok(stream) => Ok(Box::new(stream)),
        Err(source) => Err(DialError::unreachable(url, source)),
    }
}

/// Reads the URL of a WebSocket: `ws://` or `wss://`, without a user.
///
/// # Errors
/// The text is none.
pub fn websocket_url(text: &str) -> Result<Url, DialError> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme.as_str(), "ws" | "wss") && url.user.is_none())
        .ok_or_else(|| DialError::malformed(text.split(['?', '#']).next().unwrap_or(text)))
}

fn refusal<R: tungstenite::handshake::HandshakeRole>(
    url: &Url,
    error: HandshakeError<R>,
) -> DialError {
    match error {
        HandshakeError::Interrupted(_) => {
            DialError::unreachable(url, io::ErrorKind::TimedOut.into())
        }
        HandshakeError::Failure(WebSocketError::Io(source)) => DialError::unreachable(url, source),
        HandshakeError::Failure(WebSocketError::Http(response)) => {
            let (address, status) = (host_and_port(url), response.status().as_u16());
            let error = response.body().as_deref().and_then(envelope_error);
            DialError::Refused {
                status,
                message: match error {
                    Some(error) => format!("{address} answered {status}: {error}"),
                    None => format!("{address} answered {status} instead of opening a WebSocket"),
                },
            }
        }
        HandshakeError::Failure(error) => DialError::Other(format!(
            "{} does not open a WebSocket: {error}",
            host_and_port(url)
        )),
    }
}

/// The message of an error envelope, safe to show.
pub fn envelope_error(body: &[u8]) -> Option<String> {
    let envelope: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(shown(envelope["error"].as_str()?))
}

/// A text from outside, shortened and without control characters.
pub fn shown(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(SHOWN_CHARACTERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// Why a URL cannot be opened.
    fn dial(url: &str, time: Duration) -> DialError {
        let opened = open(&Dial {
            url,
            headers: &[],
            trust: &Trust::default(),
            message_bytes: 1024,
            deadline: Instant::now() + time,
            begun: &|_| (),
        });
        opened.err().unwrap()
    }

    /// Answers one request with `answer` and returns the URL to ask.
    fn answering(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        format!("ws://{address}/ws")
    }

    #[test]
    fn every_way_to_fail_names_the_address_and_the_reason() {
        let refused = answering(
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 50\r\n\r\n{\"status\":\"error\",\"error\":\"the token is wrong\\u0007\"}",
        );
        let closed = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        for (url, says) in [
            ("ws://", "is not the URL of a WebSocket"),
            ("http://127.0.0.1/ws", "is not the URL of a WebSocket"),
            (&format!("wss://{closed}/ws"), "cannot be reached"),
            (
                "ws://no-such-name.invalid/ws",
                "the name no-such-name.invalid cannot be resolved",
            ),
            (&format!("ws://{closed}/ws"), "cannot be reached"),
            (&refused, "answered 401: the token is wrong"),
            (
                &answering("HTTP/1.1 200 OK\r\n\r\n"),
                "answered 200 instead of opening",
            ),
            (&answering("SSH-2.0-x\r\n\r\n"), "127.0.0.1:"),
        ] {
            let error = dial(url, Duration::from_secs(60)).to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }

    #[test]
    fn a_silent_server_is_given_up_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let error = dial(&url, Duration::from_millis(100));
        assert!(matches!(error, DialError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn another_thread_can_end_the_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("ws://{}/ws", listener.local_addr().unwrap());
        let begun = Instant::now();
        let long = Duration::from_secs(600);
        let result = open(&Dial {
            url: &url,
            headers: &[],
            trust: &Trust::default(),
            message_bytes: 1024,
            deadline: begun + long,
            begun: &|stream| {
                let stream = Arc::clone(stream);
                std::thread::spawn(move || {
                    // Until it is connected there is nothing to shut down.
                    while stream.shutdown(std::net::Shutdown::Both).is_err() {
                        std::thread::yield_now();
                    }
                });
            },
        });
        assert!(result.is_err());
        assert!(begun.elapsed() < long);
    }
}
