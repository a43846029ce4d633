//! From a question to its response: whole, or piece by piece.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::service::Service;
use crate::service::programs::{ProgramOptions, Results};
use crate::service::turn_stream::{Asker, Question, TurnProgress, TurnStream};
use crate::service::views::cancelled;
use base::error::{Code, Error, Result, json_problem};
use base::secret::sha256;
use net::http::{Answer, DeferredResponse, Head, Request, ResponsePart};
use net::wait::Waker;
use protocol::command::check_idempotency_key;
use store::{REPLY_FOLLOWS, TurnState, Usage, Viewer};

use super::form::{Form, Parts, TurnSummary};
use super::options::check_room;
use super::sent_text::SentText;
use super::transcript::{self, Said};

/// The header with the client's own name for the chat, such as Open WebUI's `{{CHAT_ID}}`.
const CHAT: &str = "x-chat";
/// Most bytes of that name.
const CHAT_BYTES: usize = 255;

/// Reads a body.
///
/// # Errors
/// `invalid_request` with what is wrong and where.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| {
        Error::invalid_request(match error.is_data() {
            // Names the member, as the documentation of these interfaces does.
            true => format!("the body cannot be read: {error}"),
            false => format!("the body is not valid JSON: {}", json_problem(&error)),
        })
    })
}

/// A question and the form of its answer.
pub struct Task {
    pub asker: Asker,
    /// The client's messages.
    pub said: Vec<Said>,
    /// The client's own name for the chat, unless a header has it.
    pub chat: Option<String>,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    /// What it wants beyond the household's settings.
    pub program: Option<ProgramOptions>,
    /// Names of what has no effect.
    pub ignored: Vec<String>,
    pub stream: bool,
    /// Whether it goes on while somebody is asked for permission, if it is streamed. What is
    /// spoken cannot show that.
    pub waits: bool,
    pub form: Box<dyn Form>,
}

/// Begins a turn.
///
/// # Errors
/// As [`Service::follow`]; 503 without a descriptor for the wake-ups.
pub fn answer(service: &Arc<Service>, task: Task, request: &Request) -> Result<Answer> {
    let Request { head, body, waker } = request;
    let Task {
        asker,
        said,
        chat,
        channel,
        program,
        ignored,
        stream,
        waits,
        form,
    } = task;
    let transcript = transcript::read(said)?;
    let chat = filled(head, CHAT).map(str::to_owned).or(chat);
    let chat = chat.filter(|chat| !chat.is_empty());
    if chat.as_ref().is_some_and(|chat| chat.len() > CHAT_BYTES) {
        return Err(Error::invalid_request(format!(
            "the name of the chat (\"X-Chat\") has at most {CHAT_BYTES} bytes"
        )));
    }
    let idempotency = head.header("idempotency-key");
    if let Some(key) = idempotency {
        check_idempotency_key("the header \"Idempotency-Key\"", key)?;
    }
    let waker = waker.clone().map_or_else(|| new_waker(head), Ok)?;
    let wake = Arc::clone(&waker);
    let wake = move || wake.wake();
    let (returned, rounds) = (transcript.returned, transcript.rounds);
    let sent = match returned.is_empty() {
        true => SentText::default(),
        false => SentText::after(transcript.beside),
    };
    let question = Question {
        history: transcript.history,
        chat,
        message: transcript.message,
        files: transcript.files,
        instructions: transcript.instructions,
        idempotency: idempotency.map(|key| (key.to_owned(), sha256(body))),
        channel,
        program,
        stream,
    };
    let config = service.settings().current();
    let brings = |program: &&ProgramOptions| !program.tools.is_empty();
    if let Some(program) = question.program.as_ref().filter(brings) {
        check_room(service, &config, &program.tools)?;
    }
    let (limits, cancels) = (&config.limits, config.openai_api.cancel_on_disconnect);
    let turn_stream = match returned.is_empty() {
        true => service.follow(&asker, question, wake)?,
        false => {
            let results = Results {
                returned,
                rounds,
                request: sha256(body),
            };
            service
                .follow_on(&asker, &question.message, &results, stream, wake)
                .ok_or_else(nothing_waits)?
        }
    };
    let began = Instant::now();
    // A streamed response can show that it goes on; one that is sent whole
    // cannot, and its client would give up first.
    let seconds = match stream {
        true => limits.turn_seconds.saturating_add(limits.approval_seconds),
        false => limits.turn_seconds,
    };
    Ok(Answer::Deferred(Box::new(Answering {
        service: Arc::clone(service),
        waker,
        turn_stream,
        stream,
        waits: stream && waits,
        began,
        deadline: began + Duration::from_secs(seconds),
        cancels: stream && cancels,
        is_over: false,
        sent,
        parts: Parts::new(form, head, &config, &ignored),
    })))
}

/// A header that a program fills in, if it did: not empty, and not the template itself, which
/// Open WebUI sends where it has nothing to say.
pub fn filled<'a>(head: &'a Head, name: &str) -> Option<&'a str> {
    let value = head.header(name)?.trim();
    let is_template = value.starts_with("{{") && value.ends_with("}}");
    (!value.is_empty() && !is_template).then_some(value)
}

/// What wakes the thread of a response.
///
/// # Errors
/// 503 without a descriptor for it.
pub fn new_waker(head: &Head) -> Result<Arc<Waker>> {
    Waker::new().map(Arc::new).map_err(|error| {
        log::warn!("no answer for {}: {error}", head.peer);
        Error::overloaded("the server has no descriptor left", 5)
    })
}

