//! Text that a person must judge, such as the command of an approval, shown so that nothing
//! in it hides: what is invisible or changes how other text looks becomes a mark such as
//! `‹U+202E›`, and what would push text out of sight becomes a count.
//!
//! The web page does the same in approvals.js; both are tested with tests/data/visible.json.

/// What begins and ends a mark. In the text itself they are escaped, so that it
/// cannot contain a mark.
const MARKS: [char; 2] = ['‹', '›'];
/// Spaces and tabs in a row that are shown; of more, the number.
const MOST_SPACES: usize = 40;
/// Empty lines in a row that are shown; of more, the number.
const MOST_EMPTY_LINES: usize = 1;

/// The text on one line, with `‹↵›` for each line break.
pub fn one_line(text: &str) -> String {
    shown(text, "‹↵›")
}

/// The text on its own lines.
pub fn lines(text: &str) -> String {
    shown(text, "\n")
}

/// The beginning and the end of a text from [`one_line`] or [`lines`] with more than `most`
/// characters, and between them how many are missing.
pub fn head_and_tail(shown: &str, most: usize) -> String {
    let count = shown.chars().count();
    if count <= most {
        return shown.to_owned();
    }
    let place = |number| {
        let mut places = shown.char_indices();
        places.nth(number).map_or(shown.len(), |(place, _)| place)
    };
    let mut head = &shown[..place(most * 2 / 3)];
    let mut tail = &shown[place(count - most / 3)..];
    // A mark is not cut.
    let [opening, closing] = MARKS;
    if head.rfind(opening) > head.rfind(closing) {
        head = &head[..head.rfind(opening).unwrap_or(0)];
    }
    if let Some(end) = tail.find(closing)
        && tail.find(opening).is_none_or(|begin| end < begin)
    {
        tail = &tail[end + closing.len_utf8()..];
    }
    let missing = count - head.chars().count() - tail.chars().count();
    format!("{head} ‹… ×{missing}› {tail}")
}

fn shown(text: &str, line_break: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = None;
    while let Some(first) = rest.chars().next() {
        let begin = rest;
        rest = &rest[first.len_utf8()..];
        if first == '\n' {
            let blank = &begin[..run(begin, is_blank)];
            let breaks = blank.matches('\n').count();
            shown.push_str(line_break);
            if breaks > MOST_EMPTY_LINES + 1 {
                shown.push_str(&format!("‹↵ ×{}›{line_break}", breaks - 1));
                rest = &begin[blank.rfind('\n').map_or(0, |last| last + 1)..];
            }
        } else if is_blank(first) {
            let spaces = run(begin, |letter| letter != '\n' && is_blank(letter));
            match spaces > MOST_SPACES {
                true => shown.push_str(&format!("‹␣ ×{spaces}›")),
                false => shown.push_str(&begin[..spaces]),
            }
            rest = &begin[spaces..];
        } else if !is_hidden(first) {
            shown.push(first);
        } else {
            let repeated = run(begin, |letter| letter == first);
            let times = repeated / first.len_utf8();
            if times == 1 && is_emoji_style(first) && previous.is_some_and(has_emoji_style) {
                shown.push(first);
            } else {
                let times = match times {
                    1 => String::new(),
                    times => format!(" ×{times}"),
                };
                shown.push_str(&format!("‹U+{:04X}{times}›", u32::from(first)));
            }
            rest = &begin[repeated..];
        }
        previous = Some(first);
    }
    shown
}

/// The text without what [`is_hidden`], but for characters that belong to those before them:
/// the style of a picture, and the joiners between pictures and in scripts that need them.
pub fn without_hidden(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for letter in text.chars() {
        let before = seen.chars().next_back();
        let belongs = before.is_some_and(|before| match letter {
            '\u{200C}' | '\u{200D}' => {
                is_emoji_style(before) || u32::from(before) > 0x5FF && !is_hidden(before)
            }
            _ => is_emoji_style(letter) && has_emoji_style(before),
        });
        if belongs || !is_hidden(letter) || MARKS.contains(&letter) {
            seen.push(letter);
        }
    }
    seen
}

/// A title on one line, without what is not seen or changes how other text looks.
pub fn label(title: &str) -> String {
    let spaced = |letter: char| if letter.is_whitespace() { ' ' } else { letter };
    let title: String = title.chars().map(spaced).collect();
    without_hidden(&title).trim().to_owned()
}

