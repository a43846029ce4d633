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
use base::language::Words;
use config::OFFLINE;
use intent::{Intent, intent_of};
use serde_json::json;
use store::ToolCall;

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
        let (text, calls) = match answer(request.messages, tools, request.words) {
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

fn answer(messages: &[ChatMessage<'_>], tools: &[ToolSpec], words: Words) -> Answer {
    let newest = messages
        .iter()
        .enumerate()
        .rev()
        .find_map(|(place, message)| match message {
            ChatMessage::User { content, .. } => Some((place, said(content))),
            _ => None,
        });
    let Some((place, text)) = newest else {
        let nobody = words.word("offline.nobody");
        return Answer::Say(format!("{nobody} {}", how_to_connect(words)));
    };
    let intent = intent_of(text, words);
    // Results of the newest calls; those of earlier rounds were answered by them.
    let results: Vec<_> = messages[place..]
        .iter()
        .rev()
        .map_while(|message| match message {
            ChatMessage::ToolResult {
                tool, content, ok, ..
            } => Some((tool.as_str(), &*content.text, *ok)),
            _ => None,
        })
        .collect();
    if !results.is_empty() {
        return after_results(&intent, &results, tools, words);
    }
    match intent {
        Intent::Greeting => Answer::Say(greeting(tools, words)),
        Intent::Time(zone) => {
            let arguments = zone.map_or(json!({}), |zone| json!({ "time_zone": zone }));
            call("current_time", arguments, tools, words)
        }
        Intent::Remember(content) => call_with("remember", "content", content, tools, words),
        Intent::Recall(query) => call_with("recall", "query", query, tools, words),
        Intent::Forget(what) if is_memory_id(what) => {
            call_with("forget", "memory_id", what, tools, words)
        }
        // `after_results` finds the memory in the result.
        Intent::Forget(query) => call_with("recall", "query", query, tools, words),
        Intent::Search(query) => call_with("search_conversations", "query", query, tools, words),
        Intent::Run(tool, arguments) => match tools.iter().find(|spec| spec.name == tool) {
            Some(_) => Answer::Call(tool.to_owned(), arguments.to_owned()),
            None => Answer::Say(not_offered(tool, tools, words)),
        },
        Intent::Repeat => Answer::Say(repeat(&messages[..place], words)),
        Intent::Other => Answer::Say(format!(
            "{}\n\n{} {}",
            words.say("offline.cannot", &[("text", &shorten(text))]),
            words.word("offline.rules"),
            how_to_connect(words)
        )),
    }
}

/// What somebody asks for. The message of a schedule, which has a note, ends with a paragraph
/// of the server's.
fn said<'t>(content: &'t Content<'_>) -> &'t str {
    let prompt = content.text.rsplit_once("\n\n").map(|(prompt, _)| prompt);
    prompt
        .filter(|_| !content.notes.is_empty())
        .unwrap_or(&content.text)
}

fn how_to_connect(words: Words) -> String {
    let fields = [
        ("names", "llamacpp, openai, anthropic"),
        ("keys", "`hearth config keys`"),
        ("doctor", "`hearth doctor`"),
    ];
    format!(
        "{}\n\n    hearth config set model NAME\n    hearth config set provider ollama\n\n({})",
        words.word("offline.connect"),
        words.say("offline.others", &fields)
    )
}

fn greeting(tools: &[ToolSpec], words: Words) -> String {
    let mut lines: Vec<String> = Vec::new();
    for tool in [
        "current_time",
        "remember",
        "recall",
        "forget",
        "search_conversations",
    ] {
        if tools.iter().any(|spec| spec.name == tool) {
            lines.push(words.word(&format!("offline.example.{tool}")));
        }
    }
    if !tools.is_empty() {
        lines.push(words.say("offline.run", &[("arguments", "{...}")]));
    }
    lines.push(words.word("offline.repeat"));
    let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
    let hello = words.word("offline.hello");
    format!("{hello}\n\n{lines}\n{}", how_to_connect(words))
}

fn call(tool: &str, arguments: Value, tools: &[ToolSpec], words: Words) -> Answer {
    if tools.iter().any(|spec| spec.name == tool) {
        Answer::Call(tool.to_owned(), arguments.to_string())
    } else {
        Answer::Say(not_offered(tool, tools, words))
    }
}

/// Calls `tool` with one argument, named as the tool itself names it.
fn call_with(
    tool: &str,
    usual_name: &str,
    value: &str,
    tools: &[ToolSpec],
    words: Words,
) -> Answer {
    let spec = tools.iter().find(|spec| spec.name == tool);
    let required = spec.and_then(|spec| spec.parameters.pointer("/required/0"));
    let name = required.and_then(Value::as_str).unwrap_or(usual_name);
    let mut arguments = Map::new();
    arguments.insert(name.to_owned(), value.into());
    call(tool, Value::Object(arguments), tools, words)
}

fn not_offered(tool: &str, tools: &[ToolSpec], words: Words) -> String {
    let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
    let key = match names[..] {
        [] => "offline.no_tools",
        _ => "offline.no_such_tool",
    };
    words.say(key, &[("tool", tool), ("tools", &names.join(", "))])
}

/// Turns results (newest first) into a reply, or makes the next call.
fn after_results(
    intent: &Intent<'_>,
    results: &[(&str, &str, bool)],
    tools: &[ToolSpec],
    words: Words,
) -> Answer {
    if let (Intent::Forget(what), [("recall", content, true)]) = (intent, results) {
        let id = content
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .find(|word| is_memory_id(word));
        return match id {
            Some(id) => call_with("forget", "memory_id", id, tools, words),
            None => Answer::Say(words.say("offline.unknown", &[("what", &shorten(what))])),
        };
    }
    let lines: Vec<String> = results
        .iter()
        .rev()
        .map(|(tool, content, ok)| {
            let key = match (*ok, *tool, content.trim()) {
                (false, ..) => "offline.failed",
                (true, _, "") => "offline.done",
                (true, "current_time", _) => "offline.time",
                (true, "remember", _) => "offline.remembered",
                (true, "recall", _) => "offline.recalled",
                (true, "forget", _) => "offline.forgotten",
                (true, "search_conversations", _) => "offline.found",
                (true, ..) => "offline.answered",
            };
            let content = match *tool {
                "current_time" => dated(content.trim(), words),
                _ => content.trim().to_owned(),
            };
            let found = format!("\n{content}");
            let fields = [("tool", *tool), ("answer", &content), ("found", &found)];
            words.say(key, &fields)
        })
        .collect();
    Answer::Say(lines.join("\n"))
}

/// What the clock says, with the names of the days and months in these words.
fn dated(answer: &str, words: Words) -> String {
    let days = (0..7).map(|day| format!("weekday.{day}"));
    let names = days.chain((1..=12).map(|month| format!("month.{month}")));
    names.fold(answer.to_owned(), |text, name| {
        text.replace(&Words::ENGLISH.word(&name), &words.word(&name))
    })
}

fn is_memory_id(word: &str) -> bool {
    word.parse::<base::ids::MemoryId>().is_ok()
}

fn repeat(earlier: &[ChatMessage<'_>], words: Words) -> String {
    let said = earlier.iter().rev().find_map(|message| match message {
        ChatMessage::User { content, .. } => Some(said(content)),
        _ => None,
    });
    match said {
        Some(said) => format!(
            "{} {}",
            words.say("offline.earlier", &[("text", &shorten(said))]),
            words.count("offline.messages", earlier.len())
        ),
        None => words.word("offline.first"),
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
