//! Against a scripted server on loopback.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::agent::provider::test_server::{
    Act, TestServer, chunk, json as answer, stream, stream_head, whole,
};
use crate::agent::provider::{Cancel, ChatMessage, ToolSpec};
use crate::secret::Secret;
use crate::store::{ToolCall, Usage};

const KEY: &str = "sk-test-0123456789abcdefWXYZ";
const LONG: Duration = Duration::from_secs(20);

fn provider(server: &TestServer) -> OpenAi {
    let key = Some(Secret::new(KEY));
    OpenAi::new(Endpoint::new("The model server", &server.url(), key))
}

/// What a test asks, with the usual answers to what it does not care about.
struct Ask {
    messages: Vec<ChatMessage>,
    tools: Vec<ToolSpec>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    stream: bool,
    time: Duration,
    cancel: Cancel,
}

impl Ask {
    fn hello() -> Ask {
        Ask {
            messages: vec![ChatMessage::User {
                text: "hello".to_owned(),
            }],
            tools: Vec::new(),
            temperature: None,
            max_tokens: None,
            stream: false,
            time: LONG,
            cancel: Cancel::default(),
        }
    }

    fn streaming() -> Ask {
        Ask {
            stream: true,
            ..Ask::hello()
        }
    }

    fn with_tools(self) -> Ask {
        let tools = [
            ("light", "Switches a light."),
            ("current_time", "The time."),
        ];
        Ask {
            tools: tools
                .map(|(name, description)| ToolSpec {
                    name: name.to_owned(),
                    description: description.to_owned(),
                    parameters: json!({"type": "object", "properties": {}}),
                })
                .to_vec(),
            ..self
        }
    }

    /// The reply and the pieces that were heard.
    fn of(&self, provider: &OpenAi) -> (Result<ModelReply, ProviderError>, Vec<String>) {
        let mut heard = Vec::new();
        let request = ModelRequest {
            model: "m",
            system: "You are Ada.",
            messages: &self.messages,
            tools: &self.tools,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            stream: self.stream,
            deadline: Instant::now() + self.time,
            cancel: &self.cancel,
        };
        let reply = provider.complete(&request, &mut |piece| heard.push(piece.to_owned()));
        (reply, heard)
    }

    fn reply(&self, provider: &OpenAi) -> ModelReply {
        self.of(provider).0.unwrap()
    }

    /// What a person and the log read of a failure; checks that neither holds
    /// the key.
    fn failure(&self, provider: &OpenAi) -> (String, String) {
        match self.of(provider).0 {
            Err(ProviderError::Failed { public, detail }) => {
                for text in [&public, &detail] {
                    assert!(!text.contains(KEY) && !text.contains("cdefWXYZ"), "{text}");
                }
                (public, detail)
            }
            other => panic!("no failure: {other:?}"),
        }
    }
}

fn message(message: Value) -> Value {
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
           "usage": {"prompt_tokens": 52, "completion_tokens": 17,
                     "prompt_tokens_details": {"cached_tokens": 40}}})
}

fn said(text: &str) -> Value {
    message(json!({"role": "assistant", "content": text}))
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    }
}

