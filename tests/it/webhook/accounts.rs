//! What an account can be told: secrets and their change, deadlines, forms of
//! other systems, answers at once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::secret::hmac_sha256;
use serde_json::{Value, json};

use support::AT_ONCE;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::http::{Answer, post};
use support::model::{Act, Model};
use support::program::{Program, send_signal};
use support::receiver::Receiver;
use support::socket;

const SECRET: &str = "a secret of more than 32 characters";

fn with_account(model: &Model, receiver: &Receiver, settings: Value) -> Value {
    let mut config = model.config();
    let mut account = json!({ "incoming_path": "/webhook/ci", "outgoing_url": receiver.url() });
    for (key, value) in settings.as_object().unwrap() {
        account[key] = value.clone();
    }
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "ci": account } },
    ]);
    config
}

fn home(model: &Model, receiver: &Receiver, settings: Value) -> Home {
    Home::start(with_account(model, receiver, settings))
}

fn send(home: &Home, headers: &[(&str, &str)], body: Value) -> Answer {
    post(home.address(), "/webhook/ci", headers, &body)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_changed_secret_is_in_force_for_the_next_request() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(&model, &receiver, json!({ "secret": "first secret" }));
    let status = |secret| {
        send(
            &home,
            &[("x-service-secret", secret)],
            json!({ "message": "x" }),
        )
        .status
    };
    assert_eq!(
        (status("first secret"), status("second secret")),
        (202, 401)
    );
    receiver.wait_for(1);

    let rotate = |settings| {
        write_config(
            home.folder.path(),
            with_account(&model, &receiver, settings),
        );
        home.server().reload().unwrap();
    };
    rotate(json!({ "secret": "second secret", "secret_previous": "first secret" }));
    assert_eq!(
        (status("first secret"), status("second secret")),
        (202, 202)
    );
    let rotating = receiver.wait_for(3).pop().unwrap();
    assert_eq!(rotating.header("x-service-secret"), Some("second secret"));
    let signatures = rotating.header("webhook-signature").unwrap();
    assert_eq!(signatures.split(' ').count(), 2, "{signatures}");

    rotate(json!({ "secret": "second secret" }));
    assert_eq!(
        (status("first secret"), status("second secret")),
        (401, 202)
    );
}

#[test]
fn the_real_server_takes_a_changed_secret_over_at_a_hang_up() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let folder = TemporaryDirectory::new();
    let write = |secret| {
        let config = with_account(&model, &receiver, json!({ "secret": secret }));
        write_config(folder.path(), config);
    };
    write("first secret");
    make_people(folder.path());
    let program = Program::serve(folder.path());
    let status = |secret| {
        let headers = [("x-service-secret", secret)];
        post(
            program.address,
            "/webhook/ci",
            &headers,
            &json!({ "message": "x" }),
        )
        .status
    };
    assert_eq!(status("first secret"), 202);
    write("second secret");
    send_signal(program.id(), "HUP");
    eventually("the old secret is refused", || {
        (status("first secret") == 401).then_some(())
    });
    assert_eq!(status("second secret"), 202);
}

#[test]
fn an_account_that_is_not_enabled_takes_nothing_and_still_answers() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let receiver = Receiver::start();
    let home = home(&model, &receiver, json!({}));
    assert_eq!(send(&home, &[], json!({ "message": "x" })).status, 202);
    model.wait_for_requests(1);
    let off = with_account(&model, &receiver, json!({ "enabled": false }));
    write_config(home.folder.path(), off);
    home.server().reload().unwrap();
    assert_eq!(send(&home, &[], json!({ "message": "x" })).status, 404);
    model.release();
    assert_eq!(receiver.wait_for(1)[0].body["message"], "late");
}

