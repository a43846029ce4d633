//! A webhook's caller speaks under any name: nobody takes it for the person of that name.

use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;
use support::http::{exchange, post};
use support::model::{Act, Model};
use support::program::{printed, run};
use support::receiver::Receiver;

/// What callers say to be: a real user, the same with a Cyrillic letter, one with the mark, and
/// as long as it may be.
const NAMES: [&str; 4] = ["admin", "\u{430}dmin", "admin by webhook door", "nnnn"];

fn home(model: &Model, receiver: &Receiver) -> Home {
    let account = |path: &str| {
        json!({
            "incoming_path": path, "outgoing_url": receiver.url(), "tools": ["search_conversations"],
        })
    };
    let mut config = model.config();
    config["permission_mode"] = json!("allow");
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "door": account("/door"), "shop": account("/shop") } },
    ]);
    Home::start(config)
}

/// Who has spoken, of these messages.
fn speakers(messages: &Value) -> Vec<&str> {
    let messages = messages.as_array().unwrap().iter();
    let said = messages.filter(|one| one["role"] == "user");
    said.map(|one| one["speaker"].as_str().unwrap()).collect()
}

#[test]
fn a_caller_is_named_with_the_account_wherever_it_is_shown() {
    let (model, receiver) = (Model::saying("Noted."), Receiver::start());
    let home = home(&model, &receiver);
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    for (number, name) in NAMES.iter().enumerate() {
        let name = if number == 3 {
            "n".repeat(128)
        } else {
            (*name).to_owned()
        };
        let shown = match number {
            2 => name.clone(),
            _ => format!("{name} by webhook door"),
        };
        let text = format!("plums {number}");
        let body = json!({ "message": text, "user_id": name });
        let answer = post(home.address(), "/door", &[("prefer", "wait=60")], &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let event = admin.event("message.created");
        assert_eq!(event["message"]["speaker"], shown, "{event}");
        admin.event("message.created");
        let conversation = &event["conversation_id"];
        let get = json!({ "type": "get_messages", "conversation_id": conversation });
        assert_eq!(speakers(&admin.ask(get)["messages"]), [&shown]);
        let search = json!({ "type": "search_messages", "query": text });
        assert_eq!(speakers(&admin.ask(search)["messages"])[0], shown);
        let found = printed(&run(home.folder.path(), &["search", &text]));
        assert!(found.contains(&shown), "{found}");
        // What the model is shown, now and from a search.
        let request = model.requests().pop().unwrap();
        assert!(
            request.to_string().contains(&format!("[{shown}, ")),
            "{request}"
        );
        for format in ["jsonl", "markdown"] {
            let words = ["export", "--all", "--format", format];
            let file = String::from_utf8(run(home.folder.path(), &words).stdout).unwrap();
            let said = match format {
                "jsonl" => json!({ "speaker": shown }).to_string(),
                _ => format!("## {shown}, "),
            };
            assert!(
                file.contains(said.trim_matches(['{', '}'])),
                "{said}: {file}"
            );
        }
    }
}

#[test]
fn a_file_of_an_earlier_version_does_not_make_a_caller_a_person() {
    let (model, receiver) = (Model::saying("Noted."), Receiver::start());
    let home = home(&model, &receiver);
    let body = json!({ "message": "plums", "user_id": "admin" });
    post(home.address(), "/shop", &[("prefer", "wait=60")], &body);
    let exported = run(home.folder.path(), &["export", "--all"]);
    let file = String::from_utf8(exported.stdout).unwrap();
    // As it was written until now.
    let file = file.replace("admin by webhook shop", "admin");
    let other = self::home(&model, &receiver);
    let path = other.folder.path().join("old.jsonl");
    std::fs::write(&path, file).unwrap();
    let imported = run(other.folder.path(), &["import", path.to_str().unwrap()]);
    assert!(imported.status.success(), "{}", printed(&imported));
    let mut admin: Client = other.admin();
    let found = admin.ask(json!({ "type": "search_messages", "query": "plums" }));
    assert_eq!(speakers(&found["messages"]), ["admin by webhook shop"]);
    // A person brings it along as something of their own.
    let token = format!("Bearer {}", other.tokens.user);
    let file = std::fs::read(&path).unwrap();
    let headers = [("authorization", token.as_str())];
    let brought = exchange(other.address(), "POST", "/import", &headers, &file);
    assert_eq!(brought.status, 200);
    let mut user = other.websocket(&other.tokens.user);
    let found = user.ask(json!({ "type": "search_messages", "query": "plums" }));
    assert!(!speakers(&found["messages"]).contains(&"admin"), "{found}");
}

#[test]
fn what_a_search_shows_the_model_names_the_account_too() {
    let model = Model::start(|_, number| match number {
        0 => Act::say("Noted."),
        1 => Act::call("search_conversations", json!({ "query": "plums" })),
        _ => Act::say("Done."),
    });
    let receiver = Receiver::start();
    let home = home(&model, &receiver);
    let body = json!({ "message": "plums", "user_id": "admin" });
    post(home.address(), "/door", &[("prefer", "wait=60")], &body);
    home.websocket(&home.tokens.user).chat("what about them?");
    let request = model.requests().pop().unwrap().to_string();
    assert!(
        request.contains("admin by webhook door): plums"),
        "{request}"
    );
}
