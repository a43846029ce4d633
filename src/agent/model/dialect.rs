//! What differs between the kinds of API.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::files::{FROM_RESULTS, Files, Media};
use super::plain_schema::parameters_of;
use super::profile::{CacheMark, Profile, Thoughts};
use super::reply_reader::ReplyParser;
use super::server_capabilities::ServerCapabilities;
use super::tool_call_builder::{own_members, result_text};
use crate::model::client_options::{Format, MustCall, SupportedOptions};
use crate::model::{ChatMessage, ModelRequest, ToolSpec};
use base::secret::Secret;
use store::ToolCall;

/// Bytes that are set aside for the rest of a request with files.
const AROUND_FILES: usize = 1024 * 1024;

/// Settings that shape every request to a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Tokens of the model's context window.
    pub context_tokens: Option<u32>,
    /// How long Ollama keeps the model in memory after an answer.
    pub keep_alive_minutes: Option<u32>,
    /// How hard the model thinks.
    pub reasoning_effort: Option<&'static str>,
    /// How long its first word may take where another model can be asked.
    pub first_token: Option<Duration>,
}

/// What a request is written from.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    /// What to ask.
    pub request: &'a ModelRequest<'a>,
    /// Where the server is.
    pub base_url: &'a str,
    /// See [`Dialect::origin_path`].
    pub origin_path: &'static str,
    /// What the server accepts, as far as its errors have shown.
    pub capabilities: ServerCapabilities,
    /// What the configuration sets.
    pub options: Options,
    /// What was known of the model before.
    pub profile: Profile,
    /// What is shown of the files of messages.
    pub files: &'a Files<'a>,
}

impl<'a> RequestContext<'a> {
    /// Whose extra members go back with the request; see
    /// [`wrap_members`](super::tool_call_builder::wrap_members).
    pub fn origin(&self) -> String {
        format!("{}{}", self.base_url, self.origin_path)
    }

