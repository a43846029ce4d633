//! What the model thinks reaches those alone who ask for it.

use serde_json::{Value, json};

use super::{COMPLETIONS, ask, events, home, text_of};
use support::model::{Act, Model};
use support::served::ok;

/// A model that thinks, apart from its text or in it.
pub fn thinking() -> Model {
    Model::start(|_, number| {
        if number % 2 == 1 {
            return Act::say("<think>It is wet.</think>Take a coat.");
        }
        let deltas = [
            json!({ "reasoning_content": "It is " }),
            json!({ "reasoning_content": "wet." }),
            json!({ "content": "Take a coat." }),
        ];
        let chunk = |(delta, reason): (Value, Value)| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
            format!("data: {}\n\n", json!({ "choices": [choice] }))
        };
        let deltas = deltas.into_iter().map(|delta| (delta, Value::Null));
        let chunks = deltas.chain([(json!({}), json!("stop"))]).map(chunk);
        let text: String = chunks.collect::<String>() + "data: [DONE]\n\n";
        Act::Raw(ok("text/event-stream", &text))
    })
}

fn thought_of(events: &[Value]) -> String {
    let deltas = events.iter().map(|event| &event["choices"][0]["delta"]);
    deltas
        .filter_map(|delta| delta["reasoning_content"].as_str())
        .collect()
}

#[test]
fn a_program_that_asks_for_thoughts_streams_them() {
    let model = thinking();
    let home = home(&model);
    for (more, thought) in [
        (json!({ "include_reasoning": true }), "It is wet."),
        (json!({ "reasoning_effort": "low" }), "It is wet."),
        (json!({}), ""),
        (json!({ "include_reasoning": false }), ""),
    ] {
        let mut body = json!({
            "model": "hearth", "stream": true,
            "messages": [{ "role": "user", "content": "Coat?" }],
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let events = events(&ask(&home, COMPLETIONS, body));
        assert_eq!(text_of(&events), "Take a coat.", "{events:?}");
        assert_eq!(thought_of(&events), thought, "{more} {events:?}");
    }
    for (think, has) in [(true, true), (false, false)] {
        let body = json!({
            "model": "hearth:latest", "think": think,
            "messages": [{ "role": "user", "content": "Coat?" }],
        });
        let answer = ask(&home, "/api/chat", body);
        let text = answer.body;
        let lines: Vec<Value> = text.lines().map(|line| line.parse().unwrap()).collect();
        let thoughts = lines
            .iter()
            .filter_map(|line| line["message"]["thinking"].as_str());
        let thought: String = thoughts.collect();
        assert_eq!(thought, if has { "It is wet." } else { "" }, "{lines:?}");
    }
}

/// Sent whole, by the household's assistant and by its model alone.
#[test]
fn a_program_that_asks_for_thoughts_gets_them_with_a_whole_answer() {
    let model = thinking();
    let home = home(&model);
    let coat = json!([{ "role": "user", "content": "Coat?" }]);
    for name in ["hearth", "hearth-plain"] {
        for (path, body, place) in [
            (
                COMPLETIONS,
                json!({ "messages": coat, "include_reasoning": true }),
                "/choices/0/message/reasoning_content",
            ),
            (
                "/v1/responses",
                json!({ "input": "Coat?", "reasoning": { "summary": "auto" } }),
                "/output/0/summary/0/text",
            ),
            (
                "/api/chat",
                json!({ "messages": coat, "think": true, "stream": false }),
                "/message/thinking",
            ),
            (
                "/api/generate",
                json!({ "prompt": "Coat?", "think": true, "stream": false }),
                "/thinking",
            ),
            (COMPLETIONS, json!({ "messages": coat }), ""),
            ("/v1/responses", json!({ "input": "Coat?" }), ""),
        ] {
            let mut body = body;
            body["model"] = json!(name);
            let answer = ask(&home, path, body).json();
            let thought = answer.pointer(place).filter(|_| !place.is_empty());
            let expected = json!("It is wet.");
            let expected = Some(&expected).filter(|_| !place.is_empty());
            assert_eq!(thought, expected, "{name} {path}: {answer}");
            let text = answer.to_string();
            assert_eq!(text.contains("wet"), expected.is_some(), "{answer}");
            assert!(text.contains("Take a coat."), "{answer}");
        }
    }
}

#[test]
fn responses_stream_a_summary_of_thoughts_as_an_item_of_its_own() {
    let model = thinking();
    let home = home(&model);
    for name in ["hearth", "hearth-plain"] {
        let body = json!({
            "model": name, "stream": true, "input": "Coat?", "reasoning": { "summary": "auto" },
        });
        let answer = ask(&home, "/v1/responses", body);
        let data = answer
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.map(|data| data.parse().unwrap()).collect();
        let kinds: Vec<&str> = events
            .iter()
            .filter_map(|one| one["type"].as_str())
            .collect();
        let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap();
        let thought_ends = place("response.reasoning_summary_text.done");
        assert_eq!(events[thought_ends]["text"], "It is wet.");
        assert!(place("response.reasoning_summary_text.delta") < thought_ends);
        assert!(thought_ends < place("response.output_text.delta"));
        let output = &events.last().unwrap()["response"]["output"];
        assert_eq!(output[0]["type"], "reasoning", "{output}");
        assert_eq!(output[0]["id"], events[thought_ends]["item_id"]);
        assert_eq!(output[1]["content"][0]["text"], "Take a coat.");
        for event in &events {
            let id = event["item"]["id"].as_str().or(event["item_id"].as_str());
            if let Some(id) = id {
                assert_eq!(
                    event["output_index"],
                    u64::from(id.starts_with("msg_")),
                    "{event}"
                );
            }
        }
    }
}

#[test]
fn those_who_subscribe_hear_thoughts_and_no_request_repeats_them() {
    let model = thinking();
    let home = home(&model);
    let (mut curious, mut plain) = (home.admin(), home.admin());
    curious.ask(json!({ "type": "subscribe", "events": ["chat.reasoning"] }));
    let mut conversation = Value::Null;
    for _ in 0..2 {
        let mut chat = json!({ "type": "chat", "message": "Coat?", "stream": true });
        if !conversation.is_null() {
            chat["conversation_id"] = conversation.clone();
        }
        plain.send(&chat);
        let mut thought = String::new();
        while thought != "It is wet." {
            let event = curious.event("chat.reasoning");
            thought += event["text"].as_str().unwrap();
        }
        // Who streams the turn alone hears nothing of it.
        let response = loop {
            let message = plain.receive();
            assert_ne!(message["event"], "chat.reasoning");
            if message["status"] == "ok" {
                break message;
            }
        };
        assert_eq!(response["data"]["response"], "Take a coat.");
        conversation = response["data"]["conversation_id"].clone();
    }
    let again = model.requests().pop().unwrap().to_string();
    assert!(
        again.contains("Take a coat.") && !again.contains("wet"),
        "{again}"
    );
}
