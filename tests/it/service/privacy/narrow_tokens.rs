//! Tokens that may do less than their person: what they see and which tools they have, over
//! every way in.

use super::events::{conversations, so_far};
use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use support::http::{Answer, exchange};

/// A token of `user` that is narrowed like this.
pub(super) fn narrowed(house: &House, narrowing: &Value) -> String {
    house.home.token("user", narrowing)
}

/// A household that a relay reaches, too.
pub(super) struct Reached {
    pub(super) house: House,
    #[cfg(feature = "relay")]
    relay: relay::server::RelayServer,
}

impl Reached {
    pub(super) fn new() -> Reached {
        #[cfg(feature = "relay")]
        {
            use support::relay_peers::{TOKEN, relay};
            let relay = relay(|_| {});
            let house = House::with_channels(
                json!({}),
                vec![json!({
                    "name": "far", "type": "websocket", "auth_token": TOKEN,
                    "url": format!("ws://{}/ws", relay.local_addr()),
                })],
            );
            Reached { house, relay }
        }
        #[cfg(not(feature = "relay"))]
        Reached {
            house: House::empty(),
        }
    }

    /// A connection over each way in that has commands.
    pub(super) fn connections(&self, token: &str) -> Vec<(&'static str, Client)> {
        let address = self.house.home.address();
        let mut clients = vec![
            ("WebSocket", Client::websocket(address)),
            ("JSON lines", Client::lines(address)),
        ];
        #[cfg(feature = "relay")]
        clients.push(("relay", self.remote()));
        for (_, client) in &mut clients {
            client.authenticate(token);
        }
        clients
    }

    #[cfg(feature = "relay")]
    fn remote(&self) -> Client {
        use support::relay_peers::with_token;
        let mut admin = self.house.websocket(0);
        let info = eventually("the link", || {
            let info = admin.ask(json!({ "type": "server_info" }));
            (info["relays"][0]["state"] == "linked").then_some(info)
        });
        let query = format!("?machine_id={}", info["machine_id"].as_str().unwrap());
        let address = self.relay.local_addr();
        let socket = support::socket::connect(address);
        let (websocket, _) = tungstenite::client(with_token(address, &query), socket).unwrap();
        Client::WebSocket(Box::new(websocket))
    }

    pub(super) fn stop(self) {
        drop(self.house);
        #[cfg(feature = "relay")]
        self.relay.stop();
    }
}