    /// The `reasoning_effort` to ask for, in the words of OpenAI's API; `None`
    /// leaves it out.
    pub fn effort(&self) -> Option<&'static str> {
        if self.request.purpose.is_aside() && !self.capabilities.no_effort {
            // The lowest that every model that thinks takes, where it would think.
            return match self.options.reasoning_effort {
                Some(low @ ("none" | "minimal" | "low")) => Some(low),
                Some(_) => Some("low"),
                None => self.profile.thinks.then_some("low"),
            };
        }
        if self.capabilities.effort_none && !self.request.tools.is_empty() {
            return Some("none");
        }
        self.options
            .reasoning_effort
            .filter(|_| !self.capabilities.no_effort)
    }

    /// Whether the model is to sum up what it thinks: a stream passes that on.
    pub fn wants_summary(&self) -> bool {
        self.capabilities.needs_responses
            && self.request.stream
            && !self.capabilities.no_summaries
            && self.capabilities.thoughts != Thoughts::Nothing
            && self.effort() != Some("none")
    }

    /// How a cache of the beginnings of requests is asked for.
    pub fn cache(&self) -> Option<CacheMark> {
        let is_wanted = !self.capabilities.no_cache_marks && !self.request.purpose.is_aside();
        self.profile.cache.filter(|_| is_wanted)
    }

    /// The name under which OpenAI's cache keeps the beginning of the request.
    pub fn cache_key(&self) -> Option<String> {
        let is_named = self.cache() == Some(CacheMark::Key);
        let conversation = self.request.conversation.filter(|_| is_named)?;
        Some(conversation.to_string())
    }

    /// The temperature to ask for.
    pub fn temperature(&self) -> Option<f64> {
        let temperature = self.request.temperature;
        temperature.filter(|_| !self.capabilities.no_temperature)
    }

    /// The value of `tool_choice` in OpenAI's words; `tool` writes the one that must be
    /// called.
    pub fn tool_choice(&self, tool: impl Fn(&str) -> Value) -> Option<Value> {
        if !self.request.may_call {
            return Some("none".into());
        }
        match self.request.client?.must_call.as_ref()? {
            MustCall::Any => Some("required".into()),
            MustCall::Tool(name) => Some(tool(name)),
        }
    }

    /// The tools to describe, each as `describe` gives it from the tool and the schema
    /// of its arguments; `None` if there are none.
    pub fn tools<T>(&self, describe: impl Fn(&'a ToolSpec, Cow<'a, Value>) -> T) -> Option<Vec<T>> {
        let tools = self.request.tools;
        let must_be_plain = self.capabilities.plain_schemas;
        let describe =
            |tool: &'a ToolSpec| describe(tool, parameters_of(&tool.parameters, must_be_plain));
        let is_usable = self.request.may_call || !self.capabilities.no_tool_choice;
        (!tools.is_empty() && !self.capabilities.no_tools && is_usable)
            .then(|| tools.iter().map(describe).collect())
    }

    /// The form of the reply in OpenAI's words: its type, and what is said of its schema.
    pub fn reply_format(&self) -> Option<(&'static str, Map<String, Value>)> {
        let mut said = Map::new();
        let Format::Schema {
            name,
            description,
            schema,
            is_strict,
        } = self.request.client?.format.as_ref()?
        else {
            return Some(("json_object", said));
        };
        said.insert("name".to_owned(), name.as_str().into());
        said.insert("schema".to_owned(), schema.clone());
        let description = description.as_ref();
        said.extend(description.map(|text| ("description".to_owned(), text.as_str().into())));
        let is_strict = *is_strict && !self.capabilities.no_strict;
        said.extend(is_strict.then(|| ("strict".to_owned(), true.into())));
        Some(("json_schema", said))
    }

    /// All messages, where those with the results of tools hold only text: the media that tools
    /// bring follow in a message of their own. The functions write a person's message with its
    /// media, a reply of the model, and the result of the call with this id and tool.
    pub fn messages(
        &self,
        with_media: impl Fn(&str, Vec<Media>) -> Value,
        reply: impl Fn(&str, &[ToolCall], Option<&Value>) -> Value,
        result: impl Fn(&str, &str, &str) -> Value,
    ) -> Vec<RequestMessage<'a>> {
        let user = |text: Cow<'a, str>, media: Vec<Media>| match media.is_empty() {
            true => RequestMessage::text("user", text),
            false => RequestMessage::Whole(with_media(&text, media)),
        };
        let takes_thoughts = matches!(self.capabilities.thoughts, Thoughts::WithEveryReply(_));
        let mut messages = Vec::with_capacity(self.request.messages.len() + 1);
        let mut system = self.request.system;
        if !system.is_empty() && !self.capabilities.no_system_role {
            messages.push(RequestMessage::text("system", std::mem::take(&mut system)));
        }
        let mut of_results = Vec::new();
        for message in self.request.messages {
            if !of_results.is_empty() && !matches!(message, ChatMessage::ToolResult { .. }) {
                messages.push(user(FROM_RESULTS.into(), std::mem::take(&mut of_results)));
            }
            messages.push(match message {
                ChatMessage::User { .. } => {
                    let (mut text, media) = self.files.with(message);
                    if !system.is_empty() {
                        // Of models that know no other place for it.
                        text = format!("{}\n\n{text}", std::mem::take(&mut system)).into();
                    }
                    user(text, media)
                }
                ChatMessage::Assistant { text, calls, extra }
                    if calls.is_empty() && extra.is_none() && !takes_thoughts =>
                {
                    RequestMessage::text("assistant", &**text)
                }
                ChatMessage::Assistant { text, calls, extra } => {
                    RequestMessage::Whole(reply(text, calls, extra.as_ref()))
                }
                ChatMessage::ToolResult {
                    call_id, tool, ok, ..
                } => {
                    let (content, media) = self.files.with_result(message);
                    of_results.extend(media);
                    RequestMessage::Whole(result(call_id, tool, &result_text(&content, *ok)))
                }
            });
        }
        if !of_results.is_empty() {
            messages.push(user(FROM_RESULTS.into(), of_results));
        }
        messages
    }

    /// Whether the program wants the arguments of a tool to fit its schema.
    pub fn is_strict(&self, tool: &ToolSpec) -> bool {
        let client = self.request.client.filter(|_| !self.capabilities.no_strict);
        client.is_some_and(|client| client.strict.contains(&tool.name))
    }

    /// The members in `extra`, if this server sent them and wants them back.
    pub fn own_members<'v>(&self, extra: Option<&'v Value>) -> Option<&'v Map<String, Value>> {
        let extra = extra.filter(|_| self.capabilities.thoughts != Thoughts::Nothing);
        own_members(extra?, &self.origin())
    }

    /// The blocks of a reply as this server sent them (the extra member `name`),
    /// with the present ids of the calls in the member `id` of the blocks of type
    /// `kind`, and without those of calls that were cut off. `None` if there are none,
    /// or if they do not fit the calls.
    pub fn own_blocks(
        &self,
        extra: Option<&Value>,
        calls: &[ToolCall],
        name: &str,
        (kind, id): (&str, &str),
    ) -> Option<Vec<Value>> {
        let mut blocks = self.own_members(extra)?.get(name)?.as_array()?.clone();
        let mut ids = calls.iter().map(|call| &call.id);
        blocks.retain_mut(|block| {
            if block.get("type").and_then(Value::as_str) != Some(kind) {
                return true;
            }
            let own = ids.next();
            if let Some(own) = own {
                block[id] = own.as_str().into();
            }
            own.is_some()
        });
        ids.next().is_none().then_some(blocks)
    }
}

