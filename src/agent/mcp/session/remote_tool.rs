//! A tool in a server's list.

use serde_json::{Map, Value};

/// Longest name of a tool at its server, and largest schema, in bytes.
const NAME_BYTES: usize = 256;
const SCHEMA_BYTES: usize = 64 * 1024;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteTool {
    /// Its name at the server.
    pub name: String,
    pub description: String,
    /// Its arguments: an object schema.
    pub schema: Value,
    /// What it calls.
    pub kind: Kind,
}

/// What a [`RemoteTool`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The server's tool of that name.
    Tool,
    /// Its resources.
    Resources,
    /// Its prompts.
    Prompts,
}

/// A tool that can be offered to a model. Hints (`annotations`) are ignored: they
/// come from the server, so they must not widen what it may do.
pub(super) fn remote_tool(tool: &Value) -> Option<RemoteTool> {
    let text = |name| tool.get(name).and_then(Value::as_str);
    let name = text("name").filter(|name| (1..=NAME_BYTES).contains(&name.len()))?;
    let needs_task = tool.pointer("/execution/taskSupport");
    if needs_task.and_then(Value::as_str) == Some("required") {
        return None;
    }
    let described = text("description").filter(|text| !text.trim().is_empty());
    let schema = object_schema(tool.get("inputSchema"));
    if schema.to_string().len() > SCHEMA_BYTES {
        return None;
    }
    Some(RemoteTool {
        name: name.to_owned(),
        description: described.or(text("title")).unwrap_or(name).to_owned(),
        schema,
        kind: Kind::Tool,
    })
}

/// The schema, completed with what model APIs require.
fn object_schema(schema: Option<&Value>) -> Value {
    let mut schema = schema
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let kind = schema.get("type").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "object") {
        schema.clear();
    }
    // Model APIs refuse a whole request for one malformed schema.
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    if schema
        .get("required")
        .is_some_and(|names| !is_list_of_names(names))
    {
        schema.shift_remove("required");
    }
    schema
        .entry("type")
        .or_insert_with(|| Value::from("object"));
    schema.into()
}

fn is_list_of_names(value: &Value) -> bool {
    let items = value.as_array();
    items.is_some_and(|items| items.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn schemas_are_passed_through_and_completed() {
        let table = r##"
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"type": "string"}}} | {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"type": "string"}}}
            {"properties": {"a": {}}}                            | {"properties": {"a": {}}, "type": "object"}
            {"type": "string"}                                   | {"type": "object", "properties": {}}
            {"type": "object", "properties": [], "required": "a"} | {"type": "object", "properties": {}}
            true                                                 | {"type": "object", "properties": {}}
            -                                                    | {"type": "object", "properties": {}}
        "##;
        for [given, expected] in rows(table) {
            let given: Option<Value> = (given != "-").then(|| given.parse().unwrap());
            let expected: Value = expected.parse().unwrap();
            assert_eq!(object_schema(given.as_ref()), expected);
        }
    }

    #[test]
    fn only_tools_that_can_be_called_are_taken() {
        let table = r#"
            {"name": "a", "description": "does a"}                     | does a
            {"name": "a", "title": "A", "description": " "}            | A
            {"name": "a"}                                              | a
            {"name": "a", "execution": {"taskSupport": "optional"}}    | a
            {"name": "a", "execution": {"taskSupport": "required"}}    | -
            {"name": ""}                                               | -
            {"name": "LONG_NAME"}                                      | -
            {"title": "A"}                                             | -
            "a"                                                        | -
            {"name": "a", "inputSchema": {"a": "LONG_SCHEMA"}}         | -
        "#;
        for [tool, description] in rows(table) {
            let tool = tool.replace("LONG_NAME", &"x".repeat(257));
            let tool = tool.replace("LONG_SCHEMA", &"x".repeat(SCHEMA_BYTES));
            let tool: Value = tool.parse().unwrap();
            let description = (description != "-").then_some(description);
            let taken = remote_tool(&tool).map(|tool| tool.description);
            assert_eq!(taken.as_deref(), description, "{tool}");
        }
    }
}
