//! Servers of the transport before Streamable HTTP: HTTP+SSE, of the revision 2024-11-05.
//! The server streams all that it says in answer to one GET, and names in the stream's first
//! event the address to which messages are sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};

use super::call::{Call, CallError, ReadTimeout};
use super::exchange::{Exchange, Failure, Shared, is_event_stream};
use super::message;
use super::peer::Peer;
use super::session::Transport;
use crate::model::event_stream::EventStream;
use crate::tools::join;
use crate::tools::output::shorten;
use base::language::Said;
use base::sync::lock;
use base::url::Url;
use net::cancel::Cancel;
use net::task::Task;

/// How long a server may take to name the address for messages, and to take one.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long the stream may last before everything begins anew.
const STREAM_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Longest address for messages, in bytes.
const ADDRESS_BYTES: usize = 4_000;

/// A session with such a server: it lasts as long as its stream.
pub(super) struct SseTransport {
    shared: Arc<Shared>,
    /// Where messages are sent.
    address: String,
    reading: Mutex<Option<Task>>,
    stop: Cancel,
}

impl Shared {
    /// Whether the address streams events to whoever asks.
    pub(super) fn is_of_older_revision(&self, cancel: &Cancel) -> bool {
        let exchange = Exchange::stream("", ReadTimeout::within(ANSWER_LIMIT), cancel);
        self.exchange(&exchange, |answer| {
            Ok(answer.status() == 200 && is_event_stream(answer))
        })
        .unwrap_or_default()
    }

    /// Sends a message of an older server's session.
    fn post(&self, address: &str, message: &[u8], cancel: &Cancel) -> Result<(), CallError> {
        let timeout = ReadTimeout::within(ANSWER_LIMIT);
        let exchange = Exchange::post(Some(address), message, timeout, cancel);
        let sent = self.exchange(&exchange, |answer| match answer.status() {
            200..300 => {
                answer.finish();
                Ok(())
            }
            _ => Err(Failure::Call(self.refusal(answer, "")?)),
        });
        sent.map_err(|failure| failure.into_call_error(&timeout))
    }

    /// Reads the stream to its end: its first event has the address, which goes to `found`.
    fn read_stream(
        &self,
        peer: &Peer,
        found: &Sender<String>,
        stop: &Cancel,
    ) -> Result<(), Failure> {
        let exchange = Exchange::stream("", ReadTimeout::within(STREAM_LIMIT), stop);
        self.exchange(&exchange, |answer| {
            if answer.status() != 200 || !is_event_stream(answer) {
                return Err(Failure::Call(self.refusal(answer, "")?));
            }
            let mut address = None;
            let mut events = EventStream::new(answer);
            while let Some(event) = events.next()? {
                if event.name == b"endpoint" {
                    let named = String::from_utf8_lossy(event.data);
                    let resolved = resolve(&self.url, named.trim()).ok_or_else(|| {
                        let shown = shorten(named.trim(), 200);
                        let why = Said::of("mcp.wrong_address", &[]).with("address", shown);
                        Failure::Call(CallError::Unusable(why))
                    })?;
                    let _ = found.try_send(resolved.clone());
                    address = Some(resolved);
                    continue;
                }
                for incoming in message::read(event.data).into_iter().flatten() {
                    if let (Some(answer), Some(address)) = (peer.receive(incoming), &address)
                        && let Err(error) = self.post(address, &answer, stop)
                    {
                        log::debug!("mcp {}: {error}", self.name);
                    }
                }
            }
            Ok(())
        })
    }
}

