//! Requests, and how replies are read.

use super::*;

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
            user("Light on"),
            assistant(
                "",
                vec![first, foreign],
                own(json!({"reasoning_content": "hm"})),
            ),
            tool_result("call_1", "on", true),
            tool_result("call_2", "not JSON", false),
        ],
        temperature: Some(0.7),
        max_tokens: Some(100),
        ..with_tools(hello())
    };
    let reply = ask.reply(&provider);
    assert_eq!(reply.text, "Hi");
    assert_eq!(reply.usage, usage(52, 17, 40));
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
    hello().reply(&provider);
    with_tools(streaming()).reply(&provider);
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
    let table = r#"
        {"role": "assistant", "content": "Hi"} | Hi | -
        {"content": "<think>\nhm\n</think>\n\nHi"} | Hi | -
        {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hi"}]} | Hi | -
        {"content": null, "refusal": "No."} | No. | -
        {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "light", "arguments": "{\"on\":1}"}}]} | | a light {"on":1}
        {"content": null, "tool_calls": [{"id": "b", "function": {"name": "light", "arguments": {"on": 2}}}, {"id": "c", "function": {"name": "light"}}]} | | b light {"on":2}; c light {}
        {"content": "I do.", "function_call": {"name": "light", "arguments": "{}"}} | I do. | - light {}
        {"tool_calls": [{"id": "same", "function": {"name": "light", "arguments": "{\"on\":1}{\"on\":2}"}}, {"id": "same", "function": {"name": "light", "arguments": "{"}}]} | | same light {"on":1}; - light {"on":2}; - light {
    "#;
    for [reply, text, calls] in rows(&table.replace("| |", "|  |")) {
        let reply = message(reply.parse().unwrap());
        let calls = calls.split("; ").filter(|call| *call != "-");
        let calls: Vec<ToolCall> = calls.map(written_call).collect();
        let server = TestServer::new(vec![answer(200, &reply)]);
        let found = hello().reply(&provider(&server));
        assert_eq!(found.text, text, "{reply}");
        assert_calls(&found.calls, &calls, &reply);
    }
}

/// A call that is written `ID NAME ARGUMENTS`; `-` stands for an id that is made up.
fn written_call(text: &str) -> ToolCall {
    let parts: Vec<&str> = text.splitn(3, ' ').collect();
    call(parts[0].trim_matches('-'), parts[1], parts[2])
}

/// A piece of a call that is written `INDEX ID NAME ARGUMENTS`, with `-` for what is
/// not there.
fn written_piece(text: &str) -> Value {
    let mut parts = text
        .splitn(4, ' ')
        .map(|part| Some(part).filter(|part| *part != "-"));
    let mut next = || parts.next().flatten();
    let (index, id, name) = (next(), next(), next());
    let mut piece = json!({"type": "function",
                           "function": {"name": name, "arguments": next().unwrap_or_default()}});
    if let Some(index) = index {
        piece["index"] = index.parse().unwrap();
    }
    if let Some(id) = id {
        piece["id"] = json!(id);
    }
    delta(json!({"tool_calls": [piece]}))
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
    let reply = hello().reply(&provider);
    assert_eq!(
        reply.extra,
        Some(json!({"origin": server.url(), "members": {"reasoning_content": "hm"}}))
    );
    assert_eq!(
        reply.calls[0].extra.as_ref().unwrap()["members"],
        json!({"extra_content": {"google": {"thought_signature": "s"}}})
    );
    let reply = hello().reply(&provider);
    assert_eq!((reply.text.as_str(), reply.extra), ("Hi", None));
}

#[test]
fn pieces_of_thoughts_go_back_joined() {
    let details = |details: Value| delta(json!({ "reasoning_details": details }));
    let text = |piece: &str| json!({"type": "reasoning.text", "index": 0, "text": piece});
    let signed = json!({"type": "reasoning.text", "index": 0, "text": null,
                        "format": "acme-v1", "signature": "sig"});
    let sealed = json!({"type": "reasoning.encrypted", "index": 1, "data": "xyz"});
    let call = json!({"index": 0, "id": "a", "function": {"name": "light", "arguments": "{}"}});
    let chunks = [
        details(json!([text("The ")])),
        details(json!([text("lamp.")])),
        details(json!([signed, sealed])),
        delta(json!({ "tool_calls": [call] })),
        end("tool_calls"),
    ];
    let server = TestServer::new(vec![stream(&chunks, true, 64)]);
    let reply = streaming().reply(&provider(&server));
    let joined = json!({"type": "reasoning.text", "index": 0, "text": "The lamp.",
                        "format": "acme-v1", "signature": "sig"});
    let kept = &reply.extra.unwrap()["members"]["reasoning_details"];
    assert_eq!(*kept, json!([joined, sealed]));
}

