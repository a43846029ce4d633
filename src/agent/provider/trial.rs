//! Tries a model with requests like those of a turn: a question, a call of a tool, a picture
//! and a long prompt. Says what came of each, how long it took and what it cost.

mod picture;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialect::Options;
use super::endpoint::Endpoint;
use super::provider_of;
use crate::context::estimate::text_tokens;
use crate::context::window::request_tokens;
use crate::model::{
    ChatMessage, FileReader, ModelReply, ModelRequest, Provider, ProviderError, ToolSpec,
};
use base::clock::Clock;
use base::finish_reason::FinishReason;
use base::secret::reference;
use config::{Config, ModelChoice, OFFLINE};
use net::cancel::Cancel;
use net::tls::Trust;
use picture::{COLOUR, Picture};
use store::{ToolCall, Usage};

/// How long all but the long prompt may take. The first question may have to wait until
/// the model is loaded.
const LIMIT: Duration = Duration::from_secs(120);
/// Most tokens of the long prompt: those of large services cost money.
const LONGEST: usize = 32_000;
/// Of an estimated prompt, what may be missing in the server's count before that shows
/// that the prompt was cut: estimates are not exact.
const MISSING: f64 = 0.5;
/// The tool that the model is to call.
const TOOL: &str = "look_up_code";
const SYSTEM: &str = "The program that uses you checks whether it can work with you. Do exactly \
    what each message asks for, in as few words as possible.";
/// What a long prompt is made of, in turn.
const FILLING: [&str; 4] = [
    "The neighbour watered the tomatoes early in the morning before the sun was high. ",
    "Nothing else happened in the house, and the cat slept on the stairs until noon. ",
    "Somebody left an umbrella at the door, although there was no rain the whole week. ",
    "In the evening the windows were closed, the lights went out and all was quiet. ",
];

/// A model to try.
pub struct Trial {
    /// What people call its server, with its address.
    pub subject: String,
    model: String,
    provider: Box<dyn Provider>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    /// Of a turn.
    limit: Duration,
}

/// What came of one thing that was tried.
#[derive(Debug)]
pub struct Tried {
    /// How long it took, the tool's result included.
    pub took: Duration,
    /// As the provider counted.
    pub usage: Usage,
    /// Whether the usage is only estimated.
    pub is_estimated: bool,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It works.
    Works,
    /// There was no answer, with a sentence about why.
    Failed(String),
    /// It took longer than it may.
    TimedOut(Duration),
    /// The reply was empty.
    Empty {
        /// Whether the limit on its length was used up by thinking.
        used_up: bool,
    },
    /// It answered in words where it was to call a tool: that its server takes no tools,
    /// or something else.
    NoCall {
        /// What it said, cut.
        said: String,
    },
    /// The arguments of its call are not what the tool's description asks for.
    BadCall {
        /// The arguments, cut.
        arguments: String,
    },
    /// It answered without what the tool's result or the prompt had said.
    Unread {
        /// What it said, cut.
        said: String,
    },
    /// The model takes no images.
    NoImages,
    /// The server cut a prompt of so many tokens, by our estimate, or refused it.
    Cut {
        /// The tokens that it was to read.
        sent: usize,
        /// Those that it counted, if it did.
        counted: Option<u64>,
    },
}

impl Trial {
    /// The model of `choice`, asked as `config` asks it. `None` for the offline stand-in
    /// and where there is no address: nothing can be asked.
    pub fn new(config: &Config, choice: &ModelChoice) -> Option<Trial> {
        if choice.provider == OFFLINE {
            return None;
        }
        let subject = Endpoint::of_choice(choice)?.subject;
        let options = Options {
            context_tokens: choice.context_tokens,
            keep_alive_minutes: Some(config.keep_alive_minutes),
            reasoning_effort: config.reasoning_effort,
        };
        let trust = Trust::new(config.tls.ca_file.as_deref());
        Some(Trial {
            subject,
            model: choice.model.clone(),
            provider: provider_of(choice, options, &trust, &Clock::system(), None),
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            limit: Duration::from_secs(config.limits.turn_seconds),
        })
    }

    /// The tokens of its window.
    pub fn window(&self) -> usize {
        self.provider.window(&self.model)
    }

    /// Asks for a word.
    pub fn question(&self) -> Tried {
        let messages = [user("Reply with this one word: ready".to_owned())];
        self.measure(LIMIT, |asking| {
            asking
                .ask(&messages, &[])
                .map_or_else(|failed| failed, outcome_of)
        })
    }

    /// Has it call a tool and say what the tool's result says.
    pub fn tool_call(&self) -> Tried {
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
        let question = format!(
            "Call the tool {TOOL} for the door \"garden\". Then reply with the code that it returns."
        );
        self.measure(LIMIT, |asking| {
            let mut messages = vec![user(question)];
            let reply = match asking.ask(&messages, &tools) {
                Ok(reply) => reply,
                Err(failed) => return failed,
            };
            let Some(call) = reply.calls.first().cloned() else {
                return match outcome_of(reply.clone()) {
                    Outcome::Works => Outcome::NoCall {
                        said: cut(&reply.text),
                    },
                    other => other,
                };
            };
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            if call.tool != TOOL || !arguments["door"].is_string() {
                return Outcome::BadCall {
                    arguments: cut(&format!("{}({})", call.tool, call.arguments)),
                };
            }
            let code = reference();
            messages.push(ChatMessage::Assistant {
                text: reply.text.into(),
                calls: vec![call.clone()],
                extra: reply.extra,
            });
            messages.push(result_of(
                &call,
                format!("The code of this door is {code}."),
            ));
            match asking.ask(&messages, &tools) {
                Ok(reply) => said(&code, reply),
                Err(failed) => failed,
            }
        })
    }

