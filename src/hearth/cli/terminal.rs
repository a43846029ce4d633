//! Text of models, pages and other systems, which must not control the terminal.

use std::io::{self, Write};

use base::visible::without_hidden;

/// A text without what controls the terminal, hides or reorders what a person reads.
pub fn visible(text: &str) -> String {
    let is_break = |letter: char| matches!(letter, '\n' | '\t');
    let spaced = |letter: char| match letter {
        space if space.is_whitespace() && !is_break(space) && !space.is_control() => ' ',
        other => other,
    };
    let text: String = text.chars().map(spaced).collect();
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_break) {
        let words = piece.trim_end_matches(is_break);
        shown.push_str(&without_hidden(words));
        shown.push_str(&piece[words.len()..]);
    }
    shown
}

/// Writes only what is [`visible`]. Each write must be whole characters.
pub struct VisibleWriter<W>(pub W);

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = visible(&String::from_utf8_lossy(bytes));
        self.0.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::cli::tests::{DataDirectoryUnderTest, run_on};
    use base::clock::Clock;
    use serde_json::json;
    use store::{Store, UserRole};

    /// What a terminal would act on, and the same without it.
    const HOSTILE: (&str, &str) = (
        "a\u{1b}]52;c;eA==\u{7}b\u{9b}2Jc\u{202e}d\u{2066}\te",
        "a]52;c;eA==b2Jcd\te",
    );

    #[test]
    fn a_terminal_gets_no_control_characters_and_a_file_gets_all() {
        let root = DataDirectoryUnderTest::default();
        let database = root.data_directory().database();
        let store = Store::open(&database, Clock::system()).unwrap();
        store.add_user("ada", UserRole::Admin, "").unwrap();
        store.close();
        let (hostile, harmless) = HOSTILE;
        let file = root.path().join("import.jsonl");
        let time = "2026-01-02T03:04:05.000Z";
        let lines = [
            json!({"type": "hearth_export", "version": 1}),
            json!({"type": "conversation", "id": "conv_06xsxhbnrc21v", "title": hostile,
                "channel": "websocket", "created_at": time, "updated_at": time}),
            json!({"type": "message", "id": "msg_06xsxhbnrc21w", "role": "assistant",
                "speaker": null, "timestamp": time, "content": hostile}),
        ];
        fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
        let run = |is_terminal: bool, words: &[&str]| {
            let directory = ["--data-dir", root.path().to_str().unwrap()];
            let ran = run_on(is_terminal, &[words, &directory].concat(), "", &[]);
            assert_eq!(ran.code, 0, "{}", ran.errors);
            ran.output
        };
        run(false, &["import", file.to_str().unwrap()]);
        // Below U+0020, JSON has its own escapes.
        let escaped = |text: &str| json!(text).to_string().trim_matches('"').to_owned();
        for (words, in_file, in_terminal) in [
            (
                &["export", "--all", "--format", "markdown"][..],
                hostile.to_owned(),
                harmless.to_owned(),
            ),
            (
                &["export", "--all"],
                escaped(hostile),
                escaped(hostile).replace(['\u{9b}', '\u{202e}', '\u{2066}'], ""),
            ),
            (
                &["search", "--json", "eA"],
                escaped(hostile),
                escaped(hostile).replace(['\u{9b}', '\u{202e}', '\u{2066}'], ""),
            ),
        ] {
            let (plain, shown) = (run(false, words), run(true, words));
            assert!(plain.contains(&in_file), "{words:?}: {plain:?}");
            assert!(shown.contains(&in_terminal), "{words:?}: {shown:?}");
            assert_eq!(super::visible(&shown), shown, "{words:?}");
        }
        let kept = root.path().join("kept.md");
        run(
            true,
            &[
                "export",
                "--all",
                "--format",
                "markdown",
                "--output",
                kept.to_str().unwrap(),
            ],
        );
        assert!(fs::read_to_string(kept).unwrap().contains(hostile));
    }
}
