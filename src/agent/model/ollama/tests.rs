//! Against a scripted server on loopback.

use serde_json::{Value, json};

use super::Ollama;
use crate::model::dialect::Options;
use crate::model::remote::Remote;
use crate::model::testing::*;
use base::reply::FinishReason;
use net::http_client::test_server::{TestServer, json as answer, whole};

const NDJSON: &str = "application/x-ndjson";

fn provider(server: &TestServer) -> Remote {
    super::super::testing::provider(server, Box::new(Ollama), "ollama")
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn said(text: &str) -> Value {
    json!({"message": {"role": "assistant", "content": text}, "done": true,
           "done_reason": "stop", "prompt_eval_count": 26, "eval_count": 40})
}

#[test]
fn lines_are_put_together_and_calls_go_back_as_objects() {
    let text = lines(&[
        json!({"message": {"role": "assistant", "content": "", "thinking": "The "}, "done": false}),
        json!({"message": {"role": "assistant", "content": "", "thinking": "lamp."}, "done": false}),
        json!({"message": {"role": "assistant", "content": "I look "}, "done": false}),
        json!({"message": {"role": "assistant", "content": "it üp."}, "done": false}),
        json!({"message": {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"index": 0, "name": "light", "arguments": {"on": true}}},
            {"function": {"index": 1, "name": "light", "arguments": {}}}]}, "done": false}),
        said(""),
    ]);
    for size in [1, 7, 4096] {
        let server = TestServer::new(vec![
            streamed(NDJSON, &text, size),
            answer(200, &said("Done.")),
        ]);
        let provider = provider(&server);
        let mut ask = Ask {
            temperature: Some(0.5),
            max_tokens: Some(99),
            ..Ask::hello(true)
        };
        let (reply, heard) = ask.of(&provider);
        let reply = reply.unwrap();
        assert_eq!(heard.concat(), "I look it üp.");
        assert_eq!(reply.text, "I look it üp.");
        assert_eq!(reply.usage, usage(26, 40, 0));
        let arguments: Vec<&str> = reply.calls.iter().map(|call| &*call.arguments).collect();
        assert_eq!(arguments, ["{\"on\":true}", "{}"]);
        assert_ne!(reply.calls[0].id, reply.calls[1].id);
        let ids: Vec<String> = reply.calls.iter().map(|call| call.id.clone()).collect();
        ask.go_on(reply, "on", false);
        ask.stream = false;
        assert_eq!(ask.reply(&provider).text, "Done.");

        let heard = server.heard();
        assert_eq!(heard[1].connection, 0, "the connection is kept");
        assert!(heard[0].head.starts_with("POST /api/chat HTTP/1.1\r\n"));
        let options = json!({"num_ctx": 16384, "temperature": 0.5, "num_predict": 99});
        assert_eq!(heard[0].json()["options"], options);
        assert_eq!(heard[0].json()["stream"], true);
        let body = heard[1].json();
        assert_eq!(body["options"], options, "it would load the model anew");
        assert_eq!(body["stream"], false, "it streams unless told not to");
        assert_eq!(body.get("think"), None);
        let result = |id: &str| {
            json!({"role": "tool", "tool_name": "light", "tool_call_id": id,
                   "content": "Error: on"})
        };
        assert_eq!(
            body["messages"],
            json!([
                {"role": "system", "content": "You are Ada."},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "I look it üp.", "thinking": "The lamp.",
                 "tool_calls": [
                    {"id": ids[0], "function": {"name": "light", "arguments": {"on": true}}},
                    {"id": ids[1], "function": {"name": "light", "arguments": {}}}]},
                result(&ids[0]),
                result(&ids[1]),
            ])
        );
    }
}

#[test]
fn the_context_and_thinking_are_as_configured() {
    let refusal = json!({"error": "\"m\" does not support thinking"});
    let server = TestServer::new(vec![
        answer(400, &refusal),
        answer(200, &said("<think>x</think>Hi")),
    ]);
    let options = Options {
        context_tokens: Some(4096),
        keep_alive_minutes: Some(90),
        reasoning_effort: Some("medium"),
        ..Options::default()
    };
    let provider = provider_with(&server, Box::new(Ollama), "ollama", options);
    assert_eq!(Ask::hello(false).reply(&provider).text, "Hi");
    let heard = server.heard();
    assert_eq!(heard[0].json()["think"], "medium");
    assert_eq!(heard[1].json().get("think"), None);
    assert_eq!(heard[1].json()["options"], json!({"num_ctx": 4096}));
    assert_eq!(heard[1].json()["keep_alive"], "90m");
}

#[test]
fn a_model_without_tools_is_told_of_none_and_the_person_learns_it() {
    let refusal = json!({"error": "registry.ollama.ai/library/m does not support tools"});
    let server = TestServer::new(vec![
        answer(400, &refusal),
        answer(200, &said("Hi")),
        answer(200, &said("Ho")),
    ]);
    let provider = provider(&server);
    let text = Ask::hello(false).reply(&provider).text;
    assert!(
        text.contains("cannot use tools") && text.ends_with("Hi"),
        "{text}"
    );
    assert_eq!(Ask::hello(false).reply(&provider).text, "Ho");
    assert_eq!(server.heard()[2].json().get("tools"), None);
}

#[test]
fn failures_are_explained() {
    let begun = lines(&[json!({"message": {"content": "Half"}, "done": false})]);
    let broken = begun.clone() + "{\"error\":\"llama runner process has terminated\"}\n";
    let streamed = |text: &str| streamed(NDJSON, text, 64);
    let (missing, empty) = (
        json!({"error": "model 'm' not found"}),
        json!({"done": true}),
    );
    for (script, expected) in [
        (answer(404, &missing), "does not know the model \"m\" (404)"),
        (
            whole(404, "", "404 page not found"),
            "has no chat API at this address",
        ),
        (streamed("<html>\n"), "is not JSON"),
        (answer(200, &empty), "without a reply in it"),
    ] {
        let server = TestServer::new(vec![script]);
        let public = Ask::hello(true).failure(&provider(&server)).0;
        assert!(public.contains(expected), "{expected}: {public}");
    }
    for script in [streamed(&broken), streamed(&begun)] {
        let server = TestServer::new(vec![script]);
        Ask::hello(true).kept(&provider(&server), "Half");
    }
}

#[test]
fn a_reply_that_reached_the_limit_says_so() {
    let ended = |message: Value, reason: &str| json!({"message": message, "done": true, "done_reason": reason});
    let half = || json!({"content": "Half"});
    let thought = json!({"content": "", "thinking": "Hm, so"});
    for (line, text, why) in [
        (ended(half(), "stop"), "Half", None),
        (ended(half(), "odd"), "Half", None),
        (ended(half(), "length"), "Half", Some(FinishReason::Length)),
        (ended(thought, "length"), "", Some(FinishReason::Length)),
    ] {
        let script = streamed(NDJSON, &lines(std::slice::from_ref(&line)), 64);
        let server = TestServer::new(vec![answer(200, &line), script]);
        let provider = provider(&server);
        for stream in [false, true] {
            let reply = Ask::hello(stream).reply(&provider);
            assert_eq!((&*reply.text, reply.finish_reason), (text, why), "{line}");
        }
    }
}
