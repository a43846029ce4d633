//! A sample body for testing an account.

use serde_json::{Map, Value};

use ::config::{self, Template, WebhookAccount, WebhookFilter};
use serde_json::json;

/// A body with `text` as its message, in the account's own structure if it has a
/// `map`. Its `when` takes it, wherever the map puts the text.
pub fn body(account: &WebhookAccount, text: &str) -> Value {
    let mut body = mapped(account, text);
    for (pointer, values) in &account.when {
        let entry = WebhookFilter::from([(pointer.clone(), values.clone())]);
        if let (Some(value), Some(_)) = (values.first(), config::misfit(&entry, &body)) {
            put(&mut body, pointer, value.clone());
        }
    }
    body
}

fn mapped(account: &WebhookAccount, text: &str) -> Value {
    let mut body = json!({"test": true});
    let Some(map) = &account.map else {
        body["message"] = json!(text);
        body["user_id"] = json!("hearth webhook test");
        return body;
    };
    for (template, text) in [
        (map.conversation_id.as_ref(), "hearth-webhook-test"),
        (map.user_id.as_ref(), "hearth webhook test"),
        // Last, so that it wins if two pointers are equal.
        (Some(&map.message), text),
    ] {
        for pointer in template.into_iter().flat_map(Template::pointers) {
            put(&mut body, pointer, json!(text));
        }
    }
    body
}

/// Inserts a value at a JSON pointer (RFC 6901). Numbers become keys of objects, which
/// a pointer resolves like array indices.
fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut tokens = pointer.split('/').skip(1).peekable();
    if tokens.peek().is_none() {
        return;
    }
    let mut here = document;
    for token in tokens {
        let key = token.replace("~1", "/").replace("~0", "~");
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        here = &mut here[key];
    }
    *here = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Settings;

    #[test]
    fn every_known_system_has_a_body_that_its_account_takes() {
        let text = include_str!("../../../examples/config/other-systems.json");
        let secret = |_: &str| Some("0123456789abcdef0123456789abcdef".to_owned());
        let settings = Settings::from_text("x".as_ref(), text, secret).unwrap();
        let config = settings.current();
        for account in config.webhook_accounts() {
            let body = body(account, "Is all well?");
            assert_eq!(config::misfit(&account.when, &body), None, "{body}");
            assert!(body.to_string().contains("Is all well?"), "{body}");
        }
        assert!(config.webhook_accounts().any(|one| !one.when.is_empty()));
    }

    #[test]
    fn what_is_put_is_found() {
        let mut document = json!({});
        for (pointer, text) in [("/a/b", "1"), ("/a/0/x~1y", "2"), ("/c", "3"), ("", "-")] {
            put(&mut document, pointer, json!(text));
        }
        for (pointer, text) in [("/a/b", "1"), ("/a/0/x~1y", "2"), ("/c", "3")] {
            assert_eq!(document.pointer(pointer), Some(&json!(text)), "{document}");
        }
    }
}
