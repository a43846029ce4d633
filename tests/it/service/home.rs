//! What a person meets at home: suggestions, model servers, and the text of a PDF.

use serde_json::{Value, json};
use support::home::Home;
use support::model::{Act, Model};

#[test]
fn what_somebody_often_asks_is_suggested_to_them_alone() {
    let model = Model::start(|_, _| Act::say("fine"));
    let home = Home::start(model.config());
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    let long = "so long a question ".repeat(10);
    for text in [
        "Any post?",
        "What is for dinner?",
        "what is for dinner? ",
        "What is for dinner?",
        "Any post?",
        "Only once",
        &long,
        &long,
    ] {
        let asked = user.ask(json!({ "type": "chat", "message": text }));
        let id = &asked["conversation_id"];
        // What follows begins nothing.
        for _ in 0..2 {
            user.ask(json!({ "type": "chat", "conversation_id": id, "message": "And then?" }));
        }
    }
    admin.ask(json!({ "type": "chat", "message": "Any post?" }));
    let suggestions = |client: &mut support::client::Client| {
        client.ask(json!({ "type": "today" }))["suggestions"].clone()
    };
    assert_eq!(
        suggestions(&mut user),
        json!(["What is for dinner?", "Any post?"])
    );
    assert_eq!(suggestions(&mut admin), json!([]));
    // What is private is not for a token of the household.
    for narrow in [
        json!({ "only": "household" }),
        json!({ "tools": ["find_events"] }),
    ] {
        let token = home.token("user", &narrow);
        assert_eq!(
            suggestions(&mut home.websocket(&token)),
            json!([]),
            "{narrow}"
        );
    }
    let shown = support::program::run(home.folder.path(), &["today", "--user", "user", "--json"]);
    let shown = support::program::printed(&shown);
    assert!(shown.contains("\"suggestions\": []"), "{shown}");
}

#[test]
fn an_admin_looks_for_model_servers_where_they_say() {
    let model = Model::saying("fine");
    model.says_of_itself(200, r#"{"object":"list","data":[{"id":"scripted"}]}"#);
    let home = Home::offline();
    let config = model.config();
    let url = config["base_url"].as_str().unwrap();
    let host = url.trim_start_matches("http://").trim_end_matches("/v1");
    let look = json!({ "type": "find_models", "addresses": [host, url] });
    let mut admin = home.admin();
    let found = admin.ask(look.clone());
    assert_eq!(
        found["servers"],
        json!([{
            "provider": "openai-compatible", "title": "The model server", "base_url": url,
            "is_usual": false, "models": ["scripted"],
        }])
    );
    // This machine, where tests know of none.
    let here = admin.ask(json!({ "type": "find_models" }));
    assert!(here["servers"].is_array(), "{here}");
    let wrong = json!({ "type": "find_models", "addresses": ["nas lan"], "id": "wrong" });
    assert_eq!(admin.refused(wrong), "invalid_request");
    let mut user = home.websocket(&home.tokens.user);
    assert_eq!(user.refused(look), "unauthorized");
}

#[test]
fn a_pdf_is_read_by_whoever_sees_it() {
    let home = Home::offline();
    let mut user = home.websocket(&home.tokens.user);
    let mut put = |name: &str, bytes: &[u8]| -> Value {
        let file = json!({ "type": "put_attachment", "name": name, "bytes": bytes.len() });
        let id = user.ask(file)["attachment_id"].clone();
        let data = protocol::attachment::encode(bytes);
        user.ask(json!({ "type": "put_attachment_part", "attachment_id": id, "data": data }));
        id
    };
    let letter = put("letter.pdf", &support::pdf::letter("Dear Ann"));
    let note = put("note.txt", b"Dear Bob");
    let read = |id: &Value| json!({ "type": "read_attachment", "attachment_id": id, "id": "read" });
    match agent::tools::pdf_obstacle() {
        None => {
            let text = user.ask(read(&letter));
            assert_eq!(
                (&text["text"], &text["is_cut"]),
                (&json!("[page 1]\nDear Ann"), &json!(false))
            );
        }
        Some(_) => assert_eq!(user.refused(read(&letter)), "invalid_request"),
    }
    assert_eq!(user.refused(read(&note)), "invalid_request");
    // It is the uploader's until a message carries it.
    assert_eq!(home.admin().refused(read(&letter)), "not_found");
}
