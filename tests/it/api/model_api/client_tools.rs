//! Tools that a client runs itself, and what it wants of a reply.

use serde_json::{Value, json};

use super::streams::{begin, open};
use super::{COMPLETIONS, ask, conversations, events, home, home_with};
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model};

fn light() -> Value {
    json!({ "type": "function", "function": {
        "name": "HassTurnOn", "description": "Turns on a device.",
        "parameters": { "type": "object", "properties": { "name": { "type": "string" } } },
    } })
}

/// The names of the tools in a request to the model.
fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// The results that the model was shown.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Looks at the clock, has the client turn on two lights, and says so.
fn assistant() -> Model {
    Model::start(|request, _| match results(request).len() {
        0 => Act::call("current_time", json!({})),
        1 => Act::Call(vec![
            ("HassTurnOn".to_owned(), json!({ "name": "kitchen" })),
            ("HassTurnOn".to_owned(), json!({ "name": "hall" })),
        ]),
        _ => Act::say("Both are on."),
    })
}

fn completion(home: &Home, messages: &Value) -> Value {
    let body = json!({ "model": "hearth", "messages": messages, "tools": [light()] });
    let answer = ask(home, COMPLETIONS, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["choices"][0].clone()
}

#[test]
fn a_tool_of_the_program_that_is_named_wrongly_is_the_nearest() {
    // Small models leave out what a program puts before its names, such as intent__.
    let model = Model::start(|request, _| match results(request).first() {
        None => Act::call("TurnOn", json!({})),
        Some(why) => Act::say(why),
    });
    let home = home(&model);
    let choice = completion(&home, &json!([{ "role": "user", "content": "lights on" }]));
    let said = choice["message"]["content"].as_str().unwrap();
    assert!(said.contains("The nearest is \"HassTurnOn\""), "{choice}");
}

#[test]
fn a_repeated_key_gets_the_same_calls_at_once() {
    let model = assistant();
    let home = home(&model);
    let authorization = super::bearer(&home.tokens.user);
    let mut headers = vec![
        ("authorization", authorization.as_str()),
        ("idempotency-key", "lights"),
    ];
    let mut messages = json!([{ "role": "user", "content": "lights on" }]);
    let send = |headers: &[(&str, &str)], messages: &Value| {
        let body = json!({ "model": "hearth", "messages": messages, "tools": [light()] });
        let answer = post(home.address(), COMPLETIONS, headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["choices"][0].clone()
    };
    let choice = send(&headers, &messages);
    let again = send(&headers, &messages);
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    assert_eq!(
        again["message"]["tool_calls"],
        choice["message"]["tool_calls"]
    );

    let list = messages.as_array_mut().unwrap();
    list.push(again["message"].clone());
    for call in choice["message"]["tool_calls"].as_array().unwrap() {
        list.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "on" }));
    }
    headers.pop();
    let choice = send(&headers, &messages);
    assert_eq!(choice["message"]["content"], "Both are on.", "{choice}");
    assert_eq!(model.requests().len(), 3, "nothing was asked twice");
}

#[test]
fn a_client_runs_its_own_tools_and_the_household_its_own() {
    let model = assistant();
    let home = home(&model);
    let mut messages = json!([{ "role": "user", "content": "lights on" }]);
    let choice = completion(&home, &messages);
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 2, "{choice}");
    assert_eq!(calls[1]["function"]["name"], "HassTurnOn");
    assert_eq!(calls[1]["function"]["arguments"], "{\"name\":\"hall\"}");
    let requests = model.requests();
    assert!(offered(&requests[0]).contains(&"HassTurnOn".to_owned()));
    assert!(offered(&requests[0]).contains(&"remember".to_owned()));

    let list = messages.as_array_mut().unwrap();
    list.push(choice["message"].clone());
    // In another order than they were called.
    for call in calls.iter().rev() {
        let name = call["function"]["arguments"].as_str().unwrap();
        list.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": name }));
    }
    let choice = completion(&home, &messages);
    assert_eq!(choice["message"]["content"], "Both are on.", "{choice}");
    assert_eq!(choice["finish_reason"], "stop");
    let last = model.requests().pop().unwrap();
    let found = results(&last);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[1].contains("kitchen") && found[2].contains("hall"),
        "{found:?}"
    );
    // One turn, and what comes next continues it.
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(2)));
    let list = messages.as_array_mut().unwrap();
    list.push(choice["message"].clone());
    list.push(json!({ "role": "user", "content": "thanks" }));
    completion(&home, &messages);
    let listed = conversations(&home);
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(4)));
}

