//! How each interface writes a response, whole or piece by piece.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::options::{IGNORED, ignored_header};
use crate::http::share;
use base::error::Error;
use base::finish_reason::FinishReason;
use config::Config;
use net::http::{Head, Response, ResponsePart};
use store::{ToolCall, Usage};

/// How often a client that waits for more is sent something, so that neither it
/// nor a proxy gives up.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How an interface writes what happens.
pub trait Form: Send {
    /// The whole response.
    fn whole(&self, reply: &str, summary: &TurnSummary) -> Response;

    /// Status and headers of a streamed response.
    fn head(&self) -> Response;

    /// What precedes the first piece of text.
    fn opening(&self) -> String;

    /// A piece of text.
    fn text(&self, text: &str) -> String;

    /// Something that clients ignore.
    fn keep_alive(&self) -> String;

    /// What follows the last piece.
    fn closing(&self, summary: &TurnSummary) -> String;

    /// An error after the stream has begun.
    fn failure(&self, error: &Error) -> String;

    /// An error instead of a response.
    fn refusal(&self, error: &Error) -> Response;
}

/// What a turn took.
pub struct TurnSummary {
    /// Tokens that it used, as recorded.
    pub usage: Usage,
    /// How long the client waited.
    pub took: Duration,
    /// Why the reply is not whole.
    pub finish_reason: Option<FinishReason>,
    /// What the client is to run itself, instead of a reply.
    pub calls: Vec<ToolCall>,
}

impl TurnSummary {
    /// Why it ended, as these interfaces say it.
    pub fn stop_reason(&self) -> &'static str {
        match self.finish_reason {
            None if !self.calls.is_empty() => "tool_calls",
            None => "stop",
            Some(FinishReason::Length | FinishReason::Interrupted) => "length",
            Some(FinishReason::ContentFilter | FinishReason::Refusal) => "content_filter",
        }
    }
}

/// Status and headers of a streamed response, which proxies must not buffer.
pub fn stream_head(content_type: &'static str) -> Response {
    Response {
        headers: vec![
            ("Content-Type", Cow::Borrowed(content_type)),
            ("X-Content-Type-Options", Cow::Borrowed("nosniff")),
            ("X-Accel-Buffering", Cow::Borrowed("no")),
        ],
        ..Response::empty(200)
    }
}

/// The parts of a response that are ready to be sent.
pub struct Parts {
    form: Box<dyn Form>,
    /// Headers that do not depend on the form; none once they are sent.
    shared: Vec<(&'static str, Cow<'static, str>)>,
    has_begun: bool,
    next_keep_alive: Instant,
    ready: VecDeque<ResponsePart>,
}

impl Parts {
    /// None yet. `ignored` names what the request asked for in vain.
    pub fn new(form: Box<dyn Form>, head: &Head, config: &Config, ignored: &[String]) -> Parts {
        Parts {
            form,
            shared: shared_headers(head, config, ignored),
            has_begun: false,
            next_keep_alive: Instant::now() + KEEP_ALIVE,
            ready: VecDeque::new(),
        }
    }

    /// The next part.
    pub fn next(&mut self) -> Option<ResponsePart> {
        self.ready.pop_front()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// When a client that waits for more is sent something.
    pub fn next_keep_alive(&self) -> Instant {
        self.next_keep_alive
    }

    /// Streams a piece of text, unless it is empty.
    pub fn text(&mut self, text: &str) {
        if !text.is_empty() {
            let piece = self.form.text(text);
            self.push(piece);
        }
    }

    /// Streams something that clients ignore, if it is time for that.
    pub fn keep_alive(&mut self, now: Instant) {
        if now >= self.next_keep_alive {
            let piece = self.form.keep_alive();
            self.push(piece);
        }
    }

    /// Ends a stream.
    pub fn close(&mut self, summary: &TurnSummary) {
        let closing = self.form.closing(summary);
        self.push(closing);
        self.ready.push_back(ResponsePart::End);
    }

    /// Sends the whole response.
    pub fn whole(&mut self, reply: &str, summary: &TurnSummary) {
        let response = self.form.whole(reply, summary);
        self.push_whole(response);
    }

    /// Ends with an error.
    pub fn fail(&mut self, error: &Error) {
        if self.has_begun {
            let failure = self.form.failure(error);
            self.push(failure);
            return self.ready.push_back(ResponsePart::End);
        }
        let mut response = self.form.refusal(error);
        // OpenAI's libraries repeat a request by themselves. Each would be a turn.
        response.add("x-should-retry", "false");
        self.push_whole(response);
    }

    fn push_whole(&mut self, mut response: Response) {
        response.headers.append(&mut self.shared);
        self.ready.push_back(ResponsePart::Whole(response));
    }

    /// Sends something, after the head and opening if it is the first.
    fn push(&mut self, piece: String) {
        self.next_keep_alive = Instant::now() + KEEP_ALIVE;
        if !self.has_begun {
            self.has_begun = true;
            let mut head = self.form.head();
            head.headers.append(&mut self.shared);
            self.ready.push_back(ResponsePart::Head(head));
            let opening = self.form.opening();
            self.ready
                .push_back(ResponsePart::Piece(opening.into_bytes()));
        }
        self.ready
            .push_back(ResponsePart::Piece(piece.into_bytes()));
    }
}

/// The headers of a response that do not depend on its form.
fn shared_headers(
    head: &Head,
    config: &Config,
    ignored: &[String],
) -> Vec<(&'static str, Cow<'static, str>)> {
    let mut shared = Response::empty(200);
    shared.headers.clear();
    share(head, config, &mut shared);
    if !ignored.is_empty() {
        shared.add(IGNORED, ignored_header(ignored));
    }
    shared.headers
}
