//! What is asked: words, and days.

use super::dates;
use super::index::{each_word, to_term};
use crate::home::recall::lexicon::LEXICON;
use crate::home::recall::terms::{Kind, Side, terms};
use base::clock::Timestamp;

/// Most words that are looked for; the rest is ignored.
const MOST_WORDS: usize = 16;
const MOST_HINTS: usize = 12;
/// Most bytes of a question that are read.
const MOST_BYTES: usize = 4_000;
/// How long a word is that is also looked for at the beginning of others.
const LONG: usize = 5;

/// What a form of the word says, and what begins with it, beside the word.
const OTHER_FORM: f32 = 0.9;
const IRREGULAR_FORM: f32 = 0.8;
const BEGINNING: f32 = 0.5;
/// What a word of grammar weighs.
const GRAMMAR: f64 = 0.2;
/// What words for things of the same kind weigh.
const RELATED: f64 = 0.35;
/// What a run of characters weighs beside a word: runs overlap.
const RUN: f64 = 0.5;
/// What the name of a month or the number of a day weighs: messages seldom have them.
const DATE: f64 = 0.5;

/// Days of the household may begin so much earlier or later than those of UTC.
const HALF_A_DAY: i64 = 12 * 60 * 60 * 1000;

/// One of the words that are looked for.
pub(super) struct Asked {
    /// Folded.
    pub word: String,
    /// Whether it stands for words of the same kind as another.
    pub is_hint: bool,
    kind: Kind,
    /// As the index has it, and then those of its irregular forms.
    terms: Vec<String>,
    /// Whether what begins with it counts, too.
    pub is_beginning: bool,
    pub weight: f64,
}

impl Asked {
    fn new(kind: Kind, word: &str, weight: f64) -> Asked {
        let mut forms = vec![word];
        if kind == Kind::Word {
            forms.extend(beside(include_str!("forms.txt"), word));
        }
        let terms = terms_of(kind, forms.into_iter());
        Asked {
            is_beginning: kind == Kind::Word && terms[0].chars().count() >= LONG,
            word: word.to_owned(),
            is_hint: false,
            kind,
            terms,
            weight,
        }
    }

    /// Words for things of the same kind.
    fn related(word: &str, weight: f64) -> Option<Asked> {
        let others = beside(include_str!("related.txt"), word);
        let of_word = terms_of(Kind::Word, [word].into_iter());
        let mut terms = terms_of(Kind::Word, others.into_iter());
        terms.retain(|term| *term != of_word[0]);
        (!terms.is_empty()).then(|| Asked {
            word: String::new(),
            is_hint: true,
            kind: Kind::Word,
            terms,
            is_beginning: false,
            weight: RELATED * weight,
        })
    }

    /// The query of FTS5 for it. Every term is a string, so that none of the query language
    /// applies (<https://www.sqlite.org/fts5.html>, section 3.1).
    pub fn expression(&self) -> String {
        let mut terms = self.terms.iter().enumerate().map(|(place, term)| {
            let ending = if place == 0 && self.is_beginning {
                "*"
            } else {
                ""
            };
            format!("\"{term}\"{ending}")
        });
        let mut expression = terms.next().unwrap_or_default();
        terms.for_each(|term| expression.push_str(&format!(" OR {term}")));
        format!("({expression})")
    }

    /// Lets what begins with it count: somebody may still be typing it.
    pub fn widen(&mut self) {
        self.terms[0].clone_from(&self.word);
        self.is_beginning = self.kind == Kind::Word;
    }

    /// How much of it a word says, of which `term` is the one in the index.
    pub fn likeness(&self, word: &str, term: &str) -> f32 {
        if self.terms[0] == term {
            return if self.word == word { 1.0 } else { OTHER_FORM };
        }
        if self.terms[1..].iter().any(|other| other == term) {
            return IRREGULAR_FORM;
        }
        match self.is_beginning && term.starts_with(&self.terms[0]) {
            true => BEGINNING,
            false => 0.0,
        }
    }
}

/// What the index has for words, each once.
fn terms_of<'a>(kind: Kind, words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut term, mut terms) = (String::new(), Vec::new());
    for word in words {
        to_term(kind, word, &mut term);
        if !terms.contains(&term) {
            terms.push(term.clone());
        }
    }
    terms
}

