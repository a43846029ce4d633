//! Senders that are too simple for JSON: forms, plain text and GET requests.

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory, write_config};
use support::http::{FileAnswer, exchange, post};
use support::model::Model;
use support::program::{printed, run};
use support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYq+TwjUPD8/ILPZIo2LaLaSw=";
const FORM: &str = "application/x-www-form-urlencoded";

/// A server with an account `button` that takes everything, `sensor` that takes text and has no
/// secret, and `ci` that takes JSON.
fn home(model: &Model, receiver: &Receiver) -> Home {
    let account = |name: &str, more: Value| {
        let mut account =
            json!({ "incoming_path": format!("/{name}"), "outgoing_url": receiver.url() });
        for (key, value) in more.as_object().unwrap() {
            account[key] = value.clone();
        }
        account
    };
    Home::start(model.config_with(json!({ "channels": [
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "button": account("button", json!({
                "secret": SECRET, "accept": ["get", "form", "text", "json"],
            })),
            "sensor": account("sensor", json!({
                "accept": ["text", "form"],
                "map": { "message": "Attention: {/message}{/alarm}" },
            })),
            "ci": account("ci", json!({ "secret": SECRET })),
        } },
    ] })))
}

fn last_message(model: &Model, count: usize) -> String {
    let request = model.wait_for_requests(count).pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|one| one["role"] == "user");
    last.unwrap()["content"].to_string()
}

#[test]
fn simple_senders_send_messages() {
    let (model, receiver) = (Model::saying("noted"), Receiver::start());
    let home = home(&model, &receiver);
    let mut sent = 0;
    let mut send = |method, path: &str, headers: &[(&str, &str)], body: &[u8], message: &str| {
        let answer = exchange(home.address(), method, path, headers, body);
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, 202, "{method} {path}: {text}");
        sent += 1;
        let callback = receiver.wait_for(sent).pop().unwrap();
        assert_eq!(callback.body["message"], "noted");
        let asked = last_message(&model, sent);
        assert!(asked.contains(message), "{message}: {asked}");
        callback.body["conversation_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let header = ("x-service-secret", SECRET);
    let query = format!("/button?secret={SECRET}&message=the+door+is%20open%21");
    send("GET", &query, &[], b"", "the door is open!");
    let form = b"message=who+rang%3F&conversation_id=door&user_id=bell";
    let name = send(
        "POST",
        "/button",
        &[("content-type", FORM), header],
        form,
        "who rang?",
    );
    assert_eq!(name, "door");
    let path = format!("/button?secret={}", SECRET.replace('+', "%2B"));
    send(
        "POST",
        &path,
        &[("content-type", "text/plain")],
        b"it rains\n",
        "it rains\\n</outside",
    );
    let typed = [("content-type", "application/json"), header];
    send(
        "POST",
        "/button",
        &typed,
        br#"{"message":"as before"}"#,
        "as before",
    );
    // What needs no secret, says nothing of its type, and is mapped.
    send("POST", "/sensor", &[], b"smoke", "Attention: smoke");
    send(
        "POST",
        "/sensor",
        &[("content-type", FORM)],
        b"alarm=water",
        "Attention: water",
    );

    let body = "--x\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nlook\r\n\
        --x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\"\r\n\r\n\r\n\
        --x\r\nContent-Disposition: form-data; name=\"file01\"; filename=\"note.txt\"\r\n\
        Content-Type: text/plain\r\n\r\nThe parcel is behind the house.\r\n--x--\r\n";
    let typed = [("content-type", "multipart/form-data; boundary=x"), header];
    send(
        "POST",
        "/button",
        &typed,
        body.as_bytes(),
        "The parcel is behind the house.",
    );
    // The names that Apprise gives to a file.
    let file = json!({ "message": "look again", "attachments": [{
        "filename": "again.txt", "mimetype": "text/plain", "base64": "SXQgaXMgZ29uZS4=",
    }] });
    let typed = [("content-type", "application/json"), header];
    send(
        "POST",
        "/ci",
        &typed,
        file.to_string().as_bytes(),
        "It is gone.",
    );
}

#[test]
fn what_an_account_does_not_accept_is_refused() {
    let (model, receiver) = (Model::saying("noted"), Receiver::start());
    let home = home(&model, &receiver);
    let origin = "https://evil.example";
    let button = format!("/button?secret={SECRET}&message=hi");
    let ci = format!("/ci?secret={SECRET}");
    for (method, path, headers, status, says) in [
        ("GET", "/button?message=hi", &[][..], 401, "?secret="),
        (
            "GET",
            "/button?secret=wrong&message=hi",
            &[],
            401,
            "?secret=",
        ),
        (
            "GET",
            &button,
            &[("sec-fetch-site", "cross-site")],
            403,
            "other sites",
        ),
        (
            "GET",
            &button,
            &[("origin", origin)],
            403,
            "allowed_origins",
        ),
        ("HEAD", &button, &[], 405, ""),
        (
            "GET",
            &button.replace("message", "text"),
            &[],
            400,
            "is required and must be a string",
        ),
        ("GET", "/sensor?message=hi", &[], 405, "only POST"),
        (
            "POST",
            "/sensor",
            &[("content-type", "application/json")],
            415,
            "text/plain",
        ),
        (
            "POST",
            "/sensor",
            &[("content-type", "text/plain"), ("origin", origin)],
            403,
            "allowed_origins",
        ),
        (
            "POST",
            "/sensor",
            &[("content-type", "multipart/form-data; boundary=x")],
            400,
            "is not a form",
        ),
        ("GET", &ci, &[], 405, "only POST"),
        (
            "POST",
            &ci,
            &[("content-type", "application/json")],
            401,
            "X-Service-Secret",
        ),
        (
            "POST",
            "/ci",
            &[("content-type", FORM), ("x-service-secret", SECRET)],
            415,
            "Content-Type: application/json",
        ),
    ] {
        let answer: FileAnswer = exchange(home.address(), method, path, headers, b"{}");
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{method} {path}: {text}");
        assert!(text.contains(says), "{method} {path}: {text}");
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_repeated_get_request_runs_once_and_another_one_is_refused() {
    let (model, receiver) = (Model::saying("noted"), Receiver::start());
    let home = home(&model, &receiver);
    let send = |message: &str| {
        let path = format!("/button?message={message}&secret={SECRET}");
        let key = [("idempotency-key", "press-7")];
        exchange(home.address(), "GET", &path, &key, b"")
    };
    let (first, again, other) = (send("ring"), send("ring"), send("rang"));
    assert_eq!((first.status, again.status, other.status), (202, 202, 422));
    assert_eq!(first.body, again.body);
    let headers = [("x-service-secret", SECRET)];
    let next = post(
        home.address(),
        "/button",
        &headers,
        &json!({ "message": "last" }),
    );
    assert_eq!(next.status, 202);
    assert_eq!(receiver.wait_for(2).len(), 2);
    assert_eq!(model.wait_for_requests(2).len(), 2);
}

#[test]
fn a_get_request_needs_a_secret() {
    let account = json!({
        "incoming_path": "/in", "outgoing_url": "http://127.0.0.1:1/", "accept": ["get"],
    });
    let config = json!({ "channels": [{ "type": "webhook", "accounts": { "in": account } }] });
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), config);
    let output = run(folder.path(), &["config", "check"]);
    let said = printed(&output);
    assert!(
        !output.status.success() && said.contains("needs a \"secret\""),
        "{said}"
    );
}
