//! Browsers that are told what waits, over a scripted push service.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::model::{Act, Model};
use support::program::Program;
use support::push::{Browser, Keys, bytes, claims};
use support::receiver::{Callback, Receiver};

const HOUR: Duration = Duration::from_secs(3_600);

fn endpoint(service: &Receiver, name: &str) -> String {
    format!("http://{}/push/{name}", service.address)
}

fn config(model: &Model, service: &Receiver) -> Value {
    let host = service.address.to_string();
    model.config_with(json!({ "notifications": {
        "push_hosts": ["fcm.googleapis.com", host], "push_contact": "mailto:ada@example.org",
    } }))
}

fn subscribe(client: &mut Client, service: &Receiver, name: &str) -> Browser {
    let browser = Browser::new();
    let subscription = browser.subscription(&endpoint(service, name));
    let told = client.ask(json!({ "type": "push_subscribe", "subscription": subscription }));
    assert_eq!(told, json!({ "subscribed": true }));
    browser
}

/// The names of the browsers that were told something.
fn told(requests: &[Callback]) -> Vec<String> {
    let name = |one: &Callback| {
        let line = one.head.lines().next().unwrap().to_owned();
        let path = line.strip_prefix("POST /push/").unwrap();
        path.split(' ').next().unwrap().to_owned()
    };
    requests.iter().map(name).collect()
}

fn remind(client: &mut Client, at: &str) -> Value {
    client.ask(json!({ "type": "create_schedule", "prompt": "Remind me", "at": at }))
}

/// A session with a password, as a page has it.
fn sign_in(home: &Home, name: &str) -> Client {
    let body = json!({ "username": name, "password": PASSWORD });
    let answer: Value =
        serde_json::from_str(&post(home.address(), "/auth", &[], &body).body).unwrap();
    home.websocket(answer["data"]["token"].as_str().unwrap())
}

/// RFC 8291 section 5, and what its keys agree on from appendix A: the reader of these
/// tests reads it.
#[test]
fn the_reader_of_messages_reads_that_of_the_rfc() {
    let keys = Keys {
        public: bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        ),
        secret: bytes("BTBZMqHH6r4Tts7J_aSIgg"),
    };
    let message = bytes(
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
    );
    let text = keys.open(
        &bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"),
        &message,
    );
    assert_eq!(text, b"When I grow up, I want to be a watermelon");
}

#[test]
fn a_reminder_reaches_each_browser_of_its_person_encrypted() {
    let model = Model::saying("The bins! 🗑");
    let service = Receiver::answering(|_, _| "201 Created".to_owned());
    let home = Home::start(config(&model, &service));
    let mut user = home.websocket(&home.tokens.user);
    let info = user.ask(json!({ "type": "server_info" }));
    let key = info["push_key"].as_str().unwrap();
    assert_eq!(bytes(key).len(), 65);
    let file = home.folder.path().join("push.key");
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    let laptop = subscribe(&mut user, &service, "laptop");
    let phone = subscribe(&mut user, &service, "phone");
    subscribe(&mut home.admin(), &service, "of-admin");
    remind(&mut user, "+3h");
    home.server().advance_clock(3 * HOUR);
    let mut requests = service.wait_for(2);
    requests.sort_by_key(|one| one.head.clone());
    assert_eq!(told(&requests), ["laptop", "phone"]);
    let now = home.clock.now().as_millis() / 1_000;
    let mut tags = Vec::new();
    for (request, browser) in requests.iter().zip([laptop, phone]) {
        let claims = claims(request, key);
        assert_eq!(claims["aud"], format!("http://{}", service.address));
        assert_eq!(claims["sub"], "mailto:ada@example.org");
        let left = claims["exp"].as_i64().unwrap() - now;
        assert!((60..=24 * 3_600).contains(&left), "{left}");
        for (name, value) in [
            ("content-encoding", "aes128gcm"),
            ("urgency", "normal"),
            ("content-length", &*request.raw.len().to_string()),
        ] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
        let ttl: u64 = request.header("ttl").unwrap().parse().unwrap();
        assert!((1..=36 * 3_600).contains(&ttl), "{ttl}");
        let topic = request.header("topic").unwrap();
        assert!(topic.len() <= 32);
        let message = browser.read(&request.raw);
        assert_eq!(message["title"], "A reminder is due");
        assert_eq!(message["body"], "The bins! 🗑");
        assert_eq!(message["tag"], topic);
        tags.push(message["tag"].clone());
        let conversation = message["conversation_id"].as_str().unwrap();
        user.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
    }
    assert_ne!(tags[0], tags[1]);
    // The same key after a restart.
    let mut home = home;
    home.restart();
    assert_eq!(
        home.admin().ask(json!({ "type": "server_info" }))["push_key"],
        key
    );
}

