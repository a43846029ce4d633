//! One answer in many forms: what happens until a reply ends, written as each interface has
//! it, whole or piece by piece.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::access::{Exchange, REQUEST_ID, request_id};
use super::options::{IGNORED, ignored_header};
use crate::http::origin::share;
use crate::service::reply_stream::{Progress, ReplyStream};
use agent::model::ModelReply;
use base::error::{Error, Result};
use net::http::{Answer, DeferredResponse, Head, Response, ResponsePart};
use net::wait::Waker;
use store::REPLY_FOLLOWS;

/// How often a client that waits for more is sent something, so that neither it
/// nor a proxy gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Most bytes of a model's thoughts that are passed on with an answer.
const MOST_THOUGHTS: usize = 1024 * 1024;

/// The header with the id of the turn that answers.
const TURN: &str = "X-Hearth-Turn";

/// Says where trying again does not help: OpenAI's libraries do so by themselves. Only 429 and
/// 503 have a time after which it may.
fn final_refusal(mut response: Response) -> Response {
    let is_retry = |(name, _): &(&str, _)| name.eq_ignore_ascii_case("retry-after");
    if !matches!(response.status, 429 | 503) {
        response.headers.retain(|header| !is_retry(header));
    }
    if response.status >= 400 && !response.headers.iter().any(is_retry) {
        response.add("x-should-retry", "false");
    }
    response
}

/// How an interface writes an answer.
pub trait Form: Send {
    /// The type of a streamed answer.
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// The piece of a streamed answer for this event; empty if there is none.
    fn piece(&mut self, event: Event<'_>) -> String {
        let _ = event;
        String::new()
    }

    /// Whether the client asks for what the model thinks.
    fn wants_thoughts(&self) -> bool {
        false
    }

    /// The whole answer, with what the model thought if [`Form::wants_thoughts`].
    fn whole(&self, reply: &ModelReply, thoughts: &str) -> Response;

    /// An error instead of an answer.
    fn refusal(&self, error: &Error) -> Response;
}

