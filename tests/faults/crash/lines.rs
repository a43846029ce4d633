//! A client that speaks JSON lines and gives up nothing when the server dies:
//! every failure is a value.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lives::check_refusal;
use support::MAX_WAIT;
use support::socket::Socket;

/// How long one look for a response takes.
const LOOK: Duration = Duration::from_millis(50);

/// An authenticated connection.
pub struct Lines {
    reader: BufReader<Socket>,
    partial: String,
    responses: HashMap<i64, Value>,
    last: i64,
    /// Whether the connection is gone.
    pub is_over: bool,
}

impl Lines {
    pub fn open(address: SocketAddr, token: &str) -> Result<Lines, String> {
        let stream = TcpStream::connect_timeout(&address, MAX_WAIT).map_err(|e| e.to_string())?;
        let socket = Socket::new(stream);
        socket.set_read_timeout(Some(LOOK)).unwrap();
        let mut lines = Lines {
            reader: BufReader::new(socket),
            partial: String::new(),
            responses: HashMap::new(),
            last: 0,
            is_over: false,
        };
        lines.ask(json!({ "type": "auth", "token": token }))?;
        Ok(lines)
    }

    /// Sends a request; its response is asked for by the number.
    pub fn send(&mut self, mut request: Value) -> Result<i64, String> {
        self.last += 1;
        request["id"] = json!(self.last);
        let text = format!("{request}\n");
        let sent = self.reader.get_mut().write_all(text.as_bytes());
        sent.map_err(|error| self.over(format!("not sent: {error}")))?;
        Ok(self.last)
    }

    /// The response to a request, if it comes soon.
    pub fn response(&mut self, request: i64) -> Result<Option<Value>, String> {
        loop {
            if let Some(response) = self.responses.remove(&request) {
                return Ok(Some(response));
            }
            match self.reader.read_line(&mut self.partial) {
                Ok(0) => return Err(self.over("the connection was closed".to_owned())),
                Ok(_) => {
                    let value: Value = serde_json::from_str(&self.partial)
                        .map_err(|error| format!("{error}: {}", self.partial))?;
                    self.partial.clear();
                    if let Some(id) = value["id"].as_i64() {
                        self.responses.insert(id, value);
                    }
                }
                Err(error) if is_timeout(error.kind()) => return Ok(None),
                Err(error) => return Err(self.over(error.to_string())),
            }
        }
    }

    fn over(&mut self, why: String) -> String {
        self.is_over = true;
        why
    }

    /// Sends a request and waits for the data of its response.
    pub fn ask(&mut self, request: Value) -> Result<Value, String> {
        let number = self.send(request)?;
        let deadline = Instant::now() + MAX_WAIT;
        while Instant::now() < deadline {
            if let Some(mut response) = self.response(number)? {
                if response["status"] == "ok" {
                    return Ok(response["data"].take());
                }
                check_refusal(&response);
                return Err(response.to_string());
            }
        }
        Err(format!("no response within {MAX_WAIT:?}"))
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
