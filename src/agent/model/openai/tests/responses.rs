//! The Responses API, and when it is used.

use super::*;
use crate::model::client_options::{ClientOptions, Format};
use crate::model::{ModelRequest, Provider};

/// OpenAI's error for a model that takes tools only through the other API.
fn needs_responses() -> Vec<Act> {
    let text = "Function tools with reasoning_effort are not supported for m in \
                /v1/chat/completions. To use function tools, use /v1/responses or set \
                reasoning_effort to 'none'.";
    answer(
        400,
        &json!({"error": {"message": text, "param": "reasoning_effort",
                          "type": "invalid_request_error", "code": null}}),
    )
}

fn items() -> Value {
    json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
        {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "light",
         "arguments": "{\"on\":true}"},
    ])
}

fn completed() -> Vec<Act> {
    answer(
        200,
        &json!({"status": "completed", "output": items(), "usage": token_counts()}),
    )
}

fn token_counts() -> Value {
    json!({"input_tokens": 30, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 20}})
}

#[test]
fn thinking_is_given_up_first_and_then_the_other_api_is_taken() {
    let server = TestServer::new(vec![
        needs_responses(),
        answer(200, &said("Hi")),
        needs_responses(),
        completed(),
    ]);
    let provider = provider(&server);
    let ask = with_tools(hello());
    assert_eq!(ask.reply(&provider).text, "Hi");
    let reply = ask.reply(&provider);
    assert_eq!(reply.text, "I look.");
    assert_eq!(reply.calls.len(), 1);
    assert_eq!(reply.usage, usage(30, 7, 20));
    let heard = server.heard();
    let paths: Vec<&str> = heard
        .iter()
        .map(|heard| heard.head.split(' ').nth(1).unwrap())
        .collect();
    let (chat, responses) = ("/v1/chat/completions", "/v1/responses");
    assert_eq!(paths, [chat, chat, chat, responses]);
    assert_eq!(heard[0].json().get("reasoning_effort"), None);
    assert_eq!(heard[1].json()["reasoning_effort"], "none");
}

#[test]
fn with_reasoning_effort_the_responses_api_is_used_at_once() {
    let server = TestServer::new(vec![needs_responses(), completed()]);
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let provider = provider_with(&server, options, "openai");
    with_tools(hello()).reply(&provider);
    let body = server.heard()[1].json();
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
}

#[test]
fn a_stream_asks_for_summaries_of_thoughts_where_the_account_may_have_them() {
    let why = "Your organization must be verified to generate reasoning summaries.";
    let refused = json!({ "error": { "message": why, "param": "reasoning.summary" } });
    let server = TestServer::new(vec![
        needs_responses(),
        answer(400, &refused),
        completed(),
        completed(),
    ]);
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let provider = provider_with(&server, options, "openai");
    for _ in 0..2 {
        with_tools(streaming()).reply(&provider);
    }
    let sent: Vec<Value> = server
        .heard()
        .iter()
        .skip(1)
        .map(|heard| heard.json()["reasoning"].clone())
        .collect();
    let without = json!({ "effort": "high" });
    let with = json!({ "effort": "high", "summary": "auto" });
    assert_eq!(sent, [with, without.clone(), without]);
}

#[test]
fn thoughts_are_heard_where_the_answer_comes_whole() {
    let mut items = items();
    items[0]["summary"] = json!([{ "type": "summary_text", "text": "The lamp." }]);
    let completed = json!({ "status": "completed", "output": items });
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let server = TestServer::new(vec![needs_responses(), answer(200, &completed)]);
    let provider = provider_with(&server, options, "openai");
    assert_eq!(with_tools(streaming()).thoughts(&provider), "The lamp.");
}

