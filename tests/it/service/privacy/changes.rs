//! Commands about what one may not see, and about what is somebody else's.

use super::*;

/// Commands that name a conversation or a turn.
fn commands(conversation: &str, turn: &str) -> Vec<Value> {
    vec![
        json!({ "type": "get_messages", "conversation_id": conversation }),
        json!({ "type": "get_turn", "turn_id": turn }),
        json!({ "type": "chat", "message": "hello", "conversation_id": conversation }),
        json!({
            "type": "chat", "message": "hello", "conversation_id": conversation,
            "idempotency_key": "key",
        }),
        json!({ "type": "cancel", "turn_id": turn }),
        json!({ "type": "rename_conversation", "conversation_id": conversation, "title": "mine" }),
        json!({
            "type": "share_conversation", "conversation_id": conversation, "audience": "household",
        }),
        json!({
            "type": "share_conversation", "conversation_id": conversation, "audience": ["nobody"],
        }),
        json!({ "type": "delete_conversation", "conversation_id": conversation }),
        json!({
            "type": "create_schedule", "prompt": "x", "at": "+1h", "conversation_id": conversation,
        }),
    ]
}

#[test]
fn what_one_may_not_see_is_as_if_it_did_not_exist() {
    let house = House::full();
    for (who, name) in PEOPLE.into_iter().enumerate() {
        for mut client in house.connections(who) {
            for thing in house.things.iter().filter(|thing| !thing.seen[who]) {
                let about = commands(&thing.conversation, &thing.turn);
                let nothing = commands(NO_CONVERSATION, NO_TURN);
                for (command, about_nothing) in about.iter().zip(nothing) {
                    let got = answer(&mut client, command);
                    let expected = answer(&mut client, &about_nothing);
                    let got = got.to_string();
                    let got = got
                        .replace(&thing.conversation, NO_CONVERSATION)
                        .replace(&thing.turn, NO_TURN);
                    assert_eq!(got, expected.to_string(), "{name}: {command}");
                    let code = &expected["code"];
                    let codes = [json!("not_found"), json!("unauthorized")];
                    assert!(codes.contains(code), "{name}: {command}: {expected}");
                    assert!(
                        name == "viewer" || code == "not_found",
                        "{command}: {expected}"
                    );
                }
            }
        }
    }
    // And nothing has changed.
    let mut owner = house.websocket(1);
    let listed = owner.ask(json!({ "type": "list_conversations" }));
    assert_eq!(
        listed["conversations"].as_array().unwrap().len(),
        CONVERSATIONS.len()
    );
    for one in listed["conversations"].as_array().unwrap() {
        assert_eq!(one["message_count"], 2, "{one}");
        assert_ne!(one["title"], "mine");
    }
}

#[test]
fn other_people_s_memories_and_schedules_are_as_if_they_did_not_exist() {
    let house = House::full();
    let mut owner = house.websocket(1);
    let memories = owner.ask(json!({ "type": "list_memories" }))["memories"].clone();
    let schedules = owner.ask(json!({ "type": "list_schedules" }))["schedules"].clone();
    let find = |list: &Value, member: &str, word: &str| {
        let mut list = list.as_array().unwrap().iter();
        list.find(|one| one[member] == word).unwrap().clone()
    };
    let private = find(&memories, "content", "fact0")["id"].clone();
    let plan = find(&schedules, "prompt", "plan0")["schedule_id"].clone();
    for who in [0, 2] {
        let mut client = house.websocket(who);
        for (command, member, id, nothing) in [
            ("delete_memory", "memory_id", &private, "mem_0000000000001"),
            (
                "pause_schedule",
                "schedule_id",
                &plan,
                "sched_0000000000001",
            ),
            (
                "delete_schedule",
                "schedule_id",
                &plan,
                "sched_0000000000001",
            ),
        ] {
            let got = answer(&mut client, &json!({ "type": command, member: id }));
            let expected = answer(&mut client, &json!({ "type": command, member: nothing }));
            assert_eq!(expected["code"], "not_found");
            let got = got.to_string().replace(id.as_str().unwrap(), nothing);
            assert_eq!(got, expected.to_string(), "{command}");
        }
    }
    owner.ask(json!({ "type": "delete_memory", "memory_id": private }));
    owner.ask(json!({ "type": "delete_schedule", "schedule_id": plan }));
}

