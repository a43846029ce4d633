//! What the model is told of who it is, at the wire.

use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;
use support::http::post;
use support::model::Model;
use support::receiver::Receiver;

fn prompt(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

/// The prompts of all requests so far.
fn prompts(model: &Model) -> Vec<String> {
    let requests = model.requests();
    requests.iter().map(|one| prompt(one).to_owned()).collect()
}

const NAMES: &str = "Who lives here: admin (admin), ember, user. Admins";

#[test]
fn it_is_told_its_name_place_language_and_persona_and_learns_of_changes() {
    let model = Model::saying("Hello.");
    let home = Home::start(model.config());
    let mut admin = home.admin();
    admin.chat("hello");
    let own = json!({
        "name": "Ember", "place": "Bergen, Norway", "language": "Norwegian", "persona": "Dry humour.",
    });
    let changed = admin.ask(json!({ "type": "update_config", "config": { "assistant": own } }));
    assert_eq!(changed["updated_fields"], json!(["assistant"]));
    assert_eq!(admin.ask(json!({ "type": "get_config" }))["assistant"], own);
    admin.chat("hello");
    let [before, after] = &prompts(&model)[..] else {
        panic!("two requests");
    };
    assert!(
        before.starts_with(
            "You are Hearth, the assistant of this household. Answer in the language you are"
        ),
        "{before}"
    );
    assert!(
        after.starts_with(
            "You are Ember, the assistant of this household in Bergen, Norway. Answer in Norwegian"
        ),
        "{after}"
    );
    assert!(after.contains("\n\nDry humour.\n\n"), "{after}");
    for (bad, why) in [
        (json!({ "name": "a\nb" }), "a line of 1 to 64 characters"),
        (
            json!({ "place": "x".repeat(201) }),
            "a line of 1 to 200 characters",
        ),
        (json!({ "persona": "x".repeat(4_001) }), "4000 characters"),
        (json!({ "manner": "kind" }), "manner"),
    ] {
        let refused =
            admin.refused(json!({ "type": "update_config", "config": { "assistant": bad } }));
        assert_eq!(refused, "invalid_request", "{why}");
    }
}

#[test]
fn those_who_live_here_are_named_only_where_all_readers_may_know() {
    let model = Model::saying("Hello.");
    let receiver = Receiver::start();
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "type": "webhook", "accounts": { "door": {
            "incoming_path": "/door", "outgoing_url": receiver.url(), "tools": ["*"],
        } } },
    ]);
    let home = Home::start(config);
    home.admin()
        .ask(json!({ "type": "add_user", "name": "ember", "password": "correct horse" }));
    home.add_person("invited", store::UserRole::User);
    let say = |client: &mut Client, audience: Value| {
        client.ask(json!({ "type": "chat", "message": "hello", "audience": audience }))
    };
    let mut user = home.websocket(&home.tokens.user);
    say(&mut user, json!("private"));
    let shared = say(&mut user, json!("household"))["conversation_id"].clone();
    say(&mut user, json!(["admin"]));
    say(&mut user, json!(["viewer"]));
    let posted = post(home.address(), "/door", &[], &json!({ "message": "hello" }));
    assert_eq!(posted.status, 202);
    let requests = model.wait_for_requests(5);
    let told: Vec<bool> = requests
        .iter()
        .map(|one| prompt(one).contains(NAMES))
        .collect();
    assert_eq!(told, [true, true, true, false, false], "{requests:?}");
    for request in &requests[3..] {
        assert!(!prompt(request).contains("ember"), "{request}");
    }
    // A person in the account's conversation: its caller still reads along.
    receiver.wait_for(1);
    let listed = user.ask(json!({ "type": "list_conversations" }));
    let of_account = listed["conversations"].as_array().unwrap().iter();
    let of_account = of_account
        .clone()
        .find(|one| one["channel"] == "webhook:door")
        .unwrap();
    for (conversation, knows) in [(of_account["id"].clone(), false), (shared.clone(), true)] {
        user.ask(json!({ "type": "chat", "message": "again", "conversation_id": conversation }));
        let last = prompts(&model).pop().unwrap();
        assert_eq!(last.contains(NAMES), knows, "{last}");
    }
    // With a guest among them, no longer.
    let audience = json!(["admin", "viewer"]);
    user.ask(
        json!({ "type": "share_conversation", "conversation_id": shared, "audience": audience }),
    );
    user.ask(json!({ "type": "chat", "message": "and now?", "conversation_id": shared }));
    let last = prompts(&model).pop().unwrap();
    assert!(!last.contains("Who lives here"), "{last}");
}

#[test]
fn the_prompt_is_the_same_whoever_of_a_conversation_asks_and_from_where() {
    let model = Model::saying("Hello.");
    let home = Home::start(model.config_with(json!({ "titles": false })));
    let mut admin = home.admin();
    let begun = admin.ask(json!({
        "type": "chat", "message": "hello", "audience": "household", "surface": "page",
    }));
    let conversation = &begun["conversation_id"];
    let mut by_lines = Client::lines(home.address());
    by_lines.authenticate(&home.tokens.user);
    let mut user = home.websocket(&home.tokens.user);
    for (client, surface) in [
        (&mut by_lines, Value::Null),
        (&mut admin, json!("terminal")),
        (&mut user, json!("page")),
    ] {
        let mut chat =
            json!({ "type": "chat", "message": "and I?", "conversation_id": conversation });
        if !surface.is_null() {
            chat["surface"] = surface;
        }
        client.ask(chat);
    }
    let told = prompts(&model);
    assert_eq!(told.len(), 4);
    assert!(told[0].contains("on a page with Markdown"), "{}", told[0]);
    // What the household's settings say of the form of messages comes with them.
    let begin = told[0].split("\n\nThe name in brackets").next().unwrap();
    for one in &told {
        assert!(one.starts_with(begin), "{one}");
    }
}

#[test]
fn it_is_told_where_its_replies_are_read_also_after_a_restart() {
    let model = Model::saying("Hello.");
    let mut home = Home::start(model.config());
    let mut spoken = Value::Null;
    for (surface, word) in [
        (Some("page"), "a page with Markdown"),
        (Some("terminal"), "shown in a terminal"),
        (Some("voice"), "spoken aloud"),
        (Some("plain"), "shown as they are"),
        (None, "shown as they are"),
    ] {
        let mut chat = json!({ "type": "chat", "message": "hello" });
        if let Some(surface) = surface {
            chat["surface"] = json!(surface);
        }
        let answered = home.admin().ask(chat);
        if surface == Some("voice") {
            spoken = answered["conversation_id"].clone();
        }
        let last = prompts(&model).pop().unwrap();
        assert!(last.contains(word), "{surface:?}: {last}");
    }
    let mut by_lines = Client::lines(home.address());
    by_lines.authenticate(&home.tokens.user);
    by_lines.chat("hello");
    let last = prompts(&model).pop().unwrap();
    assert!(last.contains("shown in a terminal"), "{last}");
    drop(by_lines);
    home.restart();
    let again = json!({ "type": "chat", "message": "still?", "conversation_id": spoken });
    home.admin().ask(again);
    let last = prompts(&model).pop().unwrap();
    assert!(last.contains("spoken aloud"), "{last}");
    let unknown = json!({ "type": "chat", "message": "hello", "surface": "paper" });
    assert_eq!(home.admin().refused(unknown), "invalid_request");
}
