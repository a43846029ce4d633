//! The names of files, as people and the model are shown them.

use base::visible::is_hidden;

/// Longest name, in bytes of UTF-8, which every file system takes.
const BYTES: usize = 200;
/// Longest ending that is kept of a longer name, in bytes.
const ENDING: usize = 16;
/// The name of a file without one.
const NAMELESS: &str = "attachment";

/// A file's name from what its sender calls it: without a path, without characters
/// that are not seen or change how others look, and not too long.
pub fn cleaned(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = name
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| !is_hidden(*letter))
        .collect();
    // A leading dot hides a file, and `.` and `..` are none.
    let name = visible.trim_start_matches([' ', '.']).trim_end();
    if name.is_empty() {
        return NAMELESS.to_owned();
    }
    if name.len() <= BYTES {
        return name.to_owned();
    }
    let ending = name.rfind('.').map_or("", |dot| &name[dot..]);
    let ending = if ending.len() <= ENDING { ending } else { "" };
    let mut end = BYTES - ending.len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ending}", name[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_only_a_name() {
        let long = "ü".repeat(500);
        for (name, expected) in [
            ("scan.pdf", "scan.pdf"),
            ("Grüße aus 東京.txt", "Grüße aus 東京.txt"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\ann\\photo.jpg", "photo.jpg"),
            ("..", NAMELESS),
            (".bashrc", "bashrc"),
            ("", NAMELESS),
            ("a/", NAMELESS),
            (" \t\u{200b}", NAMELESS),
            ("invoice\u{202e}fdp.exe", "invoicefdp.exe"),
            ("a\r\nSet-Cookie: b.txt", "a  Set-Cookie: b.txt"),
            ("a\u{2028}b\0c", "a bc"),
            ("x\u{e0041}\u{ad}y.png", "xy.png"),
        ] {
            assert_eq!(cleaned(name), expected, "{name:?}");
        }
        let shortened = cleaned(&format!("{long}.jpeg"));
        assert!(shortened.len() <= BYTES && shortened.ends_with("ü.jpeg"));
        let without = cleaned(&format!("a.{long}"));
        assert!(without.len() <= BYTES && without.starts_with("a.ü"));
    }

    #[test]
    fn a_cleaned_name_stays_as_it_is() {
        let letters = [
            'a', '.', ' ', '/', '\\', '\n', '\u{202e}', 'é', '🎉', '\u{feff}',
        ];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut name = String::new();
            for _ in 0..state % 300 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                name.push(letters[(state >> 33) as usize % letters.len()]);
            }
            state = state.wrapping_add(1);
            let once = cleaned(&name);
            assert!(!once.is_empty() && once.len() <= BYTES, "{name:?}");
            assert!(!once.contains(['/', '\\', '\n', '\u{202e}']), "{once:?}");
            assert_eq!(cleaned(&once), once, "{name:?}");
        }
    }
}