#[test]
fn what_is_visible_is_changed_by_its_owner_or_for_the_household_by_an_admin() {
    let house = House::full();
    let id = |name: &str| {
        let thing = house.things.iter().find(|thing| thing.name == name);
        thing.unwrap().conversation.clone()
    };
    let rename = |client: &mut Client, id: &str| {
        let title = "better";
        let rename =
            json!({ "type": "rename_conversation", "conversation_id": id, "title": title });
        answer(client, &rename)
    };
    let mut clients = [0, 1, 2].map(|who| house.websocket(who));
    for (who, name, expected) in [
        ("cleo", "household", "unauthorized"),
        ("cleo", "from the door", "unauthorized"),
        ("admin", "with admin", "unauthorized"),
        ("user", "from the safe", "unauthorized"),
        ("admin", "household", "ok"),
        ("admin", "from the door", "ok"),
        ("user", "with admin", "ok"),
        ("user", "household", "ok"),
    ] {
        let who = PEOPLE.iter().position(|person| *person == who).unwrap();
        let client = &mut clients[who];
        let got = rename(client, &id(name));
        let found = match got["status"] == "ok" {
            true => "ok",
            false => got["code"].as_str().unwrap(),
        };
        assert_eq!(found, expected, "{name}: {got}");
        if expected == "unauthorized" && !name.starts_with("from") {
            assert!(
                got["error"].as_str().unwrap().contains("user"),
                "it names the owner: {got}"
            );
        }
        let delete = json!({ "type": "delete_conversation", "conversation_id": id(name) });
        let share = json!({
            "type": "share_conversation", "conversation_id": id(name), "audience": "household",
        });
        if expected == "unauthorized" {
            assert_eq!(client.refused(share), expected, "{name}");
            // What nobody owns and few see, any of them may delete.
            match name {
                "from the safe" => drop(client.ask(delete)),
                _ => assert_eq!(client.refused(delete), expected, "{name}"),
            }
        }
    }
    // Everybody who sees a conversation may go on with it.
    let hello = json!({ "type": "chat", "message": "hello", "conversation_id": id("household") });
    clients[2].ask(hello);
}

#[test]
fn an_audience_is_checked() {
    let house = House::empty();
    let mut user = house.websocket(1);
    let id = user.chat("hello")["conversation_id"].clone();
    for audience in [
        json!("everybody"),
        json!(["nobody"]),
        json!([1]),
        json!(true),
        json!(null),
    ] {
        let share =
            json!({ "type": "share_conversation", "conversation_id": id, "audience": audience });
        assert_eq!(user.refused(share), "invalid_request", "{audience}");
    }
    let both = json!({
        "type": "chat", "message": "x", "conversation_id": id, "audience": "household",
    });
    assert_eq!(user.refused(both), "invalid_request");
    // The owner is always one of them, and need not be named.
    for (audience, shown) in [
        (json!(["cleo"]), json!(["cleo"])),
        (json!(["cleo", "user"]), json!(["cleo"])),
        (json!(["user"]), json!("private")),
        (json!([]), json!("private")),
        (json!("household"), json!("household")),
        (json!("private"), json!("private")),
    ] {
        let share =
            json!({ "type": "share_conversation", "conversation_id": id, "audience": audience });
        let shared = user.ask(share);
        assert_eq!(shared["audience"], shown, "{audience}");
        assert_eq!(shared["conversation_id"], id);
    }
}

#[test]
fn a_repeated_key_does_not_bring_back_what_one_may_no_longer_see() {
    let house = House::empty();
    let [mut user, mut cleo] = [1, 2].map(|who| house.websocket(who));
    let key = |message: &str| json!({ "type": "chat", "message": message, "idempotency_key": "k" });
    let users = user.ask(key("hello"));
    let cleos = cleo.ask(key("hello"));
    assert_ne!(
        users["turn_id"], cleos["turn_id"],
        "keys are each person's own"
    );
    let id = users["conversation_id"].clone();
    let share = |audience: Value| json!({ "type": "share_conversation", "conversation_id": id, "audience": audience });
    user.ask(share(json!(["cleo"])));
    let ask = json!({
        "type": "chat", "message": "and?", "conversation_id": id, "idempotency_key": "l",
    });
    let first = cleo.ask(ask.clone());
    assert_eq!(cleo.ask(ask.clone())["turn_id"], first["turn_id"]);
    user.ask(share(json!("private")));
    assert_eq!(cleo.refused(ask), "not_found");
    let turn = json!({ "type": "get_turn", "turn_id": first["turn_id"] });
    assert_eq!(cleo.refused(turn), "not_found");
}
