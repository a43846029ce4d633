//! What phones are told, over scripted servers of ntfy and Gotify.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::program::{Program, printed, run};
use support::receiver::{Callback, Receiver};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn url(receiver: &Receiver) -> String {
    format!("http://{}", receiver.address)
}

fn ntfy(receiver: &Receiver, topic: &str) -> Value {
    json!({ "url": url(receiver), "topic": topic, "token": "tk_secret" })
}

/// What was told, as topic and text.
fn told(callbacks: &[Callback]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    callbacks
        .iter()
        .map(|one| (text(&one.body["topic"]), text(&one.body["message"])))
        .collect()
}

fn pair(topic: &str, text: &str) -> (String, String) {
    (topic.to_owned(), text.to_owned())
}

fn remind(home: &Home, token: &str, at: &str) {
    let mut client = home.websocket(token);
    client.ask(json!({ "type": "create_schedule", "prompt": "Remind me", "at": at }));
}

#[test]
fn a_reminder_reaches_its_person_alone_with_what_they_want_to_see() {
    let model = Model::saying("The bins!");
    let (ntfy_server, gotify) = (Receiver::start(), Receiver::start());
    let home = Home::start(model.config_with(json!({ "people": {
        "admin": { "notifications": { "ntfy": ntfy(&ntfy_server, "of-admin") } },
        "user": { "notifications": {
            "ntfy": ntfy(&ntfy_server, "of-user"),
            "gotify": { "url": format!("{}/gotify/", url(&gotify)), "token": "A.token" },
            "content": true,
        } },
    } })));
    remind(&home, &home.tokens.user, "+3h");
    home.server().advance_clock(3 * HOUR);
    let request = ntfy_server.wait_for(1).remove(0);
    assert!(request.head.starts_with("POST / HTTP/1.1\r\n"));
    assert_eq!(request.header("authorization"), Some("Bearer tk_secret"));
    let id = request.body["sequence_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("ntf_"), "{id}");
    assert_eq!(
        request.body,
        json!({ "topic": "of-user", "title": "A reminder is due", "message": "The bins!",
            "priority": 3, "sequence_id": id })
    );
    let request = gotify.wait_for(1).remove(0);
    assert!(
        request
            .head
            .starts_with("POST /gotify/message HTTP/1.1\r\n")
    );
    assert_eq!(request.header("x-gotify-key"), Some("A.token"));
    assert_eq!(
        request.body,
        json!({ "title": "A reminder is due", "message": "The bins!", "priority": 5 })
    );
    // The admin, who wants no content, is told of their own alone.
    remind(&home, &home.tokens.admin, "+3h");
    home.server().advance_clock(3 * HOUR);
    let requests = ntfy_server.wait_for(2);
    assert_eq!(told(&requests)[1], pair("of-admin", "A reminder is due"));
    assert_eq!(requests[1].body["title"], "Hearth");
    assert_eq!(gotify.callbacks().len(), 1);

    // The settings show none of the secrets.
    let config = home
        .admin()
        .ask(json!({ "type": "get_config" }))
        .to_string();
    for secret in ["of-user", "of-admin", "tk_secret", "A.token"] {
        assert!(!config.contains(secret), "{config}");
    }
    assert!(config.contains(r#""topic_set":true"#), "{config}");
}

#[test]
fn whose_notifications_somebody_else_sends_elsewhere_is_told() {
    let phones = Receiver::start();
    let home = Home::offline();
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    let notices = |client: &mut Client| {
        let listed = client.ask(json!({ "type": "list_conversations" }));
        listed["conversations"].as_array().unwrap().clone()
    };
    let limit = |name: &str, topic: &str, content: bool| {
        let way = json!({ "ntfy": ntfy(&phones, topic), "content": content });
        json!({ "type": "set_limits", "name": name, "limits": { "notifications": way } })
    };
    admin.ask(limit("user", "of-admin", true));
    let told = notices(&mut user);
    assert_eq!(told[0]["title"], "Where your notifications go", "{told:?}");
    let get = json!({ "type": "get_messages", "conversation_id": told[0]["id"] });
    let text = user.ask(get)["messages"][0]["content"].clone();
    let begin = format!(
        "admin has set where your notifications go: {}.",
        url(&phones)
    );
    assert!(text.as_str().unwrap().starts_with(&begin), "{text}");
    // No notice where no more people read it, nor for one's own change.
    admin.ask(limit("user", "of-admin", false));
    admin.ask(limit("admin", "of-admin", true));
    assert_eq!(notices(&mut user).len(), 1);
    let people = json!({ "user": { "notifications": { "ntfy": ntfy(&phones, "another") } } });
    let change = json!({ "type": "update_config", "config": { "people": people } });
    admin.ask(change);
    let all = [&mut user, &mut admin].map(|client| notices(client).len());
    assert_eq!(all, [2, 0]);
}

#[test]
fn a_question_reaches_who_may_answer_it_unless_it_is_answered_at_once() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match text {
            _ if last["role"] == "tool" => Act::say("Done."),
            _ if text.contains("the door") => Act::call("notify", json!({ "message": "x" })),
            _ => Act::call("lists", json!({ "action": "show" })),
        }
    });
    let phones = Receiver::start();
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "people": {
            "admin": { "notifications": { "ntfy": ntfy(&phones, "of-admin"), "content": true } },
            "user": { "notifications": { "ntfy": ntfy(&phones, "of-user") } },
            "viewer": { "notifications": { "ntfy": ntfy(&phones, "of-viewer") } },
        },
    })));
    let mut asker = home.websocket(&home.tokens.user);
    asker.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let mut ask = |message: &str| {
        asker.send(&json!({ "type": "chat", "message": message }));
        asker.event("approval.requested")
    };
    // Answered before phones are told.
    let first = ask("the list");
    let asked_at = Instant::now();
    home.server().advance_clock(5 * SECOND);
    eventually("the timekeeper has looked twice", || {
        (home.server().last_tick() > asked_at + SECOND).then_some(())
    });
    let mut admin = home.admin();
    admin.ask(json!({ "type": "deny", "approval_id": first["approval_id"] }));
    ask("the list");
    home.server().advance_clock(11 * SECOND);
    let question = "A question waits for your answer";
    let requests = phones.wait_for(1);
    assert_eq!(told(&requests), [pair("of-user", question)]);
    assert_eq!(requests[0].body["priority"], 4);
    // Whoever asked may not allow this one.
    ask("the door");
    home.server().advance_clock(11 * SECOND);
    let requests = phones.wait_for(2);
    let (topic, text) = &told(&requests)[1];
    assert_eq!(topic, "of-admin");
    assert!(text.contains("notify whoever asked: x"), "{text}");
    assert_eq!(requests[1].body["title"], question);
}

