//! What admins do without a terminal: a backup, a test of a webhook account, retention.

use serde_json::{Value, json};

use support::eventually;
use support::home::Home;
use support::model::Model;
use support::receiver::Receiver;

#[test]
fn an_admin_starts_a_backup_which_replaces_that_of_the_night() {
    let home = Home::offline();
    let mut admin = home.admin();
    let mut backups = || admin.ask(json!({ "type": "list_backups" }));
    let mut made = || {
        home.admin().ask(json!({ "type": "start_backup" }));
        eventually("the backup is made", || {
            let now = backups();
            let is_over = now["is_running"] == false;
            assert_eq!(now["problem"], Value::Null);
            (is_over && now["backups"].as_array().unwrap().len() == 1).then_some(now)
        })
    };
    let first = made();
    home.admin().chat(&"something long ".repeat(2_000));
    let second = made();
    assert_eq!(first["backups"][0]["name"], second["backups"][0]["name"]);
    assert!(
        first["backups"][0]["bytes"].as_u64() < second["backups"][0]["bytes"].as_u64(),
        "{first} {second}"
    );
    let off = Home::start(json!({ "backup": { "keep": 0 } }));
    let refused = off.admin().refused(json!({ "type": "start_backup" }));
    assert_eq!(refused, "invalid_request");
}

#[test]
fn an_admin_tries_a_webhook_account_and_sees_no_secret() {
    let receiver = Receiver::start();
    let model = Model::saying("It works.");
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": {
                "incoming_path": "/hooks/door", "outgoing_url": receiver.url(), "secret": "s3cret",
                "map": { "message": "{/event/text}" },
            },
            "off": {
                "incoming_path": "/hooks/off", "outgoing_url": receiver.url(), "enabled": false,
            },
        } },
    ]);
    let home = Home::start(config);
    let mut admin = home.admin();
    let test = |name: &str| json!({ "type": "test_webhook_account", "name": name, "send": true });
    let sent = admin.ask(test("door"));
    assert_eq!(sent["secret"], Value::Null);
    assert_eq!(receiver.wait_for(1)[0].body["message"], "It works.");
    let deliveries = admin.ask(json!({ "type": "list_deliveries" }));
    assert_eq!(deliveries["deliveries"][0]["turn_id"], sent["turn_id"]);
    let asked = model.requests()[0]["messages"].to_string();
    assert!(asked.contains("This is a test of the webhook"), "{asked}");
    assert_eq!(admin.refused(test("off")), "invalid_request");
    assert_eq!(
        home.websocket(&home.tokens.user).refused(test("door")),
        "unauthorized"
    );
}

#[test]
fn an_admin_says_how_long_conversations_are_kept() {
    let home = Home::offline();
    let mut admin = home.admin();
    let keep = json!({ "retention": { "conversations_days": 400 } });
    admin.ask(json!({ "type": "update_config", "config": keep }));
    let config = admin.ask(json!({ "type": "get_config" }));
    assert_eq!(config["retention"], keep["retention"]);
}
