//! JSON of servers that cut texts in the middle of a character: bytes that are no UTF-8, and
//! halves of surrogate pairs in two events, as programs write them that count UTF-16.

/// A backslash, `u` and 4 digits.
const ESCAPE: usize = 6;

/// Mends JSON that cannot be parsed. What is no character becomes U+FFFD; the first half of a
/// pair at the end of a text waits in `held` for its other half, at the beginning of a text of
/// a later event. None where nothing was to mend.
pub fn mended(json: &[u8], held: &mut Option<u16>) -> Option<String> {
    let text = String::from_utf8_lossy(json);
    let mut out = String::with_capacity(text.len() + ESCAPE);
    let mut rest = &*text;
    while let Some(place) = rest.find('\\') {
        let (before, escape) = rest.split_at(place);
        // Backslashes are only in texts.
        let begins = before.ends_with('"');
        out.push_str(before);
        let unit = unit(escape);
        let length = match unit {
            Some(_) => ESCAPE,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (this, after) = escape.split_at(length);
        rest = after;
        match unit {
            Some(0xd800..=0xdbff) if matches!(self::unit(after), Some(0xdc00..=0xdfff)) => {
                out.push_str(this);
                out.push_str(&after[..ESCAPE]);
                rest = &after[ESCAPE..];
            }
            Some(half @ 0xd800..=0xdbff) if after.starts_with('"') => *held = Some(half),
            Some(0xdc00..=0xdfff) if begins && held.is_some() => {
                let first = held.take().unwrap_or_default();
                out.push_str(&format!("\\u{first:04x}{this}"));
            }
            Some(0xd800..=0xdfff) => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push_str(this),
        }
    }
    out.push_str(rest);
    (out.as_bytes() != json).then_some(out)
}

/// The UTF-16 unit whose escape begins here.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| are_digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_is_no_character_is_replaced_and_halves_are_joined() {
        for (events, expected) in [
            (
                &[&br#"["\ud83d"]"#[..], br#"["\ude00 nice"]"#][..],
                "😀 nice",
            ),
            (
                &[br#"["a \uD83D"]"#, b"[\"\"]", br#"["\uDE00\ud83d\ude00"]"#],
                "a 😀😀",
            ),
            (&[br#"["\ud83d"]"#, br#"["x\ude00"]"#], "x\u{fffd}"),
            (&[br#"["\ud83dx\ude00"]"#], "\u{fffd}x\u{fffd}"),
            (&[br#"["\ud83d\ud83d\ude00"]"#], "\u{fffd}😀"),
            (&[br#"["\ude00"]"#], "\u{fffd}"),
            // These are backslashes.
            (&[br#"["\\ud83d\"\ud83d\n"]"#], "\\ud83d\"\u{fffd}\n"),
            (&[b"[\"h\xc3\"]", b"[\"\xa9!\"]"], "h\u{fffd}\u{fffd}!"),
        ] {
            let (mut held, mut all) = (None, String::new());
            for event in events {
                let read = |json: &[u8]| serde_json::from_slice::<Value>(json);
                let value = read(event).or_else(|error| {
                    let json = mended(event, &mut held).ok_or(error)?;
                    read(json.as_bytes())
                });
                all.push_str(value.unwrap()[0].as_str().unwrap());
            }
            assert_eq!(all, expected);
        }
        for whole in [
            &b"{oops"[..],
            br#"["\ud83d\ude00 \u00e4"]"#,
            b"[\"\\",
            b"\\u12",
        ] {
            assert_eq!(mended(whole, &mut None), None);
        }
    }
}
