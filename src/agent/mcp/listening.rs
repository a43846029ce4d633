//! The event stream on which a network server sends notifications.

use std::time::Duration;

use super::peer::{CallError, Peer, ReadTimeout};
use super::streamable_http::{Exchange, Failure, Shared, is_event_stream};
use net::cancel::Cancel;
use net::http_client::ClientError;

/// How long one stream may last before it is reopened.
const LISTEN_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// First and longest pause before a stream that ended is reopened.
const LISTEN_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

impl Shared {
    /// Reads the server's notifications until `stop`, the end of the session, or
    /// an answer that says the server offers no stream.
    pub(super) fn listen(&self, peer: &Peer, subscription: Option<&[u8]>, stop: &Cancel) {
        let (first_pause, longest_pause) = LISTEN_PAUSES;
        let mut pause = first_pause;
        let mut was_open = false;
        loop {
            let exchange = Exchange {
                http_method: match subscription {
                    Some(_) => "POST",
                    None => "GET",
                },
                address: None,
                method: "subscriptions/listen",
                tool: None,
                body: subscription,
                timeout: ReadTimeout::within(LISTEN_LIMIT),
                cancel: stop,
            };
            let listened = self.exchange(&exchange, |answer| {
                let status = answer.status();
                if status == 200 && is_event_stream(answer) {
                    was_open = true;
                    pause = first_pause;
                    self.read_events(answer, peer, &exchange.timeout, None)?;
                }
                Ok(status)
            });
            match listened {
                Ok(200) if was_open => {}
                // The stream was offered before: the session is lost.
                Ok(400 | 404) if was_open => {
                    return peer.close(&CallError::SessionLost.to_string());
                }
                Ok(500..) if was_open => {}
                Ok(status) => {
                    log::debug!("mcp {}: offers no stream (status {status})", self.name);
                    return;
                }
                Err(Failure::Connection(ClientError::Cancelled)) => return,
                Err(Failure::Connection(
                    error @ (ClientError::Unreachable(_) | ClientError::Refused(_)),
                )) => {
                    return peer.close(&error.to_string());
                }
                Err(Failure::Connection(error)) => log::debug!("mcp {}: {error}", self.name),
                Err(Failure::Call(error)) => log::debug!("mcp {}: {error}", self.name),
            }
            if stop.wait(pause) {
                return;
            }
            pause = (pause * 2).min(longest_pause);
        }
    }
}
