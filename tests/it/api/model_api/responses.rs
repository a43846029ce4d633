//! OpenAI's newer interface, and its embeddings.

use serde_json::{Value, json};

use super::{ask, conversations, home, home_with, shown};
use support::home::Home;
use support::http::Answer;
use support::model::{Act, Model};

const RESPONSES: &str = "/v1/responses";

fn respond(home: &Home, body: Value) -> Value {
    let answer = ask(home, RESPONSES, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The events of a stream: each has its name twice, and its number.
fn events(answer: &Answer) -> Vec<Value> {
    let events: Vec<Value> = answer
        .body
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("event: "))
        .map(|event| {
            let (name, data) = event.split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name);
            data
        })
        .collect();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    events
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap());
    kinds.map(|kind| &kind["response.".len()..]).collect()
}

fn light() -> Value {
    json!({ "type": "function", "name": "light_on", "description": "Turns a light on.",
        "parameters": { "type": "object", "properties": { "name": { "type": "string" } } } })
}

/// Has the client turn on a light.
fn assistant() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"] == "tool" {
            false => Act::call("light_on", json!({ "name": "hall" })),
            true => Act::say("It is on."),
        }
    })
}

#[test]
fn a_response_has_the_reply_and_goes_on() {
    let model = Model::saying("fine");
    let home = home(&model);
    let body = json!({ "model": "hearth", "input": "hello", "instructions": "Be brief.",
        "max_output_tokens": 50,
        "text": { "format": { "type": "json_object" }, "verbosity": "low" } });
    let answer = ask(&home, RESPONSES, body);
    assert_eq!(answer.header("x-hearth-ignored"), Some("text.verbosity"));
    let first = answer.json();
    assert_eq!(
        (&first["object"], &first["status"]),
        (&json!("response"), &json!("completed"))
    );
    let item = &first["output"][0];
    assert_eq!(
        (&item["type"], &item["role"]),
        (&json!("message"), &json!("assistant"))
    );
    assert_eq!(item["content"][0]["type"], "output_text");
    assert_eq!(item["content"][0]["text"], "fine");
    assert!(first["usage"]["total_tokens"].is_u64(), "{first}");
    let request = &model.requests()[0];
    assert_eq!(request["response_format"]["type"], "json_object");
    assert!(
        request["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("Be brief.")
    );

    respond(
        &home,
        json!({ "model": "hearth", "instructions": "Be brief.", "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "hello" }] },
            { "type": "reasoning", "id": "rs_1", "summary": [] },
            item,
            { "type": "message", "role": "user", "content": "and now?" },
        ] }),
    );
    assert_eq!(conversations(&home).len(), 1);
    let said = shown(&model.requests()[1]);
    let texts: Vec<&str> = said.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["[user] hello", "fine", "[user] and now?"]);

    // The model alone answers here too.
    respond(
        &home,
        json!({ "model": "hearth-plain", "input": "a title" }),
    );
    assert_eq!(conversations(&home).len(), 1);
    assert_eq!(shown(&model.requests()[2]).len(), 1);
}

#[test]
fn a_stream_has_the_events_that_the_libraries_wait_for() {
    let model = Model::saying("fine day");
    let home = home(&model);
    let body = json!({ "model": "hearth", "input": "hello", "stream": true });
    let answer = ask(&home, RESPONSES, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let events = events(&answer);
    let mut seen = kinds(&events);
    seen.dedup();
    let expected = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(seen, expected);
    let deltas = events.iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "fine day");
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], "fine day");
    assert_eq!(response["status"], "completed");
    assert_eq!(response["id"], events[0]["response"]["id"]);
}

