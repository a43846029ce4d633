//! Who is let in: tokens, machines' keys, addresses.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config::AddressPatterns;
use protocol::relay::{FrameKind, Greeting};
use relay::noise::PrivateKey;
use serde_json::{Value, json};

use support::relay_peers::{Arrival, Got, Line, Machine, TOKEN, ping, relay, request, with_token};

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
        let told = client.refused("invalid_token").to_string();
        assert!(
            !first.contains("ping") || told.contains("HEARTH_RELAY_TOKEN"),
            "{told}"
        );
        assert_eq!(client.close_code(), 1008);
    }
}

#[test]
fn wrong_tokens_do_not_keep_out_the_right_one() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let machine = Machine::link(address);
    let query = format!("?machine_id={}", machine.id);
    for number in 0..60 {
        let guess =
            request(address, &query).with_header("Authorization", format!("Bearer {number}"));
        assert_eq!(Line::open(address, guess).err(), Some(401));
    }
    assert!(Line::open(address, with_token(address, &query)).is_ok());
}

#[test]
fn strangers_of_one_address_leave_room_for_others() {
    // The default of limits.unauthenticated_per_address, which holds at a relay.
    const SHARE: usize = 16;
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    let relay = relay(|options| options.trusted_proxies = proxies);
    let address = relay.local_addr();
    let mut machine = Machine::link_reporting(address);
    let query = format!("?machine_id={}", machine.id);
    let open = |origin: &str| {
        Line::open(
            address,
            with_token(address, &query).with_header("X-Forwarded-For", origin),
        )
    };
    let mut lines = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..SHARE {
        let mut line = open("203.0.113.1").ok().unwrap();
        line.send(&ping());
        numbers.push(machine.meet(&ping()));
        lines.push(line);
    }
    assert_eq!(open("203.0.113.1").err(), Some(503));
    assert!(open("203.0.113.2").is_ok());
    // Who has signed in is no stranger.
    machine.send(numbers[0], FrameKind::SignedIn);
    machine.send(numbers[0], FrameKind::Text("welcome"));
    assert_eq!(lines[0].next(), Arrival::Text("welcome".to_owned()));
    assert!(open("203.0.113.1").is_ok());
    // The others must sign in within limits.auth_seconds.
    lines[1].refused("invalid_token");
    assert_eq!(lines[1].close_code(), 1008);
    // A client that never was has not signed in.
    machine.send(1_000, FrameKind::SignedIn);
    assert_eq!(machine.line.close_code(), 1008);
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
    // Who asks again and again, because the machine is off, is let in when it is back.
    for _ in 0..70 {
        assert_eq!(gone, look(&format!("?machine_id={never}")));
    }
    let mut back = Machine::link(address);
    Line::client(address, &back.id).send(&ping());
    back.meet(&ping());
    let nameless = with_token(address, "");
    assert_eq!(Line::open(address, nameless).err(), Some(400));
}

#[test]
fn only_the_holder_of_the_key_is_linked() {
    let relay = relay(|_| ());
    let address = relay.local_addr();
    let (key, other) = (PrivateKey::generate(), PrivateKey::generate());
    let name = |key: &PrivateKey| Greeting::Machine {
        public_key: key.public_key().to_base64(),
        reports_sign_ins: false,
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
        reports_sign_ins: false,
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
    let proxies = AddressPatterns::parse(&["127.0.0.1"]).unwrap();
    let behind = relay(|options| options.trusted_proxies = proxies);
    let mut machine = Machine::link(behind.local_addr());
    let seen = told(behind.local_addr(), &mut machine, "10.0.0.1, 203.0.113.7");
    assert_eq!(seen, "203.0.113.7");
}
