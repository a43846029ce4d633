//! The mark at the end of a message that a schedule brings. It is part of the
//! message, so that people see it, too.

const SCHEDULED: &str = "\n\n[scheduled for ";
const LATE: &str = "\n\n[late: due at ";

/// Explains the mark to the model.
pub(super) const EXPLANATION: &str = "A message that ends in [scheduled ...] or [late ...] was set \
    up earlier to come to you now, and perhaps nobody is there: do what it asks for, and put a \
    reminder in words for its reader.";

/// The message of a schedule whose time was `due`, and which comes at that
/// time or late.
pub fn marked(prompt: &str, due: &str, is_late: bool) -> String {
    let mark = if is_late { LATE } else { SCHEDULED };
    format!("{prompt}{mark}{due}]")
}

/// A message without its mark.
pub(super) fn unmarked(text: &str) -> &str {
    let place = text.rfind(SCHEDULED).or_else(|| text.rfind(LATE));
    match place {
        Some(place) if text.ends_with(']') => &text[..place],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_seen_and_taken_off() {
        let time = "2026-11-22 08:00";
        let scheduled = marked("Bins", time, false);
        let late = marked("Bins", time, true);
        assert_eq!(scheduled, "Bins\n\n[scheduled for 2026-11-22 08:00]");
        assert_eq!(late, "Bins\n\n[late: due at 2026-11-22 08:00]");
        for text in [scheduled.as_str(), late.as_str(), "Bins"] {
            assert_eq!(unmarked(text), "Bins");
        }
        assert_eq!(unmarked("a\n\n[late: due at x"), "a\n\n[late: due at x");
    }
}
