//! JSON Schema of what goes over the wire, and of the configuration. The test client checks
//! every response and event that it receives against the former.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory};
use support::http::get;
use support::program::{Program, printed, run};
use support::schema::{PROTOCOL, Schema};

#[test]
fn the_schema_of_the_protocol_is_served() {
    let home = Home::offline();
    let answer = get(home.address(), "/help/protocol.json");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("application/schema+json")
    );
    // A difference would be too long to read.
    assert!(answer.json() == PROTOCOL.document);
}

/// With `UPDATE_HANDBOOK=1` in the environment they are written instead of compared.
#[test]
fn the_handbook_has_the_schemas_of_the_declarations() {
    let settings = config::declared_documentation().into_iter();
    let settings = settings.map(|setting| setting.line() + "\n").collect();
    for (name, text) in [
        (
            "hearth/handbook/protocol.json",
            format!("{:#}\n", PROTOCOL.document),
        ),
        (
            "hearth/handbook/config.json",
            format!("{:#}\n", config::schema()),
        ),
        ("config/settings.tsv", settings),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
        if std::env::var_os("UPDATE_HANDBOOK").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap() == text,
            "{} is not what the code says; this writes it:\n\n    \
             UPDATE_HANDBOOK=1 cargo test --test it schemas",
            path.display()
        );
    }
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

fn problems_of_configuration(config: &Value) -> Vec<String> {
    let schema = Schema {
        document: config::schema(),
        is_strict: false,
    };
    schema.problems("config", &schema.document, config)
}

#[test]
fn every_configuration_that_is_valid_fits_the_schema() {
    let folder = TemporaryDirectory::new();
    drop(Program::serve(folder.path()));
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = fs::read_dir(project.join("examples/config")).unwrap();
    let mut files: Vec<PathBuf> = samples.map(|entry| entry.unwrap().path()).collect();
    files.push(folder.path().join("config.json"));
    files.extend(
        ["0.1.0", "schema-32"]
            .map(|data| project.join("tests/data").join(data).join("config.json")),
    );
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let problems = problems_of_configuration(&serde_json::from_str(&text).unwrap());
        assert!(problems.is_empty(), "{}: {problems:#?}", file.display());
    }
    let others = json!({
        "_comment": "x",
        "model": null,
        "workers": "${WORKERS}",
        "channels": { "lan": { "type": "tcp" }, "webhook": { "accounts": {} } },
        "memory": { "_why": "x" },
    });
    assert_eq!(problems_of_configuration(&others), [""; 0]);
}

#[test]
fn a_configuration_that_is_wrong_does_not_fit() {
    for wrong in [
        json!({ "modell": "offline" }),
        json!({ "provider": "opanai" }),
        json!({ "temperature": 3 }),
        json!({ "workers": "many" }),
        json!({ "limits": { "turn_seconds": 0 } }),
        json!({ "limits": { "turn_second": 10 } }),
        json!({ "tools": { "web_fetch": { "enabled": "yes" } } }),
        json!({ "tools": { "custom": [{ "name": "a" }] } }),
        json!({ "channels": [] }),
        json!({ "channels": [{ "port": 5000 }] }),
        json!({ "channels": [{ "type": "tcp", "url": "wss://a" }] }),
        json!({ "channels": { "webhook": { "accounts": { "a": { "incoming_path": "/a" } } } } }),
        json!({ "fallback": [{ "provider": "openai" }] }),
        json!({ "tool_permissions": { "recall": "always" } }),
    ] {
        assert!(!problems_of_configuration(&wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn the_terminal_prints_the_schema_of_the_configuration() {
    let folder = TemporaryDirectory::new();
    let shown = printed(&run(folder.path(), &["config", "schema"]));
    assert!(serde_json::from_str::<Value>(&shown).unwrap() == config::schema());
}
