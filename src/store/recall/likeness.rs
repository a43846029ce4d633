//! How alike two words are: inflections, and parts of compounds.

/// Endings of inflection in the common European languages, the longest first.
const ENDINGS: [&str; 26] = [
    "ingen", "innen", "ungen", "enes", "erne", "ende", "ing", "ene", "ern", "ers", "est", "ies",
    "es", "en", "er", "et", "ed", "as", "os", "s", "n", "e", "t", "r", "a", "o",
];
/// Characters that a word keeps when it loses an ending.
const STEM: usize = 4;
/// Characters of a prefix that two forms of a word share.
const PREFIX: usize = 5;
/// The share of the longer word that this prefix is, in tenths.
const PREFIX_TENTHS: usize = 7;
/// Characters of a word at the end of a compound, whose subject it is.
const LAST_PART: usize = 4;
/// Characters of a word at the beginning of a compound.
const FIRST_PART: usize = 6;
/// Most characters of the ending after the last part.
const PART_ENDING: usize = 1;
/// Characters of the last part that two compounds share.
const SHARED_PART: usize = 6;

/// How alike two folded words are, from 0 (not) to 1 (the same).
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    // A number is that number or another one.
    if starts_with_digit(one) || starts_with_digit(other) {
        return 0.0;
    }
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let prefix = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b);
    let prefix = prefix.count();
    if prefix >= STEM && stem(one) == stem(other) {
        return 1.0;
    }
    if prefix >= PREFIX && 10 * prefix >= PREFIX_TENTHS * long.len() {
        return 0.9;
    }
    if is_part(short, long) {
        // A short one may be there by chance.
        return if short.len() > LAST_PART { 0.7 } else { 0.5 };
    }
    let ends = short.bytes().rev().zip(long.bytes().rev());
    match ends.take_while(|(a, b)| a == b).count() >= SHARED_PART {
        true => 0.7,
        false => 0.0,
    }
}

/// Whether the shorter word is the last part of the longer one, or a long first part.
fn is_part(short: &str, long: &str) -> bool {
    // Cheaper than a stem, and nearly always the answer.
    let Some(begin) = short.as_bytes().get(..LAST_PART) else {
        return false;
    };
    if !long.as_bytes().windows(LAST_PART).any(|part| part == begin) {
        return false;
    }
    let part = stem(short);
    let is_last = || {
        long.rfind(part)
            .is_some_and(|place| place > 0 && long.len() - place - part.len() <= PART_ENDING)
    };
    part.len() + 2 < long.len()
        && (is_last()
            || part.len() >= FIRST_PART && long.starts_with(part)
            || short.len() >= FIRST_PART - 1
                && short.len() + 3 < long.len()
                && long.starts_with(short))
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|character: char| character.is_ascii_digit())
}

/// A word without its ending.
fn stem(word: &str) -> &str {
    let endings = ENDINGS.iter();
    let mut stems = endings.filter_map(|ending| word.strip_suffix(ending));
    stems.find(|stem| stem.len() >= STEM).unwrap_or(word)
}