/// What happens in a streamed answer, in this order.
pub enum Event<'a> {
    /// It begins.
    Begin,
    /// A piece of text.
    Text(&'a str),
    /// A piece of what the model thinks, for clients that ask for it.
    Thought(&'a str),
    /// A tool of the household is called.
    ToolCall,
    /// Nothing, for so long that the client is sent what it ignores.
    KeepAlive,
    /// The reply is complete, or these calls are the client's to run.
    End(&'a ModelReply),
    /// The reply failed.
    Failed(&'a Error),
}

/// How an answer is sent.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Sending {
    /// Whole.
    #[default]
    Whole,
    /// Piece by piece.
    Streamed,
    /// Whole, unless it takes so long that the client must be told that it is being written.
    WholeIfSoon,
}

impl Sending {
    /// As the client asks with `stream`.
    pub fn of(stream: bool) -> Sending {
        if stream {
            Sending::Streamed
        } else {
            Sending::Whole
        }
    }
}

/// How an answer is given.
#[derive(Default)]
pub struct AnswerOptions {
    pub sending: Sending,
    /// Whether it goes on while somebody is asked for permission. What is spoken, or sent
    /// whole, cannot show that.
    pub waits: bool,
    /// Whether the turn is stopped when the client hangs up.
    pub cancels: bool,
    /// How long it may take.
    pub longest: Duration,
    /// Names of what had no effect in the request, for a header.
    pub ignored: Vec<String>,
    /// What the client has shown to have of the reply.
    pub earlier: String,
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

/// An answer that is being written.
pub struct PendingAnswer {
    stream: ReplyStream,
    form: Box<dyn Form>,
    sending: Sending,
    waits: bool,
    cancels: bool,
    deadline: Instant,
    next_keep_alive: Instant,
    sent: SentText,
    /// What the model thought, as far as it was passed on.
    thoughts: String,
    /// Whether a tool was called since: thoughts that follow are a new beginning.
    thinks_anew: bool,
    /// Headers that do not depend on the form, until they are sent.
    headers: Vec<(&'static str, Cow<'static, str>)>,
    has_begun: bool,
    is_over: bool,
    ready: VecDeque<ResponsePart>,
}

impl DeferredResponse for PendingAnswer {
    fn waker(&self) -> Option<&Arc<Waker>> {
        Some(self.stream.waker())
    }

    fn advance(&mut self) -> ResponsePart {
        if self.ready.is_empty() && !self.is_over {
            self.look();
        }
        match self.ready.pop_front() {
            Some(part) => part,
            None if self.is_over => ResponsePart::Broken,
            None if self.sending == Sending::Whole => ResponsePart::Wait(self.deadline),
            None => ResponsePart::Wait(self.deadline.min(self.next_keep_alive)),
        }
    }
}

impl PendingAnswer {
    /// An answer of which nothing is written.
    pub fn new(
        exchange: &Exchange<'_>,
        stream: ReplyStream,
        form: Box<dyn Form>,
        options: AnswerOptions,
    ) -> PendingAnswer {
        let mut shared = Response::empty(200);
        shared.headers.clear();
        share(&exchange.request.head, exchange.config, &mut shared);
        shared.add(REQUEST_ID, request_id(&exchange.request.head));
        if let Some(turn) = stream.turn() {
            shared.add(TURN, turn.to_string());
        }
        if !options.ignored.is_empty() {
            shared.add(IGNORED, ignored_header(&options.ignored));
        }
        PendingAnswer {
            deadline: stream.deadline(options.longest),
            stream,
            form,
            sending: options.sending,
            waits: options.waits,
            cancels: options.cancels,
            next_keep_alive: Instant::now() + KEEP_ALIVE,
            sent: SentText {
                earlier: options.earlier,
                ..SentText::default()
            },
            thoughts: String::new(),
            thinks_anew: false,
            headers: shared.headers,
            has_begun: false,
            is_over: false,
            ready: VecDeque::new(),
        }
    }

    /// The same as the answer of a handler.
    pub fn deferred(self) -> Answer {
        Answer::Deferred(Box::new(self))
    }

    /// Begins a streamed answer at once, so that it cannot fail with a status any more.
    pub fn begin(&mut self) {
        self.has_begun = true;
        let mut head = Response::empty(200);
        head.headers = vec![
            ("Content-Type", Cow::Borrowed(self.form.content_type())),
            ("X-Content-Type-Options", Cow::Borrowed("nosniff")),
            ("X-Accel-Buffering", Cow::Borrowed("no")),
        ];
        head.headers.append(&mut self.headers);
        self.ready.push_back(ResponsePart::Head(head, None));
        self.push(Event::Begin);
    }

    fn look(&mut self) {
        let news = self.stream.take();
        for progress in news.progress {
            match progress {
                Progress::Text(text) => {
                    if self.is_streamed() {
                        let text = self.sent.add(&text);
                        self.text(&text);
                    }
                }
                Progress::Thought(thought) => self.think(thought),
                Progress::ToolCall => {
                    self.sent.end_round();
                    self.thinks_anew = !self.thoughts.is_empty();
                    if self.has_begun {
                        self.push(Event::ToolCall);
                    }
                }
                Progress::AwaitsApproval { tool } => self.say_that_it_waits(&tool),
            }
            if self.is_over {
                return;
            }
        }
        let now = Instant::now();
        match news.end {
            Some(Ok(reply)) => self.finish(reply),
            Some(Err(error)) => self.fail(&error),
            None if now >= self.deadline => {
                let error = self.stream.late();
                self.fail(&error);
            }
            None if self.sending != Sending::Whole && now >= self.next_keep_alive => {
                self.next_keep_alive = now + KEEP_ALIVE;
                self.push(Event::KeepAlive);
            }
            None => {}
        }
    }

    /// Says that somebody has to permit a tool. An answer that does not wait ends there:
    /// whoever speaks to it would wait in silence. Its turn goes on.
    fn say_that_it_waits(&mut self, tool: &str) {
        let text = format!("Waiting for permission to use {tool}: answer in Hearth.");
        if self.waits {
            let text = self.sent.notice(&text);
            self.text(&text);
        } else {
            self.finish(ModelReply {
                text: format!("{text} {REPLY_FOLLOWS}"),
                usage: self.stream.usage_so_far(),
                ..ModelReply::default()
            });
        }
    }

    fn finish(&mut self, mut reply: ModelReply) {
        self.is_over = true;
        self.stream.answered();
        let rest = self.sent.rest(&reply.text);
        if self.is_streamed() {
            self.text(&rest);
            self.push(Event::End(&reply));
            return self.ready.push_back(ResponsePart::End);
        }
        reply.text = rest;
        self.push_whole(self.form.whole(&reply, &self.thoughts));
    }

    fn fail(&mut self, error: &Error) {
        self.is_over = true;
        if self.has_begun {
            self.push(Event::Failed(error));
            return self.ready.push_back(ResponsePart::End);
        }
        self.push_whole(final_refusal(self.form.refusal(error)));
    }

    fn is_streamed(&self) -> bool {
        self.has_begun || self.sending == Sending::Streamed
    }

    fn think(&mut self, mut thought: String) {
        if !self.form.wants_thoughts() || self.thoughts.len() > MOST_THOUGHTS {
            return;
        }
        if std::mem::take(&mut self.thinks_anew) {
            thought.insert_str(0, "\n\n");
        }
        self.thoughts.push_str(&thought);
        if self.is_streamed() {
            self.push(Event::Thought(&thought));
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(Event::Text(text));
        }
    }

    fn push_whole(&mut self, mut response: Response) {
        response.headers.append(&mut self.headers);
        self.ready.push_back(ResponsePart::Whole(response));
    }

    /// Sends the piece for an event, after the head and the beginning if it is the first.
    fn push(&mut self, event: Event<'_>) {
        if !self.has_begun {
            self.begin();
        }
        let piece = self.form.piece(event).into_bytes();
        if !piece.is_empty() {
            self.next_keep_alive = Instant::now() + KEEP_ALIVE;
            self.ready.push_back(ResponsePart::Piece(piece));
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if self.cancels && !self.is_over {
            self.stream.cancel();
        }
    }
}

/// The text that a stream has sent. The model may write something before it calls
/// a tool; its reply is all that it writes.
#[derive(Default)]
struct SentText {
    /// What the client has shown to have, and what the model wrote before its last call.
    earlier: String,
    /// Since the last call of a tool.
    round: String,
    /// Whether something was sent before that.
    has_earlier: bool,
}

impl SentText {
    /// Notes a piece; returns it as it is to be sent.
    fn add(&mut self, text: &str) -> String {
        let is_first = self.round.is_empty();
        let begins = is_first && !self.has_earlier && !self.earlier.is_empty();
        let text = if begins { text.trim_start() } else { text };
        self.round.push_str(text);
        if is_first && self.has_earlier && !text.starts_with('\n') {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        }
    }

    /// Notes that the model called tools: text that follows is a new beginning.
    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.has_earlier |= !round.is_empty();
        if !self.earlier.is_empty() && !round.trim().is_empty() {
            self.earlier.push_str("\n\n");
        }
        self.earlier.push_str(round.trim());
    }

    /// Notes a text that is no part of the reply; returns it as it is to be sent.
    fn notice(&mut self, text: &str) -> String {
        self.end_round();
        if std::mem::replace(&mut self.has_earlier, true) {
            format!("\n\n{text}")
        } else {
            text.to_owned()
        }
    }

    /// What is still to be sent so that the whole ends in the reply.
    fn rest(&mut self, reply: &str) -> String {
        let reply = match reply.strip_prefix(&self.earlier) {
            Some(rest) => rest.trim_start(),
            None => reply,
        };
        if reply.is_empty() {
            return String::new();
        }
        if !self.round.is_empty() && self.round.trim_end().ends_with(reply.trim()) {
            return String::new();
        }
        match reply.strip_prefix(self.round.trim_start()) {
            Some(rest) => self.add(rest),
            // Another model took over after the first had begun.
            None => {
                self.end_round();
                self.add(reply)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        for (pieces, reply, expected) in [
            (
                &["\n\n", "It is 9."][..],
                "Let me see.\n\nIt is 9.",
                "It is 9.",
            ),
            (&[], "Let me see.\n\nIt is 9.", "It is 9."),
            (&[], "Let me see.", ""),
            (&[], "Something else.", "Something else."),
        ] {
            let mut sent = SentText {
                earlier: "Let me see.".to_owned(),
                ..SentText::default()
            };
            let mut text: String = pieces.iter().map(|piece| sent.add(piece)).collect();
            text += &sent.rest(reply);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_stream_ends_in_the_reply() {
        let table = "
                                  | Hello.    | Hello.
            Hel,lo.               | Hello.    | Hello.
            Hel                   | Hello.    | Hello.
            Hello._               | Hello.    | Hello._
            Let me see.,CALL,It, is 9. | It is 9. | Let me see.\\n\\nIt is 9.
            Let me see.,CALL      | It is 9.  | Let me see.\\n\\nIt is 9.
            CALL,CALL,It is 9.    | It is 9.  | It is 9.
            One. ,CALL,Two,CALL,It | One.\\n\\nTwo\\n\\nIt is 9. | One. \\n\\nTwo\\n\\nIt is 9.
            One.,CALL             | One.      | One.
            It wa                 | Sorry: 9. | It wa\\n\\nSorry: 9.
        ";
        for [pieces, reply, expected] in rows(table) {
            let pieces = pieces.replace('_', " ");
            let [reply, expected] =
                [reply, expected].map(|text| text.replace('_', " ").replace("\\n", "\n"));
            let mut sent = SentText::default();
            let mut text = String::new();
            for piece in pieces.split(',') {
                match piece {
                    "CALL" => sent.end_round(),
                    piece => text += &sent.add(piece),
                }
            }
            text += &sent.rest(&reply);
            assert_eq!(text, expected);
        }
    }
}