#[test]
fn calls_are_streamed_and_ollama_has_its_own_form() {
    let model = assistant();
    let home = home(&model);
    let mut messages = json!([{ "role": "user", "content": "lights on" }]);
    let body = |messages: &Value| json!({ "model": "hearth", "messages": messages, "tools": [light()], "stream": true });
    let streamed = events(&ask(&home, COMPLETIONS, body(&messages)));
    let calls: Vec<&Value> = streamed
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0))
        .collect();
    assert_eq!(
        (calls.len(), &calls[1]["index"]),
        (2, &json!(1)),
        "{streamed:?}"
    );
    let last = streamed.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");

    let answer = ask(&home, "/api/chat", body(&messages));
    let lines: Vec<Value> = answer
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    let calls = last["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(
        calls[0]["function"]["arguments"],
        json!({ "name": "kitchen" }),
        "{last}"
    );
    // Home Assistant sends no ids back.
    let list = messages.as_array_mut().unwrap();
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| json!({ "function": call["function"] }))
        .collect();
    list.push(json!({ "role": "assistant", "content": "", "tool_calls": calls }));
    list.push(json!({ "role": "tool", "content": "kitchen done" }));
    list.push(json!({ "role": "tool", "content": "hall done" }));
    let mut body = body(&messages);
    body["stream"] = json!(false);
    let answer = ask(&home, "/api/chat", body).json();
    assert_eq!(answer["message"]["content"], "Both are on.", "{answer}");
    let found = results(&model.requests().pop().unwrap());
    assert!(found[1].contains("kitchen done") && found[2].contains("hall done"));
}

#[test]
fn what_a_client_wants_of_a_reply_reaches_the_model() {
    let model = Model::saying("{}");
    let home = home_with(&model, json!({ "max_tokens": 100, "temperature": 1.0 }));
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let format =
        json!({ "name": "a", "schema": schema, "strict": true, "description": "What it is." });
    let mut tool = light();
    tool["function"]["strict"] = json!(true);
    let answer = ask(
        &home,
        COMPLETIONS,
        json!({
            "model": "hearth", "stop": ["END"], "max_tokens": 50,
            "messages": [{ "role": "user", "content": "hi", "name": "ada" }],
            "metadata": { "foo": "bar" },
            "temperature": 0.5, "seed": 7, "top_p": 1, "user": "ada", "store": false,
            "tools": [tool], "tool_choice": "required",
            "stream_options": { "include_usage": true, "include_obfuscation": false },
            "response_format": { "type": "json_schema", "json_schema": format },
        }),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    let ignored = answer.header("x-hearth-ignored").unwrap_or_default();
    let mut ignored: Vec<&str> = ignored.split(", ").collect();
    ignored.sort_unstable();
    let obfuscation = "stream_options.include_obfuscation";
    assert_eq!(
        ignored,
        [
            "messages.name",
            "metadata.foo",
            "store",
            obfuscation,
            "user"
        ]
    );
    let sent = model.requests().pop().unwrap();
    for (name, value) in [
        ("stop", json!(["END"])),
        ("max_tokens", json!(50)),
        ("temperature", json!(0.5)),
        ("seed", json!(7)),
        ("tool_choice", json!("required")),
    ] {
        assert_eq!(sent[name], value, "{name}");
    }
    assert_eq!(sent["response_format"]["json_schema"], format);
    let tools = sent["tools"].as_array().unwrap();
    let strict = tools.iter().filter(|one| one["function"]["strict"] == true);
    let strict: Vec<&Value> = strict.map(|one| &one["function"]["name"]).collect();
    assert_eq!(strict, ["HassTurnOn"]);
    assert!(sent.get("top_p").is_none(), "{sent}");

    let body = json!({
        "model": "hearth", "messages": messages, "format": schema, "stream": false,
        "options": { "num_predict": 500, "stop": ["x"] },
    });
    assert_eq!(ask(&home, "/api/chat", body).status, 200);
    let sent = model.requests().pop().unwrap();
    assert_eq!(sent["response_format"]["json_schema"]["schema"], schema);
    // No more than the household allows.
    assert_eq!(sent["max_tokens"], 100);
    let body = json!({ "model": "hearth", "messages": messages, "logprobs": true });
    let answer = ask(&home, COMPLETIONS, body);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("logprobs"), "{answer:?}");
}

