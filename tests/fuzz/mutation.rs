//! Bytes changed at random, from a seed that repeats them.

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

/// A generator of numbers that look random (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

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
