//! The HTTP endpoints of the contract, and who may use them.

use std::time::Duration;

use serde_json::{Value, json};

use support::client::{Client, End};
use support::home::{Home, PASSWORD};
use support::http::{delete, get, post};
use support::socket::exchange;

fn credentials(name: &str, password: &str) -> Value {
    json!({ "username": name, "password": password })
}

#[test]
fn health_is_what_the_contract_says_and_nothing_else() {
    let home = Home::offline();
    let answer = get(home.address(), "/health");
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!(body["status"], "ok");
    assert!(body["uptime_seconds"].is_u64());
    assert_eq!(body.as_object().unwrap().len(), 2);
    assert_eq!(get(home.address(), "/health?verbose=1").status, 200);
}

#[test]
fn signing_in_gives_a_token_that_signing_out_revokes() {
    let home = Home::offline();
    let answer = post(
        home.address(),
        "/auth",
        &[],
        &credentials("Admin", PASSWORD),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer.json()["data"].clone();
    assert_eq!(data["expires_in"], 30 * 24 * 3600);
    let token = data["token"].as_str().unwrap().to_owned();

    let mut client = Client::websocket(home.address());
    let who = client.authenticate(&token);
    assert_eq!(
        (who["user"].as_str(), who["role"].as_str()),
        (Some("admin"), Some("admin"))
    );
    let bearer = format!("Bearer {token}");
    assert_eq!(
        delete(home.address(), "/auth", &[("authorization", &bearer)]).status,
        200
    );
    assert_eq!(
        client.next(),
        Err(End::Code(1008)),
        "the open connection is closed"
    );
    assert_eq!(
        delete(home.address(), "/auth", &[("authorization", &bearer)]).status,
        401
    );
    let mut again = Client::websocket(home.address());
    assert_eq!(
        again.refused(json!({ "type": "auth", "token": token })),
        "invalid_token"
    );
}

#[test]
fn a_wrong_password_and_an_unknown_user_look_alike_and_are_throttled() {
    let home = Home::offline();
    let wrong = post(home.address(), "/auth", &[], &credentials("admin", "wrong"));
    let unknown = post(
        home.address(),
        "/auth",
        &[],
        &credentials("nobody", "wrong"),
    );
    assert_eq!(
        (wrong.status, wrong.json()["code"].as_str()),
        (401, Some("invalid_token"))
    );
    assert_eq!(wrong.body, unknown.body);
    for _ in 0..3 {
        post(home.address(), "/auth", &[], &credentials("admin", "wrong"));
    }
    let throttled = post(
        home.address(),
        "/auth",
        &[],
        &credentials("admin", PASSWORD),
    );
    assert_eq!(
        (throttled.status, throttled.json()["code"].as_str()),
        (429, Some("rate_limited"))
    );
    let wait: u64 = throttled.header("retry-after").unwrap().parse().unwrap();
    home.server().advance_clock(Duration::from_secs(wait));
    assert_eq!(
        post(
            home.address(),
            "/auth",
            &[],
            &credentials("admin", PASSWORD)
        )
        .status,
        200
    );
}

/// A server behind a proxy that it trusts, and the status of a sign-in from an
/// address.
fn proxied(limits: Value) -> Home {
    Home::start(json!({ "trusted_proxies": ["127.0.0.1"], "limits": limits }))
}

fn sign_in(home: &Home, from: &str, name: &str, password: &str) -> u16 {
    let headers = [("x-forwarded-for", from)];
    post(
        home.address(),
        "/auth",
        &headers,
        &credentials(name, password),
    )
    .status
}

#[test]
fn guesses_from_elsewhere_do_not_lock_a_person_out_where_they_signed_in_before() {
    let mut home = proxied(json!({}));
    let (own, other, stranger) = ("192.168.1.7", "192.168.1.8", "192.168.1.66");
    assert_eq!(sign_in(&home, own, "admin", PASSWORD), 200);
    // What is known outlasts a restart; the failures do not.
    home.restart();
    for guess in 0..5 {
        assert_eq!(sign_in(&home, stranger, "Admin", "wrong"), 401, "{guess}");
    }
    assert_eq!(sign_in(&home, stranger, "admin", PASSWORD), 429);
    assert_eq!(sign_in(&home, other, "admin", PASSWORD), 429);
    assert_eq!(sign_in(&home, other, "user", PASSWORD), 200);
    assert_eq!(sign_in(&home, own, "ADMIN", PASSWORD), 200);
    // There, its own failures count.
    for _ in 0..5 {
        assert_eq!(sign_in(&home, own, "admin", "wrong"), 401);
    }
    assert_eq!(sign_in(&home, own, "admin", PASSWORD), 429);
}

#[test]
fn many_guesses_at_once_are_judged_no_more_than_many_in_a_row() {
    let home = proxied(json!({ "unauthenticated_per_address": 64 }));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let guess = || scope.spawn(|| sign_in(&home, "192.168.1.66", "admin", "wrong"));
        let guesses: Vec<_> = (0..52).map(|_| guess()).collect();
        (guesses.into_iter().map(|guess| guess.join().unwrap())).collect()
    });
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    assert_eq!((count(401), count(429)), (5, 47), "{statuses:?}");
}