/// `tool_choice: "none"` holds for the household's tools, too; and what is called all the
/// same is neither run nor handed out.
#[test]
fn a_client_that_wants_words_gets_no_calls() {
    let model = Model::start(|request, _| match request["tool_choice"] == "none" {
        true => Act::say("words"),
        false => Act::call("light", json!({})),
    });
    let home = home(&model);
    let messages = json!([{ "role": "user", "content": "hi" }]);
    for name in ["hearth", "hearth-plain"] {
        let body = json!({ "model": name, "messages": messages, "tools": [light()],
            "tool_choice": "none" });
        let answer = ask(&home, COMPLETIONS, body).json();
        let choice = &answer["choices"][0];
        assert_eq!(choice["message"]["content"], "words", "{name}: {answer}");
        assert_eq!(choice["finish_reason"], "stop", "{name}: {answer}");
    }
    // Nobody offered it.
    let body = json!({ "model": "hearth-plain", "messages": messages });
    let answer = ask(&home, COMPLETIONS, body);
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(answer.body.contains("does not offer"), "{answer:?}");
}

/// A program whose response was lost sends the results again: it gets the same response, and
/// they are used once.
#[test]
fn results_that_come_again_are_answered_again() {
    for path in [COMPLETIONS, "/api/chat"] {
        let call = |name: &str| Act::call("HassTurnOn", json!({ "name": name }));
        let model = Model::start(move |request, _| match results(request).len() {
            0 => call("kitchen"),
            1 => call("hall"),
            _ => Act::Stall("Both are on.".to_owned()),
        });
        let home = home(&model);
        let mut messages = vec![json!({ "role": "user", "content": "lights on" })];
        let body = |messages: &[Value]| json!({ "model": "hearth", "messages": messages, "tools": [light()], "stream": false });
        let send = |messages: &[Value]| {
            let answer = ask(&home, path, body(messages));
            assert_eq!(answer.status, 200, "{answer:?}");
            let answer = answer.json();
            let mut message = match path {
                COMPLETIONS => answer["choices"][0]["message"].clone(),
                _ => answer["message"].clone(),
            };
            if path != COMPLETIONS && message["tool_calls"].is_array() {
                // Home Assistant sends no ids back.
                let call = json!({ "function": message["tool_calls"][0]["function"] });
                message["tool_calls"] = json!([call]);
            }
            message
        };
        let calls = send(&messages);
        let result = |calls: &Value| {
            let id = &calls["tool_calls"][0]["id"];
            let mut result = json!({ "role": "tool", "content": "on" });
            if !id.is_null() {
                result["tool_call_id"] = id.clone();
            }
            result
        };
        messages.extend([calls.clone(), result(&calls)]);
        // The response with the next call is lost.
        let calls = send(&messages);
        assert_eq!(send(&messages), calls);
        assert_eq!(model.requests().len(), 2);
        messages.extend([calls.clone(), result(&calls)]);
        // The connection breaks while the model writes.
        let lost = match path {
            COMPLETIONS => Some(begin(home.address(), &home.tokens.user, &body(&messages))),
            _ => None,
        };
        if lost.is_some() {
            eventually("the model is asked", || {
                (model.requests().len() == 3).then_some(())
            });
            drop(lost);
            eventually("its end", || (open(&home) == 1).then_some(()));
        }
        let reply = std::thread::scope(|scope| {
            let again = scope.spawn(|| send(&messages));
            eventually("it waits", || (open(&home) == 2).then_some(()));
            model.release();
            again.join().unwrap()
        });
        assert_eq!(reply["content"], "Both are on.", "{path}");
        // The response with the reply is lost, too.
        assert_eq!(send(&messages), reply);
        assert_eq!(model.requests().len(), 3, "{path}");
        let listed = conversations(&home);
        assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(2)));
        // They are nobody else's: whoever sends them begins a turn.
        let admin = format!("Bearer {}", home.tokens.admin);
        let headers = [("authorization", admin.as_str())];
        let answer = post(home.address(), path, &headers, &body(&messages));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(model.requests().len(), 4, "{path}");
    }
}