#[test]
fn a_request_has_the_documented_form() {
    let server = TestServer::new(vec![answer(200, &said("Hi"))]);
    let provider = provider(&server);
    let origin = server.url();
    let own = |members: Value| Some(json!({"origin": origin, "members": members}));
    let mut first = call("call_1", "light", "{\"on\":true}");
    first.extra = own(json!({"extra_content": {"signature": "s"}}));
    let mut foreign = call("call_2", "light", "{broken");
    foreign.extra = Some(json!({"origin": "elsewhere", "members": {"signature": "x"}}));
    let ask = Ask {
        messages: vec![
            ChatMessage::User {
                text: "Light on".to_owned(),
            },
            ChatMessage::Assistant {
                text: String::new(),
                calls: vec![first, foreign],
                extra: own(json!({"reasoning_content": "hm"})),
            },
            ChatMessage::ToolResult {
                call_id: "call_1".to_owned(),
                tool: "light".to_owned(),
                content: "on".to_owned(),
                ok: true,
            },
            ChatMessage::ToolResult {
                call_id: "call_2".to_owned(),
                tool: "light".to_owned(),
                content: "not JSON".to_owned(),
                ok: false,
            },
        ],
        temperature: Some(0.7),
        max_tokens: Some(100),
        ..Ask::hello().with_tools()
    };
    let reply = ask.reply(&provider);
    assert_eq!(reply.text, "Hi");
    let usage = Usage {
        input: 52,
        output: 17,
        cached: 40,
    };
    assert_eq!(reply.usage, usage);
    let heard = &server.heard()[0];
    assert!(
        heard
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    let head = heard.head.to_lowercase();
    for line in [
        &format!("authorization: bearer {}", KEY.to_lowercase()),
        "content-type: application/json",
        "accept-encoding: identity",
        &format!("user-agent: hearth/{}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(
            head.contains(&format!("\r\n{line}\r\n")),
            "{line} in {head}"
        );
    }
    let function = |name: &str, description: &str| {
        json!({"type": "function", "function": {"name": name, "description": description,
               "parameters": {"type": "object", "properties": {}}}})
    };
    let expected = json!({
        "model": "m", "temperature": 0.7, "max_tokens": 100,
        "tools": [function("light", "Switches a light."), function("current_time", "The time.")],
        "messages": [
            {"role": "system", "content": "You are Ada."},
            {"role": "user", "content": "Light on"},
            {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [
                {"id": "call_1", "type": "function", "extra_content": {"signature": "s"},
                 "function": {"name": "light", "arguments": "{\"on\":true}"}},
                {"id": "call_2", "type": "function", "function": {"name": "light",
                 "arguments": "{\"unreadable_arguments\":\"{broken\"}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "on"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: not JSON"},
        ],
    });
    assert_eq!(heard.json(), expected);
}

#[test]
fn a_request_holds_nothing_that_nobody_set_and_is_small() {
    let server = TestServer::new(vec![
        answer(200, &said("Hi")),
        stream(&[delta(json!({"content": "Hi"})), end("stop")], true, 999),
    ]);
    let provider = provider(&server);
    Ask::hello().reply(&provider);
    Ask::streaming().with_tools().reply(&provider);
    let heard = server.heard();
    let members = |place: usize| -> Vec<String> {
        heard[place]
            .json()
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    assert_eq!(members(0), ["model", "messages"]);
    assert_eq!(
        members(1),
        ["model", "stream", "stream_options", "tools", "messages"],
        "what does not change comes first"
    );
    assert!(heard[1].body.len() < 600, "{} bytes", heard[1].body.len());
    assert_eq!(heard[1].connection, 0, "the connection is kept");
}

#[test]
fn whole_replies_are_read_tolerantly() {
    let function = |arguments: Value| json!({"name": "light", "arguments": arguments});
    for (reply, text, calls) in [
        (said("Hi"), "Hi", vec![]),
        (said("<think>\nhm\n</think>\n\nHi"), "Hi", vec![]),
        (
            message(json!({"content": [{"type": "thinking", "thinking": []},
                                       {"type": "text", "text": "Hi"}]})),
            "Hi",
            vec![],
        ),
        (
            message(json!({"content": null, "refusal": "No."})),
            "No.",
            vec![],
        ),
        (
            message(json!({"content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": function(json!("{\"on\":1}"))},
                {"id": "b", "function": function(json!({"on": 2}))},
                {"id": "c", "function": {"name": "light"}}]})),
            "",
            vec![
                call("a", "light", "{\"on\":1}"),
                call("b", "light", "{\"on\":2}"),
                call("c", "light", "{}"),
            ],
        ),
        (
            message(json!({"content": "I do.", "function_call": function(json!("{}"))})),
            "I do.",
            vec![call("", "light", "{}")],
        ),
        (
            message(json!({"tool_calls": [
                {"id": "same", "function": function(json!("{\"on\":1}{\"on\":2}"))},
                {"id": "same", "function": function(json!("{"))}]})),
            "",
            vec![
                call("same", "light", "{\"on\":1}"),
                call("", "light", "{\"on\":2}"),
                call("", "light", "{"),
            ],
        ),
    ] {
        let server = TestServer::new(vec![answer(200, &reply)]);
        let found = Ask::hello().reply(&provider(&server));
        assert_eq!(found.text, text, "{reply}");
        assert_calls(&found.calls, &calls, &reply);
    }
}

/// Compares calls; an empty id stands for one that was made up.
fn assert_calls(found: &[ToolCall], expected: &[ToolCall], context: &Value) {
    assert_eq!(found.len(), expected.len(), "{found:?} from {context}");
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let mut found = found.clone();
        if expected.id.is_empty() {
            assert_eq!(found.id.len(), 9, "{context}");
            assert!(found.id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            found.id.clear();
        }
        assert_eq!(&found, expected, "call {place} of {context}");
    }
}

#[test]
fn members_that_the_server_wants_back_are_kept_with_their_origin() {
    let signed = json!({"id": "a", "function": {"name": "light", "arguments": "{}"},
                        "extra_content": {"google": {"thought_signature": "s"}}});
    let server = TestServer::new(vec![
        answer(
            200,
            &message(
                json!({"content": "", "reasoning_content": "hm", "annotations": [],
                            "audio": null, "tool_calls": [signed]}),
            ),
        ),
        answer(
            200,
            &message(json!({"content": "Hi", "reasoning_content": "hm"})),
        ),
    ]);
    let provider = provider(&server);
    let reply = Ask::hello().reply(&provider);
    assert_eq!(
        reply.extra,
        Some(json!({"origin": server.url(), "members": {"reasoning_content": "hm"}}))
    );
    assert_eq!(
        reply.calls[0].extra.as_ref().unwrap()["members"],
        json!({"extra_content": {"google": {"thought_signature": "s"}}})
    );
    let reply = Ask::hello().reply(&provider);
    assert_eq!((reply.text.as_str(), reply.extra), ("Hi", None));
}

#[test]
fn streams_are_put_together_however_they_are_cut() {
    let piece = |index: Value, id: Value, name: Value, arguments: &str| {
        let mut piece = json!({"type": "function",
                               "function": {"name": name, "arguments": arguments}});
        for (key, value) in [("index", index), ("id", id)] {
            if !value.is_null() {
                piece[key] = value;
            }
        }
        delta(json!({"tool_calls": [piece]}))
    };
    let null = Value::Null;
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    for (chunks, text, calls) in [
        (
            vec![
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"content": "Hel", "obfuscation": null})),
                delta(json!({"content": null, "role": null})),
                delta(json!({"content": "lo €"})),
                end("stop"),
            ],
            "Hello €",
            vec![],
        ),
        (
            vec![
                delta(json!({"reasoning_content": "hm"})),
                delta(json!({"content": "<thi"})),
                delta(json!({"content": "nk>hm</th"})),
                delta(json!({"content": "ink>\n\nHi"})),
                end("stop"),
            ],
            "Hi",
            vec![],
        ),
        (
            vec![
                piece(json!(0), json!("a"), json!("light"), ""),
                piece(json!(0), null.clone(), null.clone(), "{\"on\""),
                piece(json!(1), json!("b"), json!("lamp"), "{}"),
                piece(json!(0), null.clone(), null.clone(), ":1}"),
                end("tool_calls"),
            ],
            "",
            vec![call("a", "light", "{\"on\":1}"), call("b", "lamp", "{}")],
        ),
        (
            // Id and name with every piece (llama-cpp-python).
            vec![
                piece(json!(0), json!("a"), json!("light"), "{"),
                piece(json!(0), json!("a"), json!("light"), "}"),
                end("stop"),
            ],
            "",
            vec![call("a", "light", "{}")],
        ),
        (
            // Every call has index 0 (gateways in front of Gemini).
            vec![
                piece(json!(0), json!("a"), json!("light"), "{\"on\":1}"),
                piece(json!(0), json!("b"), json!("light"), "{\"on\":2}"),
                end("stop"),
            ],
            "",
            vec![
                call("a", "light", "{\"on\":1}"),
                call("b", "light", "{\"on\":2}"),
            ],
        ),
        (
            // Index 0 and no ids at all.
            vec![
                piece(json!(0), null.clone(), json!("light"), "{\"on\":1}"),
                piece(json!(0), null.clone(), json!("lamp"), "{\"on\":2}"),
                end("stop"),
            ],
            "",
            vec![
                call("", "light", "{\"on\":1}"),
                call("", "lamp", "{\"on\":2}"),
            ],
        ),
        (
            // No index: by id, else the last one.
            vec![
                piece(null.clone(), json!("a"), json!("light"), "{"),
                piece(null.clone(), null.clone(), null.clone(), "}"),
                piece(null.clone(), json!("b"), json!("lamp"), "{}"),
                end("stop"),
            ],
            "",
            vec![call("a", "light", "{}"), call("b", "lamp", "{}")],
        ),
        (
            vec![
                delta(json!({"function_call": {"name": "light", "arguments": "{"}})),
                delta(json!({"function_call": {"arguments": "}"}})),
                end("function_call"),
            ],
            "",
            vec![call("", "light", "{}")],
        ),
    ] {
        for (size, done) in [(1, true), (7, true), (4096, true), (4096, false)] {
            let mut chunks = chunks.clone();
            chunks.push(usage.clone());
            let server = TestServer::new(vec![stream(&chunks, done, size)]);
            let (reply, heard) = Ask::streaming().of(&provider(&server));
            let reply = reply.unwrap();
            let context = json!(chunks);
            assert_eq!(reply.text, text, "{context}");
            assert_eq!(heard.concat(), text, "{context}");
            assert_calls(&reply.calls, &calls, &context);
            assert_eq!((reply.usage.input, reply.usage.output), (5, 2));
        }
    }
}

