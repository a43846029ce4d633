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
        without_times(shown[0]).contains("\n[bell] somebody rings\n"),
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
    assert_eq!(json!(speakers), json!(["bell", "admin", "user"]));
}
