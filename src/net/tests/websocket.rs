//! WebSocket: the handshake, messages, limits, and the ways it ends.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use tungstenite::protocol::frame::Frame;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};

use super::support::*;
use crate::outbox::{Close, Item};
use base::testing::rows;
use config::Limits;

const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn open(server: &TestServer) -> WebSocket<Socket> {
    let mut client = server.connect();
    client.send(HANDSHAKE);
    let answer = client.answer();
    assert_eq!(answer.status, 101, "{answer:?}");
    WebSocket::from_raw_socket(
        client.stream,
        Role::Client,
        Some(WebSocketConfig::default()),
    )
}

fn open_authenticated(server: &TestServer) -> WebSocket<Socket> {
    let mut socket = open(server);
    socket.send("{auth}".into()).unwrap();
    assert_eq!(text(&mut socket), "hello 127.0.0.1 websocket");
    socket
}

/// The next text.
fn text(socket: &mut WebSocket<Socket>) -> String {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            return text.to_string();
        }
    }
}

/// The code with which the server closes, and that it then ends.
fn close_code(socket: &mut WebSocket<Socket>) -> u16 {
    let code = loop {
        match socket.read().unwrap() {
            Message::Close(Some(frame)) => break frame.code.into(),
            Message::Close(None) => panic!("closed without a code"),
            _ => {}
        }
    };
    while socket.read().is_ok() {}
    code
}

