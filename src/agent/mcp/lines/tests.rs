//! Lines of bounded length, however the bytes are cut.

use super::*;

/// The lines that pieces become: `whole`, `TOO LONG` or `noise ...`; a long one is
/// given by its length.
fn taken(pieces: &[&[u8]]) -> Vec<String> {
    let mut lines = IncomingLines::default();
    let mut taken = Vec::new();
    let mut take = |line: Line<'_>| {
        let shown = |bytes: &[u8]| match bytes.len() {
            0..=50 => String::from_utf8_lossy(bytes).into_owned(),
            length => length.to_string(),
        };
        taken.push(match line {
            Line::Whole(line) => shown(line),
            Line::TooLong => "TOO LONG".to_owned(),
            Line::LongNoise(line) => format!("noise {}", shown(line)),
        });
    };
    for piece in pieces {
        lines.push(piece, &mut take);
    }
    lines.end(&mut take);
    assert!(lines.buffer.capacity() <= KEPT_BYTES);
    taken
}

#[test]
fn lines_are_whole_however_they_are_cut() {
    let text = b"{\"a\":1}\r\n\n  \nnoise\n{\"b\":\"\xc3\xbc\"}";
    for size in [1, 2, 5, 1000] {
        let pieces: Vec<&[u8]> = text.chunks(size).collect();
        assert_eq!(taken(&pieces), ["{\"a\":1}", "noise", "{\"b\":\"ü\"}"]);
    }
}

#[test]
fn what_is_too_long_is_thrown_away_and_the_next_line_is_not() {
    let big = vec![b'x'; MESSAGE_BYTES];
    assert_eq!(
        taken(&[b"{\"a\":\"", &big, &big, b"\"}\n{}\n"]),
        ["TOO LONG", "{}"]
    );
    let noise = taken(&[b"log ", &big, b"\n{}\n"]);
    assert_eq!(noise, ["noise log ", "{}"]);
    assert_eq!(taken(&[&big, b"\n"]), [MESSAGE_BYTES.to_string()]);
}
