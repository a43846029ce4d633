//! A relay that reads, changes, breaks, floods or stops reading.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{auth, last_error};
use support::home::Home;
use support::model::{Act, Model};
use support::relay::{Hidden, MESSAGE_BYTES, Relay};

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
    let (other, first) = relay::noise::Initiator::begin(
        relay::noise::Purpose::Client,
        &relay::noise::PrivateKey::generate().public_key(),
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
    // Each with its own server: waits double from one lost link to the next.
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

    // More than waits for any client, while it waits for the database: far more than the
    // system holds between the two.
    link.sign_in(3, &home.tokens.user);
    let large = json!({ "type": "search_messages", "query": "x".repeat(900 << 10) }).to_string();
    let other = Connection::open(home.folder.join("hearth.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    link.text(
        3,
        &json!({ "type": "add_memory", "content": "tea" }).to_string(),
    );
    for _ in 0..60 {
        link.text(3, &large);
    }
    other.execute_batch("ROLLBACK").unwrap();
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
fn a_place_is_free_when_the_close_of_its_client_arrives() {
    let relay = Relay::new();
    let _home = Home::start(relay.config());
    let mut link = relay.link_for(1);
    for number in 1..=200 {
        link.open(number, "203.0.113.7");
        link.text(number, &super::auth("wrong").to_string());
        assert_eq!(link.response(number)["code"], "invalid_token");
        assert_eq!(link.closed(number).0, 1008);
    }
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
