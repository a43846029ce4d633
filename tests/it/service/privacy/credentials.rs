//! What a program began it alone continues, while the same people see it.

use super::narrow_tokens::narrowed;
use super::*;
use support::http::Answer;

const COMPLETIONS: &str = "/v1/chat/completions";

fn said(role: &str, content: &str) -> Value {
    json!({ "role": role, "content": content })
}

/// Sends these messages with these headers.
fn send(house: &House, path: &str, token: Option<&str>, chat: &str, messages: &Value) -> Answer {
    let authorization = format!("Bearer {}", token.unwrap_or_default());
    let mut headers = vec![("x-chat", chat)];
    headers.extend(token.map(|_| ("authorization", authorization.as_str())));
    let body = json!({ "model": "hearth", "messages": messages, "stream": false });
    post(house.home.address(), path, &headers, &body)
}

fn ask(house: &House, token: &str, chat: &str, messages: &Value) {
    let answer = send(house, COMPLETIONS, Some(token), chat, messages);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The conversations that somebody sees, by their first messages: who sees them, and how
/// many messages they have.
fn seen(house: &House, who: usize) -> Vec<(String, Value, u64)> {
    let mut client = house.websocket(who);
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let mut seen: Vec<_> = listed["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let count = one["message_count"].as_u64().unwrap();
            (
                one["title"].as_str().unwrap().to_owned(),
                one["audience"].clone(),
                count,
            )
        })
        .collect();
    seen.sort_by_key(|one| (one.0.clone(), one.1.to_string(), one.2));
    seen
}

fn of(title: &str, audience: &str, count: u64) -> (String, Value, u64) {
    (title.to_owned(), json!(audience), count)
}

#[test]
fn the_same_opening_words_in_a_second_program_are_another_conversation() {
    let house = House::empty();
    let display = narrowed(&house, &json!({ "only": "household" }));
    let second = narrowed(&house, &json!({}));
    let opening = json!([said("user", "hello")]);
    let on = json!([
        said("user", "hello"),
        said("assistant", "fine"),
        said("user", "my diagnosis"),
    ]);
    ask(&house, &display, "", &opening);
    let answer = send(&house, "/api/chat", None, "", &opening);
    assert_eq!(answer.status, 200, "{answer:?}");
    let household = [of("hello", "household", 2), of("hello", "household", 2)];
    assert_eq!(seen(&house, 1), household);
    for token in [&house.tokens[1], &second] {
        ask(&house, token, "", &on);
    }
    assert_eq!(seen(&house, 2), household, "nobody else reads it");
    assert_eq!(
        seen(&house, 1)[2..],
        [of("hello", "private", 4), of("hello", "private", 4)]
    );
    // Each goes on with its own.
    ask(&house, &display, "", &on);
    let answer = send(&house, "/api/chat", None, "", &on);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        seen(&house, 2),
        [of("hello", "household", 4), of("hello", "household", 4)]
    );
}

#[test]
fn a_chat_s_name_is_the_program_s_own() {
    let house = House::with(json!({ "mcp_api": { "enabled": true } }));
    let display = narrowed(&house, &json!({ "only": "household" }));
    let call = |token: &str, message: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("accept", "application/json, text/event-stream"),
        ];
        let arguments = json!({ "message": message, "chat": "1" });
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "ask", "arguments": arguments },
        });
        let answer = post(house.home.address(), "/mcp", &headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("fine"), "{answer:?}");
    };
    ask(&house, &display, "1", &json!([said("user", "a")]));
    call(&display, "b");
    let answer = send(&house, "/api/chat", None, "1", &json!([said("user", "c")]));
    assert_eq!(answer.status, 200, "{answer:?}");
    let token = &house.tokens[1];
    ask(&house, token, "1", &json!([said("user", "d")]));
    call(token, "e");
    ask(&house, token, "1", &json!([said("user", "my diagnosis")]));
    call(token, "my diagnosis");
    let household = ["a", "b", "c"].map(|title| of(title, "household", 2));
    assert_eq!(seen(&house, 2), household);
    let own = ["d", "e"].map(|title| of(title, "private", 4));
    assert_eq!(seen(&house, 1)[3..], own);
}

#[test]
fn a_conversation_that_was_shared_meanwhile_is_not_continued() {
    let house = House::empty();
    let token = &house.tokens[1];
    let on = json!([
        said("user", "hello"),
        said("assistant", "fine"),
        said("user", "my diagnosis"),
    ]);
    for (chat, opening) in [("", "hello"), ("1", "named")] {
        ask(&house, token, chat, &json!([said("user", opening)]));
    }
    let mut client = house.websocket(1);
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let mut share = |audience: &str| {
        for one in listed["conversations"].as_array().unwrap() {
            client.ask(json!({
                "type": "share_conversation", "conversation_id": one["id"], "audience": audience,
            }));
        }
    };
    share("household");
    ask(&house, token, "", &on);
    ask(&house, token, "1", &json!([said("user", "my diagnosis")]));
    let shared = ["hello", "named"].map(|title| of(title, "household", 2));
    assert_eq!(seen(&house, 2), shared);
    assert_eq!(
        seen(&house, 1)[1..],
        [
            of("hello", "private", 4),
            of("my diagnosis", "private", 2),
            of("named", "household", 2)
        ]
    );
}

/// Calls `light`, which the program runs, and says whether it shines.
fn lights() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let result = last["content"].as_str().unwrap_or_default();
        match last["role"] == "tool" {
            true if result.contains("shines") => Act::say("It is on."),
            true => Act::say("Who knows?"),
            false => Act::call("light", json!({})),
        }
    })
}

#[test]
fn results_are_taken_from_the_program_that_was_asked_alone() {
    let model = lights();
    let house = House::with(model.config());
    let display = narrowed(&house, &json!({ "only": "household" }));
    let second = narrowed(&house, &json!({}));
    let own = &house.tokens[1];
    let opening = said("user", "my diagnosis");
    let post = |token: &str, messages: &[Value]| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        let tool = json!({ "type": "function", "function": { "name": "light" } });
        let body = json!({ "model": "hearth", "messages": messages, "tools": [tool] });
        post(house.home.address(), COMPLETIONS, &headers, &body)
    };
    let asked = post(own, std::slice::from_ref(&opening)).json()["choices"][0]["message"].take();
    let result = |id: &Value, content: &str| json!({ "role": "tool", "tool_call_id": id, "content": content });
    let id = &asked["tool_calls"][0]["id"];
    // With the call's id alone, and with all that was said.
    for token in [&display, &second, &house.tokens[2], &house.tokens[0]] {
        let [known, unknown] = [id, &json!("nobody's")].map(|id| {
            let answer = post(token, &[opening.clone(), result(id, "guessed")]);
            (answer.status, answer.body)
        });
        assert_eq!(known, unknown);
        assert_eq!(known.0, 404, "{known:?}");
        let [known, unknown] = [id, &json!("nobody's")].map(|id| {
            let mut call = asked.clone();
            call["tool_calls"][0]["id"] = id.clone();
            let answer = post(token, &[opening.clone(), call, result(id, "guessed")]);
            (answer.status, answer.json()["choices"][0]["message"].take())
        });
        assert_eq!(known, unknown);
    }
    let answer = post(
        own,
        &[opening.clone(), asked.clone(), result(id, "it shines")],
    );
    assert!(answer.body.contains("It is on."), "{answer:?}");
    assert_eq!(seen(&house, 1)[..1], [of("my diagnosis", "household", 2)]);
}