impl SseTransport {
    /// Opens the stream, which a thread reads from then on.
    ///
    /// # Errors
    /// It does not open, or names no usable address.
    pub(super) fn open(
        shared: Arc<Shared>,
        peer: &Arc<Peer>,
        cancel: &Cancel,
    ) -> Result<SseTransport, CallError> {
        let (found, address) = bounded(1);
        let stop = Cancel::default();
        let read = {
            let (shared, peer) = (Arc::clone(&shared), Arc::clone(peer));
            move |stop: &Cancel| {
                let limit = ReadTimeout::within(STREAM_LIMIT);
                match shared.read_stream(&peer, &found, stop) {
                    Ok(()) => peer.close(Said::of("mcp.stream_over", &[])),
                    Err(failure) => peer.close(failure.into_call_error(&limit).said()),
                }
            }
        };
        let reading =
            Task::start(format!("mcp-sse-{}", shared.name), &stop, read).map_err(|error| {
                CallError::Unusable(format!("no thread can be started: {error}").into())
            })?;
        let mut transport = SseTransport {
            shared,
            address: String::new(),
            reading: Mutex::new(Some(reading)),
            stop: stop.clone(),
        };
        // The thread drops its end when the stream cannot be read.
        let named = cancel.guard(move || stop.cancel(), || address.recv_timeout(ANSWER_LIMIT));
        match named {
            Ok(named) => transport.address = named,
            Err(_) if cancel.is_cancelled() => return Err(CallError::Cancelled),
            Err(_) => {
                let reason = peer.closed();
                let reason = reason.unwrap_or_else(|| Said::of("mcp.no_address", &[]));
                return Err(CallError::Unusable(reason));
            }
        }
        Ok(transport)
    }
}

impl Transport for SseTransport {
    fn send(&self, _: &Peer, request: &Call<'_>) -> Result<(), CallError> {
        (self.shared).post(&self.address, &request.message, request.cancel)
    }

    fn notify(&self, message: Vec<u8>) {
        if let Err(error) = self.shared.post(&self.address, &message, &self.stop) {
            log::debug!("mcp {}: {error}", self.shared.name);
        }
    }

    fn listen(&self, _: &Arc<Peer>, _: Option<Vec<u8>>) {}

    fn close(&self, _: bool) {
        self.stop.cancel();
        let reading = lock(&self.reading).take();
        drop(reading);
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.close(true);
    }
}

/// The address for messages, which may be relative to that of the stream. Another server's
/// would get the headers that are meant for this one.
fn resolve(stream: &str, named: &str) -> Option<String> {
    let is_plain = named.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || named.starts_with("//") || !(1..=ADDRESS_BYTES).contains(&named.len()) {
        return None;
    }
    let (base, url) = (
        Url::parse(stream).ok()?,
        Url::parse(&join(stream, named)).ok()?,
    );
    let user = url.user.clone().or(base.user.clone());
    let is_same = url.origin() == base.origin() && user == base.user;
    is_same.then(|| Url { user, ..url }.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn the_address_for_messages_is_of_the_same_server() {
        let table = "
            http://a.lan:1/sse          | /messages?session=1          | http://a.lan:1/messages?session=1
            http://a.lan:1/mcp/sse?x=/y | messages/1                   | http://a.lan:1/mcp/messages/1
            http://a.lan:1              | messages                     | http://a.lan:1/messages
            http://a.lan/sse            | http://a.lan/m?next=http://b | http://a.lan/m?next=http://b
            http://a.lan/sse            | /m?next=http://b             | http://a.lan/m?next=http://b
            http://a.lan/sse            | http://b.lan/m               | -
            http://a.lan/sse            | http://a.lan.evil/m          | -
            http://a.lan/sse            | http://a.lan@evil/m          | -
            http://a.lan/sse            | https://a.lan/m              | -
            http://a.lan/sse            | //b.lan/m                    | -
            http://a.lan/sse            | /m\\u{a0}                    | -
        ";
        for [stream, named, expected] in rows(table) {
            let named = named.replace("\\u{a0}", "\u{a0}");
            let found = resolve(stream, &named);
            assert_eq!(
                found.as_deref().unwrap_or("-"),
                expected,
                "{stream} {named}"
            );
        }
        assert_eq!(resolve("http://a.lan/sse", ""), None);
        assert_eq!(resolve("http://a.lan/sse", "/a b"), None);
    }
}
