//! The webhook channel: from an accepted POST to its callback.

use std::time::Duration;

use base::clock::Clock;
use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::http::{Answer, post};
use support::model::{Act, Model};
use support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A server with two accounts, `ci` with a secret and `open` without.
fn home(model: &Model, receiver: &Receiver) -> Home {
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "ci": {
                "incoming_path": "/webhook/ci", "outgoing_url": receiver.url(),
                "secret": SECRET, "model": "small-model",
            },
            "open": { "incoming_path": "/webhook/open", "outgoing_url": receiver.url() },
        } },
    ]);
    config["limits"] = json!({ "webhook_burst": 1000 });
    Home::start(config)
}

fn send(home: &Home, headers: &[(&str, &str)], body: Value) -> Answer {
    let mut all = vec![("x-service-secret", SECRET)];
    all.extend(headers);
    post(home.address(), "/webhook/ci", &all, &body)
}

fn accept(home: &Home, body: Value) -> Value {
    let answer = send(home, &[], body);
    assert_eq!(answer.status, 202, "{answer:?}");
    let envelope = answer.json();
    assert_eq!(envelope["status"], "ok");
    envelope["data"].clone()
}

#[test]
fn a_post_is_answered_by_a_signed_callback() {
    let (model, receiver) = (Model::saying("Build is green."), Receiver::start());
    let home = home(&model, &receiver);
    let accepted = accept(&home, json!({ "message": "status?", "user_id": "grace" }));
    let callback = receiver.wait_for(1).remove(0);
    assert_eq!(
        callback.body,
        json!({ "message": "Build is green.", "conversation_id": accepted["conversation_id"] })
    );
    assert!(callback.head.starts_with("POST /callback HTTP/1.1"));
    assert_eq!(callback.header("content-type"), Some("application/json"));
    assert_eq!(callback.header("x-service-secret"), Some(SECRET));
    assert!(callback.header("webhook-id").unwrap().starts_with("dlv_"));
    assert!(
        callback
            .header("webhook-timestamp")
            .unwrap()
            .parse::<i64>()
            .is_ok()
    );
    assert!(
        callback
            .header("webhook-signature")
            .unwrap()
            .starts_with("v1,")
    );
    let request = &model.requests()[0];
    assert_eq!(request["model"], "small-model");
    assert!(request["messages"].to_string().contains("grace"));
}

#[test]
fn a_conversation_id_goes_on_and_without_one_there_is_no_history() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver);
    accept(
        &home,
        json!({ "message": "first", "conversation_id": "build 7" }),
    );
    receiver.wait_for(1);
    accept(
        &home,
        json!({ "message": "second", "conversation_id": "build 7" }),
    );
    let callbacks = receiver.wait_for(2);
    assert_eq!(callbacks[1].body["conversation_id"], "build 7");
    let fresh = accept(&home, json!({ "message": "third" }));
    let callbacks = receiver.wait_for(3);
    assert_eq!(
        callbacks[2].body["conversation_id"],
        fresh["conversation_id"]
    );
    // The id that we made works as well.
    accept(
        &home,
        json!({ "message": "fourth", "conversation_id": fresh["conversation_id"] }),
    );
    receiver.wait_for(4);
    let counts: Vec<usize> = model
        .requests()
        .iter()
        .map(|request| request["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts, [2, 4, 2, 4]);
}

#[test]
fn a_name_is_the_accounts_own() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver);
    accept(
        &home,
        json!({ "message": "mine", "conversation_id": "shared" }),
    );
    receiver.wait_for(1);
    let body = json!({ "message": "yours", "conversation_id": "shared" });
    assert_eq!(
        post(home.address(), "/webhook/open", &[], &body).status,
        202
    );
    let callbacks = receiver.wait_for(2);
    assert_eq!(
        model.requests()[1]["messages"].as_array().unwrap().len(),
        2,
        "no history"
    );
    assert_eq!(callbacks[1].header("x-service-secret"), None);
    assert_eq!(callbacks[1].header("webhook-signature"), None);
}