/// How many bytes at the beginning are such characters.
fn run(text: &str, is_such: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_such(letter)).unwrap_or(text.len())
}

fn is_blank(letter: char) -> bool {
    matches!(letter, '\n' | '\t' | ' ')
}

/// Whether a character is not seen, looks like a space, changes the order or look of
/// others, or begins or ends a mark: controls, Default_Ignorable_Code_Point, spaces and
/// separators, private use and noncharacters (Unicode Standard Annex 44), and a few that
/// fonts leave empty.
pub fn is_hidden(letter: char) -> bool {
    let code = u32::from(letter);
    matches!(code,
        0..0x20 | 0x7F..=0xA0 | 0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x1680
        | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x2000..=0x200F | 0x2028..=0x202F
        | 0x205F..=0x206F | 0x2800 | 0x3000 | 0x3164 | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF
        | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3
        | 0x1D159 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF | 0xF_0000..
    ) || code & 0xFFFE == 0xFFFE
        || MARKS.contains(&letter)
}

/// Whether it chooses between text and emoji style for the character before it.
fn is_emoji_style(letter: char) -> bool {
    matches!(letter, '\u{FE0E}' | '\u{FE0F}')
}

/// Whether a character is a picture, which a style may follow in ordinary text.
fn has_emoji_style(letter: char) -> bool {
    matches!(u32::from(letter),
        0xA9 | 0xAE | 0x203C | 0x2049 | 0x2122 | 0x2139 | 0x2190..=0x21FF | 0x2300..=0x23FF
        | 0x24C2 | 0x25A0..=0x27BF | 0x2934..=0x2935 | 0x2B00..=0x2BFF | 0x3030 | 0x303D
        | 0x3297 | 0x3299 | 0x1F000..=0x1FAFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The text of a case: strings, and pairs of a string and how often it is repeated.
    fn text(parts: &Value) -> String {
        let part = |part: &Value| match part.as_str() {
            Some(text) => text.to_owned(),
            None => part[0]
                .as_str()
                .unwrap()
                .repeat(part[1].as_u64().unwrap() as usize),
        };
        parts.as_array().unwrap().iter().map(part).collect()
    }

    #[test]
    fn nothing_hides_in_what_is_shown() {
        let cases = include_str!("../../tests/data/visible.json");
        let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
        for case in cases {
            let (given, expected) = (text(&case["text"]), text(&case["shown"]));
            assert_eq!(lines(&given), expected, "{case}");
            assert_eq!(one_line(&given), expected.replace('\n', "‹↵›"), "{case}");
        }
    }

    #[test]
    fn everything_that_is_shown_is_seen() {
        let all: String = (char::MIN..=char::MAX).collect();
        let shown = one_line(&all);
        assert_eq!(
            shown.find(|letter| is_hidden(letter) && letter != '\t' && !MARKS.contains(&letter)),
            None
        );
    }

    #[test]
    fn what_belongs_to_the_character_before_it_is_left() {
        for (text, left) in [
            ("\u{200b}mi\u{202e}lk\u{feff}", "milk"),
            ("mi\u{200d}lk\u{fe0f}", "milk"),
            ("‹milk›", "‹milk›"),
            (
                "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
                "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            ),
            (
                "\u{646}\u{6cc}\u{645}\u{200c}\u{200c}\u{641}",
                "\u{646}\u{6cc}\u{645}\u{200c}\u{641}",
            ),
        ] {
            assert_eq!(without_hidden(text), left, "{text:?}");
        }
    }

    #[test]
    fn a_title_is_one_line_without_what_hides() {
        for (title, shown) in [
            (" Cake\u{a0}for\ttea ", "Cake for tea"),
            ("gpj.\u{202e}exe", "gpj.exe"),
            ("a\nb\u{2028}c", "a b c"),
            ("\u{200b}\u{2066}", ""),
        ] {
            assert_eq!(label(title), shown, "{title:?}");
        }
    }

    #[test]
    fn the_end_of_a_long_text_is_shown_too() {
        for (text, most, shown) in [
            ("", 0, ""),
            ("üüü", 3, "üüü"),
            ("abcdefghij", 6, "abcd ‹… ×4› ij"),
            ("abc‹U+200B›defghi", 9, "abc ‹… ×11› ghi"),
            ("abcdefghi‹U+200B›", 6, "abcd ‹… ×13› "),
        ] {
            assert_eq!(head_and_tail(text, most), shown, "{text}");
        }
    }
}
