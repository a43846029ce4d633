//! A running server with everything that leads into it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, TokenScope, UserRole};
use support::client::Client;
use support::home::{TemporaryDirectory, add_token, write_config};
use support::http::{Answer, exchange, post};
use support::program::{Program as Server, printed, run};
#[cfg(feature = "relay")]
use support::relay_peers;

use hearth::service::people::{TokenRequest, new_token};

use super::reference::{OF_TOKEN, Person, PersonNumber, Role, Token};

/// How a command comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    WebSocket,
    Lines,
    Relay,
}

/// What windows are told of where the model's reply does not come word by word, which
/// makes up most of the time.
const WITHOUT_WORDS: [&str; 13] = [
    "chat.tool_call",
    "chat.tool_result",
    "chat.done",
    "chat.failed",
    "approval.requested",
    "approval.resolved",
    "message.created",
    "conversation.changed",
    "conversation.renamed",
    "conversation.shared",
    "conversation.deleted",
    "delivery.updated",
    "config.updated",
];

/// A program and what it signs in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// A token of this person.
    Own(PersonNumber, Token),
    /// The token that speaks for several, for this one.
    Bot(PersonNumber),
}

/// What a request came to: its data, or the code of its error.
pub type Answered = Result<Value, String>;

/// The server of one household, and clients that are opened as they are needed.
pub struct World {
    folder: TemporaryDirectory,
    program: Server,
    clients: HashMap<(PersonNumber, Token, Way), Client>,
    observers: HashMap<(PersonNumber, Token), Client>,
    /// The admin's connection that is told of every approval.
    judge: Option<Client>,
    tokens: HashMap<(PersonNumber, Token), String>,
    /// A token of the first person that speaks for these.
    bot: (String, Vec<(PersonNumber, String)>),
    /// Whether windows are told of every word of a reply.
    tells_words: bool,
    #[cfg(feature = "relay")]
    relay: relay::server::RelayServer,
    #[cfg(feature = "relay")]
    machine: Option<String>,
}

