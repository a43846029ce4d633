//! A provider without key or network: it answers from rules, uses the tools, and
//! says plainly what it is. With it, people can try everything before they connect
//! a model.

mod intent;

use std::time::Instant;

use serde_json::{Map, Value};

use crate::model::{
    ChatMessage, Content, Heard, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec,
    make_call_id,
};
use config::OFFLINE;
use intent::{Intent, intent_of};
use serde_json::json;
use store::ToolCall;

const HOW_TO_CONNECT: &str = "To connect a real model, for example one that Ollama or llama.cpp \
serves on your network:\n\n\
\x20   hearth config set model NAME\n\
\x20   hearth config set provider ollama\n\n\
(Others: llamacpp, openai, anthropic, ...: `hearth config keys` lists them. Those on the internet \
need an api_key. `hearth doctor` says whether it works.)";
/// Most characters of a person's text that are repeated.
const REPEATED: usize = 200;

/// The provider that answers from rules.
pub struct Offline;

impl Provider for Offline {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        check(request)?;
        let tools = if request.may_call { request.tools } else { &[] };
        let (text, calls) = match answer(request.messages, tools) {
            Answer::Say(text) => (text, Vec::new()),
            Answer::Call(tool, arguments) => {
                let call = ToolCall {
                    id: make_call_id(),
                    provider_id: None,
                    tool,
                    arguments,
                    extra: None,
                };
                (String::new(), vec![call])
            }
        };
        if request.stream {
            for word in text.split_inclusive(' ') {
                check(request)?;
                on(Heard::Text(word));
            }
        }
        Ok(ModelReply {
            text,
            calls,
            // Not the configured one, which was not asked.
            model: Some(OFFLINE.to_owned()),
            ..ModelReply::default()
        })
    }
}

fn check(request: &ModelRequest<'_>) -> Result<(), ProviderError> {
    if request.cancel.is_cancelled() {
        Err(ProviderError::Cancelled)
    } else if Instant::now() >= request.deadline {
        Err(ProviderError::TimedOut)
    } else {
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Say(String),
    /// A tool and its arguments.
    Call(String, String),
}

fn answer(messages: &[ChatMessage], tools: &[ToolSpec]) -> Answer {
    let newest = messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(place, message)| match message {
            ChatMessage::User { content, .. } => Some((place, said(content))),
            _ => None,
        });
    let Some((place, text)) = newest else {
        return Answer::Say(format!("Nobody has said anything yet. {HOW_TO_CONNECT}"));
    };
    let intent = intent_of(text);
    // Results of the newest calls; those of earlier rounds were answered by them.
    let results: Vec<_> = messages[place..]
        .iter()
        .rev()
        .map_while(|message| match message {
            ChatMessage::ToolResult {
                tool, content, ok, ..
            } => Some((tool.as_str(), content.text.as_str(), *ok)),
            _ => None,
        })
        .collect();
    if !results.is_empty() {
        return after_results(&intent, &results, tools);
    }
    match intent {
        Intent::Greeting => Answer::Say(greeting(tools)),
        Intent::Time(zone) => {
            let arguments = zone.map_or(json!({}), |zone| json!({ "time_zone": zone }));
            call("current_time", arguments, tools)
        }
        Intent::Remember(content) => call_with("remember", "content", content, tools),
        Intent::Recall(query) => call_with("recall", "query", query, tools),
        Intent::Forget(what) if is_memory_id(what) => call_with("forget", "memory_id", what, tools),
        // `after_results` finds the memory in the result.
        Intent::Forget(query) => call_with("recall", "query", query, tools),
        Intent::Search(query) => call_with("search_conversations", "query", query, tools),
        Intent::Run(tool, arguments) => match tools.iter().find(|spec| spec.name == tool) {
            Some(_) => Answer::Call(tool.to_owned(), arguments.to_owned()),
            None => Answer::Say(not_offered(tool, tools)),
        },
        Intent::Repeat => Answer::Say(repeat(&messages[..place])),
        Intent::Other => Answer::Say(format!(
            "I am Hearth's offline stand-in and cannot think about: \"{}\"\n\n\
             I answer from rules: say \"hello\" to see what I can do. {HOW_TO_CONNECT}",
            shorten(text)
        )),
    }
}

