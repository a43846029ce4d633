//! Tries a model with requests like those of a turn: a question, and a call of a tool whose
//! result it has to use. Says what came of each, how long it took and what it cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::remote::Remote;
use super::{options_of, remote_of};
use crate::model::{ChatMessage, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec};
use base::clock::Clock;
use base::language::{Said, Words};
use base::reply::FinishReason;
use base::secret::reference;
use config::{Config, ModelChoice};
use net::cancel::Cancel;
use net::tls::Trust;
use store::{Purpose, Usage};

/// How long each may take. The first may have to wait until the model is loaded.
const LIMIT: Duration = Duration::from_secs(120);
/// The tool that the model is to call.
const TOOL: &str = "look_up_code";
const SYSTEM: &str = "The program that uses you checks whether it can work with you. Do exactly \
    what each message asks for, in as few words as possible.";

/// A model to try.
pub struct Trial {
    model: String,
    provider: Remote,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    limit: Duration,
}

/// What came of one thing that was tried.
#[derive(Debug)]
pub struct Tried {
    /// How long it took.
    pub took: Duration,
    /// As the provider counted.
    pub usage: Usage,
    /// Whether the usage is only estimated.
    pub is_estimated: bool,
    /// What the model or its server did instead of what it was to do.
    pub outcome: Result<(), String>,
}

impl Trial {
    /// The model of `choice`, asked as `config` asks it. `None` for the offline stand-in
    /// and where there is no address: nothing can be asked.
    pub fn new(config: &Config, choice: &ModelChoice) -> Option<Trial> {
        let trust = Trust::new(config.tls.ca_file.as_deref());
        Some(Trial {
            model: choice.model.clone(),
            provider: remote_of(choice, options_of(config), &trust, &Clock::system()).ok()?,
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            limit: LIMIT.min(Duration::from_secs(config.limits.turn_seconds)),
        })
    }

    /// What people call its server, with its address.
    pub fn subject(&self) -> &Said {
        &self.provider.endpoint.subject
    }

    /// Asks for a word.
    pub fn question(&self) -> Tried {
        let messages = [user("Reply with this one word: ready".to_owned())];
        self.measure(|deadline, tried| self.ask(&messages, &[], deadline, tried).map(drop))
    }

    /// Has it call a tool and say what the tool's result says.
    pub fn tool_call(&self) -> Tried {
        self.measure(|deadline, tried| self.try_tool_call(deadline, tried))
    }

    fn measure(&self, work: impl FnOnce(Instant, &mut Tried) -> Result<(), String>) -> Tried {
        let began = Instant::now();
        let mut tried = Tried {
            took: Duration::ZERO,
            usage: Usage::default(),
            is_estimated: false,
            outcome: Ok(()),
        };
        tried.outcome = work(began + self.limit, &mut tried);
        tried.took = began.elapsed();
        tried
    }

    fn try_tool_call(&self, deadline: Instant, tried: &mut Tried) -> Result<(), String> {
        let tools = [ToolSpec {
            name: TOOL.to_owned(),
            description: "Returns the code of a door. Call it whenever you are asked for one."
                .to_owned(),
            parameters: Arc::new(json!({
                "type": "object",
                "properties": { "door": { "type": "string", "description": "Which door" } },
                "required": ["door"],
            })),
        }];
        let mut messages = vec![user(format!(
            "Call the tool {TOOL} for the door \"garden\". Then reply with the code that it returns."
        ))];
        let quote = |text: &str| self.provider.endpoint.quote(text);
        let reply = self.ask(&messages, &tools, deadline, tried)?;
        let Some(call) = reply.calls.first().cloned() else {
            let said = quote(&reply.text);
            return Err(format!("answered in words instead of a call: {said}"));
        };
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        if call.tool != TOOL || !arguments["door"].is_string() {
            let called = quote(&format!("{}({})", call.tool, call.arguments));
            return Err(format!("made a call that nothing can run: {called}"));
        }
        let code = reference();
        messages.push(ChatMessage::Assistant {
            text: reply.text.into(),
            calls: vec![call.clone()],
            extra: reply.extra,
        });
        messages.push(ChatMessage::ToolResult {
            call_id: call.id,
            tool: call.tool,
            content: format!("The code of this door is {code}.").into(),
            ok: true,
            files: Vec::new(),
        });
        let said = self.ask(&messages, &tools, deadline, tried)?.text;
        match said.to_lowercase().contains(&code) {
            true => Ok(()),
            false => Err(format!(
                "answered without what it was to read: {}",
                quote(&said)
            )),
        }
    }

    /// A reply that holds something.
    fn ask(
        &self,
        messages: &[ChatMessage<'_>],
        tools: &[ToolSpec],
        deadline: Instant,
        tried: &mut Tried,
    ) -> Result<ModelReply, String> {
        let request = ModelRequest {
            model: &self.model,
            system: SYSTEM,
            messages,
            files: &(),
            tools,
            may_call: true,
            purpose: Purpose::Program,
            conversation: None,
            client: None,
            words: Words::ENGLISH,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            stream: true,
            has_next: false,
            deadline,
            cancel: &Cancel::default(),
        };
        let reply = match self.provider.complete(&request, &mut |_| ()) {
            Ok(reply) => reply,
            Err(ProviderError::Cancelled | ProviderError::TimedOut) => {
                return Err(format!("did not answer within {} s", self.limit.as_secs()));
            }
            Err(ProviderError::Failed { public, detail, .. }) => {
                return Err(format!("gave no answer: {public}: {detail}"));
            }
        };
        tried.usage.input += reply.usage.input;
        tried.usage.output += reply.usage.output;
        tried.is_estimated |= reply.is_estimated;
        if !reply.calls.is_empty() || !reply.text.trim().is_empty() {
            return Ok(reply);
        }
        Err(match reply.finish_reason {
            Some(FinishReason::Length) => {
                "used up the whole reply by thinking: raise max_tokens, or lower reasoning_effort"
            }
            _ => "answered nothing",
        }
        .to_owned())
    }
}

fn user(text: String) -> ChatMessage<'static> {
    ChatMessage::User {
        content: text.into(),
        files: Vec::new(),
    }
}
