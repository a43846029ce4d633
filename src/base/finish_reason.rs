//! Why a reply is not whole.

use serde::{Deserialize, Serialize};

/// Why a reply ends before its end. One that is whole has none (protocol section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model reached the limit on its tokens or its window.
    Length,
    /// The provider's filter stopped it.
    ContentFilter,
    /// The model refused to go on.
    Refusal,
    /// The connection to the model was lost, or the turn was ended, after some of the
    /// text had arrived.
    Interrupted,
}

impl FinishReason {
    /// All of them.
    pub const ALL: [FinishReason; 4] = [
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Refusal,
        FinishReason::Interrupted,
    ];

    /// Its name in the protocol and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Length => "length",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::Refusal => "refusal",
            FinishReason::Interrupted => "interrupted",
        }
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<FinishReason> {
        FinishReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == name)
    }
}
