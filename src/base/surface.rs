//! Where replies are read.

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
