//! The memories that go with a message.

use crate::model::fence::{OUTSIDE_TAG, fenced, provenance};
use crate::tools::output::shorten;
use store::Memory;

/// Most bytes of all memories together: more than a small set needs.
const MOST_BYTES: usize = 8_000;
/// Bytes of all memories up to which each is shown whole: those of a small set.
const WHOLE_BYTES: usize = 2_000;
/// Characters kept of each otherwise.
const MEMORY_CHARS: usize = 400;

/// The memories that are shown with a message: one a line, with who said it and when.
pub(super) fn lines(memories: &[Memory]) -> Option<String> {
    let mut text = String::new();
    let bytes: usize = memories.iter().map(|memory| memory.content.len()).sum();
    let most_chars = if bytes <= WHOLE_BYTES {
        WHOLE_BYTES
    } else {
        MEMORY_CHARS
    };
    for memory in memories {
        let line = line(memory, most_chars);
        if text.len() + 1 + line.len() > MOST_BYTES {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.pop().map(|_| text)
}

fn line(memory: &Memory, most_chars: usize) -> String {
    let words: Vec<&str> = memory.content.split_whitespace().collect();
    let words = words.join(" ");
    let time = memory.created_at.to_string();
    let day = time.split('T').next().unwrap_or_default();
    let said = match provenance(memory) {
        Some(name) => format!("{name}, {day}"),
        None => day.to_owned(),
    };
    let line = format!("- {} ({said})", shorten(&words, most_chars));
    if memory.is_outside || memory.account.is_some() {
        fenced(OUTSIDE_TAG, &line)
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fence::printable_name;
    use crate::prompt::testing::memory;

    #[test]
    fn a_memory_is_one_line_with_who_said_it() {
        for (content, speaker, text) in [
            (
                "tea at\n four",
                Some("Ann"),
                "- tea at four (Ann, 2026-11-21)",
            ),
            ("x", None, "- x (2026-11-21)"),
            ("x", Some("A)\n- y"), "- x (A__- y, 2026-11-21)"),
            (
                &"y".repeat(500),
                None,
                &format!("- {}… (2026-11-21)", "y".repeat(MEMORY_CHARS)),
            ),
        ] {
            let memory = Memory {
                speaker: speaker.map(str::to_owned),
                ..memory(content)
            };
            assert_eq!(line(&memory, MEMORY_CHARS), text);
            let through_webhook = Memory {
                account: Some("shop".to_owned()),
                ..memory.clone()
            };
            let name = speaker.map_or("unknown".to_owned(), printable_name);
            let shown = line(&through_webhook, MEMORY_CHARS);
            assert!(shown.starts_with("<outside "), "{shown}");
            let says_who = format!("({name} by webhook shop, 2026-11-21)\n</outside ");
            assert!(shown.contains(&says_who), "{shown}");
            let from_outside = Memory {
                is_outside: true,
                ..memory
            };
            let shown = line(&from_outside, MEMORY_CHARS);
            assert!(shown.contains(&format!("\n{text}\n</outside ")), "{shown}");
        }
    }

    #[test]
    fn a_small_set_is_shown_whole_and_a_larger_one_in_short() {
        let long = memory(&format!("The alarm: {} 4711", "y".repeat(1_900)));
        let whole = lines(std::slice::from_ref(&long)).unwrap();
        assert!(whole.contains(" 4711 ("), "{whole}");
        let more = lines(&[long, memory(&"z".repeat(200))]).unwrap();
        assert!(!more.contains("4711") && more.contains("yy… ("), "{more}");
    }

    #[test]
    fn a_block_is_bounded() {
        assert_eq!(lines(&[]), None);
        let lines = lines(&vec![memory(&"y".repeat(300)); 100]).unwrap();
        assert!((MOST_BYTES - 400..MOST_BYTES).contains(&lines.len()));
    }
}
