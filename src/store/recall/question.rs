//! What a message asks for.

use super::terms::{Kind, Term, each_term, fold, significant_terms};
use super::topics::Topics;
use super::vocabulary::Vocabulary;

/// Most characters of a message, and most terms in these; the rest is ignored.
const MOST_CHARACTERS: usize = 4_000;
const MOST_TERMS: usize = 64;

/// What a message asks for.
pub(super) struct Question {
    pub terms: Vec<Term>,
    /// The topics of each of the terms.
    pub topics_of: Vec<Topics>,
    pub topics: Topics,
    pub is_general: bool,
}

impl Question {
    pub fn of(vocabulary: &mut Vocabulary, message: &str) -> Question {
        let tables = vocabulary.tables();
        let end = message.char_indices().nth(MOST_CHARACTERS);
        let beginning = &message[..end.map_or(message.len(), |(end, _)| end)];
        let (folded, cues) = (fold(beginning), &tables.cues);
        let terms = significant_terms(&folded, MOST_TERMS, &tables.stop_words);
        let topics_of: Vec<Topics> = terms.iter().map(|term| cues.asked(&term.text)).collect();
        let (mut topics, mut is_general) = cues.of_unspaced_message(&folded);
        topics_of.iter().for_each(|of_term| topics |= *of_term);
        each_term(&folded, &mut |kind, word| {
            if kind == Kind::Word {
                topics |= cues.whole(word);
                is_general |= cues.is_general(word);
            }
        });
        Question {
            terms,
            topics_of,
            topics,
            is_general,
        }
    }
}
