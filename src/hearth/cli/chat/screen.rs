//! Shows the client's actions: in a terminal with pieces, notes and prompts, in a
//! file or pipe only the answers.

use std::io::{self, Write};

use super::action::Action;
use crate::cli::terminal::visible;

/// What has been shown so far, and how to show more.
#[derive(Debug)]
pub struct ChatScreen {
    /// Whether standard output is a terminal.
    pub rich: bool,
    /// Whether notes may be dimmed (a terminal without `NO_COLOR`).
    pub color: bool,
    /// Whether to show a prompt before a line is read.
    pub prompt: bool,
    /// Pieces of the answer shown since the last note, which are not repeated when the
    /// whole answer comes.
    shown: String,
}

const PROMPT: &str = "> ";

impl ChatScreen {
    /// A screen on which nothing is shown yet.
    pub fn new(rich: bool, color: bool, prompt: bool) -> ChatScreen {
        ChatScreen {
            rich,
            color,
            prompt,
            shown: String::new(),
        }
    }

    /// Shows one action; those that show nothing are ignored.
    pub fn show(
        &mut self,
        action: &Action,
        output: &mut dyn Write,
        errors: &mut dyn Write,
    ) -> io::Result<()> {
        match action {
            Action::Piece(text) if self.rich => {
                output.write_all(visible(text).as_bytes())?;
                self.shown.push_str(text);
            }
            Action::Answer(text) if self.rich => {
                // Usually every piece was shown, but not if the provider does not
                // stream or started again.
                match text.strip_prefix(self.shown.as_str()) {
                    Some(rest) => output.write_all(visible(rest).as_bytes())?,
                    None if self.shown.trim() == text.trim() => {}
                    None => write!(output, "\n{}", visible(text))?,
                }
                self.shown.clear();
                writeln!(output)?;
            }
            Action::Answer(text) => writeln!(output, "{text}")?,
            Action::Note(text) if self.rich => {
                self.end_line(output)?;
                for line in text.lines() {
                    self.note(&format!("· {}", visible(line)), output)?;
                }
            }
            Action::Ask(text) => {
                self.end_line(output)?;
                output.write_all(visible(text).as_bytes())?;
            }
            Action::Ready if self.prompt => output.write_all(PROMPT.as_bytes())?,
            Action::Break if self.rich => {
                writeln!(output)?;
                self.shown.clear();
            }
            Action::Problem(text) => {
                if self.rich {
                    self.end_line(output)?;
                    output.flush()?;
                }
                writeln!(errors, "hearth: {}", visible(text))?;
            }
            _ => {}
        }
        output.flush()
    }

    fn note(&self, line: &str, output: &mut dyn Write) -> io::Result<()> {
        if self.color {
            writeln!(output, "\x1b[2m{line}\x1b[0m")
        } else {
            writeln!(output, "{line}")
        }
    }

    /// Ends a line that pieces have left open.
    fn end_line(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if !self.shown.is_empty() && !self.shown.ends_with('\n') {
            writeln!(output)?;
        }
        self.shown.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    /// An action of the table, such as `piece Hel`.
    fn action(written: &str) -> Action {
        let (kind, text) = written.split_once(' ').unwrap_or((written, ""));
        let text = text.to_owned();
        match kind {
            "piece" => Action::Piece(text),
            "answer" => Action::Answer(text),
            "note" => Action::Note(text),
            "problem" => Action::Problem(text),
            "ask" => Action::Ask(text),
            "ready" => Action::Ready,
            "break" => Action::Break,
            _ => panic!("{written}"),
        }
    }

    #[test]
    fn the_screen_shows_everything_once() {
        // ACTIONS | OUTPUT | ERRORS, with / for a line feed.
        let rich = "
            piece Hel, piece lo, answer Hello                    | Hello/                          |
            answer Hello                                         | Hello/                          |
            piece Hel, answer Hello                              | Hello/                          |
            piece Hello/, answer Hello                           | Hello//                         |
            piece Wrong, answer Right                            | Wrong/Right/                    |
            piece Let me see., note clock …, piece Noon, answer Noon | Let me see./· clock …/Noon/ |
            piece So, problem too much                           | So/                             | hearth: too much/
            piece So, ask May it?                                | So/May it?                      |
            ready, break                                         | > /                             |
            piece So, break, note stopping                       | So/· stopping/                  |
            answer \x1b[2Jclean\r\u{9b}2J\ttext/                  | [2Jclean2J\ttext//              |
            answer \u{202e}left\u{2066}                           | left/                           |
        ";
        let plain = "
            piece Hel, note clock …, ready, answer Hello, problem too much | Hello/ | hearth: too much/
        ";
        for (is_rich, table) in [(true, rich), (false, plain)] {
            for [actions, output, errors] in rows(&table.replace("|\n", "| \n")) {
                let mut screen = ChatScreen::new(is_rich, false, is_rich);
                let (mut out, mut err) = (Vec::new(), Vec::new());
                for written in actions.split(", ") {
                    let action = action(&written.replace('/', "\n"));
                    screen.show(&action, &mut out, &mut err).unwrap();
                }
                for (shown, expected) in [(out, output), (err, errors)] {
                    let shown = String::from_utf8(shown).unwrap();
                    assert_eq!(shown.replace('\n', "/"), expected, "{actions}");
                }
            }
        }
    }

    #[test]
    fn a_note_is_dimmed_with_colors() {
        let mut out = Vec::new();
        ChatScreen::new(true, true, true)
            .show(&action("note a\nb"), &mut out, &mut Vec::new())
            .unwrap();
        assert_eq!(out, "\x1b[2m· a\x1b[0m\n\x1b[2m· b\x1b[0m\n".as_bytes());
    }
}
