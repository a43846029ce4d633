//! Servers of the transport before Streamable HTTP: HTTP+SSE, of the revision 2024-11-05.
//! The server streams all that it says in answer to one GET, and names in the stream's first
//! event the address to which messages are sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};

use super::message;
use super::peer::{CallError, Outcome, Peer, ReadTimeout};
use super::streamable_http::{Exchange, Failure, Shared, is_event_stream};
use super::transport::{Call, Revision, Transport};
use crate::provider::event_stream::EventStream;
use crate::tool::output::shorten;
use base::sync::lock;
use net::cancel::Cancel;
use net::http_client::{ClientError, ClientResponse};
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
        let streams =
            |answer: &mut ClientResponse| Ok(answer.status() == 200 && is_event_stream(answer));
        self.exchange(&ask_for_stream(ANSWER_LIMIT, cancel), streams)
            .unwrap_or_default()
    }

    /// Sends a message of an older server's session.
    fn post(&self, address: &str, message: &[u8], cancel: &Cancel) -> Result<(), CallError> {
        let exchange = Exchange {
            http_method: "POST",
            address: Some(address),
            method: "",
            tool: None,
            body: Some(message),
            timeout: ReadTimeout::within(ANSWER_LIMIT),
            cancel,
        };
        let sent = self.exchange(&exchange, |answer| match answer.status() {
            200..300 => {
                answer.finish();
                Ok(())
            }
            _ => Err(Failure::Call(self.refusal(answer, "")?)),
        });
        sent.map_err(|failure| match failure {
            Failure::Call(error) => error,
            Failure::Connection(ClientError::Cancelled) => CallError::Cancelled,
            Failure::Connection(error) => CallError::Closed(error.to_string()),
        })
    }

    /// Reads the stream to its end: its first event has the address, which goes to `found`.
    fn read_stream(
        &self,
        peer: &Peer,
        found: &Sender<String>,
        stop: &Cancel,
    ) -> Result<(), Failure> {
        self.exchange(&ask_for_stream(STREAM_LIMIT, stop), |answer| {
            if answer.status() != 200 || !is_event_stream(answer) {
                return Err(Failure::Call(self.refusal(answer, "")?));
            }
            let mut address = None;
            let mut events = EventStream::new(answer);
            while let Some(event) = events.next()? {
                if event.name == b"endpoint" {
                    let named = String::from_utf8_lossy(event.data);
                    let resolved = resolve(self.url(), named.trim()).ok_or_else(|| {
                        let why = format!(
                            "the address that it names for messages cannot be used: {}",
                            shorten(named.trim(), 200)
                        );
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

fn ask_for_stream(limit: Duration, cancel: &Cancel) -> Exchange<'_> {
    Exchange {
        http_method: "GET",
        address: None,
        method: "",
        tool: None,
        body: None,
        timeout: ReadTimeout::within(limit),
        cancel,
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
                let reason = match shared.read_stream(&peer, &found, stop) {
                    Ok(()) => "its stream has ended".to_owned(),
                    Err(Failure::Call(error)) => error.to_string(),
                    Err(Failure::Connection(error)) => error.to_string(),
                };
                peer.close(&reason);
            }
        };
        let reading = Task::start(format!("mcp-sse-{}", shared.name), &stop, read)
            .map_err(|error| CallError::Unusable(format!("no thread can be started: {error}")))?;
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
                let reason = reason.unwrap_or_else(|| "it names no address for messages".into());
                return Err(CallError::Unusable(reason));
            }
        }
        Ok(transport)
    }
}

impl Transport for SseTransport {
    fn request(&self, peer: &Peer, request: Call<'_>) -> Outcome {
        let id = request.id;
        let (sender, receiver) = peer.expect(id);
        let hook = move || {
            let _ = sender.try_send(Err(CallError::Cancelled));
        };
        let sent = (self.shared).post(&self.address, &request.message, request.cancel);
        let outcome = match sent {
            Ok(()) => request
                .cancel
                .guard(hook, || peer.wait_for(id, &receiver, &request.timeout)),
            Err(error) => Err(error),
        };
        peer.forget(id);
        match &outcome {
            Err(CallError::Closed(reason)) => peer.close(reason),
            Err(CallError::SessionLost) => peer.close(&CallError::SessionLost.to_string()),
            Err(CallError::Cancelled | CallError::Silent(_) | CallError::TimedOut)
                if request.method != "initialize" =>
            {
                self.notify(message::cancelled(id, "nobody waits any more"));
            }
            _ => {}
        }
        outcome
    }

    fn notify(&self, message: Vec<u8>) {
        if let Err(error) = self.shared.post(&self.address, &message, &self.stop) {
            log::debug!("mcp {}: {error}", self.shared.name);
        }
    }

    fn opened(&self, _: Revision) {}

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
    let is_plain = |letter: char| letter.is_ascii_graphic();
    if named.is_empty() || named.len() > ADDRESS_BYTES || !named.chars().all(is_plain) {
        return None;
    }
    let host = stream.find("://")? + "://".len();
    let end = stream[host..]
        .find(['/', '?', '#'])
        .map_or(stream.len(), |length| host + length);
    let (origin, path) = stream.split_at(end);
    if named.contains("://") && !named.starts_with(['/', '?']) {
        let rest = named.strip_prefix(origin)?;
        return rest.starts_with(['/', '?']).then(|| named.to_owned());
    }
    if named.starts_with("//") {
        return None;
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let folder = match named.starts_with('/') {
        true => "",
        false => path.rfind('/').map_or("/", |end| &path[..=end]),
    };
    Some(format!("{origin}{folder}{named}"))
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
