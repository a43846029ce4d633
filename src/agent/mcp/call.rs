//! A request to a server: its time limits, and why it has no result.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::message::RpcError;
use base::language::Said;
use net::cancel::Cancel;

/// The method of a request that may have an effect. All others only read.
pub(super) const CALL: &str = "tools/call";
/// The method that begins a session.
pub(super) const INITIALIZE: &str = "initialize";

/// A request to be sent.
pub(super) struct Call<'a> {
    /// Its number, unique within the session.
    pub(super) id: u64,
    /// `tools/call`, ...
    pub(super) method: &'a str,
    /// The tool that it names, if it does.
    pub(super) tool: Option<&'a str>,
    /// The whole message.
    pub(super) message: Vec<u8>,
    pub(super) timeout: ReadTimeout,
    pub(super) cancel: &'a Cancel,
}

/// How long to wait for the answer to a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimeout {
    /// Longest time without an answer or a report of progress.
    pub(super) silence: Duration,
    /// When it must end, regardless of progress.
    pub(super) deadline: Instant,
}

impl ReadTimeout {
    /// The same limit for the silence and for the whole request.
    pub(super) fn within(limit: Duration) -> ReadTimeout {
        ReadTimeout {
            silence: limit,
            deadline: Instant::now() + limit,
        }
    }

    /// How long it may take after the last sign of progress.
    pub(super) fn until(&self, last_activity: Instant) -> Instant {
        let own = last_activity.checked_add(self.silence);
        own.map_or(self.deadline, |own| own.min(self.deadline))
    }

    /// Which of the two limits was reached.
    pub(super) fn exceeded(&self) -> CallError {
        if Instant::now() >= self.deadline {
            CallError::TimedOut
        } else {
            CallError::Silent(self.silence)
        }
    }
}

/// The result of a request, or why it has none.
pub(super) type Outcome = Result<Value, CallError>;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallError {
    /// The server answered with an error.
    Refused(RpcError),
    /// The session has ended, and the server has not seen the request.
    Closed(Said),
    /// The server has forgotten the session, and has not handled the request.
    SessionLost,
    /// The server speaks HTTP+SSE, the transport before Streamable HTTP.
    OlderTransport,
    /// The request could not be sent, or its answer cannot be used.
    Unusable(Said),
    /// The answer was lost: the server may have handled the request.
    Broken(Said),
    /// The server neither answered nor reported progress for this long.
    Silent(Duration),
    /// The time for the request, or for the turn, is up.
    TimedOut,
    /// The turn was stopped, or the server is shutting down.
    Cancelled,
}

impl CallError {
    /// Whether the server may have done what the request asks for, although there is no
    /// answer that says so.
    pub(super) fn may_have_run(&self) -> bool {
        use CallError::{Broken, Cancelled, Silent, TimedOut};
        matches!(self, Broken(_) | Silent(_) | TimedOut | Cancelled)
    }

    /// Whether the server itself has failed, and neither this one request nor only for as long
    /// as it starts or stops.
    pub(super) fn is_of_server(&self) -> bool {
        use CallError::{Cancelled, Closed, Refused, TimedOut, Unusable};
        match self {
            Refused(_) | TimedOut | Cancelled => false,
            Closed(why) | Unusable(why) => !matches!(
                why.key(),
                Some("mcp.starting" | "mcp.stopping" | "mcp.wants_more")
            ),
            _ => true,
        }
    }

    /// Why, for a person.
    pub(super) fn said(&self) -> Said {
        let key = match self {
            CallError::Refused(refusal) => {
                return Said::of("mcp.said", &[("said", &refusal.to_string())]);
            }
            CallError::Closed(why) | CallError::Unusable(why) | CallError::Broken(why) => {
                return why.clone();
            }
            CallError::Silent(limit) => {
                let count = limit.as_secs();
                let key = match count {
                    1 => "mcp.silent.one",
                    _ => "mcp.silent.other",
                };
                return Said::of(key, &[("count", &count.to_string())]);
            }
            CallError::OlderTransport => "mcp.older",
            CallError::SessionLost => "mcp.session_lost",
            CallError::TimedOut => "mcp.time_up",
            CallError::Cancelled => "connection.stopped",
        };
        Said::of(key, &[])
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.said().fmt(f)
    }
}

/// `1 second`, `60 seconds`.
pub(super) fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        1 => "1 second".to_owned(),
        count => format!("{count} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_or_asks_back_has_not_failed() {
        let said = |key: &'static str| Said::of(key, &[]);
        for (error, is_of_server) in [
            (CallError::Closed(said("mcp.starting")), false),
            (CallError::Closed(said("mcp.stopping")), false),
            (CallError::Closed(said("mcp.stream_over")), true),
            (CallError::Unusable(said("mcp.wants_more")), false),
            (CallError::Unusable(said("mcp.refused")), true),
            (CallError::Broken(Said::from("gone")), true),
            (CallError::Silent(Duration::from_secs(1)), true),
            (CallError::TimedOut, false),
            (CallError::Cancelled, false),
        ] {
            assert_eq!(error.is_of_server(), is_of_server, "{error:?}");
        }
    }
}
