//! Writes HTTP responses with one reused buffer and one system call each.

use std::io::{self, Write};

use tiny_http::{HTTPVersion, Header, StatusCode};

use super::message::Response;

/// Bodies up to this size are copied behind their head and sent with it.
/// Larger ones are sent without a copy, in a second call.
const COPIED_BODY_BYTES: usize = 16 * 1024;

/// What the `Connection` header of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// No header: HTTP/1.1 keeps connections open by default.
    Usual,
    /// `keep-alive`, for a client of HTTP/1.0 that asked.
    KeepAlive,
    /// `close`.
    Close,
}

/// How the end of a body that follows in pieces is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// By its length: so many bytes are left.
    Length(u64),
    /// By the last chunk (RFC 9112 section 7.1).
    Chunked,
    /// By the end of the connection, for a client of HTTP/1.0.
    Unmarked,
}

/// Writes responses. Reuse it for all responses of a connection.
#[derive(Default)]
pub struct Responder {
    buffer: Vec<u8>,
}

impl Responder {
    /// Writes one response, without its body for a HEAD request.
    pub fn write(
        &mut self,
        response: &Response,
        is_head: bool,
        persistence: Persistence,
        stream: &mut dyn Write,
    ) -> io::Result<()> {
        let upgrade = None;
        self.print_head(response, upgrade)?;
        if matches!(response.status, 204 | 304) {
            // Neither has a body, and the length tiny_http states would be that
            // of the 200 response (RFC 9110 section 8.6).
            self.strip(b"Content-Length: 0\r\n\r\n");
        } else {
            self.strip(b"\r\n");
        }
        // tiny_http keeps these headers to itself.
        if response.status == 426 {
            // RFC 9110 sections 15.5.22 and 7.8.
            let upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n";
            self.buffer.extend_from_slice(upgrade);
        }
        self.end_head(persistence);
        if is_head || response.body.is_empty() {
            return stream.write_all(&self.buffer);
        }
        if response.body.len() <= COPIED_BODY_BYTES {
            self.buffer.extend_from_slice(&response.body);
            return stream.write_all(&self.buffer);
        }
        stream.write_all(&self.buffer)?;
        stream.write_all(&response.body)
    }

    /// Writes the head of a response whose body follows in pieces.
    pub fn write_head(
        &mut self,
        response: &Response,
        body: BodyFraming,
        persistence: Persistence,
        stream: &mut dyn Write,
    ) -> io::Result<()> {
        let upgrade = None;
        self.print_head(response, upgrade)?;
        self.strip(format!("Content-Length: {}\r\n\r\n", response.body.len()).as_bytes());
        match body {
            BodyFraming::Length(length) => write!(self.buffer, "Content-Length: {length}\r\n")?,
            BodyFraming::Chunked => write!(self.buffer, "Transfer-Encoding: chunked\r\n")?,
            BodyFraming::Unmarked => {}
        }
        self.end_head(persistence);
        stream.write_all(&self.buffer)
    }

    /// Writes a piece of a body, which must not be empty.
    pub fn write_piece(
        &mut self,
        piece: &[u8],
        body: BodyFraming,
        stream: &mut dyn Write,
    ) -> io::Result<()> {
        if body != BodyFraming::Chunked {
            return stream.write_all(piece);
        }
        self.buffer.clear();
        write!(self.buffer, "{:x}\r\n", piece.len())?;
        self.buffer.extend_from_slice(piece);
        self.buffer.extend_from_slice(b"\r\n");
        stream.write_all(&self.buffer)
    }

    /// Writes `101 Switching Protocols` to a WebSocket.
    pub fn write_upgrade(&mut self, response: &Response, stream: &mut dyn Write) -> io::Result<()> {
        self.print_head(response, Some("websocket"))?;
        stream.write_all(&self.buffer)
    }

    fn print_head(&mut self, response: &Response, upgrade: Option<&str>) -> io::Result<()> {
        let mut headers = Vec::with_capacity(response.headers.len() + 1);
        headers.extend(header("Server", "hearth"));
        headers.extend(
            response
                .headers
                .iter()
                .filter_map(|(name, value)| header(name, value)),
        );
        self.buffer.clear();
        tiny_http::Response::new(
            StatusCode(response.status),
            headers,
            io::empty(),
            Some(response.body.len()),
            None,
        )
        .with_chunked_threshold(usize::MAX)
        .raw_print(&mut self.buffer, HTTPVersion(1, 1), &[], true, upgrade)
    }

