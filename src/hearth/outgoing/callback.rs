//! The request of a callback, signed as Standard Webhooks requires
//! (<https://github.com/standard-webhooks/standard-webhooks>, "Signature scheme").

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::post::Request;
use base::clock::Timestamp;
use base::secret::{Secret, hmac_sha256};
use config::WebhookAccount;
use store::{Callback, Durable};

/// The request that sends a callback to its account. `now` becomes the time of the attempt
/// in the headers.
///
/// ```
/// use hearth::outgoing::callback;
/// use store::{Callback, Durable};
///
/// fn send(account: &config::WebhookAccount, due: &Durable<Callback>) {
///     callback::request(account, due, due.delivery.next_at);
/// }
/// ```
///
/// ```compile_fail
/// use hearth::outgoing::callback;
/// use store::{Callback, Provisional};
///
/// fn send(account: &config::WebhookAccount, due: &Provisional<Callback>) {
///     let now = due.clone().uncommitted().delivery.next_at;
///     callback::request(account, due, now);
/// }
/// ```
pub fn request(account: &WebhookAccount, due: &Durable<Callback>, now: Timestamp) -> Request {
    let id = due.delivery.id.to_string();
    let timestamp = unix_seconds(now);
    let mut headers = vec![
        ("webhook-id", id.clone()),
        ("webhook-timestamp", timestamp.to_string()),
    ];
    if let Some(secret) = &account.secret {
        let secrets = [secret].into_iter().chain(&account.secret_previous);
        let signed = sign(secrets, &id, timestamp, &due.body);
        headers.push(("x-service-secret", secret.expose().to_owned()));
        headers.push(("webhook-signature", signed));
    }
    Request {
        setting: "outgoing_url",
        url: account.outgoing_url.clone(),
        media_type: "application/json".to_owned(),
        headers,
        body: due.body.clone().into_bytes(),
    }
}

/// What a secret in the standard's own form begins with; base64 follows.
const PREFIX: &str = "whsec_";

/// The value of `webhook-timestamp`: seconds since 1970.
pub fn unix_seconds(now: Timestamp) -> i64 {
    now.as_millis().div_euclid(1000)
}

/// The value of `webhook-signature`: for each secret, `v1,` and the base64 of
/// the HMAC-SHA256 of `id.timestamp.body`. There are two secrets while one replaces
/// the other. `timestamp` is in seconds since 1970.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    id: &str,
    timestamp: i64,
    body: &str,
) -> String {
    let signed = format!("{id}.{timestamp}.{body}");
    let signatures: Vec<String> = secrets
        .into_iter()
        .map(|secret| {
            let tag = hmac_sha256(&key(secret), signed.as_bytes());
            format!("v1,{}", STANDARD.encode(tag))
        })
        .collect();
    signatures.join(" ")
}

