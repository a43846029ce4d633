//! Memories that people write, change and share themselves.

use serde_json::{Value, json};

use support::client::Client;
use support::home::Home;

fn contents(client: &mut Client) -> Value {
    let listed = client.ask(json!({ "type": "list_memories" }));
    let listed = listed["memories"].as_array().unwrap().iter();
    listed.map(|one| one["content"].clone()).collect()
}

#[test]
fn people_write_change_and_share_what_is_remembered() {
    let home = Home::offline();
    let mut user = home.websocket(&home.tokens.user);
    let mut admin = home.admin();
    let add = json!({ "type": "add_memory", "content": " The key is under the mat " });
    let made = user.ask(add.clone());
    assert_eq!(
        (&made["content"], &made["audience"], &made["speaker"]),
        (
            &json!("The key is under the mat"),
            &json!("private"),
            &json!("user")
        )
    );
    // The same is kept once.
    assert_eq!(user.ask(add)["memory_id"], made["memory_id"]);
    assert_eq!(contents(&mut admin), json!([]));
    assert_eq!(
        admin.refused(
            json!({ "type": "update_memory", "memory_id": made["memory_id"], "content": "x" })
        ),
        "not_found"
    );

    admin.ask(json!({ "type": "subscribe", "events": ["memory.updated"] }));
    let shared = user.ask(json!({
        "type": "update_memory", "memory_id": made["memory_id"], "audience": "household",
    }));
    assert_eq!(
        admin.event("memory.updated")["memory_id"],
        shared["memory_id"]
    );
    assert_eq!(contents(&mut admin), json!(["The key is under the mat"]));
    // An admin corrects what is the household's, and does not say who sees it.
    let change = |audience: &str| {
        json!({
            "type": "update_memory", "memory_id": shared["memory_id"],
            "content": "The key is with Ann", "audience": audience,
        })
    };
    assert_eq!(admin.refused(change("private")), "unauthorized");
    let corrected = admin.ask(change("household"));
    assert_eq!(
        (&corrected["owner"], &corrected["speaker"]),
        (&json!("user"), &json!("admin"))
    );
    assert_eq!(contents(&mut user), json!(["The key is with Ann"]));
    let kept = user.ask(json!({
        "type": "update_memory", "memory_id": corrected["memory_id"], "audience": ["viewer"],
    }));
    assert_eq!(kept["audience"], json!(["viewer"]));
    assert_eq!(contents(&mut admin), json!([]));
    for wrong in [
        json!({ "type": "add_memory", "content": " " }),
        json!({ "type": "add_memory", "content": "x".repeat(4_001) }),
        json!({ "type": "add_memory", "content": "x", "audience": ["nobody"] }),
    ] {
        assert_eq!(user.refused(wrong), "invalid_request");
    }
}
