//! What the model is shown of a long conversation, and what it is told of what
//! the household remembers.

use std::collections::HashSet;

use base::clock::Clock;
use base::ids::TurnId;
use serde_json::{Value, json};
use store::{Audience, Begun, NewMemory, NewTurn, Store, Target, TurnEnd, Usage, Viewer};

use support::client::Client;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::model::{Act, Model};
use support::receiver::Receiver;

/// What a summary request begins with.
const SUMMARY: &str = "You keep the notes of a conversation";

fn is_summary(request: &Value) -> bool {
    system(request).starts_with(SUMMARY)
}

fn system(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

/// The messages after the system prompt, each as its text.
fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    messages[1..]
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

fn small(model: &Model, tokens: u32) -> Value {
    let mut config = model.config();
    config["context_tokens"] = json!(tokens);
    config
}

fn say(client: &mut Client, conversation: &Value, text: &str) -> Value {
    client.ask(json!({ "type": "chat", "message": text, "conversation_id": conversation }))
}

/// A reply with these figures.
fn counted(text: &str, tokens: u64) -> Act {
    let body = json!({
        "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": tokens, "completion_tokens": 5 },
    })
    .to_string();
    Act::Raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))
}

#[test]
fn a_long_conversation_is_folded_into_a_summary() {
    let model = Model::start(|request, _| match is_summary(request) {
        true => Act::say("They counted from zero."),
        false => Act::say(&"answer ".repeat(60)),
    });
    let mut home = Home::start(small(&model, 4_096));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    let turns = 40;
    for number in 1..turns {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let requests = model.requests();
    let summaries: Vec<usize> = (0..requests.len())
        .filter(|place| is_summary(&requests[*place]))
        .collect();
    assert!((2..=6).contains(&summaries.len()), "{summaries:?}");
    assert_eq!(requests.len(), turns + summaries.len());

    let first = &requests[summaries[0]];
    assert!(first.get("tools").is_none());
    assert!(texts(first)[0].starts_with("User: [admin] number 0\nAssistant: answer"));
    let second = texts(&requests[summaries[1]])[0];
    assert!(second.contains("They counted from zero."), "{second}");
    // After the first fold every request begins with the summary; what follows
    // it are whole turns up to the present.
    for request in &requests[summaries[0] + 1..] {
        if is_summary(request) {
            continue;
        }
        let texts = texts(request);
        assert!(texts[0].starts_with("<earlier "), "{}", texts[0]);
        assert!(texts[0].contains("They counted from zero."));
        assert_eq!(texts.len() % 2, 1);
        assert!(request.to_string().len() < 4_096 * 4);
    }
    let system_prompts: HashSet<&str> = requests
        .iter()
        .filter(|request| !is_summary(request))
        .map(system)
        .collect();
    assert_eq!(system_prompts.len(), 1, "the cached head stays the same");

    // The person's history stays whole, and the summary outlives a restart.
    let page = json!({ "type": "get_messages", "conversation_id": conversation, "limit": 500 });
    let messages = client.ask(page)["messages"].as_array().unwrap().len();
    assert_eq!(messages, 2 * turns);
    home.restart();
    say(&mut home.admin(), &conversation, "are you still there?");
    let last = model.requests().pop().unwrap();
    assert!(texts(&last)[0].starts_with("<earlier "));
}

#[test]
fn without_a_summary_the_oldest_turns_are_cut() {
    for failure in [Act::error(400, "", "no"), Act::say(" ")] {
        let model = Model::start(move |request, _| match is_summary(request) {
            true => failure.clone(),
            false => Act::say(&"answer ".repeat(60)),
        });
        let home = Home::start(small(&model, 4_096));
        let mut client = home.admin();
        let conversation = client.chat("number 0")["conversation_id"].clone();
        for number in 1..20 {
            say(&mut client, &conversation, &format!("number {number}"));
        }
        let requests = model.requests();
        let tried = requests.iter().filter(|request| is_summary(request));
        let tried = tried.count();
        assert!((1..=3).contains(&tried), "{tried}");
        let last = texts(requests.last().unwrap());
        assert!(
            last[0].starts_with("<earlier ") && last[0].contains("older messages are not shown"),
            "{}",
            last[0]
        );
        assert_eq!(*last.last().unwrap(), "[admin] number 19");
    }
}

#[test]
fn a_conversation_that_is_too_long_for_the_model_is_shortened_once() {
    let overflow = || {
        Act::error(
            400,
            "",
            "This model's maximum context length is 2048 tokens. However, you requested 9000.",
        )
    };
    let model = Model::start(move |request, _| {
        if is_summary(request) {
            Act::say("They counted.")
        } else if request.to_string().len() > 8_000 {
            overflow()
        } else {
            Act::say(&"answer ".repeat(60))
        }
    });
    let home = Home::start(small(&model, 16_000));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..30 {
        let reply = say(&mut client, &conversation, &format!("number {number}"));
        assert!(reply["response"].as_str().unwrap().starts_with("answer"));
    }
    let refused = |requests: &[Value]| {
        let long = requests
            .iter()
            .filter(|request| !is_summary(request) && request.to_string().len() > 8_000);
        long.count()
    };
    // What was learned is kept: not every turn is refused first.
    let count = refused(&model.requests());
    assert!((1..=4).contains(&count), "{count}");

    // A message that is too long by itself cannot be made shorter.
    client.send(&json!({ "type": "chat", "message": "x".repeat(20_000) }));
    let response = client.response();
    assert_eq!(response["code"], "server_error");
    let error = response["error"].as_str().unwrap();
    assert!(
        error.contains("too long for the model \"scripted\""),
        "{error}"
    );
    assert_eq!(refused(&model.requests()), count + 1, "asked once");
}

#[test]
fn the_providers_figures_correct_the_estimate() {
    // The same conversation, by a model that counts twice as many tokens as
    // estimated, and by one that counts half as many.
    let folds = |per_byte: f64| {
        let model = Model::start(move |request, _| {
            let tokens = (request.to_string().len() as f64 * per_byte) as u64;
            match is_summary(request) {
                true => Act::say("They counted."),
                false => counted(&"answer ".repeat(60), tokens),
            }
        });
        let home = Home::start(small(&model, 8_192));
        let mut client = home.admin();
        let conversation = client.chat("number 0")["conversation_id"].clone();
        for number in 1..40 {
            say(&mut client, &conversation, &format!("number {number}"));
        }
        model
            .requests()
            .iter()
            .filter(|request| is_summary(request))
            .count()
    };
    let (many, few) = (folds(0.5), folds(0.125));
    assert!(many >= 2 * few.max(1), "{many} and {few}");
}

#[test]
fn tool_results_of_older_turns_are_shortened_before_turns_go() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"].as_str() {
            Some("user") => Act::call("echo", json!({ "text": "x" })),
            _ => Act::say("done"),
        }
    });
    let mut config = small(&model, 8_192);
    config["tools"] = json!({ "custom": [{
        "name": "echo", "description": "Test.", "parameters": { "text": "string" },
        "command": ["/bin/sh", "-c", "echo found; head -c 2400 /dev/zero | tr '\\0' x"],
    }] });
    let home = Home::start(config);
    let mut client = home.admin();
    let conversation = client.chat("turn 0")["conversation_id"].clone();
    for number in 1..8 {
        say(&mut client, &conversation, &format!("turn {number}"));
    }
    let requests = model.requests();
    assert!(!requests.iter().any(is_summary));
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    let results: Vec<&str> = last
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(results.len(), 8);
    assert!(results[0].contains("found [... 24"), "{}", results[0]);
    assert!(results[5..].iter().all(|result| result.len() > 2_000));
}

