//! GET /events: what happens, as server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>), for programs that read
//! and send nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::extension::Context;
use crate::api::access::holder;
use crate::api::new_waker;
use crate::service::event_stream::EventStream;
use base::error::{Error, Result};
use net::http::checks::{bearer, percent_decoded, query};
use net::http::{Answer, DeferredResponse, Response, ResponsePart};
use net::outbox::Close;
use net::wait::Waker;
use protocol::event::EventSet;

/// How often a reader is sent a comment when nothing happens, so that neither it nor a proxy
/// gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// GET /events.
///
/// # Errors
/// `invalid_token`; `invalid_request` for an unknown event, and for a `Last-Event-ID` that is
/// no number; 503 without a descriptor.
pub fn stream(context: &Context<'_>) -> Result<Answer> {
    let head = &context.request.head;
    let identity = context.service.identify_at(&head.peer, &bearer(head)?)?;
    let identity = holder(head, identity)?;
    let wanted = query(head.query.as_deref()).find(|(name, _)| *name == "events");
    let events = match wanted {
        Some((_, names)) => {
            let names = percent_decoded(names);
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            EventSet::of(&names)?
        }
        None => EventSet::ALL,
    };
    let since = head.header("last-event-id").map(|id| {
        id.trim().parse::<u64>().map_err(|_| {
            Error::invalid_request("\"Last-Event-ID\" must be the number (seq) of an event")
        })
    });
    let since = since.transpose()?;
    let waker = new_waker(head)?;
    let (stream, subscribed) = context
        .service
        .stream_events(&identity, events, since, &waker);
    let mut response = Response::empty(200);
    for (name, value) in [
        ("Content-Type", "text/event-stream; charset=utf-8"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Accel-Buffering", "no"),
    ] {
        response.add(name, value);
    }
    let first = json!({
        "type": "subscribed", "seq": subscribed.seq, "events_lost": subscribed.events_lost,
    });
    // What was missed follows, and a reader that has not got it asks for it again.
    let first = match since.filter(|_| !subscribed.events_lost) {
        Some(_) => format!("data: {first}\n\n"),
        None => format!("id: {}\ndata: {first}\n\n", subscribed.seq),
    };
    Ok(Answer::Deferred(Box::new(PendingEvents {
        waker,
        stream,
        ready: [
            ResponsePart::Head(response, None),
            ResponsePart::Piece(first.into_bytes()),
        ]
        .into(),
        lines: Lines::beginning(Instant::now()),
    })))
}

/// A response that ends with its credential.
struct PendingEvents {
    waker: Arc<Waker>,
    stream: EventStream,
    ready: VecDeque<ResponsePart>,
    lines: Lines,
}

/// What is written.
struct Lines {
    next_comment: Instant,
}

impl Lines {
    fn beginning(now: Instant) -> Lines {
        Lines {
            next_comment: now + KEEP_ALIVE,
        }
    }

    /// The events, or a comment if there has been nothing for long; nothing before that.
    fn next(&mut self, events: &[Arc<str>], now: Instant) -> String {
        let mut piece = String::new();
        for event in events {
            let seq = serde_json::from_str::<Value>(event).map(|event| event["seq"].clone());
            let seq = seq.unwrap_or_default();
            piece += &format!("id: {seq}\ndata: {event}\n\n");
        }
        if piece.is_empty() && now >= self.next_comment {
            piece = ": nothing happened\n\n".to_owned();
        }
        if !piece.is_empty() {
            self.next_comment = now + KEEP_ALIVE;
        }
        piece
    }
}

impl PendingEvents {
    fn look(&mut self) {
        let new = self.stream.take();
        let piece = self.lines.next(&new.events, Instant::now());
        if !piece.is_empty() {
            self.ready
                .push_back(ResponsePart::Piece(piece.into_bytes()));
        }
        self.ready.extend(new.close.map(|close| match close {
            // It has missed something, and asks again from where it is.
            Close::TOO_SLOW => ResponsePart::Broken,
            _ => ResponsePart::End,
        }));
    }
}

impl DeferredResponse for PendingEvents {
    fn waker(&self) -> Option<&Arc<Waker>> {
        Some(&self.waker)
    }

    fn advance(&mut self) -> ResponsePart {
        if self.ready.is_empty() {
            self.look();
        }
        let wait = ResponsePart::Wait(self.lines.next_comment);
        self.ready.pop_front().unwrap_or(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_comes_once_nothing_has_for_fifteen_seconds() {
        let begin = Instant::now();
        let mut lines = Lines::beginning(begin);
        let event: Arc<str> = r#"{"seq":7}"#.into();
        let (told, comment) = ("id: 7\ndata: {\"seq\":7}\n\n", ": nothing happened\n\n");
        for (seconds, happens, written) in [
            (14, false, ""),
            (15, false, comment),
            (16, false, ""),
            // An event puts the next comment off.
            (29, true, told),
            (30, false, ""),
            (43, false, ""),
            (44, false, comment),
        ] {
            let events = if happens {
                std::slice::from_ref(&event)
            } else {
                &[]
            };
            let now = begin + Duration::from_secs(seconds);
            assert_eq!(lines.next(events, now), written, "after {seconds} s");
        }
        assert_eq!(lines.next_comment, begin + Duration::from_secs(59));
    }
}
