//! A sample body for testing an account.

use serde_json::{Map, Value};

use ::config::{Template, WebhookAccount};
use serde_json::json;

/// A body with `text` as its message, in the account's own structure if it has a
/// `map`.
pub fn body(account: &WebhookAccount, text: &str) -> Value {
    let mut body = json!({"test": true});
    for (pointer, values) in &account.when {
        if let Some(value) = values.first() {
            put(&mut body, pointer, value.clone());
        }
    }
    let Some(map) = &account.map else {
        body["message"] = json!(text);
        body["user_id"] = json!("hearth webhook test");
        return body;
    };
    let mut fill = |template: &Template, text: &str| {
        for pointer in template.pointers() {
            put(&mut body, pointer, json!(text));
        }
    };
    for (template, text) in [
        (&map.conversation_id, "hearth-webhook-test"),
        (&map.user_id, "hearth webhook test"),
    ] {
        if let Some(template) = template {
            fill(template, text);
        }
    }
    // Last, so that it wins if two pointers are equal.
    fill(&map.message, text);
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