fn complete(house: &House, token: &str, key: &str, messages: &Value) -> Answer {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("idempotency-key", key),
    ];
    let body = json!({ "model": "hearth", "messages": messages });
    let address = house.home.address();
    let answer = post(address, "/v1/chat/completions", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

fn ids(client: &mut Client) -> BTreeSet<String> {
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let found = all(&listed["conversations"], "id");
    found.into_iter().map(str::to_owned).collect()
}

/// An upload with this token, complete or only begun.
fn upload(client: &mut Client, is_whole: bool) -> Value {
    let put = json!({ "type": "put_attachment", "name": "diary.txt", "bytes": 8 });
    let id = client.ask(put)["attachment_id"].clone();
    let part = match is_whole {
        true => "my diary",
        false => "my",
    };
    client.ask(part_of(&id, 0, part));
    id
}

fn part_of(id: &Value, offset: usize, part: &str) -> Value {
    json!({
        "type": "put_attachment_part", "attachment_id": id, "offset": offset,
        "data": STANDARD.encode(part),
    })
}

#[test]
fn a_token_for_the_household_finds_and_reaches_nothing_else() {
    let mut reached = Reached::new();
    let since = {
        let subscribed = reached
            .house
            .websocket(0)
            .ask(json!({ "type": "subscribe" }));
        subscribed["seq"].clone()
    };
    reached.house.fill();
    let house = &reached.house;
    let token = narrowed(house, &json!({ "only": "household" }));
    let is_common = |thing: &&Thing| matches!(thing.name, "household" | "from the door");
    let common = || house.things.iter().filter(is_common);
    let hidden = || house.things.iter().filter(|thing| !is_common(thing));
    let expected: BTreeSet<&str> = common().map(|thing| thing.conversation.as_str()).collect();
    let mut private: Vec<String> = hidden().map(|thing| thing.conversation.clone()).collect();
    for (way, mut client) in reached.connections(&token) {
        // Lists, counts, searches and events, also those of before.
        for (list, request, member) in [
            (
                "conversations",
                json!({ "type": "list_conversations" }),
                "id",
            ),
            (
                "schedules",
                json!({ "type": "list_schedules" }),
                "conversation_id",
            ),
            (
                "messages",
                json!({ "type": "search_messages", "query": "thing", "limit": 500 }),
                "conversation_id",
            ),
        ] {
            let found = client.ask(request);
            assert_eq!(all(&found[list], member), expected, "{way} {list}");
        }
        let memories = client.ask(json!({ "type": "list_memories" }));
        let facts = all(&memories["memories"], "content");
        assert_eq!(facts, BTreeSet::from(["fact3", "fact4"]), "{way}");
        let info = client.ask(json!({ "type": "server_info" }));
        assert_eq!(info["conversations"], 2, "{way}");
        client.ask(json!({ "type": "subscribe", "since": since }));
        let events = so_far(&mut client);
        let heard = conversations(&events);
        assert!(expected.is_subset(&heard), "{way} {events:?}");
        let is_private = |id: &&str| private.iter().any(|one| one == id);
        assert!(!heard.iter().any(is_private), "{way} {events:?}");

        for thing in hidden() {
            let id = &thing.conversation;
            for request in [
                json!({ "type": "get_messages", "conversation_id": id }),
                json!({ "type": "get_turn", "turn_id": thing.turn }),
                json!({ "type": "cancel", "turn_id": thing.turn }),
                json!({ "type": "chat", "conversation_id": id, "message": "and then?" }),
                json!({ "type": "rename_conversation", "conversation_id": id, "title": "x" }),
                json!({ "type": "delete_conversation", "conversation_id": id }),
                json!({
                    "type": "share_conversation", "conversation_id": id, "audience": "household",
                }),
                json!({
                    "type": "create_schedule", "conversation_id": id, "prompt": "x", "at": "+1h",
                }),
            ] {
                assert_eq!(client.refused(request), "not_found", "{way} {}", thing.name);
            }
        }

        // Files that no message carries: its own, and not the person's others.
        let mut user = house.websocket(1);
        for is_whole in [true, false] {
            let id = upload(&mut user, is_whole);
            let refused = [
                json!({ "type": "get_attachment", "attachment_id": id }),
                part_of(&id, 0, ""),
                part_of(&id, 2, " diary"),
                json!({ "type": "chat", "message": "look", "attachments": [id] }),
            ];
            for request in refused {
                assert_eq!(client.refused(request), "not_found", "{way} {is_whole}");
            }
            let path = format!("/attachments/{}", id.as_str().unwrap());
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", bearer.as_str())];
            let got = exchange(house.home.address(), "GET", &path, &headers, b"");
            assert_eq!(got.status, 404, "{way}");
            user.ask(part_of(&id, 2, " diary"));
        }
        let own = upload(&mut client, true);
        client.ask(json!({ "type": "get_attachment", "attachment_id": own }));
        let sent = client.ask(json!({
            "type": "chat", "message": "for all to see", "attachments": [own],
        }));

        // What it makes is the household's, and stays so.
        let id = &sent["conversation_id"];
        assert!(ids(&mut house.websocket(2)).contains(id.as_str().unwrap()));
        for audience in [json!("private"), json!(["cleo"])] {
            for refused in [
                json!({ "type": "chat", "message": "psst", "audience": audience }),
                json!({
                    "type": "share_conversation", "conversation_id": id, "audience": audience,
                }),
            ] {
                assert_eq!(client.refused(refused), "unauthorized", "{way} {audience}");
            }
        }
        client.ask(json!({ "type": "chat", "message": "hello", "audience": "household" }));
        client.ask(json!({
            "type": "share_conversation", "conversation_id": id, "audience": "household",
        }));
        let made = client.ask(json!({ "type": "create_schedule", "prompt": "x", "at": "+1h" }));
        let shown = house.websocket(2).ask(json!({ "type": "list_schedules" }));
        let made = made["schedule_id"].as_str().unwrap();
        assert!(
            all(&shown["schedules"], "schedule_id").contains(made),
            "{way}"
        );
        client.ask(json!({ "type": "delete_schedule", "schedule_id": made }));
        for new in ids(&mut client) {
            if !expected.contains(new.as_str()) {
                let delete = json!({ "type": "delete_conversation", "conversation_id": new });
                client.ask(delete);
            }
        }

        // A key of the person's tells it nothing.
        let repeat = json!({ "type": "chat", "message": "my secret", "idempotency_key": way });
        let first = user.ask(repeat.clone());
        let second = client.ask(repeat.clone());
        for member in ["conversation_id", "turn_id", "message_id"] {
            assert_ne!(first[member], second[member], "{way}");
        }
        assert_eq!(client.ask(repeat.clone())["turn_id"], second["turn_id"]);
        assert_eq!(user.ask(repeat)["turn_id"], first["turn_id"]);
        for refused in [
            json!({ "type": "chat", "message": "other", "idempotency_key": way }),
            json!({ "type": "get_turn", "turn_id": first["turn_id"] }),
        ] {
            let expected = match refused["type"] == "chat" {
                // Its own key, for another request.
                true => "invalid_request",
                false => "not_found",
            };
            assert_eq!(client.refused(refused), expected, "{way}");
        }
        let delete = json!({
            "type": "delete_conversation", "conversation_id": second["conversation_id"],
        });
        client.ask(delete);
        private.push(first["conversation_id"].as_str().unwrap().to_owned());
    }

    // The model API continues no private conversation, and shows the model nothing of one.
    let said = |role: &str, content: &str| json!({ "role": role, "content": content });
    let kept = &house.things[0].conversation;
    let history = json!([
        said("user", "plan the surprise"),
        said("assistant", "fine"),
        said("user", "and what is fact?"),
    ]);
    complete(house, &house.tokens[1], "a", &json!([history[0]]));
    let (mut user, mut client) = (house.websocket(1), house.home.websocket(&token));
    let (before, requests) = (ids(&mut user), house.model.requests().len());
    complete(house, &token, "b", &history);
    let shown = json!(house.model.requests()[requests..]).to_string();
    assert!(
        shown.contains("fact3") && !shown.contains("fact0"),
        "{shown}"
    );
    let new: BTreeSet<String> = ids(&mut client)
        .difference(&before)
        .map(Clone::clone)
        .collect();
    assert_eq!(new.len(), 1, "it begins one of the household");
    assert!(!new.contains(kept));
    let key = "the same";
    let alone = json!([said("user", "which day is it")]);
    complete(house, &house.tokens[1], key, &alone);
    let count = ids(&mut client).len();
    complete(house, &token, key, &alone);
    assert_eq!(ids(&mut client).len(), count + 1, "its own turn");
    drop((user, client));
    reached.stop();
}

#[test]
fn a_token_with_some_tools_has_no_others() {
    let reached = Reached::new();
    let house = &reached.house;
    // What `schedule` sets up would run with all tools.
    let token = narrowed(
        house,
        &json!({ "tools": ["current_time", "schedule", "no_such_tool"] }),
    );
    let offered = |requests: &[Value]| -> Vec<Vec<String>> {
        let names = |request: &Value| {
            let tools = request["tools"].as_array().into_iter().flatten();
            tools
                .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
                .collect()
        };
        requests.iter().map(names).collect()
    };
    let memories = |client: &mut Client| {
        let listed = client.ask(json!({ "type": "list_memories" }));
        listed["memories"].as_array().unwrap().len()
    };
    for (way, mut client) in reached.connections(&token) {
        let before = house.model.requests().len();
        client.chat("remember: fact9");
        let requests = offered(&house.model.requests()[before..]);
        assert_eq!(requests, [["current_time"], ["current_time"]], "{way}");
        assert_eq!(memories(&mut client), 0, "{way}: called all the same");
        let listed = client.ask(json!({ "type": "list_tools" }));
        let names = all(&listed["tools"], "name");
        assert_eq!(names, BTreeSet::from(["current_time"]), "{way}");
    }
    let bearer = format!("Bearer {token}");
    for path in ["/v1/chat/completions", "/api/chat"] {
        let before = house.model.requests().len();
        let body = json!({
            "model": "hearth", "stream": false,
            "messages": [{ "role": "user", "content": "remember: fact9" }],
        });
        let headers = [("authorization", bearer.as_str())];
        let answer = post(house.home.address(), path, &headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let requests = offered(&house.model.requests()[before..]);
        assert_eq!(requests, [["current_time"], ["current_time"]], "{path}");
    }
    assert_eq!(memories(&mut house.websocket(1)), 0);
    // With another token, the person has them all.
    let mut user = house.websocket(1);
    user.chat("remember: fact9");
    assert_eq!(memories(&mut user), 1);
    drop(user);
    reached.stop();
}

#[test]
fn tools_are_listed_as_they_are_offered() {
    let house = House::with(json!({
        "people": { "cleo": { "tools": ["recall"] } }, "tool_permissions": { "forget": "deny" },
    }));
    let listed = |token: &str| {
        let mut client = house.home.websocket(token);
        client.ask(json!({ "type": "list_tools" }))["tools"].clone()
    };
    let narrow = narrowed(&house, &json!({ "tools": ["recall", "remember"] }));
    let low = narrowed(&house, &json!({ "role": "viewer" }));
    for (token, names) in [
        (&house.tokens[2], &["recall"][..]),
        (&house.tokens[3], &[]),
        (&narrow, &["recall", "remember"]),
        (&low, &[]),
    ] {
        let expected: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(all(&listed(token), "name"), expected);
    }
    // An admin has to find what is denied.
    let tools = listed(&house.tokens[0]);
    let forget = tools.as_array().unwrap().iter();
    let forget = forget.clone().find(|tool| tool["name"] == "forget");
    assert_eq!(forget.unwrap()["permission"], "deny");
}
