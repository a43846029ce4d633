//! What passes through a relay, and when it ends.

use protocol::relay::FrameKind;
use relay::noise::PrivateKey;
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::protocol::frame::Frame as WebSocketFrame;
use tungstenite::protocol::frame::coding::{Data, OpCode};

use support::relay_peers::{Arrival, Got, Line, Machine, ping, relay};

use super::text;

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
    machine.send(number, FrameKind::Text("not even JSON"));
    assert_eq!(client.next(), text("not even JSON"));
    machine.send(number, FrameKind::Binary(&[9; 70_000]));
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
    machine.send(number, FrameKind::Text("bye"));
    machine.send(
        number,
        FrameKind::Close {
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