#[test]
fn a_reply_reaches_who_has_gone_and_nobody_who_is_there() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str().unwrap_or_default() {
            _ if last["role"] == "tool" => Act::say("Nothing is on it."),
            text if text.contains("long") => Act::Stall("At last.".to_owned()),
            text if text.contains("list") => Act::call("lists", json!({ "action": "show" })),
            _ => Act::say("Here."),
        }
    });
    let phones = Receiver::start();
    let home = Home::start(model.config_with(json!({
        "permission_mode": "ask",
        "people": { "user": { "notifications": {
            "ntfy": ntfy(&phones, "of-user"), "content": true,
        } } },
    })));
    let mut admin = home.admin();
    let mut connections = || admin.ask(json!({ "type": "server_info" }))["connections"].as_u64();
    let mut client = home.websocket(&home.tokens.user);
    client.send(&json!({ "type": "chat", "message": "a long one" }));
    model.wait_for_requests(1);
    drop(client);
    eventually("they have gone", || (connections()? == 1).then_some(()));
    home.server().advance_clock(11 * SECOND);
    model.release();
    let requests = phones.wait_for(1);
    assert_eq!(told(&requests), [pair("of-user", "At last.")]);
    assert_eq!(requests[0].body["title"], "A reply has come");

    // Whoever is there reads a late reply on their screen.
    let mut client = home.websocket(&home.tokens.user);
    client.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
    client.send(&json!({ "type": "chat", "message": "the list" }));
    let asked = client.event("approval.requested");
    home.server().advance_clock(11 * SECOND);
    phones.wait_for(2);
    let id = &asked["approval_id"];
    client.send(&json!({ "type": "approve", "approval_id": id, "remember": "once" }));
    client.event("chat.done");
    // A short one is no news, either.
    let mut other = home.websocket(&home.tokens.user);
    other.chat("hello");
    drop((client, other));
    remind(&home, &home.tokens.user, "+1h");
    home.server().advance_clock(HOUR);
    let titles: Vec<Value> = phones
        .wait_for(3)
        .iter()
        .map(|request| request.body["title"].clone())
        .collect();
    let question = "A question waits for your answer";
    assert_eq!(titles, ["A reply has come", question, "A reminder is due"]);
}

#[test]
fn quiet_hours_put_everything_off_until_they_end() {
    let model = Model::saying("The bins!");
    let phones = Receiver::start();
    // An hour ago until two hours from now.
    let home = Home::start(model.config());
    let minute = home.clock.now().as_millis().rem_euclid(86_400_000) / 60_000;
    let time = |minute: i64| {
        let minute = minute.rem_euclid(24 * 60);
        format!("{:02}:{:02}", minute / 60, minute % 60)
    };
    let quiet = format!("{}-{}", time(minute - 60), time(minute + 120));
    let folder = home.folder.path();
    write_config(
        folder,
        model.config_with(json!({ "time_zone": "UTC", "people": {
            "admin": { "notifications": { "ntfy": ntfy(&phones, "of-admin") } },
            "user": { "notifications": {
                "ntfy": ntfy(&phones, "of-user"), "quiet_hours": quiet,
            } },
        } })),
    );
    home.server().reload().unwrap();
    remind(&home, &home.tokens.user, "+1h");
    home.server().advance_clock(HOUR);
    remind(&home, &home.tokens.admin, "+10m");
    home.server().advance_clock(HOUR / 6);
    let reminder = "A reminder is due";
    assert_eq!(told(&phones.wait_for(1)), [pair("of-admin", reminder)]);
    home.server().advance_clock(HOUR);
    let all = phones.wait_for(2);
    assert_eq!(told(&all)[1], pair("of-user", reminder));
}