#[test]
fn what_must_fit_a_schema_is_said_in_its_own_form() {
    let server = TestServer::new(vec![needs_responses(), completed()]);
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let provider = provider_with(&server, options, "openai");
    let (ask, schema) = (with_tools(hello()), json!({"type": "object"}));
    let client = ClientOptions {
        strict: vec![ask.tools[0].name.clone()],
        format: Some(Format::Schema {
            name: "a".to_owned(),
            description: Some("b".to_owned()),
            schema: schema.clone(),
            is_strict: true,
        }),
        ..ClientOptions::default()
    };
    let request = ModelRequest {
        client: Some(&client),
        ..ask.request()
    };
    provider.complete(&request, &mut |_| ()).unwrap();
    let format = json!({"name": "a", "description": "b", "schema": schema, "strict": true});
    let heard = server.heard();
    let (chat, body) = (heard[0].json(), heard[1].json());
    assert_eq!(chat["tools"][0]["function"]["strict"], true);
    assert_eq!(chat["response_format"]["json_schema"], format);
    assert_eq!(body["tools"][0]["strict"], true);
    let mut flat = format;
    flat["type"] = json!("json_schema");
    assert_eq!(body["text"]["format"], flat);
}

#[test]
fn an_effort_that_a_model_does_not_know_is_left_out_from_then_on() {
    for refusal in [
        "Model grok-4 does not support parameter reasoningEffort.",
        "Unrecognized request argument supplied: reasoning_effort",
        "adaptive thinking is not supported on this model",
        "This model does not support the effort parameter.",
    ] {
        let refusal = json!({ "error": { "message": refusal } });
        let said = || answer(200, &said("Hi"));
        let server = TestServer::new(vec![answer(400, &refusal), said(), said()]);
        let options = Options {
            reasoning_effort: Some("high"),
            ..Options::default()
        };
        let provider = provider_with(&server, options, "xai");
        for _ in 0..2 {
            assert_eq!(hello().reply(&provider).text, "Hi", "{refusal}");
        }
        let heard = server.heard();
        let efforts: Vec<Value> = (0..3)
            .map(|number| heard[number].json()["reasoning_effort"].clone())
            .collect();
        assert_eq!(efforts, [json!("high"), Value::Null, Value::Null]);
    }
}

#[test]
fn items_go_back_as_they_came_and_results_by_their_call() {
    let stream = |list: &[Value]| streamed("text/event-stream", &events(list), 37);
    let done = |item: &Value| json!({"type": "response.output_item.done", "item": item});
    let mut first: Vec<Value> = vec![
        json!({"type": "response.created", "response": {"error": null}}),
        json!({"type": "response.output_text.delta", "delta": "I "}),
        json!({"type": "response.output_text.delta", "delta": "look."}),
    ];
    first.extend(items().as_array().unwrap().iter().map(done));
    first.push(json!({"type": "response.completed", "response": {"usage": token_counts()}}));
    let server = TestServer::new(vec![
        answer(
            404,
            &json!({"error": {"message":
            "This model is only supported in v1/responses and not in v1/chat/completions."}}),
        ),
        stream(&first),
        stream(&[
            json!({"type": "response.output_text.delta", "delta": "Done."}),
            json!({"type": "response.incomplete", "response": {"output": [],
                   "incomplete_details": {"reason": "max_output_tokens"}}}),
        ]),
    ]);
    let provider = provider(&server);
    let mut ask = with_tools(streaming());
    let (reply, heard) = ask.of(&provider);
    let reply = reply.unwrap();
    assert_eq!(
        (heard.concat(), &*reply.text),
        ("I look.".to_owned(), "I look.")
    );
    ask.go_on(reply, "broken", false);
    let reply = ask.reply(&provider);
    assert_eq!(
        (&*reply.text, reply.finish_reason),
        ("Done.", Some(FinishReason::Length))
    );
    let body = server.heard()[2].json();
    let mut input = vec![json!({"type": "message", "role": "user", "content": "hello"})];
    input.extend(items().as_array().unwrap().clone());
    input.push(json!({"type": "function_call_output", "call_id": "call_1",
                      "output": "Error: broken"}));
    assert_eq!(body["input"], json!(input));
    assert_eq!(body["store"], false);
    assert_eq!(body["instructions"], "You are Ada.");
    assert_eq!(body["tools"][0]["name"], "light");
}

