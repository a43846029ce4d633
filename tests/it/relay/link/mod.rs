//! A machine behind a relay: whom it brings is served like everybody, what it
//! must not read it cannot, and when it lies only whom it lies about suffers.

mod commands;
mod hostile;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::model::{Act, Model};
use support::program::{free_port, printed, run};
use support::relay::{Hidden, Relay, TOKEN};

/// The one entry of `server_info.relays`, once it is in this state.
fn standing(home: &Home, state: &str) -> Value {
    let mut admin = home.admin();
    eventually(state, || {
        let info = admin.ask(json!({ "type": "server_info" }));
        (info["relays"][0]["state"] == state).then(|| info["relays"][0].clone())
    })
}

/// Why the link was lost, once it was.
fn last_error(home: &Home) -> String {
    let mut admin = home.admin();
    eventually("an error", || {
        let info = admin.ask(json!({ "type": "server_info" }));
        info["relays"][0]["last_error"].as_str().map(str::to_owned)
    })
}

fn auth(token: &str) -> Value {
    json!({ "type": "auth", "token": token })
}

#[test]
fn a_plain_client_is_served_as_at_home() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let mut link = relay.link();
    let machine = link.key.machine_id();
    assert_eq!(
        link.request.uri().to_string(),
        format!("/ws?machine_id={machine}&role=machine")
    );
    let bearer = link.request.headers()["authorization"].to_str().unwrap();
    assert_eq!(bearer, format!("Bearer {TOKEN}"));

    link.sign_in(1, &home.tokens.admin);
    link.sign_in(2, &home.tokens.viewer);
    link.ask(
        1,
        json!({ "type": "subscribe", "events": ["message.created"] }),
    );
    let said = link.ask(1, json!({ "type": "chat", "message": "hello" }));
    assert!(said["response"].is_string());
    link.text(
        2,
        &json!({ "type": "chat", "message": "hello" }).to_string(),
    );
    assert_eq!(link.response(2)["code"], "unauthorized");
    let refused = json!({ "type": "update_config", "config": { "model": "m" } });
    link.text(2, &refused.to_string());
    assert_eq!(link.response(2)["code"], "unauthorized");

    let info = link.ask(1, json!({ "type": "server_info" }));
    assert_eq!(info["machine_id"], machine.as_str());
    assert_eq!(
        info["relays"],
        json!([{
            "name": "far", "url": format!("ws://{}/ws", relay.address()), "state": "linked",
            "clients": 2, "last_error": null, "next_try": null,
        }])
    );
    // On its own /ws the machine may be named.
    let url = format!("ws://{}/ws?machine_id={machine}", home.address());
    assert!(tungstenite::connect(url).is_ok());
}

#[test]
fn who_a_machine_is_stays_the_same() {
    let relay = Relay::new();
    let mut home = Home::start(relay.config());
    // Kept until the server stops: it would dial again, and leave the relay a
    // connection that nobody serves.
    let link = relay.link();
    let machine = link.key.machine_id();
    let path = home.folder.path().join("identity.key");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    home.restart();
    drop(link);
    assert_eq!(relay.link().key.machine_id(), machine);
    home.stop();

    fs::write(&path, "nonsense").unwrap();
    let ran = run(
        home.folder.path(),
        &["serve", "--bind", "127.0.0.1", "--port", "0"],
    );
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        printed(&ran).contains("does not contain the machine's key"),
        "{}",
        printed(&ran)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "nonsense");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_relay_goes_away() {
    let model = Model::acting(vec![Act::Stall("an answer".to_owned())]);
    let relay = Relay::on(free_port());
    let mut config = model.config();
    config["channels"] = relay.config()["channels"].clone();
    let home = Home::start(config);
    let mut link = relay.link();
    link.sign_in(1, &home.tokens.user);
    link.ask(
        1,
        json!({ "type": "subscribe", "events": ["message.created"] }),
    );
    link.text(
        1,
        &json!({ "type": "chat", "message": "a question" }).to_string(),
    );
    let created = link.receive(1);
    model.wait_for_requests(1);
    let port = relay.address().port();
    drop((link, relay));
    standing(&home, "waiting");
    model.release();

    let relay = Relay::on(port);
    let mut link = relay.link();
    link.sign_in(1, &home.tokens.user);
    let request = json!({ "type": "get_messages", "conversation_id": created["conversation_id"] });
    let messages = eventually("the reply", || {
        let messages = link.ask(1, request.clone())["messages"].clone();
        (messages.as_array().unwrap().len() == 2).then_some(messages)
    });
    assert_eq!(messages[1]["content"], "an answer");
}

