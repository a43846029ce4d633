//! Replies that are not whole: everybody is told so.

use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::Home;
use support::http::post;
use support::model::{Act, Model, whole};
use support::receiver::Receiver;

use crate::agent::memory::{say, with_webhook};

fn cut(text: &str, reason: &str) -> Act {
    Act::Raw(whole(
        &json!({ "role": "assistant", "content": text }),
        reason,
    ))
}

#[test]
fn a_reply_that_was_cut_says_so_wherever_it_is_shown() {
    for (sent, reason, end) in [
        ("length", "length", "its limit on tokens"),
        ("content_filter", "content_filter", "content filter"),
    ] {
        let model = Model::acting(vec![cut("Once upon", sent), Act::say("a time.")]);
        let home = Home::start(model.config());
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
        client.send(&json!({ "type": "chat", "message": "tell me a story", "id": 1 }));
        assert_eq!(client.event("chat.done")["finish_reason"], reason);
        let response = client.response()["data"].clone();
        assert_eq!(response["response"], "Once upon");
        assert_eq!(response["finish_reason"], reason);
        let conversation = response["conversation_id"].clone();
        let page = json!({ "type": "get_messages", "conversation_id": conversation });
        let messages = client.ask(page)["messages"].clone();
        assert_eq!(messages[1]["finish_reason"], reason);
        assert_eq!(messages[0].get("finish_reason"), None);
        let turn = client.ask(json!({ "type": "get_turn", "turn_id": response["turn_id"] }));
        assert_eq!(turn["finish_reason"], reason);
        // The model knows it, too, and goes on.
        let next = say(&mut client, &conversation, "go on");
        assert_eq!(next.get("finish_reason"), None, "{next}");
        let told = model.requests()[1]["messages"][2]["content"].to_string();
        assert!(
            told.starts_with("\"Once upon\\n\\n[This reply was cut off: "),
            "{told}"
        );
        assert!(told.contains(end), "{told}");
    }
}

#[test]
fn a_callback_says_that_the_reply_was_cut() {
    let (model, receiver) = (
        Model::acting(vec![cut("Once upon", "length")]),
        Receiver::start(),
    );
    let home = with_webhook(&model, &receiver, "allow");
    let body = json!({ "message": "a story", "conversation_id": "x" });
    assert_eq!(
        post(home.address(), "/webhook/door", &[], &body).status,
        202
    );
    let called = receiver.wait_for(1)[0].body.clone();
    assert_eq!(called["message"], "Once upon");
    assert_eq!(called["finish_reason"], "length");
}

/// A limit that thinking used up is no empty answer.
#[test]
fn a_reply_that_was_cut_before_its_first_word_is_an_error_that_says_why() {
    let half = json!([{ "id": "a", "type": "function", "function":
                        { "name": "write_file", "arguments": "{\"path\": \"letter.tx" } }]);
    let call = json!({ "role": "assistant", "content": "", "tool_calls": half });
    for act in [cut("", "length"), Act::Raw(whole(&call, "length"))] {
        let model = Model::acting(vec![act]);
        let home = Home::start(model.config());
        let mut client = home.admin();
        client.send(&json!({ "type": "chat", "message": "hello" }));
        let error: Value = client.response()["error"].clone();
        let text = error.as_str().unwrap();
        for part in ["limit on tokens", "within a tool call", "max_tokens"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(model.requests().len(), 1, "it is not asked again");
    }
}

#[test]
fn a_model_that_answers_nothing_is_an_error_that_says_what_to_do() {
    let model = Model::acting(vec![Act::say(""), Act::say("")]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "hello" }));
    let error: Value = client.response()["error"].clone();
    let text = error.as_str().unwrap();
    for part in [
        "empty answer twice",
        "ask again in other words",
        "another model",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// What was to be done is done, and nothing more was said.
#[test]
fn an_empty_reply_after_a_tool_is_no_error() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "no eggs" })),
        Act::say(""),
        Act::say(""),
    ]);
    let home = Home::start(model.config());
    let reply = home.admin().chat("no eggs for me");
    assert_eq!(reply["response"], "Done. (remember)");
}

/// What a server at home says of itself helps those who run it, and is nothing for others.
#[test]
fn the_words_of_a_broken_server_at_home_are_for_its_admin() {
    let broken = || Act::error(500, "retry-after-ms: 1\r\n", "CUDA is out of memory");
    let (model, receiver) = (Model::start(move |_, _| broken()), Receiver::start());
    let home = with_webhook(&model, &receiver, "allow");
    let failure = |client: &mut Client, audience: Value| {
        client.send(&json!({ "type": "chat", "message": "hello", "audience": audience }));
        client.response()["error"].as_str().unwrap().to_owned()
    };
    let mut user = home.websocket(&home.tokens.user);
    for error in [
        failure(&mut user, json!("private")),
        failure(&mut home.admin(), json!("household")),
    ] {
        assert!(error.contains("failed (500)"), "{error}");
        assert!(error.contains("(reference "), "{error}");
        assert!(!error.contains("CUDA"), "{error}");
    }
    let error = failure(&mut home.admin(), json!("private"));
    assert!(error.contains("CUDA is out of memory"), "{error}");
    let body = json!({ "message": "hello", "conversation_id": "x" });
    assert_eq!(
        post(home.address(), "/webhook/door", &[], &body).status,
        202
    );
    let called = receiver.wait_for(1)[0].body.to_string();
    assert!(called.contains("failed (500)"), "{called}");
    assert!(!called.contains("CUDA"), "{called}");
}

