//! Against a scripted server on loopback.

mod failures;
mod replies;
mod responses;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::model::{ChatMessage, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec};
use crate::provider::dialect::Options;
use crate::provider::endpoint::Endpoint;
use crate::provider::remote::Remote;
use base::secret::Secret;
use config::Preset;
use net::cancel::Cancel;
use net::http_client::test_server::{
    Act, TestServer, chunk, json as answer, stream, stream_head, whole,
};
use store::{ToolCall, Usage};

const KEY: &str = "sk-test-0123456789abcdefWXYZ";
const LONG: Duration = Duration::from_secs(20);

fn provider(server: &TestServer) -> Remote {
    provider_with(server, Options::default(), "openai-compatible")
}

fn provider_with(server: &TestServer, options: Options, name: &str) -> Remote {
    let endpoint = Endpoint::new("The model server", &server.url(), Some(Secret::new(KEY)));
    let quirks = Preset::of(name).unwrap().quirks;
    Remote::new(endpoint, Box::new(OpenAi), quirks, options)
}

/// What a test asks, with the usual answers to what it does not care about.
struct Ask {
    messages: Vec<ChatMessage>,
    tools: Vec<ToolSpec>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    stream: bool,
    time: Duration,
    cancel: Cancel,
}

impl Ask {
    fn hello() -> Ask {
        Ask {
            messages: vec![ChatMessage::User {
                text: "hello".to_owned(),
            }],
            tools: Vec::new(),
            temperature: None,
            max_tokens: None,
            stream: false,
            time: LONG,
            cancel: Cancel::default(),
        }
    }

    fn streaming() -> Ask {
        Ask {
            stream: true,
            ..Ask::hello()
        }
    }

    fn with_tools(self) -> Ask {
        let tools = [
            ("light", "Switches a light."),
            ("current_time", "The time."),
        ];
        Ask {
            tools: tools
                .map(|(name, description)| ToolSpec {
                    name: name.to_owned(),
                    description: description.to_owned(),
                    parameters: json!({"type": "object", "properties": {}}),
                })
                .to_vec(),
            ..self
        }
    }

    /// The reply and the pieces that were heard.
    fn of(&self, provider: &Remote) -> (Result<ModelReply, ProviderError>, Vec<String>) {
        let mut heard = Vec::new();
        let request = ModelRequest {
            model: "m",
            system: "You are Ada.",
            messages: &self.messages,
            tools: &self.tools,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            stream: self.stream,
            deadline: Instant::now() + self.time,
            cancel: &self.cancel,
        };
        let reply = provider.complete(&request, &mut |piece| heard.push(piece.to_owned()));
        (reply, heard)
    }

    fn reply(&self, provider: &Remote) -> ModelReply {
        self.of(provider).0.unwrap()
    }

    /// What a person and the log read of a failure; checks that neither holds
    /// the key.
    fn failure(&self, provider: &Remote) -> (String, String) {
        match self.of(provider).0 {
            Err(
                ProviderError::Failed { public, detail, .. }
                | ProviderError::ContextOverflow { public, detail },
            ) => {
                for text in [&public, &detail] {
                    assert!(!text.contains(KEY) && !text.contains("cdefWXYZ"), "{text}");
                }
                (public, detail)
            }
            other => panic!("no failure: {other:?}"),
        }
    }
}

fn message(message: Value) -> Value {
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
           "usage": {"prompt_tokens": 52, "completion_tokens": 17,
                     "prompt_tokens_details": {"cached_tokens": 40}}})
}

fn said(text: &str) -> Value {
    message(json!({"role": "assistant", "content": text}))
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(id: &str, tool: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        extra: None,
    }
}
