//! From bytes to text: UTF-8, UTF-16 with a byte order mark, and the western
//! encodings of old pages.

use std::borrow::Cow;

/// Bytes at a page's beginning in which it may name its encoding (HTML
/// standard, 13.2.3.2).
const PRESCAN: usize = 1024;

/// What windows-1252 has from 0x80 to 0x9F; the rest is Latin-1. Browsers read
/// pages in "ISO-8859-1" in the same way (Encoding standard).
pub(super) const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// The text of a document whose `content_type` header may name its encoding;
/// else a byte order mark or, in HTML, the document itself does. Otherwise it is
/// UTF-8 if it is valid, else windows-1252. Invalid bytes are replaced.
pub(crate) fn decode<'a>(bytes: &'a [u8], content_type: &str) -> Cow<'a, str> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => return String::from_utf8_lossy(rest),
        [0xFF, 0xFE, rest @ ..] => return Cow::Owned(utf_16(rest, u16::from_le_bytes)),
        [0xFE, 0xFF, rest @ ..] => return Cow::Owned(utf_16(rest, u16::from_be_bytes)),
        _ => {}
    }
    let named = named_in(content_type).or_else(|| {
        let start = &bytes[..bytes.len().min(PRESCAN)];
        named_in(&String::from_utf8_lossy(start))
    });
    match (named.as_deref(), std::str::from_utf8(bytes)) {
        // Even if the page says otherwise: valid UTF-8 beyond ASCII is hardly ever
        // anything else.
        (_, Ok(text)) => Cow::Borrowed(text),
        (Some("iso-8859-15" | "latin9" | "latin-9"), Err(_)) => {
            Cow::Owned(bytes.iter().map(|&byte| latin_9(byte)).collect())
        }
        (Some(name), Err(_)) if is_western(name) => Cow::Owned(western(bytes)),
        (Some(_), Err(_)) => String::from_utf8_lossy(bytes),
        // A cut or a stray byte is no sign of another encoding.
        (None, Err(error)) if error.valid_up_to() * 10 >= bytes.len() * 9 => {
            String::from_utf8_lossy(bytes)
        }
        (None, Err(_)) => Cow::Owned(western(bytes)),
    }
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

fn is_western(name: &str) -> bool {
    let names = [
        "iso-8859-1",
        "iso8859-1",
        "iso_8859-1",
        "latin1",
        "latin-1",
        "l1",
        "ascii",
        "us-ascii",
        "windows-1252",
        "cp1252",
        "x-cp1252",
    ];
    names.contains(&name)
}

fn western(bytes: &[u8]) -> String {
    let letter = |&byte: &u8| match byte {
        0x80..=0x9F => WINDOWS_1252[usize::from(byte) - 0x80],
        _ => char::from(byte),
    };
    bytes.iter().map(letter).collect()
}

fn latin_9(byte: u8) -> char {
    match byte {
        0xA4 => '€',
        0xA6 => 'Š',
        0xA8 => 'š',
        0xB4 => 'Ž',
        0xB8 => 'ž',
        0xBC => 'Œ',
        0xBD => 'œ',
        0xBE => 'Ÿ',
        _ => char::from(byte),
    }
}

fn utf_16(bytes: &[u8], join: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
