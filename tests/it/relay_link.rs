//! A machine behind a relay: whom it brings is served like everybody, what it
//! must not read it cannot, and when it lies only whom it lies about suffers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::support::client::Client;
use super::support::eventually;
use super::support::home::{Folder, Home, PASSWORD, make_people, write_config};
use super::support::model::{Act, Model};
use super::support::program::{Program, hearth, printed, run};
use super::support::relay::{Forwarder, Hidden, MESSAGE_BYTES, Relay, TOKEN};

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
    let machine = relay.link().key.machine_id();
    let path = home.folder.path().join("identity.key");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    home.restart();
    assert_eq!(relay.link().key.machine_id(), machine);
    home.stop();

    fs::write(&path, "nonsense").unwrap();
    let ran = run(
        home.folder.path(),
        &["serve", "--bind", "127.0.0.1", "--port", "0"],
    );
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        printed(&ran).contains("does not hold the machine's key"),
        "{}",
        printed(&ran)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "nonsense");
}

#[test]
fn a_relay_sees_nothing_of_what_is_encrypted() {
    let words = ["nightingale", "marmalade", "write_file", "letter.txt"];
    let model = Model::acting(vec![
        Act::call(
            "write_file",
            json!({ "path": "letter.txt", "content": "marmalade" }),
        ),
        Act::say("marmalade"),
    ]);
    let relay = Relay::new();
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["channels"] = relay.config()["channels"].clone();
    let home = Home::start(config);
    let mut link = relay.link();

    let mut hidden = Hidden::open(&mut link, 1);
    hidden.ask(&mut link, auth(&home.tokens.admin));
    hidden.ask(&mut link, json!({ "type": "subscribe" }));
    hidden.send(
        &mut link,
        &json!({ "type": "chat", "id": "c", "message": "nightingale", "stream": true }),
    );
    let asked = hidden.event(&mut link, "approval.requested");
    let approve = json!({
        "type": "approve", "id": "a", "approval_id": asked["approval_id"], "remember": "once",
    });
    hidden.send(&mut link, &approve);
    let answer = loop {
        let message = hidden.receive(&mut link);
        if message["id"] == "c" {
            break message;
        }
    };
    assert_eq!(answer["data"]["response"], "marmalade", "{answer}");
    // A long text takes several messages.
    let long = "nightingale ".repeat(20_000);
    hidden.ask(
        &mut link,
        json!({ "type": "chat", "message": &long[..200_000] }),
    );

    let seen = String::from_utf8_lossy(&link.seen).into_owned();
    assert!(seen.len() > 200_000 && seen.contains("secure"));
    for word in words.iter().chain([&home.tokens.admin.as_str(), &"auth"]) {
        assert!(!seen.contains(word), "{word}");
    }
}

#[test]
fn a_relay_that_changes_what_it_carries_only_loses_that_client() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let mut link = relay.link();
    link.sign_in(1, &home.tokens.user);
    let mut number = 1;
    let ping = json!({ "type": "ping" });
    for lie in [
        "flip", "replay", "reorder", "drop", "text", "short", "empty",
    ] {
        number += 1;
        let mut hidden = Hidden::open(&mut link, number);
        hidden.ask(&mut link, auth(&home.tokens.user));
        let mut one = hidden.seal(&ping).remove(0);
        let two = hidden.seal(&ping).remove(0);
        match lie {
            "flip" => {
                one[5] ^= 1;
                link.binary(number, &one);
            }
            "replay" => {
                link.binary(number, &one);
                link.binary(number, &one);
            }
            "reorder" => {
                link.binary(number, &two);
                link.binary(number, &one);
            }
            "drop" => link.binary(number, &two),
            "text" => link.text(number, &ping.to_string()),
            "short" => link.binary(number, &one[..10]),
            _ => link.binary(number, &[]),
        }
        let (code, reason) = link.closed(number);
        let expected = if lie == "text" { 1008 } else { 1002 };
        assert_eq!(code, expected, "{lie}: {reason}");
        assert!(!reason.is_empty());
        link.ask(1, ping.clone());
    }
    // A substituted key: the machine cannot answer a handshake with another.
    let (other, first) = hearth::relay::noise::Initiator::begin(
        hearth::relay::noise::Purpose::Client,
        &hearth::relay::noise::PrivateKey::generate().public_key(),
    )
    .unwrap();
    drop(other);
    let mut low_order = first.clone();
    low_order[..32].fill(0);
    for noise in [first, low_order, vec![]] {
        number += 1;
        link.open(number, "203.0.113.9");
        let request = json!({ "type": "secure", "id": 7, "noise": STANDARD.encode(noise) });
        link.text(number, &request.to_string());
        let refused = link.response(number);
        assert_eq!(
            (&refused["code"], &refused["id"]),
            (&json!("invalid_request"), &json!(7))
        );
        assert_eq!(link.closed(number).0, 1008);
    }
    link.ask(1, ping);
}

