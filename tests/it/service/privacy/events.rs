//! Events reach those who may see their conversation now, live and replayed.

use super::*;
use support::home::PASSWORD;

/// What has reached a client, up to the answer to a ping: what was published before
/// it was sent is in front of it.
pub fn so_far(client: &mut Client) -> Vec<Value> {
    client.send(&json!({ "type": "ping" }));
    let mut events = Vec::new();
    loop {
        let message = client.receive();
        match message["type"] == "event" {
            true => events.push(message),
            false => return events,
        }
    }
}

/// What is replayed to somebody who comes back after `since`.
pub fn replayed(house: &House, who: usize, since: u64) -> Vec<Value> {
    let mut client = house.websocket(who);
    let subscribed = client.ask(json!({ "type": "subscribe", "since": since }));
    assert_eq!(subscribed["events_lost"], false);
    so_far(&mut client)
}

pub(super) fn conversations(events: &[Value]) -> BTreeSet<&str> {
    let ids = events.iter();
    ids.filter_map(|event| event["conversation_id"].as_str())
        .collect()
}

pub fn names(events: &[Value]) -> Vec<&str> {
    let names = events.iter();
    names
        .map(|event| event["event"].as_str().unwrap())
        .collect()
}

#[test]
fn events_are_for_those_who_may_see_their_conversation() {
    let mut house = House::empty();
    let mut since = 0;
    let mut listeners = [0, 1, 2, 3].map(|who| {
        let mut client = house.websocket(who);
        let subscribed = client.ask(json!({ "type": "subscribe" }));
        since = subscribed["seq"].as_u64().unwrap();
        client
    });
    house.fill();
    for (who, listener) in listeners.iter_mut().enumerate() {
        let expected: BTreeSet<&str> = house
            .things
            .iter()
            .filter(|thing| thing.seen[who])
            .map(|thing| thing.conversation.as_str())
            .collect();
        for events in [so_far(listener), replayed(&house, who, since)] {
            assert_eq!(conversations(&events), expected, "{}", PEOPLE[who]);
            let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
            assert!(numbers.is_sorted_by(|one, next| one < next));
            let callbacks = events
                .iter()
                .filter(|one| one["event"] == "delivery.updated");
            let callbacks: BTreeSet<&str> = callbacks
                .map(|event| event["conversation_id"].as_str().unwrap())
                .collect();
            let of_the_door = BTreeSet::from([house.things[4].conversation.as_str()]);
            match PEOPLE[who] {
                "admin" => assert_eq!(callbacks, of_the_door),
                _ => assert!(callbacks.is_empty()),
            }
        }
    }
}

#[test]
fn a_share_is_heard_by_those_who_see_it_before_or_after() {
    let house = House::empty();
    let mut since = 0;
    let [mut admin, mut user, mut cleo] = [0, 1, 2].map(|who| {
        let mut client = house.websocket(who);
        let subscribed = client.ask(json!({ "type": "subscribe" }));
        since = subscribed["seq"].as_u64().unwrap();
        client
    });
    let id = {
        user.send(&json!({ "type": "chat", "message": "hello" }));
        user.response()["data"]["conversation_id"].clone()
    };
    so_far(&mut user);
    let mut owner = house.websocket(1);
    let mut share = |audience: Value| {
        owner.ask(json!({
            "type": "share_conversation", "conversation_id": id, "audience": audience,
        }));
    };
    share(json!(["cleo"]));
    for client in [&mut user, &mut cleo] {
        let heard = so_far(client);
        assert_eq!(names(&heard), ["conversation.shared"]);
        assert_eq!(heard[0]["audience"], json!(["cleo"]));
        assert_eq!(heard[0]["owner"], "user");
        assert_eq!(heard[0]["conversation_id"], id);
    }
    assert!(so_far(&mut admin).is_empty());
    // Whoever comes back now finds what was said before.
    let missed = replayed(&house, 2, since);
    assert!(names(&missed).contains(&"message.created"), "{missed:?}");
    share(json!("private"));
    assert_eq!(names(&so_far(&mut user)), ["conversation.shared"]);
    let heard = so_far(&mut cleo);
    assert_eq!(names(&heard), ["conversation.deleted"]);
    assert_eq!(heard[0]["conversation_id"], id);
    assert!(so_far(&mut admin).is_empty());
    // Only that it is gone.
    assert_eq!(names(&replayed(&house, 2, since)), ["conversation.deleted"]);
    assert!(replayed(&house, 0, since).is_empty());
    let delete = json!({ "type": "delete_conversation", "conversation_id": id });
    house.websocket(1).ask(delete);
    assert_eq!(names(&replayed(&house, 1, since)), ["conversation.deleted"]);
    assert_eq!(names(&replayed(&house, 2, since)), ["conversation.deleted"]);
    assert!(replayed(&house, 0, since).is_empty());
}

