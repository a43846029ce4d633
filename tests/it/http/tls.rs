//! TLS on the server's ports, over real sockets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock::Clock;
use hearth::server::{Options, Server};
use rustls::crypto::ring;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use serde_json::{Value, json};
use tungstenite::Message;

use support::AT_ONCE;
use support::home::{Home, TemporaryDirectory};
use support::http;
use support::socket::{connect, exchange};
use support::tls::{Identity, get, secure};

fn merged(mut config: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

#[test]
fn https_is_served_with_both_versions() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    assert!(home.server().is_secure());
    let version = |version: &'static SupportedProtocolVersion| {
        let mut roots = RootCertStore::empty();
        for certificate in net::tls::load_certificates(&identity.certificate).unwrap() {
            roots.add(certificate).unwrap();
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    };
    for (asked, spoken) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let config = version(asked);
        // The second time it is resumed with a ticket.
        for _ in 0..2 {
            let mut stream = secure(home.address(), Arc::clone(&config));
            for _ in 0..2 {
                stream
                    .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    .unwrap();
                let mut answer = [0; 4096];
                let count = stream.read(&mut answer).unwrap();
                let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
                assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            }
            assert_eq!(stream.conn.protocol_version(), Some(spoken));
            assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        }
    }
}

#[test]
fn a_websocket_and_json_lines_chat_over_tls() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let config = identity.trust().client_config().unwrap();
    let requests = [
        json!({ "type": "auth", "token": home.tokens.user }),
        json!({ "type": "chat", "message": "hello" }),
    ];
    let check = |answers: [Value; 2]| {
        assert_eq!(answers[0]["data"]["authenticated"], true, "{answers:?}");
        let text = answers[1]["data"]["response"].as_str().unwrap();
        assert!(text.starts_with("Hello!"), "{text}");
    };

    let stream = secure(home.address(), Arc::clone(&config));
    let url = format!("wss://localhost:{}/ws", home.address().port());
    let (mut websocket, _) = tungstenite::client(url, stream).unwrap();
    check(requests.each_ref().map(|request| {
        websocket.send(Message::text(request.to_string())).unwrap();
        serde_json::from_str(websocket.read().unwrap().to_text().unwrap()).unwrap()
    }));
    // Larger than a record, in one message.
    let long = json!({ "type": "chat", "message": "x".repeat(60_000) });
    websocket.send(Message::text(long.to_string())).unwrap();
    let answer: Value = serde_json::from_str(websocket.read().unwrap().to_text().unwrap()).unwrap();
    assert_eq!(answer["status"], "ok");

    let mut lines = BufReader::new(secure(home.address(), config));
    check(requests.each_ref().map(|request| {
        lines
            .get_mut()
            .write_all(format!("{request}\n").as_bytes())
            .unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }));
    // The end that TLS announces is an end: what was asked is still answered.
    let health = "{\"type\":\"list_memories\"}\n";
    lines.get_mut().write_all(health.as_bytes()).unwrap();
    lines.get_mut().conn.send_close_notify();
    lines.get_mut().flush().unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"memories\""), "{rest}");
}

