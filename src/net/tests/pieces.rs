//! Bodies that are read and written piece by piece.

use super::support::*;

const GET: &str = "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn a_streamed_body_comes_in_pieces_however_it_is_framed() {
    let server = server(limits());
    let mut client = server.connect();
    let post = |framing: &str, body: &str| {
        format!("POST /streamed HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n{body}")
    };
    let large = "y".repeat(300_000);
    let chunk = |size: usize| format!("{size:x}\r\n{}\r\n", "z".repeat(size));
    let odd: String = [1, 4095, 4096, 4097, 0].map(chunk).concat();
    for (framing, body, says) in [
        (
            "Content-Length: 300000",
            large.as_str(),
            "Some(300000) 74 300000",
        ),
        ("Content-Length: 4096", &large[..4096], "Some(4096) 1 4096"),
        ("Content-Length: 0", "", "Some(0) 0 0"),
        ("Transfer-Encoding: chunked", odd.as_str(), "None 4 12289"),
        ("Transfer-Encoding: chunked", "0\r\n\r\n", "None 0 0"),
    ] {
        client.send(post(framing, body));
        client.send(GET);
        assert_eq!(client.answer().body, says);
        assert_eq!(client.answer().status, 200, "the next request: {says}");
    }
    for (framing, body, status) in [
        ("Content-Length: 300001", "", 413),
        ("Transfer-Encoding: chunked", "493e1\r\n", 413),
        ("Transfer-Encoding: chunked", "x\r\n", 400),
        ("Content-Length: 5", "late", 408),
        ("Transfer-Encoding: chunked", "5\r\nlate", 408),
        // The handler has seen enough: the connection ends behind its answer.
        (
            "Content-Length: 300000",
            &("!".to_owned() + &large[1..]),
            200,
        ),
    ] {
        let mut client = server.connect();
        client.try_send(post(framing, body));
        let answer = client.answer();
        assert_eq!(answer.status, status, "{framing} {body:.9} {answer:?}");
        assert!(answer.head.contains("Connection: close"), "{answer:?}");
        assert!(client.is_closed());
    }
}

#[test]
fn an_answer_in_pieces_has_a_length_and_ends_early_only_with_the_connection() {
    let server = server(limits());
    let mut client = server.connect();
    client.send("HEAD /pieces?10000 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        client
            .answer_to(true)
            .head
            .contains("Content-Length: 10000")
    );
    client.send("GET /pieces?10000 HTTP/1.1\r\nHost: x\r\n\r\n");
    client.send(GET);
    assert_eq!(client.answer().body, "p".repeat(10_000));
    assert_eq!(client.answer().status, 200);
    client.send("GET /pieces?5000 HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until("\r\n\r\n");
    client.read_until(&"p".repeat(5_000));
    assert!(client.is_closed());
}
