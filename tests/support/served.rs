//! The serving side of the tests' own HTTP servers.

use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A port on loopback whose connections are served, each by a thread of its
/// own, until this is dropped.
pub struct Served {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves on a free port.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Served {
        Served::on((Ipv4Addr::LOCALHOST, 0).into(), serve)
    }

    /// Serves on this address.
    pub fn on(address: SocketAddr, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Served {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let accepting = {
            let (is_over, serve) = (Arc::clone(&is_over), Arc::new(serve));
            std::thread::spawn(move || {
                for socket in listener.incoming() {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let serve = Arc::clone(&serve);
                    std::thread::spawn(move || serve(socket.unwrap()));
                }
            })
        };
        Served {
            address,
            is_over,
            accepting: Some(accepting),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
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
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(str::to_owned)
        })
        .map_or(0, |length| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A good answer, the last of its connection.
pub fn page(content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