#[test]
fn a_server_may_stream_unasked_or_not_when_asked() {
    let chunks = [delta(json!({"content": "Hi"})), end("stop")];
    let server = TestServer::new(vec![stream(&chunks, true, 64), answer(200, &said("Ho"))]);
    let provider = provider(&server);
    assert_eq!(Ask::hello().reply(&provider).text, "Hi");
    let (reply, heard) = Ask::streaming().of(&provider);
    assert_eq!(reply.unwrap().text, "Ho");
    assert_eq!(heard, ["Ho"]);
}

#[test]
fn a_stream_that_is_left_open_after_its_end_is_not_waited_for() {
    let script = vec![
        stream_head(),
        chunk("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n"),
        Act::Hang,
    ];
    let server = TestServer::new(vec![script, answer(200, &said("Ho"))]);
    let provider = provider(&server);
    let started = Instant::now();
    assert_eq!(Ask::streaming().reply(&provider).text, "Hi");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(Ask::hello().reply(&provider).text, "Ho");
    assert_eq!(server.heard()[1].connection, 1);
}

#[test]
fn a_stream_that_is_cut_is_asked_for_again_only_when_nothing_was_heard() {
    let good = || {
        let chunks = [delta(json!({"content": "Hi"})), end("stop")];
        stream(&chunks, true, 64)
    };
    let cut = |text: &str| vec![stream_head(), chunk(text), Act::Close];
    let server = TestServer::new(vec![
        cut("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"),
        good(),
    ]);
    assert_eq!(Ask::streaming().reply(&provider(&server)).text, "Hi");
    assert_eq!(server.heard().len(), 2);

    let began = "data: {\"choices\":[{\"delta\":{\"content\":\"Half a\"}}]}\n\n";
    // Cut off in the middle of the body, and ended in due form but too early.
    let early = vec![
        stream_head(),
        chunk(began),
        Act::Send(b"0\r\n\r\n".to_vec()),
    ];
    for script in [cut(began), early] {
        let server = TestServer::new(vec![script, good()]);
        let (public, _) = Ask::streaming().failure(&provider(&server));
        assert_eq!(
            public,
            format!("The model server at {} cut the reply short", server.address)
        );
        assert_eq!(server.heard().len(), 1);
    }
}

