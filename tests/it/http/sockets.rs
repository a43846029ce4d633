//! Sockets that misbehave: too much, too slow, half gone.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use support::client::{Client, End};
use support::eventually;
use support::home::Home;
use support::http::get;
use support::socket::{connect, exchange};

fn limited(limits: Value) -> Home {
    Home::start(json!({ "limits": limits }))
}

#[test]
fn one_port_serves_all_three() {
    let home = Home::offline();
    let reply = |mut client: Client| {
        client.authenticate(&home.tokens.user);
        client.chat("hello")["response"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (socket, lines) = (
        reply(Client::websocket(home.address())),
        reply(Client::lines(home.address())),
    );
    assert_eq!(socket, lines);
    assert_eq!(get(home.address(), "/health").status, 200);
}

#[test]
fn a_message_over_the_limit_is_refused_and_closes() {
    let home = Home::offline();
    let long = json!({ "type": "chat", "message": "x".repeat(2 << 20) }).to_string();
    for mut client in [home.admin(), lines(&home)] {
        let is_websocket = matches!(client, Client::WebSocket(_));
        client.send_text(&json!({ "type": "ping" }).to_string());
        client.response();
        let _ = send_lossy(&mut client, &long);
        let refused = client.response();
        assert_eq!(refused["code"], "invalid_request");
        let end = client.next().unwrap_err();
        assert!(!is_websocket || end == End::Code(1009), "{end:?}");
    }
    let mut client = home.admin();
    let fits = json!({ "type": "chat", "message": "x".repeat(300 << 10) });
    assert_eq!(
        client.refused(fits),
        "invalid_request",
        "over 256 KiB of text"
    );
    client.chat(&"y".repeat(200 << 10));
}

/// The server may close before it has read everything.
fn send_lossy(client: &mut Client, text: &str) -> Result<(), ()> {
    match client {
        Client::WebSocket(websocket) => websocket.send(Message::text(text)).map_err(drop),
        Client::Lines(lines) => lines
            .get_mut()
            .write_all(format!("{text}\n").as_bytes())
            .map_err(drop),
    }
}

fn lines(home: &Home) -> Client {
    let mut client = Client::lines(home.address());
    client.authenticate(&home.tokens.admin);
    client
}

#[test]
fn before_signing_in_little_may_be_sent() {
    let home = Home::offline();
    for mut client in [
        Client::websocket(home.address()),
        Client::lines(home.address()),
    ] {
        let long = json!({ "type": "auth", "token": "x".repeat(8 << 10) }).to_string();
        let _ = send_lossy(&mut client, &long);
        eventually("the end", || client.next().err());
    }
}

#[test]
fn binary_and_fragmented_frames() {
    let home = Home::offline();
    let Client::WebSocket(mut websocket) = home.admin() else {
        unreachable!()
    };
    websocket.send(Message::binary(vec![1, 2, 3])).unwrap();
    let fragment = |text: &str, code: Data, is_last: bool| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(code), is_last))
    };
    websocket
        .send(fragment(r#"{"type":"#, Data::Text, false))
        .unwrap();
    websocket
        .send(Message::Ping(b"between"[..].into()))
        .unwrap();
    websocket
        .send(fragment(r#""ping"}"#, Data::Continue, true))
        .unwrap();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match websocket.read().unwrap() {
            Message::Text(text) => {
                let value: Value = serde_json::from_str(&text).unwrap();
                seen.push(value["code"].as_str().unwrap_or("ok").to_owned());
            }
            Message::Pong(payload) => seen.push(String::from_utf8(payload.to_vec()).unwrap()),
            _ => {}
        }
    }
    // The pong may overtake a response.
    seen.retain(|one| one != "between");
    assert_eq!(seen, ["invalid_request", "ok"]);
}

#[test]
fn who_does_not_sign_in_in_time_is_told_and_closed() {
    let home = limited(json!({ "auth_seconds": 1 }));
    for mut client in [
        Client::websocket(home.address()),
        Client::lines(home.address()),
    ] {
        if let Client::Lines(lines) = &mut client {
            lines.get_mut().write_all(b"{").unwrap();
        }
        assert_eq!(client.response()["code"], "invalid_token");
        assert!(matches!(client.next(), Err(End::Code(1008) | End::Closed)));
    }
}

#[test]
fn a_peer_that_is_gone_is_noticed() {
    // Longer than a busy machine takes to send a ping.
    let home = limited(json!({ "ping_seconds": 1, "dead_seconds": 6 }));
    let began = Instant::now();
    let Client::WebSocket(websocket) = home.admin() else {
        unreachable!()
    };
    // Never reads, so never answers a ping.
    let mut socket = websocket.get_ref().try_clone().unwrap();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(6), "{took:?}");
    assert!(rest.contains(&0x89), "it was pinged");
}

#[test]
fn a_half_open_client_gets_what_it_asked_for() {
    let home = Home::offline();
    let mut socket = connect(home.address());
    let text = format!(
        "{}\n{}\n",
        json!({ "type": "auth", "token": home.tokens.user }),
        json!({ "type": "chat", "message": "hello" })
    );
    socket.write_all(text.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    socket.read_to_string(&mut answers).unwrap();
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[1]["data"]["response"].is_string());
}

#[test]
fn connections_over_the_limit_are_told_and_the_places_come_back() {
    let home = limited(json!({ "connections_per_address": 3, "unauthenticated_per_address": 3 }));
    let held: Vec<Client> = (0..3).map(|_| home.admin()).collect();
    let answer = exchange(
        home.address(),
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: "),
        "{answer}"
    );
    drop(held);
    eventually("a place is free", || {
        let answer = exchange(
            home.address(),
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        answer.starts_with(b"HTTP/1.1 200 ").then_some(())
    });
}

#[test]
fn too_many_commands_are_told_to_wait() {
    let home = limited(json!({ "commands_per_second": 1, "commands_burst": 3, "in_flight": 2 }));
    let mut client = home.admin();
    let mut codes = Vec::new();
    for command in ["ping", "ping", "ping", "nonsense"] {
        client.send(&json!({ "type": command }));
        codes.push(
            client.response()["code"]
                .as_str()
                .unwrap_or("ok")
                .to_owned(),
        );
    }
    assert_eq!(
        codes.iter().filter(|code| *code == "ok").count(),
        2,
        "{codes:?}"
    );
    assert_eq!(codes.last().unwrap(), "rate_limited");
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_and_nobody_waits_for_it() {
    let home = Home::start(json!({
        "limits": { "outbox_bytes": 65536, "commands_per_second": 100_000, "commands_burst": 100_000 },
    }));
    let mut slow = home.admin();
    slow.ask(json!({ "type": "subscribe" }));
    let mut busy = home.admin();
    let message = "z".repeat(100 << 10);
    for _ in 0..120 {
        busy.chat(&message);
        // No more than it takes, which differs from system to system.
        if busy.ask(json!({ "type": "server_info" }))["connections"] == 1 {
            break;
        }
    }
    let end = loop {
        match slow.next() {
            Ok(_) => {}
            Err(end) => break end,
        }
    };
    assert!(matches!(end, End::Code(1013) | End::Closed), "{end:?}");
}

#[test]
fn what_was_missed_is_replayed_after_a_reconnect() {
    let mut home = Home::offline();
    let mut client = home.admin();
    let names = json!(["message.created", "chat.done"]);
    let seq = client.ask(json!({ "type": "subscribe", "events": names }))["seq"].clone();
    client.chat("hello");
    drop(client);
    let mut again = home.admin();
    again.send(&json!({ "type": "subscribe", "events": names, "since": seq }));
    let answer = again.receive();
    assert_eq!(answer["data"]["events_lost"], false);
    let replayed: Vec<Value> = (0..3).map(|_| again.receive()["event"].clone()).collect();
    assert_eq!(
        json!(replayed),
        json!(["message.created", "message.created", "chat.done"])
    );
    home.restart();
    let mut after = home.admin();
    let answer = after.ask(json!({ "type": "subscribe", "since": seq }));
    assert_eq!(
        answer["events_lost"], true,
        "events of before the restart are not kept"
    );
    assert!(
        answer["seq"].as_u64() > seq.as_u64(),
        "numbers go on rising"
    );
}

#[test]
fn revoking_a_users_token_closes_their_connection_from_another_process_too() {
    let home = Home::offline();
    let mut client = home.websocket(&home.tokens.user);
    // As the command line does it: another handle on the same file.
    let store = store::Store::open(
        &home.folder.path().join("hearth.db"),
        base::clock::Clock::system(),
    )
    .unwrap();
    let user = store.user("user").unwrap().unwrap();
    store.remove_user(user.id, None).unwrap();
    assert_eq!(client.next(), Err(End::Code(1008)));
    store.close();
}