#[test]
fn what_is_wrong_is_refused_with_its_reason() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver);
    let good = json!({ "message": "hello" });
    let to = |path: &str, headers: &[(&str, &str)], body: &Value| {
        let answer = post(home.address(), path, headers, body);
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge.is_some(), answer.status == 401, "{answer:?}");
        (
            answer.status,
            answer.json()["code"].as_str().unwrap_or("none").to_owned(),
        )
    };
    let secret = [("x-service-secret", SECRET)];
    for (path, headers, body, status, code) in [
        ("/webhook/ci", &[][..], good.clone(), 401, "invalid_token"),
        (
            "/webhook/ci",
            &[("x-service-secret", "wrong")],
            good.clone(),
            401,
            "invalid_token",
        ),
        ("/webhook/none", &secret, good.clone(), 404, "not_found"),
        ("/webhook/ci", &secret, json!([]), 400, "invalid_request"),
        ("/webhook/ci", &secret, json!({}), 400, "invalid_request"),
        (
            "/webhook/ci",
            &secret,
            json!({ "message": 7 }),
            400,
            "invalid_request",
        ),
        (
            "/webhook/ci",
            &secret,
            json!({ "message": "x", "user_id": 7 }),
            400,
            "invalid_request",
        ),
        (
            "/webhook/ci",
            &secret,
            json!({ "message": "x", "conversation_id": "" }),
            400,
            "invalid_request",
        ),
        (
            "/webhook/ci",
            &secret,
            json!({ "message": "x".repeat(300_000) }),
            413,
            "invalid_request",
        ),
    ] {
        assert_eq!(
            to(path, headers, &body),
            (status, code.to_owned()),
            "{path} {headers:?}"
        );
    }
    assert!(model.requests().is_empty());
}

#[test]
fn a_repeated_key_runs_once_and_another_body_is_refused() {
    let (model, receiver) = (Model::saying("once"), Receiver::start());
    let home = home(&model, &receiver);
    let key = [("idempotency-key", "delivery-1")];
    let first = send(&home, &key, json!({ "message": "deploy" }));
    let again = send(&home, &key, json!({ "message": "deploy" }));
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.json()["data"], again.json()["data"]);
    assert_eq!(
        send(&home, &key, json!({ "message": "destroy" })).status,
        422
    );
    receiver.wait_for(1);
    accept(&home, json!({ "message": "other" }));
    receiver.wait_for(2);
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_receiver_that_is_down_gets_its_callback_later_with_the_same_id() {
    let receiver = Receiver::answering(|_, number| match number {
        0 => "500 Oops".to_owned(),
        1 => "302 Found\r\nLocation: /elsewhere".to_owned(),
        _ => "204 No Content".to_owned(),
    });
    let model = Model::saying("done");
    let home = home(&model, &receiver);
    accept(&home, json!({ "message": "go" }));
    let mut admin = home.admin();
    for (attempts, wait) in [(1, 7), (2, 40)] {
        receiver.wait_for(attempts);
        let listed = eventually("the failure is stored", || {
            let listed = admin.ask(json!({ "type": "list_deliveries", "state": "pending" }));
            let delivery = listed["deliveries"].get(0).cloned()?;
            (delivery["attempts"] == attempts).then_some(delivery)
        });
        assert!(listed["last_error"].is_string());
        home.server().advance_clock(Duration::from_secs(wait));
    }
    let callbacks = receiver.wait_for(3);
    assert!(
        callbacks
            .iter()
            .all(|one| one.header("webhook-id") == callbacks[0].header("webhook-id"))
    );
    assert!(callbacks.iter().all(|one| one.raw == callbacks[0].raw));
    assert!(
        callbacks
            .iter()
            .all(|one| one.head.starts_with("POST /callback "))
    );
    eventually("it is delivered", || {
        let listed = admin.ask(json!({ "type": "list_deliveries", "state": "delivered" }));
        (listed["deliveries"].as_array().unwrap().len() == 1).then_some(())
    });
}

