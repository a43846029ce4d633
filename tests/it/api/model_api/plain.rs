//! The household's model without the household.

use serde_json::{Value, json};

use std::io::BufReader;

use super::streams::{begin, read_until};
use super::{COMPLETIONS, ask, bearer, conversations, events, home, home_with, text_of};
use support::eventually;
use support::http::post;
use support::model::{Act, Model};
use support::program::{printed, run};

#[test]
fn the_plain_model_gets_what_was_sent_and_nothing_is_stored() {
    let model = Model::saying("A title");
    let more = json!({ "people": { "user": { "instructions": "Answers for a nine year old." } } });
    let home = home_with(&model, more);
    let messages = json!([
        { "role": "system", "content": "Make titles." },
        { "role": "user", "content": "### Task: a title" },
    ]);
    let authorization = bearer(&home.tokens.user);
    for (name, headers) in [
        ("hearth-plain", vec![]),
        ("hearth", vec![("x-task", "title_generation")]),
    ] {
        for stream in [false, true] {
            let body =
                json!({ "model": name, "messages": messages, "stream": stream, "stop": "x" });
            let mut all = vec![
                ("authorization", authorization.as_str()),
                ("idempotency-key", "the same"),
            ];
            all.extend(&headers);
            let answer = post(home.address(), COMPLETIONS, &all, &body);
            assert_eq!(answer.status, 200, "{answer:?}");
            // Nothing is kept that would be repeated.
            let ignored = answer.header("x-hearth-ignored");
            assert_eq!(ignored, Some("Idempotency-Key"));
            let text = match stream {
                true => text_of(&events(&answer)),
                false => {
                    let whole = answer.json();
                    assert_eq!(whole["usage"]["total_tokens"], 15, "{whole}");
                    let text = whole["choices"][0]["message"]["content"].as_str();
                    text.unwrap().to_owned()
                }
            };
            assert_eq!(text, "A title");
        }
    }
    let answer = ask(
        &home,
        "/api/chat",
        json!({ "model": "hearth-plain:latest", "messages": messages, "stream": false }),
    );
    assert_eq!(answer.json()["message"]["content"], "A title", "{answer:?}");
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    let sent = requests[0].clone();
    assert!(
        sent.get("tools").is_none() && sent["stop"] == json!(["x"]),
        "{sent}"
    );
    assert_eq!(
        sent["messages"],
        json!([
            { "role": "system", "content": "Make titles.\n\nThe household says of the \
                person who asks what follows. It holds whatever stands above:\n\nAnswers for a \
                nine year old." },
            { "role": "user", "content": "### Task: a title" },
        ])
    );
    assert!(conversations(&home).is_empty());
    // It counts: 5 times 10 tokens in.
    eventually("the usage", || {
        let output = run(home.folder.path(), &["usage", "--json"]);
        printed(&output).contains("50").then_some(())
    });
    // An empty task is a chat, as Open WebUI sends it with messages; so is a template that
    // nothing filled in, which is no name of a chat either.
    for (count, task) in [(1, ""), (2, "{{TASK}}")] {
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-task", task),
            ("x-chat", "{{CHAT_ID}}"),
        ];
        let messages = json!([{ "role": "user", "content": format!("chat {count}") }]);
        let body = json!({ "model": "hearth", "messages": messages });
        assert_eq!(
            post(home.address(), COMPLETIONS, &headers, &body).status,
            200
        );
        assert_eq!(conversations(&home).len(), count);
    }
}

#[test]
fn the_plain_model_calls_the_tools_of_the_client() {
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            false => Act::call("light", json!({ "on": true })),
            true => Act::say("It is on."),
        }
    });
    let home = home(&model);
    let tool = json!({ "type": "function", "function": { "name": "light" } });
    let mut messages = json!([{ "role": "user", "content": "light on" }]);
    let body = |messages: &Value| json!({ "model": "hearth-plain", "messages": messages, "tools": [tool] });
    let first = ask(&home, COMPLETIONS, body(&messages)).json()["choices"][0].clone();
    assert_eq!(first["finish_reason"], "tool_calls", "{first}");
    let id = first["message"]["tool_calls"][0]["id"].clone();
    let list = messages.as_array_mut().unwrap();
    list.push(first["message"].clone());
    list.push(json!({ "role": "tool", "tool_call_id": id, "content": "done" }));
    let last = ask(&home, COMPLETIONS, body(&messages)).json();
    assert_eq!(
        last["choices"][0]["message"]["content"], "It is on.",
        "{last}"
    );
    assert!(conversations(&home).is_empty());
}

#[test]
fn a_plain_stream_ends_with_its_person() {
    let model = Model::acting(vec![Act::Pause("half and half".to_owned())]);
    let home = home(&model);
    let body = json!({
        "model": "hearth-plain", "messages": [{ "role": "user", "content": "hi" }],
        "stream": true,
    });
    let mut reader = BufReader::new(begin(home.address(), &home.tokens.user, &body));
    read_until(&mut reader, "\"half");
    home.admin()
        .ask(json!({ "type": "remove_user", "name": "user" }));
    // The model is still silent.
    read_until(&mut reader, "the token is no longer valid");
    model.release();
}

#[test]
fn the_plain_model_fails_like_the_other() {
    let model = Model::start(|_, _| Act::error(401, "", "bad key"));
    let home = home(&model);
    let body = json!({ "model": "hearth-plain", "messages": [{ "role": "user", "content": "x" }] });
    let answer = ask(&home, COMPLETIONS, body);
    assert_eq!(answer.status, 424, "{answer:?}");
    let nothing = json!({ "model": "hearth-plain", "messages": [] });
    assert_eq!(ask(&home, COMPLETIONS, nothing).status, 400);
}

/// What a reply begins with, and instructions without a message, as some programs send them.
#[test]
fn the_plain_model_finishes_a_reply_and_takes_instructions_alone() {
    let model = Model::saying("on");
    let home = home(&model);
    let said = |role: &str, content: &str| json!({ "role": role, "content": content });
    for (messages, expected) in [
        (
            json!([said("user", "go"), said("assistant", "And so ")]),
            json!([said("user", "go"), said("assistant", "And so")]),
        ),
        (
            json!([said("system", "Write a line.")]),
            json!([said("user", "Write a line.")]),
        ),
    ] {
        for (path, more) in [
            (COMPLETIONS, json!({})),
            (
                "/api/chat",
                json!({ "options": { "temperature": null, "top_k": null } }),
            ),
        ] {
            let mut body =
                json!({ "model": "hearth-plain", "messages": messages, "stream": false });
            for (name, value) in more.as_object().unwrap() {
                body[name] = value.clone();
            }
            let answer = ask(&home, path, body);
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.header("x-hearth-ignored"), None);
            assert_eq!(model.requests().pop().unwrap()["messages"], expected);
        }
    }
    let answer = ask(
        &home,
        COMPLETIONS,
        json!({ "model": "hearth", "messages": [said("user", "go"), said("assistant", "so")] }),
    );
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("hearth-plain"), "{answer:?}");
}
