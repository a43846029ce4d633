//! A client's messages, split into the message to answer and what was said before.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::service::programs::ClientResult;
use base::error::{Error, Result};
use protocol::attachment;
use protocol::command::check_message;
use store::{Exchange, IncludedFile, Step, ToolCall, open_calls};

/// Most bytes of a client's instructions to the model.
const INSTRUCTION_BYTES: usize = 256 * 1024;

/// One message of a request, as both interfaces have it.
#[derive(Debug, Deserialize)]
pub struct ClientMessage {
    role: String,
    /// A text, or its parts.
    #[serde(default)]
    content: Value,
    /// Ollama's field for pictures, in base64.
    images: Option<Vec<String>>,
    /// Calls of the client's own tools.
    pub tool_calls: Option<Vec<ClientCall>>,
    /// Of a result: the call.
    pub tool_call_id: Option<String>,
    /// Of a result: the tool, in Ollama's words and in OpenAI's older ones.
    #[serde(default, alias = "name")]
    pub tool_name: Option<String>,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A call of a client's own tool, as both interfaces have it.
#[derive(Clone, Debug, Deserialize)]
pub struct ClientCall {
    pub id: Option<String>,
    pub function: ClientFunction,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ClientFunction {
    pub name: String,
    /// A text in OpenAI's interface, an object in Ollama's.
    #[serde(default)]
    pub arguments: Value,
}

impl ClientMessage {
    /// A message of this role.
    pub fn new(role: &str, text: String) -> ClientMessage {
        ClientMessage {
            role: role.to_owned(),
            content: Value::String(text),
            images: None,
            tool_calls: None,
            tool_call_id: None,
            tool_name: None,
        }
    }

    /// The same with pictures, in base64.
    pub fn with_images(mut self, images: Option<Vec<String>>) -> ClientMessage {
        self.images = images;
        self
    }

    /// Who says it.
    ///
    /// # Errors
    /// `invalid_request` for an unknown role.
    pub fn role(&self) -> Result<Role> {
        Ok(match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => Role::Tool,
            role => {
                let shown: String = role.chars().take(50).collect();
                return Err(Error::invalid_request(format!(
                    "a message's role is system, user, assistant or tool, not {shown:?}"
                )));
            }
        })
    }

    /// Whether it is what Open WebUI asks beside a chat: for its title, its tags or what could
    /// be asked next.
    pub fn is_task(&self) -> bool {
        let text = self.content.as_str().unwrap_or_default();
        let has_history = ["### Chat History:", "<chat_history>"];
        self.role == "user"
            && text.trim_start().starts_with("### Task:")
            && has_history.iter().any(|mark| text.contains(mark))
    }

    /// Whether it names who says it, which has no effect.
    pub fn is_named(&self) -> bool {
        self.tool_name.is_some() && !matches!(self.role(), Ok(Role::Tool))
    }

    /// Of a result: the place of its call, of which those at `taken` have theirs. Ollama's
    /// clients name the tool alone, in any order.
    fn place_of_call(&self, calls: &[ClientCall], taken: &[usize]) -> usize {
        let is_its = |call: &ClientCall| match (&self.tool_call_id, &self.tool_name) {
            (Some(id), _) => call.id.as_ref() == Some(id),
            (None, Some(name)) => call.function.name == *name,
            (None, None) => true,
        };
        let is_open = |place: &usize| !taken.contains(place);
        let mut open = (0..calls.len()).filter(is_open);
        let named = open.clone().find(|place| is_its(&calls[*place]));
        let next = || (calls.len()..).find(is_open).unwrap_or(usize::MAX);
        named.or_else(|| open.next()).unwrap_or_else(next)
    }

    fn has_calls(&self) -> bool {
        self.role == "assistant"
            && self
                .tool_calls
                .as_ref()
                .is_some_and(|calls| !calls.is_empty())
    }

    /// Its text, with a mark for everything else that it holds, and that.
    ///
    /// # Errors
    /// `invalid_request` for a content that is neither a text nor its parts.
    pub fn read(self) -> Result<(String, Vec<Part>)> {
        let mut other = Vec::new();
        let mut text = match self.content {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Array(parts) => {
                let mut texts = Vec::with_capacity(parts.len());
                for part in parts {
                    match (part["type"].as_str(), part["text"].as_str()) {
                        (Some("text"), Some(text)) => texts.push(text.to_owned()),
                        (kind, _) => {
                            texts.push(mark(kind));
                            other.push(Part::Json(part));
                        }
                    }
                }
                texts.join("\n")
            }
            _ => return Err(not_understood("other JSON")),
        };
        for image in self.images.unwrap_or_default() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(IMAGE);
            other.push(Part::Image(image));
        }
        Ok((text, other))
    }
}

