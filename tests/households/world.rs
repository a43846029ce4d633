//! A running server with everything that leads into it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, UserRole};
use support::client::Client;
use support::home::{TemporaryDirectory, add_token, write_config};
use support::http::post;
use support::program::Program;
#[cfg(feature = "relay")]
use support::relay_peers;

use super::reference::{PersonNumber, Role};

/// How a command comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    WebSocket,
    Lines,
    Relay,
}

/// What a request came to: its data, or the code of its error.
pub type Answered = Result<Value, String>;

/// The server of one household, and clients that are opened as they are needed.
pub struct World {
    _folder: TemporaryDirectory,
    program: Program,
    clients: HashMap<(PersonNumber, bool, Way), Client>,
    observers: HashMap<PersonNumber, Client>,
    tokens: HashMap<(PersonNumber, bool), String>,
    #[cfg(feature = "relay")]
    relay: relay::server::RelayServer,
    #[cfg(feature = "relay")]
    machine: Option<String>,
}

impl World {
    /// Starts a server with these people, webhook accounts and privacy setting.
    pub fn start(people: &[(String, Role)], accounts: &Value, conversations: &str) -> World {
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
                // What asks again is what other tests look at.
                "permission_mode": "allow",
                "limits": {
                    "commands_per_second": 1_000_000, "commands_burst": 1_000_000,
                    "webhook_per_second": 1_000_000, "webhook_burst": 1_000_000,
                    "connections": 10_000, "connections_per_address": 10_000,
                    "unauthenticated_per_address": 10_000,
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
            tokens,
            #[cfg(feature = "relay")]
            relay,
            #[cfg(feature = "relay")]
            machine: None,
        }
    }

    fn address(&self) -> SocketAddr {
        self.program.address
    }

    /// Whether this person has a token for what the household shares, alone.
    pub fn has_narrow_token(&self, person: PersonNumber) -> bool {
        self.tokens.contains_key(&(person, true))
    }

    /// Sends a command and waits for its answer, past events.
    pub fn ask(
        &mut self,
        person: PersonNumber,
        narrow: bool,
        way: Way,
        request: &Value,
    ) -> Answered {
        if !self.clients.contains_key(&(person, narrow, way)) {
            let client = self.open(person, narrow, way);
            self.clients.insert((person, narrow, way), client);
        }
        let client = self.clients.get_mut(&(person, narrow, way)).unwrap();
        client.send(request);
        answered(client.response())
    }

    fn open(&mut self, person: PersonNumber, narrow: bool, way: Way) -> Client {
        let mut client = match way {
            Way::WebSocket => Client::websocket(self.address()),
            Way::Lines => Client::lines(self.address()),
            Way::Relay => self.through_the_relay(),
        };
        client.authenticate(&self.tokens[&(person, narrow)]);
        client
    }

    #[cfg(feature = "relay")]
    fn through_the_relay(&mut self) -> Client {
        let machine = self.machine.take().unwrap_or_else(|| {
            let mut admin = Client::websocket(self.address());
            admin.authenticate(&self.tokens[&(0, false)]);
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
    pub fn observed(&mut self, person: PersonNumber) -> Vec<Value> {
        let is_new = !self.observers.contains_key(&person);
        if is_new {
            let mut client = self.open(person, false, Way::WebSocket);
            client.ask(json!({ "type": "subscribe" }));
            self.observers.insert(person, client);
        }
        let client = self.observers.get_mut(&person).unwrap();
        // Its answer comes behind every event so far.
        client.send(&json!({ "type": "ping" }));
        until_answered(client)
    }

    /// The kept events after `since` that this person may see; none when some are no
    /// longer kept.
    pub fn replayed(&mut self, person: PersonNumber, since: u64) -> Option<Vec<Value>> {
        let mut client = self.open(person, false, Way::WebSocket);
        let data = client.ask(json!({ "type": "subscribe", "since": since }));
        client.send(&json!({ "type": "ping" }));
        let events = until_answered(&mut client);
        (data["events_lost"] == false).then_some(events)
    }

    /// The number of the newest event.
    pub fn sequence(&mut self) -> u64 {
        let mut client = self.open(0, false, Way::WebSocket);
        client.ask(json!({ "type": "subscribe" }))["seq"]
            .as_u64()
            .unwrap()
    }

    /// Asks the interface of OpenAI; returns the reply.
    pub fn complete(&mut self, person: PersonNumber, messages: &Value) -> Answered {
        let authorization = format!("Bearer {}", self.tokens[&(person, false)]);
        let body = json!({ "model": "hearth", "messages": messages });
        let headers = [("authorization", authorization.as_str())];
        let answer = post(self.address(), "/v1/chat/completions", &headers, &body);
        match answer.status {
            200 => Ok(answer.json()["choices"][0]["message"]["content"].clone()),
            status => Err(status.to_string()),
        }
    }

    /// Posts to a webhook and waits for the reply.
    pub fn post(&mut self, account: &str, body: &Value) -> Value {
        let path = format!("/in/{account}");
        let answer = post(self.address(), &path, &[("prefer", "wait=60")], body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }

    /// A person who was added while the server runs gets a token.
    pub fn added(&mut self, person: PersonNumber, name: &str) {
        let request = json!({ "type": "create_token", "name": "test", "user": name });
        let made = self.ask(0, false, Way::WebSocket, &request).unwrap();
        let token = made["token"].as_str().unwrap().to_owned();
        self.tokens.insert((person, false), token);
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
        self.observers.remove(&person);
    }
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

fn answered(response: Value) -> Answered {
    match response["status"] == "ok" {
        true => Ok(response["data"].clone()),
        false => Err(response["code"].as_str().unwrap().to_owned()),
    }
}

fn make_people(folder: &Path, people: &[(String, Role)]) -> HashMap<(PersonNumber, bool), String> {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let mut tokens = HashMap::new();
    for (number, (name, role)) in people.iter().enumerate() {
        let role = match role {
            Role::Viewer => UserRole::Viewer,
            Role::User => UserRole::User,
            Role::Admin => UserRole::Admin,
        };
        // Nobody signs in with a password here.
        let user = store.add_user(name, role, "no hash").unwrap();
        for household_only in [false, true] {
            let token = add_token(&store, &user, household_only);
            tokens.insert((number, household_only), token);
        }
    }
    store.close();
    tokens
}
