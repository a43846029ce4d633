//! A client's messages, split into the message to answer and what was said before.

use serde_json::Value;

use super::client_message::{ClientCall, ClientMessage, Part, Role, joined};
use crate::service::programs::{ClientResult, Results};
use base::error::{Error, Result};
use protocol::attachment;
use protocol::command::check_message;
use store::{Exchange, IncludedFile, Step, ToolCall, open_calls};

/// Most bytes of a client's instructions to the model.
const INSTRUCTION_BYTES: usize = 256 * 1024;

/// A client's messages.
#[derive(Debug, PartialEq)]
pub struct Transcript {
    /// System messages, joined.
    pub instructions: Option<String>,
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The message to answer. Several that have no answer yet are one.
    pub message: String,
    /// The calls of the client's own tools since, and their results.
    pub steps: Vec<Step>,
    /// The files that came with it. Those of earlier messages are only marked.
    pub files: Vec<IncludedFile>,
    /// The results of the client's own tools that came after it.
    pub results: Vec<ClientResult>,
    /// How often such tools were called since.
    pub rounds: usize,
    /// What was said beside these calls.
    pub beside: String,
    /// The message before, where only results of its calls follow it: its client has ended with
    /// them.
    pub left: Option<(String, Results)>,
}

/// Reads a client's messages. A reply to nothing (a greeting) is left out.
///
/// # Errors
/// `invalid_request` for an unknown role, for what the message to answer holds that is
/// neither text nor a file, and where no message of the user is last; HTTP 413 for one that
/// is too long.
pub fn read(messages: Vec<ClientMessage>) -> Result<Transcript> {
    let mut instructions = String::new();
    let mut history: Vec<Exchange> = Vec::new();
    let mut pending = String::new();
    let mut parts = Vec::new();
    // What stood beside calls whose results came.
    let mut beside = String::new();
    let mut calls: Vec<ClientCall> = Vec::new();
    let mut results: Vec<ClientResult> = Vec::new();
    // The places of their calls.
    let mut places: Vec<usize> = Vec::new();
    let (mut rounds, mut left, mut steps) = (0, None, Vec::new());
    for mut message in joined(messages) {
        match message.role()? {
            Role::System => append(&mut instructions, message.read()?.0),
            Role::User => {
                close_round(&mut steps);
                left = None;
                if !steps.is_empty() {
                    let message = std::mem::take(&mut pending);
                    if !message.is_empty() {
                        parts.clear();
                        let returned = std::mem::take(&mut results);
                        left = Some((message.clone(), Results { returned, rounds }));
                        history.push(Exchange {
                            message,
                            steps: std::mem::take(&mut steps),
                            reply: std::mem::take(&mut beside),
                        });
                    }
                }
                (steps, beside) = (Vec::new(), String::new());
                results.clear();
                rounds = 0;
                let (text, more) = message.read()?;
                append(&mut pending, text);
                parts.extend(more);
            }
            Role::Assistant => {
                close_round(&mut steps);
                results.clear();
                // What came after the message has taken them.
                left = None;
                if let Some(more) = message.tool_calls.take().filter(|calls| !calls.is_empty()) {
                    let text = message.read()?.0.trim().to_owned();
                    let calls_of = more.iter().cloned().enumerate().map(called_tool);
                    steps.push(Step::Reply {
                        text: text.clone(),
                        calls: calls_of.collect(),
                        result_chars: None,
                        extra: None,
                    });
                    calls = more;
                    rounds += 1;
                    append(&mut beside, text);
                    continue;
                }
                rounds = 0;
                let steps = std::mem::take(&mut steps);
                let mut reply = std::mem::take(&mut beside);
                append(&mut reply, message.read()?.0);
                if reply.trim().is_empty() && steps.is_empty() {
                    continue;
                }
                parts.clear();
                if !pending.is_empty() {
                    let message = std::mem::take(&mut pending);
                    history.push(Exchange {
                        message,
                        steps,
                        reply,
                    });
                } else if let Some(last) = history.last_mut() {
                    last.steps.extend(steps);
                    append(&mut last.reply, reply);
                }
            }
            Role::Tool => {
                places.truncate(results.len());
                let place = message.place_of_call(&calls, &places);
                let call = calls.get(place);
                let result = ClientResult {
                    id: (message.tool_call_id.take())
                        .or_else(|| call.and_then(|call| call.id.clone())),
                    tool: call
                        .map(|call| call.function.name.clone())
                        .or(message.tool_name.take()),
                    content: message.read()?.0,
                };
                add_result(&mut steps, place, &result);
                let at = places.partition_point(|one| *one < place);
                places.insert(at, place);
                results.insert(at, result);
            }
        }
    }
    close_round(&mut steps);
    // Results alone are of a turn that waits for them.
    if results.is_empty() || !steps.is_empty() {
        if pending.is_empty() {
            return Err(Error::invalid_request(
                "the last message must be a user's, with text in it; to have a reply finished, ask \
                 the model hearth-plain",
            ));
        }
        check_message(&pending)?;
    }
    attachment::check_count(parts.len())?;
    let files = parts.into_iter().map(Part::into_file);
    let files = files.collect::<Result<Vec<IncludedFile>>>()?;
    if instructions.len() > INSTRUCTION_BYTES {
        return Err(Error::too_large(format!(
            "the system messages have {} bytes; at most {INSTRUCTION_BYTES} are allowed",
            instructions.len()
        )));
    }
    Ok(Transcript {
        instructions: Some(instructions).filter(|text| !text.is_empty()),
        history,
        message: pending,
        steps,
        files,
        results,
        rounds,
        beside,
        left,
    })
}