/// Puts finished turns at the end of a conversation, while the server is off.
fn add_turns(home: &Home, conversation: &str, count: usize) {
    let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
    let id = conversation.parse().unwrap();
    let turns: Vec<TurnId> = (0..count)
        .map(|number| {
            let begun = store.begin_turn_deferred(NewTurn {
                viewer: Viewer::server(),
                owner: None,
                audience: Audience::Household,
                target: Target::Existing(id),
                channel: "websocket".to_owned(),
                account: None,
                message: format!("what about number {number}?"),
                speaker: Some("admin".to_owned()),
                surface: None,
                attachments: store::NewAttachments::None,
                tools: None,
                idempotency: None,
            });
            match begun.unwrap().uncommitted() {
                Begun::New { turn, .. } => turn.id,
                Begun::Repeat(_) => panic!("no key, no repeat"),
            }
        })
        .collect();
    // Side by side, so that many ends share one commit.
    std::thread::scope(|scope| {
        for part in turns.chunks(count.div_ceil(32)) {
            let store = &store;
            scope.spawn(move || {
                for turn in part {
                    let end = TurnEnd::Done {
                        reply: "It is a fine number, and there is more to say of it.".to_owned(),
                    };
                    store
                        .finish_turn(*turn, end, Usage::default(), "m", None)
                        .unwrap();
                }
            });
        }
    });
    store.close();
}

