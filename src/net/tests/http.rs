//! HTTP framing: hostile input, bodies, persistence, deadlines.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::support::*;
use config::Limits;

const GET: &str = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";

/// How the server responds to some input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Kept,
    Closed,
}
use Then::{Closed, Kept};

#[test]
fn hostile_input_gets_its_status_and_an_end() {
    let limits = Limits {
        head_bytes: 2048,
        head_count: 16,
        ..limits()
    };
    let server = server(limits);
    let many = "X: y\r\n".repeat(17);
    let long = "x".repeat(3000);
    let post = |headers: &str, body: &str| {
        format!("POST /echo HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n{body}")
    };
    let chunked = |body: &str| post("Transfer-Encoding: chunked", body);
    let cases: Vec<(&str, String, u16, Then)> = vec![
        ("a plain request", GET.into(), 200, Kept),
        ("one empty line before it", format!("\r\n{GET}"), 200, Kept),
        ("two empty lines", format!("\r\n\r\n{GET}"), 400, Closed),
        ("a query", "GET /echo?a=b HTTP/1.1\r\nHost: x\r\n\r\n".into(), 200, Kept),
        ("an unknown method", "BREW /echo HTTP/1.1\r\nHost: x\r\n\r\n".into(), 200, Kept),
        ("no Host", "GET / HTTP/1.1\r\n\r\n".into(), 400, Closed),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n".into(), 400, Closed),
        ("a Host with a path", "GET / HTTP/1.1\r\nHost: x/y\r\n\r\n".into(), 400, Closed),
        ("a Host with a user", "GET / HTTP/1.1\r\nHost: a@x\r\n\r\n".into(), 400, Closed),
        ("a Host with a port", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n".into(), 200, Kept),
        ("an empty port", "GET / HTTP/1.1\r\nHost: x:\r\n\r\n".into(), 200, Kept),
        ("a malformed port", "GET / HTTP/1.1\r\nHost: a:8x\r\n\r\n".into(), 400, Closed),
        ("two ports", "GET / HTTP/1.1\r\nHost: a:8:8\r\n\r\n".into(), 400, Closed),
        ("a port that cannot be", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n".into(), 400, Closed),
        ("a malformed address", "GET / HTTP/1.1\r\nHost: [::x]\r\n\r\n".into(), 400, Closed),
        ("HTTP/1.0 without Host", "GET /echo HTTP/1.0\r\n\r\n".into(), 200, Closed),
        (
            "HTTP/1.0 with keep-alive",
            "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".into(),
            200,
            Kept,
        ),
        ("close", "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n".into(), 200, Closed),
        (
            "close among others",
            "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: foo, close , keep-alive\r\n\r\n".into(),
            200,
            Closed,
        ),
        ("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 505, Closed),
        ("HTTP/1.2", "GET / HTTP/1.2\r\nHost: x\r\n\r\n".into(), 505, Closed),
        ("no version", "GET /\r\n\r\n".into(), 400, Closed),
        ("nonsense for a version", "GET / FTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("TLS", "\x16\x03\x01\x02\r\n".into(), 400, Closed),
        ("bare LF", "GET / HTTP/1.1\nHost: x\n\n".into(), 400, Closed),
        ("bare LF among CR LF", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n".into(), 400, Closed),
        ("bare CR", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n".into(), 400, Closed),
        ("a folded header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n".into(), 400, Closed),
        ("a space before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n".into(), 400, Closed),
        ("a space before the first header", "GET / HTTP/1.1\r\n Host: x\r\n\r\n".into(), 400, Closed),
        ("a header without a colon", "GET / HTTP/1.1\r\nHost: x\r\nfoo\r\n\r\n".into(), 400, Closed),
        ("a header without a name", "GET / HTTP/1.1\r\nHost: x\r\n: foo\r\n\r\n".into(), 400, Closed),
        ("a NUL in a value", "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n".into(), 400, Closed),
        ("a control byte in the target", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("a space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("an absolute target", "GET http://x/echo?a HTTP/1.1\r\nHost: y\r\n\r\n".into(), 200, Kept),
        ("without a path", "GET HTTP://x HTTP/1.1\r\nHost: x\r\n\r\n".into(), 200, Kept),
        ("without a Host", "GET http://x/ HTTP/1.1\r\n\r\n".into(), 400, Closed),
        ("with a user", "GET http://a@x/ HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("with another scheme", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("with a malformed host", "GET http://x:8x/ HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("OPTIONS of the server", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n".into(), 204, Kept),
        ("GET of the server", "GET * HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("an authority", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("a fragment", "GET /#a HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("a target beyond ASCII", "GET /ä HTTP/1.1\r\nHost: x\r\n\r\n".into(), 400, Closed),
        ("too many headers", format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"), 431, Closed),
        ("a long header", format!("GET / HTTP/1.1\r\nHost: x\r\nA: {long}"), 431, Closed),
        ("a long request line", format!("GET /{long}"), 414, Closed),
        ("a length", post("Content-Length: 3", "abc"), 200, Kept),
        ("a length of nothing", post("Content-Length: 0", ""), 200, Kept),
        ("leading zeros", post("Content-Length: 003", "abc"), 200, Kept),
        ("two lengths", post("Content-Length: 3\r\nContent-Length: 4", "abc"), 400, Closed),
        ("the same length twice", post("Content-Length: 3\r\nContent-Length: 3", "abc"), 400, Closed),
        ("a list of lengths", post("Content-Length: 3, 3", "abc"), 400, Closed),
        ("a signed length", post("Content-Length: +3", "abc"), 400, Closed),
        ("a negative length", post("Content-Length: -3", "abc"), 400, Closed),
        ("a hexadecimal length", post("Content-Length: 0x3", "abc"), 400, Closed),
        ("a word for a length", post("Content-Length: abc", "abc"), 400, Closed),
        ("an empty length", post("Content-Length:", "abc"), 400, Closed),
        ("a length over u64", post("Content-Length: 99999999999999999999", "abc"), 400, Closed),
        ("a length over memory", post("Content-Length: 99999999999999", "abc"), 413, Closed),
        (
            "a length and chunks",
            post("Content-Length: 3\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            400,
            Closed,
        ),
        ("another coding", post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"), 400, Closed),
        ("almost chunked", post("Transfer-Encoding: xchunked", "0\r\n\r\n"), 400, Closed),
        (
            "chunked twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
            400,
            Closed,
        ),
        (
            "chunked in HTTP/1.0",
            "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            400,
            Closed,
        ),
        ("chunks", chunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), 200, Kept),
        ("no chunks", chunked("0\r\n\r\n"), 200, Kept),
        ("extensions and trailers", chunked("3;a=b\r\nabc\r\n0;c\r\nD: e\r\n\r\n"), 200, Kept),
        ("hexadecimal sizes", chunked("00A\r\n0123456789\r\n0\r\n\r\n"), 200, Kept),
        ("a size that is none", chunked("xyz\r\nabc\r\n"), 400, Closed),
        ("an empty size", chunked("\r\nabc\r\n"), 400, Closed),
        ("a signed size", chunked("+3\r\nabc\r\n0\r\n\r\n"), 400, Closed),
        ("a prefixed size", chunked("0x3\r\nabc\r\n0\r\n\r\n"), 400, Closed),
        ("a space behind the size", chunked("3 \r\nabc\r\n0\r\n\r\n"), 400, Closed),
        ("a size over u64", chunked("11111111111111111\r\nabc\r\n"), 400, Closed),
        ("a size over memory", chunked("ffffffffffffffff\r\nabc\r\n"), 413, Closed),
        ("a chunk longer than it says", chunked("3\r\nabcd\r\n0\r\n\r\n"), 400, Closed),
        ("a bare LF behind a size", chunked("3\nabc\r\n0\r\n\r\n"), 400, Closed),
        ("a bare LF behind a chunk", chunked("3\r\nabc\n0\r\n\r\n"), 400, Closed),
        ("a bare CR in an extension", chunked("3;a\rb\r\nabc\r\n0\r\n\r\n"), 400, Closed),
        ("a long extension", chunked(&format!("3;{long}\r\nabc\r\n0\r\n\r\n")), 400, Closed),
        ("a trailer without a name", chunked("0\r\n: a\r\n\r\n"), 400, Closed),
        ("a space before a trailer's colon", chunked("0\r\nA : b\r\n\r\n"), 400, Closed),
        ("a folded trailer", chunked("0\r\nA: b\r\n c\r\n\r\n"), 400, Closed),
        ("a bare LF behind a trailer", chunked("0\r\nA: b\n\r\n"), 400, Closed),
        ("a NUL in a trailer", chunked("0\r\nA: \0\r\n\r\n"), 400, Closed),
        ("a media type twice", post("Content-Type: a/b\r\nContent-Type: a/b", ""), 200, Kept),
        ("two media types", post("Content-Type: a/b\r\nContent-Type: a/c", ""), 400, Closed),
        ("two secrets", post("X-Service-Secret: a\r\nx-service-secret: b", ""), 400, Closed),
        ("long trailers", chunked(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(1000))), 400, Closed),
        ("another expectation", post("Expect: tea\r\nContent-Length: 3", "abc"), 417, Closed),
        ("a body that is refused", "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc".into(), 404, Closed),
        ("a refusal without a body", "GET /refused HTTP/1.1\r\nHost: x\r\n\r\n".into(), 404, Kept),
        (
            "a body over the path's limit",
            "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n01234567890".into(),
            413,
            Closed,
        ),
        (
            "chunks over the path's limit",
            "POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n".into(),
            413,
            Closed,
        ),
        ("a handler that panics", "GET /panic HTTP/1.1\r\nHost: x\r\n\r\n".into(), 500, Closed),
    ];
    for (name, input, status, then) in cases {
        let mut client = server.connect();
        client.try_send(&input);
        let answer = client.answer();
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        assert_eq!(
            answer.head.contains("\r\nConnection: close\r\n"),
            then == Closed,
            "{name}: {answer:?}"
        );
        if status >= 400 {
            assert!(
                answer.body.starts_with(r#"{"status":"error""#),
                "{name}: {answer:?}"
            );
        }
        match then {
            Kept => {
                client.send(GET);
                assert_eq!(client.answer().status, 200, "{name}, the next request");
            }
            Closed => assert!(client.is_closed(), "{name}"),
        }
        if let Some(rest) = input.strip_prefix("GET").filter(|_| status >= 400) {
            let mut client = server.connect();
            client.try_send(format!("HEAD{rest}"));
            assert_eq!(client.answer_to(true).status, status, "HEAD: {name}");
            assert!(
                then == Kept || client.is_closed(),
                "HEAD with a body: {name}"
            );
        }
    }
    server.await_connections(0);
}

#[test]
fn a_body_that_is_cut_off_is_refused() {
    let server = server(limits());
    for (framing, body) in [
        ("Content-Length: 5", "abc"),
        ("Transfer-Encoding: chunked", ""),
        ("Transfer-Encoding: chunked", "5\r\nabc"),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n"),
    ] {
        let mut client = server.connect();
        client.send(format!(
            "POST /echo HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n{body}"
        ));
        client.stream.shutdown(Shutdown::Write).unwrap();
        let answer = client.answer();
        assert_eq!(answer.status, 400, "{framing} {body:?}");
        assert!(answer.body.contains("before it was complete"), "{answer:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn the_handler_sees_the_whole_request() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("POST /echo?a=%20b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert_eq!(
        client.answer().body,
        format!(
            "POST /echo Some(\"a=%20b\") {} false abcde",
            client.local_ip()
        )
    );
}

#[test]
fn requests_may_be_sent_together_and_in_pieces() {
    let server = server(limits());
    let mut client = server.connect();
    let post = |body: &str| {
        format!(
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let large = "y".repeat(100_000);
    client.send(format!("{}{GET}{}{GET}", post("one"), post(&large)));
    for end in [" one", " ", large.as_str(), " "] {
        assert!(client.answer().body.ends_with(end));
    }
    for byte in format!("{}{GET}", post("two")).bytes() {
        client.send([byte]);
    }
    assert!(client.answer().body.ends_with(" two"));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn head_is_get_without_the_body() {
    let server = server(limits());
    let mut client = server.connect();
    client.send(GET.replace("GET", "HEAD"));
    client.send(GET);
    let head = client.answer_to(true);
    let get = client.answer();
    let length = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("Content-Length"))
            .map(str::to_owned)
    };
    assert_eq!(length(&head.head), length(&get.head));
    assert!(get.body.starts_with("GET "));
}

#[test]
fn a_client_that_expects_permission_gets_it_or_the_refusal() {
    let server = server(limits());
    let mut client = server.connect();
    client.send(
        "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n",
    );
    assert_eq!(
        client.read_until("\r\n\r\n"),
        "HTTP/1.1 100 Continue\r\n\r\n"
    );
    client.send("abc");
    assert!(client.answer().body.ends_with(" abc"));
    for (path, status) in [("/refused", 404), ("/small", 413)] {
        let mut client = server.connect();
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n"
        ));
        assert_eq!(client.answer().status, status);
        assert!(client.is_closed());
    }
}

#[test]
fn a_client_that_sends_a_whole_refused_body_still_reads_the_answer() {
    let server = server(limits());
    let body = "z".repeat(600_000);
    let mut client = server.connect();
    client.send(format!(
        "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(client.answer().status, 413);
}

#[test]
fn a_large_answer_arrives_whole() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send(GET);
    assert_eq!(client.answer().body.len(), 4 * 1024 * 1024);
    assert_eq!(client.answer().status, 200);
}

/// Sends one byte after the other until the server has had enough; returns
/// what it said.
fn drip(client: &mut Client, bytes: impl Iterator<Item = u8>) -> String {
    let begun = Instant::now();
    client
        .stream
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let mut said = Vec::new();
    for byte in bytes {
        if client.stream.write_all(&[byte]).is_err() {
            break;
        }
        let mut buffer = [0; 1024];
        match client.stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        assert!(begun.elapsed() < MAX_WAIT);
    }
    String::from_utf8(said).unwrap()
}

#[test]
fn dripping_does_not_extend_a_deadline() {
    let limits = Limits {
        head_seconds: 1,
        body_seconds: 1,
        ..limits()
    };
    let server = server(limits);
    let head = &GET[..GET.len() - 2];
    let post = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    let (mut slow_head, mut slow_body) = (server.connect(), server.connect());
    let mut silent = server.connect();
    slow_body.send(post);
    std::thread::scope(|scope| {
        let endless = std::iter::repeat(b'a');
        let drips = [
            scope.spawn(move || drip(&mut slow_head, head.bytes().chain(endless))),
            scope.spawn(move || drip(&mut slow_body, std::iter::repeat(b'a'))),
        ];
        for thread in drips {
            let said = thread.join().unwrap();
            assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
        }
        // A client that sends nothing gets no response.
        assert!(silent.is_closed());
    });
}

#[test]
fn an_idle_connection_is_closed_silently() {
    let limits = Limits {
        idle_seconds: 1,
        ..limits()
    };
    let server = server(limits);
    let mut client = server.connect();
    let begun = Instant::now();
    client.send(GET);
    client.answer();
    assert!(client.is_closed());
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[test]
fn only_a_trusted_proxy_says_who_the_client_is() {
    let request = "GET /echo HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\n\r\n";
    for (trusted, peer) in [
        (&[][..], "127.0.0.1 false"),
        (&[("127.0.0.1", 32)], "203.0.113.9 true"),
    ] {
        let server = build(ServerOptions {
            trusted: patterns(trusted),
            ..ServerOptions::default()
        });
        let mut client = server.connect();
        client.send(request);
        assert!(client.answer().body.contains(peer));
    }
    let server = build(ServerOptions {
        trusted: patterns(&[("127.0.0.1", 32)]),
        ..ServerOptions::default()
    });
    let mut client = server.connect();
    client.send(request.replace("203.0.113.9", "198.51.100.1"));
    assert_eq!(
        client.answer().status,
        403,
        "allow_from holds for the client too"
    );
}
