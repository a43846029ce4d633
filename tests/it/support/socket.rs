//! Plain sockets with deadlines.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// A connection whose every wait ends.
pub fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
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
