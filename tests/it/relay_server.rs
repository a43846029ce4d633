//! The relay by itself: who is let in, what passes, who is cut, and that
//! nobody disturbs the others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hearth::config::AddressPatterns;
use hearth::protocol::relay::{Greeting, Kind};
use hearth::relay::noise::PrivateKey;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame as WebSocketFrame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::support::home::Home;
use crate::support::http::{get, post};
use crate::support::relay::{Arrival, Got, Line, Machine, TOKEN, ping, relay, request, with_token};

fn text(text: &str) -> Arrival {
    Arrival::Text(text.to_owned())
}

#[test]
fn messages_pass_unchanged_both_ways() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    let odd = r#"{ "type":"ping",  "id":1.0, "u":"\u00e4ä" }"#;
    client.send(odd);
    let number = machine.meet(odd);
    client.send_binary(&[0, 255, 7]);
    assert_eq!(machine.next(), (number, Got::Binary(vec![0, 255, 7])));
    machine.send(number, Kind::Text("not even JSON"));
    assert_eq!(client.next(), text("not even JSON"));
    machine.send(number, Kind::Binary(&[9; 70_000]));
    assert_eq!(client.next(), Arrival::Binary(vec![9; 70_000]));

    // A message in fragments is one message.
    let piece = |code, last, payload: &'static str| {
        Message::Frame(WebSocketFrame::message(payload, OpCode::Data(code), last))
    };
    client.0.send(piece(Data::Text, false, "one, ")).unwrap();
    client.0.send(Message::Ping("x".into())).unwrap();
    client.0.send(piece(Data::Continue, true, "two")).unwrap();
    assert_eq!(machine.next(), (number, Got::Text("one, two".into())));

    // What the machine says last is what the client sees last.
    machine.send(number, Kind::Text("bye"));
    machine.send(
        number,
        Kind::Close {
            code: 1008,
            reason: "the machine's own reason",
        },
    );
    assert_eq!(client.next(), text("bye"));
    let closed = Arrival::Closed(1008, "the machine's own reason".to_owned());
    assert_eq!(client.next(), closed);

    let mut second = Line::client(address, &machine.id);
    second.send(&ping());
    let other = machine.meet(&ping());
    assert!(other > number, "numbers are never given twice");
    drop(second);
    assert_eq!(machine.next(), (other, Got::Close(1000)));
    relay.stop();
}

#[test]
fn the_relay_answers_only_for_the_machines_key() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let key = PrivateKey::generate();
    let mut machine = Machine::link_with(address, &key);
    let mut client = Line::client(address, &machine.id);
    client.send(r#"{"type":"machine_key","id":"k"}"#);
    let Arrival::Text(answer) = client.next() else {
        panic!("no answer");
    };
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let expected = json!({
        "status": "ok", "id": "k", "data": { "public_key": key.public_key().to_base64() },
    });
    assert_eq!(answer, expected);
    // A message that only speaks of it is the machine's.
    let chat = r#"{"type":"chat","message":"what is a machine_key?"}"#;
    client.send(chat);
    machine.meet(chat);
    relay.stop();
}

#[test]
fn a_token_has_three_ways_in() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let query = format!("?machine_id={}", machine.id);

    let offered = request(address, &query)
        .with_sub_protocol("hearth.v1")
        .with_sub_protocol(format!("bearer.{TOKEN}"));
    let mut browser = Line::open(address, offered).unwrap();
    browser.send(&ping());
    machine.meet(&ping());

    let mut later = Line::open(address, request(address, &query)).unwrap();
    let auth = json!({"type": "auth", "relay_token": TOKEN, "token": "t"});
    later.send(&auth.to_string());
    let (_, got) = machine.next();
    assert!(matches!(got, Got::Open(_)));
    let (_, Got::Text(passed)) = machine.next() else {
        panic!("no text");
    };
    let passed: Value = serde_json::from_str(&passed).unwrap();
    assert_eq!(passed, json!({"type": "auth", "token": "t"}));

    // In the header and in the message too: the machine does not get it.
    let mut both = Line::client(address, &machine.id);
    both.send(&auth.to_string());
    machine.next();
    let (_, Got::Text(passed)) = machine.next() else {
        panic!("no text");
    };
    assert!(!passed.contains(TOKEN), "{passed}");
    relay.stop();
}

