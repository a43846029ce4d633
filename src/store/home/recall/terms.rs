//! What of a text is compared: its words, in scripts without spaces runs of characters, and
//! the topics that these tell.

use super::lexicon::{LANGUAGES, Lexicon, Meaning};

/// Characters of a run of Hiragana, where two are nearly always grammar, and of Thai, Lao,
/// Khmer or Burmese letters: one syllable or more.
const LONG_RUN: usize = 3;
/// Characters of a run of Chinese characters, Katakana or Hangul.
const RUN: usize = 2;

/// Where a term comes from, which says how it is compared and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Between spaces.
    Word,
    /// A run of characters of a script without spaces, or a single Chinese one.
    Run,
    /// What words tell.
    Topic(u8),
}

/// One of the terms of a text.
pub(crate) struct Term {
    pub text: String,
    pub kind: Kind,
    /// The topics that it tells, by bit.
    topics: u32,
}

impl Term {
    /// Whether it is a word that tells this topic.
    pub fn tells(&self, topic: u8) -> bool {
        self.topics >> topic & 1 == 1
    }
}

/// Whose topics are looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// A message's.
    Asked,
    /// A memory's.
    Said,
    /// None.
    Neither,
}

/// The terms that say what a text is about, each once, its topics last; of at most so many.
pub(crate) fn terms(lexicon: &Lexicon, text: &str, most: usize, side: Side) -> Vec<Term> {
    let topic_of = |meaning: Meaning| match meaning {
        Meaning::Topic {
            topic,
            is_asked,
            is_said,
        } if (side == Side::Asked && is_asked) || (side == Side::Said && is_said) => 1 << topic,
        _ => 0,
    };
    let folded = fold(text);
    let mut terms: Vec<Term> = Vec::new();
    // The languages of which each is a stop word.
    let mut stops: Vec<u32> = Vec::new();
    each_term(lexicon, &folded, &mut |kind, text| {
        let says_something = kind != Kind::Word || says_something(text);
        if says_something && terms.len() < most && !terms.iter().any(|term| term.text == text) {
            let (mut topics, mut languages) = (0u32, 0);
            let meanings = lexicon.of_word(text).filter(|_| kind == Kind::Word);
            meanings.for_each(|meaning| match meaning {
                Meaning::Stop { language } => languages |= 1 << language,
                topic => topics |= topic_of(topic),
            });
            let text = text.to_owned();
            terms.push(Term { text, kind, topics });
            stops.push(languages);
        }
    });
    let of_text = lexicon.of_text(&folded).map(topic_of);
    let of_words = terms.iter().map(|term| term.topics);
    let topics = of_text.chain(of_words).fold(0, |all, topics| all | topics);
    // "bin" is a word of grammar in German alone: those of the likely languages go.
    let count = |language: usize| {
        stops
            .iter()
            .filter(|stop| **stop >> language & 1 == 1)
            .count()
    };
    let counts: [usize; LANGUAGES] = std::array::from_fn(count);
    let most = counts.iter().max().copied().unwrap_or(0);
    let likely = (0..LANGUAGES).filter(|language| 2 * counts[*language] >= most);
    let stopped = likely.fold(0, |all, language| all | 1 << language);
    let mut stops = stops.into_iter();
    terms.retain(|_| stops.next().is_none_or(|stop| stop & stopped == 0));
    let topics = (0..u32::BITS as u8).filter(|topic| topics >> topic & 1 == 1);
    terms.extend(topics.map(|topic| Term {
        text: format!("#{topic}"),
        kind: Kind::Topic(topic),
        topics: 0,
    }));
    terms
}

/// The languages that a text may be in, by bit: those of its scripts, or those of which it has
/// most words of grammar. None if nothing tells.
pub(crate) fn languages(lexicon: &Lexicon, text: &str) -> u32 {
    let folded = fold(text);
    let scripts = folded.chars().map(script);
    let of_script = scripts.fold(0, |all, script| match script {
        Script::Thai => all | 1 << LANGUAGES,
        Script::Hiragana | Script::Katakana => all | 2 << LANGUAGES,
        Script::Han => all | 4 << LANGUAGES,
        _ => all,
    });
    if of_script != 0 {
        // Japanese has Chinese characters, too.
        return match of_script >> LANGUAGES & 2 {
            0 => of_script,
            _ => of_script & !(4 << LANGUAGES),
        };
    }
    let mut counts = [0; LANGUAGES];
    each_term(lexicon, &folded, &mut |_, text| {
        for meaning in lexicon.of_word(text) {
            if let Meaning::Stop { language } = meaning {
                counts[language] += 1;
            }
        }
    });
    let most = counts.iter().max().copied().unwrap_or(0);
    let likely = (0..LANGUAGES).filter(|language| most > 0 && counts[*language] == most);
    likely.fold(0, |all, language| all | 1 << language)
}

