//! What the model is shown of a long conversation.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::clock::Clock;
use base::ids::TurnId;
use serde_json::{Value, json};
use store::{Audience, Begun, NewTurn, Store, Target, TurnEnd, Usage, Viewer};

use support::client::Client;
use support::home::Home;
use support::model::{Act, Model, without_times};

use crate::agent::memory::{say, system, texts};

/// What a summary request begins with.
const SUMMARY: &str = "You keep the notes of a conversation";

pub fn is_summary(request: &Value) -> bool {
    system(request).starts_with(SUMMARY)
}

pub fn small(model: &Model, tokens: u32) -> Value {
    model.config_with(json!({ "context_tokens": tokens }))
}

/// A reply with these figures.
fn counted(text: &str, tokens: u64) -> Act {
    let usage = json!({ "prompt_tokens": tokens, "completion_tokens": 5 });
    Act::counted(text, &usage)
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
    assert!((2..=8).contains(&summaries.len()), "{summaries:?}");
    assert_eq!(requests.len(), turns + summaries.len());

    let first = &requests[summaries[0]];
    assert!(first.get("tools").is_none());
    let told = without_times(texts(first)[0]);
    assert!(
        told.starts_with("User: [admin] number 0\nAssistant: answer"),
        "{told}"
    );
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
        // It is tried again, but not after every reply.
        let tried = requests.iter().filter(|request| is_summary(request));
        let tried = tried.count();
        assert!((2..=6).contains(&tried), "{tried}");
        let last = requests.iter().rfind(|request| !is_summary(request));
        let last = texts(last.unwrap());
        assert!(
            last[0].starts_with("<earlier ") && last[0].contains("older messages are not shown"),
            "{}",
            last[0]
        );
        assert_eq!(without_times(last.last().unwrap()), "[admin] number 19");
    }
}

/// What a summary could not be made of is not lost: the next one is made of it.
#[test]
fn a_summary_that_failed_is_made_later() {
    let is_down = Arc::new(AtomicBool::new(true));
    let model = Model::start({
        let is_down = Arc::clone(&is_down);
        move |request, _| match is_summary(request) {
            true if is_down.load(Ordering::Relaxed) => Act::error(400, "", "no"),
            true => Act::say("They counted from zero."),
            false => Act::say(&"answer ".repeat(60)),
        }
    });
    let home = Home::start(small(&model, 4_096));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    let mut say_until = |what: &str, wanted: &dyn Fn(&[Value]) -> bool| {
        for number in 1..40 {
            say(&mut client, &conversation, &format!("{what} {number}"));
            if wanted(&model.requests()) {
                return;
            }
        }
        panic!("{what}: not within 40 turns")
    };
    say_until("number", &|requests| requests.iter().any(is_summary));
    is_down.store(false, Ordering::Relaxed);
    say_until("again", &|requests| {
        let last = requests.iter().rfind(|request| !is_summary(request));
        texts(last.unwrap())[0].contains("They counted from zero.")
    });
    let requests = model.requests();
    let made = requests
        .iter()
        .rfind(|request| is_summary(request))
        .unwrap();
    assert!(texts(made)[0].contains("] number 0\nAssistant: answer"));
}

/// Each attempt sends the whole past anew, and no cache has that.
#[test]
fn a_summary_that_keeps_failing_is_tried_less_and_less_until_another_model_answers() {
    let model = Model::start(|request, _| match is_summary(request) {
        true => Act::say(" "),
        false => Act::say(&"answer ".repeat(60)),
    });
    let home = Home::start(small(&model, 4_096));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    let mut number = 0;
    while model
        .requests()
        .iter()
        .filter(|one| is_summary(one))
        .count()
        < 4
    {
        number += 1;
        assert!(number < 100, "it is not tried again");
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let requests = model.requests();
    let replies = |end: usize| {
        requests[..end]
            .iter()
            .filter(|one| !is_summary(one))
            .count()
    };
    let tried: Vec<usize> = (0..requests.len())
        .filter(|place| is_summary(&requests[*place]))
        .map(replies)
        .collect();
    let waits: Vec<usize> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [4, 8, 16]);
    client.ask(json!({ "type": "update_config", "config": { "model": "other" } }));
    for message in ["who are you?", "and now?"] {
        say(&mut client, &conversation, message);
    }
    let requests = model.requests();
    let other = requests.iter().position(|one| one["model"] == "other");
    assert!(is_summary(&requests[other.unwrap() + 1]));
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
            let message = format!("what about number {number}?");
            let (target, audience) = (Target::Existing(id), Audience::Household);
            let begun = store.begin_turn_deferred(NewTurn {
                speaker: Some("admin".to_owned()),
                ..NewTurn::new(Viewer::server(), target, audience, "websocket", message)
            });
            match begun.unwrap().uncommitted() {
                Begun::New { turn, .. } => turn.id,
                Begun::Repeat(_) | Begun::Again(_) => panic!("no key, no repeat"),
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
                        finish_reason: None,
                    };
                    store
                        .finish_turn(*turn, end, Usage::default(), "m", None, Vec::new())
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
    say(&mut client, &conversation, "and now?");
    let requests = model.requests();
    assert_eq!(requests.len(), 4, "one fold, however long the past");
    assert!(is_summary(&requests[2]));
    assert!(texts(&requests[1])[0].contains("older messages are not shown"));
    for request in &requests {
        let bytes = request.to_string().len();
        assert!(bytes < 8_192 * 4, "{bytes}");
    }
    assert!(texts(&requests[3])[0].contains("They talked for long."));
    for _ in 0..10 {
        say(&mut client, &conversation, "and now?");
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 14, "no more folds");
    let bytes = requests
        .iter()
        .map(|request| request.to_string().len())
        .max();
    assert!(bytes < Some(8_192 * 4), "{bytes:?}");
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

/// A smaller model shows less for as long as it is used, and takes nothing from the larger one.
#[test]
fn what_was_folded_for_a_small_model_is_shown_to_a_larger_one_again() {
    let model = Model::start(|request, _| match is_summary(request) {
        true => Act::say("They counted from zero."),
        false => Act::say(&"answer ".repeat(60)),
    });
    let home = Home::start(small(&model, 4_096));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..30 {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let shows_first = |client: &mut Client| {
        say(client, &conversation, "and now?");
        let requests = model.requests();
        let asked = requests.iter().rfind(|one| !is_summary(one)).unwrap();
        texts(asked)[0].contains("] number 0")
    };
    assert!(!shows_first(&mut client));
    let set = |tokens| json!({ "type": "update_config", "config": { "context_tokens": tokens } });
    client.ask(set(100_000));
    assert!(shows_first(&mut client));
    client.ask(set(4_096));
    assert!(!shows_first(&mut client));
    client.ask(set(100_000));
    assert!(shows_first(&mut client));
}

/// The server of the model may be loading it when Hearth starts.
#[test]
fn a_window_that_is_a_guess_folds_nothing() {
    let model = Model::start(|_, _| Act::say(&"answer ".repeat(60)));
    model.says_of_itself(503, r#"{"error":{"message":"Loading model"}}"#);
    let home = Home::start(model.config_with(json!({ "provider": "llamacpp" })));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..80 {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    model.says_of_itself(200, r#"{"default_generation_settings":{"n_ctx":65536}}"#);
    home.clock.advance(Duration::from_secs(61));
    say(&mut client, &conversation, "and now?");
    let requests = model.requests();
    assert!(!requests.iter().any(is_summary));
    assert!(texts(requests.last().unwrap())[0].contains("] number 0"));
}
