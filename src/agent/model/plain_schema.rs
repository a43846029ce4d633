//! JSON Schemas for servers that know only a part of the standard.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Keywords that every server with tools knows.
const KNOWN: [&str; 6] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
];

/// The schema of a tool's arguments, reduced to what every server knows if it
/// `must_be_plain`. What is left out is still checked when the tool is called.
pub fn parameters_of(schema: &Value, must_be_plain: bool) -> Cow<'_, Value> {
    if must_be_plain {
        Cow::Owned(plain(schema))
    } else {
        Cow::Borrowed(schema)
    }
}

fn plain(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else {
        return Value::Object(Map::new());
    };
    let mut kept = Map::new();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties = properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), plain(schema)))
                    .collect();
                kept.insert(name.clone(), Value::Object(properties));
            }
            ("items", items) => {
                kept.insert(name.clone(), plain(items));
            }
            // Of several types the first that is not null.
            ("type", Value::Array(types)) => {
                let first = types.iter().find(|word| word.as_str() != Some("null"));
                kept.extend(first.map(|word| (name.clone(), word.clone())));
            }
            (word, value) if KNOWN.contains(&word) => {
                kept.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_every_server_knows_is_left() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false,
            "properties": {
                "default": {"type": ["string", "null"], "default": "a", "enum": ["a", "b"]},
                "list": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                "odd": true,
            },
            "required": ["list"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "default": {"type": "string", "enum": ["a", "b"]},
                "list": {"type": "array", "items": {"type": "integer"}},
                "odd": {},
            },
            "required": ["list"],
        });
        assert_eq!(*parameters_of(&schema, true), expected);
        assert_eq!(*parameters_of(&schema, false), schema);
    }
}
