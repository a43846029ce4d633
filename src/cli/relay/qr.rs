//! A QR code (ISO/IEC 18004) for a terminal: two rows of modules in each line
//! of text.

use qrcodegen::{QrCode, QrCodeEcc};

use crate::cli::Failure;

/// Light modules around the code, which readers need (ISO/IEC 18004 section 6.3.8).
const QUIET: i32 = 4;
/// White on black whatever the terminal's own colours are, and back to them.
const COLORS: &str = "\x1b[97;40m";
const RESET: &str = "\x1b[0m";

/// The code of a text. Light modules are drawn, dark ones are background.
///
/// Errors: the text is too long for a code.
pub fn code(text: &str) -> Result<String, Failure> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium)
        .map_err(|_| Failure::failed("the address is too long for a QR code"))?;
    let size = code.size();
    let mut lines = String::new();
    for row in (-QUIET..size + QUIET).step_by(2) {
        lines.push_str(COLORS);
        for column in -QUIET..size + QUIET {
            // Beside the code everything is light.
            let upper = !code.get_module(column, row);
            let lower = row + 1 < size + QUIET && !code.get_module(column, row + 1);
            lines.push(match (upper, lower) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        lines.push_str(RESET);
        lines.push('\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The modules of a picture, dark ones true.
    fn modules(picture: &str) -> Vec<Vec<bool>> {
        let mut rows = Vec::new();
        for line in picture.lines() {
            let line = line
                .strip_prefix(COLORS)
                .unwrap()
                .strip_suffix(RESET)
                .unwrap();
            let dark = |light: &[char]| {
                let row = line.chars().map(|half| !light.contains(&half));
                row.collect::<Vec<bool>>()
            };
            rows.push(dark(&['█', '▀']));
            rows.push(dark(&['█', '▄']));
        }
        rows
    }

    #[test]
    fn the_picture_is_the_code_with_a_quiet_zone() {
        let text = "wss://relay.example/ws?machine_id=abcdefghijklmnopqrstuvwxyz234567";
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        let rows = modules(&super::code(text).unwrap());
        let width = usize::try_from(code.size() + 2 * QUIET).unwrap();
        assert!(rows.len() >= width && rows.iter().all(|row| row.len() == width));
        for (y, row) in rows.iter().take(width).enumerate() {
            for (x, dark) in row.iter().enumerate() {
                let (x, y) = (i32::try_from(x).unwrap(), i32::try_from(y).unwrap());
                assert_eq!(*dark, code.get_module(x - QUIET, y - QUIET), "{x} {y}");
            }
        }
        // The finder pattern of ISO/IEC 18004 section 6.3.3, at all three corners.
        let finder = [
            "#######", "#     #", "# ### #", "# ### #", "# ### #", "#     #", "#######",
        ];
        let far = width - 8 - 3;
        for (left, top) in [(4, 4), (far, 4), (4, far)] {
            for (y, line) in finder.iter().enumerate() {
                for (x, module) in line.chars().enumerate() {
                    assert_eq!(rows[top + y][left + x], module == '#', "{left} {top}");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(super::code(&"x".repeat(5000)).is_err());
    }
}