#[test]
fn a_reminder_in_a_browser_has_its_buttons_and_a_routine_has_none() {
    let service = Receiver::answering(|_, _| "201 Created".to_owned());
    let home = Home::start(config(&Model::saying("Dry."), &service));
    let mut user = home.websocket(&home.tokens.user);
    let phone = subscribe(&mut user, &service, "phone");
    let told = user.ask(json!({ "type": "create_schedule", "say": "Bins", "at": "+1h" }));
    home.server().advance_clock(HOUR);
    let message = phone.read(&service.wait_for(1)[0].raw);
    assert_eq!(message["schedule_id"], told["schedule_id"]);
    assert_eq!(
        message["actions"],
        json!([
            { "action": "done", "title": "Done" },
            { "action": "again", "title": "Again in 10 minutes" },
        ])
    );
    let tablet = subscribe(&mut user, &service, "tablet");
    remind(&mut user, "+1h");
    home.server().advance_clock(HOUR);
    let requests = service.wait_for(3);
    let to_tablet = requests
        .iter()
        .find(|one| one.head.contains("/push/tablet"));
    let message = tablet.read(&to_tablet.unwrap().raw);
    assert!(message["actions"].is_null(), "{message}");
}

#[test]
fn a_question_reaches_who_may_answer_it_and_the_tool_its_person() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["content"].as_str().unwrap_or_default() {
            text if last["role"] == "tool" => Act::say(text),
            text if text.contains("dinner") => {
                Act::call("notify", json!({ "message": "Dinner!", "person": "user" }))
            }
            text if text.contains("hello") => Act::say("Hello."),
            _ => Act::call("lists", json!({ "action": "show" })),
        }
    });
    let service = Receiver::answering(|_, _| "201 Created".to_owned());
    let mut settings = config(&model, &service);
    settings["permission_mode"] = json!("ask");
    settings["tool_permissions"] = json!({ "notify": "allow" });
    let home = Home::start(settings);
    let mut admin = home.admin();
    admin.chat("hello");
    let offered = |model: &Model| model.requests().pop().unwrap()["tools"].to_string();
    assert!(!offered(&model).contains(r#""notify""#));
    let mut user = home.websocket(&home.tokens.user);
    let first = subscribe(&mut user, &service, "first");
    user.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    user.send(&json!({ "type": "chat", "message": "the list" }));
    user.event("approval.requested");
    home.server().advance_clock(Duration::from_secs(11));
    let request = service.wait_for(1).remove(0);
    assert_eq!(request.header("urgency"), Some("high"));
    let message = first.read(&request.raw);
    assert_eq!(message["title"], "A question waits for your answer");
    assert!(
        message["body"].as_str().unwrap().contains("lists"),
        "{message}"
    );
    // The assistant can tell people once one of them can be told.
    let second = subscribe(&mut home.websocket(&home.tokens.user), &service, "first");
    let reply = admin.chat("dinner");
    assert!(offered(&model).contains(r#""notify""#));
    assert!(
        reply["response"]
            .as_str()
            .unwrap()
            .contains("The message to user is being sent.")
    );
    let request = service.wait_for(2).remove(1);
    assert_eq!(second.read(&request.raw)["body"], "Dinner!");
}

#[test]
fn a_browser_is_told_nothing_once_it_is_gone_or_signed_out() {
    let model = Model::saying("The bins!");
    let service = Receiver::answering(|request, _| {
        let path = request.head.lines().next().unwrap_or_default();
        let status = match path {
            _ if path.contains("/gone") => "410 Gone",
            _ if path.contains("/unknown") => "404 Not Found",
            _ => "201 Created",
        };
        status.to_owned()
    });
    let home = Home::start(config(&model, &service));
    let store = home.server().store();
    let mut user = home.websocket(&home.tokens.user);
    for name in ["gone", "unknown"] {
        subscribe(&mut user, &service, name);
    }
    remind(&mut user, "+1h");
    home.server().advance_clock(HOUR);
    let mut names = told(&service.wait_for(2));
    names.sort();
    assert_eq!(names, ["gone", "unknown"]);
    let id = store.user("user").unwrap().unwrap().id;
    eventually("they are forgotten", || {
        (!store.is_told_by_push(id).unwrap()).then_some(())
    });

    for name in ["kept", "dropped", "handed-on"] {
        subscribe(&mut user, &service, name);
    }
    let mut page = sign_in(&home, "user");
    subscribe(&mut page, &service, "signed-out");
    page.ask(json!({ "type": "sign_out" }));
    // Somebody else has signed in with this browser.
    subscribe(&mut home.admin(), &service, "handed-on");
    let endpoint = endpoint(&service, "dropped");
    let drop_it = json!({ "type": "push_unsubscribe", "endpoint": endpoint });
    let unsubscribed = |is: bool| json!({ "unsubscribed": is });
    assert_eq!(home.admin().ask(drop_it.clone()), unsubscribed(false));
    assert_eq!(user.ask(drop_it), unsubscribed(true));
    remind(&mut user, "+1h");
    home.server().advance_clock(HOUR);
    service.wait_for(3);
    // Whoever is removed has no browsers.
    let mut admin = home.admin();
    remind(&mut user, "+1h");
    admin.ask(json!({ "type": "remove_user", "name": "user" }));
    remind(&mut admin, "+1h");
    home.server().advance_clock(HOUR);
    let names = told(&service.wait_for(4));
    assert_eq!(names[2..], ["kept", "handed-on"]);
}

#[test]
fn a_browser_elsewhere_or_without_a_key_is_refused() {
    let model = Model::saying("hello");
    let service = Receiver::start();
    let home = Home::start(config(&model, &service));
    let mut admin = home.admin();
    let mut refused = |subscription: Value| {
        admin.send(&json!({ "type": "push_subscribe", "subscription": subscription }));
        let answer = admin.response();
        assert_eq!(answer["code"], "invalid_request", "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    for elsewhere in [
        "https://push.example/a",
        "https://127.0.0.1:1/a",
        "http://fcm.googleapis.com/a",
        "file:///etc/passwd",
    ] {
        let error = refused(Browser::new().subscription(elsewhere));
        assert!(error.contains("endpoint"), "{error}");
    }
    let mut subscription = Browser::new().subscription(&endpoint(&service, "a"));
    subscription["keys"]["p256dh"] = format!("BAAA{}", "A".repeat(83)).into();
    let error = refused(subscription);
    assert!(error.contains("p256dh"), "{error}");
    assert!(service.callbacks().is_empty());
}

#[test]
fn it_is_tried_again_after_a_kill_and_told_once() {
    let model = Model::saying("The bins!");
    let service = Receiver::answering(|_, number| match number {
        0 => "503 Service Unavailable".to_owned(),
        _ => "201 Created".to_owned(),
    });
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), config(&model, &service));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    subscribe(&mut client, &service, "phone");
    remind(&mut client, "+1s");
    service.wait_for(1);
    program.kill();
    let program = Program::serve(folder.path());
    let requests = service.wait_for(2);
    assert_eq!(requests[0].header("topic"), requests[1].header("topic"));
    assert_ne!(
        requests[0].raw, requests[1].raw,
        "each has a key of its own"
    );
    let log = || fs::read_to_string(folder.path().join("hearth.log")).unwrap_or_default();
    eventually("it is on disk", || {
        let is_delivered =
            |line: &str| line.contains("to user by push") && line.contains(": delivered");
        log().lines().any(is_delivered).then_some(())
    });
    program.kill();
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    remind(&mut client, "+1s");
    let requests = service.wait_for(3);
    assert_ne!(requests[2].header("topic"), requests[1].header("topic"));
    assert!(
        !log().contains("/push/phone"),
        "where it is reached is secret"
    );
}
