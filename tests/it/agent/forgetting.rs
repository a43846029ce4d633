//! What is forgotten is no longer part of what the model is shown.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use base::sync::lock;
use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;
use support::model::{Act, Model};

use crate::agent::memory::{say, system};

const SECRET: &str = "SECRETZ expects a child";

/// A model that does what it is told to next, and else says a word.
struct Scripted {
    model: Model,
    next: Arc<Mutex<VecDeque<Act>>>,
}

fn is_summary(request: &Value) -> bool {
    system(request).starts_with("You keep the notes")
}

impl Scripted {
    fn start() -> Scripted {
        let next: Arc<Mutex<VecDeque<Act>>> = Arc::default();
        let acts = Arc::clone(&next);
        let model = Model::start(move |request, _| {
            let is_told = request.to_string().contains("SECRETZ");
            match is_summary(request) {
                true if is_told => Act::say("They spoke of SECRETZ."),
                true => Act::say("They spoke."),
                false => lock(&acts).pop_front().unwrap_or_else(|| Act::say("Fine.")),
            }
        });
        Scripted { model, next }
    }

    /// Has it call these tools in the turn of the next message.
    fn call(&self, calls: &[(&str, Value)]) {
        let calls = calls
            .iter()
            .map(|(tool, arguments)| Act::call(tool, arguments.clone()));
        *lock(&self.next) = calls.collect();
    }

    /// Whether its last request but for those for summaries has this.
    fn is_told(&self, text: &str) -> bool {
        let requests = self.model.requests();
        let last = requests.iter().rfind(|request| !is_summary(request));
        last.unwrap().to_string().contains(text)
    }
}

fn id_of(client: &mut Client, content: &str) -> Value {
    let memories = client.ask(json!({ "type": "list_memories" }));
    let memories = memories["memories"].as_array().unwrap();
    let found = memories.iter().find(|memory| memory["content"] == content);
    found.unwrap()["id"].clone()
}

#[test]
fn what_is_forgotten_goes_from_results_and_calls() {
    let scripted = Scripted::start();
    let mut home = Home::start(scripted.model.config());
    let mut client = home.admin();
    let words = ["SECRETZ pregnant", "baby"];
    scripted.call(&[(
        "remember",
        json!({ "content": SECRET, "search_words": words }),
    )]);
    let told = client.chat("note it")["conversation_id"].clone();
    assert!(scripted.is_told(SECRET));
    let id = id_of(&mut client, SECRET);
    let conversation = client.chat("hello")["conversation_id"].clone();
    let kept = json!({ "content": "Zoë likes children." });
    let found = json!({ "query": "child" });
    scripted.call(&[("remember", kept), ("recall", found.clone())]);
    say(&mut client, &conversation, "who expects one?");
    assert!(scripted.is_told(&format!("): {SECRET}")));
    scripted.call(&[("recall", found), ("forget", json!({ "memory_id": id }))]);
    say(&mut client, &conversation, "forget that");
    say(&mut client, &conversation, "next");
    assert!(
        !scripted.is_told("SECRETZ"),
        "{:?}",
        scripted.model.requests().last()
    );
    assert!(
        scripted.is_told("): Zoë likes children."),
        "what stays is shown"
    );
    let sent = |request: &Value| request["messages"].as_array().unwrap().clone();
    say(&mut client, &conversation, "and next");
    let requests = scripted.model.requests();
    let [before, last] = &requests[requests.len() - 2..] else {
        panic!("two requests");
    };
    assert!(sent(last).starts_with(&sent(before)), "made anew once");
    home.restart();
    say(&mut home.admin(), &told, "next");
    assert!(
        !scripted.is_told("SECRETZ"),
        "{:?}",
        scripted.model.requests().last()
    );
}

