//! Bytes changed at random, from a seed that repeats them.

use support::random::Random;

/// Fragments that parsers stumble over: numbers at the edge, half escapes,
/// bytes that are no text.
const FRAGMENTS: [&[u8]; 16] = [
    b"-1",
    b"0",
    b"99999999999999999999",
    b"1e999",
    b"\xff\xfe",
    b"\0",
    b"\r\n",
    b"\r\n\r\n",
    b"\\u",
    b"\\ud800",
    b"\"",
    b"{",
    b"[[[[[[[[[[[[[[[[",
    b": ",
    b"%00",
    b"\xf0\x9f\x92\xa9",
];

/// How long a sample may become; what is larger tests limits, which other tests do.
const LONGEST: usize = 64 * 1024;

/// `sample` with one to eight changes, some of which take parts of `others`.
pub fn mutate(random: &mut Random, sample: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=random.below(8) {
        change(random, &mut bytes, others);
        bytes.truncate(LONGEST.max(sample.len()));
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    let begin = random.below(bytes.len() + 1);
    let end = begin + random.below((bytes.len() - begin).min(64) + 1);
    match random.below(7) {
        0 if begin < bytes.len() => bytes[begin] ^= 1 << random.below(8),
        1 if begin < bytes.len() => bytes[begin] = random.below(256) as u8,
        2 => drop(bytes.drain(begin..end)),
        3 => {
            let part = bytes[begin..end].to_vec();
            let times = 1 + random.below(40);
            bytes.splice(begin..begin, part.repeat(times));
        }
        4 => drop(bytes.splice(begin..end, random.pick(&FRAGMENTS).iter().copied())),
        5 => bytes.truncate(begin),
        _ => {
            let other = &others[random.below(others.len())];
            let from = random.below(other.len() + 1);
            bytes.splice(begin..end, other[from..].iter().copied());
        }
    }
}
