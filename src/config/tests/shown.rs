//! What is shown of a configuration.

use serde_json::{Value, json};

use super::handle::FILE;
use super::*;
use base::testing::rows;

#[test]
fn what_is_shown_begins_with_the_contract_and_holds_no_secret() {
    let settings = Settings::from_text(Path::new("config.json"), FILE, environment).unwrap();
    let shown = settings.readable();
    let first: Vec<&String> = shown.keys().take(3).collect();
    assert_eq!(first, ["provider", "model", "temperature"]);
    assert_eq!(shown["temperature"], json!(1.0));
    assert_eq!(shown["api_key_set"], json!(true));
    assert_eq!(shown["base_url"], json!("https://***@proxy.example/v1?***"));
    assert_eq!(shown["limits"]["turn_seconds"], json!(300));
    assert_eq!(shown["tools"]["custom"], json!(["t"]));
    let webhook = &shown["channels"][0]["accounts"]["ci"];
    assert_eq!(webhook["secret_set"], json!(true));
    assert_eq!(webhook["outgoing_url"], json!("https://hooks.example/***"));
    assert_eq!(shown["channels"][2]["port"], json!(5000));
    let text = Value::Object(shown).to_string();
    for secret in [
        "sk-0123",
        "an-inline",
        "a-secret-from",
        "inline-env",
        "pass",
        "kk",
        "me:pw",
        "tk",
        "private-path",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[test]
fn keys_are_shown_with_secrets_masked() {
    let settings = Settings::from_text(Path::new("config.json"), FILE, environment).unwrap();
    let table = r#"
        model                               | "old"
        workers                             | 4
        session_days                        | 30
        limits.turn_seconds                 | 300
        api_key                             | "${API_KEY}"
        temperature                         | 1.0
        max_tokens                          | null
        channels.webhook.accounts.ci.secret | "***"
        channels.webhook.accounts.ci        | {"incoming_path": "/ci", "outgoing_url": "https://hooks.example/services/T0/private-path", "secret": "***"}
        channels.webhook.accounts.ci.model  | null
        tools.custom.t.env                  | {"TOKEN": "***"}
        base_url                            | "***"
        channels.webhook.accounts.ci.max_attempts | 10
        channels.webhook.accounts.ci.enabled      | true
        channels.webhook.accounts.none.enabled | null
        tools.custom.t.timeout_seconds                   | 30
        tools.custom[0].read_only                        | false
    "#;
    for [key, value] in rows(table) {
        let value: Value = value.parse().unwrap();
        assert_eq!(settings.get(key).unwrap(), value, "{key}");
    }
    let table = r#"
        modle              | there is no setting "modle" (did you mean "model"?)
        limits.turn_second | (did you mean "limits.turn_seconds"?)
                           | is not a key
    "#;
    for [key, says] in rows(table) {
        let error = settings.get(key).unwrap_err();
        assert!(error.message().contains(says), "{key}: {error}");
    }
}