/// What somebody asks for. The message of a schedule, which has a note, ends with a paragraph
/// of the server's.
fn said(content: &Content) -> &str {
    let prompt = content.text.rsplit_once("\n\n").map(|(prompt, _)| prompt);
    prompt
        .filter(|_| !content.notes.is_empty())
        .unwrap_or(&content.text)
}

fn greeting(tools: &[ToolSpec]) -> String {
    let rules = [
        ("current_time", "\"what time is it\""),
        ("remember", "\"remember that the bins go out on Monday\""),
        ("recall", "\"what do you remember about the bins\""),
        ("forget", "\"forget the bins\""),
        ("search_conversations", "\"search for bins\""),
    ];
    let mut text = "Hello! I am Hearth's offline stand-in: no language model, only a few rules. \
                    I understand:\n\n"
        .to_owned();
    for (tool, example) in rules {
        if tools.iter().any(|spec| spec.name == tool) {
            text.push_str(&format!("- {example}\n"));
        }
    }
    if !tools.is_empty() {
        text.push_str("- \"run TOOL {...}\", which calls a tool with these arguments\n");
    }
    text.push_str("- \"what did I say\"\n\n");
    text + HOW_TO_CONNECT
}

fn call(tool: &str, arguments: Value, tools: &[ToolSpec]) -> Answer {
    if tools.iter().any(|spec| spec.name == tool) {
        Answer::Call(tool.to_owned(), arguments.to_string())
    } else {
        Answer::Say(not_offered(tool, tools))
    }
}

/// Calls `tool` with one argument, named as the tool itself names it.
fn call_with(tool: &str, usual_name: &str, value: &str, tools: &[ToolSpec]) -> Answer {
    let spec = tools.iter().find(|spec| spec.name == tool);
    let required = spec.and_then(|spec| spec.parameters.pointer("/required/0"));
    let name = required.and_then(Value::as_str).unwrap_or(usual_name);
    let mut arguments = Map::new();
    arguments.insert(name.to_owned(), value.into());
    call(tool, Value::Object(arguments), tools)
}

fn not_offered(tool: &str, tools: &[ToolSpec]) -> String {
    let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
    if names.is_empty() {
        format!("That needs the tool {tool:?}, but no tools are available.")
    } else {
        format!(
            "That needs the tool {tool:?}, which is not available. Available tools: {}.",
            names.join(", ")
        )
    }
}

/// Turns results (newest first) into a reply, or makes the next call.
fn after_results(
    intent: &Intent<'_>,
    results: &[(&str, &str, bool)],
    tools: &[ToolSpec],
) -> Answer {
    if let (Intent::Forget(what), [("recall", content, true)]) = (intent, results) {
        let id = content
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .find(|word| is_memory_id(word));
        return match id {
            Some(id) => call_with("forget", "memory_id", id, tools),
            None => Answer::Say(format!("I remember nothing about \"{}\".", shorten(what))),
        };
    }
    let lines: Vec<String> = results
        .iter()
        .rev()
        .map(|(tool, content, ok)| match (*ok, *tool, content.trim()) {
            (false, tool, reason) => format!("The tool {tool} failed: {reason}"),
            (true, tool, "") => format!("The tool {tool} is done and returned nothing."),
            (true, "current_time", time) => format!("It is {time}."),
            (true, "remember", said) => format!("I will remember that. ({said})"),
            (true, "recall", found) => format!("This is what I remember:\n{found}"),
            (true, "forget", said) => format!("That is forgotten. ({said})"),
            (true, "search_conversations", found) => format!("This is what I found:\n{found}"),
            (true, tool, said) => format!("The tool {tool} answered: {said}"),
        })
        .collect();
    Answer::Say(lines.join("\n"))
}

fn is_memory_id(word: &str) -> bool {
    word.parse::<base::ids::MemoryId>().is_ok()
}

fn repeat(earlier: &[ChatMessage]) -> String {
    let said = earlier.iter().rev().find_map(|message| match message {
        ChatMessage::User { content, .. } => Some(said(content)),
        _ => None,
    });
    match said {
        Some(said) => format!(
            "Before this you said: \"{}\". This conversation has {} earlier messages.",
            shorten(said),
            earlier.len()
        ),
        None => "This is the first message of our conversation.".to_owned(),
    }
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