/// A call of a client's own tool, the one at this place among those of a reply.
pub fn called_tool((place, call): (usize, ClientCall)) -> ToolCall {
    ToolCall {
        id: call.id.unwrap_or_else(|| format!("call{place:05}")),
        provider_id: None,
        tool: call.function.name,
        arguments: match call.function.arguments {
            Value::String(text) => text,
            arguments => arguments.to_string(),
        },
        extra: None,
    }
}

/// Adds the result that came at this place among those of a reply's calls. One without its call
/// is none.
fn add_result(steps: &mut Vec<Step>, place: usize, result: &ClientResult) {
    let open = open_calls(steps);
    let usual = format!("call{place:05}");
    let id = result.id.as_ref().unwrap_or(&usual);
    if let Some(call) = open.into_iter().find(|call| call.id == *id) {
        steps.push(step_of_result(call.id, true, &result.content));
    }
}

/// Every call has a result in what the model is shown.
fn close_round(steps: &mut Vec<Step>) {
    for call in open_calls(steps) {
        steps.push(step_of_result(call.id, false, "the program gave no result"));
    }
}

fn step_of_result(call_id: String, ok: bool, content: &str) -> Step {
    Step::Result {
        call_id,
        ok,
        content: content.to_owned(),
        outside: true,
        private: false,
        memories: Vec::new(),
        files: Vec::new(),
        page: None,
    }
}