#[test]
fn a_wrong_token_is_refused_in_every_form() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let machine = Machine::link(address);
    for query in [
        format!("?machine_id={}", machine.id),
        format!("?machine_id={}&role=machine", machine.id),
    ] {
        let wrong = request(address, &query).with_header("Authorization", "Bearer nope");
        assert_eq!(Line::open(address, wrong).err(), Some(401));
        let offered = request(address, &query)
            .with_sub_protocol("hearth.v1")
            .with_sub_protocol("bearer.nope");
        assert_eq!(Line::open(address, offered).err(), Some(401));
    }
    let query = format!("?machine_id={}&role=machine", machine.id);
    let bare = request(address, &query);
    assert_eq!(Line::open(address, bare).err(), Some(401));

    let query = format!("?machine_id={}", machine.id);
    for first in [
        json!({"type": "auth", "relay_token": "nope"}).to_string(),
        json!({"type": "auth", "relay_token": 7}).to_string(),
        ping(),
        "no JSON".to_owned(),
    ] {
        let mut client = Line::open(address, request(address, &query)).unwrap();
        client.send(&first);
        client.refused("invalid_token");
        assert_eq!(client.close_code(), 1008);
    }
    relay.stop();
}

#[test]
fn guessing_tokens_is_slowed_down_and_does_not_lock_out_others() {
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    let relay = relay(|options| options.trusted_proxies = proxies);
    let address = relay.local_addr();
    let machine = Machine::link(address);
    let query = format!("?machine_id={}", machine.id);
    let from = |origin: &str, token: &str| {
        request(address, &query)
            .with_header("X-Forwarded-For", origin)
            .with_header("Authorization", format!("Bearer {token}"))
    };
    let guess = |number: u32| Line::open(address, from("203.0.113.1", &format!("guess {number}")));
    assert!((0..20).all(|number| guess(number).err() == Some(401)));
    assert_eq!(guess(20).err(), Some(429));
    // Even the right one: else the wait would tell.
    assert_eq!(
        Line::open(address, from("203.0.113.1", TOKEN)).err(),
        Some(429)
    );
    assert!(Line::open(address, from("203.0.113.2", TOKEN)).is_ok());
    relay.stop();
}

#[test]
fn what_is_not_there_looks_the_same_whether_it_ever_was() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let machine = Machine::link(address);
    let offline = machine.id.clone();
    let mut witness = Line::client(address, &offline);
    drop(machine);
    witness.send(&ping());
    witness.close_code();

    let look = |query: &str| {
        let mut client = Line::open(address, with_token(address, query)).unwrap();
        (client.next(), client.next())
    };
    let gone = look(&format!("?machine_id={offline}"));
    let never = PrivateKey::generate().public_key().machine_id();
    assert_eq!(gone, look(&format!("?machine_id={never}")));
    assert_eq!(gone, look("?machine_id=no-machine_id-at-all"));
    let Arrival::Closed(1013, reason) = &gone.1 else {
        panic!("{gone:?}");
    };
    assert!(!reason.is_empty());
    // And whoever goes on asking waits.
    let codes: Vec<String> = (0..60)
        .map(|_| format!("{:?}", look(&format!("?machine_id={never}")).0))
        .collect();
    assert!(codes.last().unwrap().contains("rate_limited"));
    let nameless = with_token(address, "");
    assert_eq!(Line::open(address, nameless).err(), Some(400));
    relay.stop();
}

#[test]
fn only_the_holder_of_the_key_is_linked() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let (key, other) = (PrivateKey::generate(), PrivateKey::generate());
    let name = |key: &PrivateKey| Greeting::Machine {
        public_key: key.public_key().to_base64(),
    };
    let greet = |greetings: &[Greeting]| {
        let mut machine = Machine::dial(address, &key);
        for greeting in greetings {
            machine.say(greeting);
        }
        machine
    };
    // Another machine's id; a point of low order, which everybody "holds".
    greet(&[name(&other)]).line.refused("invalid_request");
    let low = Greeting::Machine {
        public_key: STANDARD.encode([0; 32]),
    };
    let mut refused = greet(&[low]);
    let envelope = refused.line.refused("invalid_request");
    assert!(envelope["error"].as_str().unwrap().contains("low order"));
    assert_eq!(refused.line.close_code(), 1008);
    // A proof that is none, one that comes first, and no greeting at all.
    let forged = Greeting::Proof {
        noise: STANDARD.encode([7; 48]),
    };
    let mut machine = greet(&[name(&key), forged.clone()]);
    assert!(matches!(machine.line.next(), Arrival::Text(_)));
    machine.line.refused("invalid_token");
    assert_eq!(machine.line.close_code(), 1008);
    let mut machine = greet(&[forged]);
    machine.line.refused("invalid_request");
    let mut machine = greet(&[]);
    machine.line.send_binary(&[2, 0, 0, 0, 1]);
    machine.line.refused("invalid_request");
    assert_eq!(machine.line.close_code(), 1008);

    // None of them is reached.
    let mut client = Line::client(address, &key.public_key().machine_id());
    client.refused("not_found");
    relay.stop();
}