#[test]
fn an_account_has_its_own_deadline_and_number_of_attempts() {
    let model = Model::acting(vec![Act::Stall("too late".into())]);
    let receiver = Receiver::answering(|_, _| "500 Oops".to_owned());
    let settings = json!({ "timeout_seconds": 1, "max_attempts": 2 });
    let home = home(&model, &receiver, settings);
    let began = Instant::now();
    assert_eq!(send(&home, &[], json!({ "message": "x" })).status, 202);
    let callback = receiver.wait_for(1).remove(0);
    assert!(began.elapsed() < AT_ONCE);
    assert_eq!(callback.body["status"], "error", "{:?}", callback.body);
    let mut admin = home.admin();
    let mut delivery = |attempts: u64| {
        eventually("the attempt is stored", || {
            let listed = admin.ask(json!({ "type": "list_deliveries" }));
            let delivery = listed["deliveries"][0].clone();
            (delivery["attempts"] == attempts).then_some(delivery)
        })
    };
    assert_eq!(delivery(1)["state"], "pending");
    home.server().advance_clock(Duration::from_secs(10));
    assert_eq!(delivery(2)["state"], "dead");
}

/// Every sample in examples/webhooks is posted through its account as the
/// system it stands for would.
#[test]
fn the_samples_of_other_systems_are_answered() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        Act::Say(messages.last().unwrap()["content"].to_string())
    });
    let receiver = Receiver::start();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let samples = examples.join("webhooks");
    let read = |path: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let mut config = model.config();
    config["channels"] = read(&examples.join("config/other-systems.json"))["channels"].clone();
    config["channels"]["home"]["port"] = json!(0);
    let accounts = config["channels"]["webhook"]["accounts"]
        .as_object_mut()
        .unwrap();
    for account in accounts.values_mut() {
        account["outgoing_url"] = json!(receiver.url());
        account["secret"] = json!(SECRET);
    }
    let mut unused: Vec<String> = accounts.keys().cloned().collect();
    let home = Home::start(config);
    for (name, says, speaker, conversation) in [
        (
            "home-assistant",
            "washing machine is done",
            "Home Assistant",
            "washer",
        ),
        (
            "n8n",
            "today's invoices",
            "",
            "6a1f2c7e-0f3b-4a57-9a0e-1f1f5a3b7c21",
        ),
        (
            "node-red",
            r#"home/greenhouse: {\\\"temperature\\\":4.5"#,
            "",
            "home/greenhouse",
        ),
        (
            "github",
            "Issue opened in grace/house: The back door",
            "grace",
            "grace/house#42",
        ),
        (
            "gitea",
            "Grace H. pushed to refs/heads/main",
            "grace",
            "grace/house",
        ),
        (
            "gitlab",
            "Issue open in grace/house: The heating is cold",
            "grace",
            "grace/house#23",
        ),
        (
            "stripe",
            "Stripe reports payment_intent.succeeded",
            "Stripe",
            "pi_3NG8Du2eZvKYlo2C1FFYxXyz",
        ),
        (
            "grafana",
            "[FIRING:1] Freezer (cellar)",
            "Grafana",
            "Freezer",
        ),
        (
            "alertmanager",
            "Alert firing: DiskFull",
            "Alertmanager",
            "DiskFull",
        ),
        (
            "frigate",
            "The camera front_door sees: person (87%)",
            "Frigate",
            "front_door",
        ),
        ("ios-shortcuts", "Put milk on the list", "Grace", "phone"),
        (
            "uptime-kuma",
            "Nextcloud reports: [Nextcloud] [Down]",
            "Nextcloud",
            "Nextcloud",
        ),
    ] {
        let sample = read(&samples.join(format!("{name}.json")));
        assert_eq!(sample["account"], name);
        unused.retain(|account| account != name);
        let body = sample["body"].to_string();
        let tag = hexadecimal(&hmac_sha256(SECRET.as_bytes(), body.as_bytes()));
        let now = Clock::system().now().as_millis() / 1000;
        let timed = format!("{now}.{body}");
        let stripe = hexadecimal(&hmac_sha256(SECRET.as_bytes(), timed.as_bytes()));
        let headers: Vec<(String, String)> = sample["headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                let value = value.as_str().unwrap();
                let value = value
                    .replace("$HOOK_SECRET", SECRET)
                    .replace("$HMAC", &tag)
                    .replace("$NOW", &now.to_string())
                    .replace("$STRIPE", &stripe);
                (name.clone(), value)
            })
            .collect();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let path = format!("/webhook/{name}");
        let answer = post(home.address(), &path, &headers, &sample["body"]);
        let waits = headers.iter().any(|(name, _)| *name == "Prefer");
        assert_eq!(
            answer.status,
            if waits { 200 } else { 202 },
            "{name}: {answer:?}"
        );
        let data = match waits {
            true => answer.json()["data"].clone(),
            false => {
                let came = eventually("the callback", || {
                    let callbacks = receiver.callbacks();
                    callbacks
                        .into_iter()
                        .find(|one| one.body["conversation_id"] == conversation)
                });
                came.body
            }
        };
        assert_eq!(data["conversation_id"], conversation, "{name}");
        let message = data["message"].to_string();
        assert!(
            message.contains(&says.replace('"', "\\\"")) || message.contains(says),
            "{name}: {message}"
        );
        assert!(message.contains(speaker), "{name}: {message}");
        // Nobody without the secret gets in with a changed body.
        let forged: Vec<(&str, &str)> = headers
            .iter()
            .map(|&(name, value)| match name {
                "X-Service-Secret" | "X-Gitlab-Token" => (name, "wrong"),
                "Authorization" => (name, "Bearer wrong"),
                name => (name, value),
            })
            .collect();
        let mut changed = sample["body"].clone();
        changed["more"] = json!(1);
        assert_eq!(
            post(home.address(), &path, &forged, &changed).status,
            401,
            "{name}"
        );
    }
    assert!(unused.is_empty(), "without a sample: {unused:?}");
}

