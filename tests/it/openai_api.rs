//! The interfaces of OpenAI and Ollama over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use super::support::eventually;
use super::support::home::Home;
use super::support::http::{Answer, get, post};
use super::support::model::{Act, Model};
use super::support::socket::connect;

const COMPLETIONS: &str = "/v1/chat/completions";

fn home(model: &Model) -> Home {
    home_with(model, json!({}))
}

/// A server with more members of the configuration.
fn home_with(model: &Model, more: Value) -> Home {
    let mut config = model.config();
    config["openai_api"] = json!({ "enabled": true });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    Home::start(config)
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn ask(home: &Home, path: &str, body: Value) -> Answer {
    let authorization = bearer(&home.tokens.user);
    post(
        home.address(),
        path,
        &[("authorization", &authorization)],
        &body,
    )
}

fn complete(home: &Home, messages: Value) -> Value {
    let body = json!({ "model": "hearth", "messages": messages });
    let answer = ask(home, COMPLETIONS, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The objects of an event stream, up to `[DONE]`, which must come.
fn events(answer: &Answer) -> Vec<Value> {
    let mut lines = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let events = lines
        .by_ref()
        .take_while(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
    events
}

fn text_of(events: &[Value]) -> String {
    let content =
        |event: &Value| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned());
    events.iter().filter_map(content).collect()
}

/// What the model was shown, without the system prompt: role and text.
fn shown(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    messages
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| (word(&message["role"]), word(&message["content"])))
        .collect()
}

fn conversations(home: &Home) -> Vec<Value> {
    let data = home.admin().ask(json!({ "type": "list_conversations" }));
    data["conversations"].as_array().unwrap().clone()
}

/// How many connections have signed in, that of this question among them.
fn open(home: &Home) -> u64 {
    let info = home.admin().ask(json!({ "type": "server_info" }));
    info["connections"].as_u64().unwrap()
}

/// A request on a socket of its own, whose response is not read yet.
fn begin(address: SocketAddr, token: &str, body: &Value) -> TcpStream {
    let mut socket = connect(address);
    let body = body.to_string();
    write!(
        socket,
        "POST {COMPLETIONS} HTTP/1.1\r\nHost: hearth\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    socket
}

/// Reads lines until one holds this text.
fn read_until(reader: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no {text:?} came");
    }
}

#[test]
fn it_is_off_unless_wanted() {
    let home = Home::offline();
    for path in ["/v1/models", "/api/tags", "/api/version"] {
        assert_eq!(get(home.address(), path).status, 404, "{path}");
    }
    let body = json!({ "model": "hearth", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(ask(&home, COMPLETIONS, body).status, 404);
}

#[test]
fn a_token_of_a_user_is_the_key() {
    let home = home(&Model::saying("hi"));
    let body = json!({ "model": "hearth", "messages": [{ "role": "user", "content": "hi" }] });
    for (token, status, code) in [
        ("", 401, "invalid_api_key"),
        ("sk-wrong", 401, "invalid_api_key"),
        (&home.tokens.viewer, 403, "unauthorized"),
    ] {
        let authorization = bearer(token);
        let headers = [("authorization", authorization.as_str())];
        let answer = post(home.address(), COMPLETIONS, &headers, &body);
        assert_eq!(answer.status, status);
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], code);
        assert!(error["message"].is_string() && error["param"].is_null());

        let answer = post(home.address(), "/api/chat", &headers, &body);
        assert_eq!(answer.status, status);
        assert!(answer.json()["error"].is_string(), "{answer:?}");
    }
    assert_eq!(get(home.address(), "/v1/models").status, 401);
    assert!(conversations(&home).is_empty());
}

#[test]
fn errors_have_the_form_of_their_interface() {
    let home = home(&Model::saying("hi"));
    let authorization = bearer(&home.tokens.user);
    let headers = [("authorization", authorization.as_str())];
    for (path, status, code) in [
        ("/v1/embeddings", 404, "unknown_url"),
        ("/v1", 404, "unknown_url"),
        ("/v1/models", 405, "invalid_request"),
        ("/api/pull", 404, ""),
        ("/api/tags", 405, ""),
    ] {
        for headers in [&headers[..], &[]] {
            let answer = post(home.address(), path, headers, &json!({}));
            assert_eq!(answer.status, status, "{path}");
            let body = answer.json();
            assert!(body.get("status").is_none(), "{path}: {body}");
            match code {
                "" => assert!(body["error"].as_str().unwrap().contains(path), "{body}"),
                code => {
                    let message = body["error"]["message"].as_str().unwrap();
                    assert!(message.contains(path), "{body}");
                    assert_eq!(body["error"]["type"], "invalid_request_error");
                    assert_eq!(body["error"]["code"], code);
                    assert_eq!(body["error"].get("param"), Some(&Value::Null));
                }
            }
            let allowed = (status == 405).then_some("GET, HEAD");
            assert_eq!(answer.header("allow"), allowed, "{path}");
        }
        // Not theirs.
        let other = post(
            home.address(),
            &format!("/hooks{path}"),
            &headers,
            &json!({}),
        );
        assert_eq!(other.json()["code"], "not_found");
    }
    let wrong = get(home.address(), COMPLETIONS);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert!(wrong.json()["error"]["message"].is_string(), "{wrong:?}");
}

#[test]
fn a_completion_is_whole_or_streamed() {
    let model = Model::saying("Good evening to you.");
    let home = home(&model);
    let messages = json!([
        { "role": "system", "content": "Speak like a butler." },
        { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
    ]);
    let whole = complete(&home, messages.clone());
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["model"], "hearth");
    let choice = &whole["choices"][0];
    assert_eq!(choice["message"]["content"], "Good evening to you.");
    assert_eq!(choice["finish_reason"], "stop");
    let usage = &whole["usage"];
    assert_eq!(usage["prompt_tokens"], 10);
    assert_eq!(usage["completion_tokens"], 5);
    assert_eq!(usage["total_tokens"], 15);
    let system = model.requests()[0]["messages"][0].clone();
    let system = system["content"].as_str().unwrap();
    assert!(system.contains("Speak like a butler."), "{system}");
    assert!(system.starts_with("You are Hearth"), "{system}");

    let body = json!({
        "model": "scripted", "messages": messages, "stream": true, "temperature": 0.2,
        "stream_options": { "include_usage": true },
        "tools": [{ "type": "function", "function": { "name": "x", "parameters": {} } }],
    });
    let answer = ask(&home, COMPLETIONS, body);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let events = events(&answer);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(text_of(&events), "Good evening to you.");
    assert!(events.len() > 4, "it came in pieces: {events:?}");
    let [.., stop, usage] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(stop["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["usage"]["total_tokens"], 15);
    assert_eq!(usage["choices"], json!([]));
    // The client's tools are not offered to the model.
    let offered = model.requests()[1]["tools"].to_string();
    assert!(!offered.contains("\"x\""), "{offered}");
}

#[test]
fn a_chat_goes_on_without_being_doubled() {
    let model = Model::start(|_, number| match number {
        1 => Act::call("current_time", json!({})),
        number => Act::say(&format!("answer {number}")),
    });
    let home = home(&model);
    let mut messages = vec![json!({ "role": "user", "content": "one" })];
    for (streamed, next) in [(false, "two"), (true, "three"), (true, "four")] {
        let body = json!({ "model": "hearth", "messages": messages, "stream": streamed });
        let answer = ask(&home, COMPLETIONS, body);
        let text = match streamed {
            false => answer.json()["choices"][0]["message"]["content"].clone(),
            true => json!(text_of(&events(&answer))),
        };
        messages.push(json!({ "role": "assistant", "content": text }));
        messages.push(json!({ "role": "user", "content": next }));
    }
    let listed = conversations(&home);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["message_count"], 6);
    assert_eq!(listed[0]["channel"], "openai_api");
    assert_eq!(listed[0]["title"], "one");
    let last = shown(model.requests().last().unwrap());
    let users: Vec<&str> = last
        .iter()
        .filter(|(role, _)| role == "user")
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(users, ["[user] one", "[user] two", "[user] three"]);

    // The same question again, as "regenerate" asks it: a branch of its own.
    messages.truncate(3);
    complete(&home, json!(messages));
    let listed = conversations(&home);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(listed[0]["message_count"], 4);
}

#[test]
fn an_unknown_history_is_taken_over() {
    let model = Model::saying("Rex, as you said.");
    let home = home(&model);
    let mut messages = json!([
        { "role": "user", "content": "My dog is called Rex." },
        { "role": "assistant", "content": "A fine name." },
        { "role": "user", "content": "What is my dog called?" },
    ]);
    complete(&home, messages.clone());
    let expected = [
        ("user", "[user] My dog is called Rex."),
        ("assistant", "A fine name."),
        ("user", "[user] What is my dog called?"),
    ];
    let expected = expected.map(|(role, text)| (role.to_owned(), text.to_owned()));
    assert_eq!(shown(&model.requests()[0]), expected);
    let listed = conversations(&home);
    assert_eq!(listed[0]["message_count"], 4);
    assert_eq!(listed[0]["title"], "My dog is called Rex.");

    // From here on it is known.
    let list = messages.as_array_mut().unwrap();
    list.push(json!({ "role": "assistant", "content": "Rex, as you said." }));
    list.push(json!({ "role": "user", "content": "And now?" }));
    complete(&home, messages.clone());
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(6)));

    // Nobody else's conversation goes on, though it was the same.
    let list = messages.as_array_mut().unwrap();
    list.push(json!({ "role": "assistant", "content": "Rex, as you said." }));
    list.push(json!({ "role": "user", "content": "And who am I?" }));
    let authorization = bearer(&home.tokens.admin);
    let headers = [("authorization", authorization.as_str())];
    let body = json!({ "model": "hearth", "messages": messages });
    assert_eq!(
        post(home.address(), COMPLETIONS, &headers, &body).status,
        200
    );
    assert_eq!(conversations(&home).len(), 2);
}

#[test]
fn a_client_that_cuts_its_history_keeps_its_conversation() {
    let model = Model::start(|_, number| Act::say(&format!("answer {number}")));
    let home = home(&model);
    let mut messages: Vec<Value> = Vec::new();
    for number in 0..7 {
        messages.push(json!({ "role": "user", "content": format!("question {number}") }));
        // Like Home Assistant, which sends no more than so many.
        let recent = &messages[messages.len().saturating_sub(9)..];
        let reply = complete(&home, json!(recent));
        let text = reply["choices"][0]["message"]["content"].clone();
        messages.push(json!({ "role": "assistant", "content": text }));
    }
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(14)));
}