/// What stands in a text for a picture.
const IMAGE: &str = "[image]";

/// Something in a message beside its text.
pub enum Part {
    /// As OpenAI's interface has it.
    Json(Value),
    /// A picture in base64.
    Image(String),
}

/// What stands in a text for a part of this type.
fn mark(kind: Option<&str>) -> String {
    match kind {
        Some("image_url" | "input_image" | "image") => IMAGE.to_owned(),
        Some(kind @ ("file" | "input_file" | "input_audio")) => format!("[{kind}]"),
        _ => "[not understood]".to_owned(),
    }
}

impl Part {
    /// The file that it is.
    ///
    /// # Errors
    /// `invalid_request` for anything that is not given in base64.
    pub fn into_file(self) -> Result<IncludedFile> {
        let part = match self {
            Part::Image(base64) => return included("image", None, &base64),
            Part::Json(part) => part,
        };
        match part["type"].as_str() {
            Some("image_url") => {
                let url = &part["image_url"];
                let url = url["url"].as_str().or(url.as_str());
                let (kind, base64) = url.and_then(of_data_url).ok_or_else(|| {
                    Error::invalid_request(
                        "a picture must be a data: URL in base64: this server fetches none",
                    )
                })?;
                let kind_of_image = kind.split(';').next().unwrap_or_default();
                let ending = kind_of_image.strip_prefix("image/").ok_or_else(|| {
                    let kind: String = kind.chars().take(50).collect();
                    Error::invalid_request(format!(
                        "an \"image_url\" must be a picture, not {kind:?}: send other files as \
                         \"file\""
                    ))
                })?;
                included(&format!("image.{ending}"), Some(kind), base64)
            }
            Some("file") => {
                let file = &part["file"];
                let data = file["file_data"].as_str().ok_or_else(|| {
                    Error::invalid_request("a file must have its \"file_data\", in base64")
                })?;
                let name = file["filename"].as_str().unwrap_or("file");
                match of_data_url(data) {
                    Some((kind, base64)) => included(name, Some(kind), base64),
                    None => included(name, None, data),
                }
            }
            kind => Err(not_understood(kind.unwrap_or("a part of no type"))),
        }
    }
}

/// The media type and the base64 of a `data:` URL.
fn of_data_url(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, data))
}

fn included(name: &str, kind: Option<&str>, base64: &str) -> Result<IncludedFile> {
    let data = attachment::decode(base64.trim())
        .ok_or_else(|| Error::invalid_request(format!("{name:?} is not in base64")))?;
    if data.is_empty() {
        return Err(Error::invalid_request(format!("{name:?} is empty")));
    }
    Ok(IncludedFile {
        name: name.to_owned(),
        declared_type: kind.map(str::to_owned),
        data,
    })
}

fn not_understood(kind: &str) -> Error {
    let kind: String = kind.chars().take(50).collect();
    Error::invalid_request(format!(
        "only text, pictures and files are understood here, not {kind}"
    ))
}

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
    /// The message before, where only results of its calls follow it.
    pub left: Option<LeftCalls>,
}

/// Results of calls that the client has ended with, and the message that led to them.
#[derive(Debug, PartialEq)]
pub struct LeftCalls {
    pub message: String,
    pub results: Vec<ClientResult>,
    pub rounds: usize,
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
                        left = Some(LeftCalls {
                            message: message.clone(),
                            results: std::mem::take(&mut results),
                            rounds,
                        });
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
    if pending.is_empty() {
        return Err(Error::invalid_request(
            "the last message must be a user's, with text in it; to have a reply finished, ask \
             the model hearth-plain",
        ));
    }
    check_message(&pending)?;
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

/// The calls of one reply, which some clients send as a message each, in one message again.
pub fn joined(messages: Vec<ClientMessage>) -> Vec<ClientMessage> {
    let parts = |content: Value| match content {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(parts) => parts,
        other => vec![other],
    };
    let mut joined: Vec<ClientMessage> = Vec::with_capacity(messages.len());
    for message in messages {
        let last = joined.last_mut();
        match last.filter(|last| last.has_calls() && message.has_calls()) {
            Some(last) => {
                last.content = [parts(last.content.take()), parts(message.content)]
                    .concat()
                    .into();
                let calls = message.tool_calls.unwrap_or_default();
                last.tool_calls.get_or_insert_default().extend(calls);
            }
            None => joined.push(message),
        }
    }
    joined
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