#[test]
fn what_is_replaced_is_forgotten() {
    let scripted = Scripted::start();
    let home = Home::start(scripted.model.config());
    let mut client = home.admin();
    scripted.call(&[("remember", json!({ "content": SECRET }))]);
    let conversation = client.chat("note it")["conversation_id"].clone();
    let new = json!({ "content": "She has a child.", "replaces": SECRET.to_lowercase() });
    scripted.call(&[("remember", new)]);
    say(&mut client, &conversation, "it is born");
    say(&mut client, &conversation, "next");
    let last = scripted.model.requests().pop().unwrap().to_string();
    assert!(!last.to_lowercase().contains("secretz"), "{last}");
    assert!(last.contains("She has a child."), "{last}");
}

/// The summary is made anew, of what is left.
#[test]
fn what_is_forgotten_goes_from_summaries() {
    let scripted = Scripted::start();
    let mut config = scripted.model.config();
    config["context_tokens"] = json!(6_000);
    let home = Home::start(config);
    let mut client = home.admin();
    scripted.call(&[("remember", json!({ "content": SECRET }))]);
    client.chat("note it");
    let id = id_of(&mut client, SECRET);
    let conversation = client.chat("hello")["conversation_id"].clone();
    scripted.call(&[("recall", json!({ "query": "child" }))]);
    say(&mut client, &conversation, "who expects one?");
    let summaries = || {
        let requests = scripted.model.requests();
        let summaries = requests.iter().filter(|request| is_summary(request));
        summaries.cloned().collect::<Vec<_>>()
    };
    let talk = |client: &mut Client, until: usize| {
        for number in 0..60 {
            say(
                client,
                &conversation,
                &format!("{number} {}", "word ".repeat(200)),
            );
            if summaries().len() > until {
                break;
            }
        }
        summaries().len()
    };
    let made = talk(&mut client, 0);
    assert!(summaries()[0].to_string().contains("SECRETZ"));
    client.ask(json!({ "type": "delete_memory", "memory_id": id }));
    let again = talk(&mut client, made);
    assert!(again > made);
    say(&mut client, &conversation, "next");
    for summary in &summaries()[made..] {
        assert!(!summary.to_string().contains("SECRETZ"), "{summary}");
    }
    assert!(!scripted.is_told("SECRETZ"));
}

/// A household keeps what it knows, and learns nothing unasked.
#[test]
fn a_memory_that_replaces_another_is_for_those_who_saw_that() {
    for mode in ["allow", "ask"] {
        let scripted = Scripted::start();
        let granted = json!({ "remember": "allow", "forget": "allow" });
        let settings = json!({ "permission_mode": mode, "tool_permissions": granted });
        let home = Home::start(scripted.model.config_with(settings));
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        let audiences = |client: &mut Client| {
            let memories = client.ask(json!({ "type": "list_memories" }))["memories"].take();
            let of = |one: &Value| format!("{} {}", one["content"], one["audience"]);
            let memories = memories.as_array().unwrap();
            memories.iter().map(of).collect::<Vec<_>>().join("; ")
        };
        let shared = json!({ "content": "Bins on Monday", "share": true });
        scripted.call(&[("remember", shared)]);
        client.chat("everybody should know");
        let new = json!({
            "content": "Bins on Friday", "replaces": "bins on monday", "share": false,
        });
        scripted.call(&[("remember", new)]);
        client.send(&json!({ "type": "chat", "message": "that has changed", "id": "chat" }));
        if mode == "ask" {
            let asked = client.event("approval.requested");
            let reason = asked["reason"].as_str().unwrap();
            assert!(
                reason.starts_with("More people than see this conversation"),
                "{reason}"
            );
            assert_eq!(audiences(&mut client), r#""Bins on Monday" "household""#);
            client.send(&json!({ "type": "approve", "approval_id": asked["approval_id"] }));
        }
        while client.response()["id"] != "chat" {}
        assert_eq!(audiences(&mut client), r#""Bins on Friday" "household""#);
        // What only these people knew stays with them, unasked.
        scripted.call(&[("remember", json!({ "content": SECRET }))]);
        client.chat("note it");
        let new = json!({ "content": "She has a child.", "replaces": SECRET });
        scripted.call(&[("remember", new)]);
        client.chat("it is born");
        let known = audiences(&mut client);
        assert!(known.contains(r#""She has a child." "private""#), "{known}");
    }
}
