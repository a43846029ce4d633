//! Texts whose words are as common and as rare as those of a language.

/// Words of the language; the n-th is used 1/n as often as the first.
const WORDS: usize = 50_000;
const COMMON: [&str; 24] = [
    "the", "to", "and", "a", "of", "i", "you", "is", "in", "it", "that", "for", "on", "what",
    "this", "was", "be", "with", "have", "at", "house", "light", "when", "please",
];
const SYLLABLES: [&str; 32] = [
    "ba", "con", "da", "er", "fi", "ga", "hou", "in", "jo", "ka", "li", "ma", "ne", "on", "per",
    "qua", "re", "sta", "the", "un", "ver", "wi", "xa", "ye", "zo", "pro", "tion", "ment", "ing",
    "ly", "tha", "sho",
];

/// A sequence of texts that is the same in every run.
pub struct Words {
    words: Vec<String>,
    /// Of xorshift64*.
    state: u64,
}

impl Words {
    /// The texts that this seed, which is not 0, stands for.
    pub fn new(seed: u64) -> Words {
        let mut made = Words {
            words: COMMON.map(str::to_owned).to_vec(),
            state: 7,
        };
        while made.words.len() < WORDS {
            let word = (0..=made.below(4))
                .map(|_| SYLLABLES[made.below(SYLLABLES.len())])
                .collect();
            made.words.push(word);
        }
        made.state = seed;
        made
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    /// So many words.
    pub fn text(&mut self, count: usize) -> String {
        let mut text = String::new();
        for number in 0..count {
            let fraction = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = (self.words.len() as f64).powf(fraction) - 1.0;
            if number > 0 {
                text.push(' ');
            }
            text.push_str(&self.words[rank as usize]);
        }
        text
    }

    /// What somebody says: 4 to 39 words.
    pub fn message(&mut self) -> String {
        let count = 4 + self.below(36);
        self.text(count)
    }
}