#[test]
fn a_receiver_that_is_gone_gets_no_more_until_a_person_says_so() {
    let receiver = Receiver::answering(|_, number| match number {
        0 => "410 Gone".to_owned(),
        _ => "200 OK".to_owned(),
    });
    let model = Model::saying("done");
    let home = home(&model, &receiver);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["delivery.updated"] }));
    accept(&home, json!({ "message": "go" }));
    let dead = loop {
        let event = admin.event("delivery.updated");
        if event["state"] == "dead" {
            break event;
        }
    };
    admin.ask(json!({ "type": "retry_delivery", "delivery_id": dead["delivery_id"] }));
    let callbacks = receiver.wait_for(2);
    assert_eq!(
        callbacks[0].header("webhook-id"),
        callbacks[1].header("webhook-id")
    );
}

#[test]
fn a_failed_turn_is_called_back_too() {
    let (model, receiver) = (
        Model::acting(vec![Act::error(401, "", "no")]),
        Receiver::start(),
    );
    let home = home(&model, &receiver);
    accept(&home, json!({ "message": "go", "conversation_id": "c" }));
    let body = receiver.wait_for(1).remove(0).body;
    assert_eq!(body["status"], "error");
    assert_eq!(
        (&body["code"], &body["conversation_id"]),
        (&json!("server_error"), &json!("c"))
    );
    assert!(body["error"].is_string());
}

#[test]
fn callbacks_of_one_conversation_keep_their_order_past_a_failure() {
    let receiver = Receiver::answering(|callback, number| {
        let is_first = number == 0 && callback.body["message"] == "reply to 0";
        if is_first {
            "500 Oops".to_owned()
        } else {
            "200 OK".to_owned()
        }
    });
    let model = Model::start(|_, number| Act::Say(format!("reply to {number}")));
    let home = home(&model, &receiver);
    for number in 0..3 {
        accept(
            &home,
            json!({ "message": number.to_string(), "conversation_id": "c" }),
        );
    }
    receiver.wait_for(1);
    model.wait_for_requests(3);
    let mut admin = home.admin();
    eventually("the later ones are held", || {
        let held = admin.ask(json!({ "type": "list_deliveries", "state": "held" }));
        (held["deliveries"].as_array().unwrap().len() == 2).then_some(())
    });
    eventually("the failure is stored", || {
        let pending = admin.ask(json!({ "type": "list_deliveries", "state": "pending" }));
        (pending["deliveries"][0]["attempts"] == 1).then_some(())
    });
    home.server().advance_clock(Duration::from_secs(10));
    let texts: Vec<Value> = receiver
        .wait_for(4)
        .iter()
        .map(|callback| callback.body["message"].clone())
        .collect();
    assert_eq!(
        json!(texts),
        json!(["reply to 0", "reply to 0", "reply to 1", "reply to 2"])
    );
}

#[test]
fn what_was_accepted_is_answered_after_a_restart() {
    let receiver = Receiver::start();
    let model = Model::acting(vec![
        Act::Stall("never".into()),
        Act::say("after the restart"),
    ]);
    let mut home = home(&model, &receiver);
    let accepted = accept(&home, json!({ "message": "go" }));
    model.wait_for_requests(1);
    home.restart_at_once();
    let callback = receiver.wait_for(1).remove(0);
    assert_eq!(callback.body["message"], "after the restart");
    assert_eq!(
        callback.body["conversation_id"],
        accepted["conversation_id"]
    );
}

#[test]
fn a_rate_over_the_accounts_limit_is_told_to_wait() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "ci": { "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() },
        } },
    ]);
    config["limits"] = json!({ "webhook_per_second": 1, "webhook_burst": 2 });
    let home = Home::start(config);
    let statuses: Vec<u16> = (0..3)
        .map(|_| {
            post(
                home.address(),
                "/webhook/ci",
                &[],
                &json!({ "message": "x" }),
            )
            .status
        })
        .collect();
    assert_eq!(statuses, [202, 202, 429]);
}

/// The signature of a text by the account's secret.
fn signature(text: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = ring::hmac::sign(&key, text.as_bytes());
    let digits: Vec<String> = (tag.as_ref().iter())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    digits.concat()
}