#[test]
fn ten_thousand_messages_cost_what_a_hundred_do() {
    let model = Model::start(|request, _| match is_summary(request) {
        true => Act::say("They talked for long."),
        false => Act::say("fine"),
    });
    let mut home = Home::start(small(&model, 8_192));
    let conversation = home.admin().chat("the first")["conversation_id"].clone();
    home.stop();
    add_turns(&home, conversation.as_str().unwrap(), 5_000);
    home.restart();
    let mut client = home.admin();
    say(&mut client, &conversation, "still here?");
    let requests = model.requests();
    assert_eq!(requests.len(), 3, "one fold, however long the past");
    for request in &requests {
        let bytes = request.to_string().len();
        assert!(bytes < 8_192 * 4, "{bytes}");
    }
    assert!(texts(&requests[2])[0].contains("They talked for long."));
    for _ in 0..10 {
        say(&mut client, &conversation, "and now?");
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 13, "no more folds");
    let bytes = requests
        .iter()
        .map(|request| request.to_string().len())
        .max();
    assert!(bytes < Some(8_192 * 4), "{bytes:?}");
}

#[test]
fn memories_that_matter_go_with_the_message() {
    let model = Model::acting(vec![
        Act::call(
            "remember",
            json!({ "content": "Zoë is allergic to peanuts." }),
        ),
        Act::say("noted"),
    ]);
    let shared = json!({ "privacy": { "conversations": "household" } });
    let home = Home::start(model.config_with(shared));
    home.websocket(&home.tokens.user)
        .chat("remember that Zoë is allergic to peanuts");
    let mut client = home.admin();
    client.chat("what may zoe not eat?");
    client.chat("good morning");
    let requests = model.requests();
    let texts: Vec<&str> = requests
        .iter()
        .map(|request| *texts(request).last().unwrap())
        .collect();
    let told = texts[2];
    assert!(told.starts_with("<memories "), "{told}");
    assert!(
        told.contains("\n- Zoë is allergic to peanuts. (user, 20"),
        "{told}"
    );
    assert!(told.ends_with("\n[admin] what may zoe not eat?"), "{told}");
    // As long as the household remembers little, all of it goes with every message.
    assert!(texts[3].contains("\n- Zoë is allergic"), "{}", texts[3]);
    assert!(texts[3].ends_with("\n[admin] good morning"), "{}", texts[3]);
    assert_eq!(system(&requests[2]), system(&requests[0]));

    let memories = client.ask(json!({ "type": "list_memories" }));
    let memory = &memories["memories"][0];
    assert_eq!(memory["speaker"], "user");
    client.ask(json!({ "type": "delete_memory", "memory_id": memory["id"] }));
    client.chat("what may zoe not eat?");
    let last = model.requests().pop().unwrap();
    assert_eq!(texts_of_last(&last), "[admin] what may zoe not eat?");
}

