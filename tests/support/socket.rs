//! Plain sockets with deadlines.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::time::{Duration, Instant};

use super::MAX_WAIT;
use super::served::{page, read_request};

/// A connection whose every wait ends, and that goes on after the process was
/// stopped and continued: on a socket with a timeout Linux then ends what waits
/// with `EINTR`, also where no signal has a handler (signal(7), "Interruption of
/// system calls and library functions by stop signals").
#[derive(Debug)]
pub struct Socket(TcpStream);

impl Socket {
    /// Bounds every wait of a connection.
    pub fn new(stream: TcpStream) -> Socket {
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        stream.set_write_timeout(Some(MAX_WAIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Socket(stream)
    }
}

impl Deref for Socket {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = self.0.read_timeout()?.unwrap_or(MAX_WAIT);
        uninterrupted(limit, || self.0.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.0.write_timeout()?.unwrap_or(MAX_WAIT);
        uninterrupted(limit, || self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Makes a call that has this timeout again where it was ended in this way.
pub fn uninterrupted<T>(limit: Duration, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if began.elapsed() >= limit {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            result => return result,
        }
    }
}

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
