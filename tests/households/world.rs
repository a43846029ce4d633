//! A running server with everything that leads into it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, TokenScope, UserRole};
use support::client::Client;
use support::home::{TemporaryDirectory, add_token, write_config};
use support::http::{exchange, post};
use support::program::Program;
#[cfg(feature = "relay")]
use support::relay_peers;

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

/// What a request came to: its data, or the code of its error.
pub type Answered = Result<Value, String>;

/// The server of one household, and clients that are opened as they are needed.
pub struct World {
    _folder: TemporaryDirectory,
    program: Program,
    clients: HashMap<(PersonNumber, Token, Way), Client>,
    observers: HashMap<(PersonNumber, Token), Client>,
    /// The admin's connection that is told of every approval.
    judge: Option<Client>,
    tokens: HashMap<(PersonNumber, Token), String>,
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
            options.connections_per_address = 1_000;
            options.messages_per_second = 100_000;
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
        let tokens = make_people(folder.path(), people);
        let program = Program::serve(folder.path());
        World {
            _folder: folder,
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

    /// Asks the interface of OpenAI; returns the reply.
    pub fn complete(&mut self, person: PersonNumber, messages: &Value) -> Answered {
        let authorization = format!("Bearer {}", self.tokens[&(person, Token::Whole)]);
        let body = json!({ "model": "hearth", "messages": messages });
        let headers = [("authorization", authorization.as_str())];
        let answer = post(self.address(), "/v1/chat/completions", &headers, &body);
        match answer.status {
            200 => Ok(answer.json()["choices"][0]["message"]["content"].clone()),
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
        let request = json!({ "type": "create_token", "name": "test", "user": name });
        let made = self.ask(0, Token::Whole, Way::WebSocket, &request).unwrap();
        let token = made["token"].as_str().unwrap().to_owned();
        self.tokens.insert((person, Token::Whole), token);
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

fn make_people(folder: &Path, people: &[Person]) -> HashMap<(PersonNumber, Token), String> {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let mut tokens = HashMap::new();
    for (number, person) in people.iter().enumerate() {
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
            tokens.insert((number, kind), token);
        }
    }
    store.close();
    tokens
}
