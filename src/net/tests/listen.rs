//! Accepting: limits, permitted peers, failures, and the end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::support::*;
use crate::connection::policy::ListenerPolicy;
use crate::listener::Listener;
use config::Limits;

const GET: &str = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[test]
fn connections_over_a_limit_are_told_and_places_become_free() {
    for limits in [
        Limits {
            connections: 2,
            ..limits()
        },
        Limits {
            connections_per_address: 2,
            ..limits()
        },
    ] {
        let server = server(limits);
        let (first, second) = (signed_in(&server), signed_in(&server));
        let mut third = server.connect();
        third.try_send(GET);
        let answer = third.answer();
        assert_eq!(answer.status, 503);
        assert!(answer.head.contains("\r\nRetry-After: "));
        assert!(third.is_closed());
        assert_eq!(server.listeners.connections().lines, 2);

        drop(first);
        server.await_connections(1);
        let mut fourth = server.connect();
        fourth.send(GET);
        assert_eq!(fourth.answer().status, 200);
        drop((second, fourth));
        server.await_connections(0);
    }
}

/// A client that has signed in.
fn signed_in(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.send("{auth}\n");
    client.line();
    client
}

#[test]
fn where_all_places_are_taken_the_oldest_stranger_makes_way() {
    let server = server(Limits {
        connections: 5,
        ..limits()
    });
    let mut signed_in = signed_in(&server);
    // Idle between two requests, which goes last.
    let mut idle = server.connect();
    idle.send(GET);
    assert_eq!(idle.answer().status, 200);
    let mut working = server.connect();
    working.send("POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    let release = server.arrivals.recv_timeout(MAX_WAIT).unwrap();
    let mut half = server.connect();
    half.send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    );
    half.stream.read_exact(&mut [0; CONTINUE.len()]).unwrap();
    half.send("half");
    let mut silent = server.connect();
    silent.send("{x}\n");
    assert_eq!(silent.line(), "{x}");
    // A connection waits only a moment after what it has sent.
    await_true(|| server.listeners.admissions().waiting() == 3);
    let mut others = Vec::new();
    for (made_way, told) in [
        (&mut half, "HTTP/1.1 400"),
        (&mut silent, ""),
        (&mut idle, ""),
    ] {
        let mut next = server.connect();
        next.send(GET);
        assert_eq!(next.answer().status, 200);
        let mut end = Vec::new();
        made_way.stream.read_to_end(&mut end).unwrap();
        assert!(String::from_utf8(end).unwrap().starts_with(told));
        others.push(next);
    }
    release.send(()).unwrap();
    assert_eq!(working.answer().status, 200);
    signed_in.send("{y}\n");
    assert_eq!(signed_in.line(), "{y}");
}

#[test]
fn whoever_does_not_authenticate_takes_only_the_places_for_that() {
    let server = server(Limits {
        unauthenticated_per_address: 2,
        ..limits()
    });
    let stranger = || {
        let mut client = server.connect();
        client.send("{x}\n");
        assert_eq!(client.line(), "{x}");
        client
    };
    let _strangers = [stranger(), stranger()];
    let mut third = server.connect();
    third.send(GET);
    assert_eq!(third.answer().status, 503);
    assert!(third.is_closed());
}

#[test]
fn a_request_gives_its_unauthenticated_place_back() {
    let server = server(Limits {
        unauthenticated_per_address: 1,
        ..limits()
    });
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut client = server.connect();
        client.send(GET);
        assert_eq!(client.answer().status, 200);
        kept.push(client);
    }
}

