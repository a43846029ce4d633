//! What the model is told of what the household remembers, and who said what.

use base::clock::Clock;
use serde_json::{Value, json};
use store::{NewMemory, Store};

use support::client::Client;
use support::home::{Home, PASSWORD};
use support::http::post;
use support::model::{Act, Model, without_times};
use support::receiver::Receiver;

pub(crate) fn system(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

/// The messages after the system prompt, each as its text.
pub(crate) fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    messages[1..]
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

pub(crate) fn say(client: &mut Client, conversation: &Value, text: &str) -> Value {
    client.ask(json!({ "type": "chat", "message": text, "conversation_id": conversation }))
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
    let texts: Vec<String> = requests
        .iter()
        .map(|request| without_times(texts(request).last().unwrap()))
        .collect();
    let told = &texts[2];
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
    assert_eq!(
        without_times(&texts_of_last(&last)),
        "[admin] what may zoe not eat?"
    );
}

fn texts_of_last(request: &Value) -> String {
    (*texts(request).last().unwrap()).to_owned()
}

/// A server with three webhook accounts: `door` may recall, `narrow` may use no tool,
/// and `plain` says nothing of its tools.
pub(crate) fn with_webhook(model: &Model, receiver: &Receiver, mode: &str) -> Home {
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
        without_times(shown[0]).contains("\n[bell by webhook door] somebody rings\n"),
        "{}",
        shown[0]
    );
    assert_eq!(
        (without_times(shown[2]), without_times(shown[4])),
        ("[admin] who is it?".into(), "[user] I shall open".into())
    );
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let speakers: Vec<Value> = admin.ask(page)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["speaker"].clone())
        .collect();
    assert_eq!(
        json!(speakers),
        json!(["bell by webhook door", "admin", "user"])
    );
}

/// The messages of a request, as they were sent.
fn sent(request: &Value) -> &[Value] {
    request["messages"].as_array().unwrap()
}

/// Providers read from their cache what begins as before.
#[test]
fn what_was_shown_with_a_message_stays_there_until_it_is_forgotten() {
    let model = Model::saying("fine");
    let mut home = Home::start(model.config());
    let path = home.folder.path().join("hearth.db");
    let remember = |content: &str| {
        let store = Store::open(&path, Clock::system()).unwrap();
        let new = NewMemory {
            content: content.to_owned(),
            ..NewMemory::default()
        };
        let id = store.remember(new).unwrap().id;
        store.close();
        id
    };
    let tea = remember("Ann drinks tea.");
    let mut client = home.admin();
    let conversation = client.chat("good morning")["conversation_id"].clone();
    say(&mut client, &conversation, "what is for breakfast?");
    remember("Bo drinks milk.");
    home.restart();
    let mut client = home.admin();
    say(&mut client, &conversation, "and for lunch?");
    say(&mut client, &conversation, "and for dinner?");
    let requests = model.requests();
    for pair in requests.windows(2) {
        assert!(sent(&pair[1]).starts_with(sent(&pair[0])), "{pair:?}");
    }
    let shown = texts(&requests[3]);
    assert!(shown[0].contains("Ann drinks tea."), "{shown:?}");
    assert!(shown[4].contains("Bo drinks milk."), "{shown:?}");
    for told in ["Ann drinks tea.", "Bo drinks milk."] {
        assert_eq!(
            requests[3].to_string().matches(told).count(),
            1,
            "shown once"
        );
    }

    client.ask(json!({ "type": "delete_memory", "memory_id": tea }));
    say(&mut client, &conversation, "good night");
    let last = model.requests().pop().unwrap();
    assert!(!last.to_string().contains("Ann drinks tea."), "{last}");
    assert!(texts(&last)[4].contains("Bo drinks milk."));
}

#[test]
fn what_was_shown_to_fewer_goes_when_more_people_see_the_conversation() {
    let model = Model::acting(vec![
        Act::call("remember", json!({ "content": "Ann expects a child." })),
        Act::say("noted"),
        Act::say("fine"),
    ]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.chat("remember that I expect a child");
    let conversation = client.chat("good morning")["conversation_id"].clone();
    let requests = model.requests();
    assert!(texts(&requests[2])[0].contains("Ann expects a child."));
    client.ask(json!({
        "type": "share_conversation", "conversation_id": conversation, "audience": "household",
    }));
    say(&mut client, &conversation, "good night");
    let last = model.requests().pop().unwrap();
    assert!(!last.to_string().contains("expects a child"), "{last}");
}

/// The model that remembers something gives the words that somebody else will use.
#[test]
fn what_is_asked_in_other_words_is_found_by_the_words_that_the_model_gave() {
    let fact = "The spare impeller for the boat is in the blue tin.";
    let asked = "why does the motor overheat?";
    for (search_words, is_found) in [
        (json!(["overheats", "motor too hot", "cooling"]), true),
        (json!("overheats, motor too hot"), true),
        (json!([]), false),
        (Value::Null, false),
    ] {
        let is_worded = search_words.is_array() && is_found;
        let model = Model::acting(vec![
            Act::call(
                "remember",
                json!({ "content": fact, "search_words": search_words }),
            ),
            Act::say("noted"),
            Act::say("fine"),
        ]);
        // A window without room for all of them.
        let small = json!({ "context_tokens": 8_192 });
        let mut home = Home::start(model.config_with(small));
        home.admin().chat("remember where the impeller is");
        home.stop();
        let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
        for number in 0..60 {
            let new = NewMemory {
                content: format!(
                    "shelf {number} holds cassettes of the years {number} to {number}9"
                ),
                ..NewMemory::default()
            };
            store.remember(new).unwrap();
        }
        store.close();
        home.restart();
        let mut client = home.admin();
        client.chat(asked);
        let request = model.requests().pop().unwrap();
        assert_eq!(request.to_string().contains(fact), is_found, "{request}");
        assert!(!request.to_string().contains("too hot"), "{request}");
        home.restart();
        let mut client = home.admin();
        client.chat(asked);
        let request = model.requests().pop().unwrap().to_string();
        assert_eq!(request.contains(fact), is_found, "{request}");

        // A person sees them, and they go with the memory.
        let memories = client.ask(json!({ "type": "list_memories" }));
        let memories = memories["memories"].as_array().unwrap();
        let kept = memories.iter().find(|memory| memory["content"] == fact);
        let kept = kept.unwrap();
        if is_worded {
            assert_eq!(kept["search_words"], search_words);
        }
        client.ask(json!({ "type": "delete_memory", "memory_id": kept["id"] }));
        client.chat(asked);
        let request = model.requests().pop().unwrap().to_string();
        assert!(!request.contains("blue tin"), "{request}");
    }
}

/// A turn that was stopped or failed stays in the model's view, with what it did.
#[test]
fn the_model_knows_what_a_failed_turn_did() {
    let model = Model::acting(vec![
        Act::call(
            "remember",
            json!({ "content": "The bins go out on Monday." }),
        ),
        Act::error(400, "", "no"),
        Act::say("Yes."),
    ]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    client.send(&json!({ "type": "chat", "message": "remember the bins", "id": "chat" }));
    let conversation = client.event("message.created")["conversation_id"].clone();
    assert_eq!(client.response()["status"], "error");
    say(&mut client, &conversation, "did it work?");
    let last = model.requests().pop().unwrap();
    let roles: Vec<&str> = sent(&last)
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    let end = sent(&last)[4]["content"].as_str().unwrap();
    assert!(end.starts_with("[This turn failed: "), "{end}");
    assert!(
        sent(&last)[3]["content"]
            .to_string()
            .contains("Remembered as"),
        "{last}"
    );
}
