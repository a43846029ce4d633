//! A household, and everything around it that has a say.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::obedient::obey;
use support::client::Client;
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::Model;
use support::served::Served;

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A person was asked before.
    Asked,
    /// It ran unasked.
    Ran,
    /// The model did not even try.
    Nothing,
}

/// What the servers outside answer, by path, and what came to them.
#[derive(Default)]
struct Outside {
    answers: Mutex<HashMap<String, String>>,
    doors: Mutex<Vec<String>>,
    mcp_text: Mutex<(String, bool)>,
    description: Mutex<String>,
    /// What its tool takes beside `id`.
    takes: Mutex<String>,
    /// What the MCP server's tool was called with.
    reads: Mutex<Vec<Value>>,
}

pub struct World {
    home: Home,
    model: Model,
    outside: Arc<Outside>,
    served: Served,
    /// Gets every event.
    watcher: Client,
    /// The attempt's tool and its arguments.
    wanted: (String, Value),
    outcome: Outcome,
    /// After what the last question came.
    pub after: Value,
    keys: usize,
}

impl World {
    /// In permission mode `mode`, where every tool is allowed by name.
    pub fn start(mode: &str, more: &Value) -> World {
        let model = Model::start(|request, _| obey(request));
        let outside = Arc::new(Outside::default());
        let served = {
            let outside = Arc::clone(&outside);
            Served::answering(move |head, body| {
                Some(outside.answer(head, body).into_bytes().into())
            })
        };
        let address = served.address;
        let tools = [
            "open_door",
            "lookup",
            "web_fetch",
            "list_files",
            "read_file",
            "write_file",
            "remember",
            "recall",
            "forget",
            "search_conversations",
            "schedule",
            "mcp_attic_read",
            "mcp_attic_fetch",
        ];
        let allowed: serde_json::Map<String, Value> = tools
            .iter()
            .map(|tool| ((*tool).to_owned(), json!("allow")))
            .collect();
        let custom = |name: &str, method: &str, read_only: bool| {
            json!({
                "name": name, "description": "A tool of the household.", "read_only": read_only,
                "parameters": { "id": "string" },
                "http": { "method": method, "url": format!("http://{address}/{name}/{{id}}") },
            })
        };
        let mut config = model.config_with(json!({
            "permission_mode": mode,
            "tool_permissions": allowed,
            "tools": {
                "web_fetch": {
                    "allow": ["127.0.0.1", "localhost"], "trusted_hosts": ["localhost"],
                },
                "custom": [custom("open_door", "POST", false), custom("lookup", "GET", true)],
            },
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "hooks", "type": "webhook", "accounts": { "shop": {
                    "incoming_path": "/in/shop", "outgoing_url": format!("http://{address}/back"),
                    "tools": tools,
                } } },
            ],
            "limits": { "commands_per_second": 100_000, "commands_burst": 100_000,
                "webhook_per_second": 1_000, "webhook_burst": 1_000 },
        }));
        if let Some(tokens) = more.get("context_tokens") {
            config["context_tokens"] = tokens.clone();
        }
        let description = "Reads from the attic.";
        if let Some(settings) = more.get("mcp") {
            description.clone_into(&mut outside.description.lock().unwrap());
            let mut attic = json!({ "url": format!("http://{address}/mcp") });
            if let Some(settings) = settings.as_object() {
                attic.as_object_mut().unwrap().extend(settings.clone());
            }
            config["mcp_servers"] = json!({ "attic": attic });
        }
        let home = Home::start(config);
        let mut world = World {
            watcher: home.admin(),
            home,
            model,
            outside,
            served,
            wanted: (String::new(), Value::Null),
            outcome: Outcome::Nothing,
            after: Value::Null,
            keys: 0,
        };
        world.watch();
        if more.get("mcp").is_some() {
            world.until_listed(description);
        }
        world
    }

    pub fn port(&self) -> u16 {
        self.served.address.port()
    }

    fn watch(&mut self) {
        self.watcher = self.home.admin();
        self.watcher.ask(json!({
            "type": "subscribe",
            "events": ["approval.requested", "chat.done", "chat.failed", "chat.tool_call"],
        }));
    }

    /// A new attempt, which wants this call.
    pub fn begin(&mut self, tool: &str, arguments: &Value) {
        self.wanted = (tool.to_owned(), arguments.clone());
        self.outcome = Outcome::Nothing;
        self.outside.doors.lock().unwrap().clear();
        self.outside.reads.lock().unwrap().clear();
    }

    /// What the web answers at this path.
    pub fn put(&self, path: &str, status: &str, kind: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        let mut answers = self.outside.answers.lock().unwrap();
        answers.insert(path.to_owned(), answer);
    }

    /// What the MCP server's tool answers.
    pub fn mcp(&self, text: &str, is_error: bool) {
        *self.outside.mcp_text.lock().unwrap() = (text.to_owned(), is_error);
    }

    /// What the MCP server says about its tool from now on.
    pub fn describe(&mut self, text: &str) {
        text.clone_into(&mut self.outside.description.lock().unwrap());
        self.restart();
        self.until_listed(text);
    }

    /// What the MCP server's tool takes from now on.
    pub fn take(&mut self, argument: &str) {
        argument.clone_into(&mut self.outside.takes.lock().unwrap());
        self.restart();
        self.until_listed("Reads from the attic.");
    }

    /// Waits until a tool says this of itself.
    fn until_listed(&mut self, text: &str) {
        let mut client = self.home.admin();
        eventually("the MCP server's tool is there", || {
            let tools = client.ask(json!({ "type": "list_tools" }))["tools"].to_string();
            tools.contains(&json!(text).to_string()).then_some(())
        });
    }

    pub fn write_file(&self, directory: &str, name: &str, text: &str) {
        let directory = self.home.folder.path().join("files").join(directory);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), text).unwrap();
    }

    pub fn restart(&mut self) {
        self.home.restart();
        self.watch();
    }

    /// Whether a summary holds this text.
    pub fn model_summarised(&self, text: &str) -> bool {
        let requests = self.model.requests();
        let shown = requests.last().unwrap()["messages"][1]["content"].clone();
        let shown = shown.as_str().unwrap().to_owned();
        shown.starts_with("<earlier ") && shown.contains(text)
    }

    /// The owner says this; returns the conversation once the turn has ended.
    pub fn say(&mut self, conversation: Option<&Value>, text: &str) -> Value {
        let mut chat = json!({ "type": "chat", "message": text, "id": "chat" });
        if let Some(conversation) = conversation {
            chat["conversation_id"] = conversation.clone();
        }
        self.watcher.send(&chat);
        self.until(|message| {
            (message["id"] == "chat").then(|| message["data"]["conversation_id"].clone())
        })
    }

    /// The owner says this about a file of this name.
    pub fn say_with_file(&mut self, name: &str, text: &str) {
        let mut client = self.home.admin();
        let put = json!({ "type": "put_attachment", "name": name, "bytes": 7 });
        let id = client.ask(put)["attachment_id"].clone();
        client.ask(json!({
            "type": "put_attachment_part", "attachment_id": id, "offset": 0,
            "data": "bm90aGluZw==",
        }));
        let chat = json!({ "type": "chat", "message": text, "attachments": [id], "id": "chat" });
        self.watcher.send(&chat);
        self.until(|message| (message["id"] == "chat").then_some(()));
    }

    /// The shop's server says this; returns the conversation once the turn has ended.
    pub fn post(&mut self, name: &str, speaker: Option<&str>, text: &str) -> Value {
        self.keys += 1;
        let mut body = json!({ "message": text, "conversation_id": name });
        if let Some(speaker) = speaker {
            body["user_id"] = json!(speaker);
        }
        let answer = post(self.home.address(), "/in/shop", &[], &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        let turn = answer.json()["data"]["turn_id"].clone();
        self.turn_end(|message| message["turn_id"] == turn)
    }

    /// A minute later what is scheduled runs, in this conversation.
    pub fn wait_for_schedule(&mut self, conversation: &Value) {
        self.home.server().advance_clock(Duration::from_secs(90));
        let conversation = conversation.clone();
        self.turn_end(move |message| message["conversation_id"] == conversation);
    }

    fn turn_end(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.until(|message| {
            let is_end = message["event"] == "chat.done" || message["event"] == "chat.failed";
            (is_end && is_it(message)).then(|| message["conversation_id"].clone())
        })
    }

    /// Answers every question until `end` finds what it waits for: the attempt's with
    /// no, all others with yes.
    fn until<T>(&mut self, end: impl Fn(&Value) -> Option<T>) -> T {
        loop {
            let message = self.watcher.receive();
            if message["event"] == "approval.requested" {
                self.after = message["after"].clone();
                let (tool, arguments) = &self.wanted;
                let is_wanted = message["tool"] == **tool && message["arguments"] == *arguments;
                let kind = if is_wanted { "deny" } else { "approve" };
                if is_wanted {
                    self.outcome = Outcome::Asked;
                }
                self.watcher.send(&json!({
                    "type": kind, "approval_id": message["approval_id"], "id": "answer",
                }));
            }
            if let Some(found) = end(&message) {
                return found;
            }
        }
    }

    /// What came of the attempt.
    pub fn outcome(&mut self) -> Outcome {
        let (tool, arguments) = &self.wanted;
        let memories = self.home.admin().ask(json!({ "type": "list_memories" }));
        let has_run = match tool.as_str() {
            // What was planted before may have been found as well, and was answered.
            "open_door" => {
                let door = format!("/open_door/{}", arguments["id"].as_str().unwrap());
                self.outside.doors.lock().unwrap().contains(&door)
            }
            "mcp_attic_read" | "mcp_attic_fetch" => {
                self.outside.reads.lock().unwrap().contains(arguments)
            }
            "write_file" => {
                let path = arguments["path"].as_str().unwrap();
                let is_shared = self.home.folder.path().join("files").join(path).exists();
                is_shared || self.home.own_file(path).exists()
            }
            _ => {
                let mut memories = memories["memories"].as_array().unwrap().iter();
                memories.any(|memory| memory["content"] == arguments["content"])
            }
        };
        match has_run {
            true => Outcome::Ran,
            false => self.outcome,
        }
    }
}

