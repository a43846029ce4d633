//! What goes back to the server that sent it: members that only their origin
//! understands, and the arguments of earlier calls.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use serde_json::json;
use store::ToolCall;

/// Wraps members that only the server at `origin` gets back: others may reject
/// them, and could not read its signatures.
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

/// The blocks of a reply as its server sent them (the member `name` of the
/// extra members that came from `origin`), with the ids that the calls of kind
/// `kind` have now in the member `id`; nothing when they do not fit the calls.
pub fn own_blocks(
    extra: Option<&Value>,
    origin: &str,
    calls: &[ToolCall],
    name: &str,
    (kind, id): (&str, &str),
) -> Option<Vec<Value>> {
    let mut blocks = own_members(extra?, origin)?.get(name)?.as_array()?.clone();
    let mut ids = calls.iter().map(|call| &call.id);
    for block in &mut blocks {
        if block.get("type").and_then(Value::as_str) == Some(kind) {
            block[id] = ids.next()?.as_str().into();
        }
    }
    ids.next().is_none().then_some(blocks)
}