#[test]
fn a_relay_that_breaks_the_protocol_is_left_and_dialled_again() {
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let mut link = relay.link();
    // Frames of clients that are not there may have been under way.
    link.text(77, "{}");
    link.binary(77, &[1, 2, 3]);
    link.raw(vec![4, 0, 0, 0, 77, 3, 232]);
    link.sign_in(1, &home.tokens.user);
    drop((link, home));
    // Each in a house of its own: waits double from one lost link to the next.
    for breach in ["twice", "kind", "short", "text", "large"] {
        let relay = Relay::new();
        let home = Home::start(relay.config());
        let mut link = relay.link();
        link.sign_in(1, &home.tokens.user);
        match breach {
            "twice" => link.open(1, "203.0.113.7"),
            "kind" => link.raw(vec![9, 0, 0, 0, 1]),
            "short" => link.raw(vec![2]),
            "text" => link
                .socket
                .send(tungstenite::Message::text("hello"))
                .unwrap(),
            _ => {
                // It may be cut before it has sent everything.
                let frame = tungstenite::Message::binary(vec![2; MESSAGE_BYTES + 100]);
                let _ = link.socket.send(frame);
            }
        }
        link.ended();
        let told = last_error(&home);
        assert!(told.contains("the relay"), "{breach}: {told}");
        relay.link().sign_in(1, &home.tokens.user);
    }
}

#[test]
fn clients_that_flood_are_cut_and_those_too_many_refused() {
    let relay = Relay::new();
    let mut config = relay.config();
    config["limits"] = json!({ "auth_seconds": 1 });
    let home = Home::start(config);
    let mut link = relay.link_for(3);
    link.sign_in(1, &home.tokens.user);

    link.open(2, "203.0.113.7");
    let long = "x".repeat(8 << 10);
    link.text(2, &long);
    assert_eq!(
        link.response(2)["code"],
        "invalid_request",
        "the first message is short"
    );
    assert_eq!(link.closed(2), (1009, "message too large".to_owned()));

    // More than waits for any client, at once.
    link.sign_in(3, &home.tokens.user);
    let large = json!({ "type": "search_messages", "query": "x".repeat(900 << 10) }).to_string();
    for _ in 0..60 {
        link.text(3, &large);
    }
    assert_eq!(
        link.closed(3),
        (1008, "too many requests at once".to_owned())
    );
    link.ask(1, json!({ "type": "ping" }));

    for number in 4..7 {
        link.open(number, "203.0.113.7");
    }
    let (code, reason) = link.closed(6);
    assert_eq!(code, 1013, "{reason}");
    // Those two say nothing.
    for number in [4, 5] {
        assert_eq!(link.receive(number)["code"], "invalid_token");
        assert_eq!(link.closed(number).0, 1008);
    }
    link.sign_in(7, &home.tokens.user);
}

