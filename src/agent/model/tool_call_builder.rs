//! Tool calls as they are put together from a reply, whole or in pieces, and what of them goes
//! back to the server: their arguments, and members that only that server understands.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::{ToolSpec, make_call_id};
use store::ToolCall;

/// Most calls of one reply that are read: far more than run.
pub const MAX_CALLS: usize = 512;

/// A call that may not be complete yet.
#[derive(Clone, Debug, Default)]
pub struct ToolCallBuilder {
    pub id: String,
    pub name: String,
    pub arguments: String,
    /// Other members of the call (thought signatures).
    pub members: Map<String, Value>,
}

impl ToolCallBuilder {
    /// A call that came whole: an item of a list, with its id in the member `id`.
    pub fn whole(item: &Value, id: &str, arguments: &Value) -> ToolCallBuilder {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let mut call = ToolCallBuilder {
            id: text(id).unwrap_or_default().to_owned(),
            name: text("name").unwrap_or_default().to_owned(),
            ..ToolCallBuilder::default()
        };
        call.append_arguments(arguments);
        call
    }

    /// Takes a call or a piece of one: id and name are set, arguments appended.
    pub fn merge(&mut self, call: &Value) {
        let Some(call) = call.as_object() else {
            return;
        };
        if let Some(id) = call.get("id").and_then(Value::as_str) {
            set(&mut self.id, id);
        }
        if let Some(function) = call.get("function") {
            self.merge_function(function);
        }
        for (name, value) in call {
            if !matches!(name.as_str(), "id" | "type" | "function" | "index") {
                merge_member(&mut self.members, name, value);
            }
        }
    }

    /// Takes the `function` of a call.
    pub fn merge_function(&mut self, function: &Value) {
        if let Some(name) = function.get("name").and_then(Value::as_str) {
            set(&mut self.name, name);
        }
        self.append_arguments(&function["arguments"]);
    }

    /// Whether the arguments are complete.
    pub fn is_whole(&self) -> bool {
        let objects = serde_json::Deserializer::from_str(&self.arguments);
        let mut objects = objects.into_iter::<Map<String, Value>>().peekable();
        objects.peek().is_some() && objects.all(|object| object.is_ok())
    }

    fn append_arguments(&mut self, piece: &Value) {
        match piece {
            Value::Null => {}
            Value::String(piece) => self.arguments.push_str(piece),
            whole => self.arguments.push_str(&whole.to_string()),
        }
    }
}

/// Sets, never appends: some servers repeat id and name with every piece.
fn set(slot: &mut String, value: &str) {
    if !value.is_empty() {
        value.clone_into(slot);
    }
}

/// Adds a piece of an unknown member: texts and lists grow, the rest is replaced.
pub fn merge_member(members: &mut Map<String, Value>, name: &str, piece: &Value) {
    match (members.get_mut(name), piece) {
        (_, Value::Null) => {}
        (Some(Value::String(text)), Value::String(piece)) => text.push_str(piece),
        (Some(Value::Array(items)), Value::Array(piece)) => {
            piece.iter().for_each(|item| merge_item(items, item));
        }
        (Some(known), piece) => *known = piece.clone(),
        (None, piece) => {
            members.insert(name.to_owned(), piece.clone());
        }
    }
}

/// Adds an item to a list, or to the item that it goes on: one of the same type and
/// `index`, as OpenRouter sends `reasoning_details`. Its signature holds for the whole.
fn merge_item(items: &mut Vec<Value>, piece: &Value) {
    let is_begun = |item: &&mut Value| {
        piece["index"].is_u64() && item["index"] == piece["index"] && item["type"] == piece["type"]
    };
    let begun = items
        .iter_mut()
        .find(is_begun)
        .and_then(Value::as_object_mut);
    let (Some(begun), Some(piece)) = (begun, piece.as_object()) else {
        items.push(piece.clone());
        return;
    };
    for (name, value) in piece {
        match name.as_str() {
            "text" | "summary" | "data" => merge_member(begun, name, value),
            _ if value.is_null() => {}
            _ => drop(begun.insert(name.clone(), value.clone())),
        }
    }
}

/// Calls that the model wrote into its text, as Hermes and Qwen models are taught to,
/// because its server did not recognise them: those of tools that it was `offered`.
pub fn calls_in_text(texts: &[String], offered: &[ToolSpec]) -> Vec<ToolCallBuilder> {
    texts
        .iter()
        .flat_map(|text| text.split("<tool_call>"))
        .filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok())
        .map(|item| {
            let arguments = item.get("arguments").or_else(|| item.get("parameters"));
            ToolCallBuilder::whole(&item, "id", arguments.unwrap_or(&Value::Null))
        })
        .filter(|call| offered.iter().any(|tool| tool.name == call.name))
        .collect()
}

/// The finished calls: each with a name, a unique id and its own arguments.
pub fn finish_calls(builders: Vec<ToolCallBuilder>, origin: &str) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = Vec::with_capacity(builders.len());
    for builder in builders.into_iter().take(MAX_CALLS) {
        if builder.name.is_empty() {
            continue;
        }
        let mut id = builder.id;
        let mut members = builder.members;
        for arguments in split_arguments(builder.arguments) {
            if id.is_empty() || calls.iter().any(|call| call.id == id) {
                id = make_call_id();
            }
            calls.push(ToolCall {
                id: std::mem::take(&mut id),
                provider_id: None,
                tool: builder.name.clone(),
                arguments,
                extra: wrap_members(std::mem::take(&mut members), origin),
            });
        }
    }
    calls
}

/// Some gateways give the pieces of parallel calls one index and no ids: their
/// arguments come out as `{...}{...}`, which are that many calls.
fn split_arguments(arguments: String) -> Vec<String> {
    if arguments.trim().is_empty() {
        return vec!["{}".to_owned()];
    }
    let objects: Result<Vec<Map<String, Value>>, _> =
        serde_json::Deserializer::from_str(&arguments)
            .into_iter()
            .collect();
    match objects {
        Ok(objects) if objects.len() > 1 => objects
            .into_iter()
            .map(|object| Value::Object(object).to_string())
            .collect(),
        _ => vec![arguments],
    }
}

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
