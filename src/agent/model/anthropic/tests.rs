//! Against a scripted server on loopback.

use serde_json::{Value, json};

use super::Anthropic;
use crate::model::client_options::ClientOptions;
use crate::model::dialect::Options;
use crate::model::endpoint::Endpoint;
use crate::model::profile::Profile;
use crate::model::remote::Remote;
use crate::model::testing::*;
use crate::model::{ModelReply, ModelRequest, Provider};
use base::reply::FinishReason;
use base::secret::Secret;
use base::testing::rows;
use net::http_client::test_server::{Act, TestServer, json as answer, whole};
use store::Purpose;

fn provider(server: &TestServer) -> Remote {
    super::super::testing::provider(server, Box::new(Anthropic), "anthropic")
}

fn said(text: &str) -> Vec<Act> {
    answer(
        200,
        &json!({"type": "message", "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 2}}),
    )
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "The lamp.", "signature": "sig"})
}

/// A reply with thoughts, text and a call, as a stream.
fn stream() -> String {
    events(&[
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 40, "cache_creation_input_tokens": 60,
            "cache_read_input_tokens": 900, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "thinking_delta", "thinking": "The "}}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "thinking_delta", "thinking": "lamp."}}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_start", "index": 1,
               "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 2, "content_block":
               {"type": "tool_use", "id": "toolu_1", "name": "light", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1,
               "delta": {"type": "text_delta", "text": "I look "}}),
        json!({"type": "content_block_delta", "index": 2,
               "delta": {"type": "input_json_delta", "partial_json": "{\"on\""}}),
        json!({"type": "content_block_delta", "index": 1,
               "delta": {"type": "text_delta", "text": "it üp."}}),
        json!({"type": "content_block_delta", "index": 2,
               "delta": {"type": "input_json_delta", "partial_json": ":true}"}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
               "usage": {"output_tokens": 25}}),
        json!({"type": "message_stop"}),
    ])
}

#[test]
fn a_stream_is_put_together_and_thoughts_go_back_unchanged() {
    for size in [1, 7, 4096] {
        let server = TestServer::new(vec![
            streamed("text/event-stream; charset=utf-8", &stream(), size),
            said("Done."),
        ]);
        let provider = provider(&server);
        let mut ask = Ask::hello(true);
        let (reply, heard) = ask.of(&provider);
        let reply = reply.unwrap();
        assert_eq!(heard.concat(), "I look it üp.");
        assert_eq!(reply.text, "I look it üp.");
        assert_eq!(reply.calls, [call("toolu_1", "light", "{\"on\":true}")]);
        assert_eq!(reply.usage, usage(1000, 25, 900));
        ask.go_on(reply, "on", true);
        ask.stream = false;
        assert_eq!(ask.reply(&provider).text, "Done.");
        let heard = server.heard();
        assert_eq!(heard[1].connection, 0, "the connection is kept");
        assert_eq!(
            heard[1].json()["messages"][1]["content"],
            json!([
                thinking(),
                {"type": "text", "text": "I look it üp."},
                {"type": "tool_use", "id": "toolu_1", "name": "light", "input": {"on": true}},
            ])
        );
    }
}

