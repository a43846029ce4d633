//! Https with the authority of the household, beside plain http, over real sockets.

use std::fs;
use std::io::ErrorKind::WouldBlock;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory};
use support::program::finish;
use support::socket::{connect, exchange};
use support::tls::{NAMES, get, household, secure};
use support::{client::Client, eventually, http};

/// A day, for the clock.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How soon somebody is served while others stall.
const SOON: Duration = Duration::from_secs(2);

/// A home with a webhook account on a port of its own, too.
fn home() -> Home {
    let hooks = json!({ "type": "webhook", "port": support::program::free_port(), "accounts": {
        "ci": { "incoming_path": "/hook", "outgoing_url": "http://127.0.0.1:9/" } } });
    Home::start(json!({ "channels": [{ "type": "tcp", "port": 0 }, hooks] }))
}

/// Whether an HTTP answer that came over TLS begins so.
fn is_ok(answer: std::io::Result<String>) -> bool {
    answer.unwrap().starts_with("HTTP/1.1 200")
}

#[test]
fn one_port_serves_plain_clients_beside_tls_and_a_bad_one_disturbs_nobody() {
    let mut home = home();
    let trust = household(&mut home, false);
    let address = home.address();
    // A client of the contract that is there before anything goes wrong.
    let mut bystander = home.websocket(&home.tokens.user);
    let mut lines = Client::lines(address);
    lines.authenticate(&home.tokens.user);
    let mut safe = secure(address, trust.client_config().unwrap());
    let health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut ask_safely = || {
        safe.write_all(health).unwrap();
        assert!(safe.read(&mut [0; 4096]).unwrap() > 0);
    };
    ask_safely();

    // Half a handshake, a record without end, and nothing at all, each several times.
    let stalled: Vec<_> = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\x16\x03\x01\xff\xff",
        b"",
    ]
    .iter()
    .cycle()
    .take(9)
    .map(|sent| {
        let mut socket = connect(address);
        socket.write_all(sent).unwrap();
        socket
    })
    .collect();
    let times = [(); 3].map(|()| {
        let began = Instant::now();
        for client in [&mut bystander, &mut lines] {
            let answer = client.ask(json!({ "type": "chat", "message": "hello" }));
            assert!(answer["response"].is_string(), "{answer}");
        }
        ask_safely();
        assert_eq!(http::get(address, "/health").status, 200);
        assert!(is_ok(get(address, "/health", &trust)));
        began.elapsed()
    });
    // The machine may be busy, but what is stuck would delay all of them.
    assert!(times.iter().any(|time| *time < SOON), "{times:?}");
    drop(stalled);
    // Broken handshakes end by themselves.
    let answer = exchange(address, b"\x16\x03\x01\x00\x05hello");
    assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");

    // The port of webhooks alone, and signing in.
    let hooks = home.server().addrs()[1];
    for path in ["/health", "/hook"] {
        let status = if path == "/hook" { 405 } else { 200 };
        assert_eq!(http::get(hooks, path).status, status);
        let answer = get(hooks, path, &trust).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    let message = json!({ "message": "hello", "sender": "ci", "conversation_id": "c" });
    let posted = http::post(hooks, "/hook", &[], &message);
    assert!(posted.status < 300, "{posted:?}");
}

#[test]
fn over_a_limit_each_client_is_refused_in_its_own_words() {
    let limits = json!({ "limits": { "unauthenticated_per_address": 1 } });
    let mut home = Home::start(limits);
    let trust = household(&mut home, false);
    // It says nothing, and keeps the only place, once the connection of before has left it.
    let _silent = eventually("a silent client has the only place", || {
        let silent = connect(home.address());
        let is_refused = http::get(home.address(), "/health").status == 503;
        silent.set_nonblocking(true).unwrap();
        let is_open = silent
            .peek(&mut [0])
            .is_err_and(|error| error.kind() == WouldBlock);
        (is_refused && is_open).then_some(silent)
    });
    let line = exchange(home.address(), b"{\"type\":\"auth\",\"token\":\"x\"}\n");
    let line: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(line["status"], "error", "{line}");
    let error = get(home.address(), "/health", &trust).unwrap_err();
    assert!(error.to_string().contains("InternalError"), "{error}");
}

#[test]
fn with_tls_only_nothing_is_served_without() {
    let mut home = Home::offline();
    let trust = household(&mut home, true);
    assert!(is_ok(get(home.address(), "/health", &trust)));
    assert!(is_ok(get(home.address(), "/trust", &trust)));
    assert_eq!(http::get(home.address(), "/trust").status, 308);
    let line = exchange(home.address(), b"{\"type\":\"auth\",\"token\":\"x\"}\n");
    assert!(String::from_utf8_lossy(&line).contains("speaks TLS"));
}

