//! Which memory says something newer of the same subject.

use super::likeness::likeness;
use super::terms::Kind;
use super::topics::Topics;
use super::vocabulary::Vocabulary;
use super::{Count, rarity};

/// The least share of its weight that one of two memories has in common with the other
/// if they say something of the same subject.
const SAME_SUBJECT: f64 = 0.37;
/// The same if they share a single term: it may be the place where both are.
const SAME_WORD: f64 = 0.7;
/// The same if the newer one says that something has changed.
const SAME_WORD_CHANGED: f64 = 0.3;
/// The same of their search words, beside a word, if the newer one says so.
const SAME_SEARCH_WORDS: f64 = 0.2;

/// What tells subjects apart.
pub(super) struct Subjects<'a> {
    pub vocabulary: &'a Vocabulary,
    pub counts: &'a [Count],
    /// How many memories are seen.
    pub seen: usize,
    /// What is asked about.
    pub topics: Topics,
}

impl Subjects<'_> {
    /// Whether both memories say something of the same subject.
    pub fn is_same(&self, old: usize, new: usize) -> bool {
        let (old_terms, new_terms) = (self.vocabulary.terms(old), self.vocabulary.terms(new));
        let all = self.sum(old_terms).min(self.sum(new_terms));
        let shared = old_terms.iter().filter(|term| {
            let is_like = |other: &u32| self.is_like(**term, *other);
            self.weight(**term) > 0.0 && new_terms.iter().any(is_like)
        });
        let (count, weight) = shared.fold((0, 0.0), |(count, weight), term| {
            (count + 1, weight + self.weight(*term))
        });
        let is_update = self.vocabulary.is_update(new);
        let topics = self.vocabulary.topics(old) & self.vocabulary.topics(new) & self.topics;
        let least = match (count, is_update) {
            (0, _) => return false,
            // Somebody's size, and somebody's new one.
            (_, true) if !topics.is_empty() => return true,
            (_, true) if self.have_same_search_words(old, new) => return true,
            (1, true) => SAME_WORD_CHANGED,
            (1, false) => SAME_WORD,
            _ => SAME_SUBJECT,
        };
        weight >= least * all
    }

    fn have_same_search_words(&self, old: usize, new: usize) -> bool {
        let old = self.vocabulary.search_terms(old);
        let new = self.vocabulary.search_terms(new);
        let shared = old.iter().copied().filter(|term| new.contains(term));
        let shared: Vec<u32> = shared.collect();
        let weight = self.sum(&shared);
        weight > 0.0 && weight >= SAME_SEARCH_WORDS * self.sum(old).min(self.sum(new))
    }

    fn sum(&self, terms: &[u32]) -> f64 {
        terms.iter().map(|term| self.weight(*term)).sum()
    }

    fn weight(&self, term: u32) -> f64 {
        let word = self.vocabulary.word(term as usize);
        match word.kind {
            Kind::WeakWord | Kind::Character => 0.0,
            kind => kind.weight() * rarity(self.counts[term as usize].having, self.seen),
        }
    }

    fn is_like(&self, one: u32, other: u32) -> bool {
        if one == other {
            return true;
        }
        let (one, other) = (
            self.vocabulary.word(one as usize),
            self.vocabulary.word(other as usize),
        );
        one.kind.is_word() && other.kind.is_word() && likeness(one.form, other.form) > 0.0
    }
}
