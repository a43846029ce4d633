//! Memories and messages that are found by what they mean: vectors from the model's server.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use base::clock::Clock;
use serde_json::{Value, json};
use store::{NewMemory, Store};

use crate::mcp::api::done;
use support::home::{Home, write_config};
use support::model::{Act, Model};
use support::served::Served;
use support::voice::response;
use support::{MAX_WAIT, eventually};

const NEAR: &str = "Zoë cannot stand peanuts.";
const QUESTION: &str = "which snack is safe?";
const FILLERS: usize = 60;

/// A text's vector: what is about nuts points one way, and all else three others.
fn vector(text: &str) -> Vec<f64> {
    let direction = match text.contains("peanuts") || text.contains("snack") {
        true => 3,
        false => text.len() % 3,
    };
    let number = |place: usize| if place == direction { 0.9 } else { 0.1 };
    (0..48).map(number).collect()
}

/// The answer to a request for vectors; none to one of another kind. The second model
/// makes vectors of one length only.
fn embed(request: &Value) -> Option<Act> {
    let texts = request["input"].as_array()?;
    if request["model"] == "second" && !request["dimensions"].is_null() {
        return Some(Act::error(400, "", "dimensions is not supported"));
    }
    let item = |(index, text): (usize, &Value)| json!({ "index": index, "embedding": vector(text.as_str().unwrap()) });
    let data: Vec<Value> = texts.iter().enumerate().map(item).collect();
    Some(Act::json(&json!({ "object": "list", "data": data })))
}

/// A household with many memories, of which one is near to the question.
fn household(config: Value) -> Home {
    let mut home = Home::start(config);
    home.stop();
    let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
    let shelf = |number: usize| format!("Shelf {number} holds cassettes of {number} to {number}9.");
    for content in [NEAR.to_owned()].into_iter().chain((0..FILLERS).map(shelf)) {
        let new = NewMemory {
            content,
            ..NewMemory::default()
        };
        store.remember(new).unwrap();
    }
    store.close();
    home.restart();
    home
}

fn with_embeddings(model: &Model, embedding_model: &str) -> Value {
    let memory = json!({ "embeddings": { "model": embedding_model, "dimensions": 32 } });
    model.config_with(json!({ "memory": memory }))
}

/// The last message of the last chat.
fn last_message(model: &Model) -> String {
    let requests = model.requests();
    let mut chats = requests
        .iter()
        .filter(|request| request["messages"].is_array());
    let messages = chats.next_back().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Asks until the memory is shown that only its vector finds.
fn ask_until_found(home: &Home, model: &Model) {
    let until = Instant::now() + MAX_WAIT;
    loop {
        home.admin().chat(QUESTION);
        if last_message(model).contains(NEAR) {
            return;
        }
        assert!(Instant::now() < until, "{NEAR} is not shown");
    }
}

fn is_memory(text: &str) -> bool {
    text == NEAR || text.starts_with("Shelf ")
}

/// The memories of which vectors of this model were asked for.
fn embedded(model: &Model, embedding_model: &str) -> BTreeSet<String> {
    let requests = model.requests();
    let of_model = requests
        .iter()
        .filter(|request| request["model"] == embedding_model);
    let texts = of_model.flat_map(|request| request["input"].as_array().unwrap().clone());
    let texts = texts.map(|text| text.as_str().unwrap().to_owned());
    texts.filter(|text| is_memory(text)).collect()
}

/// Waits until vectors of all memories were asked for, which come in parts.
fn until_all_are_embedded(model: &Model, embedding_model: &str) {
    eventually("all memories have vectors", || {
        (embedded(model, embedding_model).len() == 1 + FILLERS).then_some(())
    });
}

#[test]
fn memories_are_found_by_their_meaning() {
    let model = Model::start(|request, _| embed(request).unwrap_or_else(|| Act::say("hm")));
    let mut home = household(with_embeddings(&model, "first"));
    ask_until_found(&home, &model);
    until_all_are_embedded(&model, "first");
    let requests = model.requests();
    let first = requests.iter().find(|request| request["input"].is_array());
    assert_eq!(first.unwrap()["dimensions"], 32);
    // What was made is kept.
    let of_memories = |model: &Model| {
        let requests = model.requests();
        let is_asked = |request: &&Value| {
            let texts = request["input"].as_array();
            texts.is_some_and(|texts| texts.iter().any(|text| is_memory(text.as_str().unwrap())))
        };
        requests.iter().filter(is_asked).count()
    };
    let before = of_memories(&model);
    home.restart();
    ask_until_found(&home, &model);
    assert_eq!(of_memories(&model), before);
    // Another model makes all anew.
    home.stop();
    write_config(home.folder.path(), with_embeddings(&model, "second"));
    home.restart();
    ask_until_found(&home, &model);
    until_all_are_embedded(&model, "second");
    // What is forgotten is not found.
    let mut client = home.admin();
    let memories = client.ask(json!({ "type": "list_memories" }));
    let memories = memories["memories"].as_array().unwrap();
    let near = memories.iter().find(|memory| memory["content"] == NEAR);
    client.ask(json!({ "type": "delete_memory", "memory_id": near.unwrap()["id"] }));
    client.chat(QUESTION);
    assert!(!last_message(&model).contains(NEAR));
}

#[test]
fn the_model_looks_memories_up_by_their_meaning() {
    let model = Model::start(|request, _| match embed(request) {
        Some(vectors) => vectors,
        None if request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" => {
            Act::say("hm")
        }
        None => Act::call("recall", json!({ "query": "any snack" })),
    });
    let home = household(with_embeddings(&model, "first"));
    let until = Instant::now() + MAX_WAIT;
    loop {
        home.admin().chat("hello");
        if last_message(&model).contains(NEAR) {
            return;
        }
        assert!(Instant::now() < until, "{NEAR} is not found");
    }
}

