//! Where replies are read.

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

impl Surface {
    /// Its word in columns and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Surface::Page => "page",
            Surface::Terminal => "terminal",
            Surface::Voice => "voice",
            Surface::Plain => "plain",
        }
    }

    /// The surface of a word.
    pub fn parse(word: &str) -> Option<Surface> {
        let all = [
            Surface::Page,
            Surface::Terminal,
            Surface::Voice,
            Surface::Plain,
        ];
        all.into_iter().find(|surface| surface.as_str() == word)
    }
}