#[test]
fn the_handshake_is_that_of_rfc_6455() {
    let server = server(limits());
    let mut client = server.connect();
    client.send(HANDSHAKE);
    let answer = client.answer();
    assert_eq!(answer.status, 101);
    let head = answer.head.to_ascii_lowercase();
    for line in [
        "upgrade: websocket",
        "connection: upgrade",
        "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(!head.contains("content-length"), "{head}");
    assert!(!head.contains("sec-websocket-protocol"), "{head}");
    drop(client);

    let mut client = server.connect();
    let named = "Sec-WebSocket-Protocol: foo, hearth.v1, bearer.x\r\n\r\n";
    client.send(HANDSHAKE.replace("\r\n\r\n", &format!("\r\n{named}")));
    assert!(
        client
            .answer()
            .head
            .contains("\r\nSec-WebSocket-Protocol: hearth.v1\r\n")
    );
    drop(client);

    for (from, to, status) in [
        ("Version: 13", "Version: 8", 426),
        ("Sec-WebSocket-Version: 13\r\n", "", 426),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dGhl", 400),
        ("dGhlIHNhbXBsZSBub25jZQ==", "not base64!", 400),
        ("Sec-WebSocket-Key", "X-Key", 400),
        ("keep-alive, Upgrade", "keep-alive", 400),
        ("GET", "POST", 400),
        ("GET", "HEAD", 400),
        ("HTTP/1.1", "HTTP/1.0", 400),
        ("Host: x", "Host: x\r\nContent-Length: 2", 400),
        ("Host: x", "Host: x\r\nOrigin: http://evil.example", 403),
        ("Upgrade: websocket", "Upgrade: h2c", 200),
        ("GET /ws", "GET /other", 200),
    ] {
        let mut client = server.connect();
        client.send(HANDSHAKE.replace(from, to));
        let answer = client.answer_to(to == "HEAD");
        assert_eq!(answer.status, status, "{to}: {answer:?}");
        if status == 426 {
            for line in [
                "Sec-WebSocket-Version: 13",
                "Upgrade: websocket",
                "Connection: Upgrade",
            ] {
                assert!(
                    answer.head.contains(&format!("\r\n{line}\r\n")),
                    "{answer:?}"
                );
            }
        }
    }
    server.await_connections(0);
}

#[test]
fn messages_go_both_ways_however_they_are_framed() {
    let server = server(limits());
    let mut socket = open_authenticated(&server);
    assert_eq!(server.listeners.connections().websocket, 1);
    socket.send("one".into()).unwrap();
    assert_eq!(text(&mut socket), "one");

    // Fragments, with a ping between them.
    let fragment = |payload: &'static str, kind, last| {
        Frame::message(payload.as_bytes(), OpCode::Data(kind), last)
    };
    for frame in [
        fragment("two ", Data::Text, false),
        Frame::ping("p"),
        fragment("and ", Data::Continue, false),
        fragment("three", Data::Continue, true),
    ] {
        socket.send(Message::Frame(frame)).unwrap();
    }
    assert_eq!(socket.read().unwrap(), Message::Pong("p".into()));
    assert_eq!(text(&mut socket), "two and three");

    socket.send(Message::Binary(vec![1, 2].into())).unwrap();
    assert_eq!(text(&mut socket), "refused 400");

    // Larger than every buffer, twice, and small again.
    for _ in 0..2 {
        let large = "z".repeat(limits().message_bytes);
        socket.send(large.as_str().into()).unwrap();
        assert_eq!(text(&mut socket), large);
        socket.send("{large}".into()).unwrap();
        assert_eq!(text(&mut socket).len(), 3 * 1024 * 1024);
        socket.send("small".into()).unwrap();
        assert_eq!(text(&mut socket), "small");
    }

    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    for number in 0..100 {
        outbox.push(Item::Event(number.to_string().into()));
    }
    for number in 0..100 {
        assert_eq!(text(&mut socket), number.to_string());
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    server.await_connections(0);
}

#[test]
fn a_message_may_come_with_the_handshake() {
    let server = server(limits());
    let mut client = server.connect();
    let mut bytes = HANDSHAKE.as_bytes().to_vec();
    bytes.extend([0x81, 0x86, 0, 0, 0, 0]);
    bytes.extend(b"{auth}");
    client.send(bytes);
    assert_eq!(client.answer().status, 101);
    let mut socket = WebSocket::from_raw_socket(client.stream, Role::Client, None);
    // The answer may have come with the 101 and sit in the client's buffer.
    socket.get_ref().set_read_timeout(Some(MAX_WAIT)).unwrap();
    socket.send("x".into()).unwrap();
    let last = std::iter::repeat_with(|| text(&mut socket)).find(|text| text == "x");
    assert!(last.is_some());
}

#[test]
fn every_violation_has_its_close_code() {
    let table = "
        too large                          | 81 fe 13 88 0 0 0 0              | refused 413 | 1009
        announced as huge                  | 81 ff 7f ff ff ff ff ff ff ff 0 0 0 0 | refused 413 | 1009
        not UTF-8                          | 81 82 0 0 0 0 ff fe              | -           | 1007
        not masked                         | 81 1 78                          | -           | 1002
        a reserved bit                     | c1 81 0 0 0 0 78                 | -           | 1002
        a reserved opcode                  | 83 81 0 0 0 0 78                 | -           | 1002
        a continuation of nothing          | 80 81 0 0 0 0 78                 | -           | 1002
        a fragmented ping                  | 9 81 0 0 0 0 78                  | -           | 1002
        a ping with its length in 16 bits  | 89 fe 0 1 0 0 0 0 78             | -           | 1002
        a close with its length in 16 bits | 88 fe 0 2 0 0 0 0 3 e8           | -           | 1002
        a close code of nobody             | 88 82 0 0 0 0 3 f8               | -           | 1002
    ";
    for [name, bytes, said, code] in rows(table) {
        let bytes = bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16));
        let mut bytes: Vec<u8> = bytes.collect::<Result<_, _>>().unwrap();
        if name == "too large" {
            bytes.resize(bytes.len() + 5000, b'x');
        }
        let server = server(limits());
        let mut socket = open(&server);
        socket.get_mut().write_all(&bytes).unwrap();
        if said != "-" {
            assert_eq!(text(&mut socket), said, "{name}");
        }
        assert_eq!(close_code(&mut socket).to_string(), code, "{name}");
        drop(socket);
        server.await_connections(0);
    }
}

#[test]
fn every_registered_close_code_is_returned() {
    for code in [1000u16, 1001, 1011, 1012, 1013, 1014, 3000, 4999] {
        let server = server(limits());
        let mut socket = open(&server).into_inner();
        let [high, low] = code.to_be_bytes();
        // In pieces, and masked.
        socket.write_all(&[0x88, 0x82, 1, 2]).unwrap();
        socket.write_all(&[3, 4, high ^ 1]).unwrap();
        socket.write_all(&[low ^ 2]).unwrap();
        let mut received = Vec::new();
        socket.read_to_end(&mut received).unwrap();
        assert_eq!(received, [0x88, 2, high, low], "{code}");
    }
}

#[test]
fn the_limit_grows_with_authentication() {
    let server = server(limits());
    let mut socket = open(&server);
    let within = "x".repeat(limits().unauthenticated_message_bytes);
    socket.send(within.as_str().into()).unwrap();
    assert_eq!(text(&mut socket), within);
    // In one write, so that both arrive together.
    socket.write("{auth}".into()).unwrap();
    let large = "y".repeat(limits().message_bytes);
    socket.write(large.as_str().into()).unwrap();
    socket.flush().unwrap();
    assert_eq!(text(&mut socket), "hello 127.0.0.1 websocket");
    assert_eq!(text(&mut socket), large);
}

