//! What households speak of in many words: who asks what to cook must know who is
//! allergic, and no word of the one is in the other.
//!
//! A memory that is wanted for its topic alone weighs less than one that shares a word.

use std::ops::{BitAnd, BitOr, BitOrAssign};

use super::household::{GENERAL, TOPICS, UPDATES};

/// A set of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Topics(u32);

impl Topics {
    /// Everybody who lives here.
    const WHOLE: Topics = Topics(1);
    /// What to cook.
    const FOOD: Topics = Topics(1 << 1);
    /// Of which everything is wanted: an emergency.
    const EMERGENCY: Topics = Topics(1 << 5 | 1 << 6);
    pub const COUNT: usize = TOPICS.len();

    fn one(place: usize) -> Topics {
        Topics(1 << place)
    }

    pub fn has(self, place: usize) -> bool {
        self.0 >> place & 1 == 1
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of which every memory is wanted, of all that a message asks about.
    pub fn wanted_whole(self) -> Topics {
        let is_for_all = self & Topics::WHOLE != Topics::default();
        match is_for_all {
            true => self & (Topics::EMERGENCY | Topics::FOOD),
            false => self & Topics::EMERGENCY,
        }
    }
}

impl BitOr for Topics {
    type Output = Topics;
    fn bitor(self, other: Topics) -> Topics {
        Topics(self.0 | other.0)
    }
}

impl BitOrAssign for Topics {
    fn bitor_assign(&mut self, other: Topics) {
        self.0 |= other.0;
    }
}

impl BitAnd for Topics {
    type Output = Topics;
    fn bitand(self, other: Topics) -> Topics {
        Topics(self.0 & other.0)
    }
}

/// The lists, to look words up in.
pub(super) struct Cues {
    /// Of words between spaces: in order, without their dashes.
    words: Vec<(&'static str, Cue)>,
    /// The same that may be within a word.
    parts: Vec<(&'static str, Cue)>,
    /// Of scripts without spaces.
    unspaced: Vec<(&'static str, Cue)>,
    /// Words between spaces of what has changed, in order.
    updates: Vec<&'static str>,
}

/// What a word tells.
#[derive(Clone, Copy, Default)]
struct Cue {
    asked: Topics,
    said: Topics,
    is_general: bool,
    is_update: bool,
    /// Whether any ending may follow.
    is_beginning: bool,
}

impl Default for Cues {
    fn default() -> Cues {
        let mut cues = Cues {
            words: Vec::new(),
            parts: Vec::new(),
            unspaced: Vec::new(),
            updates: UPDATES.split_ascii_whitespace().collect(),
        };
        let none = Cue::default;
        for (place, topic) in TOPICS.iter().enumerate() {
            let (asked, said) = (Topics::one(place), Topics::one(place));
            cues.add(
                topic.both,
                &Cue {
                    asked,
                    said,
                    ..none()
                },
            );
            cues.add(topic.asked, &Cue { asked, ..none() });
            cues.add(topic.said, &Cue { said, ..none() });
        }
        let is_general = true;
        cues.add(
            GENERAL,
            &Cue {
                is_general,
                ..none()
            },
        );
        let is_update = true;
        cues.add(
            UPDATES,
            &Cue {
                is_update,
                ..none()
            },
        );
        cues.words.sort_unstable_by_key(|(word, _)| *word);
        cues.updates.sort_unstable();
        cues
    }
}

impl Cues {
    fn add(&mut self, list: &'static str, cue: &Cue) {
        for word in list.split_ascii_whitespace() {
            let is_part = word.starts_with('-');
            let is_beginning = word.ends_with('-');
            let list = match (word.is_ascii(), is_part) {
                (false, _) => &mut self.unspaced,
                (true, true) => &mut self.parts,
                (true, false) => &mut self.words,
            };
            let cue = Cue {
                is_beginning,
                ..*cue
            };
            list.push((word.trim_matches('-'), cue));
        }
    }

    /// The topics that a word of a memory tells.
    pub fn said(&self, word: &str) -> Topics {
        let mut said = Topics::default();
        self.each(word, &mut |cue| said |= cue.said);
        said
    }

    /// The topics that a word of a message asks about.
    pub fn asked(&self, word: &str) -> Topics {
        let mut asked = Topics::default();
        self.each(word, &mut |cue| asked |= cue.asked);
        asked
    }

    /// Whether a word of a message asks for everybody.
    pub fn whole(&self, word: &str) -> Topics {
        self.asked(word) & Topics::WHOLE
    }

    /// Whether a word of a message asks for something general.
    pub fn is_general(&self, word: &str) -> bool {
        let mut is_general = false;
        self.each(word, &mut |cue| is_general |= cue.is_general);
        is_general
    }

    /// Whether a word of a memory says that something has changed.
    pub fn is_update(&self, word: &str) -> bool {
        self.updates.binary_search(&word).is_ok()
    }

    /// The topics, and whether it is an update, of a folded memory in a script without
    /// spaces.
    pub fn of_unspaced_memory(&self, folded: &str) -> (Topics, bool) {
        let (mut said, mut is_update) = (Topics::default(), false);
        self.each_unspaced(folded, &mut |cue| {
            said |= cue.said;
            is_update |= cue.is_update;
        });
        (said, is_update)
    }

    /// The topics of a folded message in such a script, and whether it is general.
    pub fn of_unspaced_message(&self, folded: &str) -> (Topics, bool) {
        let (mut asked, mut is_general) = (Topics::default(), false);
        self.each_unspaced(folded, &mut |cue| {
            asked |= cue.asked;
            is_general |= cue.is_general;
        });
        (asked, is_general)
    }

    fn each(&self, word: &str, take: &mut dyn FnMut(&Cue)) {
        for (end, _) in word.char_indices().skip(2).chain([(word.len(), ' ')]) {
            let begin = &word[..end];
            let first = self.words.partition_point(|(cue, _)| *cue < begin);
            for (cue, what) in &self.words[first..] {
                if *cue != begin {
                    break;
                }
                if what.is_beginning || end == word.len() {
                    take(what);
                }
            }
        }
        for (cue, what) in &self.parts {
            let is_in = match what.is_beginning {
                true => word.contains(cue),
                false => word.ends_with(cue),
            };
            if is_in {
                take(what);
            }
        }
    }

    fn each_unspaced(&self, folded: &str, take: &mut dyn FnMut(&Cue)) {
        // Letters with accents are gone.
        if folded.is_ascii() {
            return;
        }
        let found = self.unspaced.iter().filter(|(cue, _)| folded.contains(cue));
        found.for_each(|(_, what)| take(what));
    }
}
