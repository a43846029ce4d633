//! What programs do beside asking: they name their chats, hang up, run on pages from
//! elsewhere and repeat what failed.

use std::io::BufReader;

use serde_json::{Value, json};

use super::streams::{begin, open, read_until};
use super::{COMPLETIONS, ask, bearer, complete, conversations, events, home, home_with, shown};
use support::eventually;
use support::home::Home;
use support::http::{exchange, post};
use support::model::{Act, Model};

fn ask_in(home: &Home, chat: &str, messages: &Value) -> Value {
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", authorization.as_str()), ("x-chat", chat)];
    let body = json!({ "model": "hearth", "messages": messages });
    let answer = post(home.address(), COMPLETIONS, &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[test]
fn the_name_of_a_chat_is_its_conversation() {
    let model = Model::saying("hi");
    let home = home(&model);
    let first = json!([{ "role": "user", "content": "one" }]);
    ask_in(&home, "chat-1", &first);
    // The same message with the text of a file, and a history that was never said.
    let other = json!([
        { "role": "user", "content": "one\n\nwith the text of a file" },
        { "role": "assistant", "content": "Quite another reply." },
        { "role": "user", "content": "two" },
    ]);
    ask_in(&home, "chat-1", &other);
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(4)));
    let texts = shown(model.requests().last().unwrap());
    assert_eq!(texts[0].1, "[user] one");
    // In the body, as some name it; another chat, and another person, are others.
    let body = json!({
        "model": "hearth", "messages": first, "metadata": { "chat_id": "chat-1" },
    });
    assert_eq!(ask(&home, COMPLETIONS, body.clone()).status, 200);
    assert_eq!(conversations(&home).len(), 1);
    ask_in(&home, "chat-2", &first);
    assert_eq!(conversations(&home).len(), 2);
    let authorization = bearer(&home.tokens.admin);
    let headers = [("authorization", authorization.as_str())];
    assert_eq!(
        post(home.address(), COMPLETIONS, &headers, &body).status,
        200
    );
    assert_eq!(conversations(&home).len(), 2);
    let long = "x".repeat(256);
    let authorization = bearer(&home.tokens.user);
    let headers = [
        ("authorization", authorization.as_str()),
        ("x-chat", &*long),
    ];
    assert_eq!(
        post(home.address(), COMPLETIONS, &headers, &body).status,
        400
    );
}

/// A conversation whose first reply was stopped after its first words.
fn stopped(model: &Model, home: &Home) -> String {
    let body = json!({
        "model": "hearth", "messages": [{ "role": "user", "content": "one" }], "stream": true,
    });
    let mut reader = BufReader::new(begin(home.address(), &home.tokens.user, &body));
    read_until(&mut reader, "\"half");
    drop(reader);
    eventually("the stream's end", || (open(home) == 1).then_some(()));
    eventually("the turn's end", || {
        let info = home.admin().ask(json!({ "type": "server_info" }));
        (info["turns"]["running"].as_u64().unwrap_or_default() == 0).then_some(())
    });
    model.release();
    "half".to_owned()
}

#[test]
fn a_program_that_hangs_up_stops_its_turn_and_goes_on_in_its_conversation() {
    let model = Model::start(|_, number| match number {
        0 => Act::Pause("half and half and more".to_owned()),
        _ => Act::say("Yes."),
    });
    let home = home(&model);
    let heard = stopped(&model, &home);
    let messages = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": heard },
        { "role": "user", "content": "two" },
    ]);
    complete(&home, messages);
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(4)));
    let texts = shown(model.requests().last().unwrap());
    assert!(
        texts[1].1.contains("half") && !texts[1].1.contains("more"),
        "{texts:?}"
    );
}

#[test]
fn a_reply_that_is_not_streamed_says_that_somebody_is_asked() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "Rex is a dog." })),
        Act::say("I shall remember."),
    ]);
    let home = home_with(&model, json!({ "permission_mode": "ask" }));
    let reply = complete(&home, json!([{ "role": "user", "content": "hi" }]));
    let text = reply["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(
        text.contains("Waiting for permission to use remember"),
        "{text}"
    );
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply["usage"]["total_tokens"], 15, "{reply}");
    // The turn goes on without it.
    let mut admin = home.admin();
    let approvals = admin.ask(json!({ "type": "list_approvals" }));
    let id = approvals["approvals"][0]["approval_id"].clone();
    admin.ask(json!({ "type": "approve", "approval_id": id }));
    eventually("the reply", || {
        let listed = conversations(&home);
        (listed.first()?["message_count"] == 2).then_some(())
    });
}