/// A kind of API: how requests are written and replies parsed.
pub trait Dialect: Send + Sync {
    /// What follows the base URL in a request.
    fn path(&self, capabilities: ServerCapabilities) -> &'static str;

    /// The body of a request.
    fn body(&self, context: &RequestContext<'_>) -> RequestBody;

    /// What it can be told of what a client asks for.
    fn supported_options(&self, capabilities: ServerCapabilities) -> SupportedOptions;

    /// A parser for one reply to a request that was written for these
    /// capabilities.
    fn parser(&self, capabilities: ServerCapabilities) -> Box<dyn ReplyParser>;

    /// What follows the base URL in the origin of the extra members of a reply.
    /// Conversations on disk hold it: it must not change.
    fn origin_path(&self, capabilities: ServerCapabilities) -> &'static str {
        self.path(capabilities)
    }

    /// The headers that carry the key, and others that every request needs.
    fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, String)> {
        bearer(key)
    }
}

/// The body of a request, a JSON object written member by member: the tools are most
/// of a request, and as a [`Value`] they would be copied first.
#[derive(Default)]
pub struct RequestBody(Vec<u8>);

impl RequestBody {
    /// Adds a member. No name may come twice.
    pub fn put(&mut self, name: &str, value: impl Serialize) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.write(name);
        self.0.push(b':');
        self.write(value);
    }

    /// Makes room for files at once: growing bit by bit would copy them again and again, and
    /// take twice as much.
    pub fn reserve_for(&mut self, context: &RequestContext<'_>) {
        let (base64, _) = context.files.written();
        if base64 > 0 {
            self.0.reserve_exact(base64 + AROUND_FILES);
        }
    }

    /// The whole text.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    fn write(&mut self, value: impl Serialize) {
        serde_json::to_writer(&mut self.0, &value)
            .expect("memory takes every write, and the keys are strings");
    }
}

/// A message as OpenAI and Ollama take it. Most are a text alone, which is written as it
/// stands: of a long conversation, each would be copied to a [`Value`] first.
#[derive(Serialize)]
#[serde(untagged)]
pub enum RequestMessage<'a> {
    /// Who wrote it, and the text.
    Text {
        /// `user`, `assistant` or `system`.
        role: &'static str,
        /// The text.
        content: Cow<'a, str>,
    },
    /// Anything else.
    Whole(Value),
}

impl<'a> RequestMessage<'a> {
    /// A text alone.
    pub fn text(role: &'static str, content: impl Into<Cow<'a, str>>) -> RequestMessage<'a> {
        let content = content.into();
        RequestMessage::Text { role, content }
    }
}

/// A tool as OpenAI and Ollama describe it.
#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
pub struct FunctionTool<'a> {
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> FunctionTool<'a> {
    /// Describes a tool with this schema of its arguments.
    pub fn new(tool: &'a ToolSpec, parameters: Cow<'a, Value>) -> FunctionTool<'a> {
        FunctionTool {
            function: Function {
                name: &tool.name,
                description: &tool.description,
                parameters,
                strict: None,
            },
        }
    }

    /// The same, and its arguments must fit the schema: for OpenAI's API alone.
    pub fn strict(mut self, is_strict: bool) -> FunctionTool<'a> {
        self.function.strict = is_strict.then_some(true);
        self
    }
}

/// `authorization: Bearer KEY`.
pub fn bearer(key: Option<&Secret>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {}", key.expose())))
        .into_iter()
        .collect()
}