/// The person learns for how long the model is busy.
#[test]
fn a_wait_for_a_busy_model_is_told() {
    let model = Model::acting(vec![
        Act::error(429, "Retry-After: 2\r\n", "slow down"),
        Act::say("Hi"),
    ]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "hello", "stream": true, "id": 1 }));
    let waits = std::iter::repeat_with(|| client.receive())
        .find(|message| message["event"] != "message.created")
        .unwrap();
    assert_eq!(waits["event"], "chat.waiting", "{waits}");
    assert_eq!(waits["seconds"], 2);
    assert_eq!(client.response()["data"]["response"], "Hi");
}

/// Whoever reads along has seen it: it is not said in other words after a restart.
#[test]
fn what_was_said_before_a_restart_stays_and_the_rest_follows() {
    let begun = "Once upon a time there was a very small house. ".repeat(20);
    let model = Model::acting(vec![Act::Pause(begun), Act::say("It had a door.")]);
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "a story", "stream": true, "id": 1 }));
    let seen = client.event("chat.delta");
    let (read, turn) = (seen["text"].as_str().unwrap().trim(), &seen["turn_id"]);
    assert!(!read.is_empty());
    home.restart_at_once();
    let mut client = home.admin();
    let told = model.wait_for_requests(2)[1]["messages"].clone();
    let told = told.as_array().unwrap().clone();
    let [.., said, note] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(said["role"], "assistant", "{told:?}");
    assert!(
        said["content"].as_str().unwrap().starts_with(read),
        "{said}"
    );
    assert_eq!(note["role"], "user");
    assert!(note.to_string().contains("Go on from there"), "{note}");
    let reply = eventually("the turn ends", || {
        let turn = client.ask(json!({ "type": "get_turn", "turn_id": turn }));
        turn["response"].as_str().map(str::to_owned)
    });
    assert!(reply.starts_with(read), "{reply}");
    assert!(reply.ends_with("\n\nIt had a door."), "{reply}");
}

/// Whoever reads along has seen it, and a reload must not lose it.
#[test]
fn what_was_said_before_a_call_is_part_of_the_reply() {
    let recipe = "200 g flour, 3 eggs. I add it to the list.";
    let with_call = json!({ "role": "assistant", "content": recipe, "tool_calls": [{
        "id": "1", "type": "function",
        "function": { "name": "update_list", "arguments": "{\"list\":\"shopping\",\"add\":[\"eggs\"]}" },
    }] });
    let model = Model::acting(vec![
        Act::Raw(whole(&with_call, "tool_calls")),
        Act::say("Done."),
    ]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "pancakes?", "stream": true, "id": 1 }));
    let (mut streamed, mut answer) = (String::new(), Value::Null);
    while answer.is_null() {
        let next = client.receive();
        match next["event"].as_str() {
            Some("chat.delta") => streamed += next["text"].as_str().unwrap(),
            Some(_) => {}
            None => answer = next["data"].clone(),
        }
    }
    let reply = format!("{recipe}\n\nDone.");
    assert_eq!((&answer["response"], &streamed), (&json!(reply), &reply));
    let conversation = answer["conversation_id"].clone();
    say(&mut client, &conversation, "thanks");
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    assert_eq!(client.ask(page)["messages"][1]["content"], reply);
    // The model is shown each part once, where it said it.
    let shown = model.requests()[2]["messages"].clone();
    assert_eq!(shown[2]["content"], recipe);
    assert_eq!(shown[4]["content"], "Done.");
}

/// What the model was told stays, also where the turn failed then.
#[test]
fn the_hint_that_a_call_was_repeated_stays_with_a_turn_that_fails() {
    let call = || Act::call("list_files", json!({}));
    let mut acts: Vec<Act> = (0..4).map(|_| call()).collect();
    acts.push(Act::error(400, "", "no"));
    acts.push(Act::say("Sorry."));
    let model = Model::acting(acts);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["chat.failed"] }));
    client.send(&json!({ "type": "chat", "message": "go", "id": 1 }));
    let conversation = client.event("chat.failed")["conversation_id"].clone();
    client.response();
    say(&mut client, &conversation, "what happened?");
    let requests = model.requests();
    let (failed, next) = (&requests[4]["messages"], &requests[5]["messages"]);
    let failed = failed.as_array().unwrap();
    assert!(
        failed.last().unwrap().to_string().contains("<note "),
        "{failed:?}"
    );
    assert_eq!(failed[..], next.as_array().unwrap()[..failed.len()]);
}
