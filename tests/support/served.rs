//! The serving side of the tests' own HTTP servers.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::net::{Shutdown, shutdown};

/// A port on loopback whose connections are served, each by a thread of its
/// own, until this is dropped.
pub struct Served {
    pub address: SocketAddr,
    listener: Arc<TcpListener>,
    accepting: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves on a free port.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Served {
        Served::on((Ipv4Addr::LOCALHOST, 0).into(), serve)
    }

    /// Serves HTTP on a free port: answers each request, given its head and its
    /// body, with whole responses that are ready beforehand. None closes.
    pub fn answering(
        answer: impl Fn(&str, &[u8]) -> Option<Arc<[u8]>> + Send + Sync + 'static,
    ) -> Served {
        Served::start(move |socket| {
            socket.set_nodelay(true).unwrap();
            let mut reader = BufReader::new(socket);
            while let Some((head, body)) = read_request(&mut reader) {
                match answer(&head, &body) {
                    Some(response) if reader.get_mut().write_all(&response).is_ok() => {}
                    _ => return,
                }
            }
        })
    }

    /// Serves on this address.
    pub fn on(address: SocketAddr, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Served {
        let listener = Arc::new(TcpListener::bind(address).unwrap());
        let address = listener.local_addr().unwrap();
        let accepting = {
            let (listener, serve) = (Arc::clone(&listener), Arc::new(serve));
            std::thread::spawn(move || {
                while let Ok((socket, _)) = listener.accept() {
                    let serve = Arc::clone(&serve);
                    std::thread::spawn(move || serve(socket));
                }
            })
        };
        Served {
            address,
            listener,
            accepting: Some(accepting),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ends the wait for the next connection.
        let _ = shutdown(&self.listener, Shutdown::Both);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Reads one HTTP request, its head and its body; nothing when the peer has
/// closed.
pub fn read_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let begin = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head[begin..].trim().is_empty() {
            break;
        }
    }
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, length)| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A good answer, after which the connection goes on.
pub fn ok(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A good answer, the last of its connection.
pub fn page(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
