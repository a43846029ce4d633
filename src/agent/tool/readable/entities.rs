//! Character references (`&amp;`, `&#8212;`): those that pages use.

use std::borrow::Cow;

use super::charset::WINDOWS_1252;

/// Longest name of a reference that is known.
const LONGEST: usize = 10;

/// Replaces the character references of a text.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        decoded.push_str(&rest[..place]);
        rest = &rest[place..];
        match reference(rest) {
            Some((letter, length)) => {
                decoded.push(letter);
                rest = &rest[length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// The reference at the beginning of a text, and how many bytes it takes.
fn reference(text: &str) -> Option<(char, usize)> {
    let after = &text[1..];
    if let Some(digits) = after.strip_prefix('#') {
        let (radix, digits, skipped) = match digits.strip_prefix(['x', 'X']) {
            Some(digits) => (16, digits, 3),
            None => (10, digits, 2),
        };
        let count = digits
            .bytes()
            .take(8)
            .take_while(|&byte| char::from(byte).is_digit(radix))
            .count();
        let number = u32::from_str_radix(&digits[..count], radix).ok()?;
        let ended = digits.as_bytes().get(count) == Some(&b';');
        return Some((numbered(number), skipped + count + usize::from(ended)));
    }
    let count = after
        .bytes()
        .take(LONGEST)
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    let name = &after[..count];
    if after.as_bytes().get(count) == Some(&b';') {
        return Some((named(name)?, count + 2));
    }
    // Without the semicolon only the oldest names count (HTML standard, 13.5).
    let short = ["amp", "lt", "gt", "quot", "nbsp", "copy"];
    let known = short.iter().find(|known| **known == name)?;
    Some((named(known)?, count + 1))
}

/// The character of a number; 128 to 159 are those of windows-1252.
fn numbered(number: u32) -> char {
    match number {
        0x80..=0x9f => WINDOWS_1252[number as usize - 0x80],
        0 => char::REPLACEMENT_CHARACTER,
        _ => char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn named(name: &str) -> Option<char> {
    // 160 to 255, in their order.
    const LATIN: [&str; 96] = [
        "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
        "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
        "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
        "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave",
        "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
        "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc",
        "Uuml", "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring",
        "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc",
        "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash",
        "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
    ];
    const OTHERS: [(&str, char); 60] = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("ndash", '–'),
        ("mdash", '—'),
        ("lsquo", '‘'),
        ("rsquo", '’'),
        ("sbquo", '‚'),
        ("ldquo", '“'),
        ("rdquo", '”'),
        ("bdquo", '„'),
        ("lsaquo", '‹'),
        ("rsaquo", '›'),
        ("hellip", '…'),
        ("bull", '•'),
        ("dagger", '†'),
        ("Dagger", '‡'),
        ("permil", '‰'),
        ("prime", '′'),
        ("Prime", '″'),
        ("euro", '€'),
        ("trade", '™'),
        ("larr", '←'),
        ("uarr", '↑'),
        ("rarr", '→'),
        ("darr", '↓'),
        ("harr", '↔'),
        ("rArr", '⇒'),
        ("ensp", ' '),
        ("emsp", ' '),
        ("thinsp", ' '),
        ("zwnj", '\u{200C}'),
        ("zwj", '\u{200D}'),
        ("lrm", '\u{200E}'),
        ("rlm", '\u{200F}'),
        ("minus", '−'),
        ("asymp", '≈'),
        ("ne", '≠'),
        ("le", '≤'),
        ("ge", '≥'),
        ("infin", '∞'),
        ("radic", '√'),
        ("sum", '∑'),
        ("part", '∂'),
        ("Delta", 'Δ'),
        ("Omega", 'Ω'),
        ("alpha", 'α'),
        ("beta", 'β'),
        ("gamma", 'γ'),
        ("mu", 'μ'),
        ("pi", 'π'),
        ("check", '✓'),
        ("star", '☆'),
        ("OElig", 'Œ'),
        ("oelig", 'œ'),
        ("Scaron", 'Š'),
        ("scaron", 'š'),
        ("lbrace", '{'),
    ];
    let latin = LATIN.iter().position(|known| *known == name);
    latin
        .and_then(|place| u8::try_from(place + 160).ok().map(char::from))
        .or_else(|| {
            let other = OTHERS.iter().find(|(known, _)| *known == name);
            other.map(|(_, letter)| *letter)
        })
}
