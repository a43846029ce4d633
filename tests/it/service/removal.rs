//! Removing a person: what goes, what stays, and what somebody else gets.

use std::process::Output;

use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;
use support::program::{printed, run};

/// A household in which `user` has one of each thing.
fn home() -> Home {
    let home = Home::start(json!({
        "permission_mode": "allow",
        "channels": [{ "name": "lan", "type": "tcp", "port": 0 }],
    }));
    let mut user = home.websocket(&home.tokens.user);
    let mut file = |content: &str| {
        let put = json!({ "type": "put_attachment", "name": "a.txt", "bytes": content.len() });
        let id = user.ask(put)["attachment_id"].clone();
        use base64::Engine;
        let data = base64::engine::general_purpose::STANDARD.encode(content);
        let part = json!({ "type": "put_attachment_part", "attachment_id": id, "data": data });
        user.ask(part);
        id
    };
    let (sent, _unsent) = (file("a diary"), file("not sent"));
    let diary = json!({ "type": "chat", "message": "my diary", "attachments": [sent] });
    user.ask(diary);
    user.ask(json!({ "type": "chat", "message": "remember that the well is nine metres deep" }));
    user.ask(json!({ "type": "chat", "message": "for all", "audience": "household" }));
    let guests = json!({ "type": "chat", "message": "with a guest", "audience": ["viewer"] });
    user.ask(guests);
    user.ask(json!({ "type": "create_schedule", "prompt": "bins", "cron": "0 8 * * *" }));
    home.token("user", &json!({ "only": "household" }));
    home
}

fn remove(home: &Home, more: &[&str]) -> Output {
    let words = [&["user", "remove", "user", "--yes"], more].concat();
    run(home.folder.path(), &words)
}

/// The titles, owners and audiences of what somebody sees, by title.
fn seen(client: &mut Client) -> Vec<(String, Value, Value)> {
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let rows = listed["conversations"].as_array().unwrap().iter();
    let row = |one: &Value| {
        let title = one["title"].as_str().unwrap().to_owned();
        (title, one["owner"].clone(), one["audience"].clone())
    };
    let mut seen: Vec<_> = rows.map(row).collect();
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    seen
}

#[test]
fn what_goes_with_a_person_and_what_stays_is_said() {
    let home = home();
    let said = printed(&remove(&home, &[]));
    for part in [
        "2 private conversations, 2 files, 1 private memory, 1 reminder, 2 tokens",
        "These stay, without an owner: 2 shared conversations",
        "Removed user.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let mut admin = home.admin();
    let listed = seen(&mut admin);
    assert_eq!(
        listed,
        [("for all".to_owned(), Value::Null, json!("household"))]
    );
    assert_eq!(
        admin.ask(json!({ "type": "list_schedules" }))["schedules"],
        json!([])
    );
    let guest = seen(&mut home.websocket(&home.tokens.viewer));
    assert_eq!(
        guest,
        [("with a guest".to_owned(), Value::Null, json!(["viewer"]))]
    );
    assert_eq!(
        admin.ask(json!({ "type": "server_info" }))["attachment_bytes"],
        0
    );
}

#[test]
fn only_the_owner_of_the_machine_hands_over_and_then_all_of_it() {
    let home = home();
    let mut admin = home.admin();
    let hand_over = |to: &str| json!({ "type": "remove_user", "name": "user", "hand_over_to": to });
    assert_eq!(admin.refused(hand_over("admin")), "unauthorized");
    for wrong in ["user", "viewer", "nobody"] {
        let refused = remove(&home, &["--hand-over-to", wrong]);
        assert!(!refused.status.success(), "{}", printed(&refused));
    }
    assert_eq!(seen(&mut admin).len(), 1, "nothing has changed hands");
    admin.ask(json!({ "type": "subscribe", "events": ["conversation.shared"] }));
    let handed = remove(&home, &["--hand-over-to", "Admin"]);
    let said = printed(&handed);
    assert!(handed.status.success(), "{said}");
    for part in [
        "admin gets these: 2 private conversations, 2 files, 1 private memory, 1 reminder, \
         2 shared conversations",
        "Reminders are paused. These end: 2 tokens.",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for _ in 0..3 {
        assert_eq!(admin.event("conversation.shared")["owner"], "admin");
    }
    let own = |title: &str, audience: Value| (title.to_owned(), json!("admin"), audience);
    assert_eq!(
        seen(&mut admin),
        [
            own("for all", json!("household")),
            own("my diary", json!("private")),
            own(
                "remember that the well is nine metres deep",
                json!("private")
            ),
            own("with a guest", json!(["viewer"])),
        ]
    );
    let schedules = admin.ask(json!({ "type": "list_schedules" }));
    assert_eq!(schedules["schedules"][0]["owner"], "admin", "{schedules}");
    assert_eq!(schedules["schedules"][0]["paused"], true);
    let memories = admin.ask(json!({ "type": "list_memories", "own": true }));
    assert_eq!(
        memories["memories"].as_array().unwrap().len(),
        1,
        "{memories}"
    );
    assert_eq!(memories["memories"][0]["audience"], "private", "{memories}");
    let found = admin.ask(json!({ "type": "search_messages", "query": "diary" }));
    let file = &found["messages"][0]["conversation_id"];
    let messages = admin.ask(json!({ "type": "get_messages", "conversation_id": file }));
    let file = messages["messages"][0]["attachments"][0]["attachment_id"].clone();
    admin.ask(json!({ "type": "get_attachment", "attachment_id": file }));
    assert_eq!(seen(&mut home.websocket(&home.tokens.viewer)).len(), 1);
}
