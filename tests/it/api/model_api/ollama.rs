//! Ollama's clients.

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, bearer, conversations, home, home_with, shown};
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model};
use support::socket::{connect, exchange};

#[test]
fn ollamas_clients_are_answered_line_by_line() {
    let model = Model::saying("Good evening to you.");
    let home = home(&model);
    let authorization = bearer(&home.tokens.user);
    let tags = http_get(&home, "/api/tags", &authorization);
    assert_eq!(tags["models"][0]["name"], "hearth:latest");
    assert_eq!(tags["models"][1]["name"], "hearth-plain:latest");
    assert!(http_get(&home, "/api/version", &authorization)["version"].is_string());
    let show = ask(&home, "/api/show", json!({ "model": "hearth" })).json();
    assert!(show["model_info"]["hearth.context_length"].as_u64() > Some(0));

    let messages = json!([{ "role": "user", "content": "hello" }]);
    let body = json!({ "model": "hearth:latest", "messages": messages, "keep_alive": -1 });
    let answer = ask(&home, "/api/chat", body);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = answer
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text: String = lines
        .iter()
        .map(|line| line["message"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(text, "Good evening to you.");
    let (last, rest) = lines.split_last().unwrap();
    assert!(rest.len() > 2 && rest.iter().all(|line| line["done"] == false));
    assert_eq!(last["done"], true);
    assert_eq!(last["eval_count"], 5);
    assert!(last["total_duration"].as_u64() > Some(0));

    let body = json!({ "model": "hearth", "prompt": "hello", "stream": false });
    let answer = ask(&home, "/api/generate", body).json();
    assert_eq!(answer["response"], "Good evening to you.");
    for nothing in [json!({}), json!({ "messages": null })] {
        let mut body = nothing;
        body["model"] = json!("hearth");
        let loaded = ask(&home, "/api/chat", body).json();
        assert_eq!(loaded["done_reason"], "load");
    }
}

#[test]
fn what_is_spoken_does_not_wait_for_permission() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "Rex is a dog." })),
        Act::say("I shall remember."),
        Act::say("A dog."),
    ]);
    let home = home_with(&model, json!({ "permission_mode": "ask" }));
    let said = json!([{ "role": "user", "content": "Rex is a dog" }]);
    let answer = ask(
        &home,
        "/api/chat",
        json!({ "model": "hearth", "messages": said }),
    );
    let lines = answer.body.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.last().unwrap()["done"], true, "{answer:?}");
    let text: String = lines
        .iter()
        .map(|line| line["message"]["content"].as_str().unwrap())
        .collect();
    assert!(
        text.starts_with("Waiting for permission to use remember"),
        "{text}"
    );

    // The turn goes on, and so does the conversation, with what was replied then.
    let mut admin = home.admin();
    let approvals = admin.ask(json!({ "type": "list_approvals" }));
    let id = approvals["approvals"][0]["approval_id"].clone();
    admin.ask(json!({ "type": "approve", "approval_id": id }));
    eventually("the reply", || {
        (conversations(&home)[0]["message_count"] == 2).then_some(())
    });
    let said = json!([
        said[0], { "role": "assistant", "content": text }, { "role": "user", "content": "Who is Rex?" },
    ]);
    let body = json!({ "model": "hearth", "messages": said, "stream": false });
    let answer = ask(&home, "/api/chat", body).json();
    assert_eq!(answer["message"]["content"], "A dog.");
    let listed = conversations(&home);
    assert_eq!(
        (listed.len(), &listed[0]["message_count"]),
        (1, &json!(4)),
        "{listed:?}"
    );
    let request = model.requests().last().unwrap().to_string();
    assert!(
        request.contains("I shall remember.") && !request.contains("Waiting for"),
        "{request}"
    );
}

fn http_get(home: &Home, path: &str, authorization: &str) -> Value {
    let mut socket = connect(home.address());
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: hearth\r\nAuthorization: {authorization}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn a_program_at_home_may_be_let_in_without_a_token() {
    let model = Model::saying("hi");
    let api = json!({ "openai_api": { "enabled": true, "ollama_user": "user" } });
    let home = home_with(&model, api);
    let body = json!({
        "model": "hearth", "stream": false, "messages": [{ "role": "user", "content": "hi" }],
    });
    let answer = post(home.address(), "/api/chat", &[], &body);
    assert_eq!(answer.json()["message"]["content"], "hi", "{answer:?}");
    assert_eq!(shown(&model.requests()[0])[0].1, "[user] hi");
    // Not from beyond a proxy, not with a wrong token, and not for OpenAI's.
    for headers in [
        ("x-forwarded-for", "198.51.100.7"),
        ("authorization", "Bearer wrong"),
    ] {
        let answer = post(home.address(), "/api/chat", &[headers], &body);
        assert_eq!(answer.status, 401, "{headers:?}");
    }
    assert_eq!(post(home.address(), COMPLETIONS, &[], &body).status, 401);

    // Not for a page whose name was made to lead here: what it reads has no Origin.
    for (host, status) in [
        ("192.168.1.5:5000", 200),
        ("localhost", 200),
        ("evil.example", 403),
        ("evil.example:5000", 403),
    ] {
        for path in ["/api/tags", "/api/ps", "/api/version"] {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = exchange(home.address(), request.as_bytes());
            let answer = String::from_utf8(answer).unwrap();
            let expected = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&expected), "{host} {path}: {answer}");
        }
    }

    let api = json!({ "openai_api": { "enabled": true, "ollama_user": "viewer" } });
    let home = home_with(&model, api);
    assert_eq!(post(home.address(), "/api/chat", &[], &body).status, 403);
}
