//! The words of `lexicon.txt`, to be looked up.

use std::sync::LazyLock;

/// What a word tells.
#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    /// A word of grammar of a language.
    Stop { language: usize },
    /// A topic: of what is asked, of what is remembered, or of both.
    Topic {
        topic: u8,
        is_asked: bool,
        is_said: bool,
    },
}

/// The lists, read when they are first needed: that takes longer than all else of a short turn.
pub(crate) static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::read);

/// What the lists say.
pub(crate) struct Lexicon {
    /// Words in order, and whether any ending may follow.
    words: Vec<(&'static str, bool, Meaning)>,
    /// What a word may end with, or have within, if any ending may follow.
    parts: Vec<(&'static str, bool, Meaning)>,
    /// What of scripts without spaces a text may have anywhere.
    anywhere: Vec<(&'static str, Meaning)>,
    pub thai_stop_words: Vec<&'static str>,
    pub han_stop_characters: &'static str,
    topics: Vec<&'static str>,
}

/// How many languages have stop words between spaces.
pub(super) const LANGUAGES: usize = 8;

impl Lexicon {
    /// One that knows no word.
    pub const EMPTY: Lexicon = Lexicon {
        words: Vec::new(),
        parts: Vec::new(),
        anywhere: Vec::new(),
        thai_stop_words: Vec::new(),
        han_stop_characters: "",
        topics: Vec::new(),
    };

    fn read() -> Lexicon {
        let mut lexicon = Lexicon::EMPTY;
        let mut languages = 0..;
        let (mut heading, mut meaning) = ("", Meaning::Stop { language: 0 });
        for line in include_str!("lexicon.txt").lines() {
            if line.starts_with('#') {
                continue;
            }
            if let Some(new) = line.strip_prefix('[') {
                heading = new.trim_end_matches(']');
                let (name, side) = heading.split_once(' ').unwrap_or((heading, ""));
                meaning = match name {
                    "stop" => Meaning::Stop {
                        language: languages.next().unwrap_or_default(),
                    },
                    _ => Meaning::Topic {
                        topic: lexicon.add_topic(name),
                        is_asked: side != "said",
                        is_said: side != "asked",
                    },
                };
                continue;
            }
            match heading {
                "stop thai" => lexicon.thai_stop_words.extend(line.split_whitespace()),
                "stop han" if !line.is_empty() => lexicon.han_stop_characters = line,
                _ => line
                    .split_whitespace()
                    .for_each(|word| lexicon.add(word, meaning)),
            }
        }
        lexicon.words.sort_unstable_by_key(|(word, ..)| *word);
        lexicon
    }

    fn add(&mut self, word: &'static str, meaning: Meaning) {
        let (text, is_open) = (word.trim_matches('-'), word.ends_with('-'));
        match (word.is_ascii(), word.starts_with('-')) {
            (true, false) => self.words.push((text, is_open, meaning)),
            (true, true) => self.parts.push((text, is_open, meaning)),
            (false, _) => self.anywhere.push((word, meaning)),
        }
    }

    fn add_topic(&mut self, name: &'static str) -> u8 {
        self.topic(name).unwrap_or_else(|| {
            self.topics.push(name);
            self.topics.len() as u8 - 1
        })
    }

    /// The number of a topic.
    pub fn topic(&self, name: &str) -> Option<u8> {
        let place = self.topics.iter().position(|topic| *topic == name);
        place.map(|place| place as u8)
    }

    /// What a folded word between spaces tells.
    pub fn of_word(&self, word: &str) -> impl Iterator<Item = Meaning> {
        let ends = word.char_indices().map(|(end, _)| end).skip(2);
        let whole = ends.chain([word.len()]).flat_map(move |end| {
            let first = self
                .words
                .partition_point(|(text, ..)| *text < &word[..end]);
            let same = self.words[first..].iter();
            let same = same.take_while(move |(text, ..)| *text == &word[..end]);
            same.filter(move |(_, is_open, _)| *is_open || end == word.len())
        });
        let parts = self.parts.iter();
        let parts = parts.filter(move |(part, is_open, _)| match is_open {
            true => word.contains(part),
            false => word.ends_with(part),
        });
        whole.chain(parts).map(|(.., meaning)| *meaning)
    }

    /// What a folded text tells in scripts without spaces.
    pub fn of_text(&self, folded: &str) -> impl Iterator<Item = Meaning> {
        // Letters with accents are gone.
        let all = self
            .anywhere
            .iter()
            .filter(move |(text, _)| !folded.is_ascii() && folded.contains(text));
        all.map(|(_, meaning)| *meaning)
    }
}
