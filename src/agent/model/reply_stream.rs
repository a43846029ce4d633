//! The text of a model's reply on its way to the person, piece by piece if streaming
//! is wanted: without the thoughts and the calls of tools that some models and
//! servers leave in it.

use crate::model::Heard;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
const CALL: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
/// Before a tag of which the text speaks.
const QUOTES: [char; 7] = ['`', '"', '\'', '“', '„', '«', '('];
const SENTENCE_ENDS: [char; 7] = ['.', '!', '?', '…', '。', '！', '？'];

/// Gets text and thoughts as they arrive.
pub type Listener<'a> = &'a mut dyn FnMut(Heard<'_>);

/// Collects the text of one reply.
pub struct ReplyStream<'a> {
    /// Gets the pieces; `None` if nothing is streamed.
    listener: Option<Listener<'a>>,
    /// Whether it got any.
    was_heard: bool,
    was_written: bool,
    /// The text so far.
    text: String,
    /// Where the reply begins in it: after the note.
    begin: usize,
    /// What may be text or not.
    held: String,
    /// How much of that was searched before the newest piece came.
    searched: usize,
    state: State,
    /// Comes before the reply, once there is one.
    note: Option<String>,
    /// The calls in the text.
    calls: Vec<String>,
    /// Whether the reply began with thoughts of which only the end was marked, as far
    /// as this reply tells.
    opens_thinking: Option<bool>,
    /// Whether thoughts have ended: no text after them is thoughts, too.
    had_thoughts: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// In thoughts without a tag at their beginning, if their end comes.
    PerhapsThinking,
    /// In the text: all but what may be a tag is passed on.
    Text,
    /// Between the tags of thoughts.
    Thinking,
    /// After the tag that opens a call.
    Calling,
    /// After thoughts or a call: white space before the text is dropped.
    Trimming,
}

/// What comes next in the text.
enum Next {
    Tag(&'static str),
    /// The text ends with what may become a tag.
    Part,
}

impl<'a> ReplyStream<'a> {
    /// A stream that passes each piece to `listener` immediately.
    pub fn new(listener: Option<Listener<'a>>, note: Option<String>) -> ReplyStream<'a> {
        ReplyStream {
            listener,
            was_heard: false,
            was_written: false,
            text: String::new(),
            begin: 0,
            held: String::new(),
            searched: 0,
            state: State::Text,
            note,
            calls: Vec::new(),
            opens_thinking: None,
            had_thoughts: false,
        }
    }

    /// Expects thoughts without a tag at their beginning: chat templates that end with
    /// the tag leave only its counterpart to the model. Nothing is passed on before
    /// that.
    pub fn expecting_thoughts(mut self) -> ReplyStream<'a> {
        self.state = State::PerhapsThinking;
        self
    }

    /// Takes a piece as the model wrote it.
    pub fn push(&mut self, piece: &str) {
        self.was_written |= !piece.is_empty();
        self.searched = self.held.len();
        self.held.push_str(piece);
        while self.advance() {}
    }

    /// Passes on a piece of what the model thinks.
    pub fn think(&mut self, piece: &str) {
        if let Some(listener) = self.listener.as_mut().filter(|_| !piece.is_empty()) {
            listener(Heard::Thought(piece));
        }
    }

    /// Says that the server sends thoughts apart from the text.
    pub fn thoughts_are_separate(&mut self) {
        if self.state == State::PerhapsThinking {
            self.state = State::Text;
            self.searched = 0;
            while self.advance() {}
        }
    }

    /// Whether the model has written anything, its thoughts included.
    pub fn was_written(&self) -> bool {
        self.was_written
    }

    /// Whether any text was streamed.
    pub fn has_streamed(&self) -> bool {
        self.was_heard
    }

    /// Whether there is any text.
    pub fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// Whether the model's replies begin with thoughts of which only the end is
    /// marked; `None` if this one does not tell. For [`ReplyStream::expecting_thoughts`]
    /// of the next reply.
    pub fn opens_thinking(&self) -> Option<bool> {
        self.opens_thinking
    }

