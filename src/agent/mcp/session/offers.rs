//! What servers have beside tools, each behind one tool: resources, which are texts and
//! files, and prompts, which are texts with blanks (MCP specification, server features).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::call::{CallError, Outcome};
use super::super::remote_tool::{Kind, RemoteTool};
use super::{Scope, Session};
use crate::tools::output::shorten;

/// Most pages of one list.
const PAGES: usize = 50;
/// Most of them that a list shows, and characters of each one's description.
const LISTED: usize = 200;
const DESCRIPTION_CHARS: usize = 200;

/// The tools for what a server with these capabilities has beside `tools`.
pub(super) fn beside(capabilities: &Value, tools: &[RemoteTool]) -> Vec<RemoteTool> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let resources = (
        Kind::Resources,
        "resources",
        "read_resource",
        "Read a resource of this server by its URI; without one, list them.",
        json!({"type": "object", "properties": {"uri": text("From the list")}}),
    );
    let prompts = (
        Kind::Prompts,
        "prompts",
        "get_prompt",
        "Get a prompt of this server by its name; without one, list them.",
        json!({"type": "object", "properties": {
            "name": text("From the list"),
            "arguments": {"type": "object", "description": "What the list names"},
        }}),
    );
    let mut own = Vec::new();
    for (kind, capability, name, description, schema) in [resources, prompts] {
        // A server's own tool has its name for itself.
        let is_taken = tools.iter().any(|tool| tool.name == name);
        if capabilities.get(capability).is_some_and(Value::is_object) && !is_taken {
            own.push(RemoteTool {
                name: name.to_owned(),
                description: description.to_owned(),
                schema,
                kind,
                is_annotated: false,
                is_open: false,
                annotations: None,
            });
        }
    }
    own
}

impl Session {
    /// Reads a resource, or lists all.
    pub(super) fn resources(&self, arguments: &Map<String, Value>, scope: Scope<'_>) -> Outcome {
        let Some(uri) = given(arguments, "uri") else {
            let mut lines = self.list("resources/list", "resources", "uri", scope)?;
            // Not every server with resources has templates of them, too.
            let templates = "resources/templates/list";
            match self.list(templates, "resourceTemplates", "uriTemplate", scope) {
                Ok(more) => lines.extend(more),
                Err(CallError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
            return Ok(listed(lines));
        };
        let params = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        let result = self.request("resources/read", params, Some(uri), scope)?;
        let contents = result.get("contents").and_then(Value::as_array);
        let contents = contents.into_iter().flatten();
        let content: Vec<Value> = contents
            .map(|one| json!({"type": "resource", "resource": one}))
            .collect();
        Ok(json!({"content": content}))
    }

    /// Gets a prompt, or lists all.
    pub(super) fn prompts(&self, arguments: &Map<String, Value>, scope: Scope<'_>) -> Outcome {
        let Some(name) = given(arguments, "name") else {
            let lines = self.list("prompts/list", "prompts", "name", scope)?;
            return Ok(listed(lines));
        };
        let mut params = Map::from_iter([("name".to_owned(), Value::from(name))]);
        if let Some(blanks @ Value::Object(_)) = arguments.get("arguments") {
            params.insert("arguments".to_owned(), blanks.clone());
        }
        let result = self.request("prompts/get", params, Some(name), scope)?;
        let messages = result.get("messages").and_then(Value::as_array);
        let content: Vec<Value> = messages
            .into_iter()
            .flatten()
            .filter_map(|message| message.get("content").cloned())
            .collect();
        Ok(json!({"content": content}))
    }

    /// The items of a list, page by page, up to about so many.
    pub(super) fn pages(
        &self,
        method: &str,
        member: &str,
        most: usize,
        scope: Scope<'_>,
    ) -> Result<Vec<Value>, CallError> {
        let mut items = Vec::new();
        let mut cursors = HashSet::new();
        let mut params = Map::new();
        for _ in 0..PAGES {
            let mut page = self.request(method, params, None, scope)?;
            if let Some(Value::Array(more)) = page.get_mut(member).map(Value::take) {
                items.extend(more);
            }
            let next = page.get("nextCursor").and_then(Value::as_str);
            let next = next.filter(|next| cursors.insert((*next).to_owned()));
            let Some(next) = next.filter(|_| items.len() < most) else {
                break;
            };
            params = Map::from_iter([("cursor".to_owned(), Value::from(next))]);
        }
        items.truncate(most);
        Ok(items)
    }

    /// One line for each thing of a list: `NAME (ARGUMENT, ...): DESCRIPTION`.
    fn list(
        &self,
        method: &str,
        member: &str,
        key: &str,
        scope: Scope<'_>,
    ) -> Result<Vec<String>, CallError> {
        let items = self.pages(method, member, LISTED, scope)?;
        let line = |item: &Value| {
            let text = |name| item.get(name).and_then(Value::as_str);
            let blanks = item.get("arguments").and_then(Value::as_array);
            let blanks: Vec<&str> = blanks
                .into_iter()
                .flatten()
                .filter_map(|blank| blank.get("name").and_then(Value::as_str))
                .collect();
            let blanks = match blanks.is_empty() {
                true => String::new(),
                false => format!(" ({})", blanks.join(", ")),
            };
            let described = text("description").or(text("title"));
            let described = described.or(text("name").filter(|_| key != "name"));
            let described = match described {
                Some(text) => format!(": {}", shorten(text.trim(), DESCRIPTION_CHARS)),
                None => String::new(),
            };
            Some(format!("{}{blanks}{described}", text(key)?))
        };
        Ok(items.iter().filter_map(line).collect())
    }
}

fn given<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let text = arguments.get(name).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty())
}

/// Lines as the result of a call.
fn listed(lines: Vec<String>) -> Value {
    let text = match lines.is_empty() {
        true => "There are none.".to_owned(),
        false => lines.join("\n"),
    };
    json!({"content": [{"type": "text", "text": text}]})
}
