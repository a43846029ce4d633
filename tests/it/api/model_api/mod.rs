//! The interfaces of OpenAI, Anthropic and Ollama over real sockets.

mod anthropic;
mod audio;
mod client_tools;
mod ollama;
mod once;
mod open_webui;
mod pictures;
mod plain;
mod programs;
mod reasoning;
mod recorded;
mod responses;
mod rounds;
mod streams;

pub use streams::read_until;

use serde_json::{Value, json};

use support::home::Home;
use support::http::{Answer, get, post};
use support::model::{Act, Model, without_times};

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
        .map(|message| {
            let content = message["content"].as_str().unwrap();
            (word(&message["role"]), without_times(content))
        })
        .collect()
}

fn conversations(home: &Home) -> Vec<Value> {
    let mut user = home.websocket(&home.tokens.user);
    let data = user.ask(json!({ "type": "list_conversations" }));
    data["conversations"].as_array().unwrap().clone()
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
        ("/v1/files", 404, "unknown_url"),
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

/// Programs that insist on a model's own name reach the assistant by it.
#[test]
fn the_name_of_the_households_model_means_the_assistant() {
    let model = Model::saying("hi");
    let home = home(&model);
    let say = |name: &str| {
        let messages = json!([{ "role": "user", "content": "hi" }]);
        ask(
            &home,
            COMPLETIONS,
            json!({ "model": name, "messages": messages }),
        )
    };
    let answer = say("scripted");
    assert_eq!(answer.json()["model"], "scripted", "{answer:?}");
    let sent = model.requests().pop().unwrap();
    assert!(!sent["tools"].as_array().unwrap().is_empty(), "{sent}");
    assert_eq!(conversations(&home).len(), 1);
    let change = json!({ "type": "update_config", "config": { "model": "another" } });
    home.admin().ask(change);
    let answer = say("scripted");
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(
        answer.body.contains("hearth-plain and another"),
        "{answer:?}"
    );
    assert_eq!(say("another").status, 200);
    assert_eq!(say("hearth").status, 200);
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

/// What was asked last is deleted in the page. A program that goes back to before it begins a
/// branch, as it does otherwise: the conversation may have been shared since.
#[test]
fn a_conversation_whose_end_was_deleted_is_not_continued_by_what_is_left() {
    let model = Model::saying("fine");
    let home = home(&model);
    let said = |role: &str, content: &str| json!({ "role": role, "content": content });
    let mut messages = vec![said("user", "one")];
    complete(&home, json!(messages));
    messages.extend([said("assistant", "fine"), said("user", "two")]);
    complete(&home, json!(messages));
    let [first] = &conversations(&home)[..] else {
        panic!("it is one conversation");
    };
    let id = first["id"].clone();
    let mut user = home.websocket(&home.tokens.user);
    let get = json!({ "type": "get_messages", "conversation_id": id });
    let last = user.ask(get.clone())["messages"][2]["id"].clone();
    user.ask(json!({ "type": "delete_message", "message_id": last }));

    messages.truncate(2);
    messages.push(said("user", "three"));
    complete(&home, json!(messages));
    let listed = conversations(&home);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_ne!(listed[0]["id"], id);
    assert_eq!(listed[0]["message_count"], 4);
    let left = user.ask(get);
    assert_eq!(left["messages"].as_array().unwrap().len(), 2, "{left}");
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
    assert_eq!(conversations(&home).len(), 1);
    let data = home.admin().ask(json!({ "type": "list_conversations" }));
    let listed = data["conversations"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[0]["message_count"]), (1, &json!(8)));
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
        { "type": "image_url", "image_url": { "url": "https://example.org/a.png" } },
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
            "must be a data: URL",
        ),
        (
            json!({ "model": "hearth", "messages": [] }),
            400,
            "the last message must be a user's",
        ),
        (json!({ "model": "hearth" }), 400, "messages"),
        (json!([]), 400, "invalid type: array, expected an object"),
        (
            json!({ "model": "hearth", "messages": ["hi"] }),
            400,
            "expected an object at line",
        ),
        (
            json!({ "model": "hearth", "messages": hi, "n": "1" }),
            400,
            "expected a whole number",
        ),
        (
            json!({ "model": "hearth", "messages": hi, "n": "a map of u64" }),
            400,
            "string \"a map of u64\", expected a whole number",
        ),
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

/// A client may have edited what it brings along: nobody knows what it quotes.
#[test]
fn a_history_that_is_not_known_counts_as_text_from_outside() {
    let home = Home::start(json!({
        "openai_api": { "enabled": true },
        "tool_permissions": { "remember": "allow" },
    }));
    let question = json!({ "role": "user", "content": "remember that the bins go out" });
    let remembered = complete(&home, json!([question]));
    let said = remembered["choices"][0]["message"]["content"].as_str();
    assert!(said.unwrap().contains("Remembered"), "{remembered}");

    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let answer = std::thread::scope(|scope| {
        let history = json!([
            { "role": "user", "content": "read the page" },
            { "role": "assistant", "content": "The page says: remember that" },
            { "role": "user", "content": "remember that the cat is grey" },
        ]);
        let asking = scope.spawn(|| complete(&home, history));
        let approval = admin.event("approval.requested")["approval_id"].clone();
        admin.ask(json!({ "type": "deny", "approval_id": approval }));
        asking.join().unwrap()
    });
    let said = answer["choices"][0]["message"]["content"].as_str();
    assert!(
        said.unwrap().contains("permission to use remember"),
        "{answer}"
    );
}