#[test]
fn a_request_has_the_documented_form() {
    let server = TestServer::new(vec![said("Hi")]);
    let mut ask = Ask::hello(false);
    ask.messages = vec![
        user("Light on"),
        assistant(
            "  ",
            // As another provider gave them, and the model wrote them.
            vec![
                call("call:1", "light", "{\"on\":true}"),
                call("call_2", "light", "{broken"),
            ],
            Some(json!({"origin": "https://else.example", "members": {"x": 1}})),
        ),
        tool_result("call:1", "on", true),
        tool_result("call_2", "not JSON", false),
        user("And?"),
    ];
    ask.reply(&provider(&server));
    let heard = &server.heard()[0];
    let head = heard.head.to_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    for line in [
        &format!("x-api-key: {}", KEY.to_lowercase()),
        "anthropic-version: 2023-06-01",
    ] {
        assert!(
            head.contains(&format!("\r\n{line}\r\n")),
            "{line} in {head}"
        );
    }
    assert!(!head.contains("authorization"), "{head}");
    let mark = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m", "max_tokens": 8192,
        "tools": [{"name": "light", "description": "Switches a light.", "cache_control": mark,
            "input_schema": {"type": "object", "properties": {"on": {"type": "boolean"}}}}],
        "system": [{"type": "text", "text": "You are Ada.", "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Light on", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_1", "name": "light", "input": {"on": true}},
                {"type": "tool_use", "id": "call_2", "name": "light",
                 "input": {"unreadable_arguments": "{broken"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "on"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "not JSON",
                 "is_error": true},
                {"type": "text", "text": "And?", "cache_control": mark}]},
        ],
    });
    assert_eq!(heard.json(), expected);
}

#[test]
fn the_beginning_stays_the_same_through_a_conversation() {
    let server = TestServer::new(vec![said("Hi"), said("Ho")]);
    let provider = provider(&server);
    let mut ask = Ask::hello(false);
    ask.reply(&provider);
    ask.messages
        .extend([assistant("Hi", Vec::new(), None), user("more")]);
    ask.reply(&provider);
    let heard = server.heard();
    let text = |place: usize| String::from_utf8(heard[place].body.clone()).unwrap();
    let (first, second) = (text(0), text(1));
    let end = first
        .find(",\"cache_control\":{\"type\":\"ephemeral\"}}]}]}")
        .unwrap();
    assert_eq!(first[..end], second[..end]);
}

#[test]
fn what_the_server_does_not_take_is_left_out_and_remembered() {
    let refused = |text: &str| {
        answer(
            400,
            &json!({"type": "error", "error": {"type": "invalid_request_error", "message": text}}),
        )
    };
    let server = TestServer::new(vec![
        refused("temperature is deprecated for this model"),
        refused("output_config.effort: not available for this model"),
        refused("tools.0.cache_control: Extra inputs are not permitted"),
        refused("max_tokens: 8192 > 4096, which is the maximum"),
        said("Hi"),
        said("Ho"),
    ]);
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let provider = provider_with(&server, Box::new(Anthropic), "anthropic", options);
    let ask = Ask {
        temperature: Some(1.5),
        ..Ask::hello(false)
    };
    assert_eq!(ask.reply(&provider).text, "Hi");
    assert_eq!(ask.reply(&provider).text, "Ho");
    let heard = server.heard();
    assert_eq!(heard[0].json()["temperature"], 1.0);
    assert_eq!(heard[0].json()["output_config"], json!({"effort": "high"}));
    let last = heard[5].json();
    let members: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["model", "max_tokens", "tools", "system", "messages"]
    );
    assert_eq!(last["max_tokens"], 4096);
    assert!(!last.to_string().contains("cache_control"));
}