/// The error for results that nothing waits for.
fn nothing_waits() -> Error {
    Error::invalid_request(
        "no reply waits for these results of tools any more: send the message again, without \
         the calls and their results",
    )
}

struct Answering {
    service: Arc<Service>,
    waker: Arc<Waker>,
    turn_stream: TurnStream,
    stream: bool,
    waits: bool,
    began: Instant,
    deadline: Instant,
    /// Whether the turn is stopped when its client goes.
    cancels: bool,
    is_over: bool,
    sent: SentText,
    parts: Parts,
}

impl DeferredResponse for Answering {
    fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    fn advance(&mut self) -> ResponsePart {
        if self.parts.is_empty() && !self.is_over {
            self.look();
        }
        match self.parts.next() {
            Some(part) => part,
            None if self.is_over => ResponsePart::Broken,
            None if self.stream => {
                ResponsePart::Wait(self.deadline.min(self.parts.next_keep_alive()))
            }
            None => ResponsePart::Wait(self.deadline),
        }
    }
}

impl Answering {
    fn look(&mut self) {
        let news = self.turn_stream.take();
        let now = Instant::now();
        for progress in news.progress {
            match progress {
                TurnProgress::Text(text) => {
                    let text = self.sent.add(&text);
                    self.parts.text(&text);
                }
                TurnProgress::ToolCall => self.sent.end_round(),
                TurnProgress::AwaitsApproval { tool } => self.say_that_it_waits(&tool),
            }
        }
        if self.is_over {
            return;
        }
        if !news.handed.calls.is_empty() {
            let summary = TurnSummary {
                usage: self.of_response(news.handed.usage),
                calls: news.handed.calls,
                ..self.so_far()
            };
            return self.finish(&news.handed.said, &summary);
        }
        match news.end {
            // These interfaces have no word for it; a reply cut short is none.
            Some(Ok(reply)) if reply.state().is_some() => self.fail(&cancelled()),
            Some(Ok(reply)) => {
                let summary = TurnSummary {
                    usage: self.of_response(reply.usage()),
                    finish_reason: reply.finish_reason(),
                    ..self.so_far()
                };
                self.finish(reply.text(), &summary);
            }
            Some(Err(error)) => self.fail(&error),
            None if news.is_cut => self.fail(&Error::invalid_token(
                "the token is no longer valid; the turn goes on",
            )),
            None if now >= self.deadline => {
                let error = self.late();
                self.fail(&error);
            }
            None if self.stream => self.parts.keep_alive(now),
            None => {}
        }
    }

    /// Says that somebody has to permit a tool. A response that does not wait ends there:
    /// whoever speaks to it would wait in silence. Its turn goes on.
    fn say_that_it_waits(&mut self, tool: &str) {
        let text = format!("Waiting for permission to use {tool}: answer in Hearth.");
        if self.waits {
            let text = self.sent.notice(&text);
            return self.parts.text(&text);
        }
        if !self.is_over {
            let text = format!("{text} {REPLY_FOLLOWS}");
            let summary = TurnSummary {
                usage: self.used_so_far(),
                ..self.so_far()
            };
            self.finish(&text, &summary);
        }
    }

    /// What a turn took that has not ended.
    fn so_far(&self) -> TurnSummary {
        TurnSummary {
            usage: Usage::default(),
            took: self.began.elapsed(),
            finish_reason: None,
            calls: Vec::new(),
        }
    }

    /// Tokens that it has used, as recorded.
    fn used_so_far(&self) -> Usage {
        let (turn, store) = (self.turn_stream.turn(), self.service.store());
        // Their commit may be on its way.
        let turn = store
            .flush()
            .and_then(|()| store.turn(&Viewer::server(), turn));
        turn.map_or_else(|_| Usage::default(), |turn| self.of_response(turn.usage))
    }

    /// Of what a turn has used, what no earlier response has told of.
    fn of_response(&self, all: Usage) -> Usage {
        let before = self.turn_stream.used_before();
        Usage {
            input: all.input.saturating_sub(before.input),
            output: all.output.saturating_sub(before.output),
            cached: all.cached.saturating_sub(before.cached),
        }
    }

    fn finish(&mut self, reply: &str, summary: &TurnSummary) {
        self.is_over = true;
        let rest = self.sent.rest(reply);
        if !self.stream {
            return self.parts.whole(&rest, summary);
        }
        self.parts.text(&rest);
        self.parts.close(summary);
    }

    fn fail(&mut self, error: &Error) {
        self.is_over = true;
        self.parts.fail(error);
    }

    /// The error for a client that has waited for as long as it may.
    fn late(&self) -> Error {
        let turn = self
            .service
            .store()
            .turn(&Viewer::server(), self.turn_stream.turn());
        let waits = turn.is_ok_and(|turn| turn.state == TurnState::WaitingApproval);
        let why = match waits {
            true => "the answer waits for somebody's permission to use a tool",
            false => "the answer is not there yet",
        };
        Error::new(
            Code::ServerError,
            format!("{why}; the turn goes on, and its reply will be in the conversation"),
        )
        .with_status(504)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.cancels && !self.is_over {
            self.turn_stream.cancel();
        }
    }
}
