//! A small HTTP server in this process, for the models and receivers that the
//! server under measurement calls: a thread for each connection, nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Answers one request, given whole: head and body. None closes.
pub type Answer = dyn Fn(&[u8], &[u8]) -> Option<Arc<[u8]>> + Send + Sync;

/// The running server; it takes no more when it is dropped.
pub struct Served {
    pub address: SocketAddr,
    stopping: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Served {
    pub fn start(answer: Arc<Answer>) -> Served {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let accepting = std::thread::spawn(move || {
            for socket in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let answer = Arc::clone(&answer);
                // Ends when the server under measurement does.
                std::thread::spawn(move || serve(socket.unwrap(), &*answer));
            }
        });
        Served {
            address,
            stopping,
            accepting: Some(accepting),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn serve(socket: TcpStream, answer: &Answer) {
    socket.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(socket);
    let (mut head, mut body) = (Vec::new(), Vec::new());
    while read_request(&mut reader, &mut head, &mut body).is_some() {
        let Some(response) = answer(&head, &body) else {
            return;
        };
        if reader.get_mut().write_all(&response).is_err() {
            return;
        }
    }
}

fn read_request(
    reader: &mut BufReader<TcpStream>,
    head: &mut Vec<u8>,
    body: &mut Vec<u8>,
) -> Option<()> {
    head.clear();
    let mut length = 0;
    loop {
        let begin = head.len();
        if reader.read_until(b'\n', head).ok()? == 0 {
            return None;
        }
        let line = std::str::from_utf8(&head[begin..]).ok()?.trim();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    body.resize(length, 0);
    reader.read_exact(body).ok()
}

/// A 200 response.
pub fn ok(kind: &str, body: &str) -> Arc<[u8]> {
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    text.into_bytes().into()
}
