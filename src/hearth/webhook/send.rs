//! The HTTP part of a callback: its headers and signature.

use std::time::Duration;

use super::post::{Post, Poster};
use super::schedule::Outcome;
use super::signature;
use base::clock::Timestamp;
use config::WebhookAccount;
use store::{Delivery, Durable};

/// Makes one attempt at a delivery to its account. It ends after `limit`:
/// from looking the name up to the head of the answer. `now` becomes the
/// time of the attempt in the headers.
///
/// ```
/// use hearth::webhook::post::Poster;
/// use hearth::webhook::send;
/// use store::{Delivery, Durable};
///
/// fn post(poster: &Poster, account: &config::WebhookAccount, delivery: &Durable<Delivery>) {
///     send::post(poster, account, delivery, std::time::Duration::MAX, delivery.next_at);
/// }
/// ```
///
/// ```compile_fail
/// use hearth::webhook::post::Poster;
/// use hearth::webhook::send;
/// use store::{Delivery, Provisional};
///
/// fn post(poster: &Poster, account: &config::WebhookAccount, delivery: &Provisional<Delivery>) {
///     let now = delivery.clone().uncommitted().next_at;
///     send::post(poster, account, delivery, std::time::Duration::MAX, now);
/// }
/// ```
pub fn post(
    poster: &Poster,
    account: &WebhookAccount,
    delivery: &Durable<Delivery>,
    limit: Duration,
    now: Timestamp,
) -> Outcome {
    let id = delivery.id.to_string();
    let timestamp = signature::unix_seconds(now);
    let sent_at = timestamp.to_string();
    let signed;
    let mut headers = vec![("webhook-id", id.as_str()), ("webhook-timestamp", &sent_at)];
    if let Some(secret) = &account.secret {
        if secret.expose().bytes().any(|byte| byte.is_ascii_control()) {
            return Outcome::Unanswered(format!(
                "the secret of the webhook account {:?} holds characters that a header cannot",
                account.name
            ));
        }
        let secrets = [secret].into_iter().chain(&account.secret_previous);
        signed = signature::sign(secrets, &id, timestamp, &delivery.body);
        headers.push(("x-service-secret", secret.expose()));
        headers.push(("webhook-signature", &signed));
    }
    let post = Post {
        setting: "outgoing_url",
        url: &account.outgoing_url,
        media_type: "application/json",
        headers: &headers,
        body: delivery.body.as_bytes(),
    };
    poster.post(&post, limit, now)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::webhook::testing::{account, delivery, receiver};
    use base::secret::Secret;
    use net::tls::Trust;

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

    /// Posts an empty object.
    fn post(account: &WebhookAccount) -> Outcome {
        let poster = Poster::new(Trust::default());
        super::post(&poster, account, &delivery("{}"), DEADLINE, now())
    }

    #[test]
    fn a_callback_is_signed_and_carries_the_secret() {
        let (server, url) = receiver(&[OK]);
        let secret = Secret::new("s3cret");
        let account = account(Some(secret.clone()), &url);
        let body = r#"{"message":"Grüße","conversation_id":"a"}"#;
        let poster = Poster::new(Trust::default());
        let outcome = super::post(&poster, &account, &delivery(body), DEADLINE, now());
        assert_eq!(status(&outcome), Some(200));
        let received = &server.heard()[0];
        assert!((received.head).starts_with("POST /callback?key=k HTTP/1.1\r\n"));
        assert_eq!(received.body, body.as_bytes());
        let signature = signature::sign([&secret], "dlv_0000000000001", 1_800_000_000, body);
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
            let outcome = super::post(&poster, &account, &delivery("{}"), DEADLINE, now());
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
        let delivery = delivery("{}");
        let outcome = super::post(&poster, &account(None, &url), &delivery, short, now());
        assert_eq!(
            outcome,
            Outcome::Unanswered("no answer within 0 s".to_owned())
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
            assert!(reason.contains(says), "{url}: {reason}");
            assert!(!reason.contains("k3y"), "{reason}");
        }
    }
}
