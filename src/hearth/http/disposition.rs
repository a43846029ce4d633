//! The header `Content-Disposition` (RFC 6266), which carries the names of files.

use base::url::percent_encode;

/// The file name in a header. `filename*` wins, because it can say any name.
pub fn file_name(header: &str) -> Option<String> {
    let mut plain = None;
    let mut rest = header.split_once(';')?.1;
    while let Some((name, value, after)) = parameter(rest) {
        if name.eq_ignore_ascii_case("filename*") {
            if let Some(decoded) = extended(&value) {
                return Some(decoded);
            }
        } else if name.eq_ignore_ascii_case("filename") {
            plain.get_or_insert(value);
        }
        match after {
            Some(after) => rest = after,
            None => break,
        }
    }
    plain
}

/// The first parameter, and what follows its semicolon.
fn parameter(text: &str) -> Option<(&str, String, Option<&str>)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim_start());
    let Some(quoted) = value.strip_prefix('"') else {
        let (value, after) = match value.split_once(';') {
            Some((value, after)) => (value, Some(after)),
            None => (value, None),
        };
        return Some((name, value.trim().to_owned(), after));
    };
    let mut read = String::new();
    let mut letters = quoted.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => {
                let after = quoted[place + 1..].split_once(';').map(|(_, after)| after);
                return Some((name, read, after));
            }
            '\\' => read.extend(letters.next().map(|(_, letter)| letter)),
            letter => read.push(letter),
        }
    }
    // The quotation mark is missing.
    Some((name, read, None))
}

/// A value of RFC 8187: `UTF-8'language'percent-encoded`.
fn extended(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                bytes.push(hexadecimal(*high)? << 4 | hexadecimal(*low)?);
                after
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    String::from_utf8(bytes).ok()
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// The header of a response with a file of this name: shown in the browser, or saved.
pub fn of_file(name: &str, is_shown: bool) -> String {
    let kind = if is_shown { "inline" } else { "attachment" };
    // Browsers decode `%41` in a plain name, and take a backslash for an escape.
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            '"' | '\\' | '%' => '_',
            ' '..='~' => letter,
            _ => '_',
        })
        .collect();
    let header = format!("{kind}; filename=\"{plain}\"");
    if plain == name {
        return header;
    }
    // RFC 8187 section 3.2.1, attr-char.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte);
    let encoded = percent_encode(name, is_plain);
    format!("{header}; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_browsers_and_programs_write_it() {
        for (header, name) in [
            ("attachment; filename=\"a b.txt\"", Some("a b.txt")),
            ("attachment; filename=a.txt", Some("a.txt")),
            ("attachment;FileName = a.txt ; size=3", Some("a.txt")),
            (
                "form-data; name=\"file\"; filename=\"Ä;ö.txt\"",
                Some("Ä;ö.txt"),
            ),
            (
                "attachment; filename=\"a\\\"b\\\\c.txt\"",
                Some("a\"b\\c.txt"),
            ),
            (
                "attachment; filename=\"x.txt\"; filename*=UTF-8''%e2%82%ac%20y.txt",
                Some("€ y.txt"),
            ),
            (
                "attachment; filename*=utf-8'en'a.txt; filename=b.txt",
                Some("a.txt"),
            ),
            (
                "attachment; filename*=iso-8859-1''%e4; filename=b.txt",
                Some("b.txt"),
            ),
            (
                "attachment; filename*=UTF-8''%ff; filename=b.txt",
                Some("b.txt"),
            ),
            (
                "attachment; filename*=UTF-8''%4; filename=b.txt",
                Some("b.txt"),
            ),
            ("attachment; filename=\"open", Some("open")),
            ("attachment; filename=\"open\\", Some("open")),
            ("attachment", None),
            ("attachment;", None),
            ("", None),
            ("attachment; filename", None),
        ] {
            assert_eq!(file_name(header).as_deref(), name, "{header}");
        }
    }

    #[test]
    fn a_name_that_is_written_is_read_again_and_is_plain_ascii() {
        for (name, header) in [
            ("a.txt", "attachment; filename=\"a.txt\""),
            (
                "50% \"off\".txt",
                "attachment; filename=\"50_ _off_.txt\"; filename*=UTF-8''50%25%20%22off%22.txt",
            ),
            (
                "Ä\r\nX: y",
                "attachment; filename=\"___X: y\"; filename*=UTF-8''%C3%84%0D%0AX%3A%20y",
            ),
        ] {
            assert_eq!(of_file(name, false), header);
        }
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut name = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let letters = [
                    '"', '\\', ';', '\'', '%', '=', ' ', 'a', 'é', '世', '*', '\n',
                ];
                name.push(letters[(state >> 33) as usize % letters.len()]);
            }
            let header = of_file(&name, true);
            assert!(
                header.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                "{header}"
            );
            assert_eq!(
                file_name(&header).as_deref(),
                Some(name.as_str()),
                "{header}"
            );
        }
    }
}
