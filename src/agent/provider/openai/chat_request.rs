//! Writes a request of the Chat Completions API.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use crate::model::{ChatMessage, ToolSpec};
use crate::provider::dialect::RequestContext;
use crate::provider::extra::{own_members, sendable};
use crate::provider::plain_schema::parameters_of;
use base::secret::{base32_lower, sha256};
use serde_json::json;
use store::ToolCall;

/// The body of a request. What stays the same in a conversation comes before what
/// grows, so that a server can reuse its cache of the beginning.
pub struct Body<'a>(pub &'a RequestContext<'a>);

impl Body<'_> {
    /// As JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        let request = self.0.request;
        let text: usize = request
            .messages
            .iter()
            .map(|message| match message {
                ChatMessage::User { text } | ChatMessage::Assistant { text, .. } => text.len(),
                ChatMessage::ToolResult { content, .. } => content.len(),
            })
            .sum();
        let mut bytes = Vec::with_capacity(4096 + request.system.len() + text);
        serde_json::to_writer(&mut bytes, self)
            .expect("strings, numbers and JSON values can be written to memory");
        bytes
    }

    fn members<'v>(&self, extra: Option<&'v Value>) -> Option<&'v Map<String, Value>> {
        extra
            .filter(|_| !self.0.capabilities.no_extra)
            .and_then(|extra| own_members(extra, self.0.origin))
    }

    /// A call's id in a form that the server takes.
    fn call_id<'v>(&self, id: &'v str) -> Cow<'v, str> {
        let is_short = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_short || !self.0.quirks.short_call_ids {
            return id.into();
        }
        let mut short = base32_lower(&sha256(id.as_bytes())[..6]);
        short.truncate(9);
        short.into()
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (request, capabilities) = (self.0.request, self.0.capabilities);
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", request.model)?;
        if request.stream {
            body.serialize_entry("stream", &true)?;
            if !capabilities.no_stream_options {
                body.serialize_entry("stream_options", &json!({"include_usage": true}))?;
            }
        }
        if let Some(temperature) = request.temperature.filter(|_| !capabilities.no_temperature) {
            body.serialize_entry("temperature", &temperature)?;
        }
        if let Some(effort) = self.0.effort() {
            body.serialize_entry("reasoning_effort", effort)?;
        }
        if let Some(max_tokens) = request.max_tokens {
            body.serialize_entry(capabilities.limit_name(), &max_tokens)?;
        }
        if !request.tools.is_empty() && !capabilities.no_tools {
            body.serialize_entry("tools", &Tools(request.tools, capabilities.plain_schemas))?;
        }
        body.serialize_entry("messages", &Messages(self))?;
        body.end()
    }
}

/// Tools, and whether their schemas must be plain.
struct Tools<'a>(&'a [ToolSpec], bool);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| Tool(tool, self.1)))
    }
}

struct Tool<'a>(&'a ToolSpec, bool);

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
        }
        let ToolSpec {
            name,
            description,
            parameters,
        } = self.0;
        let parameters = &*parameters_of(parameters, self.1);
        let mut tool = serializer.serialize_map(Some(2))?;
        tool.serialize_entry("type", "function")?;
        tool.serialize_entry(
            "function",
            &Function {
                name,
                description,
                parameters,
            },
        )?;
        tool.end()
    }
}

struct Messages<'a>(&'a Body<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let body = self.0;
        let mut messages = serializer.serialize_seq(None)?;
        let request = body.0.request;
        if !request.system.is_empty() {
            messages.serialize_element(&TextMessage {
                role: "system",
                content: request.system,
            })?;
        }
        for message in request.messages {
            match message {
                ChatMessage::User { text } => messages.serialize_element(&TextMessage {
                    role: "user",
                    content: text,
                })?,
                ChatMessage::Assistant { text, calls, extra } => {
                    messages.serialize_element(&Assistant {
                        text,
                        calls,
                        extra: body.members(extra.as_ref()),
                        body,
                    })?;
                }
                ChatMessage::ToolResult {
                    call_id,
                    content,
                    ok,
                    ..
                } => messages.serialize_element(&ToolMessage {
                    role: "tool",
                    tool_call_id: &body.call_id(call_id),
                    content: ResultText { content, ok: *ok },
                })?,
            }
        }
        messages.end()
    }
}

#[derive(serde::Serialize)]
struct TextMessage<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(serde::Serialize)]
struct ToolMessage<'a> {
    role: &'a str,
    tool_call_id: &'a str,
    content: ResultText<'a>,
}

/// This API can mark a failed call only in the text.
struct ResultText<'a> {
    content: &'a str,
    ok: bool,
}

impl Serialize for ResultText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.ok {
            serializer.serialize_str(self.content)
        } else {
            serializer.collect_str(&format_args!("Error: {}", self.content))
        }
    }
}

struct Assistant<'a> {
    text: &'a str,
    calls: &'a [ToolCall],
    extra: Option<&'a Map<String, Value>>,
    body: &'a Body<'a>,
}

impl Serialize for Assistant<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", "assistant")?;
        // Empty, not null or absent: the one form that all servers take.
        message.serialize_entry("content", self.text)?;
        if !self.calls.is_empty() {
            let calls: Vec<_> = self
                .calls
                .iter()
                .map(|call| Call(call, self.body))
                .collect();
            message.serialize_entry("tool_calls", &calls)?;
        }
        for (name, value) in self.extra.into_iter().flatten() {
            message.serialize_entry(name, value)?;
        }
        message.end()
    }
}

struct Call<'a>(&'a ToolCall, &'a Body<'a>);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: &'a str,
        }
        let Call(call, body) = self;
        let arguments = sendable(&call.arguments);
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("id", &body.call_id(&call.id))?;
        entry.serialize_entry("type", "function")?;
        entry.serialize_entry(
            "function",
            &Function {
                name: &call.tool,
                arguments: &arguments,
            },
        )?;
        for (name, value) in body.members(call.extra.as_ref()).into_iter().flatten() {
            entry.serialize_entry(name, value)?;
        }
        entry.end()
    }
}