#[test]
fn the_newest_link_of_a_machine_wins() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let key = PrivateKey::generate();
    let mut older = Machine::link_with(address, &key);
    let mut client = Line::client(address, &older.id);
    client.send(&ping());
    older.meet(&ping());
    let mut newer = Machine::link_with(address, &key);
    assert_eq!(older.line.close_code(), 1012);
    assert_eq!(client.close_code(), 1013, "it connects again");
    drop(older);
    let mut client = Line::client(address, &newer.id);
    client.send(&ping());
    newer.meet(&ping());
    relay.stop();
}

#[test]
fn clients_are_let_go_with_their_machine_and_told_of_a_stop() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    machine.meet(&ping());
    drop(machine);
    let Arrival::Closed(1013, reason) = client.next() else {
        panic!("not let go");
    };
    assert_eq!(reason, "the machine is offline");

    let mut machine = Machine::link(address);
    relay.stop();
    assert_eq!(machine.line.close_code(), 1001);
}

#[test]
fn places_are_limited() {
    let relay = relay(|options| {
        options.machines = 1;
        options.clients_per_machine = 1;
    });
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut first = Line::client(address, &machine.id);
    first.send(&ping());
    machine.meet(&ping());
    let mut second = Line::client(address, &machine.id);
    second.send(&ping());
    second.refused("server_error");
    assert_eq!(second.close_code(), 1013);

    let key = PrivateKey::generate();
    let mut other = Machine::dial(address, &key);
    other.prove(&key);
    other.line.refused("server_error");
    assert_eq!(other.line.close_code(), 1013);
    relay.stop();
}

#[test]
fn what_a_machine_may_not_send_ends_its_link_alone() {
    let relay = relay(|options| {
        options.message_bytes = 4096;
        options.clients_per_machine = 4;
    });
    let address = relay.local_addr();
    let mut good = Machine::link(address);
    let mut bystander = Line::client(address, &good.id);
    bystander.send(&ping());
    let number = good.meet(&ping());
    for (frame, code) in [
        (vec![9, 0, 0, 0, 1], 1002),
        (vec![2, 0], 1002),
        // Only a relay says who connects.
        (
            br#"_____{"address":"1.2.3.4","secure":true}"#.to_vec(),
            1002,
        ),
        // Clients that never were.
        (vec![2, 0, 0, 0, 9], 1008),
        (vec![2, 0, 0, 0, 0], 1008),
        (vec![2; 4096 + 6], 1009),
    ] {
        let mut bad = Machine::link(address);
        let mut frame = frame;
        if frame[0] == b'_' {
            frame[..5].copy_from_slice(&[1, 0, 0, 0, 1]);
        }
        bad.line.send_binary(&frame);
        assert_eq!(bad.line.close_code(), code, "{frame:?}");
    }
    let mut bad = Machine::link(address);
    bad.line.send("text on a link that stands");
    assert_eq!(bad.line.close_code(), 1002);

    good.send(number, Kind::Text("still here"));
    assert_eq!(bystander.next(), text("still here"));
    relay.stop();
}

#[test]
fn frames_for_a_client_that_has_gone_are_forgiven_until_they_flood() {
    let relay = relay(|options| options.messages_per_second = 1_000);
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = machine.meet(&ping());
    client.0.close(None).unwrap();
    assert_eq!(machine.next(), (number, Got::Close(1000)));
    for _ in 0..100 {
        machine.send(number, Kind::Text("late"));
    }
    let mut other = Line::client(address, &machine.id);
    other.send(&ping());
    machine.meet(&ping());
    let frame = hearth::protocol::relay::Frame::new(
        hearth::protocol::relay::ClientNumber(number),
        Kind::Text("flood"),
    );
    let frame = frame.encode();
    // It is cut while it goes on sending.
    while machine.line.0.write(Message::binary(frame.clone())).is_ok() {}
    assert_eq!(other.close_code(), 1013);
    relay.stop();
}

