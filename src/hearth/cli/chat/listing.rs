//! The list of conversations, as text.

use serde_json::Value;

use super::action::Action;
use base::calendar::readable_date;

/// The data of `list_conversations`, one conversation on each line.
pub fn conversations(data: &Value) -> Vec<Action> {
    let list = data["conversations"].as_array();
    let lines: Vec<String> = list
        .into_iter()
        .flatten()
        .map(|conversation| {
            let of = |name: &str| conversation[name].as_str().unwrap_or_default();
            let when = of("updated_at").get(..10).unwrap_or_default();
            let when = match when.parse::<jiff::civil::Date>() {
                Ok(date) => readable_date(date),
                Err(_) => when.to_owned(),
            };
            let seen = seen_by(&conversation["audience"]);
            format!("{}  {when}  {seen}{}", of("id"), short(of("title"), 60))
        })
        .collect();
    let text = if lines.is_empty() {
        "there are no conversations yet".to_owned()
    } else {
        lines.join("\n")
    };
    vec![Action::Note(text)]
}

/// Who sees a conversation besides its owner; empty where the server does not say.
fn seen_by(audience: &Value) -> String {
    let names = audience.as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    match audience {
        Value::String(word) => format!("{word:<9}  "),
        Value::Array(_) => format!("{:<9}  ", names.join(", ")),
        _ => String::new(),
    }
}

/// The beginning of a text, with a mark if it is truncated.
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… ({} more bytes)", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}