#[test]
fn a_relay_that_writes_and_does_not_read_is_read_all_the_same() {
    const CLIENTS: std::ops::Range<u32> = 2..34;
    let relay = Relay::new();
    let home = Home::start(relay.config());
    let mut link = relay.link();
    link.sign_in(1, &home.tokens.user);
    let mut conversation = Value::Null;
    for _ in 0..4 {
        let mut request = json!({ "type": "chat", "message": "y".repeat(200 << 10) });
        if conversation.is_string() {
            request["conversation_id"] = conversation;
        }
        conversation = link.ask(1, request)["conversation_id"].clone();
    }
    for number in CLIENTS {
        link.sign_in(number, &home.tokens.user);
    }
    // Far more both ways than the system holds between the two.
    let read = json!({ "type": "get_messages", "conversation_id": conversation }).to_string();
    let large = json!({ "type": "search_messages", "query": "x".repeat(900 << 10) }).to_string();
    for number in CLIENTS {
        link.text(number, &read);
    }
    for number in CLIENTS {
        link.text(number, &large);
    }
    for number in CLIENTS {
        let answer = link.response(number);
        let messages = answer["data"]["messages"].as_array().unwrap();
        assert_eq!(messages[0]["content"].as_str().unwrap().len(), 200 << 10);
        assert_eq!(link.response(number)["code"], "invalid_request");
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_relay_goes_away() {
    let model = Model::acting(vec![Act::Stall("an answer".to_owned())]);
    let relay = Relay::new();
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
    let mut guess = |address: &str, token: &str| {
        number += 1;
        link.open(number, address);
        link.text(number, &auth(token).to_string());
        let response = link.response(number);
        response["code"].as_str().unwrap_or("ok").to_owned()
    };
    for _ in 0..3 {
        assert_eq!(guess("127.0.0.1", "wrong"), "invalid_token");
    }
    assert_eq!(guess("127.0.0.1", &home.tokens.user), "rate_limited");
    assert_eq!(guess("203.0.113.1", &home.tokens.user), "ok");
    // A relay that invents addresses gets no more than its share.
    let mut tries = 0;
    while guess(&format!("198.51.100.{tries}"), "wrong") == "invalid_token" {
        tries += 1;
    }
    assert_eq!(tries, 3 * 8 - 3);
    assert_eq!(guess("203.0.113.1", &home.tokens.user), "rate_limited");
    // At home the address 127.0.0.1 has failed at nothing.
    home.websocket(&home.tokens.user);
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
        "the relay refuses the link: no place is left"
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

/// Runs `hearth` with these variables.
fn hearth_with(
    folder: &Folder,
    variables: &[(&str, &str)],
    words: &[&str],
) -> std::process::Output {
    let mut command = hearth(folder.path());
    command.envs(variables.iter().copied()).args(words);
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_machine_joins_is_talked_to_from_afar_and_leaves() {
    let folder = Folder::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let relay = Forwarder::start();
    let url = format!("http://{}", relay.address);
    let join = |token: &str| {
        hearth_with(
            &folder,
            &[("AUTH_TOKEN", token)],
            &["relay", "join", &url, "--qr"],
        )
    };
    let wrong = join(&"x".repeat(32));
    assert!(
        printed(&wrong).contains("refuses the token"),
        "{}",
        printed(&wrong)
    );
    let joined = join(TOKEN);
    let said = printed(&joined);
    assert!(joined.status.success(), "{said}");
    assert!(said.contains("has it.") && said.contains("██"), "{said}");
    assert!(!said.contains(TOKEN));
    let address = said
        .lines()
        .find_map(|line| line.strip_prefix("address"))
        .unwrap()
        .trim();
    assert!(address.starts_with(&format!("ws://{}/ws?machine_id=", relay.address)));
    let config: Value =
        serde_json::from_slice(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    assert_eq!(
        config["channels"][1],
        json!({
            "url": format!("ws://{}", relay.address), "auth_token": TOKEN,
            "type": "websocket", "name": "relay",
        })
    );
    assert!(printed(&join(TOKEN)).contains("already"));

    let status = || {
        let ran = run(folder.path(), &["relay", "status", "--json"]);
        assert!(ran.status.success(), "{}", printed(&ran));
        serde_json::from_slice::<Value>(&ran.stdout).unwrap()
    };
    eventually("linked", || {
        (status()["relays"][0]["state"] == "linked").then_some(())
    });
    let chat = |variables: &[(&str, &str)]| {
        hearth_with(
            &folder,
            variables,
            &["chat", "--url", address, "what is nightingale?"],
        )
    };
    let variables = [
        ("HEARTH_TOKEN", tokens.user.as_str()),
        ("HEARTH_RELAY_TOKEN", TOKEN),
    ];
    let answered = chat(&variables);
    assert!(answered.status.success(), "{}", printed(&answered));
    assert!(!answered.stdout.is_empty());
    relay.lies.store(true, std::sync::atomic::Ordering::SeqCst);
    let warned = chat(&variables);
    assert!(
        printed(&warned).contains("the key of another machine"),
        "{}",
        printed(&warned)
    );

    let left = run(folder.path(), &["relay", "leave", "relay"]);
    assert!(left.status.success(), "{}", printed(&left));
    assert_eq!(status()["relays"], json!([]));
    let seen = relay.seen();
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("secure"));
    for word in ["nightingale", &tokens.user, PASSWORD] {
        assert!(!seen.contains(word), "{word}");
    }
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn a_channel_is_placed_in_every_form_of_the_file() {
    let relay = Forwarder::start();
    for (before, place) in [
        (json!({}), "/channels/far.off"),
        (
            json!({ "channels": { "lan": { "type": "tcp", "port": 0 } } }),
            "/channels/far.off",
        ),
        (
            json!({ "channels": [{ "name": "lan", "type": "tcp", "port": 0 }] }),
            "/channels/1",
        ),
    ] {
        let folder = Folder::new();
        let path = folder.path().join("config.json");
        fs::write(&path, before.to_string()).unwrap();
        let url = format!("ws://{}/ws", relay.address);
        let words = [
            "relay",
            "join",
            &url,
            "--name",
            "far.off",
            "--encryption",
            "required",
        ];
        let joined = hearth_with(&folder, &[("AUTH_TOKEN", TOKEN)], &words);
        assert!(joined.status.success(), "{}", printed(&joined));
        let file = || serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(file().pointer(place).unwrap()["encryption"], "required");
        let left = run(folder.path(), &["relay", "leave", "far.off"]);
        assert!(left.status.success(), "{}", printed(&left));
        assert_eq!(file().pointer(place), None);
    }
}
