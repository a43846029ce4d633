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

/// A folded word, and what of it is compared with others.
#[derive(Clone, Copy)]
pub(super) struct Form<'a> {
    pub text: &'a str,
    /// Its beginning, without an ending.
    pub stem: &'a str,
    pub runs: Runs,
}

impl<'a> Form<'a> {
    pub fn of(text: &'a str) -> Form<'a> {
        Form {
            text,
            stem: stem(text),
            runs: Runs::of(text),
        }
    }
}

/// A set of runs of four bytes, in which one may seem to be that is not. Two words that
/// are alike and not the same have one in common.
#[derive(Clone, Copy)]
pub(super) struct Runs(u64);

impl Runs {
    fn of(word: &str) -> Runs {
        let runs = word.as_bytes().windows(4).map(|run| {
            let number = run
                .iter()
                .fold(0u32, |all, byte| all << 8 | u32::from(*byte));
            1u64 << (number.wrapping_mul(0x9e37_79b1) >> 26)
        });
        Runs(runs.fold(0, |all, run| all | run))
    }

    fn may_share(self, other: Runs) -> bool {
        self.0 & other.0 != 0
    }
}

/// How alike two words are, from 0 (not) to 1 (the same).
pub(super) fn likeness(one: Form<'_>, other: Form<'_>) -> f64 {
    if one.text == other.text {
        return 1.0;
    }
    // A number is that number or another one.
    if !one.runs.may_share(other.runs)
        || starts_with_digit(one.text)
        || starts_with_digit(other.text)
    {
        return 0.0;
    }
    let (short, long) = match one.text.len() <= other.text.len() {
        true => (one, other.text),
        false => (other, one.text),
    };
    let prefix = short.text.bytes().zip(long.bytes());
    let prefix = prefix.take_while(|(a, b)| a == b).count();
    if prefix >= STEM && one.stem == other.stem {
        return 1.0;
    }
    if prefix >= PREFIX && 10 * prefix >= PREFIX_TENTHS * long.len() {
        return 0.6;
    }
    if is_part(short, long) {
        // A short one may be there by chance.
        return if short.text.len() > LAST_PART {
            0.51
        } else {
            0.5
        };
    }
    let ends = short.text.bytes().rev().zip(long.bytes().rev());
    match ends.take_while(|(a, b)| a == b).count() >= SHARED_PART {
        true => 0.67,
        false => 0.0,
    }
}

/// Whether the shorter word is the last part of the longer one, or a long first part.
fn is_part(short: Form<'_>, long: &str) -> bool {
    let (short, part) = (short.text, short.stem);
    // Cheaper than a stem, and nearly always the answer.
    let Some(begin) = short.as_bytes().get(..LAST_PART) else {
        return false;
    };
    if !long.as_bytes().windows(LAST_PART).any(|part| part == begin) {
        return false;
    }
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
