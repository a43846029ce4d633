//! What the model is shown when somebody asks who sees less than the readers of the
//! conversation, or who ceases to be one of them.

use super::*;

/// What is private.
const SECRET: &str = "4711";

/// A house whose model is this one, where the user keeps a secret.
fn house(model: &Model, more: Value) -> House {
    let mut house = House::empty();
    let mut config = model.config_with(more);
    config["openai_api"] = json!({ "enabled": true, "ollama_user": "user" });
    house.home = Home::start(config);
    house.tokens = {
        let tokens = &house.home.tokens;
        let cleo = house.home.add_person("cleo", UserRole::User);
        [&tokens.admin, &tokens.user, &cleo, &tokens.viewer].map(Clone::clone)
    };
    house.websocket(1).chat("The alarm code is 4711.");
    house
}

/// Remembers what the user says first, and then looks for it with both tools.
fn curious() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let place = |role: &str| messages.iter().rposition(|one| one["role"] == role);
        let question = place("user").unwrap();
        let results = messages[question..]
            .iter()
            .filter(|one| one["role"] == "tool");
        match (text(&messages[question]).contains(SECRET), results.count()) {
            (true, 0) => Act::call("remember", json!({ "content": "The alarm code is 4711." })),
            (false, 0) => Act::call("recall", json!({ "query": "alarm code" })),
            (false, 1) => Act::call("search_conversations", json!({ "query": "alarm code" })),
            _ => Act::say(&messages[question..].iter().map(text).collect::<String>()),
        }
    })
}

#[test]
fn the_caller_of_a_webhook_gets_nothing_of_the_people_who_read_along() {
    let (model, receiver) = (curious(), Receiver::start());
    let account = |path: &str, audience: Value| {
        json!({
            "incoming_path": path, "outgoing_url": receiver.url(), "audience": audience,
            "tools": ["recall", "search_conversations"],
        })
    };
    let house = house(
        &model,
        json!({ "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": {
                "spy": account("/spy", json!(["user"])),
                "door": account("/door", json!("household")),
            } },
        ] }),
    );
    // The user's own search finds it.
    let asked = house.websocket(1).chat("what is the alarm code?");
    assert!(asked.to_string().contains(SECRET), "{asked}");
    let before = model.requests().len();
    let ask = |path: &str| {
        let body = json!({ "message": "what is the alarm code?", "conversation_id": "gate" });
        let answer = post(house.home.address(), path, &[("prefer", "wait=20")], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].clone()
    };
    ask("/spy");
    ask("/door");
    // An admin shares the household's with one person.
    let mut admin = house.websocket(0);
    let listed = admin.ask(json!({ "type": "list_conversations" }));
    let id = listed["conversations"][0]["id"].clone();
    admin.ask(json!({
        "type": "share_conversation", "conversation_id": id, "audience": ["user"],
    }));
    ask("/door");
    // What the model tells the user there, the next caller reads.
    let mut user = house.websocket(1);
    user.ask(json!({
        "type": "chat", "message": "what is the alarm code?", "conversation_id": id,
    }));
    ask("/door");
    let shown = json!(model.requests()[before..]).to_string();
    assert!(shown.contains("Nothing remembered fits"), "{shown}");
    assert!(!shown.contains(SECRET), "{shown}");
}

/// A conversation of the user that cleo sees, too.
fn shared(house: &House) -> Value {
    let began = house.websocket(1).ask(json!({
        "type": "chat", "message": "hello", "audience": ["cleo"],
    }));
    began["conversation_id"].clone()
}

/// The user keeps the conversation to themselves.
fn keep(house: &House, id: &Value) {
    house.websocket(1).ask(json!({
        "type": "share_conversation", "conversation_id": id, "audience": "private",
    }));
}

/// What a conversation that never was is answered with, but for its id.
fn assert_lost(response: &Value, id: &Value) {
    assert_eq!(response["code"], "not_found", "{response}");
    let words = format!("there is no conversation {}", id.as_str().unwrap());
    assert_eq!(response["error"], words, "{response}");
}

