//! `parameters` of a custom tool: the short form or a JSON Schema.

use serde_json::{Map, Value};

use super::declaration::{Rule, is_comment};
use super::key_path::KeyPath;
use super::names::TOOL_NAME;
use super::problems::suggestion;
use super::reader::Reader;
use serde_json::json;

/// The rule for `parameters`: the short form or a whole schema.
pub(super) struct Parameters;

/// Type names of the short form, which are those of JSON Schema.
const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// The schema of a tool without arguments.
pub(super) fn empty_schema() -> Value {
    json!({"type": "object", "properties": {}})
}

impl Rule for Parameters {
    type Output = Value;

    fn expected(&self) -> String {
        "an object from parameter names to type names or JSON Schemas, or a JSON Schema whose \
         type is object"
            .to_owned()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Value> {
        let members = reader.members(path, &self.expected(), value)?;
        if members.get("type").and_then(Value::as_str) == Some("object") {
            return check_schema(reader, path, members).then(|| value.clone());
        }
        let before = reader.problems.len();
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in members.iter().filter(|(name, _)| !is_comment(name)) {
            let path = path.key(name);
            if !TOOL_NAME.fits(name) {
                let message = format!("{name:?} is not a parameter name (A-Z a-z 0-9 _ -)");
                reader.problem(&path, message);
            }
            let (schema, optional) = match kind {
                Value::String(word) => {
                    let (word, optional) = match word.strip_suffix('?') {
                        Some(word) => (word, true),
                        None => (word.as_str(), false),
                    };
                    if !TYPES.contains(&word) {
                        let hint = suggestion(word, TYPES);
                        let types = TYPES.join(", ");
                        reader.problem(
                            &path,
                            format!(
                                "\"{path}\" must be one of {types}, or a JSON Schema, not \
                                 {word:?}{hint}"
                            ),
                        );
                    }
                    (json!({"type": word}), optional)
                }
                Value::Object(_) => (kind.clone(), false),
                other => {
                    reader.mistyped(&path, "a type name or a JSON Schema", other);
                    continue;
                }
            };
            properties.insert(name.clone(), schema);
            if !optional {
                required.push(Value::from(name.as_str()));
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        (reader.problems.len() == before).then_some(schema.into())
    }
}

/// As much of a JSON Schema as the house relies on.
fn check_schema(reader: &mut Reader<'_>, path: &KeyPath, schema: &Map<String, Value>) -> bool {
    let before = reader.problems.len();
    let none = Map::new();
    let properties = match schema.get("properties") {
        None => &none,
        Some(Value::Object(properties)) => properties,
        Some(other) => {
            reader.mistyped(&path.key("properties"), "an object", other);
            &none
        }
    };
    for (name, property) in properties {
        if !property.is_object() {
            let path = path.key("properties").key(name);
            reader.mistyped(&path, "a JSON Schema", property);
        }
    }
    if let Some(required) = schema.get("required") {
        let path = path.key("required");
        let known = |item: &Value| {
            item.as_str()
                .is_some_and(|name| properties.contains_key(name))
        };
        if !required
            .as_array()
            .is_some_and(|items| items.iter().all(known))
        {
            let message = format!("\"{path}\" must be an array of names that \"properties\" has");
            reader.problem(&path, message);
        }
    }
    reader.problems.len() == before
}
