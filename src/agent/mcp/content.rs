//! The result of a call as text for the model, and the files in it (MCP specification,
//! tools, tool result).

use serde_json::Value;

use crate::tools::output::shorten;
use base::measure::byte_count;
use protocol::attachment::{MOST_ATTACHMENTS, decode};
use store::IncludedFile;

/// Turns a result into text, an `Err` if the server marks it as an error; with the
/// files that the text names by their numbers.
pub(super) fn read_result(result: &Value) -> (Result<String, String>, Vec<IncludedFile>) {
    let mut files = Vec::new();
    let content = result.get("content").and_then(Value::as_array);
    let parts = content.into_iter().flatten();
    let parts: Vec<String> = parts
        .map(|one| part(one, &mut files))
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
    let text = match result.get("isError").and_then(Value::as_bool) {
        Some(true) => Err(text),
        _ => Ok(text),
    };
    (text, files)
}

fn part(part: &Value, files: &mut Vec<IncludedFile>) -> String {
    let text = |name: &str| part.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            let name = match text("mimeType").and_then(|kind| kind.split_once('/')) {
                Some((_, ending)) => format!("{kind}.{ending}"),
                None => kind.to_owned(),
            };
            let declared = text("mimeType").unwrap_or(kind);
            described(declared, text("data"), &name, files)
        }
        Some("resource_link") => {
            let name = text("name").or(text("title")).unwrap_or_default();
            format!(
                "[{}]",
                joined(&["link", name, text("uri").unwrap_or_default()])
            )
        }
        Some("resource") => resource(part.get("resource").unwrap_or(&Value::Null), files),
        Some(kind) => format!("[{}, not shown]", shorten(kind, 100)),
        None => String::new(),
    }
}

fn resource(resource: &Value, files: &mut Vec<IncludedFile>) -> String {
    let member = |name: &str| resource.get(name).and_then(Value::as_str);
    let uri = member("uri").unwrap_or_default();
    match member("text") {
        Some(text) => format!("[{}]\n{text}", joined(&["resource", uri])),
        None => {
            let kind = member("mimeType").unwrap_or("application/octet-stream");
            let name = uri.rsplit('/').next().unwrap_or_default();
            let described = described(kind, member("blob"), name, files);
            format!("[{}] {described}", joined(&["resource", uri]))
        }
    }
}

/// What the model sees in place of data that is not text, which becomes one of the
/// files.
fn described(
    kind: &str,
    base64: Option<&str>,
    name: &str,
    files: &mut Vec<IncludedFile>,
) -> String {
    let mut base64 = base64.unwrap_or_default().to_owned();
    base64.retain(|letter| !letter.is_ascii_whitespace());
    let size = base64.trim_end_matches('=').len() * 3 / 4;
    let what = format!("{}, {}", shorten(kind, 100), byte_count(size));
    match decode(&base64) {
        Some(data) if files.len() < MOST_ATTACHMENTS && !data.is_empty() => {
            files.push(IncludedFile {
                name: name.to_owned(),
                declared_type: Some(kind.to_owned()),
                data,
            });
            format!("[file {}: {what}]", files.len())
        }
        _ => format!("[{what}]"),
    }
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
            {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]} | [file 1: image/png, 8 bytes]
            {"content": [{"type": "audio", "data": "AAAA"}]} | [file 1: audio, 3 bytes]
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]} | [link a file:///a]
            {"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "one"}}]} | [resource x:1]\none
            {"content": [{"type": "resource", "resource": {"uri": "x:1", "mimeType": "application/gzip", "blob": "AAA="}}]} | [resource x:1] [file 1: application/gzip, 2 bytes]
            {"content": [{"type": "image", "mimeType": "image/png", "data": "?"}]} | [image/png, 0 bytes]
            {"content": [{"type": "image", "data": "AAAA"}, {"type": "image", "data": "AA\nAA"}]} | [file 1: image, 3 bytes]\n[file 2: image, 3 bytes]
            {"content": [{"type": "hologram"}]} | [hologram, not shown]
            {"content": [7, {"type": "text"}]} | [no output]
            {} | [no output]
            null | [no output]
        "#;
        for [result, text] in rows(table) {
            let (result, text): (Value, _) = (result.parse().unwrap(), text.replace("\\n", "\n"));
            assert_eq!(read_result(&result).0.as_ref(), Ok(&text), "{result}");
            if let Value::Object(mut failed) = result {
                failed.insert("isError".to_owned(), true.into());
                assert_eq!(read_result(&failed.into()).0, Err(text));
            }
        }
    }
}
