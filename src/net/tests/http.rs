//! HTTP framing: hostile input, bodies, persistence, deadlines.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use super::support::*;
use crate::http::head::parse;
use base::testing::{AT_ONCE, rows};
use config::Limits;

const GET: &str = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn hostile_input_gets_its_status_and_an_end() {
    let limits = Limits {
        head_bytes: 2048,
        head_count: 16,
        ..limits()
    };
    let server = server(limits);
    // ¶ is CR LF, and other control characters are their pictures. What is not whole is a
    // POST: its headers and body, or its chunks.
    let table = "
        200 kept   | a plain request                  | whole   | GET /echo HTTP/1.1¶Host: x¶¶
        200 kept   | one empty line before it         | whole   | ¶GET /echo HTTP/1.1¶Host: x¶¶
        400 closed | two empty lines                  | whole   | ¶¶GET /echo HTTP/1.1¶Host: x¶¶
        200 kept   | a query                          | whole   | GET /echo?a=b HTTP/1.1¶Host: x¶¶
        200 kept   | an unknown method                | whole   | BREW /echo HTTP/1.1¶Host: x¶¶
        400 closed | no Host                          | whole   | GET / HTTP/1.1¶¶
        400 closed | two Hosts                        | whole   | GET / HTTP/1.1¶Host: x¶Host: x¶¶
        400 closed | an empty Host                    | whole   | GET / HTTP/1.1¶Host:¶¶
        400 closed | a Host with a path               | whole   | GET / HTTP/1.1¶Host: x/y¶¶
        400 closed | a Host with a user               | whole   | GET / HTTP/1.1¶Host: a@x¶¶
        200 kept   | a Host with a port               | whole   | GET / HTTP/1.1¶Host: [::1]:80¶¶
        200 kept   | an empty port                    | whole   | GET / HTTP/1.1¶Host: x:¶¶
        400 closed | a malformed port                 | whole   | GET / HTTP/1.1¶Host: a:8x¶¶
        400 closed | two ports                        | whole   | GET / HTTP/1.1¶Host: a:8:8¶¶
        400 closed | a port that cannot be            | whole   | GET / HTTP/1.1¶Host: a:65536¶¶
        400 closed | a malformed address              | whole   | GET / HTTP/1.1¶Host: [::x]¶¶
        200 closed | HTTP/1.0 without Host            | whole   | GET /echo HTTP/1.0¶¶
        200 kept   | HTTP/1.0 with keep-alive         | whole   | GET /echo HTTP/1.0¶Connection: keep-alive¶¶
        200 closed | close                            | whole   | GET /echo HTTP/1.1¶Host: x¶Connection: Close¶¶
        200 closed | close among others               | whole   | GET /echo HTTP/1.1¶Host: x¶Connection: foo, close , keep-alive¶¶
        505 closed | HTTP/2                           | whole   | PRI * HTTP/2.0¶¶SM¶¶
        505 closed | HTTP/1.2                         | whole   | GET / HTTP/1.2¶Host: x¶¶
        400 closed | no version                       | whole   | GET /¶¶
        400 closed | nonsense for a version           | whole   | GET / FTP/1.1¶Host: x¶¶
        400 closed | TLS                              | whole   | ␖␃␁␂¶
        400 closed | bare LF                          | whole   | GET / HTTP/1.1␊Host: x␊␊
        400 closed | bare LF among CR LF              | whole   | GET / HTTP/1.1¶Host: x␊A: b¶¶
        400 closed | bare CR                          | whole   | GET / HTTP/1.1¶Host: x␍A: b¶¶
        400 closed | a folded header                  | whole   | GET / HTTP/1.1¶Host: x¶A: b¶ c¶¶
        400 closed | a space before the colon         | whole   | GET / HTTP/1.1¶Host : x¶¶
        400 closed | a space before the first header  | whole   | GET / HTTP/1.1¶ Host: x¶¶
        400 closed | a header without a colon         | whole   | GET / HTTP/1.1¶Host: x¶foo¶¶
        400 closed | a header without a name          | whole   | GET / HTTP/1.1¶Host: x¶: foo¶¶
        400 closed | a NUL in a value                 | whole   | GET / HTTP/1.1¶Host: x¶A: b␀c¶¶
        400 closed | a control byte in the target     | whole   | GET /␁ HTTP/1.1¶Host: x¶¶
        400 closed | a space in the target            | whole   | GET /a b HTTP/1.1¶Host: x¶¶
        200 kept   | an absolute target               | whole   | GET http://x/echo?a HTTP/1.1¶Host: y¶¶
        200 kept   | without a path                   | whole   | GET HTTP://x HTTP/1.1¶Host: x¶¶
        400 closed | without a Host                   | whole   | GET http://x/ HTTP/1.1¶¶
        400 closed | with a user                      | whole   | GET http://a@x/ HTTP/1.1¶Host: x¶¶
        400 closed | with another scheme              | whole   | GET ftp://x/ HTTP/1.1¶Host: x¶¶
        400 closed | with a malformed host            | whole   | GET http://x:8x/ HTTP/1.1¶Host: x¶¶
        204 kept   | OPTIONS of the server            | whole   | OPTIONS * HTTP/1.1¶Host: x¶¶
        400 closed | GET of the server                | whole   | GET * HTTP/1.1¶Host: x¶¶
        400 closed | an authority                     | whole   | CONNECT x:80 HTTP/1.1¶Host: x¶¶
        400 closed | a fragment                       | whole   | GET /#a HTTP/1.1¶Host: x¶¶
        400 closed | a target beyond ASCII            | whole   | GET /ä HTTP/1.1¶Host: x¶¶
        431 closed | too many headers                 | whole   | GET / HTTP/1.1¶Host: x¶{headers}¶
        431 closed | a long header                    | whole   | GET / HTTP/1.1¶Host: x¶A: {long}
        414 closed | a long request line              | whole   | GET /{long}
        200 kept   | a length                         | post    | Content-Length: 3¶¶abc
        200 kept   | a length of nothing              | post    | Content-Length: 0¶¶
        200 kept   | leading zeros                    | post    | Content-Length: 003¶¶abc
        400 closed | two lengths                      | post    | Content-Length: 3¶Content-Length: 4¶¶abc
        400 closed | the same length twice            | post    | Content-Length: 3¶Content-Length: 3¶¶abc
        400 closed | a list of lengths                | post    | Content-Length: 3, 3¶¶abc
        400 closed | a signed length                  | post    | Content-Length: +3¶¶abc
        400 closed | a negative length                | post    | Content-Length: -3¶¶abc
        400 closed | a hexadecimal length             | post    | Content-Length: 0x3¶¶abc
        400 closed | a word for a length              | post    | Content-Length: abc¶¶abc
        400 closed | an empty length                  | post    | Content-Length:¶¶abc
        400 closed | a length over u64                | post    | Content-Length: 99999999999999999999¶¶abc
        413 closed | a length over memory             | post    | Content-Length: 99999999999999¶¶abc
        400 closed | a length and chunks              | post    | Content-Length: 3¶Transfer-Encoding: chunked¶¶0¶¶
        400 closed | another coding                   | post    | Transfer-Encoding: gzip, chunked¶¶0¶¶
        400 closed | almost chunked                   | post    | Transfer-Encoding: xchunked¶¶0¶¶
        400 closed | chunked twice                    | post    | Transfer-Encoding: chunked¶Transfer-Encoding: chunked¶¶0¶¶
        400 closed | chunked in HTTP/1.0              | whole   | POST /echo HTTP/1.0¶Transfer-Encoding: chunked¶¶0¶¶
        200 kept   | chunks                           | chunked | 3¶abc¶2¶de¶0¶¶
        200 kept   | no chunks                        | chunked | 0¶¶
        200 kept   | extensions and trailers          | chunked | 3;a=b¶abc¶0;c¶D: e¶¶
        200 kept   | hexadecimal sizes                | chunked | 00A¶0123456789¶0¶¶
        400 closed | a size that is none              | chunked | xyz¶abc¶
        400 closed | an empty size                    | chunked | ¶abc¶
        400 closed | a signed size                    | chunked | +3¶abc¶0¶¶
        400 closed | a prefixed size                  | chunked | 0x3¶abc¶0¶¶
        400 closed | a space behind the size          | chunked | 3 ¶abc¶0¶¶
        400 closed | a size over u64                  | chunked | 11111111111111111¶abc¶
        413 closed | a size over memory               | chunked | ffffffffffffffff¶abc¶
        400 closed | a chunk longer than it says      | chunked | 3¶abcd¶0¶¶
        400 closed | a bare LF behind a size          | chunked | 3␊abc¶0¶¶
        400 closed | a bare LF behind a chunk         | chunked | 3¶abc␊0¶¶
        400 closed | a bare CR in an extension        | chunked | 3;a␍b¶abc¶0¶¶
        400 closed | a long extension                 | chunked | 3;{long}¶abc¶0¶¶
        400 closed | a trailer without a name         | chunked | 0¶: a¶¶
        400 closed | a space before a trailer's colon | chunked | 0¶A : b¶¶
        400 closed | a folded trailer                 | chunked | 0¶A: b¶ c¶¶
        400 closed | a bare LF behind a trailer       | chunked | 0¶A: b␊¶
        400 closed | a NUL in a trailer               | chunked | 0¶A: ␀¶¶
        200 kept   | a media type twice               | post    | Content-Type: a/b¶Content-Type: a/b¶¶
        400 closed | two media types                  | post    | Content-Type: a/b¶Content-Type: a/c¶¶
        400 closed | two secrets                      | post    | X-Service-Secret: a¶x-service-secret: b¶¶
        400 closed | long trailers                    | chunked | 0¶{trailers}¶
        417 closed | another expectation              | post    | Expect: tea¶Content-Length: 3¶¶abc
        404 closed | a body that is refused           | whole   | POST /refused HTTP/1.1¶Host: x¶Content-Length: 3¶¶abc
        404 kept   | a refusal without a body         | whole   | GET /refused HTTP/1.1¶Host: x¶¶
        413 closed | a body over the path's limit     | whole   | POST /small HTTP/1.1¶Host: x¶Content-Length: 11¶¶01234567890
        413 closed | chunks over the path's limit     | whole   | POST /small HTTP/1.1¶Host: x¶Transfer-Encoding: chunked¶¶6¶abcdef¶6¶abcdef¶0¶¶
        500 closed | a handler that panics            | whole   | GET /panic HTTP/1.1¶Host: x¶¶
    ";
    let spelled = |text: &str| -> String {
        text.replace('¶', "\r\n")
            .replace("{headers}", &"X: y\r\n".repeat(17))
            .replace("{trailers}", &"A: b\r\n".repeat(1000))
            .replace("{long}", &"x".repeat(3000))
            .chars()
            .map(|letter| match letter {
                '␀'..='␟' => char::from((letter as u32 - '␀' as u32) as u8),
                letter => letter,
            })
            .collect()
    };
    for [ends, name, kind, input] in rows(table) {
        let (status, end) = ends.split_once(' ').unwrap();
        let (status, is_kept) = (status.parse::<u16>().unwrap(), end.trim() == "kept");
        let head = match kind {
            "whole" => "",
            "post" => "POST /echo HTTP/1.1¶Host: x¶",
            _ => "POST /echo HTTP/1.1¶Host: x¶Transfer-Encoding: chunked¶¶",
        };
        let input = spelled(&format!("{head}{input}"));
        let mut client = server.connect();
        client.try_send(&input);
        let answer = client.answer();
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        assert_eq!(
            answer.head.contains("\r\nConnection: close\r\n"),
            !is_kept,
            "{name}: {answer:?}"
        );
        if status >= 400 {
            assert!(
                answer.body.starts_with(r#"{"status":"error""#),
                "{name}: {answer:?}"
            );
        }
        match is_kept {
            true => {
                client.send(GET);
                assert_eq!(client.answer().status, 200, "{name}, the next request");
            }
            false => assert!(client.is_closed(), "{name}"),
        }
        if let Some(rest) = input.strip_prefix("GET").filter(|_| status >= 400) {
            let mut client = server.connect();
            client.try_send(format!("HEAD{rest}"));
            assert_eq!(client.answer_to(true).status, status, "HEAD: {name}");
            assert!(is_kept || client.is_closed(), "HEAD with a body: {name}");
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
fn an_absolute_target_replaces_the_host() {
    let request = b"GET http://X:81/a?b HTTP/1.1\r\nHost: y\r\n\r\n";
    let peer = crate::testing::head("GET", "/", &[]).peer;
    let (parsed, length) = parse(request, &Limits::default(), peer).unwrap().unwrap();
    let head = parsed.head;
    assert_eq!((length, head.headers.len()), (request.len(), 1));
    assert_eq!(head.header("host"), Some("x:81"));
    assert_eq!(
        (head.path.as_str(), head.query.as_deref()),
        ("/a", Some("b"))
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
    assert!(get.body.starts_with("GET "));
    // The answer says the method, and HEAD has one letter more.
    let expected = format!("Content-Length: {}", get.body.len() + 1);
    assert_eq!(length(&head.head), Some(expected));
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
        assert!(begun.elapsed() < AT_ONCE);
    }
    String::from_utf8(said).unwrap()
}

#[test]
fn a_streamed_body_that_stands_still_is_cut_long_before_its_deadline() {
    let limits = Limits {
        body_seconds: 1,
        ..limits()
    };
    let server = server(limits);
    let mut client = server.connect();
    let begun = Instant::now();
    client.send("POST /patient HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome");
    assert_eq!(client.answer().status, 408);
    assert!(begun.elapsed() < AT_ONCE);
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