/// The page, a model and a program over /mcp ask in their own ways.
#[test]
fn messages_are_found_by_their_meaning_whoever_asks() {
    let wanted = json!({ "query": "any snack in the yellow box", "limit": 3 });
    let called = wanted.clone();
    let model = Model::start(move |request, _| match embed(request) {
        Some(vectors) => vectors,
        None if request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" => {
            Act::say("hm")
        }
        None if request["messages"].to_string().contains("please look") => {
            Act::call("search_conversations", called.clone())
        }
        None => Act::say("I see."),
    });
    let mut config = with_embeddings(&model, "first");
    config["mcp_api"] = json!({ "enabled": true });
    let home = Home::start(config);
    let mut client = home.admin();
    for number in 0..12 {
        client.chat(&format!("The car has done {number} miles."));
    }
    let mut say = |text: &str| client.chat(text)["conversation_id"].clone();
    let told = say(NEAR);
    let by_both = say("The peanuts are in the yellow box.");
    let by_words = say("The yellow box is in the attic.");
    let mut search = wanted.clone();
    search["type"] = "search_messages".into();
    let (found, by_mcp) = eventually("messages have vectors", || {
        let found = client.ask(search.clone())["messages"].clone();
        let by_mcp = done(
            &home,
            &home.tokens.admin,
            "search_conversations",
            wanted.clone(),
        );
        let has = |id| found.to_string().contains(&Value::to_string(id));
        // The one that fits both ways is the first once it has a vector, too.
        let is_whole = found[0]["conversation_id"] == by_both && has(&told) && has(&by_words);
        is_whole.then_some((found, by_mcp))
    });
    let found = found.as_array().unwrap();
    assert_eq!(found[0]["passage"].as_array().unwrap().len(), 2);
    client.chat("please look for it");
    let by_model = last_message(&model);
    for text in [by_mcp, by_model] {
        let place = |hit: &Value| {
            let place = |of: &str| text.find(hit[of].as_str().unwrap());
            assert!(place("conversation_id") < place("excerpt"), "{text}");
            place("conversation_id").unwrap()
        };
        let places: Vec<usize> = found.iter().map(place).collect();
        assert!(places.is_sorted() && places.len() == 3, "{text}");
    }
    // What is deleted is not found.
    client.ask(json!({ "type": "delete_conversation", "conversation_id": told }));
    let found = client.ask(search)["messages"].to_string();
    assert!(!found.contains(NEAR), "{found}");
}

#[test]
fn without_vectors_words_alone_find() {
    for what in ["down", "slow"] {
        let model = Model::start(
            move |request, _| match (request["input"].is_array(), what) {
                (false, _) => Act::say("hm"),
                (true, "down") => Act::error(503, "", "no vectors today"),
                (true, _) => Act::Stall("never".to_owned()),
            },
        );
        let home = household(with_embeddings(&model, "first"));
        let began = Instant::now();
        for _ in 0..3 {
            home.admin().chat("where are the cassettes of 479?");
            assert!(last_message(&model).contains("Shelf 47 "), "{what}");
        }
        let search = json!({ "type": "search_messages", "query": "cassettes" });
        let found = home.admin().ask(search)["messages"].to_string();
        assert!(found.contains("of 479?"), "{what}: {found}");
        // Far longer than the turns wait, which they do once.
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        let requests = model.requests();
        let questions = requests
            .iter()
            .filter(|request| request["input"] == json!(["where are the cassettes of 479?"]));
        assert_eq!(questions.count(), 1, "{what}");
    }
}

/// What Ollama answers, as its reference says.
fn ollama(head: &str, request: &Value) -> Value {
    match head.split(' ').nth(1).unwrap() {
        "/api/embed" => {
            let texts = request["input"].as_array().unwrap().iter();
            let vectors: Vec<_> = texts.map(|text| vector(text.as_str().unwrap())).collect();
            json!({ "model": request["model"], "embeddings": vectors, "prompt_eval_count": 1 })
        }
        "/api/chat" => json!({
            "message": { "role": "assistant", "content": "hm" }, "done": true, "done_reason": "stop",
        }),
        _ => json!({ "model_info": {} }),
    }
}

#[test]
fn ollama_makes_vectors_in_its_own_form() {
    let (chat, chats) = mpsc::channel();
    let server = Served::answering(move |head, body| {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let answer = ollama(head, &request).to_string() + "\n";
        if request["messages"].is_array() {
            let _ = chat.send(request);
        }
        Some(Arc::from(response(
            "200 OK",
            "application/json",
            answer.as_bytes(),
        )))
    });
    let home = household(json!({
        "provider": "ollama",
        "base_url": format!("http://{}", server.address),
        "model": "scripted",
        "titles": false,
        "memory": { "embeddings": { "model": "nomic", "dimensions": 32 } },
    }));
    let until = Instant::now() + MAX_WAIT;
    loop {
        home.admin().chat(QUESTION);
        if chats.recv_timeout(MAX_WAIT).unwrap()["messages"]
            .to_string()
            .contains(NEAR)
        {
            return;
        }
        assert!(Instant::now() < until, "{NEAR} is not shown");
    }
}