#[test]
fn whoever_is_refused_reads_why_in_its_own_protocol() {
    let forbidden = ServerOptions {
        allow_from: patterns(&[("203.0.113.0", 24)]),
        ..ServerOptions::default()
    };
    let full = |limits| ServerOptions {
        limits,
        ..ServerOptions::default()
    };
    let none = Limits {
        connections: 0,
        ..limits()
    };
    let none_unauthenticated = Limits {
        unauthenticated_per_address: 0,
        ..limits()
    };
    for (options, status, code) in [
        (forbidden, 403, "unauthorized"),
        (full(none), 503, "server_error"),
        (full(none_unauthenticated), 503, "server_error"),
    ] {
        let server = build(options);
        for input in ["", GET, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", "{auth}\n"] {
            let mut client = server.connect();
            client.send(input);
            let said = match input.starts_with('{') {
                true => client.line(),
                false => {
                    let is_head = input.starts_with("HEAD");
                    let answer = client.answer_to(is_head);
                    assert_eq!(answer.status, status, "{input:?}");
                    match is_head {
                        true => format!(r#"{{"status":"error" {code}"#),
                        false => answer.body,
                    }
                }
            };
            assert!(
                said.starts_with(r#"{"status":"error""#),
                "{input:?}: {said}"
            );
            assert!(said.contains(code), "{input:?}: {said}");
            assert!(client.is_closed(), "{input:?}");
        }
        server.await_connections(0);
    }
}

#[test]
fn clients_that_are_refused_do_not_hold_up_others() {
    let server = server(Limits {
        connections_per_address: 0,
        ..limits()
    });
    // More than may wait until it is known what they speak.
    let mut clients: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    clients[99].send(GET);
    for mut client in clients.into_iter().rev() {
        assert_eq!(client.answer().status, 503);
        assert!(client.is_closed());
    }
}

/// A listener that accepts by this function.
fn accepting_by(
    accept: impl FnMut(&TcpListener) -> io::Result<(TcpStream, SocketAddr)> + Send + 'static,
) -> Listener {
    let (listeners, _) = listeners(limits(), patterns(&[]));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let policy = ListenerPolicy {
        #[cfg(feature = "tls")]
        tls: None,
        upgrades: true,
        is_local: false,
        allow_from: patterns(&[("127.0.0.0", 8)]),
        handler: echo_handler(),
        sessions: None,
    };
    let address = socket.local_addr().unwrap();
    listeners.start(policy, socket, address, accept).unwrap()
}

#[test]
fn many_connections_may_wait_until_they_are_accepted() {
    let listener = accepting_by(|_| {
        std::thread::sleep(Duration::from_millis(1));
        Err(io::ErrorKind::WouldBlock.into())
    });
    // Without room for it the system answers to none that comes then.
    let connect = || TcpStream::connect_timeout(&listener.local_addr(), Duration::from_secs(5));
    let waiting: Vec<TcpStream> = (0..300).map(|_| connect().unwrap()).collect();
    drop(waiting);
    listener.stop();
}

#[test]
fn failures_to_accept_pass() {
    let mut failures = vec![
        rustix::io::Errno::MFILE,
        rustix::io::Errno::CONNABORTED,
        rustix::io::Errno::NFILE,
        rustix::io::Errno::NOMEM,
        rustix::io::Errno::INVAL,
    ];
    let accept = move |socket: &TcpListener| match failures.pop() {
        Some(error) => Err(io::Error::from(error)),
        None => socket.accept(),
    };
    let listener = accepting_by(accept);
    // Accepted with the spare descriptor, which is there again for the next.
    for status in [503, 200] {
        let mut client = Client::connect(listener.local_addr());
        client.send(GET);
        assert_eq!(client.answer().status, status);
    }
    listener.stop();
}

#[test]
fn stopping_ends_every_kind_of_connection_promptly() {
    let mut server = server(limits());
    let mut silent = server.connect();
    let mut half = server.connect();
    half.send("GET /echo HT");
    let mut idle = server.connect();
    idle.send(GET);
    idle.answer();
    let mut lines = server.connect();
    lines.send("{auth}\n");
    lines.line();
    let mut busy = server.connect();
    busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    let go_on = server.arrivals.recv_timeout(MAX_WAIT).unwrap();
    let address = server.address;

    let listener = server.listener.take().unwrap();
    let stopper = std::thread::spawn(move || listener.stop());
    // The first three end at once, or the request would be cut with them.
    assert!(silent.is_closed());
    assert!(half.is_closed());
    assert!(idle.is_closed());
    // What is being answered is answered.
    go_on.send(()).unwrap();
    let answer = busy.answer();
    assert_eq!(answer.status, 200);
    assert!(busy.is_closed());
    assert!(lines.is_closed());
    drop((silent, half, idle, lines, busy));
    stopper.join().unwrap();
    assert_eq!(server.listeners.connections().total(), 0);
    assert!(TcpStream::connect(address).is_err(), "the port is closed");
}

#[test]
fn refusing_new_connections_leaves_the_others() {
    let server = server(limits());
    let mut client = server.connect();
    client.send(GET);
    client.answer();
    server.listener.as_ref().unwrap().refuse_new();
    await_true(|| TcpStream::connect(server.address).is_err());
    client.send(GET);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_client_that_does_not_read_is_cut_when_the_listener_stops() {
    let mut server = server(limits());
    let mut deaf = server.connect();
    deaf.send("{auth}\n");
    deaf.line();
    let outbox = server.outboxes.recv_timeout(MAX_WAIT).unwrap();
    let flood: Arc<str> = "x".repeat(32 * 1024 * 1024).into();
    outbox.push(crate::outbox::Item::Event(flood));
    // Its beginning has arrived: the rest is being written.
    let mut byte = [0];
    std::io::Read::read_exact(&mut deaf.stream, &mut byte).unwrap();
    // Returns: the write is not waited for.
    server.listener.take().unwrap().stop();
    assert_eq!(server.listeners.connections().total(), 0);
}

#[test]
fn a_deeply_nested_text_fits_the_stack_of_a_connection() {
    // The deepest recursion that a message can cause; serde_json stops at 128.
    let text = format!("{}{}", "[".repeat(127), "]".repeat(127));
    std::thread::Builder::new()
        .stack_size(crate::listener::STACK_BYTES)
        .spawn(move || serde_json::from_str::<serde_json::Value>(&text).map(drop))
        .unwrap()
        .join()
        .unwrap()
        .unwrap();
}

#[test]
fn a_port_for_http_alone_speaks_nothing_else() {
    let server = build(ServerOptions {
        http_only: true,
        ..ServerOptions::default()
    });
    let mut client = server.connect();
    client.stream.write_all(b"{auth}\n").unwrap();
    assert_eq!(client.answer().status, 400);
}
