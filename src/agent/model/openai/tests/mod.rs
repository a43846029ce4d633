//! Against a scripted server on loopback.

mod costs;
mod failures;
mod replies;
mod responses;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::model::dialect::Options;
use crate::model::endpoint::Endpoint;
use crate::model::profile::Profile;
use crate::model::remote::Remote;
use crate::model::testing::{
    Ask, KEY, assistant, call, events, scripted, streamed, tool_result, usage, user,
};
use crate::model::{ModelRequest, Provider, ProviderError, ToolSpec};
use base::clock::Clock;
use base::reply::FinishReason;
use base::secret::Secret;
use base::testing::rows;
use net::http_client::test_server::{
    Act, TestServer, chunk, json as answer, stream, stream_head, whole,
};
use store::ToolCall;

fn provider(server: &TestServer) -> Remote {
    provider_with(server, Options::default(), "openai-compatible")
}

fn provider_with(server: &TestServer, options: Options, name: &str) -> Remote {
    let endpoint = Endpoint::new("The model server", &server.url(), Some(Secret::new(KEY)));
    Remote::new(endpoint, Box::new(OpenAi), Profile::of(name, ""), options)
}

fn hello() -> Ask {
    Ask {
        tools: Vec::new(),
        ..Ask::hello(false)
    }
}

fn streaming() -> Ask {
    Ask {
        stream: true,
        ..hello()
    }
}

fn with_tools(ask: Ask) -> Ask {
    let tools = [
        ("light", "Switches a light."),
        ("current_time", "The time."),
    ];
    let tools = tools.map(|(name, description)| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": {}}).into(),
    });
    Ask {
        tools: tools.to_vec(),
        ..ask
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
