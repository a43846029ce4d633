//! Helpers for the tests of several providers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialect::{Dialect, Options, RequestContext};
use super::endpoint::Endpoint;
use super::files::Files;
use super::profile::Profile;
use super::remote::Remote;
use super::server_capabilities::ServerCapabilities;
use crate::model::client_options::ClientOptions;
use crate::model::{
    ChatMessage, FileReader, Heard, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec,
};
use base::ids::ConversationId;
use base::reply::FinishReason;
use base::secret::Secret;
use config::Preset;
use net::cancel::Cancel;
use net::http_client::test_server::{Act, TestServer, chunk, whole};
use store::{Purpose, ToolCall, Usage};

/// The key of every test provider.
pub const KEY: &str = "sk-test-0123456789abcdefWXYZ";

/// What a test asks.
pub struct Ask {
    pub model: &'static str,
    pub messages: Vec<ChatMessage<'static>>,
    pub files: Box<dyn FileReader>,
    pub tools: Vec<ToolSpec>,
    pub may_call: bool,
    pub purpose: Purpose,
    pub conversation: Option<ConversationId>,
    pub client: Option<ClientOptions>,
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub stream: bool,
    pub has_next: bool,
    pub time: Duration,
    pub cancel: Cancel,
}

impl Ask {
    /// `hello`, with one tool.
    pub fn hello(stream: bool) -> Ask {
        Ask {
            model: "m",
            messages: vec![user("hello")],
            files: Box::new(()),
            tools: vec![ToolSpec {
                name: "light".to_owned(),
                description: "Switches a light.".to_owned(),
                parameters: json!({"type": "object", "properties": {"on": {"type": "boolean"}}})
                    .into(),
            }],
            may_call: true,
            purpose: Purpose::Reply,
            conversation: None,
            client: None,
            temperature: None,
            max_tokens: None,
            stream,
            has_next: false,
            time: Duration::from_secs(20),
            cancel: Cancel::default(),
        }
    }

    /// What a service is known to accept of it before it is asked.
    pub fn capabilities(&self, service: &str) -> ServerCapabilities {
        ServerCapabilities::before(&Profile::of(service, "").for_model(self.model, ""))
    }

    /// Lets `look` see what a request to a service with these capabilities is written from.
    pub fn in_context<T>(
        &self,
        service: &str,
        capabilities: ServerCapabilities,
        look: impl FnOnce(&RequestContext<'_>) -> T,
    ) -> T {
        let request = &self.request();
        let profile = Profile::of(service, "").for_model(self.model, "");
        look(&RequestContext {
            request,
            base_url: "",
            origin_path: "",
            capabilities,
            options: Options::default(),
            profile,
            files: &Files::of(request, profile, capabilities, BTreeSet::new()),
        })
    }

    /// The body of such a request in the form of a dialect.
    pub fn body(
        &self,
        dialect: &dyn Dialect,
        service: &str,
        capabilities: ServerCapabilities,
    ) -> Value {
        self.in_context(service, capabilities, |context| {
            serde_json::from_slice(&dialect.body(context).into_bytes()).unwrap()
        })
    }

    /// As a request.
    pub fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            model: self.model,
            system: "You are Ada.",
            messages: &self.messages,
            files: self.files.as_ref(),
            tools: &self.tools,
            may_call: self.may_call,
            purpose: self.purpose,
            conversation: self.conversation,
            client: self.client.as_ref(),
            words: base::language::Words::ENGLISH,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            stream: self.stream,
            has_next: self.has_next,
            deadline: Instant::now() + self.time,
            cancel: &self.cancel,
        }
    }

    /// The reply and the pieces that were heard.
    pub fn of(&self, provider: &dyn Provider) -> (Result<ModelReply, ProviderError>, Vec<String>) {
        let mut heard = Vec::new();
        let reply = provider.complete(&self.request(), &mut |piece| {
            if let Heard::Text(text) = piece {
                heard.push(text.to_owned());
            }
        });
        (reply, heard)
    }

    /// The thoughts that come with the reply.
    pub fn thoughts(&self, provider: &dyn Provider) -> String {
        let mut thoughts = String::new();
        let reply = provider.complete(&self.request(), &mut |piece| {
            if let Heard::Thought(thought) = piece {
                thoughts.push_str(thought);
            }
        });
        assert!(!reply.unwrap().text.contains(&thoughts), "{thoughts}");
        thoughts
    }

    /// The reply.
    pub fn reply(&self, provider: &dyn Provider) -> ModelReply {
        self.of(provider).0.unwrap()
    }

    /// Checks that a reply that is lost after it was heard in part is kept, marked.
    pub fn kept(&self, provider: &dyn Provider, expected: &str) {
        let (reply, heard) = self.of(provider);
        let reply = reply.unwrap();
        assert_eq!(
            (&*reply.text, heard.concat()),
            (expected, expected.to_owned())
        );
        assert_eq!(reply.finish_reason, Some(FinishReason::Interrupted));
        assert_eq!(reply.calls, []);
        assert!(reply.usage.input > 0, "{:?}", reply.usage);
    }

    /// What a person and the log read of a failure; checks that neither holds
    /// the key.
    pub fn failure(&self, provider: &dyn Provider) -> (String, String) {
        match self.of(provider).0 {
            Err(ProviderError::Failed { public, detail, .. }) => {
                let public = public.to_string();
                for text in [&public, &detail] {
                    assert!(!text.contains(KEY) && !text.contains("cdefWXYZ"), "{text}");
                }
                (public, detail)
            }
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Adds a reply with calls, and a result for each.
    pub fn go_on(&mut self, reply: ModelReply, result: &str, ok: bool) {
        let results: Vec<ChatMessage<'_>> = reply
            .calls
            .iter()
            .map(|call| tool_result(&call.id, result, ok))
            .collect();
        let message = assistant(&reply.text, reply.calls, reply.extra);
        self.messages.push(message);
        self.messages.extend(results);
    }
}

/// A person's message.
pub fn user(text: &str) -> ChatMessage<'static> {
    ChatMessage::User {
        content: text.to_owned().into(),
        files: Vec::new(),
    }
}