/// The status and body of the answer to a request over TLS.
fn answer_to(home: &Home, identity: &Identity, head: &str, body: &[u8]) -> (String, Vec<u8>) {
    let config = identity.trust().client_config().unwrap();
    let mut stream = secure(home.address(), config);
    let length = body.len();
    let head = format!(
        "{head}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let body = answer.split_off(end.unwrap() + 4);
    (String::from_utf8(answer).unwrap(), body)
}

#[test]
fn links_and_files_work_over_tls() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let url = format!("wss://localhost:{}/ws", home.address().port());
    let stream = secure(home.address(), identity.trust().client_config().unwrap());
    let (mut admin, _) = tungstenite::client(url, stream).unwrap();
    let mut ask = |request: Value| {
        admin.send(Message::text(request.to_string())).unwrap();
        let answer = admin.read().unwrap();
        let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
        assert_eq!(answer["status"], "ok", "{answer}");
        answer["data"].clone()
    };
    ask(json!({ "type": "auth", "token": home.tokens.admin }));

    // The link of an invitation, then that of a new password.
    let page = format!("https://localhost:{}/", home.address().port());
    let mut token = String::new();
    for (command, password) in [
        ("invite_user", "correct horse"),
        ("reset_password", "another horse"),
    ] {
        let made = ask(json!({ "type": command, "name": "grace", "url": page }));
        let link = made["link"].as_str().unwrap();
        let secret = link.strip_prefix(&format!("{page}#invite=")).expect(link);
        let body = json!({ "invitation": secret, "password": password }).to_string();
        let head = "POST /auth HTTP/1.1\r\nContent-Type: application/json";
        let (answer, body) = answer_to(&home, &identity, head, body.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let signed_in: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(signed_in["data"]["user"], "grace");
        token = signed_in["data"]["token"].as_str().unwrap().to_owned();
    }

    // Larger than many records, and at the link that the answer names.
    let file: Vec<u8> = (0..700_001_u32)
        .map(|place| (place * 7 / 3) as u8)
        .collect();
    let head = format!("POST /attachments HTTP/1.1\r\nAuthorization: Bearer {token}");
    let (answer, _) = answer_to(&home, &identity, &head, &file);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let location = answer
        .lines()
        .find_map(|line| line.strip_prefix("Location: "));
    // It is relative to the address of the request.
    let path = format!("/{}", location.expect(&answer));
    for (token, status) in [
        (token.as_str(), 200),
        (&home.tokens.user, 404),
        ("wrong", 401),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}");
        let (answer, body) = answer_to(&home, &identity, &head, b"");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert_eq!(body == file, status == 200);
    }
}

#[test]
fn who_does_not_speak_tls_is_told() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let answer = http::get(home.address(), "/health?verbose=1");
    assert_eq!(answer.status, 308);
    let location = format!("https://{}/health?verbose=1", home.address());
    assert_eq!(answer.header("location"), Some(location.as_str()));

    let head = b"HEAD / HTTP/1.1\r\nHost: pi.local\r\n\r\n";
    let mut socket = connect(home.address());
    socket.write_all(head).unwrap();
    let mut text = vec![0; 1024];
    let count = socket.read(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text[..count]).into_owned();
    assert!(text.contains("Location: https://pi.local/\r\n"), "{text}");

    let answer = http::post(home.address(), "/auth", &[], &json!({ "username": "a" }));
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["code"], "invalid_request");
    assert!(answer.body.contains("this port speaks TLS; use https://"));

    let line = exchange(home.address(), b"{\"type\":\"auth\",\"token\":\"x\"}\n");
    let line: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(line["code"], "invalid_request");
    assert!(line["error"].as_str().unwrap().contains("speaks TLS"));
}

