//! The result of a call as text for the model (MCP specification, tools, tool
//! result).

use serde_json::Value;

use crate::tool::output::shorten;
use base::measure::byte_count;

/// Turns a result into text.
///
/// # Errors
/// The text of a result that the server marks as an error.
pub(super) fn text_of(result: &Value) -> Result<String, String> {
    let parts: Vec<String> = result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(part)
        .filter(|part| !part.is_empty())
        .collect();
    let mut text = parts.join("\n");
    if text.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|one| !one.is_null())
    {
        text = structured.to_string();
    }
    if text.trim().is_empty() {
        // Some model APIs refuse an empty result.
        text = "[no output]".to_owned();
    }
    match result.get("isError").and_then(Value::as_bool) {
        Some(true) => Err(text),
        _ => Ok(text),
    }
}

fn part(part: &Value) -> String {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            described(text("mimeType").unwrap_or(kind), text("data"))
        }
        Some("resource_link") => {
            let name = text("name").or(text("title")).unwrap_or_default();
            format!(
                "[{}]",
                joined(&["link", name, text("uri").unwrap_or_default()])
            )
        }
        Some("resource") => resource(part.get("resource").unwrap_or(&Value::Null)),
        Some(kind) => format!("[{}, not shown]", shorten(kind, 100)),
        None => String::new(),
    }
}

fn resource(resource: &Value) -> String {
    let member = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = member("uri").unwrap_or_default();
    match member("text") {
        Some(text) => format!("[{}]\n{text}", joined(&["resource", uri])),
        None => {
            let kind = member("mimeType").unwrap_or("application/octet-stream");
            let described = described(kind, member("blob"));
            format!("[{}] {described}", joined(&["resource", uri]))
        }
    }
}

/// What the model sees in place of data that is not text.
fn described(kind: &str, base64: Option<&str>) -> String {
    let data = base64.unwrap_or_default().trim_end_matches('=');
    let size = data
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .count()
        * 3
        / 4;
    format!("[{}, {}]", shorten(kind, 100), byte_count(size))
}

fn joined(words: &[&str]) -> String {
    let words: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn results_become_text() {
        let table = r#"
            {"content": [{"type": "text", "text": "3"}]} | 3
            {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]} | a\nb
            {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}} | 3
            {"content": [], "structuredContent": {"sum": 3}} | {"sum":3}
            {"structuredContent": {"sum": 3}} | {"sum":3}
            {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]} | [image/png, 8 bytes]
            {"content": [{"type": "audio", "data": "AAAA"}]} | [audio, 3 bytes]
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]} | [link a file:///a]
            {"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "one"}}]} | [resource x:1]\none
            {"content": [{"type": "resource", "resource": {"uri": "x:1", "mimeType": "application/gzip", "blob": "AAA="}}]} | [resource x:1] [application/gzip, 2 bytes]
            {"content": [{"type": "hologram"}]} | [hologram, not shown]
            {"content": [7, {"type": "text"}]} | [no output]
            {} | [no output]
            null | [no output]
        "#;
        for [result, text] in rows(table) {
            let (result, text): (Value, _) = (result.parse().unwrap(), text.replace("\\n", "\n"));
            assert_eq!(text_of(&result).as_ref(), Ok(&text), "{result}");
            if let Value::Object(mut failed) = result {
                failed.insert("isError".to_owned(), true.into());
                assert_eq!(text_of(&failed.into()), Err(text));
            }
        }
    }
}