#[test]
fn what_cannot_be_done_is_refused_clearly() {
    let home = home(&Model::saying("hi"));
    let hi = json!([{ "role": "user", "content": "hi" }]);
    let picture = json!([{ "role": "user", "content": [
        { "type": "text", "text": "what is this?" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } },
    ] }]);
    for (body, status, says) in [
        (
            json!({ "model": "gpt-5", "messages": hi }),
            404,
            "\"gpt-5\"",
        ),
        (
            json!({ "model": "hearth", "messages": hi, "n": 2 }),
            400,
            "\"n\" must be 1",
        ),
        (
            json!({ "model": "hearth", "messages": picture }),
            400,
            "image_url",
        ),
        (
            json!({ "model": "hearth", "messages": [] }),
            400,
            "\"messages\"",
        ),
        (json!({ "model": "hearth" }), 400, "messages"),
        (json!([]), 400, "not understood"),
    ] {
        let answer = ask(&home, COMPLETIONS, body);
        assert_eq!(answer.status, status, "{answer:?}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    let answer = get(home.address(), COMPLETIONS);
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert!(conversations(&home).is_empty());
}

#[test]
fn a_failure_has_its_status_or_ends_the_stream() {
    let model = Model::start(|_, _| Act::error(401, "", "bad key"));
    let home = home(&model);
    for stream in [false, true] {
        let body = json!({
            "model": "hearth", "messages": [{ "role": "user", "content": "hi" }], "stream": stream,
        });
        let answer = ask(&home, COMPLETIONS, body);
        assert!(answer.status >= 500, "{answer:?}");
        assert_eq!(answer.json()["error"]["type"], "server_error");
    }
}

#[test]
fn a_client_that_leaves_loses_nothing() {
    let model = Model::acting(vec![Act::Pause("half and half".to_owned())]);
    let home = home(&model);
    let body = json!({
        "model": "hearth", "messages": [{ "role": "user", "content": "hi" }], "stream": true,
    });
    let mut reader = BufReader::new(begin(home.address(), &home.tokens.user, &body));
    read_until(&mut reader, "\"half");
    drop(reader);
    // Its connection ends while the model is still silent.
    eventually("the stream's end", || (open(&home) == 1).then_some(()));
    model.release();
    eventually("the reply", || {
        let listed = conversations(&home);
        (listed.first()?["message_count"] == 2).then_some(())
    });
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let long = format!("{} ", "x".repeat(1_000)).repeat(7_000);
    let model = Model::acting(vec![Act::Say(long)]);
    let limits = json!({ "ping_seconds": 1, "dead_seconds": 2, "outbox_bytes": 65_536 });
    let home = home_with(&model, json!({ "limits": limits }));
    let body = json!({
        "model": "hearth", "messages": [{ "role": "user", "content": "hi" }], "stream": true,
    });
    let socket = begin(home.address(), &home.tokens.user, &body);
    eventually("the reply", || {
        let listed = conversations(&home);
        (listed.first()?["message_count"] == 2).then_some(())
    });
    // It reads nothing until its time is up and its connection is given up.
    eventually("the stream's end", || (open(&home) == 1).then_some(()));
    let mut read = Vec::new();
    let _ = BufReader::new(socket).read_to_end(&mut read);
    assert!(!read.ends_with(b"0\r\n\r\n"), "{} bytes came", read.len());
}

#[test]
fn a_stream_shows_that_it_waits_for_approval() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "Rex is a dog." })),
        Act::say("I shall remember."),
    ]);
    let home = home_with(&model, json!({ "permission_mode": "ask" }));
    let body = json!({
        "model": "hearth", "messages": [{ "role": "user", "content": "hi" }], "stream": true,
    });
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let mut reader = BufReader::new(begin(home.address(), &home.tokens.user, &body));
    read_until(&mut reader, ": waiting for approval");
    let asked = admin.event("approval.requested");
    admin.ask(json!({ "type": "approve", "approval_id": asked["approval_id"] }));
    read_until(&mut reader, "remember.");
    read_until(&mut reader, "[DONE]");
}