#[test]
fn thoughts_that_are_parts_of_the_content_are_heard() {
    let thinking = |text: &str| {
        let parts = json!([{ "type": "text", "text": text }]);
        json!({ "type": "thinking", "thinking": parts })
    };
    let text = json!({ "type": "text", "text": "Hi" });
    let content = |parts: Value| delta(json!({ "content": parts }));
    let chunks = [
        content(json!([thinking("The ")])),
        content(json!([thinking("lamp."), text])),
        end("stop"),
    ];
    let whole = message(json!({ "content": [thinking("The lamp."), text] }));
    let server = TestServer::new(vec![stream(&chunks, true, 64), answer(200, &whole)]);
    let provider = provider(&server);
    for _ in 0..2 {
        assert_eq!(streaming().thoughts(&provider), "The lamp.");
    }
}

#[test]
fn streams_are_put_together_however_they_are_cut() {
    // Deltas, or pieces of a call `INDEX ID NAME ARGUMENTS`; then the reason of the end
    // with the text, and the calls.
    let streams = r#"
        {"role": "assistant", "content": ""}
        {"content": "Hel", "obfuscation": null}
        {"content": null, "role": null}
        {"content": "lo €"}
        => stop Hello €

        {"reasoning_content": "hm"}
        {"content": "<thi"}
        {"content": "nk>hm</th"}
        {"content": "ink>\n\nHi"}
        => stop Hi

        0 a light
        0 - - {"on"
        1 b lamp {}
        0 - - :1}
        => tool_calls
        => call a light {"on":1}
        => call b lamp {}

        # Id and name with every piece (llama-cpp-python).
        0 a light {
        0 a light }
        => stop
        => call a light {}

        # Every call has index 0 (gateways in front of Gemini).
        0 a light {"on":1}
        0 b light {"on":2}
        => stop
        => call a light {"on":1}
        => call b light {"on":2}

        # Index 0 and no ids at all.
        0 - light {"on":1}
        0 - lamp {"on":2}
        => stop
        => call - light {"on":1}
        => call - lamp {"on":2}

        # No index: by id, else the last one.
        - a light {
        - - - }
        - b lamp {}
        => stop
        => call a light {}
        => call b lamp {}

        {"function_call": {"name": "light", "arguments": "{"}}
        {"function_call": {"arguments": "}"}}
        => function_call
        => call - light {}
    "#;
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    for stream_text in streams.split("\n\n") {
        let (mut chunks, mut text, mut calls) = (Vec::new(), "", Vec::new());
        for line in stream_text.lines().map(str::trim) {
            if let Some(call) = line.strip_prefix("=> call ") {
                calls.push(written_call(call));
            } else if let Some(ended) = line.strip_prefix("=> ") {
                let (reason, said) = ended.split_once(' ').unwrap_or((ended, ""));
                chunks.push(end(reason));
                text = said;
            } else if line.starts_with('{') {
                chunks.push(delta(line.parse().unwrap()));
            } else if !line.is_empty() && !line.starts_with('#') {
                chunks.push(written_piece(line));
            }
        }
        for (size, done) in [(1, true), (7, true), (4096, true), (4096, false)] {
            let mut chunks = chunks.clone();
            chunks.push(usage.clone());
            let server = TestServer::new(vec![stream(&chunks, done, size)]);
            let (reply, heard) = streaming().of(&provider(&server));
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
fn a_reply_that_is_not_whole_says_why() {
    // The word for the end, the reply, its text, the calls that may run.
    let table = r#"
        stop | {"content": "Half"} | Half | - | -
        odd | {"content": "Half"} | Half | - | -
        length | {"content": "Half"} | Half | Length | -
        model_length | {"content": "Half"} | Half | Length | -
        content_filter | {"content": "Half"} | Half | ContentFilter | -
        insufficient_system_resource | {"content": "Half"} | Half | Interrupted | -
        stop | {"content": null, "refusal": "No."} | No. | Refusal | -
        length | {"content": "", "reasoning_content": "Hm, so"} | | Length | -
        length | {"content": "<think>Hm, so"} | | Length | -
        length | {"content": "I", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "light", "arguments": "{\"on\":1}"}}]} | I | Length | light
        length | {"content": "I", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "light", "arguments": "{\"on\":"}}]} | I | Length | -
        length | {"content": "I", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "light", "arguments": "{}"}}, {"index": 1, "id": "b", "function": {"name": "door", "arguments": ""}}]} | I | Length | light
    "#;
    for [reason, said, text, why, calls] in rows(&table.replace("| |", "|  |")) {
        let said: Value = said.parse().unwrap();
        let whole = json!({"choices": [{"message": said, "finish_reason": reason}]});
        let server = TestServer::new(vec![
            answer(200, &whole),
            stream(&[delta(said.clone()), end(reason)], true, 64),
        ]);
        let provider = provider(&server);
        for ask in [hello(), streaming()] {
            let reply = ask.reply(&provider);
            assert_eq!(reply.text, text, "{whole}");
            let found = reply.finish_reason.map(|reason| format!("{reason:?}"));
            assert_eq!(found.as_deref().unwrap_or("-"), why, "{whole}");
            let names: Vec<&str> = reply.calls.iter().map(|call| &*call.tool).collect();
            assert_eq!(names.join(" "), calls.trim_matches('-'), "{whole}");
        }
    }
}