#[test]
fn the_texts_of_several_messages_are_parted() {
    let use_it = || answer(404, &json!({"error": {"message": "use v1/responses"}}));
    let delta = |place: Value, text: &str| json!({"type": "response.output_text.delta", "output_index": place, "delta": text});
    let done = json!({"type": "response.output_item.done", "item": {"type": "message"}});
    let part = |text: &str| json!({"type": "output_text", "text": text});
    let message = |parts: Value| json!({"type": "message", "content": parts});
    let output = json!([
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        message(json!([part("one "), part("word")])),
        message(json!([])),
        message(json!([part("two")])),
    ]);
    let end = json!({"type": "response.completed", "response": {"output": output}});
    // Not all servers say where an item stands.
    for places in [
        [json!(1), json!(2), json!(3)],
        [Value::Null, Value::Null, Value::Null],
    ] {
        let [one, none, two] = places;
        let stream = [
            delta(one.clone(), "one "),
            delta(one, "word"),
            done.clone(),
            delta(none, ""),
            done.clone(),
            delta(two, "two"),
            end.clone(),
        ];
        let stream = streamed("text/event-stream", &events(&stream), 37);
        let server = TestServer::new(vec![use_it(), stream]);
        assert_eq!(
            streaming().reply(&provider(&server)).text,
            "one word\n\ntwo"
        );
    }
    let server = TestServer::new(vec![use_it(), answer(200, &json!({"output": output}))]);
    assert_eq!(hello().reply(&provider(&server)).text, "one word\n\ntwo");
}

#[test]
fn errors_in_the_stream_are_reported() {
    let overloaded = json!({"type": "response.failed", "response": {"error":
        {"code": "invalid_prompt", "message": "I cannot"}}});
    let text = format!("data: {overloaded}\n\n");
    let script = |text: &str| vec![stream_head(), chunk(text), Act::Send(b"0\r\n\r\n".to_vec())];
    for (script, expected) in [
        (script(&text), "reported an error: I cannot"),
        (script("data: {oops\n\n"), "is not JSON"),
    ] {
        let server = TestServer::new(vec![
            answer(404, &json!({"error": {"message": "use v1/responses"}})),
            script,
        ]);
        let (public, _) = streaming().failure(&provider(&server));
        assert!(public.contains(expected), "{public}");
    }
}

#[test]
fn a_response_that_is_not_whole_says_why() {
    let use_it = || answer(404, &json!({"error": {"message": "use v1/responses"}}));
    let incomplete = |reason: &str, output: Value| {
        answer(
            200,
            &json!({"status": "incomplete", "incomplete_details": {"reason": reason},
                    "output": output}),
        )
    };
    let half = |arguments: &str| {
        json!([items()[0], {"type": "function_call", "call_id": "call_1", "name": "light",
                            "status": "incomplete", "arguments": arguments}])
    };
    let refused = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]);
    for (script, text, why, calls) in [
        (
            incomplete("max_output_tokens", json!([])),
            "",
            FinishReason::Length,
            0,
        ),
        (
            incomplete("max_output_tokens", json!([items()[0]])),
            "",
            FinishReason::Length,
            0,
        ),
        (
            incomplete("max_output_tokens", half("{\"on\":")),
            "",
            FinishReason::Length,
            0,
        ),
        (
            incomplete("content_filter", items()),
            "I look.",
            FinishReason::ContentFilter,
            1,
        ),
        (
            answer(200, &json!({ "output": refused })),
            "No.",
            FinishReason::Refusal,
            0,
        ),
    ] {
        let server = TestServer::new(vec![use_it(), script]);
        let reply = with_tools(hello()).reply(&provider(&server));
        assert_eq!((&*reply.text, reply.finish_reason), (text, Some(why)));
        assert_eq!(reply.calls.len(), calls);
    }
    let cut = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Half\"}\n\n";
    let lost = vec![stream_head(), chunk(cut), Act::Send(b"0\r\n\r\n".to_vec())];
    let server = TestServer::new(vec![use_it(), lost]);
    streaming().kept(&provider(&server), "Half");
}

