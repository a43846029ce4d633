//! From bytes to text: encodings, and character references (`&amp;`, `&#8212;`).

use std::borrow::Cow;

/// Bytes at a page's beginning in which it may name its encoding (HTML
/// standard, 13.2.3.2).
const PRESCAN: usize = 1024;
/// Names of the encodings that browsers read as windows-1252 (Encoding standard).
const WESTERN: &str = "iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 ascii us-ascii windows-1252 \
    cp1252 x-cp1252";
/// What windows-1252 has from 0x80 to 0x9F; the rest is Latin-1.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];
/// Where ISO-8859-15 is not Latin-1.
const LATIN_9: &str = "\u{A4}€\u{A6}Š\u{A8}š\u{B4}Ž\u{B8}ž\u{BC}Œ\u{BD}œ\u{BE}Ÿ";
/// The names of the characters 160 to 255.
const LATIN_NAMES: &str = "\
    nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn \
    sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave \
    Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc \
    Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute \
    THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml \
    igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave \
    uacute ucirc uuml yacute thorn yuml";
/// Names of other characters that pages use, each before its character.
const OTHER_NAMES: &str = "\
    amp& lt< gt> quot\" apos' ndash– mdash— lsquo‘ rsquo’ sbquo‚ ldquo“ rdquo” bdquo„ lsaquo‹ \
    rsaquo› hellip… bull• dagger† Dagger‡ permil‰ prime′ Prime″ euro€ trade™ larr← uarr↑ rarr→ \
    darr↓ harr↔ rArr⇒ zwnj\u{200C} zwj\u{200D} lrm\u{200E} rlm\u{200F} minus− asymp≈ ne≠ le≤ ge≥ \
    infin∞ radic√ sum∑ part∂ DeltaΔ OmegaΩ alphaα betaβ gammaγ muμ piπ check✓ star☆ OEligŒ \
    oeligœ ScaronŠ scaronš lbrace{ \
    ensp\u{2002} emsp\u{2003} thinsp\u{2009}";
/// Longest name of a reference that is known.
const LONGEST_NAME: usize = 10;

/// The text of a document whose `content_type` header may name its encoding;
/// else a byte order mark or, in HTML, the document itself does. Otherwise it is
/// UTF-8 if it is valid, else windows-1252. Invalid bytes are replaced.
pub(crate) fn decode<'a>(bytes: &'a [u8], content_type: &str) -> Cow<'a, str> {
    let utf_16 = |bytes: &[u8], join: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]]));
        let letters = char::decode_utf16(units);
        Cow::Owned(
            letters
                .map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        )
    };
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => return String::from_utf8_lossy(rest),
        [0xFF, 0xFE, rest @ ..] => return utf_16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => return utf_16(rest, u16::from_be_bytes),
        _ => {}
    }
    // Even if the page says otherwise: valid UTF-8 beyond ASCII is hardly ever
    // anything else.
    let Err(error) = std::str::from_utf8(bytes) else {
        return String::from_utf8_lossy(bytes);
    };
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]);
    let letter: fn(u8) -> char = match named_in(content_type).or_else(|| named_in(&start)) {
        Some(name) if ["iso-8859-15", "latin9", "latin-9"].contains(&&*name) => latin_9,
        Some(name) if !has(WESTERN, &name) => {
            return String::from_utf8_lossy(bytes);
        }
        // A cut or a stray byte is no sign of another encoding.
        None if error.valid_up_to() * 10 >= bytes.len() * 9 => {
            return String::from_utf8_lossy(bytes);
        }
        _ => windows_1252,
    };
    Cow::Owned(bytes.iter().map(|&byte| letter(byte)).collect())
}

/// The word after `charset=`, in lower case.
fn named_in(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, after) = lower.split_once("charset")?;
    let after = after.trim_start().strip_prefix('=')?;
    let name: String = after
        .trim_start_matches([' ', '"', '\''])
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || "-_:.".contains(*letter))
        .collect();
    (!name.is_empty()).then_some(name)
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9F => WINDOWS_1252[usize::from(byte) - 0x80],
        _ => char::from(byte),
    }
}

fn latin_9(byte: u8) -> char {
    let mut letters = LATIN_9.chars();
    let found = letters.find(|&letter| letter == char::from(byte));
    found
        .and_then(|_| letters.next())
        .unwrap_or(char::from(byte))
}

/// Replaces the character references of a text.
pub(crate) fn decode_references(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut decoded = first.to_owned();
    for part in parts {
        let (letter, length) = reference(part).unwrap_or(('&', 0));
        decoded.push(letter);
        decoded.push_str(&part[length..]);
    }
    Cow::Owned(decoded)
}

/// The character of a reference after its `&`, and how many bytes it takes.
fn reference(text: &str) -> Option<(char, usize)> {
    let is_ended = |length: usize| text.as_bytes().get(length) == Some(&b';');
    if let Some(digits) = text.strip_prefix('#') {
        let (radix, digits) = match digits.strip_prefix(['x', 'X']) {
            Some(digits) => (16, digits),
            None => (10, digits),
        };
        let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
        let count = digits.bytes().take(8).take_while(is_digit).count();
        let number = u32::from_str_radix(&digits[..count], radix).ok()?;
        let letter = match u8::try_from(number) {
            Ok(0) => None,
            Ok(byte) => Some(windows_1252(byte)),
            Err(_) => char::from_u32(number),
        };
        let length = text.len() - digits.len() + count;
        let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
        return Some((letter, length + usize::from(is_ended(length))));
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric();
    let count = text
        .bytes()
        .take(LONGEST_NAME)
        .take_while(is_of_name)
        .count();
    let name = text.get(..count).filter(|name| !name.is_empty())?;
    // Without the semicolon only the oldest names count (HTML standard, 13.5).
    let is_old = ["amp", "lt", "gt", "quot", "nbsp", "copy"].contains(&name);
    let length = count + usize::from(is_ended(count));
    (is_old || length > count).then_some((named(name)?, length))
}

fn named(name: &str) -> Option<char> {
    if let Some(place) = LATIN_NAMES.split(' ').position(|known| known == name) {
        return u8::try_from(place + 160).ok().map(char::from);
    }
    let mut others = OTHER_NAMES.split(' ');
    others.find_map(|known| {
        let letter = known.strip_prefix(name)?;
        let mut letters = letter.chars();
        letters.next().filter(|_| letters.next().is_none())
    })
}

/// A text with its references replaced, on one line.
pub(super) fn collapsed(raw: &str) -> String {
    let text = decode_references(raw);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a list of words has this one.
pub(super) fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}
