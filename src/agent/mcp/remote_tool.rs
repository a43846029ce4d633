//! A server's tool as its server lists it, and its name for the model.
//!
//! Names are `mcp_SERVER_TOOL`, within what all model APIs allow, and never the same for two
//! tools.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::tools::output::shorten;
use base::secret::{fingerprint, hex};
use base::visible::one_line;
use config::permitted_name;
use protocol::record::Annotations;

/// Longest name of a tool at its server, and largest schema, in bytes.
const REMOTE_NAME_BYTES: usize = 256;
const SCHEMA_BYTES: usize = 64 * 1024;
/// Characters of a title that are shown.
const TITLE_CHARS: usize = 100;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RemoteTool {
    /// Its name at the server.
    pub(super) name: String,
    pub(super) description: String,
    /// Its arguments: an object schema.
    pub(super) schema: Value,
    /// What it calls.
    pub(super) kind: Kind,
    /// Whether its server says that it changes nothing. It must not widen what the tool may
    /// do unless the owner says so, too.
    pub(super) is_annotated: bool,
    /// Whether its server says that it reaches the outside, such as any web page: what it is
    /// called with can then be carried anywhere.
    pub(super) is_open: bool,
    /// What else its server says of it, for people.
    pub(super) annotations: Option<Annotations>,
}

/// What its server says that it is, for people.
fn annotations(tool: &Value) -> Annotations {
    let hint = |name| tool.pointer(&format!("/annotations/{name}"));
    let title = tool.get("title").or(hint("title")).and_then(Value::as_str);
    let title = title.map(one_line).filter(|title| !title.is_empty());
    Annotations {
        title: title.map(|title| shorten(&title, TITLE_CHARS).into_owned()),
        read_only: hint("readOnlyHint").and_then(Value::as_bool),
        destructive: hint("destructiveHint").and_then(Value::as_bool),
    }
}

/// What a [`RemoteTool`] calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The server's tool of that name.
    Tool,
    /// Its resources.
    Resources,
    /// Its prompts.
    Prompts,
}

/// A tool that can be offered to a model.
pub(super) fn remote_tool(tool: &Value) -> Option<RemoteTool> {
    let text = |name| tool.get(name).and_then(Value::as_str);
    let name = text("name").filter(|name| (1..=REMOTE_NAME_BYTES).contains(&name.len()))?;
    let needs_task = tool.pointer("/execution/taskSupport");
    if needs_task.and_then(Value::as_str) == Some("required") {
        return None;
    }
    let described = text("description").filter(|text| !text.trim().is_empty());
    let schema = object_schema(tool.get("inputSchema"));
    if schema.to_string().len() > SCHEMA_BYTES {
        return None;
    }
    let says = |hint| tool.pointer(hint) == Some(&Value::Bool(true));
    Some(RemoteTool {
        name: name.to_owned(),
        description: described.or(text("title")).unwrap_or(name).to_owned(),
        schema,
        kind: Kind::Tool,
        is_annotated: says("/annotations/readOnlyHint"),
        is_open: says("/annotations/openWorldHint"),
        annotations: Some(annotations(tool)),
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

/// Longest name that all model APIs allow.
const NAME_BYTES: usize = 64;
/// Characters of the fingerprint that distinguishes names that would be equal.
const MARK: usize = 6;

/// The names of one server's tools, in order. `prefixes` are those of all
/// servers that are configured, running or not.
///
/// A name depends only on the configured servers and the server's own tools: while
/// a server is down, a permission for one of its tools must not apply to another
/// server's. So of `a_b` with a tool `c` and `a` with a tool `b_c`, the second is
/// always marked.
pub(super) fn tool_names(prefix: &str, tools: &[&str], prefixes: &[String]) -> Vec<String> {
    let mut taken = HashSet::new();
    let own = format!("mcp_{prefix}_");
    tools
        .iter()
        .map(|tool| {
            let plain = format!("{own}{}", permitted_name(tool));
            let is_foreign = prefixes.iter().any(|other| {
                let foreign = format!("mcp_{other}_");
                foreign.len() > own.len() && plain.starts_with(&foreign)
            });
            let fits = plain.len() <= NAME_BYTES && !is_foreign;
            if fits && taken.insert(plain.clone()) {
                return plain;
            }
            let marked = marked(prefix, tool, &plain);
            taken.insert(marked.clone());
            marked
        })
        .collect()
}

/// The name, shortened if necessary, with a mark that is unique to this server and
/// tool.
fn marked(prefix: &str, tool: &str, plain: &str) -> String {
    let mark = hex(&fingerprint(&format!("{prefix}\0{tool}"))[..MARK / 2]);
    // All characters are ASCII.
    let kept = &plain[..plain.len().min(NAME_BYTES - MARK - 1)];
    format!("{kept}_{mark}")
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

    fn names(prefix: &str, tools: &[&str], others: &[&str]) -> Vec<String> {
        let prefixes: Vec<String> = others.iter().map(|&other| other.to_owned()).collect();
        tool_names(prefix, tools, &prefixes)
    }

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(
            names("git", &["git_status", "show-it"], &["git", "time"]),
            ["mcp_git_git_status", "mcp_git_show-it"]
        );
        assert_eq!(
            names("a", &["get.sum", "wetter/größe"], &["a"]),
            ["mcp_a_get_sum", "mcp_a_wetter_gr__e"]
        );
    }

    #[test]
    fn no_two_tools_have_one_name() {
        let twins = names("a", &["x.y", "x_y", "x/y"], &["a"]);
        assert_eq!(twins[0], "mcp_a_x_y");
        assert!(twins[1].starts_with("mcp_a_x_y_") && twins[2].starts_with("mcp_a_x_y_"));
        assert_ne!(twins[1], twins[2]);

        let servers = ["a", "a_b"];
        assert_eq!(names("a_b", &["c"], &servers), ["mcp_a_b_c"]);
        let marked = &names("a", &["b_c", "d"], &servers);
        assert!(marked[0].starts_with("mcp_a_b_c_"), "{marked:?}");
        assert_eq!(marked[1], "mcp_a_d");
    }

    #[test]
    fn long_names_are_cut_and_marked() {
        let (one, two) = ("x".repeat(80) + "1", "x".repeat(80) + "2");
        let cut = names("server", &[&one, &two], &["server"]);
        for name in &cut {
            assert_eq!(name.len(), NAME_BYTES);
            assert!(name.starts_with("mcp_server_xxx"));
        }
        assert_ne!(cut[0], cut[1]);
        let long = "s".repeat(64);
        assert_eq!(names(&long, &["t"], &[&long])[0].len(), NAME_BYTES);
        assert_eq!(cut, names("server", &[&one, &two], &["server", "other"]));
    }
}