impl World {
    /// Starts a server with these people, webhook accounts and privacy setting.
    pub fn start(
        people: &[Person],
        accounts: &Value,
        conversations: &str,
        tells_words: bool,
    ) -> World {
        // Nothing here is about the disk, and in memory it takes seconds.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => TemporaryDirectory::within(memory),
            false => TemporaryDirectory::new(),
        };
        #[cfg(feature = "relay")]
        let relay = relay_peers::relay(|options| {
            options.rules.limits.connections_per_address = 1_000;
            options.rules.messages_per_second = 100_000;
        });
        #[allow(unused_mut)]
        let mut channels = json!([
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": accounts },
        ]);
        #[cfg(feature = "relay")]
        channels.as_array_mut().unwrap().push(json!({
            "name": "far", "type": "websocket", "auth_token": relay_peers::TOKEN,
            "url": format!("ws://{}/ws", relay.local_addr()),
        }));
        write_config(
            folder.path(),
            json!({
                "channels": channels,
                "openai_api": { "enabled": true },
            "mcp_api": { "enabled": true, "trusted": true },
                "mcp_api": { "enabled": true, "trusted": true },
                "privacy": { "conversations": conversations },
                "people": limits(people),
                "permission_mode": "ask",
                "tool_permissions": {
                    "remember": "allow", "recall": "allow", "search_conversations": "allow",
                },
                "tools": { "custom": [{
                    "name": "lamp", "description": "Switches a lamp.",
                    "parameters": { "note": "string" }, "command": ["cat"],
                    "trusted": true, "sandbox": false,
                }] },
                "limits": {
                    "commands_per_second": 1_000_000, "commands_burst": 1_000_000,
                    "webhook_per_second": 1_000_000, "webhook_burst": 1_000_000,
                    "connections": 10_000, "connections_per_address": 10_000,
                    "unauthenticated_per_address": 10_000,
                    // Most connections read only when it is their turn.
                    "ping_seconds": 3_600, "dead_seconds": 3_601, "auth_seconds": 600,
                },
                "log_level": "warn",
            }),
        );
        let people: Vec<(PersonNumber, Person)> = people.iter().cloned().enumerate().collect();
        let (tokens, bot) = make_people(folder.path(), &people);
        let program = Server::serve(folder.path());
        World {
            bot,
            folder,
            program,
            clients: HashMap::new(),
            observers: HashMap::new(),
            judge: None,
            tokens,
            tells_words,
            #[cfg(feature = "relay")]
            relay,
            #[cfg(feature = "relay")]
            machine: None,
        }
    }

    fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// Whether this person has a token of this kind.
    pub fn has_token(&self, person: PersonNumber, token: Token) -> bool {
        self.tokens.contains_key(&(person, token))
    }

    /// Sends a command and waits for its answer, past events.
    pub fn ask(
        &mut self,
        person: PersonNumber,
        token: Token,
        way: Way,
        request: &Value,
    ) -> Answered {
        if !self.clients.contains_key(&(person, token, way)) {
            let client = self.open(person, token, way);
            self.clients.insert((person, token, way), client);
        }
        let client = self.clients.get_mut(&(person, token, way)).unwrap();
        client.send(request);
        answered(client.response())
    }

    /// Sends a command on a connection of its own, whose answer comes later.
    pub fn begin(
        &mut self,
        person: PersonNumber,
        token: Token,
        way: Way,
        request: &Value,
    ) -> Client {
        let mut client = self.open(person, token, way);
        client.send(request);
        client
    }

    /// What the admin is asked next.
    pub fn asked(&mut self) -> Value {
        let mut judge = match self.judge.take() {
            Some(judge) => judge,
            None => panic!("nobody listens"),
        };
        let asked = judge.event("approval.requested");
        // Once this is answered, everybody else has been told, too.
        judge.ask(asked_for("approval.requested"));
        self.judge = Some(judge);
        asked
    }

    /// Has an admin listen for what is asked.
    pub fn listen(&mut self) {
        self.judge = Some(self.listener(0, "approval.requested"));
    }

    /// A connection that is told of these events.
    pub fn listener(&mut self, person: PersonNumber, event: &str) -> Client {
        let mut listener = self.open(person, Token::Whole, Way::WebSocket);
        listener.ask(asked_for(event));
        listener
    }

    fn open(&mut self, person: PersonNumber, token: Token, way: Way) -> Client {
        let mut client = match way {
            Way::WebSocket => Client::websocket(self.address()),
            Way::Lines => Client::lines(self.address()),
            Way::Relay => self.through_the_relay(),
        };
        client.authenticate(&self.tokens[&(person, token)]);
        client
    }

    #[cfg(feature = "relay")]
    fn through_the_relay(&mut self) -> Client {
        let machine = self.machine.take().unwrap_or_else(|| {
            let mut admin = Client::websocket(self.address());
            admin.authenticate(&self.tokens[&(0, Token::Whole)]);
            support::eventually("the machine is linked", || {
                let info = admin.ask(json!({ "type": "server_info" }));
                let is_linked = info["relays"][0]["state"] == "linked";
                is_linked.then(|| info["machine_id"].as_str().unwrap().to_owned())
            })
        });
        let relay = self.relay.local_addr();
        let request = relay_peers::with_token(relay, &format!("?machine_id={machine}"));
        self.machine = Some(machine);
        let socket = support::socket::connect(relay);
        let (websocket, _) = tungstenite::client(request, socket).unwrap();
        Client::WebSocket(Box::new(websocket))
    }

    #[cfg(not(feature = "relay"))]
    fn through_the_relay(&mut self) -> Client {
        Client::websocket(self.address())
    }

    /// What this person's open window was told since it was last asked.
    pub fn observed(&mut self, person: PersonNumber, token: Token) -> Vec<Value> {
        let is_new = !self.observers.contains_key(&(person, token));
        if is_new {
            let mut client = self.open(person, token, Way::WebSocket);
            let mut subscribe = json!({ "type": "subscribe" });
            if !self.tells_words {
                subscribe["events"] = json!(WITHOUT_WORDS);
            }
            client.ask(subscribe);
            self.observers.insert((person, token), client);
        }
        let client = self.observers.get_mut(&(person, token)).unwrap();
        // Its answer comes behind every event so far.
        client.send(&json!({ "type": "ping" }));
        until_answered(client)
    }

    /// The kept events after `since` that this person may see; none when some are no
    /// longer kept.
    pub fn replayed(
        &mut self,
        person: PersonNumber,
        token: Token,
        since: u64,
    ) -> Option<Vec<Value>> {
        let mut client = self.open(person, token, Way::WebSocket);
        let data = client.ask(json!({ "type": "subscribe", "since": since }));
        client.send(&json!({ "type": "ping" }));
        let events = until_answered(&mut client);
        (data["events_lost"] == false).then_some(events)
    }

    /// The number of the newest event.
    pub fn sequence(&mut self) -> u64 {
        let mut client = self.open(0, Token::Whole, Way::WebSocket);
        client.ask(json!({ "type": "subscribe" }))["seq"]
            .as_u64()
            .unwrap()
    }

    /// Whether the token of the bot speaks for this person.
    pub fn is_spoken_for(&self, person: PersonNumber) -> bool {
        self.bot.1.iter().any(|(number, _)| *number == person)
    }

    /// The headers of a program's request.
    fn headers(&self, program: Program) -> Vec<(&'static str, String)> {
        let (token, name) = match program {
            Program::Own(person, token) => (&self.tokens[&(person, token)], None),
            Program::Bot(person) => {
                let named = self.bot.1.iter().find(|(number, _)| *number == person);
                (&self.bot.0, named.map(|(_, name)| name.clone()))
            }
        };
        let mut headers = vec![("authorization", format!("Bearer {token}"))];
        headers.extend(name.map(|name| ("x-hearth-user", name)));
        headers
    }

    fn posted(&self, path: &str, headers: &[(&'static str, String)], body: &Value) -> Answer {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        post(self.address(), path, &headers, body)
    }

    /// Asks an interface of a model; returns the reply, or the status.
    pub fn complete(
        &mut self,
        program: Program,
        is_ollama: bool,
        chat: Option<&str>,
        messages: &Value,
    ) -> Answered {
        let mut headers = self.headers(program);
        headers.extend(chat.map(|chat| ("x-chat", chat.to_owned())));
        let body = json!({ "model": "hearth", "messages": messages, "stream": false });
        let path = match is_ollama {
            true => "/api/chat",
            false => "/v1/chat/completions",
        };
        let answer = self.posted(path, &headers, &body);
        match (answer.status, is_ollama) {
            (200, true) => Ok(answer.json()["message"]["content"].clone()),
            (200, false) => Ok(answer.json()["choices"][0]["message"]["content"].clone()),
            (status, _) => Err(status.to_string()),
        }
    }

    /// Has the model call the program's own tool `light`; returns the id of the call.
    pub fn called(&mut self, program: Program, messages: &Value) -> Answered {
        let tool = json!({ "type": "function", "function": { "name": "light" } });
        let body = json!({ "model": "hearth", "messages": messages, "tools": [tool] });
        let answer = self.posted("/v1/chat/completions", &self.headers(program), &body);
        match answer.status {
            200 => Ok(answer.json()["choices"][0]["message"]["tool_calls"][0]["id"].clone()),
            status => Err(status.to_string()),
        }
    }

    /// Asks over the Model Context Protocol.
    pub fn ask_over_mcp(&mut self, program: Program, chat: &str, message: &str) -> Answered {
        let mut headers = self.headers(program);
        headers.push(("accept", "application/json, text/event-stream".to_owned()));
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "ask", "arguments": { "message": message, "chat": chat } },
        });
        let answer = self.posted("/mcp", &headers, &body);
        match answer.status {
            200 => {
                let body = answer.body.as_str();
                let data = body.lines().find_map(|line| line.strip_prefix("data: "));
                let result: Value = serde_json::from_str(data.unwrap_or(body)).unwrap();
                Ok(result["result"]["content"][0]["text"].clone())
            }
            status => Err(status.to_string()),
        }
    }

    /// Puts a file over HTTP, with this name and content.
    pub fn put(&mut self, person: PersonNumber, token: Token, content: &str) -> Answered {
        let authorization = format!("Bearer {}", self.tokens[&(person, token)]);
        let headers = [("authorization", authorization.as_str())];
        let body = content.as_bytes();
        let answer = exchange(self.address(), "POST", "/attachments", &headers, body);
        match answer.status {
            201 => Ok(answer.json()["data"].clone()),
            _ => answered(answer.json()),
        }
    }

    /// Reads a file over HTTP.
    pub fn get(&mut self, person: PersonNumber, token: Token, file: &str) -> Answered {
        let authorization = format!("Bearer {}", self.tokens[&(person, token)]);
        let headers = [("authorization", authorization.as_str())];
        let path = format!("/attachments/{file}");
        let answer = exchange(self.address(), "GET", &path, &headers, b"");
        match answer.status {
            200 => Ok(json!(String::from_utf8(answer.body).unwrap())),
            _ => answered(answer.json()),
        }
    }

    /// Posts to a webhook and waits for the reply.
    pub fn post(&mut self, account: &str, body: &Value) -> Value {
        let path = format!("/in/{account}");
        let answer = post(self.address(), &path, &[("prefer", "wait=60")], body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }

    /// Posts to a webhook what somebody has to allow.
    pub fn post_and_leave(&mut self, account: &str, body: &Value) {
        let answer = post(self.address(), &format!("/in/{account}"), &[], body);
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    /// A person who was added while the server runs gets a token.
    pub fn added(&mut self, person: PersonNumber, name: &str) {
        let store = self.store();
        let user = store.user(name).unwrap().unwrap();
        let token = add_token(&store, &user, TokenScope::default());
        store.close();
        self.tokens.insert((person, Token::Whole), token);
    }

    fn store(&self) -> Store {
        Store::open(&self.folder.path().join("hearth.db"), Clock::system()).unwrap()
    }

    /// Exports everything, and imports it where nobody has said anything yet.
    pub fn move_house(&mut self, people: &[(PersonNumber, Person)]) {
        let old = self.folder.path();
        let file = old.join("household.jsonl");
        let path = file.to_str().unwrap();
        let exported = run(old, &["export", "--all", "--output", path]);
        assert!(exported.status.success(), "{}", printed(&exported));
        let folder = TemporaryDirectory::within(old.parent().unwrap());
        std::fs::copy(old.join("config.json"), folder.path().join("config.json")).unwrap();
        (self.tokens, self.bot) = make_people(folder.path(), people);
        let imported = run(folder.path(), &["import", path]);
        assert!(imported.status.success(), "{}", printed(&imported));
        self.clients.clear();
        self.observers.clear();
        self.judge = None;
        self.program = Server::serve(folder.path());
        self.folder = folder;
    }

    /// A person is gone: their connections are closed.
    pub fn removed(&mut self, person: PersonNumber) {
        for ((number, _, way), client) in &mut self.clients {
            if *number == person {
                let end = client.next();
                assert!(end.is_err(), "{way:?}: {end:?}");
            }
        }
        self.clients.retain(|(number, ..), _| *number != person);
        self.observers.retain(|(number, _), _| *number != person);
    }
}

fn asked_for(event: &str) -> Value {
    json!({ "type": "subscribe", "events": [event] })
}

fn until_answered(client: &mut Client) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let message = client.receive();
        if message.get("status").is_some() {
            return events;
        }
        events.push(message);
    }
}