#[test]
fn the_page_of_trust_shows_the_authority_and_gives_it_away_without_its_key() {
    let mut home = Home::offline();
    assert_eq!(http::get(home.address(), "/trust").status, 404);
    let trust = household(&mut home, false);
    let folder = home.folder.path().to_owned();
    let der = net::tls::load_certificates(&folder.join("authority.pem")).unwrap();
    let print = net::tls::fingerprint(&der[0]);

    let page = http::get(home.address(), "/trust");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let shown = page.body.replace('\n', ":");
    assert!(shown.contains(&print), "{shown}");
    for part in [
        "iPhone",
        "Android",
        "Windows",
        "Mac",
        "Firefox",
        "<svg",
        "Hearth at pi (",
    ] {
        assert!(page.body.contains(part), "{part}");
    }
    assert!(
        !page.body.contains("<script") && !page.body.contains("trust."),
        "{shown}"
    );
    let link = format!("href=\"https://pi.local:{}/\"", home.address().port());
    assert!(page.body.contains(&link), "{link}");
    assert!(is_ok(get(home.address(), "/trust", &trust)));

    let file = http::get(home.address(), "/trust/hearth-authority.pem");
    assert_eq!(
        file.body,
        fs::read_to_string(folder.join("authority.pem")).unwrap()
    );
    let answer = exchange(
        home.address(),
        b"GET /trust/hearth-authority.crt HTTP/1.1\r\nHost: pi.local\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.ends_with(&der[0]));
    let head = String::from_utf8_lossy(&answer[..answer.len() - der[0].len()]).into_owned();
    assert!(
        head.contains("Content-Type: application/x-x509-ca-cert\r\n"),
        "{head}"
    );
    for path in [
        "authority.key.pem",
        "hearth-authority.key",
        "",
        "../authority.key.pem",
    ] {
        let answer = http::get(home.address(), &format!("/trust/{path}"));
        assert_eq!(answer.status, 404, "{path}");
    }
    // A page of elsewhere does not learn the names and addresses of this home.
    let foreign = b"GET /trust HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let answer = exchange(home.address(), foreign);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        !answer.contains("192.168.1.7") && answer.contains("allowed_hosts"),
        "{answer}"
    );

    let info = home.admin().ask(json!({ "type": "server_info" }));
    assert_eq!(info["authority"], json!(print));
}

#[test]
fn the_running_server_renews_its_certificate_and_keeps_its_connections() {
    let mut home = Home::offline();
    let trust = household(&mut home, false);
    let file = home.folder.path().join("household.pem");
    let before = fs::read(&file).unwrap();
    let mut open = secure(home.address(), trust.client_config().unwrap());
    let health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    open.write_all(health).unwrap();
    assert!(open.read(&mut [0; 4096]).unwrap() > 0);
    let shown = open.conn.peer_certificates().unwrap()[0].to_vec();

    home.server().advance_clock(DAY * 300);
    let looked = home.server().last_tick();
    eventually("the next round", || {
        (home.server().last_tick() > looked).then_some(())
    });
    assert_eq!(fs::read(&file).unwrap(), before);
    home.server().advance_clock(DAY * 70);
    eventually("a new certificate", || {
        (fs::read(&file).unwrap() != before).then_some(())
    });
    // The new one begins in the future of this test, so that only its own file vouches for it.
    let pinned = net::tls::Trust::pinned(&file);
    let mut next = eventually("the new certificate is shown", || {
        let mut next = secure(home.address(), pinned.client_config().ok()?);
        next.write_all(health).ok()?;
        (next.read(&mut [0; 4096]).ok()? > 0).then_some(next)
    });
    let renewed = next.conn.peer_certificates().unwrap()[0].to_vec();
    assert_ne!(renewed, shown);
    let (old, new) = (
        net::tls::inspect(&shown).unwrap(),
        net::tls::inspect(&renewed).unwrap(),
    );
    assert!(new.until.since(old.until) > DAY * 300 && new.names == old.names);
    assert!(new.until.since(new.from) <= DAY * 397);
    // Who was there is not disturbed.
    for stream in [&mut open, &mut next] {
        stream.write_all(health).unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    }
}

