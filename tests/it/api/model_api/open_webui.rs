//! Open WebUI with the headers that it sends by itself (`ENABLE_FORWARD_USER_INFO_HEADERS`).

use serde_json::{Value, json};

use super::{COMPLETIONS, bearer, home_with};
use support::home::Home;
use support::http::{Answer, post};
use support::model::{Act, Model};

const TASK: &str =
    "### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: one\n</chat_history>";

/// A home, and a token of the admin that speaks for `user`.
fn house(model: &Model, users: Value) -> (Home, String) {
    let api = json!({ "openai_api": { "enabled": true, "users": users } });
    let home = home_with(model, api);
    let token = home.token("admin", &json!({ "speaks_for": ["user"] }));
    (home, token)
}

fn send(home: &Home, token: &str, path: &str, headers: &[(&str, &str)], said: &Value) -> Answer {
    let authorization = bearer(token);
    let mut all = vec![("authorization", authorization.as_str())];
    all.extend(headers);
    let body = json!({ "model": "hearth", "messages": said, "stream": false });
    post(home.address(), path, &all, &body)
}

fn conversations(home: &Home) -> Vec<Value> {
    let mut user = home.websocket(&home.tokens.user);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    listed["conversations"].as_array().unwrap().clone()
}

#[test]
fn an_address_is_a_person_or_an_error() {
    let model = Model::saying("hi");
    let known = json!({ "ada@home.example": "user", "bob@home.example": "viewer" });
    const EMAIL: &str = "X-OpenWebUI-User-Email";
    const NAME: &str = "X-OpenWebUI-User-Name";
    let said = json!([{ "role": "user", "content": "hi" }]);
    for (users, headers, status, says) in [
        (&known, &[(EMAIL, "ada@home.example")][..], 200, ""),
        (
            &known,
            &[(EMAIL, "Ada%40home.example"), (NAME, "Ada%20L.")],
            200,
            "",
        ),
        (
            &known,
            &[(EMAIL, "eve@home.example"), (NAME, "user")],
            403,
            "openai_api.users",
        ),
        (&known, &[(EMAIL, "bob@home.example")], 403, "speak"),
        (
            &json!({}),
            &[(EMAIL, "ada@home.example"), (NAME, "user")],
            200,
            "",
        ),
        (
            &json!({}),
            &[(EMAIL, "ada@home.example")],
            403,
            "openai_api.users",
        ),
    ] {
        let (home, token) = house(&model, users.clone());
        for path in [COMPLETIONS, "/api/chat"] {
            let answer = send(&home, &token, path, headers, &said);
            assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
            assert!(answer.body.contains(says), "{headers:?}: {answer:?}");
        }
        let expected = if status == 200 { 2 } else { 0 };
        assert_eq!(conversations(&home).len(), expected, "{headers:?}");
        let own = home.admin().ask(json!({ "type": "list_conversations" }));
        assert_eq!(own["conversations"], json!([]), "{headers:?}");
    }
}

#[test]
fn a_chat_with_its_tasks_is_one_conversation() {
    for path in [COMPLETIONS, "/api/chat"] {
        let model = Model::start(
            |request, number| match request.to_string().contains("# Task") {
                true => Act::say("A title"),
                false => Act::say(&format!("answer {number}")),
            },
        );
        let (home, token) = house(&model, json!({ "ada@home.example": "user" }));
        let headers = [
            ("X-OpenWebUI-User-Email", "ada@home.example"),
            ("X-OpenWebUI-Chat-Id", "5a9f"),
        ];
        let said = |role: &str, content: &str| json!({ "role": role, "content": content });
        let mut messages = Vec::new();
        for text in ["one", "two", "three"] {
            messages.push(said("user", text));
            let answer = send(&home, &token, path, &headers, &json!(messages));
            assert_eq!(answer.status, 200, "{answer:?}");
            // It shows its replies changed, as after a filter of its own.
            messages.push(said("assistant", &format!("shown: {text}")));
            let answer = send(&home, &token, path, &headers, &json!([said("user", TASK)]));
            assert!(answer.body.contains("A title"), "{answer:?}");
            let asked = model.requests().pop().unwrap();
            assert!(asked.get("tools").is_none(), "{asked}");
        }
        let listed = conversations(&home);
        assert_eq!(listed.len(), 1, "{listed:?}");
        // What only looks like a task is said to the assistant.
        for text in ["### Task: buy milk", "Look: ### Task:\n### Chat History:"] {
            let body = json!([said("user", text)]);
            assert_eq!(send(&home, &token, path, &headers[..1], &body).status, 200);
        }
        assert_eq!(conversations(&home).len(), 3);
    }
}