fn texts_of_last(request: &Value) -> String {
    (*texts(request).last().unwrap()).to_owned()
}

/// A server with three webhook accounts: `door` may recall, `narrow` may use no tool,
/// and `plain` says nothing of its tools.
fn with_webhook(model: &Model, receiver: &Receiver, mode: &str) -> Home {
    let mut config = model.config();
    config["permission_mode"] = json!(mode);
    let account = |path: &str| json!({ "incoming_path": path, "outgoing_url": receiver.url() });
    let with_tools = |path: &str, tools: &[&str]| {
        let mut account = account(path);
        account["tools"] = json!(tools);
        account
    };
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": with_tools("/webhook/door", &["recall"]),
            "narrow": with_tools("/webhook/narrow", &[]),
            "plain": account("/webhook/plain"),
        } },
    ]);
    Home::start(config)
}

#[test]
fn a_stranger_is_told_only_what_they_could_look_up() {
    for (mode, path, is_told) in [
        ("allow", "/webhook/door", true),
        ("ask", "/webhook/door", false),
        ("allow", "/webhook/narrow", false),
        ("allow", "/webhook/plain", false),
    ] {
        let (model, receiver) = (Model::saying("hm"), Receiver::start());
        let mut home = with_webhook(&model, &receiver, mode);
        home.stop();
        let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
        store
            .remember(NewMemory {
                content: "the safe opens with 1234".to_owned(),
                speaker: Some("admin".to_owned()),
                ..NewMemory::default()
            })
            .unwrap();
        store.close();
        home.restart();
        let body = json!({ "message": "how does the safe open?" });
        assert_eq!(post(home.address(), path, &[], &body).status, 202);
        receiver.wait_for(1);
        let told = model.requests()[0].to_string().contains("1234");
        assert_eq!(told, is_told, "{mode} {path}");
    }
}

#[test]
fn the_model_sees_who_said_what() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = with_webhook(&model, &receiver, "allow");
    let body = json!({ "message": "somebody rings", "user_id": "bell", "conversation_id": "door" });
    assert_eq!(
        post(home.address(), "/webhook/door", &[], &body).status,
        202
    );
    receiver.wait_for(1);
    let mut admin = home.admin();
    let listed = admin.ask(json!({ "type": "list_conversations" }));
    let conversation = listed["conversations"][0]["id"].clone();
    say(&mut admin, &conversation, "who is it?");
    let mut user = Client::websocket(home.address());
    let login = json!({ "username": "user", "password": PASSWORD });
    let token = post(home.address(), "/auth", &[], &login).json()["data"]["token"].clone();
    user.authenticate(token.as_str().unwrap());
    say(&mut user, &conversation, "I shall open");
    let requests = model.requests();
    let shown = texts(&requests[2]);
    assert_eq!(shown.len(), 5);
    assert!(shown[0].starts_with("<outside "), "{}", shown[0]);
    assert!(
        shown[0].contains("\n[bell] somebody rings\n"),
        "{}",
        shown[0]
    );
    assert_eq!(
        (shown[2], shown[4]),
        ("[admin] who is it?", "[user] I shall open")
    );
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let speakers: Vec<Value> = admin.ask(page)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["speaker"].clone())
        .collect();
    assert_eq!(json!(speakers), json!(["bell", "admin", "user"]));
}

#[test]
fn the_window_can_be_read_and_set() {
    let home = Home::offline();
    let mut admin = home.admin();
    let config = admin.ask(json!({ "type": "get_config" }));
    assert_eq!(config["context_tokens"], Value::Null);
    let changes = json!({ "type": "update_config", "config": { "context_tokens": 32768 } });
    let updated = admin.ask(changes);
    assert_eq!(updated["updated_fields"], json!(["context_tokens"]));
    let config = admin.ask(json!({ "type": "get_config" }));
    assert_eq!(config["context_tokens"], 32768);
    let small = json!({ "type": "update_config", "config": { "context_tokens": 5 } });
    assert_eq!(admin.refused(small), "invalid_request");
}
