//! What goes back to the server that sent it: members that only that server
//! understands, and the arguments of earlier calls.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Wraps members that only the server at `origin` gets back: others may reject
/// them and cannot read its signatures.
pub fn wrap_members(members: Map<String, Value>, origin: &str) -> Option<Value> {
    (!members.is_empty()).then(|| json!({ "origin": origin, "members": members }))
}

/// The members in `extra`, if they came from `origin`.
pub fn own_members<'v>(extra: &'v Value, origin: &str) -> Option<&'v Map<String, Value>> {
    (extra.get("origin")?.as_str()? == origin)
        .then(|| extra.get("members")?.as_object())
        .flatten()
}

/// Arguments as they may go back to a server: many parse them, and reject a whole
/// conversation because of one broken call in its past.
pub fn sendable(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        "{}".into()
    } else if serde_json::from_str::<&RawValue>(arguments).is_ok() {
        arguments.into()
    } else {
        json!({ "unreadable_arguments": arguments })
            .to_string()
            .into()
    }
}

/// A tool's result for an API that can mark a failed call only in the text.
pub fn result_text(content: &str, ok: bool) -> Cow<'_, str> {
    match ok {
        true => content.into(),
        false => format!("Error: {content}").into(),
    }
}

/// Arguments as an object, for the servers that want one.
pub fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(&sendable(arguments)) {
        Ok(Value::Object(members)) => Value::Object(members),
        _ => json!({ "unreadable_arguments": arguments }),
    }
}