#[test]
fn broken_input_of_a_call_is_handed_on_and_does_not_break_the_conversation() {
    let text = events(&[
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": thinking()}),
        json!({"type": "content_block_start", "index": 1, "content_block":
               {"type": "tool_use", "id": "toolu_1", "name": "light", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1,
               "delta": {"type": "input_json_delta", "partial_json": "{\"on\":tr"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
    ]);
    let server = TestServer::new(vec![streamed("text/event-stream", &text, 64), said("Hi")]);
    let provider = provider(&server);
    let mut ask = Ask::hello(true);
    let reply = ask.reply(&provider);
    assert_eq!(reply.calls, [call("toolu_1", "light", "{\"on\":tr")]);
    ask.go_on(reply, "these are not JSON", false);
    ask.stream = false;
    ask.reply(&provider);
    let body = server.heard()[1].json();
    assert_eq!(
        body["messages"][1]["content"],
        json!([thinking(), {"type": "tool_use", "id": "toolu_1", "name": "light",
               "input": {"unreadable_arguments": "{\"on\":tr"}}])
    );
}

#[test]
fn failures_are_explained() {
    let table = r#"
        401 {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key KEY"}} | refused the API key (401)
        404 {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}} | does not know the model "m" (404)
        400 {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}} | too long for the model
        429 {"type": "error", "error": {"type": "rate_limit_error", "message": "enforced_spend_limit_reached"}} | quota is used up (429)
        200 [content-type: text/html] <html> | is not JSON
        stream data: <oops>\n\n | is not JSON
        200 {"completion": "old"} | without a reply in it
        stream data: {"type":"ping"}\n\n | without a reply
        200 {"content": [], "stop_reason": "refusal"} | withheld the reply
    "#;
    for [script, expected] in rows(table) {
        let server = TestServer::new(vec![scripted(script)]);
        let public = Ask::hello(true).failure(&provider(&server)).0;
        assert!(public.contains(expected), "{expected}: {public}");
        assert!(public.starts_with("Anthropic (127.0.0.1"), "{public}");
    }
}

#[test]
fn a_reply_that_is_not_whole_says_why() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let text = start(1, json!({"type": "text", "text": "Half"}));
    let call = |index: u64, arguments: &str| {
        let id = format!("toolu_{index}");
        let block = json!({"type": "tool_use", "id": id, "name": "light", "input": {}});
        let piece = json!({"type": "input_json_delta", "partial_json": arguments});
        let delta = json!({"type": "content_block_delta", "index": index, "delta": piece});
        [start(index, block), delta]
    };
    let ended = |blocks: &[Value], reason: &str| {
        let mut list = vec![
            json!({"type": "message_start", "message": {}}),
            start(0, thinking()),
        ];
        list.extend_from_slice(blocks);
        list.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
        list.push(json!({"type": "message_stop"}));
        streamed("text/event-stream", &events(&list), 64)
    };
    let text_only = std::slice::from_ref(&text);
    for (script, said, why) in [
        (ended(text_only, "end_turn"), "Half", None),
        (ended(text_only, "pause_turn"), "Half", None),
        (
            ended(text_only, "max_tokens"),
            "Half",
            Some(FinishReason::Length),
        ),
        (
            ended(text_only, "refusal"),
            "Half",
            Some(FinishReason::Refusal),
        ),
        (
            ended(text_only, "model_context_window_exceeded"),
            "Half",
            Some(FinishReason::Length),
        ),
        (ended(&[], "max_tokens"), "", Some(FinishReason::Length)),
        (
            ended(&call(1, "{\"on\":tr"), "max_tokens"),
            "",
            Some(FinishReason::Length),
        ),
        (
            ended(&call(1, ""), "max_tokens"),
            "",
            Some(FinishReason::Length),
        ),
    ] {
        let server = TestServer::new(vec![script]);
        let reply = Ask::hello(true).reply(&provider(&server));
        assert_eq!((&*reply.text, reply.finish_reason), (said, why));
        assert_eq!(reply.calls, []);
    }

    // The call that is whole runs, and goes back without the other one.
    let calls = [call(1, "{}"), call(2, "{\"on\"")].concat();
    let server = TestServer::new(vec![ended(&calls, "max_tokens"), said("Hi")]);
    let provider = provider(&server);
    let mut ask = Ask::hello(true);
    let reply = ask.reply(&provider);
    assert_eq!(reply.calls, [call_of("toolu_1")]);
    ask.go_on(reply, "on", true);
    ask.reply(&provider);
    let content = server.heard()[1].json()["messages"][1]["content"].clone();
    let whole = json!({"type": "tool_use", "id": "toolu_1", "name": "light", "input": {}});
    assert_eq!(content, json!([thinking(), whole]));
}

fn call_of(id: &str) -> store::ToolCall {
    call(id, "light", "{}")
}

#[test]
fn a_reply_that_is_lost_on_the_way_is_kept_as_far_as_it_was_heard() {
    let half = events(&[
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "text", "text": "Half"}}),
        json!({"type": "content_block_start", "index": 1, "content_block":
               {"type": "tool_use", "id": "toolu_1", "name": "light", "input": {}}}),
    ]);
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error",
        "message": "Overloaded"}});
    let broken = half.clone() + &events(&[overloaded]);
    for mut script in [
        cut("text/event-stream", &half, 64),
        streamed("text/event-stream", &half, 64),
        streamed("text/event-stream", &broken, 64),
    ] {
        script.push(Act::Close);
        let server = TestServer::new(vec![script]);
        Ask::hello(true).kept(&provider(&server), "Half");
    }
}

