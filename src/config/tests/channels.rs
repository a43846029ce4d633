//! Channels and webhook accounts that are not good.

use serde_json::{Value, json};

use super::problems::check_says;
use super::*;
use base::testing::rows;

/// A file with one webhook account of these members.
fn account(members: &str) -> String {
    format!(r#"{{"channels":{{"webhook":{{"accounts":{{"ci":{{{members}}}}}}}}}}}"#)
}

#[test]
fn webhook_accounts_are_strict() {
    let paths = "ci / /ws /ws/ /auth /health // /auth/ /auth/x /health/x /register /ws/register \
                 /assets /assets/x /a?b /a#b /ä /a/../ws /a/./b";
    for path in paths.split(' ').chain(["", "/a b"]) {
        check_says(
            &account(&format!(
                r#""incoming_path":"{path}","outgoing_url":"http://a/""#
            )),
            "\"channels.webhook.accounts.ci.incoming_path\" must be a URL path that begins with /",
        );
    }
    let table = r#"
        "incoming_path":"/attachments","outgoing_url":"http://a/"    | nor at or below /assets, /attachments, /auth
        "incoming_path":"/a"                                         | "channels.webhook.accounts.ci.outgoing_url" is required: a URL
        "outgoing_url":"http://a/"                                   | "channels.webhook.accounts.ci.incoming_path" is required
        "incoming_path":"/a","outgoing_url":"ws://a/"                | must be a URL that begins with https:// or http://
        "incoming_path":"/a","outgoing_url":"http://a/","secret":""  | "channels.webhook.accounts.ci.secret" must not be empty
        "incoming_path":"/a","outgoing_url":"http://a/","name":"x"   | must be "ci", the key of the account
        "incoming_path":"/a","outgoing_url":"http://a/","secrets":"x" | (did you mean "secret"?)
    "#;
    for [members, says] in rows(table) {
        check_says(&account(members), says);
    }
}

#[test]
fn what_is_switched_on_takes_no_path_of_an_account() {
    let file = |section: &str, channels: &str| format!(r#"{{{section}"channels":{channels}}}"#);
    let metrics = r#""metrics":{"enabled":true},"#;
    let model_api = r#""openai_api":{"enabled":true},"#;
    for (section, path, is_taken) in [
        (metrics, "/metrics", true),
        (metrics, "/metrics/", true),
        (metrics, "/metrics-of-mine", false),
        (metrics, "/v1/hook", false),
        (model_api, "/v1", true),
        (model_api, "/v1/chat/completions", true),
        (model_api, "/v1/hook", true),
        (model_api, "/api/hook", true),
        (model_api, "/api", true),
        (model_api, "/apis", false),
        (model_api, "/metrics", false),
        ("", "/metrics", false),
        ("", "/api/hook", false),
    ] {
        let accounts = format!(
            r#""accounts":{{"ci":{{"incoming_path":"{path}","outgoing_url":"http://a/"}}}}"#
        );
        let text = file(section, &format!(r#"{{"webhook":{{{accounts}}}}}"#));
        if is_taken {
            let says = "\"channels.webhook.accounts.ci.incoming_path\" is ";
            check_says(&text, &format!("{says}{path:?}, and \""));
            check_says(
                &text,
                "choose another path, or give the webhook channel a \"port\"",
            );
            let listed = format!(r#"[{{"type":"tcp"}},{{"type":"webhook",{accounts}}}]"#);
            check_says(
                &file(section, &listed),
                "\"channels[1].accounts.ci.incoming_path\"",
            );
        } else {
            drop(config(&text))
        }
        // A separate port serves nothing else.
        config(&file(
            section,
            &format!(r#"{{"webhook":{{"port":5001,{accounts}}}}}"#),
        ));
    }
}

#[test]
fn channels_do_not_collide() {
    let table = r#"
        [{"type":"tcp"},{"type":"tcp","port":5000}]                  | "channels[1].port" is 5000, and so is "channels[0].port"
        [{"type":"tcp","bind":"127.0.0.1"},{"type":"tcp","bind":"0.0.0.0"}] | "channels[1].port" is 5000, and so is
        [{"type":"tcp"},{"type":"webhook","port":5000,"accounts":{}}] | "channels[1].port" is 5000, and so is
        {"tcp":{},"webhook":{"port":5000,"accounts":{}}}             | "channels.webhook.port" is 5000, and so is "channels.tcp.port"
        [{"type":"tcp","name":"a"},{"type":"tcp","port":1,"name":"a"}] | "channels[1].name" is "a", and so is the name of "channels[0]"
        [{"type":"webhook","accounts":{}}]                           | "channels[0]" has no "port", and there is no tcp channel
        {"webhook":{"accounts":{"a":{"incoming_path":"/x","outgoing_url":"http://a/"},"b":{"incoming_path":"/x","outgoing_url":"http://b/"}}}} | "channels.webhook.accounts.b.incoming_path" is "/x", and so is "channels.webhook.accounts.a.incoming_path"
        [{"name":"x"}]                                               | "channels[0].type" is required: "tcp", "websocket", "webhook" or "telegram"
        {"x":{"port":1}}                                             | "channels.x.type" is required
        [{"type":"tpc"}]                                             | (did you mean "tcp"?)
        [{"type":"tcp","url":"wss://a/"}]                            | unknown key "url" in "channels[0]" (known there: name, port, bind, allow_from, type)
        [{"type":"tcp","bind":"eth0"}]                               | "channels[0].bind" must be an IPv4 or IPv6 address
        ["tcp"]                                                      | "channels[0]" must be an object, not "tcp"
        5000                                                         | "channels" must be an array of channels, or an object of them by name, not 5000
        {"webhook":{}}                                               | "channels.webhook.accounts" is required
    "#;
    for [channels, says] in rows(table) {
        check_says(&format!(r#"{{"channels":{channels}}}"#), says);
    }
    config(r#"{"channels":[{"type":"tcp","port":0},{"type":"tcp","port":0}]}"#);
    config(
        r#"{"channels":[{"type":"tcp","bind":"127.0.0.1"},{"type":"tcp","bind":"192.168.1.2"}]}"#,
    );
}

#[test]
fn accounts_are_not_lost_with_another_value_of_channels() {
    let account = json!({ "incoming_path": "/in", "outgoing_url": "http://127.0.0.1:1/", "secret": "x".repeat(32) });
    let lan = json!({ "name": "lan", "type": "tcp", "port": 5000 });
    let array = json!([lan, { "name": "hooks", "type": "webhook", "accounts": { "ci": account } }]);
    let object = json!({ "lan": lan, "webhook": { "accounts": { "ci": account } } });
    for channels in [array, object] {
        let dir = TemporaryDirectory::new();
        let path = dir.path().join("config.json");
        fs::write(&path, json!({ "channels": channels }).to_string()).unwrap();
        let settings = Settings::load(&path).unwrap();
        let hooks = if channels.is_array() {
            "channels.hooks"
        } else {
            "channels.webhook"
        };
        let other = json!([{ "name": "lan", "type": "tcp", "port": 5001 }]).to_string();
        for (key, value) in [
            ("channels", other.as_str()),
            ("channels", "null"),
            (hooks, "null"),
        ] {
            let error = settings.set(key, given(value)).unwrap_err();
            assert!(
                error.message().contains("hearth webhook remove ci"),
                "{key}: {error}"
            );
            assert_eq!(settings.current().webhook_accounts().count(), 1);
        }
        settings.set("channels.lan.port", json!(5001)).unwrap();
        settings
            .set(&format!("{hooks}.accounts.ci"), Value::Null)
            .unwrap();
        settings.set("channels", given(&other)).unwrap();
        assert_eq!(settings.current().webhook_accounts().count(), 0);
    }
}
