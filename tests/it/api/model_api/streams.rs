//! Answers in pieces: how they end, wait and are left.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, complete, conversations, events, home, home_with, text_of};
use support::eventually;
use support::home::Home;
use support::model::{Act, Model};
use support::socket::{Socket, connect};

/// How many connections have signed in, that of this question among them.
pub fn open(home: &Home) -> u64 {
    let info = home.admin().ask(json!({ "type": "server_info" }));
    info["connections"].as_u64().unwrap()
}

/// A request on a socket of its own, whose response is not read yet.
pub fn begin(address: SocketAddr, token: &str, body: &Value) -> Socket {
    let mut socket = connect(address);
    send(&mut socket, token, body);
    socket
}

/// Sends a request on a socket.
pub fn send(socket: &mut Socket, token: &str, body: &Value) {
    let body = body.to_string();
    write!(
        socket,
        "POST {COMPLETIONS} HTTP/1.1\r\nHost: hearth\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
}

/// Reads lines until one holds this text.
pub fn read_until(reader: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no {text:?} came");
    }
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
        assert_eq!(answer.status, 424, "{answer:?}");
        assert_eq!(answer.json()["error"]["type"], "server_error");
    }
}

#[test]
fn a_client_that_leaves_loses_nothing() {
    let model = Model::acting(vec![Act::Pause("half and half".to_owned())]);
    let api = json!({ "enabled": true, "cancel_on_disconnect": false });
    let home = home_with(&model, json!({ "openai_api": api }));
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
    read_until(&mut reader, "Waiting for permission to use remember");
    let asked = admin.event("approval.requested");
    admin.ask(json!({ "type": "approve", "approval_id": asked["approval_id"] }));
    read_until(&mut reader, "remember.");
    read_until(&mut reader, "[DONE]");
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

#[test]
fn a_completion_without_a_chat_is_whole_or_streamed() {
    let model = Model::saying("And so on.");
    let home = home(&model);
    for prompt in [json!("Once"), json!(["Once"])] {
        let mut body = json!({ "model": "hearth-plain", "prompt": prompt, "best_of": 1 });
        let answer = ask(&home, "/v1/completions", body.clone());
        let whole = answer.json();
        assert_eq!(whole["object"], "text_completion", "{answer:?}");
        let choice = json!({ "index": 0, "text": "And so on.", "logprobs": null,
            "finish_reason": "stop" });
        assert_eq!(whole["choices"], json!([choice]));
        assert_eq!(whole["usage"]["total_tokens"], 15);
        body["stream"] = json!(true);
        let chunks = events(&ask(&home, "/v1/completions", body));
        let text = |chunk: &Value| chunk["choices"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(chunks.iter().map(text).collect::<String>(), "And so on.");
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["object"] == "text_completion")
        );
    }
    for (more, says) in [
        (json!({ "prompt": ["a", "b"] }), "must be one text"),
        (json!({ "prompt": [1, 2] }), "must be one text"),
        (json!({ "prompt": "a", "echo": true }), "echo"),
        (json!({ "prompt": "a", "suffix": "z" }), "suffix"),
        (json!({ "prompt": "a", "n": 2 }), "must be 1"),
    ] {
        let mut body = more;
        body["model"] = json!("hearth");
        let answer = ask(&home, "/v1/completions", body);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains(says), "{says}: {answer:?}");
    }
}