#[test]
fn a_reply_under_way_no_longer_reaches_those_who_lose_its_conversation() {
    let model = Model::start(|_, _| Act::Pause("A long reply in two halves.".to_owned()));
    let mut config = model.config();
    config["privacy"] = json!({ "conversations": "household" });
    let home = Home::start(config);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe" }));
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "hello", "stream": true }));
    let delta = admin.event("chat.delta");
    let mut owner = home.websocket(&home.tokens.user);
    owner.ask(json!({
        "type": "share_conversation", "conversation_id": delta["conversation_id"],
        "audience": "private",
    }));
    model.release();
    let data = user.response()["data"].clone();
    assert_eq!(data["response"], "A long reply in two halves.");
    let heard = so_far(&mut admin);
    assert_eq!(
        names(&heard).last(),
        Some(&"conversation.deleted"),
        "{heard:?}"
    );
}

#[test]
fn an_approval_is_shown_to_its_asker_and_to_admins() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("done"),
            false => Act::call("run_command", json!({ "command": "true" })),
        }
    });
    let house_config = model.config_with(json!({
        "permission_mode": "ask", "tools": { "run_command": { "enabled": true } },
        "privacy": { "conversations": "household" },
    }));
    let home = Home::start(house_config);
    let cleo = home.add_person("cleo", UserRole::User);
    let mut listeners = [&home.tokens.admin, &home.tokens.user, &cleo].map(|token| {
        let mut client = home.websocket(token);
        client.ask(json!({ "type": "subscribe" }));
        client
    });
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "go" }));
    let asked = listeners[0].event("approval.requested");
    home.admin()
        .ask(json!({ "type": "deny", "approval_id": asked["approval_id"] }));
    user.response();
    for (listener, expected) in listeners.iter_mut().zip([1, 2, 0]) {
        let heard = so_far(listener);
        let of_approvals = names(&heard);
        let of_approvals = of_approvals
            .iter()
            .filter(|one| one.starts_with("approval."));
        // The admin has read the first already.
        assert_eq!(of_approvals.count(), expected, "{heard:?}");
    }
}

#[test]
fn what_a_person_takes_along_is_gone_for_all_its_readers() {
    let mut house = House::empty();
    let id = {
        let mut user = house.websocket(1);
        let shared = json!({ "type": "chat", "message": "hello", "audience": "household" });
        user.ask(shared)["conversation_id"].clone()
    };
    // None of its events is kept.
    house.home.restart();
    let mut admin = house.websocket(0);
    admin.ask(json!({ "type": "subscribe" }));
    let delete = json!({ "type": "delete_account", "password": PASSWORD });
    house.websocket(1).ask(delete);
    assert_eq!(admin.event("conversation.deleted")["conversation_id"], id);
}

/// A house where a person asks for `forget`, or for `remember` in its place.
fn forgetful(more: Value) -> (Model, House) {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let id = text
            .split_whitespace()
            .find(|word| word.starts_with("mem_"));
        match (last["role"] == "tool", id) {
            (true, _) => Act::say("done"),
            (false, Some(id)) if text.contains("replace") => {
                Act::call("remember", json!({ "content": "-", "replaces": id }))
            }
            (false, Some(id)) => Act::call("forget", json!({ "memory_id": id })),
            (false, None) => Act::call("remember", json!({ "content": "The code is 4711." })),
        }
    });
    let mut config = model.config_with(json!({
        "permission_mode": "ask", "tool_permissions": { "remember": "allow" },
    }));
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    let mut house = House::empty();
    house.home = Home::start(config);
    house.tokens = {
        let tokens = &house.home.tokens;
        let cleo = house.home.add_person("cleo", UserRole::User);
        [&tokens.admin, &tokens.user, &cleo, &tokens.viewer].map(Clone::clone)
    };
    (model, house)
}

