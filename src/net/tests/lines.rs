//! JSON lines over TCP.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::support::*;
use crate::outbox::{Close, Item};
use config::Limits;

#[test]
fn lines_go_both_ways() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("{auth}\n");
    assert_eq!(client.line(), "hello 127.0.0.1 lines");
    assert_eq!(server.listeners.connections().lines, 1);
    client.send("{one}\r\n\n\r\n{two}\n{th");
    assert_eq!(client.line(), "{one}");
    assert_eq!(client.line(), "{two}");
    client.send("ree}\n");
    assert_eq!(client.line(), "{three}");
    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    outbox.push(Item::Event("pushed".into()));
    assert_eq!(client.line(), "pushed");
    outbox.close(Close::REVOKED);
    assert!(client.is_closed());
    drop(client);
    server.await_connections(0);
}

#[test]
fn what_is_not_a_line_is_refused_and_ends() {
    let authenticated = limits().message_bytes;
    for (before, input, answer) in [
        ("", vec![b'x'; 5000], "refused 413"),
        ("{auth}\n", vec![b'x'; authenticated + 100], "refused 413"),
        ("{auth}\n", b"\xff\xfe\n".to_vec(), "refused 400"),
    ] {
        let server = server(limits());
        let mut client = server.connect();
        client.send(if before.is_empty() { "{" } else { before });
        if !before.is_empty() {
            client.line();
        }
        client.try_send(&input);
        assert_eq!(client.line(), answer);
        assert!(client.is_closed());
    }
}

#[test]
fn the_longest_line_is_taken() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("{auth}\n");
    client.line();
    let longest = "y".repeat(limits().message_bytes);
    client.send(format!("{longest}\r\n"));
    assert_eq!(client.line(), longest);
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answers() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("{auth}\n{one}\n{wait}\n{last}");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.line(), "hello 127.0.0.1 lines");
    assert_eq!(client.line(), "{one}");
    assert_eq!(client.line(), "{last}");
    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    outbox.push(Item::Event("done at last".into()));
    assert_eq!(client.line(), "done at last");
    assert!(client.is_closed());
}

#[test]
fn a_client_that_is_gone_is_not_waited_for() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("{auth}\n{wait}\n");
    client.line();
    client.stream.shutdown(Shutdown::Write).unwrap();
    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    drop(client);
    // The first is answered with a reset, which ends the wait.
    outbox.push(Item::Response {
        ticket: crate::outbox::Ticket(0),
        text: "is anybody there?".into(),
    });
    server.await_connections(0);
}

#[test]
fn a_client_that_does_not_authenticate_is_told_and_closed() {
    let server = server(Limits {
        auth_seconds: 1,
        ..limits()
    });
    let mut client = server.connect();
    let begun = Instant::now();
    client.send("{hello}\n");
    assert_eq!(client.line(), "{hello}");
    assert_eq!(client.line(), "too late");
    assert!(client.is_closed());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}
