//! What requests cost: routines, cold conversations, titles, and what is shown of it.

use std::time::Duration;

use serde_json::{Value, json};

use support::home::Home;
use support::model::{Act, Model};
use support::program::{printed, run};
use support::prompt_cache::remember;

const HOUR: Duration = Duration::from_secs(3_600);

/// The tokens of a request, of four bytes each.
fn tokens(request: &Value) -> usize {
    request.to_string().len() / 4
}

fn quick(more: Value) -> Value {
    let mut config = json!({
        "titles": false, "context_tokens": 128_000, "permission_mode": "allow",
        "limits": { "commands_per_second": 10_000, "commands_burst": 10_000 },
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

#[test]
fn a_routine_in_a_long_conversation_sends_its_own_short_context() {
    let model = Model::saying("That is noted; ask me again whenever you want to know more of it.");
    let home = Home::start(model.config_with(quick(json!({}))));
    let mut client = home.admin();
    let fact = |number| {
        format!(
            "The key of box {number} is on shelf {} in the cellar.",
            number % 9
        )
    };
    let weather = "The weather station is on the roof.".to_owned();
    remember(&home, [weather].into_iter().chain((0..120).map(fact)));
    let mut conversation = Value::Null;
    for number in 0..200 {
        let said = format!("Number {number}: it was a quiet day, and we had soup for dinner.");
        let mut chat = json!({ "type": "chat", "message": said });
        if !conversation.is_null() {
            chat["conversation_id"] = conversation.clone();
        }
        conversation = client.ask(chat)["conversation_id"].clone();
    }
    let before = model.requests();
    let whole = tokens(before.last().unwrap());
    client.ask(json!({
        "type": "create_schedule", "prompt": "Tell us the weather", "at": "+1h",
        "conversation_id": conversation,
    }));
    home.server().advance_clock(HOUR);
    let routine = model.wait_for_requests(before.len() + 1).pop().unwrap();
    let sent = tokens(&routine);
    assert!(whole > 8_000 && sent <= 3_000, "{whole} and {sent}");
    let text = routine.to_string();
    assert!(
        text.contains("Number 199") && text.contains("Tell us the weather"),
        "{text}"
    );
    // What fits it, although the conversation was shown that long ago.
    assert!(
        text.contains("The weather station is on the roof."),
        "{text}"
    );
    // What a person asks then is shown all of it.
    client.ask(json!({ "type": "chat", "message": "and?", "conversation_id": conversation }));
    let after = model.requests().pop().unwrap();
    assert!(tokens(&after) > whole && after.to_string().contains("Number 0:"));
}

#[test]
fn results_of_tools_are_shown_in_short_once_the_cache_is_cold() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let asks = last["role"] == "user" && last["content"].to_string().contains("look");
        match asks {
            true => Act::call("search_conversations", json!({ "query": "soup" })),
            false => Act::say("Soup, soup, soup. ".repeat(60).as_str()),
        }
    });
    let home = Home::start(model.config_with(quick(json!({}))));
    let mut client = home.admin();
    for number in 0..12 {
        client.chat(&format!("Soup number {number}"));
    }
    // How many results of tools the last request showed whole.
    let whole = || {
        let request = model.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap().iter();
        let results = messages.filter(|message| message["role"] == "tool");
        let is_whole = |result: &&Value| result["content"].as_str().unwrap().len() > 1_000;
        results.filter(is_whole).count()
    };
    // A long message is read from the disk again before it is answered, and so is one that
    // comes while the turn before is still being stored.
    let long = "and now? ".repeat(600);
    for message in ["and now?", &long] {
        let conversation = client.chat("look for the soup")["conversation_id"].clone();
        let mut ask = |message: &str| {
            client.ask(json!({
                "type": "chat", "message": message, "conversation_id": conversation,
            }));
            whole()
        };
        for _ in 0..5 {
            ask("look again");
        }
        assert_eq!(ask(message), 6);
        home.server().advance_clock(Duration::from_secs(1_800));
        assert_eq!(ask(message), 6, "the cache is still warm");
        home.server().advance_clock(2 * HOUR);
        assert_eq!(ask(message), 0, "the cache is cold");
    }
}