#[test]
fn a_client_that_sends_too_much_or_too_often_is_let_go() {
    let relay = relay(|options| {
        options.message_bytes = 4096;
        options.messages_per_second = 5;
    });
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut large = Line::client(address, &machine.id);
    large.send(&"x".repeat(4097));
    large.refused("invalid_request");
    assert_eq!(large.close_code(), 1009);

    let mut quick = Line::client(address, &machine.id);
    for _ in 0..11 {
        quick.send(&ping());
    }
    quick.refused("rate_limited");
    assert_eq!(quick.close_code(), 1008);
    let number = machine.meet(&ping());
    for _ in 0..9 {
        assert_eq!(machine.next(), (number, Got::Text(ping())));
    }
    assert_eq!(machine.next(), (number, Got::Close(1000)));

    // Before its token is shown, a client may say little.
    let query = format!("?machine_id={}", machine.id);
    let mut stranger = Line::open(address, request(address, &query)).unwrap();
    stranger.send(&"x".repeat(4097));
    stranger.refused("invalid_request");
    assert_eq!(stranger.close_code(), 1009);
    relay.stop();
}

#[test]
fn a_client_that_does_not_read_delays_nobody() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut slow = Line::client(address, &machine.id);
    slow.send(&ping());
    let slow_number = machine.meet(&ping());
    let mut quick = Line::client(address, &machine.id);
    quick.send(&ping());
    let quick_number = machine.meet(&ping());
    let large = vec![7; 256 * 1024];
    // Far more than its outbox and the system's buffers hold.
    for round in 0..64 {
        machine.send(slow_number, Kind::Binary(&large));
        let began = Instant::now();
        quick.send(&format!("{round}"));
        loop {
            match machine.next() {
                (number, Got::Text(said)) if number == quick_number => {
                    assert_eq!(said, format!("{round}"));
                    break;
                }
                // The relay gives the slow one up, and says so.
                (number, got) => assert_eq!((number, got), (slow_number, Got::Close(1013))),
            }
        }
        machine.send(quick_number, Kind::Text("here"));
        assert_eq!(quick.next(), text("here"));
        assert!(began.elapsed() < Duration::from_secs(2), "round {round}");
    }
    relay.stop();
}

#[test]
fn a_machine_that_does_not_read_slows_down_who_floods_it_and_nobody_else() {
    let relay = relay(|options| options.messages_per_second = 100_000);
    let address = relay.local_addr();
    let stuck = Machine::link(address);
    let mut flooding = Line::client(address, &stuck.id);
    let socket = flooding.0.get_ref();
    socket
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let large = vec![7; 256 * 1024];
    let mut sent = 0;
    while flooding.0.send(Message::binary(large.clone())).is_ok() {
        sent += large.len();
        assert!(sent < 64 << 20, "it was never slowed down");
    }
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = machine.meet(&ping());
    machine.send(number, Kind::Text("here"));
    assert_eq!(client.next(), text("here"));
    // The link itself is not given up for it.
    drop(flooding);
    let mut stuck = stuck;
    let (number, got) = stuck.next();
    assert!(matches!(got, Got::Open(_)));
    let mut read = 0;
    loop {
        match stuck.next() {
            (from, Got::Binary(bytes)) if from == number => read += bytes.len(),
            (from, Got::Close(_)) if from == number => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(read > 0);
    relay.stop();
}

/// The address that a machine is told of a client.
fn told(address: SocketAddr, machine: &mut Machine, forwarded: &str) -> String {
    let query = format!("?machine_id={}", machine.id);
    let asked = with_token(address, &query).with_header("X-Forwarded-For", forwarded);
    let mut client = Line::open(address, asked).unwrap();
    client.send(&ping());
    let (number, Got::Open(told)) = machine.next() else {
        panic!("no client");
    };
    assert_eq!(machine.next(), (number, Got::Text(ping())));
    drop(client);
    assert!(matches!(machine.next(), (_, Got::Close(_))));
    told
}

#[test]
fn a_proxy_is_believed_only_when_it_is_trusted() {
    let open = relay(|_| ());
    let mut machine = Machine::link(open.local_addr());
    let seen = told(open.local_addr(), &mut machine, "203.0.113.7");
    assert_eq!(seen, "127.0.0.1");
    open.stop();
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    let behind = relay(|options| options.trusted_proxies = proxies);
    let mut machine = Machine::link(behind.local_addr());
    let seen = told(behind.local_addr(), &mut machine, "10.0.0.1, 203.0.113.7");
    assert_eq!(seen, "203.0.113.7");
    behind.stop();
}

#[test]
fn a_relay_registers_machines_and_answers_in_envelopes() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let health = get(address, "/health").json();
    assert_eq!(health["status"], "ok");
    assert!(health["uptime_seconds"].is_u64());
    assert_eq!(health.as_object().unwrap().len(), 2);

    let key = PrivateKey::generate().public_key();
    let id = key.machine_id();
    let expected = json!({
        "machine_id": id.as_str(), "relay_url": format!("ws://{address}/ws?machine_id={id}"),
    });
    let bearer = format!("Bearer {TOKEN}");
    let by_id = json!({"machine_id": id.as_str()});
    let by_key = json!({"machine_name": "attic", "public_key": key.to_base64()});
    for (path, body) in [("/register", &by_id), ("/ws/register", &by_key)] {
        let answer = post(address, path, &[("Authorization", &bearer)], body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["data"], expected);
        for (header, status) in [(Some("Bearer nope"), 401), (None, 401)] {
            let headers: Vec<_> = header
                .map(|value| ("Authorization", value))
                .into_iter()
                .collect();
            let answer = post(address, path, &headers, body);
            assert_eq!(answer.status, status);
            assert_eq!(answer.json()["code"], "invalid_token");
        }
    }
    let wrong = json!({"machine_id": "nobody"});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &wrong);
    assert_eq!(answer.status, 400, "{answer:?}");
    for (path, status) in [("/", 404), ("/auth", 404), ("/ws", 426), ("/register", 405)] {
        let answer = get(address, path);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.json()["status"], "error");
    }
    relay.stop();

    // What a trusted proxy says of the way to it is the address to give out.
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    for (trusted, url) in [(true, "wss://relay.example/ws"), (false, "ws://127.0.0.1")] {
        let relay = crate::support::relay::relay(|options| {
            if trusted {
                options.trusted_proxies = proxies.clone();
            }
        });
        let headers = [
            ("Authorization", bearer.as_str()),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "relay.example"),
        ];
        let answer = post(relay.local_addr(), "/register", &headers, &by_id).json();
        let given = answer["data"]["relay_url"].as_str().unwrap();
        assert!(given.starts_with(url), "{given}");
        relay.stop();
    }
}