/// Adds a text as a paragraph of its own; white space alone is none.
pub fn append(text: &mut String, more: String) {
    if more.trim().is_empty() {
        return;
    }
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str("\n\n");
        text.push_str(&more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use base::testing::rows;

    fn read_json(messages: Value) -> Result<Transcript> {
        read(serde_json::from_value(messages).unwrap())
    }

    fn exchange(message: &str, reply: &str) -> Exchange {
        Exchange {
            message: message.to_owned(),
            steps: Vec::new(),
            reply: reply.to_owned(),
        }
    }

    fn call(id: &str, tool: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            provider_id: None,
            tool: tool.to_owned(),
            arguments: "null".to_owned(),
            extra: None,
        }
    }

    fn reply(text: &str, calls: Vec<ToolCall>) -> Step {
        Step::Reply {
            text: text.to_owned(),
            calls,
            result_chars: None,
            extra: None,
        }
    }

    #[test]
    fn a_history_becomes_exchanges() {
        let lights = vec![
            reply("", vec![call("1", "light")]),
            step_of_result("1".to_owned(), true, "on"),
        ];
        let transcript = read_json(json!([
            { "role": "system", "content": "Be brief." },
            { "role": "assistant", "content": "Welcome!" },
            { "role": "user", "content": "a" },
            { "role": "user", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": "c" }] },
            { "role": "assistant", "content": null, "tool_calls": [{ "id": "1", "function": { "name": "light" } }] },
            { "role": "tool", "content": "on", "tool_call_id": "1" },
            { "role": "assistant", "content": "d" },
            { "role": "assistant", "content": "e" },
            { "role": "developer", "content": "No lists." },
            { "role": "user", "content": "f" },
        ]));
        assert_eq!(
            transcript.unwrap(),
            Transcript {
                instructions: Some("Be brief.\n\nNo lists.".to_owned()),
                history: vec![Exchange {
                    steps: lights.clone(),
                    ..exchange("a\n\nb\nc", "d\n\ne")
                }],
                message: "f".to_owned(),
                steps: Vec::new(),
                files: Vec::new(),
                results: Vec::new(),
                rounds: 0,
                beside: String::new(),
                left: None,
            }
        );
        // Without a reply, and with a result that is missing.
        let said = read_json(json!([
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "1", "function": { "name": "light" } }] },
            { "role": "tool", "content": "on", "tool_call_id": "1" },
            { "role": "user", "content": "b" },
            { "role": "assistant", "content": "Wait.", "tool_calls": [
                { "function": { "name": "door", "arguments": { "a": 1 } } },
                { "function": { "name": "window" } }] },
            { "role": "tool", "content": "shut" },
        ]))
        .unwrap();
        let first = Exchange {
            steps: lights,
            ..exchange("a", "")
        };
        assert_eq!((said.history, &*said.message), (vec![first], "b"));
        assert_eq!((said.left, said.rounds), (None, 1));
        let call = |place: usize, tool: &str, arguments: &str| ToolCall {
            id: format!("call{place:05}"),
            arguments: arguments.to_owned(),
            ..call("", tool)
        };
        let steps = vec![
            reply(
                "Wait.",
                vec![call(0, "door", "{\"a\":1}"), call(1, "window", "null")],
            ),
            step_of_result("call00000".to_owned(), true, "shut"),
            step_of_result("call00001".to_owned(), false, "the program gave no result"),
        ];
        assert_eq!(said.steps, steps);
    }

    #[test]
    fn results_find_their_calls_among_those_of_one_reply() {
        let [a, b] =
            ["door", "window"].map(|name| json!([{ "id": name, "function": { "name": name } }]));
        let unnamed = |name: &str| json!({ "function": { "name": name } });
        let user = json!({ "role": "user", "content": "shut?" });
        for messages in [
            // Each call is a message of its own.
            json!([user,
                { "role": "assistant", "content": "Hm.", "tool_calls": a },
                { "role": "assistant", "tool_calls": b },
                { "role": "tool", "tool_call_id": "window", "content": "of window" },
                { "role": "tool", "tool_call_id": "door", "content": "of door" }]),
            // Nothing has an id, and the results come in another order.
            json!([user,
                { "role": "assistant", "content": "Hm.",
                  "tool_calls": [unnamed("door"), unnamed("window")] },
                { "role": "tool", "tool_name": "window", "content": "of window" },
                { "role": "tool", "tool_name": "door", "content": "of door" }]),
        ] {
            let read = read_json(messages.clone()).unwrap();
            let of = |result: &ClientResult| {
                let tool = result.tool.clone().unwrap();
                (tool, result.content.clone())
            };
            let results: Vec<_> = read.results.iter().map(of).collect();
            let expected = ["door", "window"].map(|one| (one.to_owned(), format!("of {one}")));
            assert_eq!(results, expected, "{messages}");
            assert_eq!((read.rounds, &*read.beside), (1, "Hm."));
            let is_good = |step: &Step| !matches!(step, Step::Result { ok: false, .. });
            assert!(read.steps.iter().all(is_good), "{:?}", read.steps);
        }
    }

    #[test]
    fn files_of_the_newest_message_are_read_and_earlier_ones_are_marked() {
        let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
        let pdf = json!({ "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk=" });
        let transcript = read_json(json!([
            { "role": "user", "content": [
                { "type": "text", "text": "this?" }, image("https://x/"), { "type": "odd" } ] },
            { "role": "assistant", "content": "A cat." },
            { "role": "user", "content": "that?", "images": ["aGk="] },
            { "role": "user", "content": [
                image("data:image/png;base64,aGk="), { "type": "file", "file": pdf } ] },
        ]))
        .unwrap();
        let history = vec![exchange("this?\n[image]\n[not understood]", "A cat.")];
        assert_eq!(transcript.history, history);
        assert_eq!(transcript.message, "that?\n[image]\n\n[image]\n[file]");
        let file = |name: &str, kind: Option<&str>| IncludedFile {
            name: name.to_owned(),
            declared_type: kind.map(str::to_owned),
            data: b"hi".to_vec(),
        };
        let files = [
            file("image", None),
            file("image.png", Some("image/png")),
            file("a.pdf", Some("application/pdf")),
        ];
        assert_eq!(transcript.files, files);
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let table = r#"
            []                                                                                  | 400 | must be a user's
            [{"role": "system", "content": "x"}]                                                | 400 | must be a user's
            [{"role": "user", "content": " "}]                                                  | 400 | must be a user's
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]           | 400 | must be a user's
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/"}}]}] | 400 | must be a data: URL
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}] | 400 | "image.png" is empty
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:text/html;base64,aGk="}}]}] | 400 | not "text/html"
            [{"role": "user", "content": [{"type": "file", "file": {"file_id": "1"}}]}]         | 400 | "file_data"
            [{"role": "user", "content": [{"type": "input_audio"}]}]                            | 400 | not input_audio
            [{"role": "user", "content": "what is this?", "images": ["?"]}]                     | 400 | not in base64
            [{"role": "robot", "content": "x"}]                                                 | 400 | not "robot"
            [{"role": "user", "content": "LONG"}]                                               | 413 | 262145 bytes
        "#;
        for [messages, status, says] in rows(table) {
            let messages = messages.replace("LONG", &"x".repeat(256 * 1024 + 1));
            let messages: Value = messages.parse().unwrap();
            let error = read_json(messages).unwrap_err();
            assert_eq!(error.status().to_string(), status, "{error}");
            assert!(error.message().contains(says), "{error}");
        }
    }
}