/// The script of a part of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Spaced,
    Han,
    Katakana,
    Hiragana,
    Thai,
    Other,
}

/// Calls `take` with each term of a folded text, stop words among them.
pub(crate) fn each_term(lexicon: &Lexicon, folded: &str, take: &mut dyn FnMut(Kind, &str)) {
    if folded.is_ascii() {
        // Most texts, and nearly all of their cost.
        for part in folded.split(|character: char| !character.is_ascii_alphanumeric()) {
            take_word(part, take);
        }
        return;
    }
    let mut rest = folded;
    while let Some(first) = rest.chars().next() {
        let script = script(first);
        let end = rest
            .find(|character| self::script(character) != script)
            .unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        match script {
            Script::Spaced => take_word(part, take),
            Script::Han => {
                let is_stop = |character| lexicon.han_stop_characters.contains(character);
                for phrase in part.split(is_stop) {
                    // What a memory begins with is a name, and many begin with one character.
                    runs(phrase, RUN, |text| take(Kind::Run, text));
                    runs(phrase, 1, |text| take(Kind::Run, text));
                }
            }
            Script::Katakana => runs(part, RUN, |text| take(Kind::Run, text)),
            Script::Hiragana => runs(part, LONG_RUN, |text| take(Kind::Run, text)),
            Script::Thai => {
                for phrase in without_thai_stop_words(lexicon, part) {
                    runs(phrase, LONG_RUN, |text| take(Kind::Run, text));
                }
            }
            Script::Other => {}
        }
    }
}

fn take_word(part: &str, take: &mut dyn FnMut(Kind, &str)) {
    if !part.is_empty() {
        take(Kind::Word, part);
    }
}

/// Whether a word may say what a text is about. Times and amounts are in many.
fn says_something(word: &str) -> bool {
    let is_short_number = word.len() < 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    !is_short_number && word.chars().nth(1).is_some()
}

/// All parts of this many characters that follow one another.
fn runs(text: &str, characters: usize, mut take: impl FnMut(&str)) {
    let mut ends = text
        .char_indices()
        .map(|(start, character)| start + character.len_utf8())
        .skip(characters - 1);
    for (start, _) in text.char_indices() {
        match ends.next() {
            Some(end) => take(&text[start..end]),
            None => return,
        }
    }
}

/// The parts of a Thai text between its stop words.
fn without_thai_stop_words<'a>(lexicon: &Lexicon, text: &'a str) -> Vec<&'a str> {
    let (mut parts, mut begin, mut place) = (Vec::new(), 0, 0);
    while let Some(character) = text[place..].chars().next() {
        // The longest come first.
        let mut stops = lexicon.thai_stop_words.iter();
        let stop = stops.find(|word| text[place..].starts_with(**word));
        match stop {
            Some(word) => {
                parts.push(&text[begin..place]);
                place += word.len();
                begin = place;
            }
            None => place += character.len_utf8(),
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn script(character: char) -> Script {
    match character {
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Script::Thai,
        '\u{3041}'..='\u{309f}' => Script::Hiragana,
        '\u{30a1}'..='\u{30ff}' | '\u{ac00}'..='\u{d7af}' => Script::Katakana,
        '\u{3005}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{20000}'..='\u{3ffff}' => Script::Han,
        // Vowel signs of the scripts of India are part of their words.
        '\u{900}'..='\u{dff}' => Script::Spaced,
        _ if character.is_alphanumeric() => Script::Spaced,
        _ => Script::Other,
    }
}

/// A text in lower case, without accents.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            folded.push(character.to_ascii_lowercase());
            continue;
        }
        // Full-width letters and digits.
        let character = match character {
            '\u{ff01}'..='\u{ff5e}' => {
                char::from_u32(character as u32 - 0xfee0).unwrap_or(character)
            }
            character => character,
        };
        for lower in character.to_lowercase() {
            match lower {
                'ß' => folded.push_str("ss"),
                'æ' => folded.push_str("ae"),
                'œ' => folded.push_str("oe"),
                // Accents that follow their letter.
                '\u{300}'..='\u{36f}' => {}
                lower => folded.push(base_letter(lower)),
            }
        }
    }
    folded
}

/// Letters, each with its accented ones.
const ACCENTED: [&str; 15] = [
    "aàáâãäåāăą",
    "cçćĉċč",
    "dďđð",
    "eèéêëēĕėęě",
    "gĝğġģ",
    "iìíîïĩīĭįı",
    "lľĺļł",
    "nñńņň",
    "oòóôõöøōŏő",
    "rŕŗř",
    "sśŝşšș",
    "tţťț",
    "uùúûüũūŭůűų",
    "yýÿ",
    "zźżž",
];

/// The letter of an accented one.
fn base_letter(letter: char) -> char {
    let group = ACCENTED.iter().find(|group| group.contains(letter));
    group
        .and_then(|group| group.chars().next())
        .unwrap_or(letter)
}
