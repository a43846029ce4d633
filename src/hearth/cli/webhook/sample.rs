//! A body to test an account with.

use serde_json::{Map, Value};

use ::config::{Template, WebhookAccount};
use serde_json::json;

/// A body whose message is `text`: in the account's own form if it has a `map`.
pub fn body(account: &WebhookAccount, text: &str) -> Value {
    let Some(map) = &account.map else {
        return json!({"message": text, "user_id": "hearth webhook test"});
    };
    let mut body = json!({"test": true});
    let mut fill = |template: &Template, text: &str| {
        for pointer in template.pointers() {
            put(&mut body, pointer, text);
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
    // Last, because it matters most where two name the same place.
    fill(&map.message, text);
    body
}

/// Puts a text where a JSON pointer (RFC 6901) finds it. Numbers become keys of
/// objects, which a pointer finds as well as places in an array.
fn put(document: &mut Value, pointer: &str, text: &str) {
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
    *here = json!(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found() {
        let mut document = json!({});
        for (pointer, text) in [("/a/b", "1"), ("/a/0/x~1y", "2"), ("/c", "3"), ("", "-")] {
            put(&mut document, pointer, text);
        }
        for (pointer, text) in [("/a/b", "1"), ("/a/0/x~1y", "2"), ("/c", "3")] {
            assert_eq!(document.pointer(pointer), Some(&json!(text)), "{document}");
        }
    }
}
