//! What follows when a model's server refuses a request as too long.

use serde_json::{Value, json};

use support::home::{Home, write_config};
use support::model::{Act, Model};
use support::prompt_cache::remember;

use crate::agent::folding::{is_summary, small};
use crate::agent::memory::{say, texts};

#[test]
fn a_conversation_that_is_too_long_for_the_model_is_shortened_once() {
    for says in [
        "This model's maximum context length is 2048 tokens. However, you requested 9000.",
        "Input is too long for requested model.",
    ] {
        is_shortened_once(says);
    }
}

fn is_shortened_once(says: &'static str) {
    let model = Model::start(move |request, _| {
        if is_summary(request) {
            Act::say("They counted.")
        } else if request.to_string().len() > 8_000 {
            Act::error(400, "", says)
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
    assert!((1..=4).contains(&count), "{count} by {says}");

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
fn one_refusal_without_a_reason_teaches_nothing() {
    // The first question, and one in the middle.
    let model = Model::start(|request, number| match number {
        0 | 9 => Act::error(413, "", ""),
        _ if is_summary(request) => Act::say("They counted."),
        _ => Act::say(&"answer ".repeat(60)),
    });
    let home = Home::start(small(&model, 200_000));
    let mut client = home.admin();
    client.send(&json!({ "type": "chat", "message": "hi" }));
    let error = client.response()["error"].to_string();
    assert!(error.contains("may be too long"), "{error}");
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..15 {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let requests = model.requests();
    assert!(!requests.iter().any(is_summary));
    // One more for each refusal that less could follow.
    assert_eq!(requests.len(), 1 + 15 + 1);
    let last = texts(requests.last().unwrap());
    assert!(
        last.iter().any(|text| text.contains("number 0")),
        "{last:?}"
    );
}

#[test]
fn a_conversation_of_a_large_model_is_fitted_to_a_small_one_in_one_turn() {
    let model = Model::start(|request, _| {
        if is_summary(request) {
            return Act::say("They counted.");
        }
        match request["model"] == "little" && request.to_string().len() > 8_000 {
            true => Act::error(400, "", "Input is too long for requested model."),
            false => Act::say(&"answer ".repeat(600)),
        }
    });
    let mut home = Home::start(small(&model, 200_000));
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..12 {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let mut config = small(&model, 200_000);
    config["model"] = json!("little");
    write_config(home.folder.path(), config);
    home.restart();
    let reply = say(&mut home.admin(), &conversation, "and now?");
    assert!(
        reply["response"].as_str().unwrap().starts_with("answer"),
        "{reply}"
    );
}

/// The model `scripted` is away, and `little` stands in.
#[test]
fn a_conversation_is_written_anew_for_a_model_that_stands_in() {
    let model = Model::start(|request, _| {
        let is_asked_now = texts(request).last().unwrap().contains("and now?");
        match request["model"] == "scripted" && is_asked_now {
            true => Act::error(402, "", "no credit left"),
            false => Act::say(&"answer ".repeat(100)),
        }
    });
    let mut config = small(&model, 100_000);
    config["fallback"] = json!([{
        "provider": config["provider"], "base_url": config["base_url"], "model": "little",
        "context_tokens": 4_096,
    }]);
    let home = Home::start(config);
    let mut client = home.admin();
    let conversation = client.chat("number 0")["conversation_id"].clone();
    for number in 1..30 {
        say(&mut client, &conversation, &format!("number {number}"));
    }
    let reply = say(&mut client, &conversation, "and now?");
    assert!(reply["response"].as_str().unwrap().starts_with("answer"));
    let requests = model.requests();
    let asked = |name: &str| requests.iter().rfind(|request| request["model"] == name);
    let (whole, fitted) = (asked("scripted").unwrap(), asked("little").unwrap());
    assert!(texts(whole).iter().any(|text| text.contains("number 0")));
    let texts = texts(fitted);
    assert!(texts.last().unwrap().contains("and now?"), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("number 29")));
    assert!(
        !texts
            .iter()
            .any(|text| text.contains("number 0 ") || text.ends_with("number 0"))
    );
    assert!(
        texts
            .iter()
            .any(|text| text.contains("older messages are not shown")),
        "{texts:?}"
    );
    let bytes = fitted.to_string().len();
    assert!(bytes < 4_096 * 4, "{bytes}");
}

/// A fallback has a window of its own, of which memories and tools take their share.
#[test]
fn memories_and_tools_are_chosen_anew_for_a_model_that_stands_in() {
    let model = Model::start(|request, _| match request["model"] == "scripted" {
        true => Act::error(402, "", "no credit left"),
        false => Act::say("from the second"),
    });
    let mut config = small(&model, 100_000);
    config["fallback"] = json!([{
        "provider": config["provider"], "base_url": config["base_url"], "model": "little",
        "context_tokens": 2_048,
    }]);
    let home = Home::start(config);
    let fact = |number| format!("The key of box {number} lies on shelf {}.", number % 9);
    remember(&home, (0..150).map(fact));
    let reply = home.admin().chat("where is the key of box 7?");
    assert_eq!(reply["response"], "from the second");
    let requests = model.requests();
    let shown = |name: &str| {
        let request = requests.iter().find(|request| request["model"] == name);
        let request = request.unwrap();
        let facts = texts(request).last().unwrap().matches("The key of").count();
        (facts, request["tools"].to_string().contains("find_tools"))
    };
    assert_eq!(shown("scripted"), (150, false));
    let (facts, finds) = shown("little");
    assert!((1..30).contains(&facts) && finds, "{facts} {finds}");
}

#[test]
fn what_is_too_long_for_the_first_model_is_answered_by_one_with_a_larger_window() {
    let model = Model::start(|request, _| match request["model"] == "scripted" {
        true => Act::error(400, "", "Input is too long for requested model."),
        false => Act::say("from the second"),
    });
    let mut config = small(&model, 8_192);
    config["fallback"] = json!([{
        "provider": config["provider"], "base_url": config["base_url"], "model": "large",
        "context_tokens": 100_000,
    }]);
    let home = Home::start(config);
    let mut client = home.admin();
    assert_eq!(client.chat("hello")["response"], "from the second");
    let models = client.ask(json!({ "type": "server_info" }))["models"].clone();
    assert_eq!(models[0]["state"], "ready", "{models}");
}