pub fn answered(response: Value) -> Answered {
    match response["status"] == "ok" {
        true => Ok(response["data"].clone()),
        false => Err(response["code"].as_str().unwrap().to_owned()),
    }
}

/// What the configuration says about them.
fn limits(people: &[Person]) -> Value {
    let narrowed = people
        .iter()
        .filter(|one| one.tools.is_some() || one.approves.is_some())
        .map(|one| {
            let limits = json!({ "tools": one.tools, "approves": one.approves });
            (one.name.clone(), limits)
        });
    Value::Object(narrowed.collect())
}

/// The tokens of people, and one that speaks for them.
type Made = (
    HashMap<(PersonNumber, Token), String>,
    (String, Vec<(PersonNumber, String)>),
);

fn make_people(folder: &Path, people: &[(PersonNumber, Person)]) -> Made {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let mut tokens = HashMap::new();
    for (number, person) in people {
        let role = match person.role {
            Role::Viewer => UserRole::Viewer,
            Role::User => UserRole::User,
            Role::Admin => UserRole::Admin,
        };
        // Nobody signs in with a password here.
        let user = store.add_user(&person.name, role, "no hash").unwrap();
        for kind in Token::ALL {
            let scope = TokenScope {
                tools: (kind == Token::Tools).then(|| OF_TOKEN.map(str::to_owned).into()),
                household_only: kind == Token::Household,
            };
            let token = add_token(&store, &user, scope);
            tokens.insert((*number, kind), token);
        }
    }
    let others = people.iter().skip(1);
    let others = others.map(|(number, person)| (*number, person.name.clone()));
    let names: Vec<(PersonNumber, String)> = others.collect();
    let user = |name: &str| store.user(name).unwrap().unwrap();
    let request = TokenRequest {
        name: "bot".to_owned(),
        speaks_for: names.iter().map(|(_, name)| user(name).id).collect(),
        ..TokenRequest::default()
    };
    let (secret, bot) = new_token(&user(&people[0].1.name), request).unwrap();
    store.add_token(bot).unwrap();
    store.close();
    (tokens, (secret.expose().to_owned(), names))
}