    /// The calls in the text, as the model wrote them, at the end of the reply.
    pub fn take_calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.calls)
    }

    /// The whole text, at the end of the reply, which `is_cut` if it is not whole.
    /// Thoughts that never ended leave none.
    pub fn finish(&mut self, is_cut: bool) -> String {
        if self.state == State::PerhapsThinking && !is_cut {
            self.opens_thinking = (!self.held.trim().is_empty()).then_some(false);
            self.thoughts_are_separate();
        }
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Text if self.has_begun() || !held.trim().is_empty() => self.emit(&held),
            State::Calling => self.calls.push(held),
            _ => {}
        }
        std::mem::take(&mut self.text)
    }

    /// Takes what is held as far as it is clear; returns whether more of it may be.
    fn advance(&mut self) -> bool {
        match self.state {
            State::PerhapsThinking => {
                if self.held.trim_start().starts_with(OPEN) {
                    self.state = State::Text;
                    return true;
                }
                self.end_thoughts()
            }
            State::Thinking => {
                let has_ended = self.end_thoughts();
                if !has_ended {
                    // Only what may be the beginning of the closing tag is kept.
                    let mut done = self.held.len().saturating_sub(CLOSE.len() - 1);
                    while !self.held.is_char_boundary(done) {
                        done += 1;
                    }
                    let thought: String = self.held.drain(..done).collect();
                    self.think(&thought);
                    self.searched = 0;
                }
                has_ended
            }
            State::Calling => self.end_call(),
            State::Trimming => {
                let white = self.held.len() - self.held.trim_start().len();
                self.drop_held(white);
                if !self.held.is_empty() {
                    self.state = State::Text;
                }
                !self.held.is_empty()
            }
            // White space at the beginning may come before a tag.
            State::Text if !self.has_begun() && self.held.trim().is_empty() => false,
            State::Text => self.pass_text(),
        }
    }

    fn pass_text(&mut self) -> bool {
        let (place, next) = match self.next_tag() {
            Some(found) => found,
            None => (self.held.len(), Next::Part),
        };
        if !matches!(next, Next::Tag(CLOSE)) {
            let text: String = self.held.drain(..place).collect();
            if self.has_begun() || !text.trim().is_empty() {
                self.emit(&text);
            }
            self.searched = 0;
        }
        let Next::Tag(tag) = next else {
            return false;
        };
        self.state = match tag {
            OPEN => State::Thinking,
            CALL => State::Calling,
            // All the text before was thoughts. It may have been heard.
            _ => {
                self.text.truncate(self.begin);
                self.opens_thinking = Some(true);
                self.had_thoughts = true;
                self.drop_held(place);
                State::Trimming
            }
        };
        self.drop_held(tag.len());
        true
    }

    /// The first tag in what is held, and where it begins.
    fn next_tag(&self) -> Option<(usize, Next)> {
        self.held.match_indices('<').find_map(|(place, _)| {
            let rest = &self.held[place..];
            let tags = [OPEN, CLOSE, CALL];
            if let Some(tag) = tags.into_iter().find(|tag| rest.starts_with(tag)) {
                let counts = match tag {
                    OPEN => self.begins_line(place) && !self.is_quoted(place),
                    CLOSE => self.ends_thoughts(place),
                    _ => !self.is_quoted(place),
                };
                return counts.then_some((place, Next::Tag(tag)));
            }
            let is_part = tags.iter().any(|tag| tag.starts_with(rest));
            is_part.then_some((place, Next::Part))
        })
    }

    /// Whether the text speaks of the tag at this place of what is held: it is in
    /// quotation marks or among code.
    fn is_quoted(&self, place: usize) -> bool {
        let parts = [&self.text[self.begin..], &self.held[..place]];
        let fences: usize = parts.iter().map(|part| part.matches("```").count()).sum();
        let before = parts.iter().rev().find_map(|part| part.chars().next_back());
        fences % 2 == 1 || before.is_some_and(|before| QUOTES.contains(&before))
    }

    /// Whether only white space comes before this place of what is held, on its line.
    fn begins_line(&self, place: usize) -> bool {
        let before = format!("{}{}", &self.text[self.begin..], &self.held[..place]);
        let line = before.rsplit('\n').next();
        line.is_none_or(|line| line.trim().is_empty())
    }

    /// Whether all before this place of what is held, where a closing tag is, was thoughts
    /// that no tag opened: it stands on a line of its own, or behind a sentence. Elsewhere
    /// the text speaks of the tag.
    fn ends_thoughts(&self, place: usize) -> bool {
        let before = format!("{}{}", &self.text[self.begin..], &self.held[..place]);
        let mut opened = before.match_indices(OPEN);
        let is_named = |place: usize| before[..place].ends_with(QUOTES);
        if self.had_thoughts || opened.any(|(place, _)| !is_named(place)) {
            return false;
        }
        if self.begins_line(place) {
            // In thoughts, code may lack its end.
            return self.state == State::PerhapsThinking || !self.is_quoted(place);
        }
        let sentence = before.trim_end();
        let is_behind = sentence.len() == before.len() || sentence.ends_with(SENTENCE_ENDS);
        is_behind && !self.is_quoted(place)
    }

    /// Drops the thoughts if they end in what is held; returns whether they do.
    fn end_thoughts(&mut self) -> bool {
        let place = match self.state {
            State::PerhapsThinking => self.places(CLOSE).find(|place| self.ends_thoughts(*place)),
            _ => self.places(CLOSE).next(),
        };
        let Some(place) = place else {
            return false;
        };
        self.had_thoughts = true;
        if self.state == State::PerhapsThinking {
            self.opens_thinking = Some(true);
        }
        let thought: String = self.held.drain(..place).collect();
        self.think(&thought);
        self.drop_held(CLOSE.len());
        self.state = State::Trimming;
        true
    }

    /// Takes the call if it ends in what is held, and gives the text back if it is
    /// none.
    fn end_call(&mut self) -> bool {
        let first = self.held.trim_start().chars().next();
        if first.is_some_and(|first| !matches!(first, '{' | '<')) {
            self.emit(CALL);
            self.state = State::Text;
            return true;
        }
        let Some(place) = self.places(CALL_END).next() else {
            return false;
        };
        self.calls.push(self.held[..place].to_owned());
        self.drop_held(place + CALL_END.len());
        self.state = State::Trimming;
        true
    }

    /// Where a tag is in what is held, unless it was there before the newest piece.
    fn places<'s>(&'s self, tag: &'s str) -> impl Iterator<Item = usize> + 's {
        let mut from = self.searched.saturating_sub(tag.len());
        while !self.held.is_char_boundary(from) {
            from -= 1;
        }
        let found = self.held[from..].match_indices(tag);
        found.map(move |(place, _)| from + place)
    }

    fn drop_held(&mut self, length: usize) {
        self.held.drain(..length);
        self.searched = 0;
    }

    fn has_begun(&self) -> bool {
        self.text.len() > self.begin
    }

    fn emit(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(note) = self.note.take() {
            self.emit(&note);
            self.begin = self.text.len();
        }
        self.text.push_str(piece);
        if let Some(listener) = &mut self.listener {
            listener(Heard::Text(piece));
            self.was_heard = true;
        }
    }
}

#[cfg(test)]
mod tests;