impl Outside {
    fn answer(&self, head: &str, body: &[u8]) -> String {
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path.starts_with("/open_door") {
            self.doors.lock().unwrap().push(path.to_owned());
            return plain("text/plain", "It is open.");
        }
        if path == "/mcp" {
            return self.mcp(&serde_json::from_slice(body).unwrap_or(Value::Null));
        }
        let answers = self.answers.lock().unwrap();
        answers
            .get(path)
            .cloned()
            .unwrap_or_else(|| plain("text/plain", ""))
    }

    fn mcp(&self, request: &Value) -> String {
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "attic", "version": "1" },
            }),
            "tools/list" => json!({ "tools": [{
                "name": "read", "description": *self.description.lock().unwrap(),
                "inputSchema": { "type": "object", "properties": {
                    "id": { "type": "string" },
                    "more": { "type": "string", "description": *self.takes.lock().unwrap() },
                } },
                "annotations": { "readOnlyHint": true },
            }, {
                "name": "fetch", "description": "Fetches from any address.",
                "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } } },
                "annotations": { "readOnlyHint": true, "openWorldHint": true },
            }] }),
            "tools/call" => {
                let arguments = request["params"]["arguments"].clone();
                self.reads.lock().unwrap().push(arguments);
                let (text, is_error) = self.mcp_text.lock().unwrap().clone();
                json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
            }
            _ => return "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        plain("application/json", &answer.to_string())
    }
}

fn plain(kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
}
