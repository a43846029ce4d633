//! The life of files: one over HTTP, one in parts, and a message that carries both.

use std::net::SocketAddr;
use std::path::PathBuf;

use base::ids::AttachmentId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::{count, look_into};
use super::household::{Household, Template};
use super::lines::Lines;
use super::lives::{Life, check_refusal};
use support::MAX_WAIT;

/// Bytes of a part.
const PART: usize = 256 * 1024;

/// Two files and their message.
pub struct Attachments {
    household: Household,
    token: String,
    address: Option<SocketAddr>,
    agent: ureq::Agent,
    client: Option<Lines>,
    /// The ids of the files that were acknowledged: over HTTP, and in parts.
    files: [Option<String>; 2],
    /// One that was announced, and not acknowledged yet.
    announced: Option<String>,
    /// The number of the chat that waits for its response.
    asked: Option<i64>,
    response: Option<Value>,
    is_confirmed: bool,
}

impl Attachments {
    pub fn begin(template: &Template) -> Attachments {
        // A file is text from outside: otherwise the tools would ask.
        let more = json!({ "permission_mode": "allow" });
        Attachments {
            household: Household::new(template, more, false),
            token: template.tokens.user.clone(),
            address: None,
            agent: ureq::Agent::config_builder()
                .http_status_as_error(false)
                .proxy(None)
                .timeout_global(Some(MAX_WAIT))
                .build()
                .into(),
            client: None,
            files: [None, None],
            announced: None,
            asked: None,
            response: None,
            is_confirmed: false,
        }
    }

    fn url(&self, path: &str) -> String {
        let address = self.address.expect("it was connected");
        format!("http://{address}{path}")
    }

    /// The acknowledged id of a file that was sent over HTTP.
    fn post(&self) -> Result<String, String> {
        let request = self
            .agent
            .post(self.url("/attachments"))
            .header("authorization", format!("Bearer {}", self.token));
        let mut answer = request
            .send(&content(0)[..])
            .map_err(|error| error.to_string())?;
        let text = answer.body_mut().read_to_string();
        let text = text.map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match answer.status().as_u16() {
            201 => Ok(value["data"]["attachment_id"].as_str().unwrap().to_owned()),
            status => {
                assert!(status >= 500, "{status}: {value}");
                check_refusal(&value);
                Err(value.to_string())
            }
        }
    }

    /// Sends a file in parts, from where it was left.
    fn put(&mut self) -> Result<String, String> {
        let client = self.client.as_mut().expect("it is connected");
        let file = content(1);
        let id = match &self.announced {
            Some(id) => id.clone(),
            None => {
                let request = json!({
                    "type": "put_attachment", "name": "parts", "bytes": file.len(),
                });
                let id = client.ask(request)?["attachment_id"].clone();
                let id = id.as_str().unwrap().to_owned();
                self.announced = Some(id.clone());
                id
            }
        };
        loop {
            let part = |start: usize, data: &[u8]| {
                json!({
                    "type": "put_attachment_part", "attachment_id": id, "offset": start,
                    "data": STANDARD.encode(data),
                })
            };
            let known = client.ask(part(0, b""))?;
            let start = known["received"].as_u64().unwrap() as usize;
            let end = (start + PART).min(file.len());
            if known["complete"] == true {
                return Ok(id);
            }
            client.ask(part(start, &file[start..end]))?;
        }
    }

    fn chat(&mut self) -> Result<(), String> {
        let client = self.client.as_mut().expect("it is connected");
        let asked = match self.asked {
            Some(asked) => asked,
            None => client.send(json!({
                "type": "chat", "message": "Ring and switch.", "idempotency_key": "once",
                "attachments": self.files,
            }))?,
        };
        self.asked = Some(asked);
        let Some(response) = client.response(asked)? else {
            return Err("no response to the chat".to_owned());
        };
        self.asked = None;
        if response["status"] != "ok" {
            check_refusal(&response);
            // A turn whose commit failed is not found; a file must be.
            let text = response["error"].as_str().unwrap_or_default();
            assert!(!text.contains("no attachment"), "a file is lost: {text}");
            self.is_confirmed = self.household.has_failed();
            return Err(response.to_string());
        }
        let turn = response["data"]["turn_id"].clone();
        if let Some(earlier) = &self.response {
            assert_eq!(*earlier, turn, "the same key has another turn");
        }
        self.response = Some(turn);
        self.is_confirmed = true;
        Ok(())
    }

    fn go_on(&mut self) -> Result<(), String> {
        if self.files[0].is_none() {
            self.files[0] = Some(self.post()?);
        }
        if self.files[1].is_none() {
            self.files[1] = Some(self.put()?);
        }
        self.chat()
    }
}

/// A file of three pieces, other for each number.
fn content(number: u8) -> Vec<u8> {
    (0..2 * PART as u32 + 999)
        .map(|place| (place * 7 / 3) as u8 ^ number)
        .collect()
}

impl Life for Attachments {
    fn folder(&self) -> PathBuf {
        self.household.path()
    }

    fn has_failed(&self) -> bool {
        self.household.has_failed()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        self.address = Some(address);
        self.client = Some(Lines::open(address, &self.token)?);
        self.asked = None;
        // The connection is kept, and with it its thread.
        let health = self.agent.get(self.url("/health")).call();
        let mut health = health.map_err(|error| error.to_string())?;
        let read = health.body_mut().read_to_string();
        read.map(drop).map_err(|error| error.to_string())
    }

    fn advance(&mut self) -> Result<(), String> {
        if self.is_confirmed {
            return Ok(());
        }
        let done = self.go_on();
        if done.is_err() && self.client.as_ref().is_some_and(|client| client.is_over) {
            self.connect(self.address.expect("it was connected"))?;
        }
        done
    }

    fn restarted(&mut self) {
        self.is_confirmed = false;
    }

    fn check(&mut self) {
        let turn = self.response.as_ref().and_then(Value::as_str);
        self.household.check_one_turn(turn);
        self.household.check_effects();
        let database = look_into(self.household.folder.path());
        let carried = "SELECT count(*) FROM attachments WHERE message_id IS NOT NULL";
        assert_eq!(count(&database, carried), 2, "files of the message");
        let counted = "SELECT (SELECT value FROM meta WHERE key = 'attachment_bytes')
             - (SELECT ifnull(sum(received), 0) FROM attachments)";
        assert_eq!(count(&database, counted), 0, "the space that is counted");
        for (number, id) in self.files.iter().enumerate() {
            let id = id.as_ref().expect("it was acknowledged");
            let id = id.parse::<AttachmentId>().unwrap().as_i64();
            let sql = "SELECT p.data FROM attachments a
                 JOIN messages m ON m.id = a.message_id AND m.attachment_count = 2
                 JOIN attachment_pieces p ON p.attachment_id = a.id
                 WHERE a.id = ? AND a.media_type IS NOT NULL ORDER BY p.start";
            let mut statement = database.prepare(sql).unwrap();
            let pieces = statement.query_map([id], |row| row.get::<_, Vec<u8>>(0));
            let pieces: Vec<Vec<u8>> = pieces.unwrap().map(Result::unwrap).collect();
            assert!(
                pieces.concat() == content(number as u8),
                "{id} is not whole"
            );
        }
    }
}
