//! Why a link ended.

use std::fmt;

use tungstenite::protocol::CloseFrame;

use net::dial::shown;

/// Why a link ended, or was not opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server stops it.
    Stopped,
    /// A newer link with the same key has replaced it.
    Replaced,
    /// Anything else, as a sentence for people.
    Lost(String),
}

impl End {
    pub fn lost(reason: impl fmt::Display) -> End {
        End::Lost(reason.to_string())
    }

    /// The relay has closed the link, perhaps with a reason.
    pub fn closed(frame: Option<&CloseFrame>) -> End {
        match frame {
            Some(frame) => End::Lost(format!(
                "the relay closed the link with {}: {}",
                u16::from(frame.code),
                shown(&frame.reason)
            )),
            None => End::lost("the relay closed the link"),
        }
    }
}