/// The words of all lines of a file that have a word, or what the index has for it.
fn beside(file: &'static str, word: &str) -> Vec<&'static str> {
    let of_word = terms_of(Kind::Word, [word].into_iter());
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    let is_same = |other: &str| other == word || of_word[0] == other;
    let found = lines.filter(|line| line.split(' ').any(is_same));
    found.flat_map(|line| line.split(' ')).collect()
}

/// What is looked for.
pub(super) struct Query {
    pub asked: Vec<Asked>,
    /// From when until when it was said, in milliseconds since 1970.
    pub days: Option<(i64, i64)>,
}

impl Query {
    /// The words themselves.
    pub fn words(&self) -> Vec<String> {
        let own = self.asked.iter().filter(|asked| !asked.is_hint);
        own.map(|asked| asked.word.clone()).collect()
    }

    /// What a question asks that comes now.
    pub fn new(text: &str, now: Timestamp) -> Query {
        let text = &text[..text.floor_char_boundary(MOST_BYTES)];
        let mut words: Vec<(Kind, String)> = Vec::new();
        each_word(text, &mut |kind, word| words.push((kind, word.to_owned())));
        let folded: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
        let date = dates::find(&folded, now);

        let of_content = terms(&LEXICON, text, MOST_WORDS, Side::Neither);
        let is_content = |kind: Kind, word: &str| {
            of_content
                .iter()
                .any(|term| term.kind == kind && term.text == word)
        };
        // What the runs of two say already.
        let is_within = |word: &str| {
            let mut longer = of_content
                .iter()
                .filter(|term| term.text.len() > word.len());
            longer.any(|term| term.kind == Kind::Run && term.text.contains(word))
        };
        let mut asked: Vec<Asked> = Vec::new();
        let mut add = |kind: Kind, word: &str, weight: f64| {
            if asked.len() < MOST_WORDS && !asked.iter().any(|one| one.word == word) {
                asked.push(Asked::new(kind, word, weight));
            }
        };
        for (place, (kind, word)) in words.iter().enumerate() {
            let weight = match kind {
                _ if date
                    .as_ref()
                    .is_some_and(|date| date.words.contains(&place)) =>
                {
                    DATE
                }
                Kind::Run if is_within(word) => continue,
                Kind::Run => RUN,
                _ => 1.0,
            };
            if is_content(*kind, word) {
                add(*kind, word, weight);
            }
        }
        // Nothing but words of grammar, or the runs of one character.
        let is_empty = !words.iter().any(|(kind, word)| is_content(*kind, word));
        if is_empty && date.is_none() {
            words.iter().for_each(|(kind, word)| add(*kind, word, 1.0));
        } else if let Some(date) = &date {
            for place in &date.words {
                add(words[*place].0, &words[*place].1, DATE);
            }
        }
        // Hints: words of grammar, and words for things of the same kind.
        let mut hints = Vec::new();
        for (_, word) in words.iter().filter(|(kind, _)| *kind == Kind::Word) {
            let own = asked.iter().find(|one| one.word == *word);
            hints.extend(Asked::related(word, own.map_or(1.0, |own| own.weight)));
            if own.is_none() {
                hints.push(Asked {
                    is_hint: true,
                    is_beginning: false,
                    ..Asked::new(Kind::Word, word, GRAMMAR)
                });
            }
        }
        hints.truncate(MOST_HINTS);
        asked.extend(hints);
        Query {
            asked,
            days: date.map(|date| (date.days.0 - HALF_A_DAY, date.days.1 + HALF_A_DAY)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_its_words_without_those_of_grammar() {
        let now = Timestamp::from_millis(1_795_253_400_125);
        for (question, expected) in [
            ("What did Anna buy for the garden?", "anna buy garden"),
            (
                "Wo haben wir den Schlüssel versteckt?",
                "schlussel versteckt",
            ),
            ("Wer hat den Hund gefüttert", "hund gefuttert"),
            ("will it be", "will it be"),
            ("x", "x"),
            ("", ""),
            (" ** - \" ", ""),
            ("我们的花园", "花园"),
            ("猫在哪里", "猫"),
        ] {
            let words = Query::new(question, now).words();
            assert_eq!(words.join(" "), expected, "{question}");
        }
        let query = Query::new("bought boats", now);
        let own = query.asked.iter().filter(|one| !one.is_hint);
        let expressions: Vec<String> = own.map(Asked::expression).collect();
        assert_eq!(expressions, ["(\"bought\"* OR \"bui\")", "(\"boat\")"]);
    }
}
