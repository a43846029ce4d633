//! JSON Schema of what goes over the wire. The test client checks every response and event
//! that it receives against it.

use serde_json::{Value, json};

use support::home::Home;
use support::http::get;
use support::schema::PROTOCOL;

#[test]
fn the_schema_of_the_protocol_is_served() {
    let home = Home::offline();
    let answer = get(home.address(), "/help/protocol.json");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("application/schema+json")
    );
    assert_eq!(answer.json(), PROTOCOL.document);
}

#[test]
fn it_has_every_command_field_and_event() {
    for command in protocol::command::DECLARATIONS {
        let schema = &PROTOCOL.document["commands"][command.name];
        for field in command.fields {
            let described = &schema["request"]["properties"][field];
            let is_described = described
                .as_object()
                .is_some_and(|members| !members.is_empty());
            assert!(is_described, "{}.{field}: {schema}", command.name);
        }
        assert!(
            !schema["response"].is_null(),
            "{} has no response",
            command.name
        );
    }
    for event in protocol::event::DECLARATIONS {
        for field in event.fields {
            let schema = &PROTOCOL.document["events"][event.name]["properties"][field];
            assert!(!schema["description"].is_null(), "{}.{field}", event.name);
        }
    }
}

#[test]
fn requests_are_described_as_they_are_read() {
    let request = |command: &str, fields: Value| {
        let schema = &PROTOCOL.document["commands"][command]["request"];
        PROTOCOL.problems(command, schema, &fields)
    };
    for (command, fields, fits) in [
        ("auth", json!({ "token": "a" }), true),
        ("auth", json!({ "username": "a", "password": "b" }), true),
        ("auth", json!({ "username": "a" }), false),
        ("chat", json!({ "message": "a", "surface": "page" }), true),
        ("chat", json!({ "message": "" }), false),
        ("chat", json!({ "message": "a", "surface": "watch" }), false),
        ("chat", json!({ "message": "a", "audience": ["ada"] }), true),
        ("chat", json!({ "message": "a", "audience": "all" }), false),
        ("get_messages", json!({ "limit": 5 }), false),
        (
            "get_messages",
            json!({ "conversation_id": "conv_1", "limit": 5 }),
            true,
        ),
        (
            "get_messages",
            json!({ "conversation_id": "conv_1", "limit": 501 }),
            false,
        ),
        (
            "approve",
            json!({ "approval_id": "appr_1", "remember": "never" }),
            false,
        ),
        (
            "create_token",
            json!({ "name": "a", "tools": ["recall"] }),
            true,
        ),
        (
            "create_token",
            json!({ "name": "a", "tools": "recall" }),
            false,
        ),
    ] {
        let problems = request(command, fields.clone());
        assert_eq!(
            problems.is_empty(),
            fits,
            "{command} {fields}: {problems:?}"
        );
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let token = json!({
        "id": "tok_1", "token_id": "tok_1", "name": "a", "user": "ada", "role": "user",
        "created_at": "2026-11-21T09:30:00.125Z", "expires_at": null, "tools": null,
        "only": null, "speaks_for": null,
    });
    let problems = |change: fn(&mut Value)| {
        let mut token = token.clone();
        change(&mut token);
        PROTOCOL.response("list_tokens", &json!({ "tokens": [token] }))
    };
    assert_eq!(problems(|_| {}), [""; 0]);
    assert_eq!(problems(|token| token["user"] = json!(5)).len(), 1);
    assert_eq!(
        problems(|token| token["token_id"] = json!("msg_1")).len(),
        1
    );
    assert_eq!(problems(|token| token["color"] = json!("red")).len(), 1);
    assert_eq!(
        problems(|token| drop(token.as_object_mut().unwrap().remove("name"))).len(),
        1
    );
}