    fn end_head(&mut self, persistence: Persistence) {
        self.buffer.extend_from_slice(match persistence {
            Persistence::Usual => b"\r\n",
            Persistence::KeepAlive => b"Connection: keep-alive\r\n\r\n",
            Persistence::Close => b"Connection: close\r\n\r\n",
        });
    }

    fn strip(&mut self, end: &[u8]) {
        if self.buffer.ends_with(end) {
            self.buffer.truncate(self.buffer.len() - end.len());
        }
    }
}

/// A header for tiny_http, which would print a line break in a value as it is.
/// A value that is not printable ASCII is left out, with an error in the log.
fn header(name: &str, value: &str) -> Option<Header> {
    let is_printable = value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let header = is_printable
        .then(|| Header::from_bytes(name, value).ok())
        .flatten();
    if header.is_none() {
        log::error!("a response's header {name} cannot be sent: its value is not printable ASCII");
    }
    header
}

#[cfg(test)]
mod tests {

    use super::*;

    fn written(response: &Response, is_head: bool, persistence: Persistence) -> String {
        let mut out = Vec::new();
        Responder::default()
            .write(response, is_head, persistence, &mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_response_is_complete_and_says_nothing_needless() {
        let response = Response::json(200, "{}".into());
        let text = written(&response, false, Persistence::Usual);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("\r\nServer: hearth\r\n"), "{head}");
        assert!(head.contains("\r\nDate: "), "{head}");
        assert!(head.contains("\r\nContent-Length: 2"), "{head}");
        assert!(!head.contains("Connection"), "{head}");
        assert_eq!(body, "{}");
    }

    #[test]
    fn head_has_the_length_but_not_the_body() {
        let text = written(
            &Response::json(200, "{}".into()),
            true,
            Persistence::KeepAlive,
        );
        assert!(text.contains("Content-Length: 2\r\nConnection: keep-alive\r\n\r\n"));
        assert!(text.ends_with("\r\n\r\n"));
    }

    #[test]
    fn what_has_no_body_has_no_length() {
        let response = Response::empty(304);
        let text = written(&response, false, Persistence::Close);
        assert!(!text.contains("Content-Length"), "{text}");
        assert!(text.ends_with("Connection: close\r\n\r\n"), "{text}");
    }

    #[test]
    fn a_header_cannot_smuggle_another_one() {
        let mut response = Response::json(200, "{}".into());
        response.add("X-Echo", "a\r\nSet-Cookie: b");
        let text = written(&response, false, Persistence::Usual);
        assert!(!text.contains("Set-Cookie"), "{text}");
    }

    #[test]
    fn a_body_in_pieces_is_chunked_for_clients_of_http_1_1() {
        let response = Response::empty(200);
        for (framing, body) in [
            (BodyFraming::Chunked, "c\r\nhello, world\r\n"),
            (BodyFraming::Unmarked, "hello, world"),
        ] {
            let is_chunked = framing == BodyFraming::Chunked;
            let mut responder = Responder::default();
            let mut out = Vec::new();
            responder
                .write_head(&response, framing, Persistence::Usual, &mut out)
                .unwrap();
            responder
                .write_piece(b"hello, world", framing, &mut out)
                .unwrap();
            let text = String::from_utf8(out).unwrap();
            let (head, rest) = text.split_once("\r\n\r\n").unwrap();
            assert!(!head.contains("Content-Length"), "{head}");
            assert_eq!(head.contains("\r\nTransfer-Encoding: chunked"), is_chunked);
            assert_eq!(rest, body);
        }
    }

    #[test]
    fn a_large_body_follows_its_head_uncopied() {
        let response = Response::json(200, "x".repeat(COPIED_BODY_BYTES + 1));
        let mut responder = Responder::default();
        let mut out = Vec::new();
        responder
            .write(&response, false, Persistence::Usual, &mut out)
            .unwrap();
        assert!(out.ends_with(&[b'x'; COPIED_BODY_BYTES + 1]));
        assert!(responder.buffer.capacity() < COPIED_BODY_BYTES);
    }
}