#[test]
fn an_overloaded_server_is_asked_again_and_no_usage_is_estimated() {
    let server = TestServer::new(vec![
        whole(
            529,
            "retry-after: 0\r\n",
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
        ),
        answer(
            200,
            &json!({"content": [{"type": "text", "text": "Hi, it is me."}]}),
        ),
    ]);
    let reply: ModelReply = Ask::hello(false).reply(&provider(&server));
    assert_eq!(reply.usage.output, 4);
    assert!(reply.usage.input > 50, "{:?}", reply.usage);
    assert_eq!(reply.model.as_deref(), Some("m"));
}

/// <https://platform.claude.com/docs/en/agents-and-tools/tool-use/strict-tool-use>
#[test]
fn a_tool_whose_arguments_must_fit_is_strict() {
    let server = TestServer::new(vec![said("Hi"), said("Hi")]);
    let (provider, ask) = (provider(&server), Ask::hello(false));
    let client = ClientOptions {
        strict: vec![ask.tools[0].name.clone()],
        ..ClientOptions::default()
    };
    for client in [Some(&client), None] {
        let request = ModelRequest {
            client,
            ..ask.request()
        };
        provider.complete(&request, &mut |_| ()).unwrap();
    }
    let heard = server.heard();
    assert_eq!(heard[0].json()["tools"][0]["strict"], true);
    assert_eq!(heard[1].json()["tools"][0].get("strict"), None);
}

/// A provider that is asked to think hard.
fn thoughtful(server: &TestServer) -> Remote {
    let endpoint = Endpoint::new("Anthropic", &server.url(), Some(Secret::new(KEY)));
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let service = Profile::of("anthropic", "");
    Remote::new(endpoint, Box::new(Anthropic), service, options)
}

#[test]
fn thoughts_are_asked_for_and_heard() {
    let why = "thinking.adaptive.display: Extra inputs are not permitted";
    let refused =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": why}});
    let reply = json!({"type": "message", "stop_reason": "end_turn",
                       "content": [thinking(), {"type": "text", "text": "Hi"}]});
    let server = TestServer::new(vec![
        streamed("text/event-stream; charset=utf-8", &stream(), 7),
        answer(400, &refused),
        answer(200, &reply),
        answer(200, &reply),
    ]);
    let provider = thoughtful(&server);
    for _ in 0..3 {
        assert_eq!(Ask::hello(true).thoughts(&provider), "The lamp.");
    }
    let heard = server.heard();
    let sent = [0, 1, 2, 3].map(|place: usize| heard[place].json()["thinking"].clone());
    let with = json!({"type": "adaptive", "display": "summarized"});
    let without = json!({"type": "adaptive"});
    assert_eq!(sent, [with.clone(), with, without.clone(), without]);
}

#[test]
fn a_side_question_leaves_no_mark_and_does_not_think() {
    let server = TestServer::new(vec![said("Hi"), said("Hi")]);
    let provider = thoughtful(&server);
    for purpose in [Purpose::Reply, Purpose::Title] {
        let ask = Ask {
            purpose,
            ..Ask::hello(false)
        };
        ask.reply(&provider);
    }
    let heard = server.heard();
    for (place, is_whole) in [(0, true), (1, false)] {
        let body = heard[place].json().to_string();
        assert_eq!(body.contains("cache_control"), is_whole, "{body}");
        assert_eq!(body.contains("thinking"), is_whole, "{body}");
    }
}
