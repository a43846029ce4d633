//! Limits, floods and those who do not read: nobody disturbs the others.

use std::time::{Duration, Instant};

use protocol::relay::FrameKind;
use relay::noise::PrivateKey;
use tungstenite::Message;

use support::MAX_WAIT;
use support::relay_peers::{Got, Line, Machine, ping, relay, request};

use super::text;

#[test]
fn places_are_limited() {
    let relay = relay(|options| {
        options.rules.machines = 1;
        options.rules.clients_per_machine = 1;
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
    other.prove(&key, false);
    other.line.refused("server_error");
    assert_eq!(other.line.close_code(), 1013);
}

#[test]
fn what_a_machine_may_not_send_ends_its_link_alone() {
    let relay = relay(|options| {
        options.rules.limits.message_bytes = 4096;
        options.rules.clients_per_machine = 4;
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

    good.send(number, FrameKind::Text("still here"));
    assert_eq!(bystander.next(), text("still here"));
}

#[test]
fn frames_for_a_client_that_has_gone_are_forgiven_until_they_flood() {
    let relay = relay(|options| options.rules.messages_per_second = 1_000);
    let address = relay.local_addr();
    let mut machine = Machine::link(address);
    let mut client = Line::client(address, &machine.id);
    client.send(&ping());
    let number = machine.meet(&ping());
    client.0.close(None).unwrap();
    assert_eq!(machine.next(), (number, Got::Close(1000)));
    for _ in 0..100 {
        machine.send(number, FrameKind::Text("late"));
    }
    let mut other = Line::client(address, &machine.id);
    other.send(&ping());
    machine.meet(&ping());
    let frame = protocol::relay::Frame::new(
        protocol::relay::ClientNumber(number),
        FrameKind::Text("flood"),
    );
    let frame = frame.encode();
    // It is cut while it goes on sending.
    let began = Instant::now();
    while machine.line.0.write(Message::binary(frame.clone())).is_ok() {
        assert!(began.elapsed() < MAX_WAIT, "it may go on");
    }
    assert_eq!(other.close_code(), 1013);
}

#[test]
fn a_client_that_sends_too_much_or_too_often_is_let_go() {
    let relay = relay(|options| {
        options.rules.limits.message_bytes = 4096;
        options.rules.messages_per_second = 5;
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
        machine.send(slow_number, FrameKind::Binary(&large));
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
        machine.send(quick_number, FrameKind::Text("here"));
        assert_eq!(quick.next(), text("here"));
        assert!(began.elapsed() < MAX_WAIT, "round {round}");
    }
}

#[test]
fn a_machine_that_does_not_read_slows_down_who_floods_it_and_nobody_else() {
    let relay = relay(|options| options.rules.messages_per_second = 100_000);
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
    machine.send(number, FrameKind::Text("here"));
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
}
