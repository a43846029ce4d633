//! What of a text is compared: its words, and in scripts without spaces runs of
//! characters.

use super::stop_words::{HAN_STOP_CHARACTERS, StopWords, THAI_STOP_WORDS};

/// Characters of a run of Thai, Lao, Khmer or Burmese letters: one syllable or more.
const THAI_RUN: usize = 3;
/// Characters of a run of Hiragana: two are nearly always grammar.
const HIRAGANA_RUN: usize = 3;
/// Characters of a run of Chinese characters, Katakana or Hangul.
const RUN: usize = 2;

/// Where a term comes from, which says how it is compared and what it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Between spaces.
    Word,
    /// The same, but a weekday or the like.
    WeakWord,
    /// A run of characters of a script without spaces.
    Run,
    /// The same of Thai and its like, whose words are of more characters.
    ThaiRun,
    /// A single Chinese character.
    Character,
}

impl Kind {
    /// Whether it stands between spaces.
    pub fn is_word(self) -> bool {
        matches!(self, Kind::Word | Kind::WeakWord)
    }

    /// Runs overlap, and say less each.
    pub fn weight(self) -> f64 {
        match self {
            Kind::Word | Kind::WeakWord => 1.0,
            Kind::Run => 0.33,
            Kind::ThaiRun => 0.24,
            Kind::Character => 0.35,
        }
    }
}

/// One of the terms of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub text: String,
    pub kind: Kind,
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

/// The terms that say what a folded text is about, each once, at most `most`.
pub(super) fn significant_terms(folded: &str, most: usize, stop_words: &StopWords) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    each_term(folded, &mut |kind, text| {
        if terms.len() < most && !terms.iter().any(|term| term.text == text) {
            let text = text.to_owned();
            terms.push(Term { text, kind });
        }
    });
    let words: Vec<&str> = terms.iter().map(|term| term.text.as_str()).collect();
    let mut marks = stop_words.marks(&words).into_iter();
    terms.retain_mut(|term| {
        let (is_stop, is_weak) = marks.next().unwrap_or_default();
        if is_weak {
            term.kind = Kind::WeakWord;
        }
        !is_stop
    });
    terms
}

/// Calls `take` with each term of a folded text, stop words among them.
pub(super) fn each_term(folded: &str, take: &mut dyn FnMut(Kind, &str)) {
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
                for phrase in part.split(|character| HAN_STOP_CHARACTERS.contains(character)) {
                    runs(phrase, 1, |text| take(Kind::Character, text));
                    runs(phrase, RUN, |text| take(Kind::Run, text));
                }
            }
            Script::Katakana => runs(part, RUN, |text| take(Kind::Run, text)),
            Script::Hiragana => runs(part, HIRAGANA_RUN, |text| take(Kind::Run, text)),
            Script::Thai => {
                for phrase in without_thai_stop_words(part) {
                    runs(phrase, THAI_RUN, |text| take(Kind::ThaiRun, text));
                }
            }
            Script::Other => {}
        }
    }
}

/// Takes a part between spaces, if it says something.
fn take_word(part: &str, take: &mut dyn FnMut(Kind, &str)) {
    // Times and amounts are in many memories.
    let is_short_number = part.len() < 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_short_number && part.chars().nth(1).is_some() {
        take(Kind::Word, part);
    }
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
fn without_thai_stop_words(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut place) = (Vec::new(), 0, 0);
    while let Some(character) = text[place..].chars().next() {
        // The longest come first.
        let stop = THAI_STOP_WORDS
            .iter()
            .find(|word| text[place..].starts_with(**word));
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
pub(super) fn fold(text: &str) -> String {
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

/// The letter of an accented one.
fn base_letter(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => 'c',
        'ď' | 'đ' | 'ð' => 'd',
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => 'e',
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => 'g',
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => 'i',
        'ľ' | 'ĺ' | 'ļ' | 'ł' => 'l',
        'ñ' | 'ń' | 'ņ' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => 'o',
        'ŕ' | 'ŗ' | 'ř' => 'r',
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => 's',
        'ţ' | 'ť' | 'ț' => 't',
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        letter => letter,
    }
}