#[test]
fn a_whole_response_does_not_wait_for_approval_for_ever() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "Rex is a dog." })),
        Act::say("I shall remember."),
    ]);
    let more = json!({ "permission_mode": "ask", "limits": { "turn_seconds": 1 } });
    let home = home_with(&model, more);
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let body = json!({ "model": "hearth", "messages": messages });
    let answer = ask(&home, COMPLETIONS, body);
    assert_eq!(answer.status, 504, "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("permission"), "{message}");
}

#[test]
fn a_repeated_key_runs_no_second_turn() {
    let model = Model::saying("once");
    let home = home(&model);
    let authorization = bearer(&home.tokens.user);
    let headers = [
        ("authorization", authorization.as_str()),
        ("idempotency-key", "key-1"),
    ];
    for stream in [true, true] {
        let messages = json!([{ "role": "user", "content": "hi" }]);
        let body = json!({ "model": "hearth", "messages": messages, "stream": stream });
        let answer = post(home.address(), COMPLETIONS, &headers, &body);
        assert_eq!(text_of(&events(&answer)), "once");
    }
    let body = json!({ "model": "hearth", "messages": [{ "role": "user", "content": "else" }] });
    let answer = post(home.address(), COMPLETIONS, &headers, &body);
    assert_eq!(answer.status, 422);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn ollamas_clients_are_answered_line_by_line() {
    let model = Model::saying("Good evening to you.");
    let home = home(&model);
    let authorization = bearer(&home.tokens.user);
    let tags = http_get(&home, "/api/tags", &authorization);
    assert_eq!(tags["models"][0]["name"], "hearth:latest");
    assert_eq!(tags["models"][1]["name"], "scripted:latest");
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
    let loaded = ask(&home, "/api/chat", json!({ "model": "hearth" })).json();
    assert_eq!(loaded["done_reason"], "load");
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

    let api = json!({ "openai_api": { "enabled": true, "ollama_user": "viewer" } });
    let home = home_with(&model, api);
    assert_eq!(post(home.address(), "/api/chat", &[], &body).status, 403);
}

#[test]
fn a_connection_goes_on_after_a_stream_and_old_clients_get_no_chunks() {
    let model = Model::saying("hello there");
    let home = home(&model);
    let body = json!({
        "model": "hearth", "messages": [{ "role": "user", "content": "hi" }], "stream": true,
    });
    let socket = begin(home.address(), &home.tokens.user, &body);
    let mut second = socket.try_clone().unwrap();
    let mut reader = BufReader::new(socket);
    read_until(&mut reader, "Transfer-Encoding: chunked");
    read_until(&mut reader, "[DONE]");
    write!(second, "GET /health HTTP/1.1\r\nHost: hearth\r\n\r\n").unwrap();
    read_until(&mut reader, "HTTP/1.1 200 OK");

    let body = body.to_string();
    let request = format!(
        "POST {COMPLETIONS} HTTP/1.0\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        home.tokens.user,
        body.len()
    );
    let mut socket = connect(home.address());
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        !head.contains("chunked") && !head.contains("Content-Length"),
        "{head}"
    );
    assert!(
        body.starts_with("data: ") && body.ends_with("data: [DONE]\n\n"),
        "{body}"
    );
}