/// Runs openssl in a folder; whether it was content, and what it said.
fn openssl(folder: &Path, arguments: &str) -> (bool, String) {
    let mut command = Command::new("openssl");
    command
        .args(arguments.split_whitespace())
        .current_dir(folder);
    let output = finish(&mut command);
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn openssl_takes_names_of_the_home_and_refuses_all_others_under_this_authority() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl");
        return;
    }
    let folder = TemporaryDirectory::new();
    let path = folder.path();
    let now = base::clock::Clock::system().now();
    net::tls::household::make(path, "pi", &NAMES.map(str::to_owned), now).unwrap();
    net::tls::household::renew(path, now).unwrap();
    let verify = "verify -x509_strict -check_ss_sig -purpose sslserver -CAfile authority.pem";
    for name in NAMES {
        let kind = if name.contains(".local") || name == "localhost" {
            "-verify_hostname"
        } else {
            "-verify_ip"
        };
        let (is_good, said) = openssl(path, &format!("{verify} {kind} {name} household.pem"));
        assert!(is_good, "{name}: {said}");
    }
    let (is_good, said) = openssl(
        path,
        &format!("{verify} -verify_hostname bank.example household.pem"),
    );
    assert!(!is_good && said.contains("ostname mismatch"), "{said}");

    // What a thief of the authority's key could make.
    let (made, said) = openssl(
        path,
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout forged.key -out forged.csr -subj /O=forged",
    );
    assert!(made, "{said}");
    let forge = |issuer: &str, subject: &str, extensions: &str, out: &str| {
        fs::write(path.join("extensions"), extensions).unwrap();
        let request = format!("req -new -key forged.key -out forged.csr -subj {subject}");
        let (made, said) = openssl(path, &request);
        assert!(made, "{said}");
        let signed =
            format!("x509 -req -in forged.csr {issuer} -days 30 -extfile extensions -out {out}");
        let (made, said) = openssl(path, &signed);
        assert!(made, "{extensions}: {said}");
    };
    let ours = "-CA authority.pem -CAkey authority.key.pem";
    let plain = "verify -CAfile authority.pem";
    // (subject, subjectAltName, what is said; none where it is taken)
    let violation = Some("permitted subtree violation");
    for (subject, names, wrong) in [
        ("/O=a", "DNS:pi.local", None),
        (
            "/O=a",
            "DNS:kitchen.pi.local,IP:192.168.1.7,IP:fd00::7",
            None,
        ),
        ("/O=a", "DNS:bank.example", violation),
        ("/O=a", "DNS:pi.local,DNS:bank.example", violation),
        ("/O=a", "DNS:local", violation),
        ("/O=a", "DNS:xpi.local", violation),
        ("/O=a", "DNS:pi.local.bank.example", violation),
        ("/O=a", "IP:192.168.1.8", violation),
        ("/O=a", "IP:203.0.113.7", violation),
        ("/O=a", "IP:fd00::8", violation),
        ("/O=a", "IP:2001:db8::7", violation),
        ("/O=a", "email:me@bank.example", violation),
        ("/O=a", "email:me@pi.local", violation),
        ("/O=a", "URI:https://bank.example/", violation),
        ("/O=a", "URI:https://pi.local/", violation),
        ("/CN=bank.example", "", violation),
        ("/emailAddress=me@bank.example", "DNS:pi.local", violation),
    ] {
        let extensions = match names {
            "" => "basicConstraints=CA:FALSE".to_owned(),
            names => format!("subjectAltName={names}"),
        };
        forge(ours, subject, &extensions, "forged.pem");
        let (is_good, said) = openssl(path, &format!("{plain} forged.pem"));
        match wrong {
            None => assert!(is_good, "{names}: {said}"),
            Some(wrong) => assert!(
                !is_good && said.contains(wrong),
                "{subject} {names}: {said}"
            ),
        }
    }
    // An authority below it counts for nothing, and neither does another use.
    forge(
        ours,
        "/O=below",
        "basicConstraints=critical,CA:TRUE",
        "below.pem",
    );
    let below = "-CA below.pem -CAkey forged.key";
    forge(below, "/O=a", "subjectAltName=DNS:pi.local", "forged.pem");
    let (is_good, said) = openssl(path, &format!("{plain} -untrusted below.pem forged.pem"));
    assert!(!is_good && said.contains("path length"), "{said}");
    forge(
        ours,
        "/O=a",
        "extendedKeyUsage=emailProtection\nsubjectAltName=DNS:pi.local",
        "mail.pem",
    );
    for purpose in ["smimesign", "sslclient"] {
        let (is_good, said) = openssl(path, &format!("{plain} -purpose {purpose} mail.pem"));
        assert!(!is_good, "{purpose}: {said}");
    }
}