#[test]
fn a_signed_request_that_is_sent_again_runs_no_second_turn() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let mut home = home(&model, &receiver);
    let body = json!({ "message": "unlock the door" });
    // As GitHub sends it.
    let signature = format!("sha256={}", signature(&body.to_string()));
    let replay = |home: &Home, key: &str| {
        let headers = [
            ("x-hub-signature-256", signature.as_str()),
            ("idempotency-key", key),
        ];
        let answer = post(home.address(), "/webhook/ci", &headers, &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["data"].clone()
    };
    let first = replay(&home, "one");
    receiver.wait_for(1);
    // Under another key, after a restart, and hours later.
    assert_eq!(replay(&home, "two"), first);
    home.restart();
    assert_eq!(replay(&home, "three"), first);
    home.server()
        .advance_clock(Duration::from_secs(23 * 60 * 60));
    assert_eq!(replay(&home, "four"), first);
    assert_eq!(model.requests().len(), 1);
    let other = json!({ "message": "lock the door" });
    let headers = [("x-hub-signature-256", signature.as_str())];
    assert_eq!(
        post(home.address(), "/webhook/ci", &headers, &other).status,
        401
    );
}

#[test]
fn an_event_of_stripe_that_is_described_anew_runs_no_second_turn() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver);
    let report = |pending: u64, message: &str| {
        let body = json!({"id": "evt_1", "message": message, "pending_webhooks": pending});
        let now = Clock::system().now().as_millis() / 1000;
        let signature = format!("t={now},v1={}", signature(&format!("{now}.{body}")));
        let headers = [("stripe-signature", signature.as_str())];
        let answer = post(home.address(), "/webhook/ci", &headers, &body);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["data"].clone()
    };
    let first = report(2, "A payment");
    assert_eq!(report(1, "A payment"), first);
    assert_eq!(report(0, "The payment"), first);
    receiver.wait_for(1);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn the_right_secret_passes_whatever_was_guessed_from_its_address() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver);
    let body = json!({ "message": "x" });
    for _ in 0..60 {
        let guess = [("x-service-secret", "guess")];
        assert_eq!(
            post(home.address(), "/webhook/ci", &guess, &body).status,
            401
        );
    }
    accept(&home, body);
}

#[test]
fn the_callback_of_a_cancelled_turn_says_so() {
    let whole = "One, two, three, four, five, six, seven, eight, nine, ten, eleven.";
    let model = Model::acting(vec![Act::Pause(whole.into()), Act::Pause(whole.into())]);
    let receiver = Receiver::start();
    let home = home(&model, &receiver);
    let mut client = home.admin();
    // So that the model's replies are streamed.
    client.ask(json!({ "type": "subscribe", "events": ["chat.delta"] }));
    let is_beginning = |said: &Value| {
        let said = said.as_str().unwrap();
        assert!(!said.is_empty() && whole.starts_with(said), "{said:?}");
    };
    let accepted = accept(
        &home,
        json!({ "message": "count", "conversation_id": "door" }),
    );
    client.event("chat.delta");
    client.send(&json!({ "type": "cancel", "turn_id": accepted["turn_id"] }));
    let callback = receiver.wait_for(1).remove(0);
    assert_eq!(callback.body["status"], "cancelled");
    assert_eq!(callback.body["conversation_id"], "door");
    is_beginning(&callback.body["message"]);

    // And the response to a caller that waits.
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let body = json!({ "message": "count", "conversation_id": "bell" });
            send(&home, &[("prefer", "wait=60")], body)
        });
        model.wait_for_requests(2);
        let turn = loop {
            let delta = client.event("chat.delta");
            if delta["turn_id"] != accepted["turn_id"] {
                break delta["turn_id"].clone();
            }
        };
        client.send(&json!({ "type": "cancel", "turn_id": turn }));
        waiting.join().unwrap()
    });
    assert_eq!(waiting.status, 200, "{waiting:?}");
    let data = waiting.json()["data"].clone();
    assert_eq!(data["state"], "cancelled");
    is_beginning(&data["message"]);
    model.release();
}