#[test]
fn a_machine_may_require_encryption() {
    let relay = Relay::new();
    let mut config = relay.config();
    config["channels"][1]["encryption"] = json!("required");
    let home = Home::start(config);
    let mut link = relay.link();
    link.open(1, "203.0.113.7");
    link.text(1, &auth(&home.tokens.user).to_string());
    assert_eq!(link.response(1)["code"], "unauthorized");
    assert_eq!(link.closed(1).0, 1008);
    let mut hidden = Hidden::open(&mut link, 2);
    hidden.ask(&mut link, auth(&home.tokens.user));
    let said = hidden.ask(&mut link, json!({ "type": "chat", "message": "hi" }));
    assert!(said["turn_id"].is_string());
}

#[test]
fn guessing_through_a_relay_is_slowed_down_and_hurts_nobody_at_home() {
    let relay = Relay::new();
    let mut config = relay.config();
    config["limits"] = json!({ "login_failures": 3 });
    let home = Home::start(config);
    let mut link = relay.link();
    let mut number = 0;
    let mut sign_in = |address: &str, credential: Value| {
        number += 1;
        link.open(number, address);
        link.text(number, &credential.to_string());
        let response = link.response(number);
        response["code"].as_str().unwrap_or("ok").to_owned()
    };
    let with_password = |name: &str, password: &str| json!({ "type": "auth", "username": name, "password": password });
    let own = "198.51.100.250";
    assert_eq!(sign_in(own, with_password("user", PASSWORD)), "ok");
    for _ in 0..3 {
        assert_eq!(
            sign_in("127.0.0.1", with_password("x", "wrong")),
            "invalid_token"
        );
    }
    assert_eq!(
        sign_in("127.0.0.1", with_password("user", PASSWORD)),
        "rate_limited"
    );
    assert_eq!(
        sign_in("203.0.113.1", with_password("user", PASSWORD)),
        "ok"
    );
    // A relay that invents addresses and names gets no more than its share.
    let mut guess = |tries: u8| {
        let name = format!("person {tries}");
        sign_in(
            &format!("198.51.100.{tries}"),
            with_password(&name, "wrong"),
        )
    };
    let refused = (0..u8::MAX).find(|tries| guess(*tries) != "invalid_token");
    assert_eq!(refused, Some(3 * 8 - 3));
    assert_eq!(
        sign_in("203.0.113.9", with_password("user", PASSWORD)),
        "rate_limited"
    );
    // Where the person signed in before, others' guesses do not count.
    assert_eq!(sign_in(own, with_password("user", PASSWORD)), "ok");
    // At home the address 127.0.0.1 has failed at nothing.
    let data = json!({ "username": "user", "password": PASSWORD });
    assert_eq!(post(home.address(), "/auth", &[], &data).status, 200);
}

#[test]
fn wrong_tokens_through_a_relay_never_refuse_a_valid_one() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let mut link = relay.link();
    for number in 1..=60 {
        link.open(number, "203.0.113.1");
        link.text(number, &auth("wrong").to_string());
        assert_eq!(link.response(number)["code"], "invalid_token");
    }
    link.sign_in(100, &home.tokens.user);
}

#[test]
fn two_servers_with_one_key_do_not_fight() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    relay.link().close(1012);
    let standing = standing(&home, "replaced");
    let told = standing["last_error"].as_str().unwrap();
    assert!(told.contains("identity.key"), "{told}");
    assert!(standing["next_try"].is_string());
}

#[test]
fn a_relay_that_refuses_is_told_of() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let (mut socket, _) = relay.accept_machine();
    socket.read().unwrap();
    let error = json!({ "status": "error", "error": "no place is left", "code": "rate_limited" });
    socket
        .send(tungstenite::Message::text(error.to_string()))
        .unwrap();
    assert_eq!(
        last_error(&home),
        "the relay refused the link: no place is left"
    );
}

#[test]
fn a_server_that_stops_says_goodbye() {
    let relay = Relay::new();
    let mut home = Home::start(relay.config());
    let mut link = relay.link();
    link.sign_in(1, &home.tokens.user);
    let stopping = std::thread::spawn(move || {
        home.stop();
        home
    });
    assert_eq!(link.closed(1).0, 1001);
    link.ended();
    stopping.join().unwrap();
}

#[test]
fn several_relays_at_once_carry_on_their_own() {
    let (one, two) = (Relay::new(), Relay::new());
    let mut config = one.config();
    let mut farther = two.channel();
    farther["name"] = json!("farther");
    config["channels"].as_array_mut().unwrap().push(farther);
    let home = Home::start(config);
    let mut first = one.link();
    let mut second = two.link();
    assert_eq!(first.key, second.key);
    second.sign_in(1, &home.tokens.user);
    first.sign_in(1, &home.tokens.user);
    drop((first, one));
    last_error(&home);
    second.ask(1, json!({ "type": "ping" }));
    let mut client = Client::websocket(home.address());
    client.authenticate(&home.tokens.user);
}