#[test]
fn a_body_that_the_map_finds_nothing_in_is_refused() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = home(
        &model,
        &receiver,
        json!({ "map": { "message": "/alert/title" } }),
    );
    let refused = send(
        &home,
        &[],
        json!({ "message": "not where it is looked for" }),
    );
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("looks for the message"));
    assert!(model.requests().is_empty());
}

#[test]
fn a_caller_that_waits_gets_the_reply_and_no_callback() {
    let (model, receiver) = (Model::saying("At once."), Receiver::start());
    let home = home(&model, &receiver, json!({}));
    let wait = [("prefer", "wait=9"), ("idempotency-key", "k")];
    let body = json!({ "message": "hurry", "conversation_id": "c" });
    let answer = send(&home, &wait, body.clone());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("preference-applied"), Some("wait=9"));
    let data = &answer.json()["data"];
    assert_eq!(
        (&data["message"], &data["conversation_id"]),
        (&json!("At once."), &json!("c"))
    );
    // A repeat gets it again, and no second turn.
    let again = send(&home, &wait, body);
    assert_eq!((again.status, &again.json()["data"]), (200, data));
    assert_eq!(model.requests().len(), 1);

    let id = answer.header("webhook-id").unwrap().to_owned();
    let mut admin = home.admin();
    let delivery = eventually("it counts as delivered", || {
        let listed = admin.ask(json!({ "type": "list_deliveries", "state": "delivered" }));
        listed["deliveries"].get(0).cloned()
    });
    assert_eq!(delivery["delivery_id"], id.as_str());
    // The next one of the conversation is not held up, and comes by callback.
    send(
        &home,
        &[],
        json!({ "message": "no hurry", "conversation_id": "c" }),
    );
    let callbacks = receiver.wait_for(1);
    assert_ne!(callbacks[0].header("webhook-id"), Some(id.as_str()));
    home.server().advance_clock(Duration::from_secs(60));
    assert_eq!(receiver.callbacks().len(), 1);
}

#[test]
fn whoever_waited_in_vain_gets_the_callback() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let receiver = Receiver::start();
    let home = home(&model, &receiver, json!({}));
    let answer = send(&home, &[("prefer", "wait=1")], json!({ "message": "x" }));
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json()["data"].get("message"), None);
    model.release();
    assert_eq!(receiver.wait_for(1)[0].body["message"], "late");
}