#[test]
fn a_server_can_be_a_relay_too() {
    let home = Home::start(json!({
        "relay": { "enabled": true, "auth_token": TOKEN },
        "limits": { "auth_seconds": 1 },
    }));
    let address = home.address();
    // Its own clients notice nothing.
    home.admin();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = machine.meet(&ping());
    machine.send(number, Kind::Text("through the server"));
    assert_eq!(client.next(), text("through the server"));
    // Any page may use the relay when it holds the token; not the server.
    let query = format!("?machine_id={}", machine.id);
    let foreign = || ("Origin", "https://page.example");
    let (name, value) = foreign();
    let relayed = with_token(address, &query).with_header(name, value);
    assert!(Line::open(address, relayed).is_ok());
    let own = request(address, "").with_header(name, value);
    assert_eq!(Line::open(address, own).err(), Some(403));

    // Both ways of registering, beside the server's own.
    let bearer = format!("Bearer {TOKEN}");
    let body = json!({"machine_id": machine.id.as_str()});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let key = PrivateKey::generate().public_key();
    let body = json!({"machine_name": "attic", "public_key": key.to_base64()});
    let token = format!("Bearer {}", home.tokens.user);
    for bearer in [&bearer, &token] {
        let answer = post(address, "/ws/register", &[("Authorization", bearer)], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    // Who says nothing, or proves nothing, is sent away.
    let mut silent = Line::client(address, &machine.id);
    silent.refused("invalid_token");
    assert_eq!(silent.close_code(), 1008);
    let mut unproved = Machine::dial(address, &PrivateKey::generate());
    unproved.line.refused("invalid_token");
    assert_eq!(unproved.line.close_code(), 1008);
}

#[test]
fn a_server_that_is_no_relay_says_so() {
    let home = Home::offline();
    let address = home.address();
    let id = PrivateKey::generate().public_key().machine_id();
    for query in [
        format!("?machine_id={id}"),
        format!("?machine_id={id}&role=machine"),
    ] {
        let refused = Line::open(address, with_token(address, &query));
        assert_eq!(refused.err(), Some(404));
    }
    let bearer = format!("Bearer {TOKEN}");
    let body = json!({"machine_id": id.as_str()});
    let answer = post(address, "/register", &[("Authorization", &bearer)], &body);
    assert_eq!(answer.status, 404);
}