#[test]
fn the_tool_tells_who_asks_and_others_of_the_household_what_it_says() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let person = ["viewer", "mum", "dad", "nobody"]
            .iter()
            .find(|name| text.contains(**name));
        match person {
            _ if last["role"] == "tool" => Act::say(text),
            Some(name) => Act::call("notify", json!({ "message": "Dinner!", "person": name })),
            None => Act::call("notify", json!({ "message": "Dinner!" })),
        }
    });
    let phones = Receiver::start();
    let config = |people: Value| model.config_with(json!({ "people": people }));
    let home = Home::start(config(json!({
        "mum": { "notifications": { "ntfy": ntfy(&phones, "of-mum"), "content": true } },
        "dad": { "notifications": { "ntfy": ntfy(&phones, "of-dad") } },
        "user": { "notifications": { "ntfy": ntfy(&phones, "of-user") } },
        "viewer": { "notifications": { "ntfy": ntfy(&phones, "of-viewer"), "content": true } },
    })));
    home.add_person("mum", store::UserRole::User);
    home.add_person("dad", store::UserRole::User);
    let mut client = home.websocket(&home.tokens.user);
    let mut say = |text: &str| client.chat(text)["response"].as_str().unwrap().to_owned();
    assert!(say("tell mum").contains("The message to mum is being sent."));
    assert_eq!(told(&phones.wait_for(1)), [pair("of-mum", "Dinner!")]);
    assert!(say("tell dad").contains("carry no text"));
    assert!(say("tell viewer").contains("there is nobody called"));
    assert!(say("tell nobody").contains("there is nobody called"));
    assert!(say("tell me").contains("without the text"));
    assert_eq!(
        told(&phones.wait_for(2))[1],
        pair("of-user", "A message for you")
    );
    // Without a phone there is nothing that the model could call.
    write_config(home.folder.path(), config(json!({})));
    home.server().reload().unwrap();
    say("tell me");
    let offered = model.requests().pop().unwrap()["tools"].to_string();
    assert!(!offered.contains(r#""notify""#), "{offered}");
}

fn remind_soon(program: &Program, token: &str) {
    let mut client = Client::websocket(program.address);
    client.authenticate(token);
    client.ask(json!({ "type": "create_schedule", "prompt": "Remind me", "at": "+1s" }));
}

#[test]
fn it_is_tried_again_after_a_kill_and_told_once() {
    let model = Model::saying("The bins!");
    let phones = Receiver::answering(|_, number| match number {
        0 => "503 Service Unavailable".to_owned(),
        _ => "200 OK".to_owned(),
    });
    let folder = TemporaryDirectory::new();
    let config = model.config_with(json!({ "people": { "user": { "notifications": {
        "ntfy": ntfy(&phones, "of-user"), "content": true,
    } } } }));
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    remind_soon(&program, &tokens.user);
    phones.wait_for(1);
    program.kill();
    let program = Program::serve(folder.path());
    let requests = phones.wait_for(2);
    assert_eq!(requests[0].body, requests[1].body);
    let log = || std::fs::read_to_string(folder.path().join("hearth.log")).unwrap_or_default();
    eventually("it is on disk", || {
        let is_delivered =
            |line: &str| line.contains("to user by ntfy") && line.contains(": delivered");
        log().lines().any(is_delivered).then_some(())
    });
    program.kill();
    let program = Program::serve(folder.path());
    remind_soon(&program, &tokens.user);
    let requests = phones.wait_for(3);
    let id = |number: usize| requests[number].body["sequence_id"].clone();
    assert_ne!(id(2), id(1));
    assert_eq!(requests.len(), 3);
}

#[test]
fn the_command_line_sends_one_and_says_what_came_back() {
    let (good, bad) = (
        Receiver::start(),
        Receiver::answering(|_, _| "401 Unauthorized".to_owned()),
    );
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "people": {
            "ada": { "notifications": { "ntfy": ntfy(&good, "ada"), "quiet_hours": "00:00-23:59" } },
            "bob": { "notifications": {
                "ntfy": ntfy(&good, "bob"), "gotify": { "url": url(&bad), "token": "t" },
            } },
        } }),
    );
    make_people(folder.path());
    for (name, is_fine, says) in [
        ("ada", true, "ntfy: sent (status 200)"),
        ("bob", false, "gotify: status 401: the token is refused"),
        ("eve", false, "eve has no notifications set up"),
    ] {
        let output = run(folder.path(), &["notify", "test", name]);
        assert_eq!(output.status.success(), is_fine, "{}", printed(&output));
        assert!(printed(&output).contains(says), "{}", printed(&output));
    }
    let text = "Notifications reach this phone";
    assert_eq!(
        told(&good.callbacks()),
        [pair("ada", text), pair("bob", text)]
    );
}