#[test]
fn failures_are_told_in_the_servers_name_and_without_the_key() {
    let quoting = format!(
        "Incorrect API key provided: {}****WXYZ or {KEY}.",
        &KEY[..10]
    );
    let error = |text: &str| json!({"error": {"message": text, "type": "t", "code": "c"}});
    for (script, expected) in [
        (answer(401, &error(&quoting)), "refused the API key (401)"),
        (
            answer(400, &error(&quoting)),
            "refused the request (400): Incorrect API key provided: [key]",
        ),
        (
            answer(403, &error("no")),
            "does not permit this request (403)",
        ),
        (
            answer(402, &error("no")),
            "says that the account has no credit left (402)",
        ),
        (
            answer(404, &error("The model `m` does not exist")),
            "does not know the model \"m\" (404)",
        ),
        (
            answer(404, &json!({"detail": "Not Found"})),
            "has no chat completions at this address (404): base_url usually ends in /v1",
        ),
        (
            answer(
                429,
                &error("You exceeded your current quota (insufficient_quota)"),
            ),
            "says that the account's quota is used up (429)",
        ),
        (
            answer(
                400,
                &error("This model's maximum context length is 8 tokens"),
            ),
            "refused the conversation: it is too long for the model \"m\" (400)",
        ),
        (
            whole(301, "location: https://else.example/v1\r\n", ""),
            "answers with a redirect to https://else.example/v1 (301): set base_url to the final address",
        ),
        (
            whole(200, "content-type: text/html\r\n", "<html>Welcome</html>"),
            "answered something that is not JSON",
        ),
        (
            whole(200, "content-type: application/json\r\n", "{\"choices\":"),
            "answered something that is not JSON",
        ),
        (
            answer(200, &json!({"choices": []})),
            "answered without a reply in it",
        ),
        (
            answer(
                200,
                &json!({"error": {"code": 402, "message": "no credits"}}),
            ),
            "says that the account has no credit left (402)",
        ),
        (
            whole(
                200,
                "content-type: text/event-stream\r\n",
                "data: garbage\n\n",
            ),
            "answered something that is not JSON",
        ),
        (
            stream(
                &[json!({"error": {"message": "upstream broke"}})],
                false,
                64,
            ),
            "reported an error: upstream broke",
        ),
        (
            vec![Act::Send(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()), Act::Close],
            "answered something that is not HTTP",
        ),
        (
            whole(500, "x-should-retry: false\r\n", "<html>oops</html>"),
            "failed (500)",
        ),
    ] {
        let server = TestServer::new(vec![script]);
        let (public, detail) = Ask::hello().failure(&provider(&server));
        let subject = format!("The model server at {}", server.address);
        assert!(
            public.starts_with(&format!("{subject} {expected}")),
            "{public:?} is not {expected:?} ({detail})"
        );
        assert_eq!(server.heard().len(), 1, "{expected}");
    }
}

