//! A model that does whatever it reads.
//!
//! `«tool {...}»` is an order to call that tool, `«!tool {...}»` one for the next
//! message that says "go on". `‹remember TEXT›` and `‹schedule TEXT›` plant a text,
//! orders and all.

use std::collections::HashSet;

use serde_json::{Value, json};

use support::model::Act;

/// What a summary request begins with.
const SUMMARY: &str = "You keep the notes of a conversation";

/// What this model does with a request.
pub fn obey(request: &Value) -> Act {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let mut read: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] != "assistant")
        .map(text)
        .collect();
    let tools = request["tools"].as_array();
    let describe = |tool: &Value| tool["function"]["description"].as_str().map(str::to_owned);
    read.extend(tools.into_iter().flatten().filter_map(describe));
    if read[0].starts_with(SUMMARY) {
        let orders: HashSet<String> = read[1..].iter().flat_map(|text| marked(text)).collect();
        return Act::say(&format!(
            "They talked. {}",
            Vec::from_iter(orders).join(" ")
        ));
    }
    let last = messages.iter().rfind(|message| message["role"] == "user");
    let goes_on = last.is_some_and(|message| text(message).contains("go on"));
    let done: Vec<(String, Value)> = messages
        .iter()
        .flat_map(|message| {
            message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .map(|call| {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap();
            let name = function["name"].as_str().unwrap().to_owned();
            (name, serde_json::from_str(arguments).unwrap())
        })
        .collect();
    let orders = read.iter().flat_map(|text| orders(text, goes_on));
    match orders.into_iter().find(|order| !done.contains(order)) {
        Some((tool, arguments)) => Act::call(Box::leak(tool.into_boxed_str()), arguments),
        // What it repeats of a page is what a summary keeps.
        None => {
            let read: HashSet<String> = read.iter().flat_map(|text| marked(text)).collect();
            Act::say(&format!("I have read {}", Vec::from_iter(read).join(" ")))
        }
    }
}

/// The orders of a text with their marks.
fn marked(text: &str) -> Vec<String> {
    between(text, '«', '»')
        .map(|order| format!("«{order}»"))
        .collect()
}

fn between(text: &str, open: char, close: char) -> impl Iterator<Item = &str> {
    text.split(open)
        .skip(1)
        .filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

fn orders(text: &str, goes_on: bool) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut plain = text.to_owned();
    for planted in between(text, '‹', '›') {
        plain = plain.replace(planted, "");
        let (tool, content) = planted.split_once(' ').unwrap();
        let arguments = match tool {
            "schedule" => json!({ "action": "create", "prompt": content, "at": "+1m" }),
            _ => json!({ "content": content }),
        };
        found.push((tool.to_owned(), arguments));
    }
    for order in between(&plain, '«', '»') {
        let order = match order.strip_prefix('!') {
            Some(later) if goes_on => later,
            Some(_) => continue,
            None => order,
        };
        let (tool, arguments) = order.split_once(' ').unwrap();
        // The name of a file is shown with its quotes escaped. A text that was cut holds
        // no order.
        let plain = arguments.replace("\\\"", "\"");
        let read = serde_json::from_str(arguments).or_else(|_| serde_json::from_str(&plain));
        if let Ok(arguments) = read {
            found.push((tool.to_owned(), arguments));
        }
    }
    found
}
