//! Plain sockets with deadlines.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use super::MAX_WAIT;
use super::served::{page, read_request};

pub use base::testing::{Socket, uninterrupted};

/// A connection to this address.
pub fn connect(address: SocketAddr) -> Socket {
    Socket::new(TcpStream::connect_timeout(&address, MAX_WAIT).unwrap())
}

/// Sends bytes and reads until the peer closes.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = connect(address);
    // The peer may refuse and close before it has read everything.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => answer,
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => answer,
        Err(error) => panic!("no end after {} bytes: {error}", answer.len()),
    }
}

/// Serves the same page to whoever asks, until the test program ends, and
/// returns its address.
pub fn serve_page(content_type: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut reader = BufReader::new(socket.unwrap());
            if read_request(&mut reader).is_some() {
                let answer = page(content_type, body);
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        }
    });
    address
}