#[test]
fn the_server_closes_in_order() {
    let server = server(limits());
    let mut socket = open_authenticated(&server);
    socket.send("{close}".into()).unwrap();
    assert_eq!(text(&mut socket), "bye");
    assert_eq!(close_code(&mut socket), Close::REVOKED.code);
    server.await_connections(0);
}

#[test]
fn a_client_that_closes_gets_its_close_back() {
    let server = server(limits());
    let mut socket = open_authenticated(&server);
    socket
        .close(Some(tungstenite::protocol::CloseFrame {
            code: CloseCode::Away,
            reason: "".into(),
        }))
        .unwrap();
    assert_eq!(close_code(&mut socket), 1001);
    server.await_connections(0);
}

#[test]
fn stopping_says_so() {
    let mut server = server(limits());
    let mut socket = open_authenticated(&server);
    let listener = server.listener.take().unwrap();
    let stopper = std::thread::spawn(move || listener.stop());
    assert_eq!(close_code(&mut socket), 1001);
    stopper.join().unwrap();
}

#[test]
fn a_client_that_does_not_authenticate_is_told_and_closed() {
    let server = server(Limits {
        auth_seconds: 1,
        ..limits()
    });
    let mut socket = open(&server);
    assert_eq!(text(&mut socket), "too late");
    assert_eq!(close_code(&mut socket), 1008);
}

#[test]
fn sending_without_a_pause_does_not_extend_the_time_to_authenticate() {
    let server = server(Limits {
        auth_seconds: 1,
        ..limits()
    });
    let mut socket = open(&server);
    let mut flood = socket.get_ref().try_clone().unwrap();
    let length = limits().unauthenticated_message_bytes;
    let mut frame = vec![0x81, 0xfe];
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + length, b'x');
    let flooder = std::thread::spawn(move || while flood.write_all(&frame).is_ok() {});
    let told = std::iter::repeat_with(|| text(&mut socket)).find(|text| text == "too late");
    assert!(told.is_some());
    // Nor does it extend the time to close, or this would not end.
    flooder.join().unwrap();
}

#[test]
fn the_living_are_told_from_the_dead() {
    let server = server(Limits {
        ping_seconds: 1,
        // Longer than a busy machine takes to send a ping and to answer it.
        dead_seconds: 6,
        ..limits()
    });
    // tungstenite answers pings whenever it reads; a bare socket does not.
    let mut living = open_authenticated(&server);
    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    let living = std::thread::spawn(move || text(&mut living));
    let begun = Instant::now();
    let mut dead = open_authenticated(&server).into_inner();
    let mut received = Vec::new();
    dead.read_to_end(&mut received).unwrap();
    let pings = received.as_chunks::<2>().0;
    assert!(!pings.is_empty() && pings.iter().all(|ping| *ping == [0x89, 0x00]));
    assert_eq!(received.len() % 2, 0, "pings and then the end");
    assert!(begun.elapsed() >= Duration::from_secs(6));
    // The other one has been silent for longer, but for its pongs.
    outbox.push(Item::Event("still here".into()));
    assert_eq!(living.join().unwrap(), "still here");
}

#[test]
fn unauthenticated_sockets_are_limited_and_authenticated_ones_are_not() {
    let server = server(Limits {
        unauthenticated_per_address: 2,
        ..limits()
    });
    let _authenticated: Vec<_> = (0..5).map(|_| open_authenticated(&server)).collect();
    let _unauthenticated = [open(&server), open(&server)];
    let mut client = server.connect();
    client.try_send(HANDSHAKE);
    assert_eq!(client.answer().status, 503);
}

#[test]
fn clients_behind_a_proxy_are_counted_one_by_one() {
    let server = build(ServerOptions {
        trusted: patterns(&[("127.0.0.1", 32)]),
        limits: Limits {
            connections_per_address: 1,
            ..limits()
        },
        ..ServerOptions::default()
    });
    let open = |address: &str| {
        let mut client = server.connect();
        let header = format!("Host: x\r\nX-Forwarded-For: {address}");
        client.send(HANDSHAKE.replace("Host: x", &header));
        (client.answer().status, client)
    };
    let first = open("203.0.113.1");
    let second = open("203.0.113.2");
    let again = open("203.0.113.1");
    assert_eq!((first.0, second.0, again.0), (101, 101, 503));
}