#[test]
fn the_port_of_webhooks_alone_speaks_tls_too() {
    let identity = Identity::new();
    let port = support::program::free_port();
    let channels = json!({ "channels": [
        { "type": "tcp", "port": 0 },
        { "type": "webhook", "port": port, "accounts": { "ci": {
            "incoming_path": "/hook", "outgoing_url": "http://127.0.0.1:9/" } } },
    ] });
    let home = Home::start(merged(identity.config(), channels));
    let address = home.server().addrs()[1];
    let answer = get(address, "/hook", &identity.trust()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert_eq!(http::get(address, "/hook").status, 308);
    let line = exchange(address, b"{\"type\":\"auth\"}\r\n\r\n");
    let text = String::from_utf8_lossy(&line);
    assert!(
        text.starts_with("HTTP/1.1 400"),
        "no JSON lines here: {text}"
    );
}

#[test]
fn a_certificate_that_is_replaced_is_shown_to_the_next_connection() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let before = fs::read_to_string(&identity.certificate).unwrap();
    let kept = identity.trust().client_config().unwrap();
    let mut open = secure(home.address(), Arc::clone(&kept));
    open.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(open.read(&mut [0; 4096]).unwrap() > 0);

    // A broken one is not taken: the one that was read before stays.
    identity.replace(&identity.certificate, "nonsense");
    let mut again = secure(home.address(), kept);
    again
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(again.read(&mut [0; 4096]).unwrap() > 0);

    identity.renew();
    assert_ne!(fs::read_to_string(&identity.certificate).unwrap(), before);
    let answer = get(home.address(), "/health", &identity.trust()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Who was there before is not disturbed.
    open.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    assert!(open.read(&mut [0; 4096]).unwrap() > 0);
}

#[test]
fn a_server_does_not_start_with_a_key_that_does_not_fit() {
    let (ours, other) = (Identity::new(), Identity::new());
    for (config, parts) in [
        (
            json!({ "cert": ours.certificate, "key": other.key }),
            vec![&ours.certificate, &other.key],
        ),
        (
            json!({ "cert": ours.key, "key": ours.key }),
            vec![&ours.key],
        ),
        (
            json!({ "cert": ours.certificate, "key": ours.certificate }),
            vec![&ours.certificate],
        ),
    ] {
        let folder = TemporaryDirectory::new();
        support::home::write_config(folder.path(), json!({ "tls": config }));
        let started = Server::start(Options {
            data_dir: folder.path().to_owned(),
            bind: Some("127.0.0.1".parse().unwrap()),
            port: Some(0),
            clock: Clock::system(),
        });
        let error = started.err().unwrap().to_string();
        for path in parts {
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
    }
}

#[test]
fn a_stalled_or_senseless_handshake_costs_only_itself() {
    let identity = Identity::new();
    let limits = json!({ "limits": { "head_seconds": 1 } });
    let home = Home::start(merged(identity.config(), limits));
    // Half a handshake, a record that announces more than there may be, one
    // that says nothing, a drip, and nothing at all.
    let mut stalled: Vec<_> = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x00",
        b"\x16",
        b"",
    ]
    .iter()
    .map(|sent| {
        let mut socket = connect(home.address());
        socket.write_all(sent).unwrap();
        socket
    })
    .collect();
    // Others are served meanwhile.
    let answer = get(home.address(), "/health", &identity.trust()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for socket in &mut stalled {
        let mut rest = Vec::new();
        // Closed or reset, but not left open.
        let ended = socket.read_to_end(&mut rest);
        if let Err(error) = ended {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    }
    // Bytes that come one by one do not extend the time: these would take minutes.
    let begun = Instant::now();
    let mut drip = connect(home.address());
    let mut bytes = [0x16, 3, 1, 0x40, 0, 1].into_iter().chain([0; 16 * 1024]);
    let is_cut = bytes.any(|byte| {
        std::thread::park_timeout(Duration::from_millis(20));
        drip.write_all(&[byte]).is_err()
    });
    assert!(is_cut && begun.elapsed() < AT_ONCE);

    for garbage in [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"\x16\x16\x16\x16\x16\x16",
    ] {
        let answer = exchange(home.address(), garbage);
        // An alert, if anything.
        assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
    }
    let answer = get(home.address(), "/health", &identity.trust()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn connections_beyond_the_limits_are_refused_with_an_alert() {
    let identity = Identity::new();
    let limits = json!({ "limits": { "connections": 1 } });
    let home = Home::start(merged(identity.config(), limits));
    let mut first = secure(home.address(), identity.trust().client_config().unwrap());
    let auth = json!({ "type": "auth", "token": home.tokens.user });
    first.write_all(format!("{auth}\n").as_bytes()).unwrap();
    assert!(first.read(&mut [0; 4096]).unwrap() > 0);
    let error = get(home.address(), "/health", &identity.trust()).unwrap_err();
    assert!(error.to_string().contains("InternalError"), "{error}");
}

#[test]
fn what_is_written_depends_on_how_it_is_reached() {
    let identity = Identity::new();
    let home = Home::start(identity.config());
    let body = json!({
        "machine_name": "kitchen",
        "public_key": "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",
    })
    .to_string();
    let mut stream = secure(home.address(), identity.trust().client_config().unwrap());
    let request = format!(
        "POST /ws/register HTTP/1.1\r\nHost: localhost:5000\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        home.tokens.admin,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains("\"relay_url\":\"wss://localhost:5000/ws?"),
        "{answer}"
    );
}
