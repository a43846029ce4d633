//! The memories that go with a message.

use crate::message_text::printable_name;
use crate::tool::output::shorten;
use base::error::Result;
use store::{Memory, Store, Viewer};

/// Most memories with one message.
const MOST_MEMORIES: usize = 5;
/// Most bytes of all memories together.
const MOST_BYTES: usize = 1_500;
/// Characters kept of each.
const MEMORY_CHARS: usize = 400;

/// The memories that fit `message`, one a line, best first, with speaker and day;
/// none if none fits.
pub(crate) fn relevant(store: &Store, viewer: &Viewer, message: &str) -> Result<Option<String>> {
    let mut lines = String::new();
    for memory in store.relevant_memories(viewer, message, MOST_MEMORIES)? {
        let line = line(&memory);
        if lines.len() + 1 + line.len() > MOST_BYTES {
            break;
        }
        if !lines.is_empty() {
            lines.push('\n');
        }
        lines.push_str(&line);
    }
    Ok((!lines.is_empty()).then_some(lines))
}

fn line(memory: &Memory) -> String {
    let words: Vec<&str> = memory.content.split_whitespace().collect();
    let words = words.join(" ");
    let time = memory.created_at.to_string();
    let day = time.split('T').next().unwrap_or_default();
    let said = match &memory.speaker {
        Some(name) => format!("{}, {day}", printable_name(name)),
        None => day.to_owned(),
    };
    format!("- {} ({said})", shorten(&words, MEMORY_CHARS))
}

#[cfg(test)]
mod tests {
    use store::Audience;

    use super::*;
    use base::clock::Timestamp;
    use base::ids::MemoryId;

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
                id: MemoryId::from(1),
                content: content.to_owned(),
                speaker: speaker.map(str::to_owned),
                owner_id: None,
                audience: Audience::Household,
                channel: None,
                account: None,
                created_at: Timestamp::from_millis(1_795_253_400_125),
            };
            assert_eq!(line(&memory), text);
        }
    }
}