#[test]
fn calls_that_were_left_in_the_text_are_made_and_not_shown() {
    let call = r#"{"name": "light", "arguments": {"on": true}}"#;
    let table = r#"
        On it.\n<tool_call>\nCALL\n</tool_call> | light {"on":true}
        <tool_call>CALL</tool_call>\n<tool_call>CALL</tool_call> | light {"on":true}; light {"on":true}
        <tool_call>CALL\n<tool_call>CALL | light {"on":true}; light {"on":true}
        <tool_call>{"name": "rocket", "arguments": {}}</tool_call> | -
        <tool_call>{"name": "light", "arg | -
    "#;
    for [said, expected] in rows(table) {
        let said = said.replace("\\n", "\n").replace("CALL", call);
        let letters: Vec<char> = said.chars().collect();
        let mut chunks: Vec<Value> = letters
            .chunks(3)
            .map(|piece| delta(json!({ "content": piece.iter().collect::<String>() })))
            .collect();
        chunks.push(end("stop"));
        let script = || stream(&chunks, true, 64);
        let server = TestServer::new(vec![script(), script()]);
        let provider = provider(&server);
        let mut ask = with_tools(streaming());
        let (reply, heard) = ask.of(&provider);
        let reply = reply.unwrap();
        assert_eq!(heard.concat(), reply.text, "{said}");
        assert_eq!(
            reply.text.trim(),
            said.split("<tool").next().unwrap().trim()
        );
        let made = reply.calls.iter();
        let made: Vec<String> = made
            .map(|call| format!("{} {}", call.tool, call.arguments))
            .collect();
        assert_eq!(made.join("; "), expected.trim_matches('-'), "{said}");
        // Where it may call nothing, it calls nothing.
        ask.may_call = false;
        assert_eq!(ask.reply(&provider).calls, []);
    }
}

#[test]
fn thoughts_without_their_first_tag_are_expected_from_the_second_reply_on() {
    let pieces = ["Hm, ", "so\n", "</think>\n\n", "Hel", "lo"];
    let mut chunks = pieces
        .map(|piece| delta(json!({ "content": piece })))
        .to_vec();
    chunks.push(end("stop"));
    let plain = [
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        end("stop"),
    ];
    let server = TestServer::new(vec![
        stream(&chunks, true, 64),
        stream(&chunks, true, 64),
        stream(&plain, true, 64),
        stream(&plain, true, 64),
    ]);
    let provider = provider(&server);
    for expected in [
        &["Hm, ", "so\n", "Hel", "lo"][..],
        &["Hel", "lo"],
        // It does not think after all.
        &["Hello"],
        &["Hel", "lo"],
    ] {
        let (reply, heard) = streaming().of(&provider);
        assert_eq!(reply.unwrap().text, "Hello");
        assert_eq!(heard, expected);
    }
}

#[test]
fn a_character_that_was_cut_in_two_loses_no_reply() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00 nice\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let server = TestServer::new(vec![streamed("text/event-stream", text, 37)]);
    let (reply, heard) = streaming().of(&provider(&server));
    let reply = reply.unwrap();
    assert_eq!((&*reply.text, reply.finish_reason), ("😀 nice", None));
    assert_eq!(heard.concat(), "😀 nice");
}

#[test]
fn a_server_may_stream_unasked_or_not_when_asked() {
    let chunks = [delta(json!({"content": "Hi"})), end("stop")];
    let server = TestServer::new(vec![stream(&chunks, true, 64), answer(200, &said("Ho"))]);
    let provider = provider(&server);
    assert_eq!(hello().reply(&provider).text, "Hi");
    let (reply, heard) = streaming().of(&provider);
    assert_eq!(reply.unwrap().text, "Ho");
    assert_eq!(heard, ["Ho"]);
}