#[test]
fn the_side_model_writes_titles_and_what_each_purpose_cost_is_shown() {
    let model = Model::start(|request, _| {
        let is_title = request.to_string().contains("You name conversations");
        let text = if is_title { "Soup" } else { "Hello." };
        let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 100,
                            "prompt_tokens_details": { "cached_tokens": 400 } });
        Act::counted(text, &usage)
    });
    let home = Home::start(model.config_with(json!({
        "titles": true, "side_model": "small", "reasoning_effort": "high",
        "prices": { "m": { "input": 2, "cached": 0.5, "output": 10 } }, "model": "m",
    })));
    let mut client = home.admin();
    client.ask(json!({ "type": "chat", "message": "hello", "surface": "page" }));
    let requests = model.wait_for_requests(2);
    let efforts: Vec<&Value> = requests
        .iter()
        .map(|one| &one["reasoning_effort"])
        .collect();
    assert_eq!(requests[1]["model"], "small");
    assert_eq!(efforts, ["high", "low"]);
    let used = support::eventually("both are counted", || {
        let used = client.ask(json!({ "type": "get_usage", "by": "purpose" }));
        (used["usage"].as_array().unwrap().len() == 2).then_some(used)
    });
    let row = |purpose: &str| {
        let rows = used["usage"].as_array().unwrap();
        rows.iter().find(|row| row["purpose"] == purpose).unwrap()
    };
    let reply = row("reply");
    assert_eq!(reply["person"], "admin");
    assert_eq!(
        [&reply["input"], &reply["cached"], &reply["output"]],
        [1_000, 400, 100]
    );
    // 600 at 2, 400 at 0.5 and 100 at 10 for a million.
    assert_eq!(reply["cost"], "0.0024");
    assert_eq!(row("title")["model"], "small");
    assert_eq!(row("title").get("cost"), None);
    let shown = printed(&run(home.folder.path(), &["usage", "--by", "purpose"]));
    for part in ["PURPOSE", "reply", "title", "admin", "0.0024"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// A turn that another model ends is counted under both, each at its price.
#[test]
fn each_model_is_charged_for_what_it_answered() {
    let model = Model::start(|request, number| {
        let text = request.to_string();
        let usage = json!({ "prompt_tokens": 1_000, "completion_tokens": 0 });
        match request["model"].as_str().unwrap() {
            "main" if number == 0 => Act::call("current_time", json!({})),
            "main" | "cheap" => Act::error(503, "retry-after-ms: 1\r\n", "overloaded"),
            "stand-in" if text.contains("You name conversations") => Act::counted("Time", &usage),
            _ => Act::counted("It is late.", &usage),
        }
    });
    let mut config = model.config_with(json!({
        "model": "main", "titles": true, "side_model": "cheap",
        "prices": { "main": { "input": 1_000, "output": 0 },
                    "cheap": { "input": 500, "output": 0 },
                    "stand-in": { "input": 3, "output": 0 } },
    }));
    config["fallback"] = json!([{
        "provider": "openai-compatible", "model": "stand-in", "base_url": config["base_url"],
    }]);
    let home = Home::start(config);
    let mut client = home.admin();
    let reply = client.ask(json!({ "type": "chat", "message": "how late?", "surface": "page" }));
    assert_eq!(reply["response"], "It is late.");
    let used = support::eventually("the title is counted", || {
        let used = client.ask(json!({ "type": "get_usage", "by": "purpose" }))["usage"].clone();
        let is_title = |row: &Value| row["purpose"] == "title";
        (used.as_array().unwrap().iter().any(is_title)).then_some(used)
    });
    let mut rows: Vec<String> = (used.as_array().unwrap().iter())
        .map(|row| {
            let fields = ["purpose", "model", "input", "turns", "cost"].map(|name| &row[name]);
            fields.map(ToString::to_string).join(" ")
        })
        .collect();
    rows.sort();
    let expected = [
        "\"reply\" \"main\" 10 0 \"0.0100\"",
        "\"reply\" \"stand-in\" 1000 1 \"0.0030\"",
        "\"title\" \"stand-in\" 1000 0 \"0.0030\"",
    ];
    assert_eq!(rows, expected);
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": reply["turn_id"] }));
    assert_eq!(turn["model"], "stand-in");
    assert_eq!(turn["tokens"]["input"], 2_010, "all of it is the turn's");
}