/// The key of a secret: its decoded base64 if it has the standard's own form, else
/// the bytes of its text.
fn key(secret: &Secret) -> Vec<u8> {
    let text = secret.expose();
    text.strip_prefix(PREFIX)
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    use crate::outgoing::post::Poster;
    use crate::outgoing::schedule::Outcome;
    use base::ids::{ConversationId, DeliveryId, TurnId};
    use base::language::Said;
    use base::people::Audience;
    use base::testing::rows;
    use config::WebhookFormat;
    use net::http_client::test_server::{Act, TestServer};
    use net::tls::Trust;
    use store::{Delivery, DeliveryState, Readers};

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    const DEADLINE: Duration = Duration::from_secs(15);

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_999)
    }

    fn status(outcome: &Outcome) -> Option<u16> {
        match outcome {
            Outcome::Answered { status, .. } => Some(*status),
            Outcome::Unanswered(_) => None,
        }
    }

    /// An account `door` that posts to `outgoing_url`.
    pub fn account(secret: Option<Secret>, outgoing_url: &str) -> WebhookAccount {
        WebhookAccount {
            name: "door".to_owned(),
            incoming_path: "/hook".to_owned(),
            outgoing_url: outgoing_url.to_owned(),
            secret,
            accept: vec![WebhookFormat::Json],
            model: None,
            permission_mode: None,
            tools: None,
            secret_previous: None,
            timeout_seconds: None,
            max_attempts: 10,
            enabled: true,
            tool_permissions: BTreeMap::new(),
            audience: Audience::Household,
            trusted: false,
            map: None,
            when: BTreeMap::new(),
        }
    }

    /// A delivery `dlv_0000000000001` of this body that was not attempted yet.
    fn delivery(body: &str) -> Durable<Callback> {
        let delivery = Delivery {
            id: DeliveryId::from(1),
            turn_id: TurnId::from(1),
            conversation_id: ConversationId::from(1),
            readers: Readers::Household,
            account: "door".to_owned(),
            state: DeliveryState::Pending,
            attempts: 0,
            created_at: Timestamp::from_millis(0),
            next_at: Timestamp::from_millis(0),
            last_error: None,
        };
        Durable::for_test(Callback {
            delivery,
            body: body.to_owned(),
        })
    }

    /// A receiver that answers each request with the next of these texts. An empty text
    /// closes the connection without an answer.
    fn receiver(answers: &[&str]) -> (TestServer, String) {
        let script = |text: &&str| {
            if text.is_empty() {
                vec![Act::Close]
            } else {
                vec![Act::Send(text.as_bytes().to_vec())]
            }
        };
        let server = TestServer::new(answers.iter().map(script).collect());
        let url = format!("http://{}/callback?key=k", server.address);
        (server, url)
    }

    fn post_by(poster: &Poster, account: &WebhookAccount, body: &str, limit: Duration) -> Outcome {
        poster.post(&request(account, &delivery(body), now()), limit, now())
    }

    /// Posts an empty object.
    fn post(account: &WebhookAccount) -> Outcome {
        post_by(&Poster::new(Trust::default()), account, "{}", DEADLINE)
    }

    #[test]
    fn a_callback_is_signed_and_carries_the_secret() {
        let (server, url) = receiver(&[OK]);
        let secret = Secret::new("s3cret");
        let account = account(Some(secret.clone()), &url);
        let body = r#"{"message":"Grüße","conversation_id":"a"}"#;
        let poster = Poster::new(Trust::default());
        let outcome = post_by(&poster, &account, body, DEADLINE);
        assert_eq!(status(&outcome), Some(200));
        let received = &server.heard()[0];
        assert!((received.head).starts_with("POST /callback?key=k HTTP/1.1\r\n"));
        assert_eq!(received.body, body.as_bytes());
        let signature = sign([&secret], "dlv_0000000000001", 1_800_000_000, body);
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-service-secret", "s3cret"),
            ("webhook-id", "dlv_0000000000001"),
            ("webhook-timestamp", "1800000000"),
            ("webhook-signature", signature.as_str()),
            ("user-agent", concat!("hearth/", env!("CARGO_PKG_VERSION"))),
        ] {
            assert_eq!(received.header(name), Some(value), "{name}");
        }
    }

    #[test]
    fn without_a_secret_there_is_nothing_to_sign_with() {
        let (server, url) = receiver(&[OK]);
        post(&account(None, &url));
        let received = &server.heard()[0];
        assert_eq!(received.header("webhook-id"), Some("dlv_0000000000001"));
        assert_eq!(received.header("webhook-timestamp"), Some("1800000000"));
        assert_eq!(received.header("x-service-secret"), None);
        assert_eq!(received.header("webhook-signature"), None);
    }

    #[test]
    fn one_connection_serves_many_callbacks() {
        let (server, url) = receiver(&[OK, OK, OK]);
        let account = account(None, &url);
        let poster = Poster::new(Trust::default());
        for _ in 0..3 {
            let outcome = post_by(&poster, &account, "{}", DEADLINE);
            assert_eq!(status(&outcome), Some(200));
        }
        let connections: Vec<_> = server.heard().iter().map(|got| got.connection).collect();
        assert_eq!(connections, [0, 0, 0]);
    }

    #[test]
    fn a_redirect_is_an_answer_and_is_not_followed() {
        let (elsewhere, elsewhere_url) = receiver(&[]);
        let moved = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere_url}\r\nContent-Length: 0\r\n\r\n",
        );
        let (server, url) = receiver(&[&moved]);
        let outcome = post(&account(None, &url));
        assert_eq!(status(&outcome), Some(307));
        assert_eq!(server.heard().len(), 1);
        assert!(elsewhere.heard().is_empty());
    }

    #[test]
    fn retry_after_is_read() {
        for (value, seconds) in [
            ("60", Some(60)),
            ("Fri, 15 Jan 2027 08:02:00 GMT", Some(119)),
            ("soon", None),
        ] {
            let busy =
                format!("HTTP/1.1 503 Busy\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n");
            let (_server, url) = receiver(&[&busy]);
            let outcome = post(&account(None, &url));
            let Outcome::Answered {
                status,
                retry_after,
            } = outcome
            else {
                panic!("{outcome:?}");
            };
            assert_eq!(status, 503);
            assert_eq!(retry_after.map(|delay| delay.as_secs()), seconds, "{value}");
        }
    }

    #[test]
    fn the_body_of_an_answer_changes_nothing() {
        let endless = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n{}",
            "x".repeat(200_000)
        );
        for (answer, expected) in [
            (endless.as_str(), Some(200)),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some(204)),
            (
                "HTTP/1.1 202 Accepted\r\nContent-Length: 50\r\nConnection: close\r\n\r\nshort",
                Some(202),
            ),
            (
                "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
                Some(500),
            ),
            ("this is not HTTP\r\n\r\n", None),
            ("", None),
        ] {
            let (_server, url) = receiver(&[answer]);
            let outcome = post(&account(None, &url));
            assert_eq!(status(&outcome), expected, "{answer:.60} {outcome:?}");
        }
    }

    #[test]
    fn a_receiver_that_drips_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").unwrap();
            // Ends when the sender has hung up: the deadline is absolute, so
            // that bytes which keep coming do not extend it.
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let (poster, short) = (Poster::new(Trust::default()), Duration::from_millis(300));
        let outcome = post_by(&poster, &account(None, &url), "{}", short);
        assert_eq!(
            outcome,
            Outcome::Unanswered(Said::of("delivery.late", &[("seconds", "0")]))
        );
        receiver.join().unwrap();
    }

    #[test]
    fn what_cannot_be_reached_is_said_without_the_address() {
        let free_port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        for (url, secret, says) in [
            (
                format!("http://127.0.0.1:{free_port}/?key=k3y"),
                None,
                "no answer: Connection refused",
            ),
            (
                "http://receiver.invalid/?key=k3y".to_owned(),
                None,
                "no answer: ",
            ),
            ("k3y".to_owned(), None, "not a usable http"),
            (
                "http://127.0.0.1:1/".to_owned(),
                Some(Secret::new("k3y\r\nX: y")),
                "holds characters that a header cannot",
            ),
        ] {
            let outcome = post(&account(secret, &url));
            let Outcome::Unanswered(reason) = outcome else {
                panic!("{outcome:?}");
            };
            let reason = reason.to_string();
            assert!(reason.contains(says), "{url}: {reason}");
            assert!(!reason.contains("k3y"), "{reason}");
        }
    }

    #[test]
    fn signatures_are_those_of_the_standard() {
        // The first is the vector of the standard's own libraries, the others are computed
        // with Python's hmac.
        let table = r#"
            whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw | msg_p5jXN8AQM9LWM0D4loKWxJek | 1614265330 | {"test": 2432232314} | v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
            correct horse battery staple | dlv_0000000000001 | 1800000000 | {"message":"hi","conversation_id":"a"} | v1,huDL1+dEvQV38fsjiEBwpDR5SjKjoo5MnL2hJhYzhRA=
            whsec_not base64! | dlv_0000000000001 | 1800000000 | {} | v1,h3tG0nr6XiCkYjVqae7rjrQKzkk7NNs+vDAwJ+0ryA0=
        "#;
        for [secret, id, timestamp, body, signature] in rows(table) {
            let (secret, timestamp) = (Secret::new(secret), timestamp.parse().unwrap());
            assert_eq!(sign([&secret], id, timestamp, body), signature);
            let both = sign([&Secret::new("new"), &secret], id, timestamp, body);
            assert_eq!(both.split(' ').nth(1), Some(signature));
        }
    }

    #[test]
    fn the_timestamp_is_in_whole_seconds() {
        for (millis, seconds) in [(0, 0), (1_999, 1), (1_614_265_330_000, 1_614_265_330)] {
            assert_eq!(unix_seconds(Timestamp::from_millis(millis)), seconds);
        }
    }
}