#[test]
fn a_caller_that_hangs_up_while_it_waits_gets_the_callback() {
    use std::io::Write;
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let receiver = Receiver::start();
    let home = home(&model, &receiver, json!({}));
    let body = r#"{"message":"x"}"#;
    let mut caller = socket::connect(home.address());
    write!(
        caller,
        "POST /webhook/ci HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n\
         Prefer: wait=60\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    model.wait_for_requests(1);
    drop(caller);
    // The end of the connection is there before the reply is.
    home.admin().ask(json!({ "type": "ping" }));
    model.release();
    assert_eq!(receiver.wait_for(1)[0].body["message"], "late");
}

#[test]
fn a_failed_turn_is_told_to_whoever_waits() {
    let model = Model::acting(vec![Act::error(401, "", "no")]);
    let receiver = Receiver::start();
    let home = home(&model, &receiver, json!({}));
    let body = json!({ "message": "x", "conversation_id": "c" });
    let answer = send(&home, &[("prefer", "wait=9")], body);
    assert_eq!(answer.status, 500, "{answer:?}");
    let told = answer.json();
    assert_eq!(
        (&told["status"], &told["conversation_id"]),
        (&json!("error"), &json!("c"))
    );
    assert!(answer.header("webhook-id").is_some());
}

#[test]
fn only_so_many_may_wait_and_a_stop_lets_them_go() {
    let model = Model::acting(vec![Act::Stall("late".into())]);
    let receiver = Receiver::start();
    let mut config = with_account(&model, &receiver, json!({}));
    config["limits"] = json!({ "webhook_waiting": 1 });
    let mut home = Home::start(config);
    let address = home.address();
    let waiter = std::thread::spawn(move || {
        post(
            address,
            "/webhook/ci",
            &[("prefer", "wait=60")],
            &json!({ "message": "x" }),
        )
    });
    model.wait_for_requests(1);
    let began = Instant::now();
    let second = send(&home, &[("prefer", "wait=60")], json!({ "message": "y" }));
    assert_eq!(second.status, 202);
    assert!(began.elapsed() < AT_ONCE);
    home.restart_at_once();
    assert_eq!(waiter.join().unwrap().status, 202);
    model.release();
    receiver.wait_for(2);
}

#[test]
fn events_that_do_not_fit_are_ignored_and_a_redelivery_runs_once() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let settings = json!({
        "secret": SECRET,
        "when": { "/action": ["opened", "reopened"], "/comment": [] },
        "map": { "message": "Issue {/action}: {/issue/title}" },
    });
    let home = home(&model, &receiver, settings);
    let post_as = |delivery: &str, body: &Value| {
        let headers = [("x-gitlab-token", SECRET), ("x-github-delivery", delivery)];
        send(&home, &headers, body.clone())
    };
    let ping = post_as("1", &json!({ "zen": "Keep it logically awesome." }));
    assert_eq!(ping.status, 200, "{ping:?}");
    assert_eq!(
        ping.json()["data"],
        json!({ "ignored": true, "pointer": "/action" })
    );
    let mut issue = json!({ "action": "opened", "issue": { "title": "Leak" }, "comment": {} });
    assert_eq!(post_as("2", &issue).json()["data"]["pointer"], "/comment");
    issue["comment"].take();
    let first = post_as("3", &issue);
    assert_eq!(first.status, 202, "{first:?}");
    let again = post_as("3", &issue);
    assert_eq!(first.json()["data"], again.json()["data"]);
    let other = post_as("4", &issue);
    assert_ne!(first.json()["data"], other.json()["data"]);
    receiver.wait_for(2);
    assert_eq!(model.requests().len(), 2);
    // Who does not know the secret learns nothing of `when`.
    let stranger = send(&home, &[], json!({ "zen": "" }));
    assert_eq!(stranger.status, 401);
}
