//! One message of a client's request, and what it holds beside text.

use serde::Deserialize;
use serde_json::{Value, json};

use base::error::{Error, Result};
use protocol::attachment;
use store::IncludedFile;

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
    pub fn place_of_call(&self, calls: &[ClientCall], taken: &[usize]) -> usize {
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
