//! The memories that go with a message.

use crate::model::fence::{OUTSIDE_TAG, fenced, provenance};
use crate::tools::output::shorten;
use store::{Memory, ShownAs};

/// Most bytes of the memories of one message, where the window has room for as many.
const MOST_SHARE: usize = 12_000;
/// Most bytes of the block: each memory that fits the message may be long.
const MOST_BYTES: usize = 16_000;
/// Bytes of those that fit the message up to which each is shown whole.
const WHOLE_BYTES: usize = 2_000;
/// Characters kept of each otherwise.
const MEMORY_CHARS: usize = 400;

/// The bytes of memories that go with a message in requests of so many tokens: about a
/// twelfth of these.
pub fn share(tokens: usize) -> usize {
    (tokens / 3).min(MOST_SHARE)
}

/// The memories that are shown with a message: one a line, with who said it and when.
pub(super) fn lines(memories: &[Memory]) -> Option<String> {
    let mut text = String::new();
    let fits = |memory: &&Memory| memory.shown_as == ShownAs::Match;
    let fitting = memories.iter().filter(fits);
    let bytes: usize = fitting.map(|memory| memory.content.len()).sum();
    for memory in memories {
        let most_chars = match memory.shown_as {
            ShownAs::Match if bytes > WHOLE_BYTES => MEMORY_CHARS,
            _ => usize::MAX,
        };
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
    let before = match memory.shown_as {
        ShownAs::Former => "Before: ",
        _ => "",
    };
    let line = format!("- {before}{} ({said})", shorten(&words, most_chars));
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
            let name = speaker.map_or("unknown".into(), printable_name);
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

    fn shown_as(shown_as: ShownAs, content: &str) -> Memory {
        Memory {
            shown_as,
            ..memory(content)
        }
    }

    #[test]
    fn what_fits_a_message_is_shown_in_short_if_it_is_long() {
        let long = format!("The alarm: {} 4711", "y".repeat(1_900));
        let of = |as_what, more| [shown_as(as_what, &long), shown_as(as_what, more)];
        let whole = lines(&of(ShownAs::Match, "z")[..]).unwrap();
        assert!(whole.contains(" 4711 ("), "{whole}");
        let z = "z".repeat(200);
        let short = lines(&of(ShownAs::Match, &z)).unwrap();
        assert!(
            !short.contains("4711") && short.contains("yy… ("),
            "{short}"
        );
        let whole = lines(&of(ShownAs::Other, &z)).unwrap();
        assert!(whole.contains(" 4711 ("), "{whole}");
    }

    #[test]
    fn what_was_before_says_so() {
        let bins = [
            shown_as(ShownAs::Other, "The bins go out on Friday."),
            shown_as(ShownAs::Former, "The bins go out on Tuesday."),
        ];
        let expected = "- The bins go out on Friday. (2026-11-21)\n\
            - Before: The bins go out on Tuesday. (2026-11-21)";
        assert_eq!(lines(&bins).as_deref(), Some(expected));
    }

    #[test]
    fn a_block_is_bounded() {
        assert_eq!(lines(&[]), None);
        let lines = lines(&vec![memory(&"y".repeat(300)); 100]).unwrap();
        assert!((MOST_BYTES - 400..MOST_BYTES).contains(&lines.len()));
    }

    #[test]
    fn a_large_window_has_room_for_a_hundred_facts_and_a_small_one_for_less() {
        for (window, least, most) in [
            (4_096, 700, 1_000),
            (8_192, 1_500, 2_000),
            (32_768, 8_000, 12_000),
            (200_000, 12_000, 12_000),
        ] {
            let share = share(crate::model::estimate::request_tokens(window, None));
            assert!((least..=most).contains(&share), "{window}: {share}");
        }
    }
}
