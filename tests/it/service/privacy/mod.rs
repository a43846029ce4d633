//! Who sees what: each actor, each thing, each command, over each way in. What one
//! may not see is as if it did not exist.

mod askers;
mod changes;
mod credentials;
mod events;
mod files;
mod narrow_tokens;
mod other_ways;
mod own_account;
mod running;

pub(crate) use events::so_far;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use store::UserRole;
use support::client::Client;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model};
use support::receiver::Receiver;
use support::{MAX_WAIT, eventually};

/// An id that nothing has.
const NO_CONVERSATION: &str = "conv_0000000000001";
const NO_TURN: &str = "turn_0000000000001";

/// The actors: an admin, the user to whom most things belong, another user, and a
/// guest.
const PEOPLE: [&str; 4] = ["admin", "user", "cleo", "viewer"];

/// The conversations: what its owner, or its account's configuration, says of its
/// audience, and who of [`PEOPLE`] sees it then.
const CONVERSATIONS: [(&str, [bool; 4]); 6] = [
    ("private", [false, true, false, false]),
    ("with admin", [true, true, false, false]),
    ("with the guest", [false, true, false, true]),
    ("household", [true, true, true, false]),
    ("from the door", [true, true, true, false]),
    ("from the safe", [false, true, false, false]),
];

/// A household with one of each [`CONVERSATIONS`].
struct House {
    home: Home,
    tokens: [String; 4],
    receiver: Receiver,
    model: Model,
    things: Vec<Thing>,
}

/// A conversation and what belongs to it.
struct Thing {
    name: &'static str,
    conversation: String,
    turn: String,
    seen: [bool; 4],
}

/// Remembers what it is told to, and says "fine".
fn model() -> Model {
    Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match text.split_once("remember: ") {
            Some((_, fact)) if last["role"] == "user" => {
                let fact = fact.split_whitespace().next();
                Act::call("remember", json!({ "content": fact }))
            }
            _ => Act::say("fine"),
        }
    })
}

impl House {
    /// Nobody has said anything yet.
    fn empty() -> House {
        House::with(json!({}))
    }

    fn with(more: Value) -> House {
        House::with_channels(more, Vec::new())
    }

    /// With these channels, too.
    fn with_channels(more: Value, further: Vec<Value>) -> House {
        let (model, receiver) = (model(), Receiver::start());
        let mut config = model.config();
        config["openai_api"] = json!({ "enabled": true, "ollama_user": "user" });
        config["limits"] = json!({
            "commands_per_second": 100_000, "commands_burst": 100_000,
            "connections_per_address": 1000,
        });
        config["channels"] = json!([
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": {
                "door": {
                    "incoming_path": "/door", "outgoing_url": receiver.url(),
                    "tools": ["remember"],
                },
                "safe": {
                    "incoming_path": "/safe", "outgoing_url": receiver.url(),
                    "tools": ["remember"], "audience": ["user"],
                },
            } },
        ]);
        config["channels"].as_array_mut().unwrap().extend(further);
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let home = Home::start(config);
        let cleo = home.add_person("cleo", UserRole::User);
        let tokens = &home.tokens;
        let tokens = [&tokens.admin, &tokens.user, &cleo, &tokens.viewer].map(Clone::clone);
        House {
            home,
            tokens,
            receiver,
            model,
            things: Vec::new(),
        }
    }

    /// With all conversations. Each message has a word of its own, "thing0" to
    /// "thing5", and each tells a fact to remember and has a schedule.
    fn full() -> House {
        let mut house = House::empty();
        house.fill();
        house
    }

    fn fill(&mut self) {
        let mut owner = self.websocket(1);
        for (number, (name, seen)) in CONVERSATIONS.into_iter().enumerate() {
            let message = format!("thing{number} remember: fact{number}");
            let data = match name.strip_prefix("from the ") {
                Some(account) => self.call_webhook(account, &message),
                None => {
                    let mut chat = json!({ "type": "chat", "message": message });
                    match name {
                        "private" => {}
                        "with admin" => chat["audience"] = json!(["admin"]),
                        "with the guest" => chat["audience"] = json!(["viewer"]),
                        name => chat["audience"] = json!(name),
                    }
                    owner.ask(chat)
                }
            };
            let word = |name: &str| data[name].as_str().unwrap().to_owned();
            let (conversation, turn) = (word("conversation_id"), word("turn_id"));
            owner.ask(json!({
                "type": "create_schedule", "prompt": format!("plan{number}"), "at": "+20h",
                "conversation_id": conversation,
            }));
            self.things.push(Thing {
                name,
                conversation,
                turn,
                seen,
            });
        }
    }

    /// Sends a webhook message, and waits for its reply.
    fn call_webhook(&self, account: &str, message: &str) -> Value {
        let path = format!("/{account}");
        let headers = [("prefer", "wait=20")];
        let answer = post(
            self.home.address(),
            &path,
            &headers,
            &json!({ "message": message }),
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    }

    fn websocket(&self, who: usize) -> Client {
        self.home.websocket(&self.tokens[who])
    }

    /// Both kinds of connection of a person.
    fn connections(&self, who: usize) -> [Client; 2] {
        let mut lines = Client::lines(self.home.address());
        lines.authenticate(&self.tokens[who]);
        [self.websocket(who), lines]
    }
}

/// What a client is answered, whole.
fn answer(client: &mut Client, request: &Value) -> Value {
    client.send(request);
    client.response()
}

/// The values of this member in a list.
fn all<'a>(list: &'a Value, member: &str) -> BTreeSet<&'a str> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one[member].as_str().unwrap()).collect()
}