fn assert_nothing_is_kept(house: &House, id: &Value) {
    let messages = house.websocket(1).ask(json!({
        "type": "get_messages", "conversation_id": id,
    }));
    let kept = messages["messages"].to_string();
    assert!(!kept.contains(SECRET), "{kept}");
}

#[test]
fn whoever_loses_a_conversation_gets_no_answer_from_it() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].to_string();
        match messages.contains("and the code?") {
            true => Act::Stall(format!("It is {SECRET}.")),
            false => Act::say("Hello."),
        }
    });
    let house = house(&model, json!({}));
    let id = shared(&house);
    let mut cleo = house.websocket(2);
    let before = model.requests().len();
    cleo.send(&json!({
        "type": "chat", "message": "and the code?", "conversation_id": id, "stream": true,
    }));
    model.wait_for_requests(before + 1);
    keep(&house, &id);
    model.release();
    assert_lost(&cleo.response(), &id);
    assert_nothing_is_kept(&house, &id);
}

#[test]
fn whoever_loses_a_conversation_is_asked_for_nothing_in_it() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        match last.to_string().contains("keep it in mind") {
            true => Act::call("remember", json!({ "content": "plums" })),
            false if last["role"] == "tool" => Act::say(&format!("Done, {SECRET}.")),
            false => Act::say("Hello."),
        }
    });
    let house = house(&model, json!({ "permission_mode": "ask" }));
    let id = shared(&house);
    let [mut admin, mut cleo] = [0, 2].map(|who| house.websocket(who));
    let mut asks = house.websocket(2);
    asks.send(&json!({ "type": "chat", "message": "keep it in mind", "conversation_id": id }));
    let list = json!({ "type": "list_approvals" });
    let approval = eventually("the question is there", || {
        let listed = cleo.ask(list.clone());
        let listed = listed["approvals"].as_array()?.clone();
        Some(listed.first()?["approval_id"].clone())
    });
    keep(&house, &id);
    assert_lost(&asks.response(), &id);
    for client in [&mut admin, &mut cleo] {
        assert_eq!(client.ask(list.clone())["approvals"], json!([]));
    }
    for command in ["approve", "deny"] {
        let decide = json!({ "type": command, "approval_id": approval });
        assert_eq!(cleo.refused(decide), "not_found");
    }
    assert_nothing_is_kept(&house, &id);
}

#[test]
fn a_program_for_the_household_loses_what_becomes_private() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].to_string();
        match messages.contains("and the code?") {
            true => Act::Pause(format!("It is {SECRET}. It is {SECRET}.")),
            false => Act::say("Hello."),
        }
    });
    let house = house(&model, json!({}));
    let before = model.requests().len();
    let mut user = house.websocket(1);
    user.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    let body = json!({
        "model": "hearth", "stream": false,
        "messages": [{ "role": "user", "content": "and the code?" }],
    });
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| post(house.home.address(), "/api/chat", &[], &body));
        model.wait_for_requests(before + 1);
        keep(&house, &user.event("message.created")["conversation_id"]);
        model.release();
        answer.join().unwrap()
    });
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(!format!("{answer:?}").contains(SECRET), "{answer:?}");
}