/// The limit holds for a chat that has a name, and for one that is known by its history.
#[test]
fn too_many_that_wait_for_a_person_are_refused() {
    let model = Model::start(|_, _| Act::call("remember", json!({ "content": "Rex is a dog." })));
    let limits = json!({ "waiting_turns_per_conversation": 2 });
    let home = home_with(
        &model,
        json!({ "permission_mode": "ask", "limits": limits }),
    );
    let authorization = bearer(&home.tokens.user);
    for chat in ["chat-1", ""] {
        let headers = [("authorization", &*authorization), ("x-chat", chat)];
        let mut messages = Vec::new();
        let mut say = |text: &str| {
            messages.push(json!({ "role": "user", "content": text }));
            let body = json!({ "model": "hearth", "messages": messages });
            let answer = post(home.address(), COMPLETIONS, &headers, &body);
            if answer.status == 200 {
                messages.push(answer.json()["choices"][0]["message"].clone());
            } else {
                messages.pop();
            }
            answer
        };
        for number in 1..=2 {
            let answer = say(&format!("{chat} {number}"));
            assert!(answer.body.contains("Waiting for permission"), "{answer:?}");
        }
        // The second's question is asked before its turn gives up its place.
        let refused = eventually("the second waits, too", || {
            Some(say("and?")).filter(|answer| answer.status == 429)
        });
        assert!(
            refused
                .body
                .contains("in this conversation for permission to use a tool")
        );
        assert!(refused.header("retry-after").is_some());
    }
    assert_eq!(conversations(&home).len(), 2);
}

