//! The words of all memories, each once, and which memory has which.

use std::collections::HashMap;

use super::likeness::{Form, Runs};
use super::stop_words::StopWords;
use super::terms::{Kind, Term, each_term, fold, significant_terms};
use super::topics::{Cues, Topics};

/// Most terms of a memory that are compared with what is said: a long one says what it is
/// about first.
const MOST_TERMS: usize = 128;
/// Most that are looked for: more than the longest memory has.
const ALL_TERMS: usize = 4_096;
/// How many terms of search words say what a memory is about: fewer leave too much out.
const SEARCH_TERMS: usize = 5;
/// Characters of a memory that say what it is about.
const BEGINNING_CHARS: usize = 1_000;

/// The terms of memories and their search words, oldest first, without the words of grammar.
///
/// A memory of a sentence takes about 50 bytes here, and each different word 40.
#[derive(Default)]
pub(crate) struct Vocabulary {
    /// All different terms, one after the other.
    text: String,
    words: Vec<Word>,
    /// The terms of all memories, as places in `words`.
    terms: Vec<u32>,
    memories: Vec<Entry>,
    /// What is looked up while memories are added; made when first needed.
    tables: Option<Box<Tables>>,
}

/// A different term of the memories.
struct Word {
    /// Where its text ends, which begins where that of the one before ends.
    end: u32,
    /// The topics for which a memory that has it is wanted.
    topics: Topics,
    runs: Runs,
    stem_length: u32,
    kind: Kind,
}

struct Entry {
    /// Where the terms of its text end, and those of its search words after them.
    text_end: u32,
    end: u32,
    topics: Topics,
    is_update: bool,
}

/// What of a message and a text is looked up.
#[derive(Default)]
pub(super) struct Tables {
    pub stop_words: StopWords,
    pub cues: Cues,
}

/// A term and what is known of it.
pub(super) struct Known<'a> {
    pub form: Form<'a>,
    pub kind: Kind,
}

impl Vocabulary {
    /// How many memories there are.
    pub fn len(&self) -> usize {
        self.memories.len()
    }

    /// Adds memories after those that are there: their texts with their search words.
    pub fn add<'a>(&mut self, memories: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut places: HashMap<String, u32> = (0..self.words.len())
            .map(|place| (self.word(place).form.text.to_owned(), place as u32))
            .collect();
        let tables = self.tables.take().unwrap_or_default();
        for (text, search_words) in memories {
            let folded = fold(text);
            let end = folded.char_indices().nth(BEGINNING_CHARS);
            let beginning = &folded[..end.map_or(folded.len(), |(end, _)| end)];
            let (mut topics, mut is_update) = tables.cues.of_unspaced_memory(beginning);
            // What says that something has changed is often a word of grammar.
            each_term(beginning, &mut |kind, text| {
                is_update |= kind == Kind::Word && tables.cues.is_update(text);
            });
            let mut place_of = |term: Term| {
                places.get(&term.text).copied().unwrap_or_else(|| {
                    let topics = match term.kind {
                        Kind::Word => tables.cues.said(&term.text),
                        _ => Topics::default(),
                    };
                    let form = Form::of(&term.text);
                    self.text.push_str(&term.text);
                    self.words.push(Word {
                        end: self.text.len() as u32,
                        topics,
                        runs: form.runs,
                        stem_length: form.stem.len() as u32,
                        kind: term.kind,
                    });
                    let place = self.words.len() as u32 - 1;
                    places.insert(term.text, place);
                    place
                })
            };
            let terms_of = |folded: &str| significant_terms(folded, ALL_TERMS, &tables.stop_words);
            let begin = self.terms.len();
            let of_text = terms_of(&folded).into_iter().map(&mut place_of);
            self.terms.extend(of_text);
            let text_end = self.terms.len();
            for place in terms_of(&fold(search_words)).into_iter().map(place_of) {
                if !self.terms[begin..].contains(&place) {
                    self.terms.push(place);
                }
            }
            for place in self.terms[begin..text_end].iter().take(MOST_TERMS) {
                topics |= self.words[*place as usize].topics;
            }
            self.memories.push(Entry {
                text_end: text_end as u32,
                end: self.terms.len() as u32,
                topics,
                is_update,
            });
        }
        self.tables = Some(tables);
    }

    /// What a message is looked up in.
    pub(super) fn tables(&mut self) -> &Tables {
        self.tables.get_or_insert_default()
    }

    pub(super) fn words(&self) -> impl Iterator<Item = Known<'_>> {
        (0..self.words.len()).map(|place| self.word(place))
    }

    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn word(&self, place: usize) -> Known<'_> {
        let begin = match place {
            0 => 0,
            place => self.words[place - 1].end as usize,
        };
        let word = &self.words[place];
        let text = &self.text[begin..word.end as usize];
        Known {
            form: Form {
                text,
                stem: &text[..word.stem_length as usize],
                runs: word.runs,
            },
            kind: word.kind,
        }
    }

    /// The terms that say what a memory is about, each once, in the order of its text.
    pub(super) fn terms(&self, memory: usize) -> &[u32] {
        let terms = self.all_terms(memory);
        &terms[..terms.len().min(MOST_TERMS)]
    }

    /// All terms of the text of a memory.
    pub(super) fn all_terms(&self, memory: usize) -> &[u32] {
        let begin = match memory {
            0 => 0,
            memory => self.memories[memory - 1].end as usize,
        };
        &self.terms[begin..self.memories[memory].text_end as usize]
    }

    /// The terms of the search words of a memory that are not in its text.
    pub(super) fn search_terms(&self, memory: usize) -> &[u32] {
        let Entry { text_end, end, .. } = self.memories[memory];
        &self.terms[text_end as usize..end as usize]
    }

    /// Whether a memory has enough search words to say what it is about.
    pub(super) fn is_worded(&self, memory: usize) -> bool {
        self.search_terms(memory).len() >= SEARCH_TERMS
    }

    /// The term that a memory begins with, which often is whom it is about.
    pub(super) fn first_term(&self, memory: usize) -> Option<usize> {
        let mut terms = self.terms(memory).iter().map(|term| *term as usize);
        terms.find(|term| self.words[*term].kind != Kind::Character)
    }

    pub(super) fn topics(&self, memory: usize) -> Topics {
        self.memories[memory].topics
    }

    /// Whether a memory says that something has changed.
    pub(super) fn is_update(&self, memory: usize) -> bool {
        self.memories[memory].is_update
    }
}