    /// Shows it a picture and has it say what it sees.
    pub fn image(&self) -> Tried {
        let picture = Picture::new();
        let question = "What colour is this picture? Reply with one word, in English.";
        let message = ChatMessage::User {
            text: question.into(),
            files: vec![picture.file()],
        };
        let takes = || self.provider.takes(&self.model).images;
        self.measure(LIMIT, |asking| {
            if !takes() {
                return Outcome::NoImages;
            }
            match asking.ask_with(&[message], &[], &picture) {
                // It was left out when the server refused it.
                Ok(_) if !takes() => Outcome::NoImages,
                Ok(reply) => said(COLOUR, reply),
                Err(failed) => failed,
            }
        })
    }

    /// Has it find a word at the beginning of a prompt that is as long as Hearth's may
    /// become, up to a limit. Returns the prompt's tokens, too.
    pub fn long_prompt(&self) -> (usize, Tried) {
        let tokens = request_tokens(self.window(), self.max_tokens).min(LONGEST);
        let code = reference();
        let begin = format!("The code of the garden door is {code}. What follows is a diary.\n");
        let end = "\nThat was the diary. Reply with the code of the garden door, which stands \
                   before the diary.";
        let mut text = begin;
        // What surrounds the text takes some, too.
        let most = tokens - tokens / 10 - text_tokens(SYSTEM) - text_tokens(end);
        let mut filling = FILLING.iter().cycle();
        while text_tokens(&text) < most
            && let Some(more) = filling.next()
        {
            text.push_str(more);
        }
        text.push_str(end);
        let sent = text_tokens(&text);
        let messages = [user(text)];
        let mut counted = None;
        let mut tried = self.measure(self.limit, |asking| match asking.ask(&messages, &[]) {
            Ok(reply) => {
                counted = (!reply.is_estimated).then_some(reply.usage.input);
                said(&code, reply)
            }
            Err(failed) => failed,
        });
        let is_short = counted.is_some_and(|counted| (counted as f64) < MISSING * sent as f64);
        if let Outcome::Unread { .. } = tried.outcome
            && is_short
        {
            tried.outcome = Outcome::Cut { sent, counted };
        } else if let Outcome::Cut { sent: size, .. } = &mut tried.outcome {
            *size = sent;
        }
        (sent, tried)
    }

    fn measure(&self, limit: Duration, ask: impl FnOnce(&mut Asking<'_>) -> Outcome) -> Tried {
        let limit = limit.min(self.limit);
        let began = Instant::now();
        let mut asking = Asking {
            trial: self,
            deadline: began + limit,
            limit,
            usage: Usage::default(),
            is_estimated: false,
        };
        let outcome = ask(&mut asking);
        Tried {
            took: began.elapsed(),
            usage: asking.usage,
            is_estimated: asking.is_estimated,
            outcome,
        }
    }
}

/// One thing that is tried, in one request or more.
struct Asking<'a> {
    trial: &'a Trial,
    deadline: Instant,
    limit: Duration,
    usage: Usage,
    is_estimated: bool,
}

impl Asking<'_> {
    fn ask(&mut self, messages: &[ChatMessage], tools: &[ToolSpec]) -> Result<ModelReply, Outcome> {
        self.ask_with(messages, tools, &())
    }

    fn ask_with(
        &mut self,
        messages: &[ChatMessage],
        tools: &[ToolSpec],
        files: &dyn FileReader,
    ) -> Result<ModelReply, Outcome> {
        let request = ModelRequest {
            model: &self.trial.model,
            system: SYSTEM,
            messages,
            files,
            tools,
            may_call: true,
            client: None,
            temperature: self.trial.temperature,
            max_tokens: self.trial.max_tokens,
            stream: true,
            deadline: self.deadline,
            cancel: &Cancel::default(),
        };
        match self.trial.provider.complete(&request, &mut |_| ()) {
            Ok(reply) => {
                self.usage.input += reply.usage.input;
                self.usage.output += reply.usage.output;
                self.usage.cached += reply.usage.cached;
                self.is_estimated |= reply.is_estimated;
                Ok(reply)
            }
            Err(ProviderError::ContextOverflow { .. }) => Err(Outcome::Cut {
                sent: 0,
                counted: None,
            }),
            Err(ProviderError::Cancelled | ProviderError::TimedOut) => {
                Err(Outcome::TimedOut(self.limit))
            }
            Err(ProviderError::Failed { public, .. }) => {
                let subject = &self.trial.subject;
                let says = public.strip_prefix(subject).unwrap_or(&public);
                Err(Outcome::Failed(says.trim_start().to_owned()))
            }
        }
    }
}

fn user(text: String) -> ChatMessage {
    ChatMessage::User {
        text: text.into(),
        files: Vec::new(),
    }
}

fn result_of(call: &ToolCall, content: String) -> ChatMessage {
    ChatMessage::ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        content: content.into(),
        ok: true,
        files: Vec::new(),
    }
}

/// What a reply without calls tells.
fn outcome_of(reply: ModelReply) -> Outcome {
    match reply.text.trim().is_empty() {
        false => Outcome::Works,
        true => Outcome::Empty {
            used_up: reply.finish_reason == Some(FinishReason::Length),
        },
    }
}

/// Whether a reply says the word.
fn said(word: &str, reply: ModelReply) -> Outcome {
    match reply.text.to_lowercase().contains(word) {
        true => Outcome::Works,
        false if reply.text.trim().is_empty() => outcome_of(reply),
        false => Outcome::Unread {
            said: cut(&reply.text),
        },
    }
}

/// The beginning of a text, on one line.
fn cut(text: &str) -> String {
    const MOST: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
