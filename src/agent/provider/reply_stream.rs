//! The text of a model's reply on its way to the person: without the thoughts that
//! some models put before it, and piece by piece if streaming is wanted.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Collects the text of one reply.
pub struct ReplyStream<'a> {
    /// Gets the pieces; `None` if nothing is streamed.
    listener: Option<&'a mut dyn FnMut(&str)>,
    /// The text so far.
    text: String,
    /// What may be text or thought.
    held: String,
    state: ThoughtState,
    /// Comes before the reply, once there is one.
    note: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum ThoughtState {
    /// Nothing but white space and perhaps a part of the opening tag was seen.
    Beginning,
    /// Between the tags.
    Thinking,
    /// After thoughts: white space before the text is dropped.
    Trimming,
    /// In the text: every piece is passed on.
    Text,
}

impl<'a> ReplyStream<'a> {
    /// A stream that passes each piece to `listener` immediately.
    pub fn new(listener: Option<&'a mut dyn FnMut(&str)>, note: Option<String>) -> ReplyStream<'a> {
        ReplyStream {
            listener,
            text: String::new(),
            held: String::new(),
            state: ThoughtState::Beginning,
            note,
        }
    }

    /// Takes a piece as the model wrote it.
    pub fn push(&mut self, piece: &str) {
        match self.state {
            ThoughtState::Text => self.emit(piece),
            ThoughtState::Trimming => self.trim(piece),
            ThoughtState::Beginning => {
                self.held.push_str(piece);
                let begun = self.held.trim_start();
                if let Some(thought) = begun.strip_prefix(OPEN) {
                    self.held = thought.to_owned();
                    self.state = ThoughtState::Thinking;
                    self.look_for_end();
                } else if !OPEN.starts_with(begun) {
                    self.release();
                }
            }
            ThoughtState::Thinking => {
                self.held.push_str(piece);
                self.look_for_end();
            }
        }
    }

    /// Takes a reply that came whole. Some chat templates give only the closing
    /// tag of the thoughts, which can be recognised only here.
    pub fn push_whole(&mut self, text: &str) {
        self.push(without_thoughts(text));
    }

    /// Whether any text was streamed.
    pub fn has_streamed(&self) -> bool {
        self.listener.is_some() && !self.text.is_empty()
    }

    /// Whether there is any text.
    pub fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// The whole text, at the end of the reply. Thoughts that never ended leave
    /// none.
    pub fn finish(&mut self) -> String {
        if self.state == ThoughtState::Beginning && !self.held.trim_start().is_empty() {
            self.release();
        }
        std::mem::take(&mut self.text)
    }

    fn look_for_end(&mut self) {
        match self.held.find(CLOSE) {
            Some(place) => {
                let rest = self.held.split_off(place + CLOSE.len());
                self.held.clear();
                self.state = ThoughtState::Trimming;
                self.trim(&rest);
            }
            None => {
                // Only what may be the beginning of the closing tag is kept.
                let mut done = self.held.len().saturating_sub(CLOSE.len() - 1);
                while !self.held.is_char_boundary(done) {
                    done += 1;
                }
                self.held.drain(..done);
            }
        }
    }

    fn trim(&mut self, piece: &str) {
        let piece = piece.trim_start();
        if !piece.is_empty() {
            self.state = ThoughtState::Text;
            self.emit(piece);
        }
    }

    fn release(&mut self) {
        self.state = ThoughtState::Text;
        let held = std::mem::take(&mut self.held);
        self.emit(&held);
    }

    fn emit(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(note) = self.note.take() {
            self.emit(&note);
        }
        self.text.push_str(piece);
        if let Some(listener) = &mut self.listener {
            listener(piece);
        }
    }
}

fn without_thoughts(text: &str) -> &str {
    let begun = text.trim_start();
    match begun.split_once(CLOSE) {
        Some((thoughts, rest)) if thoughts.starts_with(OPEN) || !thoughts.contains(OPEN) => {
            rest.trim_start()
        }
        None if begun.starts_with(OPEN) => "",
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: &[(&str, &str)] = &[
        ("Hello <think> you", "Hello <think> you"),
        ("<think>hm</think>\n\nHello", "Hello"),
        ("\n <think>\nh\u{e4}\n</think> Hello  you ", "Hello  you "),
        ("<think></think>Hello", "Hello"),
        ("<thinking>Hello", "<thinking>Hello"),
        ("<thi", "<thi"),
        ("<think>cut off in the mid", ""),
        ("  ", ""),
        ("", ""),
    ];

    #[test]
    fn thoughts_are_never_streamed_however_they_are_cut() {
        for (written, expected) in CASES {
            for size in 1..=written.chars().count().max(1) {
                let mut heard = String::new();
                let mut listener = |piece: &str| heard.push_str(piece);
                let mut reply_stream = ReplyStream::new(Some(&mut listener), None);
                let letters: Vec<char> = written.chars().collect();
                for piece in letters.chunks(size) {
                    reply_stream.push(&piece.iter().collect::<String>());
                }
                let text = reply_stream.finish();
                assert_eq!(&text, expected, "{written:?} in pieces of {size}");
                assert_eq!(heard, text, "{written:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_whole_reply_loses_its_thoughts_too() {
        for (written, expected) in CASES {
            if !written.trim().is_empty() {
                assert_eq!(&without_thoughts(written), expected, "{written:?}");
            }
        }
        assert_eq!(without_thoughts("hm, so\n</think>\n\nHello"), "Hello");
    }

    #[test]
    fn a_note_comes_before_the_reply_and_only_with_one() {
        let mut reply_stream = ReplyStream::new(None, Some("Note. ".to_owned()));
        reply_stream.push("<think>x</think>");
        reply_stream.push("Hello");
        assert_eq!(reply_stream.finish(), "Note. Hello");
        let mut reply_stream = ReplyStream::new(None, Some("Note. ".to_owned()));
        assert_eq!(reply_stream.finish(), "");
    }
}