#[test]
fn a_turn_that_failed_is_not_repeated_by_the_library() {
    let model = Model::start(|_, _| Act::error(401, "", "bad key"));
    let home = home(&model);
    let hi = json!({ "model": "hearth", "messages": [{ "role": "user", "content": "hi" }] });
    let answer = ask(&home, COMPLETIONS, hi);
    assert_eq!(answer.status, 424, "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let unknown = json!({ "model": "x", "messages": [] });
    assert_eq!(
        ask(&home, COMPLETIONS, unknown).header("x-should-retry"),
        None
    );
}

/// As OpenAI says it: its libraries neither wait nor ask again.
#[test]
fn a_budget_that_is_used_up_is_a_quota() {
    let model = Model::saying("hi");
    // A reply costs 15.
    let home = home_with(&model, json!({ "budget": { "monthly_tokens": 10 } }));
    let hi = [json!({ "role": "user", "content": "hi" })];
    complete(&home, json!(hi));
    for name in ["hearth", "hearth-plain"] {
        for stream in [false, true] {
            let body = json!({ "model": name, "messages": hi, "stream": stream });
            let answer = ask(&home, COMPLETIONS, body);
            assert_eq!(answer.status, 429, "{answer:?}");
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            assert_eq!(answer.header("retry-after"), None);
            let error = &answer.json()["error"];
            assert_eq!(error["code"], "insufficient_quota", "{error}");
            assert_eq!(error["type"], "insufficient_quota", "{error}");
        }
    }
    let body = json!({ "model": "hearth", "messages": hi, "stream": false });
    assert_eq!(ask(&home, "/api/chat", body).status, 429);
    // Whoever speaks Hearth's own protocol learns what they did before.
    let mut user = home.websocket(&home.tokens.user);
    user.send(&json!({ "type": "chat", "message": "hi" }));
    assert_eq!(user.response()["code"], "server_error");
    assert_eq!(model.requests().len(), 1);
}

/// What is refused before and while the body is read has the form of its interface, too.
#[test]
fn bodies_and_pages_are_refused_in_the_form_of_the_interface() {
    let model = Model::saying("hi");
    let home = home_with(
        &model,
        json!({ "limits": { "model_api_body_bytes": 1024 } }),
    );
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", authorization.as_str())];
    let long = json!({ "model": "hearth", "prompt": "x".repeat(2000) });
    let page = [headers[0], ("origin", "https://evil.example")];
    for (headers, body, status) in [(&headers[..], &long, 413), (&page, &json!({}), 403)] {
        let answer = post(home.address(), COMPLETIONS, headers, body);
        let error = &answer.json()["error"];
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(error["message"].is_string() && error["type"].is_string());
        let answer = post(home.address(), "/api/generate", headers, body);
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"].is_string(), "{answer:?}");
        assert!(answer.json().get("status").is_none(), "{answer:?}");
    }
}

#[test]
fn pages_that_may_use_the_server_can_read_its_answers() {
    let model = Model::saying("hi");
    let home = home_with(
        &model,
        json!({ "allowed_origins": ["https://app.example", "app://obsidian.md"] }),
    );
    let authorization = bearer(&home.tokens.user);
    for (origin, may) in [
        ("https://app.example", true),
        ("app://obsidian.md", true),
        ("https://evil.example", false),
    ] {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization,x-stainless-os",
            ),
        ];
        let answer = exchange(home.address(), "OPTIONS", COMPLETIONS, &headers, b"");
        let allowed = answer
            .header("access-control-allow-headers")
            .unwrap_or_default();
        assert_eq!(allowed.contains("x-stainless-os"), may, "{origin}");
        for stream in [false, true] {
            let body = json!({
                "model": "hearth", "stream": stream,
                "messages": [{ "role": "user", "content": "hi" }],
            });
            let headers = [
                ("authorization", authorization.as_str()),
                ("origin", origin),
            ];
            let answer = post(home.address(), COMPLETIONS, &headers, &body);
            assert_eq!(answer.status, if may { 200 } else { 403 }, "{answer:?}");
            let shared = answer.header("access-control-allow-origin");
            assert_eq!(shared, may.then_some(origin), "{answer:?}");
            let readable = answer.header("access-control-expose-headers");
            let named = readable.is_some_and(|names| names.contains("X-Hearth-Ignored"));
            assert_eq!(named, may, "{answer:?}");
        }
        let headers = [
            ("authorization", authorization.as_str()),
            ("origin", origin),
        ];
        let answer = post(home.address(), COMPLETIONS, &headers, &json!({}));
        let shared = answer.header("access-control-allow-origin");
        assert_eq!(shared, may.then_some(origin), "{answer:?}");
    }
}

#[test]
fn any_content_type_will_do_except_for_pages() {
    let model = Model::saying("hi");
    let home = home(&model);
    let authorization = bearer(&home.tokens.user);
    let body = json!({
        "model": "hearth", "stream": false, "prompt": "hi",
        "messages": [{ "role": "user", "content": "hi" }],
    });
    let body = body.to_string();
    for path in [COMPLETIONS, "/api/chat", "/api/generate"] {
        for kind in [
            None,
            Some("application/x-www-form-urlencoded"),
            Some("text/plain"),
        ] {
            let mut headers = vec![("authorization", authorization.as_str())];
            headers.extend(kind.map(|kind| ("content-type", kind)));
            let answer = exchange(home.address(), "POST", path, &headers, body.as_bytes());
            assert_eq!(answer.status, 200, "{path} {kind:?}");
            headers.push(("origin", "http://localhost"));
            headers.push(("host", "localhost"));
            let answer = exchange(home.address(), "POST", path, &headers, body.as_bytes());
            assert_eq!(answer.status, 415, "{path} {kind:?}");
        }
    }
}

#[test]
fn why_a_reply_is_not_whole_is_passed_on() {
    let cut = json!({
        "choices": [{ "message": { "role": "assistant", "content": "And so" },
                      "finish_reason": "length" }],
    });
    let model = Model::start(move |_, _| Act::json(&cut));
    let home = home(&model);
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let reply = complete(&home, messages.clone());
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    let body = json!({ "model": "hearth", "messages": messages, "stream": true });
    let events = events(&ask(&home, COMPLETIONS, body));
    assert_eq!(
        events.last().unwrap()["choices"][0]["finish_reason"],
        "length"
    );
    let body = json!({ "model": "hearth", "messages": messages, "stream": false });
    assert_eq!(
        ask(&home, "/api/chat", body).json()["done_reason"],
        "length"
    );
}