#[test]
fn a_failure_is_an_error_or_the_last_event() {
    let half = Act::Pause("half and half".to_owned());
    let model = Model::acting(vec![Act::error(400, "", "no"), half]);
    let home = home_with(&model, json!({ "limits": { "turn_seconds": 2 } }));
    let answer = ask(
        &home,
        RESPONSES,
        json!({ "model": "hearth", "input": "hello" }),
    );
    assert_ne!(answer.status, 200);
    assert!(answer.json()["error"]["message"].is_string(), "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));

    let body = json!({ "model": "hearth", "input": "again", "stream": true });
    let events = events(&ask(&home, RESPONSES, body));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(last["response"]["error"]["message"].is_string(), "{last}");
    model.release();
}

#[test]
fn a_client_runs_its_own_tools_whole_or_streamed() {
    for stream in [false, true] {
        let model = assistant();
        let home = home(&model);
        let question = json!({ "role": "user", "content": "light in the hall" });
        let body = |input: Value| json!({ "model": "hearth", "input": input, "tools": [light()], "stream": stream });
        let response = |answer: &Answer| match stream {
            false => answer.json(),
            true => events(answer).last().unwrap()["response"].clone(),
        };
        let answer = ask(&home, RESPONSES, body(json!([question])));
        let output = response(&answer)["output"].clone();
        let call = &output[0];
        assert_eq!(call["type"], "function_call", "{answer:?}");
        assert_eq!(call["name"], "light_on");
        assert_eq!(call["arguments"], "{\"name\":\"hall\"}");
        assert_eq!(output.as_array().unwrap().len(), 1);
        if stream {
            let events = events(&answer);
            let kinds = kinds(&events);
            assert!(kinds.contains(&"function_call_arguments.done"), "{kinds:?}");
        }
        let result = json!({ "type": "function_call_output", "call_id": call["call_id"],
            "output": "done" });
        // As the item itself, or as some libraries name it when they think it is kept.
        let named = match stream {
            false => call.clone(),
            true => json!({ "type": "item_reference", "id": call["id"] }),
        };
        let answer = ask(&home, RESPONSES, body(json!([question, named, result])));
        let response = response(&answer);
        assert_eq!(
            response["output"][0]["content"][0]["text"], "It is on.",
            "{answer:?}"
        );
        assert_eq!(conversations(&home).len(), 1);
    }
}

#[test]
fn what_would_need_kept_responses_is_refused() {
    let model = Model::saying("fine");
    let home = home(&model);
    let question = json!({ "role": "user", "content": "x" });
    let reference = json!({ "type": "item_reference", "id": "msg_1" });
    for (more, says) in [
        (
            json!({ "previous_response_id": "resp_1" }),
            "\"previous_response_id\" needs",
        ),
        (
            json!({ "conversation": "conv_1" }),
            "\"conversation\" needs",
        ),
        (json!({ "background": true }), "\"background\" cannot"),
        (
            json!({ "tools": [{ "type": "web_search" }], "tool_choice": "required" }),
            "where there are no",
        ),
        (
            json!({ "input": [question, reference] }),
            "\"store\" to false",
        ),
        (
            json!({ "input": [{ "type": "computer_call" }] }),
            "computer_call",
        ),
        (json!({ "input": ["x"] }), "a text or items"),
        (json!({ "text": "x" }), "\"text\" must be an object"),
        (json!({ "input": 7 }), "a text or items"),
        (json!({ "input": [] }), "the last message must be a user's"),
    ] {
        let mut body = json!({ "model": "hearth", "input": "hello" });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        let answer = ask(&home, RESPONSES, body);
        assert_eq!(answer.status, 400, "{more}: {answer:?}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.replace("\\\"", "\"").contains(says), "{message}");
    }
    assert!(model.requests().is_empty());
}