/// A message of the model.
pub fn assistant(text: &str, calls: Vec<ToolCall>, extra: Option<Value>) -> ChatMessage<'static> {
    ChatMessage::Assistant {
        text: text.to_owned().into(),
        calls,
        extra,
    }
}

/// The result of a call of `light`.
pub fn tool_result(call_id: &str, content: &str, ok: bool) -> ChatMessage<'static> {
    ChatMessage::ToolResult {
        call_id: call_id.to_owned(),
        tool: "light".to_owned(),
        content: content.to_owned().into(),
        ok,
        files: Vec::new(),
    }
}

/// The tokens of a request.
pub fn usage(input: u64, output: u64, cached: u64) -> Usage {
    Usage {
        input,
        output,
        cached,
    }
}

/// A call.
pub fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        provider_id: None,
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    }
}

/// A provider of this kind at the root of a server.
pub fn provider(server: &TestServer, dialect: Box<dyn Dialect>, name: &str) -> Remote {
    provider_with(server, dialect, name, Options::default())
}

/// The same with options.
pub fn provider_with(
    server: &TestServer,
    dialect: Box<dyn Dialect>,
    name: &str,
    options: Options,
) -> Remote {
    let preset = Preset::of(name).unwrap();
    let url = format!("http://{}", server.address);
    let endpoint = Endpoint::below(preset.title, &url, &["/v1"], Some(Secret::new(KEY)));
    Remote::new(endpoint, dialect, Profile::of(name, ""), options)
}

/// A chunked stream of this content type, cut into pieces of `size` bytes.
pub fn streamed(content_type: &str, text: &str, size: usize) -> Vec<Act> {
    let mut script = cut(content_type, text, size);
    script.push(Act::Send(b"0\r\n\r\n".to_vec()));
    script
}

/// The same without its end.
pub fn cut(content_type: &str, text: &str, size: usize) -> Vec<Act> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let mut script = vec![Act::Send(head.into_bytes())];
    let letters: Vec<char> = text.chars().collect();
    let pieces = letters
        .chunks(size)
        .map(|piece| piece.iter().collect::<String>());
    script.extend(pieces.map(|piece| chunk(&piece)));
    script
}

/// An answer as tables write it: `STATUS BODY`, in JSON, or `STATUS [HEADER: VALUE]
/// BODY`; as a stream in pieces `stream BODY`, and without its end `cut BODY`; `raw
/// TEXT` without a head. `\\n` is a line break, `KEY` the key.
pub fn scripted(answer: &str) -> Vec<Act> {
    let answer = answer.replace("\\n", "\n").replace("KEY", KEY);
    let (kind, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
    match kind {
        "stream" => streamed("text/event-stream", rest, 64),
        "cut" => cut("text/event-stream", rest, 64),
        "raw" => vec![Act::Send(rest.as_bytes().to_vec()), Act::Close],
        status => {
            let given = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let (header, body) = given.unwrap_or(("content-type: application/json", rest));
            let status = status.parse().unwrap();
            whole(status, &format!("{header}\r\n"), body.trim_start())
        }
    }
}

/// Events with their names, as Anthropic and OpenAI's Responses send them.
pub fn events(events: &[Value]) -> String {
    let line = |event: &Value| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

/// A reply in OpenAI's form.
pub fn hi() -> Vec<Act> {
    scripted("200 {\"choices\":[{\"message\":{\"content\":\"Hi\"}}]}")
}