#[test]
fn a_busy_server_is_asked_three_times() {
    let busy = || whole(429, "retry-after: 0\r\n", "{\"error\":\"slow down\"}");
    let server = TestServer::new(vec![busy(), busy(), answer(200, &said("Hi"))]);
    assert_eq!(Ask::hello().reply(&provider(&server)).text, "Hi");

    let failing = || whole(503, "retry-after-ms: 1\r\n", "Loading model");
    let server = TestServer::new(vec![failing(), failing(), failing(), failing()]);
    let (public, _) = Ask::hello().failure(&provider(&server));
    assert!(
        public.ends_with("is overloaded or still loading the model (503)"),
        "{public}"
    );
    assert_eq!(server.heard().len(), 3);

    let server = TestServer::new(vec![whole(429, "retry-after: 61\r\n", "{}")]);
    let (public, _) = Ask::hello().failure(&provider(&server));
    assert!(public.contains("too many requests (429)"), "{public}");
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_costs_no_try() {
    let mut first = answer(200, &said("Hi"));
    first.push(Act::Close);
    // Depending on timing, the close is seen before the second request is sent
    // or after it.
    let server = TestServer::new(vec![first, answer(200, &said("Ho"))]);
    let provider = provider(&server);
    let started = Instant::now();
    assert_eq!(Ask::hello().reply(&provider).text, "Hi");
    assert_eq!(Ask::hello().reply(&provider).text, "Ho");
    assert!(started.elapsed() < Duration::from_millis(400));
    assert_eq!(server.heard()[1].connection, 1);
}

#[test]
fn a_refused_form_is_changed_once_and_remembered() {
    let refused = |param: &str, text: &str| {
        let code = "unsupported_parameter";
        answer(
            400,
            &json!({"error": {"message": text, "param": param, "code": code}}),
        )
    };
    let server = TestServer::new(vec![
        refused("temperature", "Unsupported value: 'temperature'"),
        refused(
            "max_tokens",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        ),
        whole(
            422,
            "",
            "{\"detail\":\"extra fields not permitted: stream_options\"}",
        ),
        refused("", "m does not support tools"),
        stream(&[delta(json!({"content": "Hi"})), end("stop")], true, 64),
        stream(&[delta(json!({"content": "Ho"})), end("stop")], true, 64),
    ]);
    let provider = provider(&server);
    let ask = Ask {
        temperature: Some(1.0),
        max_tokens: Some(9),
        ..Ask::streaming().with_tools()
    };
    let (reply, heard) = ask.of(&provider);
    let text = reply.unwrap().text;
    assert_eq!(heard.concat(), text);
    assert!(
        text.contains("cannot use tools") && text.ends_with("\n\nHi"),
        "{text}"
    );
    assert_eq!(ask.reply(&provider).text, "Ho");
    let heard = server.heard();
    let last = heard[5].json();
    let members: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["model", "stream", "max_completion_tokens", "messages"]
    );

    let server = TestServer::new(vec![
        refused("temperature", "Unsupported value: 'temperature'"),
        refused("temperature", "Unsupported value: 'temperature'"),
    ]);
    let (public, _) = ask.failure(&self::provider(&server));
    assert!(public.contains("refused the request (400)"), "{public}");
}