#[test]
fn embeddings_come_from_the_provider_as_they_are() {
    let answer = json!({ "object": "list", "model": "embed-1",
        "data": [{ "object": "embedding", "index": 0, "embedding": [0.5, -0.25] }],
        "usage": { "prompt_tokens": 3, "total_tokens": 3 } });
    let sent = answer.clone();
    let model = Model::start(move |request, _| match request["model"].as_str() {
        Some("broken") => Act::error(401, "", "wrong key"),
        Some("unknown") => Act::error(404, "", "no such model"),
        _ => Act::json(&sent),
    });
    let home_of = |more: Value| home_with(&model, more);
    let home = home_of(json!({}));
    let embed = |home: &Home, model: &str| {
        let body = json!({ "model": model, "input": ["a", "b"], "encoding_format": "float" });
        ask(home, "/v1/embeddings", body)
    };
    let got = embed(&home, "embed-1");
    assert_eq!((got.status, got.json()), (200, answer));
    let request = model.requests().pop().unwrap();
    assert_eq!(
        request,
        json!({ "input": ["a", "b"], "encoding_format": "float", "model": "embed-1" })
    );
    for (name, status, says) in [
        ("broken", 424, "status 401"),
        ("unknown", 404, "no such model"),
        ("hearth", 400, "memory.embeddings"),
        ("", 400, "\\\"model\\\" must name"),
    ] {
        let got = embed(&home, name);
        assert_eq!(got.status, status, "{name}: {got:?}");
        assert!(got.body.contains(says), "{name}: {got:?}");
    }
    let own = home_of(json!({ "memory": { "embeddings": { "model": "own" } } }));
    assert_eq!(embed(&own, "hearth").status, 200);
    assert_eq!(model.requests().pop().unwrap()["model"], "own");
    // Ollama's two forms of the same.
    let whole = json!({ "model": "hearth", "embeddings": [[0.5, -0.25]], "prompt_eval_count": 3,
        "total_duration": 0, "load_duration": 0 });
    for (path, body, sent, expected) in [
        (
            "/api/embed",
            json!({ "input": ["a"], "options": null, "keep_alive": "5m" }),
            json!(["a"]),
            whole,
        ),
        (
            "/api/embeddings",
            json!({ "prompt": "a", "keep_alive": "5m" }),
            json!("a"),
            json!({ "embedding": [0.5, -0.25] }),
        ),
    ] {
        let mut body = body;
        body["model"] = json!("hearth");
        let got = ask(&own, path, body.clone());
        assert_eq!((got.status, got.json()), (200, expected), "{path}");
        assert_eq!(got.header("x-hearth-ignored"), Some("keep_alive"), "{path}");
        let request = model.requests().pop().unwrap();
        assert_eq!(request, json!({ "input": sent, "model": "own" }));
        body["model"] = json!("unknown");
        let got = ask(&own, path, body);
        assert_eq!(got.status, 404, "{path}");
        assert!(got.json()["error"].is_string(), "{path}: {got:?}");
    }

    let none = home_of(json!({ "provider": "anthropic", "api_key": "sk-ant-x" }));
    let got = embed(&none, "embed-1");
    assert_eq!(got.status, 400, "{got:?}");
    assert!(got.body.contains("makes no embeddings"), "{got:?}");
}

/// As Codex CLI sends them: a service's own tools, and tools in namespaces.
#[test]
fn tools_that_nobody_here_runs_are_left_out_and_those_of_namespaces_are_found() {
    let model = Model::start(|request, _| match request["messages"].to_string() {
        said if said.contains("of notes") => Act::say("Done."),
        _ => Act::call("mcp__notes__add", json!({ "text": "milk" })),
    });
    let home = home_with(&model, json!({}));
    let add = json!({ "type": "function", "name": "add", "strict": false,
        "parameters": { "type": "object", "properties": { "text": { "type": "string" } } } });
    let tools = json!([
        { "type": "web_search", "external_web_access": true },
        { "type": "custom", "name": "apply_patch", "format": { "type": "grammar" } },
        { "type": "namespace", "name": "mcp__notes__", "description": "x", "tools": [add] },
    ]);
    for stream in [false, true] {
        let mut input = vec![json!({ "role": "user", "content": "add milk" })];
        let respond = |input: &[Value]| {
            let body = json!({ "model": "hearth-plain", "input": input, "tools": tools,
                "tool_choice": "auto", "stream": stream });
            let answer = ask(&home, RESPONSES, body);
            assert_eq!(answer.status, 200, "{answer:?}");
            let ignored = answer.header("x-hearth-ignored").unwrap();
            assert!(
                ignored.starts_with("tools.web_search, tools.custom"),
                "{ignored}"
            );
            match stream {
                false => answer.json(),
                true => {
                    let last = answer.body.rsplit_once("data: ").unwrap().1;
                    last.parse::<Value>().unwrap()["response"].take()
                }
            }
        };
        let call = respond(&input)["output"][0].clone();
        assert_eq!(
            (&call["namespace"], &call["name"]),
            (&json!("mcp__notes__"), &json!("add"))
        );
        let offered = model.requests().pop().unwrap()["tools"].clone();
        assert_eq!(offered.as_array().unwrap().len(), 1, "{offered}");
        input.push(call.clone());
        input.push(
            json!({ "type": "function_call_output", "call_id": call["call_id"],
            "output": "of notes" }),
        );
        let done = respond(&input);
        assert_eq!(done["output"][0]["content"][0]["text"], "Done.", "{done}");
    }
    let demanded = json!({ "model": "hearth", "input": "hi", "tools": tools,
        "tool_choice": { "type": "web_search" } });
    assert_eq!(ask(&home, RESPONSES, demanded).status, 400);
}
