//! Where a reply is read, and why it is not whole.

use serde::{Deserialize, Serialize};

use crate::words;

/// Where the replies of a conversation are read, or heard: the model writes for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A page that renders Markdown.
    Page,
    /// A terminal, which shows text as it is.
    Terminal,
    /// A loudspeaker.
    Voice,
    /// A program that shows text as it is, or passes it on.
    Plain,
}

words! { Surface {
    Page: "page",
    Terminal: "terminal",
    Voice: "voice",
    Plain: "plain",
} }

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

words! { FinishReason {
    Length: "length",
    ContentFilter: "content_filter",
    Refusal: "refusal",
    Interrupted: "interrupted",
} }
