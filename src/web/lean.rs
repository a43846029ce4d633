//! Leaves out, while compiling, what only readers of the source need:
//! indentation and comments that have lines of their own.
//!
//! It knows lines, not the languages. So a comment must end its line, and no
//! line of a text that runs over several may begin with a space or a `/`.

/// The length of `source` without indentation and comments.
pub const fn length(source: &[u8]) -> usize {
    copy::<0>(source).1
}

/// `source` without indentation and comments; `N` is its [`length`].
pub const fn lean<const N: usize>(source: &[u8]) -> [u8; N] {
    copy(source).0
}

/// Copies what is kept, as far as there is room; and says how long it is.
const fn copy<const N: usize>(source: &[u8]) -> ([u8; N], usize) {
    let mut kept = [0; N];
    let mut length = 0;
    let mut place = 0;
    let mut is_comment = false;
    while place < source.len() {
        while place < source.len() && source[place] == b' ' {
            place += 1;
        }
        let begin = place;
        while place < source.len() && source[place] != b'\n' {
            place += 1;
        }
        is_comment = is_comment || begins_with(source, begin, b"/*");
        let is_line_comment = begins_with(source, begin, b"//");
        if !is_comment && !is_line_comment && place > begin {
            let mut from = begin;
            while from <= place && from < source.len() {
                if length < N {
                    kept[length] = source[from];
                }
                length += 1;
                from += 1;
            }
        }
        if is_comment && place >= begin + 2 && begins_with(source, place - 2, b"*/") {
            is_comment = false;
        }
        place += 1;
    }
    (kept, length)
}

const fn begins_with(source: &[u8], place: usize, word: &[u8; 2]) -> bool {
    place + 1 < source.len() && source[place] == word[0] && source[place + 1] == word[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_and_comments_go_and_nothing_else() {
        const SOURCE: &[u8] = b"// head\n\n/** One. */\nfunction f() {\n  /*\n   * two\n   */\n  return 1 / 2; // three\n}\n  x";
        const LEAN: [u8; length(SOURCE)] = lean(SOURCE);
        assert_eq!(
            String::from_utf8_lossy(&LEAN),
            "function f() {\nreturn 1 / 2; // three\n}\nx"
        );
        assert_eq!(length(b""), 0);
    }
}