#[test]
fn whoever_writes_in_an_account_s_conversation_has_the_account_s_tools() {
    let (model, receiver) = (curious(), Receiver::start());
    let house = house(
        &model,
        json!({
            "privacy": { "conversations": "household" },
            "channels": [
                { "name": "lan", "type": "tcp", "port": 0 },
                { "name": "hooks", "type": "webhook", "accounts": {
                    "door": { "incoming_path": "/door", "outgoing_url": receiver.url() },
                } },
            ],
        }),
    );
    // Everybody here knows it.
    let found = house.websocket(2).chat("what is the alarm code?");
    assert!(found.to_string().contains(SECRET), "{found}");
    let before = model.requests().len();
    let ask = |message: &str| {
        let body = json!({ "message": message, "conversation_id": "gate" });
        let answer = post(
            house.home.address(),
            "/door",
            &[("prefer", "wait=20")],
            &body,
        );
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    ask("hello");
    let mut user = house.websocket(1);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let mut listed = listed["conversations"].as_array().unwrap().iter();
    let of_door = listed.find(|one| one["channel"] == "webhook:door").unwrap();
    user.ask(json!({
        "type": "chat", "message": "what is the alarm code?", "conversation_id": of_door["id"],
    }));
    ask("and now?");
    let shown = json!(model.requests()[before..]).to_string();
    assert!(shown.contains("not permitted here"), "{shown}");
    assert!(!shown.contains(SECRET), "{shown}");
}

/// A call that only reads counts with the rights of the moment at which it runs.
#[test]
fn who_was_made_a_guest_during_a_call_may_not_make_the_next() {
    let model = Model::acting(vec![
        Act::Call(vec![
            ("wait".to_owned(), json!({})),
            ("recall".to_owned(), json!({ "query": "plums" })),
        ]),
        Act::say("Done."),
    ]);
    let home = Home::start(model.config_with(json!({
        "permission_mode": "allow",
        "tools": { "custom": [{ "name": "wait", "description": "Waits for a friend.",
            "command": ["sh", "-c", "> waits; until [ -e friend ]; do sleep 0.05; done; echo here"] }] },
    })));
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "wait" }));
    let files = home.folder.path().join("files");
    eventually("it waits", || files.join("waits").exists().then_some(()));
    let path = home.folder.path().join("hearth.db");
    let store = store::Store::open(&path, base::clock::Clock::system()).unwrap();
    let id = store.user("user").unwrap().unwrap().id;
    store.set_role(id, UserRole::Viewer).unwrap();
    store.close();
    std::fs::write(files.join("friend"), "").unwrap();
    let requests = model.wait_for_requests(2);
    let results = requests[1]["messages"].as_array().unwrap();
    let results: Vec<&Value> = results.iter().filter(|one| one["role"] == "tool").collect();
    assert!(
        results[0]["content"].to_string().contains("here"),
        "{results:?}"
    );
    let second = results[1]["content"].to_string();
    assert!(second.contains("not permitted here"), "{second}");
}

#[test]
fn a_turn_of_somebody_removed_or_made_a_guest_has_no_tools_any_more() {
    for is_removed in [true, false] {
        let (go, wait) = std::sync::mpsc::channel();
        let wait = std::sync::Mutex::new(wait);
        let model = Model::start(move |request, _| {
            let last = request["messages"].as_array().unwrap().last().unwrap();
            match last["role"] == "tool" {
                true => Act::say(last["content"].as_str().unwrap()),
                false => {
                    wait.lock().unwrap().recv_timeout(MAX_WAIT).unwrap();
                    Act::call("remember", json!({ "content": "plums", "share": true }))
                }
            }
        });
        let home = Home::start(model.config_with(json!({})));
        let mut admin = home.admin();
        let mut user = home.websocket(&home.tokens.user);
        user.send(&json!({ "type": "chat", "message": "keep it", "audience": ["admin"] }));
        model.wait_for_requests(1);
        if is_removed {
            admin.ask(json!({ "type": "remove_user", "name": "user" }));
        } else {
            // As the command line does it.
            let path = home.folder.path().join("hearth.db");
            let store = store::Store::open(&path, base::clock::Clock::system()).unwrap();
            let id = store.user("user").unwrap().unwrap().id;
            store.set_role(id, UserRole::Viewer).unwrap();
            store.close();
        }
        go.send(()).unwrap();
        let reply = eventually("the turn has ended", || {
            let listed = admin.ask(json!({ "type": "list_conversations" }));
            let id = listed["conversations"][0]["id"].clone();
            let page = admin.ask(json!({ "type": "get_messages", "conversation_id": id }));
            Some(page["messages"][1]["content"].as_str()?.to_owned())
        });
        assert!(reply.contains("not permitted here"), "{reply}");
        let memories = admin.ask(json!({ "type": "list_memories" }));
        assert_eq!(memories["memories"], json!([]));
    }
}
