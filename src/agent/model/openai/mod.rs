//! The Chat Completions API: OpenAI's own, and that of the many servers that
//! speak it (llama.cpp, LM Studio, vLLM, OpenRouter, ...); and the part of the
//! Responses API that a few of OpenAI's models need to use tools.

mod chat_reply;
mod chat_request;
mod responses;

use super::dialect::{Dialect, RequestBody, RequestContext};
use super::reply_reader::ReplyParser;
use super::server_capabilities::ServerCapabilities;
use crate::model::client_options::SupportedOptions;
use chat_reply::ChatReply;
use responses::ResponsesReply;

/// Chat Completions, and Responses where they are needed.
pub struct OpenAi;

impl Dialect for OpenAi {
    fn path(&self, capabilities: ServerCapabilities) -> &'static str {
        match capabilities.needs_responses {
            true => responses::PATH,
            false => "/chat/completions",
        }
    }

    fn body(&self, context: &RequestContext<'_>) -> RequestBody {
        match context.capabilities.needs_responses {
            true => responses::body(context),
            false => chat_request::body(context),
        }
    }

    fn supported_options(&self, capabilities: ServerCapabilities) -> SupportedOptions {
        let is_chat = !capabilities.needs_responses;
        SupportedOptions {
            stop: is_chat,
            any_json: true,
            must_call: true,
            all_sampling: is_chat,
            sampling: &["top_p"],
        }
    }

    fn parser(&self, capabilities: ServerCapabilities) -> Box<dyn ReplyParser> {
        match capabilities.needs_responses {
            true => Box::new(ResponsesReply::default()),
            false => Box::new(ChatReply::default()),
        }
    }

    fn origin_path(&self, capabilities: ServerCapabilities) -> &'static str {
        match capabilities.needs_responses {
            true => responses::PATH,
            false => "",
        }
    }
}

#[cfg(test)]
mod tests;