#[test]
fn a_wait_is_no_longer_because_the_clock_was_set_back() {
    let home = Home::offline();
    let sign_in = |password| {
        let answer = post(
            home.address(),
            "/auth",
            &[],
            &credentials("admin", password),
        );
        (
            answer.status,
            answer.header("retry-after").map(str::to_owned),
        )
    };
    for _ in 0..5 {
        assert_eq!(sign_in("wrong").0, 401);
    }
    home.clock.set_by(-24 * 60 * 60 * 1000);
    let (status, wait) = sign_in(PASSWORD);
    let wait: u64 = wait.unwrap().parse().unwrap();
    assert!(status == 429 && wait <= 15, "{status}: {wait} seconds");
    home.server().advance_clock(Duration::from_secs(wait));
    assert_eq!(sign_in(PASSWORD).0, 200);
}

#[test]
fn a_machine_registers_with_a_token() {
    let home = Home::offline();
    // The public key of RFC 7748 section 6.1, Alice.
    let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let body = json!({ "machine_name": "attic", "public_key": key });
    let register = |token: &str| {
        let bearer = format!("Bearer {token}");
        post(
            home.address(),
            "/ws/register",
            &[("authorization", bearer.as_str())],
            &body,
        )
    };
    let first = register(&home.tokens.user);
    assert_eq!(first.status, 200, "{first:?}");
    let data = first.json()["data"].clone();
    let machine = data["machine_id"].as_str().unwrap();
    assert_eq!(machine.len(), 32);
    assert_eq!(
        data["relay_url"],
        format!("ws://{}/ws?machine_id={machine}", home.address())
    );
    assert_eq!(
        register(&home.tokens.user).json()["data"]["machine_id"],
        machine
    );
    assert_eq!(register(&home.tokens.viewer).status, 403);
    assert_eq!(register("nonsense").status, 401);
    assert_eq!(post(home.address(), "/ws/register", &[], &body).status, 401);
    let bearer = format!("Bearer {}", home.tokens.user);
    let headers = [("authorization", bearer.as_str())];
    for bad in [
        json!({ "machine_name": "", "public_key": key }),
        json!({ "machine_name": "attic", "public_key": "AAAA" }),
        json!({ "machine_name": "attic" }),
    ] {
        assert_eq!(
            post(home.address(), "/ws/register", &headers, &bad).status,
            400,
            "{bad}"
        );
    }
}

#[test]
fn every_refusal_is_an_envelope() {
    let home = Home::offline();
    let host = home.address();
    for (request, status) in [
        (
            format!("GET /nothing HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            404,
        ),
        (
            format!("POST /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"),
            405,
        ),
        (
            format!(
                "POST /auth HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            415,
        ),
        (
            format!(
                "POST /auth HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
            ),
            400,
        ),
        (
            format!(
                "POST /auth HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"
            ),
            413,
        ),
        (
            format!(
                "GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
            ),
            400,
        ),
        ("GET /health HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("complete nonsense\r\n\r\n".to_owned(), 400),
        (format!("GET /ws HTTP/1.1\r\nHost: {host}\r\n\r\n"), 426),
        (
            format!(
                "POST /ws/register HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\r\n"
            ),
            401,
        ),
        // Web pages of elsewhere, and a name that rebinds to us.
        (
            format!("GET /health HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\n\r\n"),
            403,
        ),
        (
            "GET /health HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n"
                .to_owned(),
            403,
        ),
        (
            format!(
                "GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            ),
            403,
        ),
    ] {
        let request = request.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
        let answer = String::from_utf8(exchange(home.address(), request.as_bytes())).unwrap();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{request}\n{answer}");
        let header = match status {
            401 => "WWW-Authenticate",
            405 => "Allow",
            426 => "Upgrade",
            _ => "Content-Type",
        };
        assert!(answer.contains(&format!("\r\n{header}: ")), "{answer}");
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["status"], "error", "{request}");
        assert!(
            body["code"].is_string() && body["error"].is_string(),
            "{request}"
        );
    }
}

#[test]
fn the_home_page_says_where_one_is() {
    let home = Home::offline();
    let page = get(home.address(), "/");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Hearth"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}