#[test]
fn a_response_without_an_item_is_an_empty_reply() {
    let use_it = || answer(404, &json!({"error": {"message": "use v1/responses"}}));
    let empty = json!({ "status": "completed", "output": [], "usage": token_counts() });
    let created = json!({"type": "response.created", "response": {"output": []}});
    let end = json!({"type": "response.completed", "response": empty});
    for (ask, script) in [
        (hello(), answer(200, &empty)),
        (
            streaming(),
            streamed("text/event-stream", &events(&[created, end]), 37),
        ),
    ] {
        let server = TestServer::new(vec![use_it(), script]);
        let reply = with_tools(ask).reply(&provider(&server));
        assert_eq!((&*reply.text, reply.calls.len()), ("", 0));
        assert_eq!(reply.usage, usage(30, 7, 20));
    }
    let server = TestServer::new(vec![
        use_it(),
        answer(200, &json!({ "status": "completed" })),
    ]);
    let (public, _) = hello().failure(&provider(&server));
    assert!(public.contains("without a reply"), "{public}");
}

#[test]
fn ids_and_schemas_take_the_form_that_a_server_wants() {
    let server = TestServer::new(vec![
        answer(
            422,
            &json!({"detail": "tools.0.parameters: additionalProperties"}),
        ),
        answer(200, &said("Hi")),
    ]);
    let provider = provider_with(&server, Options::default(), "mistral");
    let mut ask = with_tools(hello());
    ask.tools[0].parameters = json!({"type": "object", "additionalProperties": false}).into();
    let ids = ["toolu_01ABC", "abcdefgh1"];
    let calls = ids.map(|id| call(id, "light", "{}")).to_vec();
    ask.messages.push(assistant("", calls, None));
    for id in ids {
        ask.messages.push(tool_result(id, "on", true));
    }
    ask.reply(&provider);
    let body = server.heard()[1].json();
    assert_eq!(
        body["tools"][0]["function"]["parameters"],
        json!({"type": "object"})
    );
    let messages = &body["messages"];
    let id = messages[2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(
        id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{id}"
    );
    assert_eq!(messages[3]["tool_call_id"], id);
    assert_eq!(messages[4]["tool_call_id"], "abcdefgh1");
}

#[test]
fn the_phase_of_an_answer_goes_back_with_it() {
    let spoken = |phase: &str, text: &str| {
        json!({"type": "message", "id": "msg_1", "phase": phase,
               "content": [{"type": "output_text", "text": text}]})
    };
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let output = json!([thought, spoken("final_answer", "Hi")]);
    let server = TestServer::new(vec![
        needs_responses(),
        answer(200, &json!({"status": "completed", "output": output})),
        answer(200, &json!({"status": "completed", "output": output})),
    ]);
    let options = Options {
        reasoning_effort: Some("high"),
        ..Options::default()
    };
    let provider = provider_with(&server, options, "openai");
    let mut ask = with_tools(hello());
    let reply = ask.reply(&provider);
    ask.messages
        .extend([assistant("Hi", Vec::new(), reply.extra), user("more")]);
    ask.reply(&provider);
    let again = server.heard()[2].json();
    let expected = json!({"type": "message", "role": "assistant", "content": "Hi",
                          "phase": "final_answer"});
    assert_eq!(again["input"][1], expected);
    assert!(!again.to_string().contains("rs_1"), "{again}");
}