/// The one approval that waits, as a client sees it.
fn waiting(client: &mut Client) -> Value {
    eventually("an approval waits", || {
        let listed = client.ask(json!({ "type": "list_approvals" }));
        listed["approvals"].as_array()?.first().cloned()
    })
}

#[test]
fn the_words_of_a_private_memory_are_in_the_question_for_its_owner_alone() {
    let (_model, house) = forgetful(json!({}));
    let mut user = house.websocket(1);
    user.chat("keep it");
    let id = user.ask(json!({ "type": "list_memories" }))["memories"][0]["id"].clone();
    let [mut admin, mut own] = [0, 1].map(|who| {
        let mut client = house.websocket(who);
        client.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        client
    });
    user.send(&json!({ "type": "chat", "message": format!("forget {id}").replace('"', "") }));
    let heard = [&mut admin, &mut own].map(|client| {
        let reason = client.event("approval.requested")["reason"].clone();
        assert_eq!(waiting(client)["reason"], reason);
        assert!(so_far(client).is_empty(), "asked twice");
        reason.as_str().unwrap().to_owned()
    });
    assert_eq!(
        heard[0],
        "The assistant wants to forget a memory that is not shown to you"
    );
    assert!(heard[1].contains("4711"), "{}", heard[1]);
    for (who, expected) in [(0, 1), (1, 1), (2, 0)] {
        let replayed = replayed(&house, who, 0);
        let asked = replayed
            .iter()
            .filter(|one| one["event"] == "approval.requested");
        let reasons: Vec<&str> = asked.map(|one| one["reason"].as_str().unwrap()).collect();
        assert_eq!(reasons.len(), expected, "{reasons:?}");
        assert_eq!(reasons.iter().any(|one| one.contains("4711")), who == 1);
    }
}

#[test]
fn a_replacement_is_answered_by_whoever_may_answer_for_forgetting() {
    let (_model, house) = forgetful(json!({
        "tool_permissions": { "remember": "ask" },
        "people": { "user": { "approves": ["remember"] }, "cleo": {
            "approves": ["remember", "forget"],
        } },
    }));
    for who in [1, 2] {
        let mut person = house.websocket(who);
        let mut asks = house.websocket(who);
        asks.send(&json!({ "type": "chat", "message": "keep it" }));
        let own = waiting(&mut person);
        assert_eq!(own["may_answer"], true);
        person.ask(json!({ "type": "approve", "approval_id": own["approval_id"] }));
        asks.response();
        let id = person.ask(json!({ "type": "list_memories" }))["memories"][0]["id"].clone();
        let message = format!("replace {id}").replace('"', "");
        asks.send(&json!({ "type": "chat", "message": message }));
        let asked = waiting(&mut person);
        assert_eq!(asked["may_answer"], who == 2, "{asked}");
        let approve = json!({ "type": "approve", "approval_id": asked["approval_id"] });
        if who == 1 {
            assert_eq!(person.refused(approve), "unauthorized");
            let deny = json!({ "type": "deny", "approval_id": asked["approval_id"] });
            house.websocket(0).ask(deny);
        } else {
            person.ask(approve);
        }
        asks.response();
    }
}

#[test]
fn whoever_loses_a_conversation_is_not_replayed_what_they_asked_for_there() {
    let (_model, house) = forgetful(json!({ "tool_permissions": { "remember": "ask" } }));
    let mut owner = house.websocket(1);
    owner.send(&json!({ "type": "chat", "message": "keep it", "audience": ["cleo"] }));
    let first = waiting(&mut house.websocket(1));
    house
        .websocket(0)
        .ask(json!({ "type": "deny", "approval_id": first["approval_id"] }));
    let id = owner.response()["data"]["conversation_id"].clone();
    let mut cleo = house.websocket(2);
    let since = cleo.ask(json!({ "type": "subscribe" }))["seq"]
        .as_u64()
        .unwrap();
    let mut asks = house.websocket(2);
    asks.send(&json!({ "type": "chat", "message": "and this", "conversation_id": id }));
    cleo.event("approval.requested");
    so_far(&mut cleo);
    owner.ask(json!({
        "type": "share_conversation", "conversation_id": id, "audience": "private",
    }));
    assert_eq!(asks.response()["code"], "not_found");
    assert_eq!(names(&so_far(&mut cleo)), ["conversation.deleted"]);
    assert_eq!(names(&replayed(&house, 2, since)), ["conversation.deleted"]);
}
