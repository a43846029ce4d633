//! A request for a reply, from its body to the answer that is being written.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::access::{self, Exchange};
use super::answer::{AnswerOptions, Form, PendingAnswer, Sending, new_waker};
use super::client_message::ClientMessage;
use super::options::{self, OptionsRead};
use super::transcript;
use super::{models, plain};
use crate::service::program_turns::Question;
use crate::service::programs::{ProgramOptions, Results};
use base::error::{Error, Result, json_problem};
use base::secret::sha256;
use net::http::{Answer, Head, Request};
use protocol::command::check_idempotency_key;

/// The header with the client's own name for the chat, such as Open WebUI's `{{CHAT_ID}}`.
const CHAT: &str = "x-chat";
/// The same as Open WebUI sends it to all its connections, if it is set to.
const OPEN_WEBUI_CHAT: &str = "x-openwebui-chat-id";
/// The header that names what a program asks beside a chat, such as Open WebUI's `{{TASK}}`.
const TASK: &str = "x-task";
/// The header in which the libraries of OpenAI and Anthropic count their further tries.
const RETRIES: &str = "x-stainless-retry-count";
/// Most bytes of the name of a chat.
const MAX_CHAT_BYTES: usize = 255;

/// Reads a body.
///
/// # Errors
/// `invalid_request` with what is wrong and where.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        Error::invalid_request(if error.is_data() {
            // Names the member, as the documentation of these interfaces does.
            format!("the body cannot be read: {}", in_json(&error.to_string()))
        } else {
            format!("the body is not valid JSON: {}", json_problem(&error))
        })
    })
}

/// What serde says of a value, with the types of Rust as JSON calls them. The client's own
/// values stay as they are: serde quotes them before "expected".
fn in_json(problem: &str) -> String {
    let Some((found, expected)) = problem.rsplit_once(", expected ") else {
        return problem.to_owned();
    };
    let found = found
        .replace("type: sequence", "type: array")
        .replace("type: map", "type: object");
    let expected = match expected.split_once("struct ") {
        Some((before, name)) => {
            let at = name.find(' ').map_or("", |end| &name[end..]);
            format!("{before}an object{at}")
        }
        None => expected
            .replace("u64", "a whole number")
            .replace("a sequence", "an array")
            .replace("a map", "an object"),
    };
    format!("{found}, expected {expected}")
}

/// A header that a program fills in, if it did: not empty, and not the template itself, which
/// Open WebUI sends where it has nothing to say.
pub fn filled<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    let value = head.header(name)?.trim();
    let is_template = value.starts_with("{{") && value.ends_with("}}");
    (!value.is_empty() && !is_template).then_some(value)
}

/// A request for a reply, as its interface has read it.
pub struct ReplyRequest {
    pub model: String,
    pub messages: Vec<ClientMessage>,
    /// The client's own name for the chat, unless a header has it.
    pub chat: Option<String>,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    pub options: OptionsRead,
    pub stream: bool,
    /// Whether it goes on while somebody is asked for permission, if it is streamed. What is
    /// spoken cannot show that.
    pub waits: bool,
    pub form: Box<dyn Form>,
}

impl ReplyRequest {
    /// Answers it: by the household's assistant, or by its model alone.
    ///
    /// # Errors
    /// `invalid_request` for messages that cannot be read; those of
    /// [`Service::follow`](crate::service::Service::follow) and
    /// [`Service::ask_model`](crate::service::Service::ask_model); 503 without a descriptor
    /// for the wake-ups.
    pub fn answer(mut self, exchange: Exchange<'_>) -> Result<Answer> {
        let hints = options::only_hints(exchange.config, &self.options.program.reply);
        // First: the header is bounded.
        self.options.ignored.splice(..0, hints);
        let head = &exchange.request.head;
        let is_of_open_webui = matches!(&self.messages[..], [only] if only.is_task());
        if let Some(identity) = &exchange.asker.identity
            && is_of_open_webui
            && !access::names_somebody(head)
        {
            exchange.service.programs.note_nameless(identity.token_id);
        }
        let is_task = is_of_open_webui || filled(head, TASK).is_some();
        if is_task || models::is_plain(&self.model) {
            let (form, messages) = (self.form, self.messages);
            return plain::answer(&exchange, form, self.stream, messages, self.options);
        }
        self.begin_turn(exchange)
    }

    fn begin_turn(self, exchange: Exchange<'_>) -> Result<Answer> {
        let Exchange {
            service,
            config,
            asker,
            request: Request { head, body, waker },
        } = &exchange;
        let transcript = transcript::read(self.messages)?;
        let chat = filled(head, CHAT).or(filled(head, OPEN_WEBUI_CHAT));
        let chat = chat.map(str::to_owned).or(self.chat);
        let chat = chat.filter(|chat| !chat.is_empty());
        if chat
            .as_ref()
            .is_some_and(|chat| chat.len() > MAX_CHAT_BYTES)
        {
            return Err(Error::invalid_request(format!(
                "the name of the chat (\"X-Chat\") has at most {MAX_CHAT_BYTES} bytes"
            )));
        }
        let idempotency = head.header("idempotency-key");
        if let Some(key) = idempotency {
            check_idempotency_key("the header \"Idempotency-Key\"", key)?;
        }
        let OptionsRead { program, ignored } = self.options;
        if !program.tools.is_empty() {
            options::check_room(service, config, &program.tools)?;
        }
        let waker = waker
            .as_ref()
            .map_or_else(|| new_waker(head), |one| Ok(Arc::clone(one)))?;
        let named = format!("{}\0{}\0", head.path, chat.as_deref().unwrap_or_default());
        let fingerprint = sha256(&[named.as_bytes(), body.as_slice()].concat());
        let has_results = !transcript.results.is_empty();
        let earlier = if has_results {
            transcript.beside
        } else {
            String::new()
        };
        let question = Question {
            history: transcript.history,
            chat,
            message: transcript.message,
            steps: transcript.steps,
            results: has_results.then_some(Results {
                returned: transcript.results,
                rounds: transcript.rounds,
            }),
            left: transcript.left,
            files: transcript.files,
            instructions: transcript.instructions,
            idempotency: idempotency.map(str::to_owned),
            fingerprint: Some(fingerprint),
            is_retry: filled(head, RETRIES).is_some_and(|count| count != "0"),
            channel: self.channel,
            program: Some(program).filter(|program| *program != ProgramOptions::default()),
            stream: self.stream || self.form.wants_thoughts(),
            request: None,
        };
        let stream = service.follow(asker, question, &waker)?;
        let limits = &config.limits;
        // A streamed response can show that it goes on; one that is sent whole
        // cannot, and its client would give up first.
        let beyond = if self.stream {
            limits.approval_seconds
        } else {
            0
        };
        let options = AnswerOptions {
            sending: Sending::of(self.stream),
            waits: self.stream && self.waits,
            cancels: self.stream && config.openai_api.cancel_on_disconnect,
            longest: Duration::from_secs(limits.turn_seconds.saturating_add(beyond)),
            ignored,
            earlier,
        };
        Ok(PendingAnswer::new(&exchange, stream, self.form, options).deferred())
    }
}
