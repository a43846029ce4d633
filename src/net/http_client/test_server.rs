//! A scripted HTTP server on loopback: what it will say is written down before,
//! what it heard is kept.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// One thing that the server does in answer to a request.
#[derive(Clone)]
pub enum Act {
    Send(Vec<u8>),
    /// Lets time pass between two pieces.
    Pause(Duration),
    /// Says nothing more until the client leaves.
    Hang,
    /// Closes the connection.
    Close,
}

/// A request as it arrived.
#[derive(Clone)]
pub struct Heard {
    pub head: String,
    pub body: Vec<u8>,
    /// Counts the connections.
    pub connection: usize,
}

impl Heard {
    /// The value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub struct TestServer {
    pub address: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    current: Arc<Mutex<Option<TcpStream>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Serves one script for each request, then closes every connection.
    pub fn new(scripts: Vec<Vec<Act>>) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let current = Arc::new(Mutex::new(None));
        let stopping = Arc::new(AtomicBool::new(false));
        let (kept, connection, stop) = (heard.clone(), current.clone(), stopping.clone());
        let thread = thread::Builder::new()
            .name("test-server".to_owned())
            .spawn(move || {
                let mut scripts = scripts.into_iter();
                for (number, stream) in listener.incoming().enumerate() {
                    let stream = stream.unwrap();
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    stream.set_nodelay(true).unwrap();
                    *connection.lock().unwrap() = Some(stream.try_clone().unwrap());
                    serve(&stream, number, &mut scripts, &kept);
                    // Dropping it would not close it: the clone is still open.
                    let _ = stream.shutdown(Shutdown::Both);
                }
            })
            .unwrap();
        TestServer {
            address,
            heard,
            current,
            stopping,
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        if let Some(stream) = self.current.lock().unwrap().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn serve(
    mut stream: &TcpStream,
    connection: usize,
    scripts: &mut impl Iterator<Item = Vec<Act>>,
    kept: &Mutex<Vec<Heard>>,
) {
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_request(&mut reader) {
        kept.lock().unwrap().push(Heard {
            head,
            body,
            connection,
        });
        let Some(script) = scripts.next() else {
            return;
        };
        for act in script {
            match act {
                Act::Send(bytes) => {
                    if stream.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Act::Pause(duration) => thread::sleep(duration),
                Act::Hang => {
                    let _ = reader.read(&mut [0]);
                    return;
                }
                Act::Close => return,
            }
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().unwrap())
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// A whole answer with a length.
pub fn whole(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
    vec![Act::Send(text.into_bytes())]
}

/// A whole answer in JSON.
pub fn json(status: u16, body: &Value) -> Vec<Act> {
    whole(
        status,
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// The head of a chunked event stream.
pub fn stream_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One chunk of it.
pub fn chunk(text: &str) -> Act {
    Act::Send(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes())
}

/// A whole event stream of these data lines, in chunks of `size` bytes.
pub fn stream(data: &[Value], done: bool, size: usize) -> Vec<Act> {
    let mut text = String::from(": hello\n\n");
    for data in data {
        text.push_str(&format!("data: {data}\n\n"));
    }
    if done {
        text.push_str("data: [DONE]\n\n");
    }
    let mut bytes = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    vec![stream_head(), Act::Send(bytes)]
}
