//! A client that chats through a relay, and goes on after its line was lost.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use base::ids::MachineId;
use base::secret::random_fraction;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::public_key::PublicKey;
use relay::noise::{Initiator, Purpose, Secured};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use support::relay_peers::{TOKEN, request};
use support::socket::{Socket, connect};

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// What went wrong on a line, for the messages of a test.
type Lost = String;

/// Someone with one conversation on one machine.
pub struct Person {
    pub number: usize,
    balancer: SocketAddr,
    machine: MachineId,
    token: String,
    is_hidden: bool,
    line: Option<Line>,
    conversation: Option<String>,
    /// Each message that was answered: what was said, the reply and its id.
    pub acknowledged: Vec<Acknowledged>,
    /// How often a line was opened.
    pub lines: usize,
}

/// A chat that was answered.
#[derive(Debug)]
pub struct Acknowledged {
    pub said: String,
    pub response: String,
    pub message_id: String,
}

struct Line {
    socket: WebSocket<Socket>,
    secured: Option<Secured>,
}

impl Person {
    /// Every second person is one whom the relay cannot read.
    pub fn new(number: usize, balancer: SocketAddr, machine: &MachineId, token: &str) -> Person {
        Person {
            number,
            balancer,
            machine: machine.clone(),
            token: token.to_owned(),
            is_hidden: number.is_multiple_of(2),
            line: None,
            conversation: None,
            acknowledged: Vec::new(),
            lines: 0,
        }
    }

    /// Says the next message until it is answered, over as many lines as it
    /// takes, always with the same key.
    pub fn chat(&mut self, deadline: Instant) {
        let said = format!("person {} message {}", self.number, self.acknowledged.len());
        let mut chat = json!({
            "type": "chat", "message": said, "idempotency_key": said,
        });
        if let Some(conversation) = &self.conversation {
            chat["conversation_id"] = json!(conversation);
        }
        let data = self.ask(&chat, deadline);
        let text = |field: &str| data[field].as_str().unwrap().to_owned();
        self.conversation = Some(text("conversation_id"));
        self.acknowledged.push(Acknowledged {
            said,
            response: text("response"),
            message_id: text("message_id"),
        });
    }

    /// The whole conversation, as the machine has it.
    pub fn messages(&mut self, deadline: Instant) -> Vec<Value> {
        let request = json!({
            "type": "get_messages", "conversation_id": self.conversation, "limit": 500,
        });
        let data = self.ask(&request, deadline);
        assert_eq!(data["has_more"], false);
        data["messages"].as_array().unwrap().clone()
    }

    /// Hangs up.
    pub fn leave(&mut self) {
        if let Some(mut line) = self.line.take() {
            let _ = line.socket.close(None);
        }
    }

    fn ask(&mut self, request: &Value, deadline: Instant) -> Value {
        let mut most = FIRST_WAIT;
        loop {
            let lost = match self.try_ask(request) {
                Ok(data) => return data,
                Err(lost) => lost,
            };
            self.line = None;
            assert!(
                Instant::now() < deadline,
                "person {}: {request} is not answered: {lost}",
                self.number
            );
            thread::park_timeout(most.mul_f64(random_fraction()));
            most = (most * 2).min(LONGEST_WAIT);
        }
    }

    fn try_ask(&mut self, request: &Value) -> Result<Value, Lost> {
        if self.line.is_none() {
            self.line = Some(self.open()?);
            self.lines += 1;
        }
        let line = self.line.as_mut().expect("it was opened just now");
        line.ask(request)
    }

    fn open(&self) -> Result<Line, Lost> {
        let request = request(self.balancer, &format!("?machine_id={}", self.machine))
            .with_header("Authorization", format!("Bearer {TOKEN}"))
            // Each comes from elsewhere, as the relays see it.
            .with_header(
                "X-Forwarded-For",
                format!("10.1.{}.{}", self.number / 250, self.number % 250 + 1),
            );
        let (socket, _) =
            tungstenite::client(request, connect(self.balancer)).map_err(|e| e.to_string())?;
        let mut line = Line {
            socket,
            secured: None,
        };
        if self.is_hidden {
            line.hide(&self.machine)?;
        }
        line.ask(&json!({ "type": "auth", "token": self.token }))?;
        Ok(line)
    }
}

impl Line {
    /// Agrees on keys that the relay does not know.
    fn hide(&mut self, machine: &MachineId) -> Result<(), Lost> {
        let told = self.ask(&json!({ "type": "machine_key" }))?;
        let key = PublicKey::parse("public_key", told["public_key"].as_str().unwrap()).unwrap();
        assert_eq!(key.machine_id(), *machine);
        let (initiator, first) = Initiator::begin(Purpose::Client, &key).unwrap();
        let answer = self.ask(&json!({ "type": "secure", "noise": STANDARD.encode(first) }))?;
        let noise = STANDARD.decode(answer["noise"].as_str().unwrap()).unwrap();
        self.secured = Some(initiator.finish(&noise).unwrap());
        Ok(())
    }

    fn ask(&mut self, request: &Value) -> Result<Value, Lost> {
        self.send(&request.to_string())?;
        let answer = self.receive()?;
        if answer["status"] == "ok" {
            return Ok(answer["data"].clone());
        }
        // The relay's and the machine's ways to say: not now.
        let passing = ["not_found", "server_error", "rate_limited"];
        let code = answer["code"].as_str().unwrap();
        assert!(passing.contains(&code), "{request}: {answer}");
        Err(answer.to_string())
    }

    fn send(&mut self, text: &str) -> Result<(), Lost> {
        let Some(secured) = &mut self.secured else {
            let sent = self.socket.send(Message::text(text));
            return sent.map_err(|error| error.to_string());
        };
        let mut messages = Vec::new();
        secured
            .seal(text, &mut |message| messages.push(message))
            .unwrap();
        for message in messages {
            let sent = self.socket.send(Message::binary(message));
            sent.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Value, Lost> {
        loop {
            let message = self.socket.read().map_err(|error| error.to_string())?;
            let text = match (message, &mut self.secured) {
                (Message::Text(text), None) => text.to_string(),
                (Message::Binary(bytes), Some(secured)) => match secured.open(&bytes).unwrap() {
                    Some(text) => text,
                    None => continue,
                },
                // The relay itself can only speak plainly.
                (Message::Text(text), Some(_)) => return Err(text.to_string()),
                (Message::Close(frame), _) => return Err(format!("closed: {frame:?}")),
                _ => continue,
            };
            return Ok(serde_json::from_str(&text).unwrap());
        }
    }
}
