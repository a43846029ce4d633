//! A client of the command API, over WebSocket or JSON lines.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::time::Instant;

use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

use super::MAX_WAIT;
use super::schema::PROTOCOL;
use super::socket::{Socket, connect};

/// One connection; every wait has a deadline.
pub enum Client {
    WebSocket(Box<WebSocket<Socket>>),
    Lines(BufReader<Socket>),
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With this WebSocket close code.
    Code(u16),
    /// With the socket alone.
    Closed,
}

impl Client {
    pub fn websocket(address: SocketAddr) -> Client {
        let url = format!("ws://{address}/ws");
        let (websocket, _) = tungstenite::client(url, connect(address)).unwrap();
        Client::WebSocket(Box::new(websocket))
    }

    pub fn lines(address: SocketAddr) -> Client {
        Client::Lines(BufReader::new(connect(address)))
    }

    pub fn send(&mut self, value: &Value) {
        self.send_text(&value.to_string());
    }

    pub fn send_text(&mut self, text: &str) {
        match self {
            Client::WebSocket(websocket) => websocket.send(Message::text(text)).unwrap(),
            Client::Lines(lines) => lines
                .get_mut()
                .write_all(format!("{text}\n").as_bytes())
                .unwrap(),
        }
    }

    /// Sends a request unless the connection is gone.
    pub fn try_send(&mut self, value: &Value) -> bool {
        match self {
            Client::WebSocket(websocket) => {
                websocket.send(Message::text(value.to_string())).is_ok()
            }
            Client::Lines(lines) => lines
                .get_mut()
                .write_all(format!("{value}\n").as_bytes())
                .is_ok(),
        }
    }

    /// The next message, or how the connection ended. Each event fits the schema of the
    /// protocol.
    pub fn next(&mut self) -> Result<Value, End> {
        let message = self.next_unchecked()?;
        if message["type"] == "event" {
            let problems = PROTOCOL.event(&message);
            assert!(problems.is_empty(), "{problems:#?}: {message}");
        }
        Ok(message)
    }

    fn next_unchecked(&mut self) -> Result<Value, End> {
        let began = Instant::now();
        match self {
            // Pings alone would keep the socket's own deadline from passing.
            Client::WebSocket(websocket) => loop {
                assert!(began.elapsed() < MAX_WAIT, "no message came in time");
                match websocket.read() {
                    Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                    Ok(Message::Close(frame)) => {
                        let code = frame.map_or(CloseCode::Status, |frame| frame.code);
                        return Err(End::Code(code.into()));
                    }
                    Ok(_) => {}
                    Err(tungstenite::Error::Io(error)) if is_timeout(&error) => {
                        panic!("no message came in time")
                    }
                    Err(_) => return Err(End::Closed),
                }
            },
            Client::Lines(lines) => {
                let mut line = String::new();
                match lines.read_line(&mut line) {
                    Ok(0) => Err(End::Closed),
                    Ok(_) => Ok(serde_json::from_str(&line).unwrap()),
                    Err(error) if is_timeout(&error) => panic!("no line came in time"),
                    Err(_) => Err(End::Closed),
                }
            }
        }
    }

    /// The next message, which must come.
    pub fn receive(&mut self) -> Value {
        self.next()
            .unwrap_or_else(|end| panic!("the connection ended: {end:?}"))
    }

    /// The next response, past any events.
    pub fn response(&mut self) -> Value {
        self.past(|message| message.get("status").is_some())
    }

    /// The next event of this name, past everything else.
    pub fn event(&mut self, name: &str) -> Value {
        self.past(|message| message["event"] == name)
    }

    /// The next message like this one; those before it are dropped.
    pub fn past(&mut self, is_awaited: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let message = self.receive();
            if is_awaited(&message) {
                return message;
            }
            assert!(Instant::now() < deadline, "only others came: {message}");
        }
    }

    /// Sends a request and returns the data of its response. Both fit the schema of the
    /// protocol.
    pub fn ask(&mut self, request: Value) -> Value {
        self.send(&request);
        let mut response = self.response();
        assert_eq!(response["status"], "ok", "{request}: {response}");
        // Responses to requests with an id come as soon as they are ready.
        if request["id"] == response["id"] {
            let command = request["type"].as_str().unwrap();
            let mut problems = PROTOCOL.request(command, &request);
            problems.extend(PROTOCOL.response(command, &response["data"]));
            assert!(problems.is_empty(), "{problems:#?}: {request}: {response}");
        }
        response["data"].take()
    }

    /// Sends a request and returns the code of its error.
    pub fn refused(&mut self, request: Value) -> String {
        self.send(&request);
        let response = self.response();
        assert_eq!(response["status"], "error", "{request}: {response}");
        response["code"].as_str().unwrap().to_owned()
    }

    pub fn authenticate(&mut self, token: &str) -> Value {
        self.ask(json!({ "type": "auth", "token": token }))
    }

    /// A chat whose turn is stopped once it has called a tool and `began`:
    /// what it was answered.
    pub fn chat_and_cancel(&mut self, message: &str, began: impl FnOnce()) -> Value {
        self.ask(json!({ "type": "subscribe", "events": ["chat.tool_call"] }));
        self.send(&json!({ "type": "chat", "message": message, "id": "chat" }));
        let turn = self.event("chat.tool_call")["turn_id"].clone();
        began();
        self.send(&json!({ "type": "cancel", "turn_id": turn, "id": "cancel" }));
        loop {
            let message = self.response();
            if message["id"] == "chat" {
                return message;
            }
        }
    }

    /// A chat without streaming: the reply's text and the whole data.
    pub fn chat(&mut self, message: &str) -> Value {
        self.ask(json!({ "type": "chat", "message": message }))
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
    )
}
