//! Against a scripted server on loopback.

use super::test_server::{Act, TestServer, stream_head, whole};
use super::*;

fn get(outbound: &HttpClient, url: &str) -> Result<(u16, Vec<u8>), ClientError> {
    read(outbound, url, |answer| {
        Ok((answer.status(), answer.read_all(10)?))
    })
}

fn read<T>(
    outbound: &HttpClient,
    url: &str,
    take: impl FnOnce(&mut ClientResponse) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let request = ClientRequest {
        method: "GET",
        url,
        headers: &[],
        body: None,
        deadline: Instant::now() + Duration::from_secs(60),
        cancel: &Cancel::default(),
    };
    outbound.exchange(&request, take)
}

#[test]
fn connections_are_kept_and_bodies_are_bounded() {
    let server = TestServer::new(vec![
        whole(200, "", "0123456789"),
        whole(404, "", "none"),
        whole(200, "", "0123456789x"),
        whole(204, "", ""),
    ]);
    let outbound = HttpClient::new();
    let url = server.url();
    assert_eq!(get(&outbound, &url).unwrap().1, b"0123456789");
    assert_eq!(get(&outbound, &url).unwrap(), (404, b"none".to_vec()));
    assert_eq!(get(&outbound, &url), Err(ClientError::TooLarge(10)));
    assert_eq!(get(&outbound, &url).unwrap().0, 204);
    let connections: Vec<usize> = server
        .heard()
        .iter()
        .map(|heard| heard.connection)
        .collect();
    assert_eq!(connections, [0, 0, 0, 1], "a failure ends its connection");
}

#[test]
fn a_compressed_body_is_named_and_its_status_is_read() {
    let gzip = "Content-Encoding: gzip\r\n";
    let server = TestServer::new(vec![
        whole(200, gzip, "\u{1f}"),
        whole(200, "Content-Encoding: identity\r\n", "plain"),
        whole(401, gzip, "\u{1f}"),
    ]);
    let (outbound, url) = (HttpClient::new(), server.url());
    let encoded = ClientError::Encoded("gzip".to_owned());
    let said = "the answer is compressed (gzip) although a plain one was asked for";
    assert_eq!(encoded.to_string(), said);
    assert_eq!(get(&outbound, &url), Err(encoded));
    assert_eq!(get(&outbound, &url).unwrap().1, b"plain");
    assert_eq!(read(&outbound, &url, |answer| Ok(answer.status())), Ok(401));
}

#[test]
fn a_break_on_a_kept_connection_is_told_from_one_on_a_fresh_one() {
    let server = TestServer::new(vec![
        vec![Act::Close],
        whole(200, "", "one"),
        vec![Act::Close],
    ]);
    let outbound = HttpClient::new();
    for expected in [Some(false), None, Some(true)] {
        let found = match get(&outbound, &server.url()) {
            Err(ClientError::Interrupted { stale, .. }) => Some(stale),
            Ok(_) => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn addresses_that_cannot_be_used_are_named() {
    let outbound = HttpClient::new();
    for url in ["", "nowhere", "/path", "ftp://127.0.0.1/x", "http://"] {
        assert!(
            matches!(get(&outbound, url), Err(ClientError::Address(_))),
            "{url:?}"
        );
    }
    let unknown = get(&outbound, "http://no-such-host.invalid/");
    assert!(
        matches!(unknown, Err(ClientError::Unreachable(_))),
        "{unknown:?}"
    );
    // A port that was just free; nobody listens on it now.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let refused = get(&outbound, &url);
    assert!(
        matches!(refused, Err(ClientError::Refused(_))),
        "{refused:?}"
    );
}

#[test]
fn names_are_resolved() {
    let server = TestServer::new(vec![whole(200, "", "one"), whole(200, "", "two")]);
    let port = server.address.rsplit(':').next().unwrap();
    let url = format!("http://localhost:{port}/");
    let outbound = HttpClient::new();
    assert_eq!(get(&outbound, &url).unwrap().1, b"one");
    assert_eq!(get(&outbound, &url).unwrap().1, b"two");
}

#[test]
fn silence_is_told_from_the_deadline() {
    let server = TestServer::new(vec![vec![stream_head(), Act::Hang]]);
    let request = ClientRequest {
        method: "POST",
        url: &server.url(),
        headers: &[("x-test", "1")],
        body: Some(b"{}"),
        deadline: Instant::now() + Duration::from_secs(60),
        cancel: &Cancel::default(),
    };
    let limit = Duration::from_millis(30);
    let result = HttpClient::new().exchange(&request, |answer| {
        answer.limit_silence(limit);
        answer.read_all(10)
    });
    assert_eq!(result, Err(ClientError::Silent(limit)));
    assert!(server.heard()[0].head.contains("x-test: 1\r\n"));
}

#[test]
fn only_so_many_agents_are_kept() {
    let outbound = HttpClient::new();
    for port in 0..2 * IDLE_AGENTS {
        let uri: Uri = format!("http://127.0.0.1:{}/", port + 1).parse().unwrap();
        let connection = outbound.take(&uri).unwrap();
        outbound.put_back(connection);
    }
    let idle = outbound.idle.lock().unwrap();
    assert_eq!(idle.len(), IDLE_AGENTS);
    assert!(idle.iter().all(|connection| connection.used));
    assert!(
        idle.iter()
            .any(|connection| connection.origin.ends_with(":32"))
    );
}

#[test]
fn a_server_without_tls_is_not_trusted_with_a_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        hello
    });
    let result = get(&HttpClient::new(), &url);
    assert!(
        matches!(result, Err(ClientError::Untrusted(_))),
        "{result:?}"
    );
    assert_eq!(
        server.join().unwrap()[0],
        0x16,
        "a TLS handshake and no more"
    );
}

#[test]
fn a_proxy_serves_only_addresses_outside_the_house() {
    let outbound = HttpClient {
        proxy: Some(Proxy::new("http://proxy.example:3128").unwrap()),
        ..HttpClient::new()
    };
    for (url, proxied) in [
        ("http://127.0.0.1:8080/", false),
        ("http://nas.local/", false),
        ("https://api.openai.com/v1", true),
    ] {
        let connection = outbound.take(&url.parse().unwrap()).unwrap();
        assert_eq!(
            connection.agent.config().proxy().is_some(),
            proxied,
            "{url}"
        );
    }
}