#[test]
fn results_without_their_calls_are_refused() {
    let model = assistant();
    let home = home(&model);
    let messages = json!([
        { "role": "user", "content": "lights on" },
        { "role": "tool", "tool_call_id": "x", "content": "done" },
    ]);
    let body = json!({ "model": "hearth", "messages": messages, "tools": [light()] });
    let answer = ask(&home, COMPLETIONS, body);
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(
        answer.body.contains("no call of this program"),
        "{answer:?}"
    );
    assert!(conversations(&home).is_empty());

    // A turn that waits is found by the ids alone, and needs no message.
    let alone = |ids: [&Value; 2]| {
        let result = |id| json!({ "role": "tool", "tool_call_id": id, "content": "done" });
        let messages = ids.map(result);
        let body = json!({ "model": "hearth", "messages": messages, "tools": [light()] });
        ask(&home, COMPLETIONS, body)
    };
    let unknown = alone([&json!("x"), &json!("y")]);
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let choice = completion(&home, &json!([{ "role": "user", "content": "lights on" }]));
    let calls = &choice["message"]["tool_calls"];
    let answer = alone([&calls[0]["id"], &calls[1]["id"]]);
    assert_eq!(answer.status, 200, "{answer:?}");
    let choice = &answer.json()["choices"][0];
    assert_eq!(choice["message"]["content"], "Both are on.");
    assert_eq!(conversations(&home).len(), 1);
}

#[test]
fn a_turn_that_waits_for_its_client_can_be_stopped() {
    let model = assistant();
    let home = home(&model);
    let messages = json!([{ "role": "user", "content": "lights on" }]);
    completion(&home, &messages);
    let mut user = home.websocket(&home.tokens.user);
    let id = conversations(&home)[0]["id"].clone();
    let listed = user.ask(json!({ "type": "get_messages", "conversation_id": id }));
    let turn = listed["messages"][0]["turn_id"].clone();
    user.ask(json!({ "type": "cancel", "turn_id": turn }));
    eventually("the end of the turn", || {
        let found = user.ask(json!({ "type": "get_turn", "turn_id": turn }));
        (found["state"] == "cancelled").then_some(())
    });
}

#[test]
fn tools_that_leave_no_room_for_a_conversation_are_refused() {
    let model = Model::saying("hi");
    let mut tool = light();
    tool["function"]["description"] = json!("word ".repeat(4_000));
    let body = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "hi" }], "tools": [tool] });
    let small = home_with(&model, json!({ "context_tokens": 4_096 }));
    let answer = ask(&small, COMPLETIONS, body("hearth"));
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("set context_tokens"), "{answer:?}");
    assert!(conversations(&small).is_empty());
    let large = home_with(&model, json!({ "context_tokens": 32_768 }));
    assert_eq!(ask(&large, COMPLETIONS, body("hearth")).status, 200);
}
