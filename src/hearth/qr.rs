//! QR codes (ISO/IEC 18004): for a terminal, with two rows of modules in each line of
//! text, and for the page.

use qrcodegen::{QrCode, QrCodeEcc};

use base::error::{Error, Result};

/// Light modules around the code, which readers need (ISO/IEC 18004 section 6.3.8).
const QUIET: i32 = 4;
/// White on black, whatever the terminal's colours are; then back to them.
const COLORS: &str = "\x1b[97;40m";
const RESET: &str = "\x1b[0m";

fn encode(text: &str) -> Result<QrCode> {
    QrCode::encode_text(text, QrCodeEcc::Medium)
        .map_err(|_| Error::invalid_request("the address is too long for a QR code"))
}

/// The code of a text, row by row without the light area around it: `1` is a dark
/// module, `0` a light one.
///
/// # Errors
/// `invalid_request` when the text is too long for a code.
pub fn rows(text: &str) -> Result<Vec<String>> {
    let code = encode(text)?;
    let places = 0..code.size();
    let module = |column, row| {
        if code.get_module(column, row) {
            '1'
        } else {
            '0'
        }
    };
    let row = |row| places.clone().map(|column| module(column, row)).collect();
    Ok(places.clone().map(row).collect())
}

/// The code of a text for a terminal. Light modules are drawn, dark ones are background.
///
/// # Errors
/// `invalid_request` when the text is too long for a code.
pub fn code(text: &str) -> Result<String> {
    let code = encode(text)?;
    let size = code.size();
    let mut lines = String::new();
    for row in (-QUIET..size + QUIET).step_by(2) {
        lines.push_str(COLORS);
        for column in -QUIET..size + QUIET {
            // The area around the code is light.
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
        for (row, digits) in rows[4..].iter().zip(super::rows(text).unwrap()) {
            let dark: Vec<bool> = digits.chars().map(|digit| digit == '1').collect();
            assert_eq!(row[4..4 + dark.len()], dark);
        }
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

    /// Reads a code of version 5 and level M (two blocks of 43 bytes) in byte
    /// mode: ISO/IEC 18004 sections 7.4 to 7.9, without the error correction.
    fn read(rows: &[Vec<bool>]) -> String {
        const SIZE: usize = 37;
        let quiet = usize::try_from(QUIET).unwrap();
        let dark = |x: usize, y: usize| rows[y + quiet][x + quiet];
        let is_fixed = |x: usize, y: usize| {
            let far = SIZE - 8;
            let finder = (y < 9 && !(9..far).contains(&x)) || (x < 9 && y >= far);
            let alignment = (28..33).contains(&x) && (28..33).contains(&y);
            finder || alignment || x == 6 || y == 6
        };
        let format = [2, 3, 4].map(|x| usize::from(dark(x, 8)));
        let mask = (format[0] << 2 | format[1] << 1 | format[2]) ^ 0b101;
        let is_flipped = |x: usize, y: usize| {
            let remainder = match mask {
                0 => (x + y) % 2,
                1 => y % 2,
                2 => x % 3,
                3 => (x + y) % 3,
                4 => (x / 3 + y / 2) % 2,
                5 => x * y % 2 + x * y % 3,
                6 => (x * y % 2 + x * y % 3) % 2,
                _ => ((x + y) % 2 + x * y % 3) % 2,
            };
            remainder == 0
        };
        let mut bits = Vec::new();
        let columns = (7..SIZE).rev().step_by(2).chain([5, 3, 1]);
        for (turn, right) in columns.enumerate() {
            for step in 0..SIZE {
                let upward = turn % 2 == 0;
                let y = if upward { SIZE - 1 - step } else { step };
                for x in [right, right - 1] {
                    if !is_fixed(x, y) {
                        bits.push(u8::from(dark(x, y) != is_flipped(x, y)));
                    }
                }
            }
        }
        let byte = |bits: &[u8]| bits.iter().fold(0, |byte, bit| byte << 1 | bit);
        let words: Vec<u8> = bits.chunks(8).map(byte).collect();
        let block = |first: usize| words[first..86].iter().step_by(2).copied();
        let bits: Vec<u8> = block(0)
            .chain(block(1))
            .flat_map(|word| (0..8).rev().map(move |place| word >> place & 1))
            .collect();
        assert_eq!(byte(&bits[..4]), 4, "byte mode");
        let length = usize::from(byte(&bits[4..12]));
        let bytes = bits[12..12 + 8 * length].chunks(8).map(byte).collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_picture_reads_as_the_text() {
        for last in ["2", "3", "4", "5", "6", "7"] {
            let text =
                format!("wss://relay.example/ws?machine_id=abcdefghijklmnopqrstuvwxyz23456{last}");
            assert_eq!(read(&modules(&super::code(&text).unwrap())), text);
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(super::code(&"x".repeat(5000)).is_err());
    }
}