#[test]
fn members_that_the_server_does_not_want_back_are_left_out() {
    let refusal = "property 'reasoning_content' is unsupported";
    let server = TestServer::new(vec![
        answer(400, &json!({"error": {"message": refusal}})),
        answer(200, &said("Hi")),
    ]);
    let mut ask = Ask::hello();
    ask.messages.push(ChatMessage::Assistant {
        text: "x".to_owned(),
        calls: Vec::new(),
        extra: Some(json!({"origin": server.url(), "members": {"reasoning_content": "hm"}})),
    });
    assert_eq!(ask.reply(&provider(&server)).text, "Hi");
    let bodies: Vec<Value> = server.heard().iter().map(|heard| heard.json()).collect();
    assert_eq!(bodies[0]["messages"][2]["reasoning_content"], "hm");
    assert_eq!(bodies[1]["messages"][2].get("reasoning_content"), None);
}

#[test]
fn nobody_there_is_said_plainly() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/v1");
    let provider = OpenAi::new(Endpoint::new("The model server", &url, None));
    let ask = Ask {
        time: Duration::from_millis(300),
        ..Ask::hello()
    };
    let (public, _) = ask.failure(&provider);
    assert_eq!(
        public,
        format!("The model server at {address} cannot be reached: is it running?")
    );
}

#[test]
fn the_deadline_holds_against_every_kind_of_slowness() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n";
    let pause = || Act::Pause(Duration::from_millis(40));
    let drip = |first: Act, piece: Act| {
        let mut script = vec![first];
        for _ in 0..20 {
            script.extend([pause(), piece.clone()]);
        }
        script.push(Act::Hang);
        script
    };
    for script in [
        vec![Act::Hang],
        vec![Act::Send(head.as_bytes().to_vec()), Act::Hang],
        drip(
            Act::Send(head.as_bytes().to_vec()),
            Act::Send(b" ".to_vec()),
        ),
        drip(
            Act::Send(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
            Act::Send(b"y".to_vec()),
        ),
        drip(stream_head(), chunk(": still here\n\n")),
        drip(
            stream_head(),
            chunk("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
        ),
    ] {
        let server = TestServer::new(vec![script]);
        let ask = Ask {
            time: Duration::from_millis(250),
            ..Ask::streaming()
        };
        let started = Instant::now();
        let (reply, _) = ask.of(&provider(&server));
        let taken = started.elapsed();
        assert!(matches!(reply, Err(ProviderError::TimedOut)), "{reply:?}");
        assert!(
            taken >= ask.time && taken < ask.time + Duration::from_millis(200),
            "{taken:?}"
        );
    }
}

#[test]
fn a_stop_breaks_the_call_and_the_next_one_works() {
    let began = "data: {\"choices\":[{\"delta\":{\"content\":\"Half a\"}}]}\n\n";
    let server = TestServer::new(vec![
        vec![stream_head(), chunk(began), Act::Hang],
        answer(200, &said("Hi")),
    ]);
    let provider = provider(&server);
    let ask = Ask::streaming();
    let (heard, hears) = mpsc::channel();
    let stopper = ask.cancel.clone();
    let thread = thread::spawn(move || {
        hears.recv_timeout(LONG).unwrap();
        stopper.cancel();
        Instant::now()
    });
    let request = ModelRequest {
        model: "m",
        system: "",
        messages: &ask.messages,
        tools: &[],
        temperature: None,
        max_tokens: None,
        stream: true,
        deadline: Instant::now() + LONG,
        cancel: &ask.cancel,
    };
    let reply = provider.complete(&request, &mut |_| heard.send(()).unwrap());
    let returned = Instant::now();
    assert!(matches!(reply, Err(ProviderError::Cancelled)), "{reply:?}");
    let stopped = thread.join().unwrap();
    assert!(returned.saturating_duration_since(stopped) < Duration::from_millis(500));
    assert_eq!(Ask::hello().reply(&provider).text, "Hi");

    let stopped = Ask::hello();
    stopped.cancel.cancel();
    let (reply, _) = stopped.of(&provider);
    assert!(matches!(reply, Err(ProviderError::Cancelled)));
    assert_eq!(
        server.heard().len(),
        2,
        "nothing is sent for a stopped turn"
    );
}