#[test]
fn each_person_finds_what_they_may_see() {
    let house = House::full();
    for (who, name) in PEOPLE.into_iter().enumerate() {
        let seen: Vec<&Thing> = house
            .things
            .iter()
            .filter(|thing| thing.seen[who])
            .collect();
        let expected: BTreeSet<&str> = seen
            .iter()
            .map(|thing| thing.conversation.as_str())
            .collect();
        for mut client in house.connections(who) {
            let listed = client.ask(json!({ "type": "list_conversations" }));
            assert_eq!(all(&listed["conversations"], "id"), expected, "{name}");
            // Page by page, too.
            let (mut paged, mut cursor) = (BTreeSet::new(), Value::Null);
            loop {
                let page = json!({ "type": "list_conversations", "limit": 1, "cursor": cursor });
                let page = client.ask(page);
                let list = page["conversations"].as_array().unwrap();
                paged.extend(
                    list.iter()
                        .map(|one| one["id"].as_str().unwrap().to_owned()),
                );
                cursor = page["next_cursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(
                paged.iter().map(String::as_str).collect::<BTreeSet<_>>(),
                expected
            );
            let schedules = client.ask(json!({ "type": "list_schedules" }));
            let listed = all(&schedules["schedules"], "conversation_id");
            assert_eq!(listed, expected, "{name}");
            let info = client.ask(json!({ "type": "server_info" }));
            let counted = match name {
                "admin" => CONVERSATIONS.len(),
                _ => expected.len(),
            };
            assert_eq!(info["conversations"], counted, "{name}");
            let search = json!({ "type": "search_messages", "query": "thing" });
            let memories = json!({ "type": "list_memories" });
            if name == "viewer" {
                for command in [search, memories] {
                    assert_eq!(client.refused(command), "unauthorized");
                }
                continue;
            }
            let found = client.ask(search);
            let found = all(&found["messages"], "conversation_id");
            assert_eq!(found, expected, "{name}");
            let memories = client.ask(memories);
            let memories = memories["memories"].as_array().unwrap();
            for (number, thing) in house.things.iter().enumerate() {
                let fact = format!("fact{number}");
                let found = memories.iter().find(|one| one["content"] == fact);
                assert_eq!(found.is_some(), thing.seen[who], "{name} {}", thing.name);
            }
        }
    }
}

#[test]
fn lists_say_whose_a_thing_is_and_who_sees_it() {
    let house = House::full();
    let mut user = house.websocket(1);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let shown = |name: &str| {
        let thing = house.things.iter().find(|thing| thing.name == name);
        let id = &thing.unwrap().conversation;
        let list = listed["conversations"].as_array().unwrap();
        let found = list.iter().find(|one| one["id"] == *id).unwrap();
        (found["owner"].clone(), found["audience"].clone())
    };
    for (name, owner, audience) in [
        ("private", json!("user"), json!("private")),
        ("with admin", json!("user"), json!(["admin"])),
        ("with the guest", json!("user"), json!(["viewer"])),
        ("household", json!("user"), json!("household")),
        ("from the door", Value::Null, json!("household")),
        ("from the safe", Value::Null, json!(["user"])),
    ] {
        assert_eq!(shown(name), (owner, audience), "{name}");
    }
    let memories = user.ask(json!({ "type": "list_memories" }));
    let memory = |number: usize| {
        let fact = format!("fact{number}");
        let list = memories["memories"].as_array().unwrap();
        list.iter().find(|one| one["content"] == fact).unwrap()
    };
    assert_eq!(memory(0)["owner"], "user");
    assert_eq!(memory(0)["audience"], "private");
    assert_eq!(memory(3)["audience"], "household");
    assert!(
        memory(4)["source"].to_string().contains("door"),
        "{}",
        memory(4)
    );
}

#[test]
fn a_guest_learns_nothing_of_webhooks_and_each_only_of_their_own_limits() {
    let people = json!({
        "user": { "instructions": "Answers for a nine year old." },
        "cleo": { "monthly_tokens": 1000 },
    });
    let house = House::with(json!({ "people": people }));
    for (who, blocks) in [
        (0, vec!["cleo", "user"]),
        (1, vec!["user"]),
        (2, vec!["cleo"]),
        (3, vec![]),
    ] {
        let config = house.websocket(who).ask(json!({ "type": "get_config" }));
        let people = config["people"].as_object().unwrap();
        assert_eq!(people.keys().collect::<Vec<_>>(), blocks, "{}", PEOPLE[who]);
        let is_shown = config["channels"].to_string().contains("/door");
        assert_eq!(is_shown, PEOPLE[who] != "viewer");
    }
}

#[test]
fn a_new_conversation_has_the_audience_that_the_settings_say() {
    for (setting, expected) in [("private", false), ("household", true)] {
        let house = House::with(json!({ "privacy": { "conversations": setting } }));
        house.websocket(1).chat("hello");
        let listed = house
            .websocket(2)
            .ask(json!({ "type": "list_conversations" }));
        let is_seen = !listed["conversations"].as_array().unwrap().is_empty();
        assert_eq!(is_seen, expected, "{setting}");
    }
}

#[test]
fn deliveries_are_shown_to_admins_who_see_the_conversation() {
    let house = House::full();
    let mut admin = house.websocket(0);
    let list = json!({ "type": "list_deliveries" });
    let accounts = eventually("the callbacks are there", || {
        let listed = admin.ask(list.clone());
        let accounts: Vec<String> = listed["deliveries"]
            .as_array()?
            .iter()
            .map(|one| one["account"].to_string())
            .collect();
        (!accounts.is_empty()).then_some(accounts)
    });
    assert_eq!(accounts, ["\"door\""], "not that of the safe");
    assert!(
        house.receiver.callbacks().is_empty(),
        "the responses replace them"
    );
    assert!(!house.model.requests().is_empty());
}
