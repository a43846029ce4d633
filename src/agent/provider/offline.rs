//! The provider that needs neither key nor network: it answers from rules, uses
//! the tools, and says plainly what it is. A new household can try everything
//! with it before it connects a model.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::{
    ChatMessage, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec, make_call_id,
};
use crate::store::ToolCall;

const HOW_TO_CONNECT: &str = "To connect a real model, for example one that Ollama or llama.cpp \
serves in the house:\n\n\
    hearth config set provider openai-compatible\n\
    hearth config set base_url http://127.0.0.1:11434/v1\n\
    hearth config set model NAME\n\n\
(llama.cpp listens on http://127.0.0.1:8080/v1. For OpenAI: provider openai, api_key and model.)";
/// Longest text of a person that is repeated, in characters.
const REPEATED: usize = 200;

/// The stand-in for a model.
pub struct Offline;

impl Provider for Offline {
    fn complete(
        &self,
        request: &ModelRequest<'_>,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ProviderError> {
        check(request)?;
        let (text, calls) = match answer(request.messages, request.tools) {
            Answer::Say(text) => (text, Vec::new()),
            Answer::Call(tool, arguments) => {
                let call = ToolCall {
                    id: make_call_id(),
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
                on_text(word);
            }
        }
        Ok(ModelReply {
            text,
            calls,
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

/// What a person asks for, as far as rules can tell.
#[derive(Debug, PartialEq)]
enum Wish<'a> {
    Greeting,
    Time(Option<&'a str>),
    Remember(&'a str),
    Recall(&'a str),
    Forget(&'a str),
    Search(&'a str),
    Run(&'a str, &'a str),
    Repeat,
    Other,
}

fn answer(messages: &[ChatMessage], tools: &[ToolSpec]) -> Answer {
    let newest = |(place, message)| match message {
        &ChatMessage::User { ref text } => Some((place, text)),
        _ => None,
    };
    let Some((place, text)) = messages.iter().enumerate().rev().find_map(newest) else {
        return Answer::Say(format!("Nobody has said anything yet. {HOW_TO_CONNECT}"));
    };
    let wish = wish(text);
    // Results of the newest calls; those of earlier rounds were answered by them.
    let results: Vec<_> = messages[place..]
        .iter()
        .rev()
        .map_while(|message| match message {
            ChatMessage::ToolResult {
                tool, content, ok, ..
            } => Some((tool.as_str(), content.as_str(), *ok)),
            _ => None,
        })
        .collect();
    if !results.is_empty() {
        return after_results(&wish, &results, tools);
    }
    match wish {
        Wish::Greeting => Answer::Say(greeting(tools)),
        Wish::Time(zone) => {
            let arguments = zone.map_or(json!({}), |zone| json!({ "time_zone": zone }));
            call("current_time", arguments, tools)
        }
        Wish::Remember(content) => call_with("remember", "content", content, tools),
        Wish::Recall(query) => call_with("recall", "query", query, tools),
        Wish::Forget(what) if is_memory_id(what) => call_with("forget", "memory_id", what, tools),
        // Which memory it is, `after_results` takes from what comes back.
        Wish::Forget(query) => call_with("recall", "query", query, tools),
        Wish::Search(query) => call_with("search_conversations", "query", query, tools),
        Wish::Run(tool, arguments) => match tools.iter().find(|spec| spec.name == tool) {
            Some(_) => Answer::Call(tool.to_owned(), arguments.to_owned()),
            None => Answer::Say(not_offered(tool, tools)),
        },
        Wish::Repeat => Answer::Say(repeat(&messages[..place])),
        Wish::Other => Answer::Say(format!(
            "I am Hearth's offline stand-in and cannot think about: \"{}\"\n\n\
             I answer from rules: say \"hello\" to see what I can do. {HOW_TO_CONNECT}",
            shorten(text)
        )),
    }
}

fn wish(text: &str) -> Wish<'_> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    let lower = lower.strip_prefix("please ").unwrap_or(&lower);
    // ASCII lower case keeps the length, so places in one are places in the other.
    let original = &text[text.len() - lower.len()..];
    let after = |beginnings: &[&str]| {
        let beginning = beginnings.iter().find(|word| lower.starts_with(**word))?;
        let rest = original[beginning.len()..].trim();
        Some(rest.trim_end_matches(['?', '!', '.']).trim_end()).filter(|rest| !rest.is_empty())
    };
    if let Some(rest) = lower.strip_prefix("run ") {
        let rest = original[original.len() - rest.len()..].trim();
        let (tool, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
        return Wish::Run(tool, arguments.trim());
    }
    if lower.contains("what did i say") || lower.contains("what did i just say") {
        return Wish::Repeat;
    }
    if let Some(query) = after(&[
        "what do you remember about ",
        "what do you know about ",
        "do you remember ",
        "recall ",
    ]) {
        return Wish::Recall(query);
    }
    if let Some(content) = after(&["remember that ", "remember: ", "remember "]) {
        return Wish::Remember(content);
    }
    if let Some(what) = after(&["forget that ", "forget about ", "forget "]) {
        return Wish::Forget(what);
    }
    if let Some(query) = after(&["search for ", "search "]) {
        return Wish::Search(query);
    }
    let asks_time = [
        "what time",
        "the time",
        "what date",
        "the date",
        "what day",
        "which day",
    ];
    if asks_time.iter().any(|words| lower.contains(words)) {
        let zone = original.split_whitespace().find(|word| word.contains('/'));
        return Wish::Time(zone.map(|zone| zone.trim_end_matches(['?', '!', '.'])));
    }
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
        .collect();
    let greets = ["hello", "hi", "hey", "help", "moin", "hallo"];
    let opens = words.first().is_some_and(|first| greets.contains(first));
    let asks = [
        "good morning",
        "good evening",
        "who are you",
        "what are you",
        "what can you do",
    ];
    if (opens && words.len() <= 4) || asks.iter().any(|phrase| lower.starts_with(phrase)) {
        return Wish::Greeting;
    }
    Wish::Other
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
        format!("That needs the tool {tool:?}, but I am not offered any tools.")
    } else {
        format!(
            "That needs the tool {tool:?}, which I am not offered. There are: {}.",
            names.join(", ")
        )
    }
}

/// Turns results (newest first) into a sentence, or goes on with what they were for.
fn after_results(wish: &Wish<'_>, results: &[(&str, &str, bool)], tools: &[ToolSpec]) -> Answer {
    if let (Wish::Forget(what), [("recall", content, true)]) = (wish, results) {
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
            (false, tool, reason) => format!("The tool {tool} did not run to its end: {reason}"),
            (true, tool, "") => format!("The tool {tool} is done and has nothing to say."),
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
    word.parse::<crate::ids::MemoryId>().is_ok()
}

fn repeat(earlier: &[ChatMessage]) -> String {
    let said = earlier.iter().rev().find_map(|message| match message {
        ChatMessage::User { text } => Some(text),
        _ => None,
    });
    match said {
        Some(said) => format!(
            "Before this you said: \"{}\" This conversation has {} earlier messages.",
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
mod tests {
    use super::*;

    fn spec(name: &str, required: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: match required {
                "" => json!({"type": "object", "properties": {}}),
                name => json!({"type": "object", "required": [name]}),
            },
        }
    }

    fn tools() -> Vec<ToolSpec> {
        [
            ("current_time", ""),
            ("remember", "content"),
            ("recall", "query"),
            ("forget", "memory_id"),
            ("search_conversations", "query"),
            ("light", "room"),
        ]
        .map(|(name, required)| spec(name, required))
        .to_vec()
    }

    fn user(text: &str) -> ChatMessage {
        ChatMessage::User {
            text: text.to_owned(),
        }
    }

    fn result(tool: &str, content: &str, ok: bool) -> ChatMessage {
        ChatMessage::ToolResult {
            call_id: "1".to_owned(),
            tool: tool.to_owned(),
            content: content.to_owned(),
            ok,
        }
    }

    #[test]
    fn wishes_become_calls() {
        for (said, tool, arguments) in [
            ("What time is it?", "current_time", json!({})),
            ("today's date? I mean the date", "current_time", json!({})),
            (
                "what time is it in Asia/Tokyo?",
                "current_time",
                json!({"time_zone": "Asia/Tokyo"}),
            ),
            (
                "Please remember that Mia is 7.",
                "remember",
                json!({"content": "Mia is 7"}),
            ),
            ("remember milk", "remember", json!({"content": "milk"})),
            (
                "What do you remember about Mia?",
                "recall",
                json!({"query": "Mia"}),
            ),
            ("recall Mia", "recall", json!({"query": "Mia"})),
            ("forget Mia", "recall", json!({"query": "Mia"})),
            (
                "forget mem_0000000000001",
                "forget",
                json!({"memory_id": "mem_0000000000001"}),
            ),
            (
                "search for Über uns",
                "search_conversations",
                json!({"query": "Über uns"}),
            ),
            (
                "run light {\"room\": \"hall\"}",
                "light",
                json!({"room": "hall"}),
            ),
            ("run current_time", "current_time", json!({})),
        ] {
            let Answer::Call(name, written) = answer(&[user(said)], &tools()) else {
                panic!("{said:?} is no call");
            };
            assert_eq!(name, tool, "{said}");
            assert_eq!(
                serde_json::from_str::<Value>(&written).unwrap(),
                arguments,
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_no_call_is_answered_plainly() {
        for (said, expected) in [
            ("Hello!", "hearth config set provider openai-compatible"),
            ("who are you?", "offline stand-in"),
            ("run nothing {}", "There are: current_time, remember"),
            (
                "Why is the sky blue?",
                "cannot think about: \"Why is the sky blue?\"",
            ),
            ("what did I say?", "the first message"),
            ("", "cannot think about"),
        ] {
            let Answer::Say(text) = answer(&[user(said)], &tools()) else {
                panic!("{said:?} is a call");
            };
            assert!(text.contains(expected), "{said:?}: {text}");
        }
        let Answer::Say(text) = answer(&[user("what time is it")], &[]) else {
            panic!("a tool was called that is not offered");
        };
        assert!(text.contains("not offered any tools"), "{text}");
    }

    #[test]
    fn earlier_messages_are_known() {
        let messages = [
            user("The cat is called Tom."),
            ChatMessage::Assistant {
                text: "Fine.".to_owned(),
                calls: Vec::new(),
                extra: None,
            },
            user("what did I say"),
        ];
        assert_eq!(
            answer(&messages, &[]),
            Answer::Say(
                "Before this you said: \"The cat is called Tom.\" \
                 This conversation has 2 earlier messages."
                    .to_owned()
            )
        );
    }

    #[test]
    fn results_become_sentences() {
        for (said, tool, content, ok, expected) in [
            (
                "what time is it",
                "current_time",
                "noon",
                true,
                "It is noon.",
            ),
            (
                "recall Mia",
                "recall",
                "- Mia is 7",
                true,
                "This is what I remember:\n- Mia is 7",
            ),
            (
                "run light {}",
                "light",
                "the owner refused it",
                false,
                "The tool light did not run to its end: the owner refused it",
            ),
            (
                "run light {}",
                "light",
                "on",
                true,
                "The tool light answered: on",
            ),
            (
                "forget Mia",
                "recall",
                "nothing found",
                true,
                "I remember nothing about \"Mia\".",
            ),
            (
                "forget Mia",
                "forget",
                "ok",
                true,
                "That is forgotten. (ok)",
            ),
        ] {
            assert_eq!(
                answer(&[user(said), result(tool, content, ok)], &tools()),
                Answer::Say(expected.to_owned())
            );
        }
    }

    #[test]
    fn what_is_to_be_forgotten_is_looked_up_first() {
        let found = result("recall", "[mem_0000000000001] Mia is 7", true);
        assert_eq!(
            answer(&[user("forget Mia"), found], &tools()),
            Answer::Call(
                "forget".to_owned(),
                "{\"memory_id\":\"mem_0000000000001\"}".to_owned()
            )
        );
    }
}
