//! The memories that go with a message.

use crate::message_text::{OUTSIDE_TAG, fenced, provenance};
use crate::tool::output::shorten;
use base::error::Result;
use store::{Memory, Store, Viewer};

/// Most bytes of all memories together: more than a small set needs.
const MOST_BYTES: usize = 8_000;
/// Characters kept of each.
const MEMORY_CHARS: usize = 400;

/// Memories for the model.
pub(crate) struct Remembered {
    /// One a line, with who said it and when.
    pub text: String,
    /// Whether any of them comes from outside.
    pub is_outside: bool,
}

/// The memories to show with `message`, of those that the viewer sees; none if none
/// fits.
pub(crate) fn relevant(
    store: &Store,
    viewer: &Viewer,
    message: &str,
) -> Result<Option<Remembered>> {
    let mut known = Remembered {
        text: String::new(),
        is_outside: false,
    };
    for memory in store.relevant_memories(viewer, message)? {
        let line = line(&memory);
        if known.text.len() + 1 + line.len() > MOST_BYTES {
            break;
        }
        if !known.text.is_empty() {
            known.text.push('\n');
        }
        known.text.push_str(&line);
        known.is_outside |= memory.is_outside;
    }
    Ok((!known.text.is_empty()).then_some(known))
}

fn line(memory: &Memory) -> String {
    let words: Vec<&str> = memory.content.split_whitespace().collect();
    let words = words.join(" ");
    let time = memory.created_at.to_string();
    let day = time.split('T').next().unwrap_or_default();
    let said = match provenance(memory) {
        Some(name) => format!("{name}, {day}"),
        None => day.to_owned(),
    };
    let line = format!("- {} ({said})", shorten(&words, MEMORY_CHARS));
    match memory.is_outside || memory.account.is_some() {
        true => fenced(OUTSIDE_TAG, &line),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use store::Audience;

    use super::*;
    use crate::message_text::printable_name;
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
                owner: None,
                owner_id: None,
                audience: Audience::Household,
                channel: None,
                account: None,
                created_at: Timestamp::from_millis(1_795_253_400_125),
                is_outside: false,
            };
            assert_eq!(line(&memory), text);
            let through_webhook = Memory {
                account: Some("shop".to_owned()),
                ..memory.clone()
            };
            let name = speaker.map_or("unknown".to_owned(), printable_name);
            let shown = line(&through_webhook);
            assert!(shown.starts_with("<outside "), "{shown}");
            let says_who = format!("({name} by webhook shop, 2026-11-21)\n</outside ");
            assert!(shown.contains(&says_who), "{shown}");
            let from_outside = Memory {
                is_outside: true,
                ..memory
            };
            let shown = line(&from_outside);
            assert!(shown.contains(&format!("\n{text}\n</outside ")), "{shown}");
        }
    }
}
