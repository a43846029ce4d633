//! An HTTP client that costs as little as it can: one write and, as a rule, one
//! read for each request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use support::MAX_WAIT;

/// A bare connection whose every wait ends.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect_timeout(&address, MAX_WAIT)?;
    socket.set_read_timeout(Some(MAX_WAIT))?;
    socket.set_write_timeout(Some(MAX_WAIT))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// A kept-alive connection.
pub struct Http {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Http {
    pub fn connect(address: SocketAddr) -> io::Result<Http> {
        Ok(Http {
            socket: connect(address)?,
            buffer: vec![0; 16 * 1024],
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
            if let Some((status, body, end)) = parse(&self.buffer[..filled])? {
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

/// Status and the body's begin and end, once all of it is there.
fn parse(bytes: &[u8]) -> io::Result<Option<(u16, usize, usize)>> {
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let text = std::str::from_utf8(&bytes[..head]).map_err(|_| invalid())?;
    let status = text
        .get(9..12)
        .and_then(|status| status.parse().ok())
        .ok_or_else(invalid)?;
    let length: usize = text
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(invalid)?;
    let (begin, end) = (head + 4, head + 4 + length);
    Ok((bytes.len() >= end).then_some((status, begin, end)))
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
