//! Which memories fit a message, by the words that they share.
//!
//! Every memory is compared with the message: there are thousands at most, and an
//! index of words would miss inflections and compounds. The cost is linear, and each
//! different word is compared once.

mod likeness;
mod stop_words;
mod terms;

use std::collections::HashMap;

use likeness::likeness;
use terms::{Kind, Term, each_term, fold, significant_terms};

/// Most terms of a message; the rest is ignored.
const MOST_TERMS: usize = 64;
/// Most terms of a memory in the search for an older one of the same content.
const MOST_MEMORY_TERMS: usize = 256;

/// Which of the matches are good enough.
pub(crate) enum Choice {
    /// All that share a term.
    Any,
    /// Those that are worth showing to the model.
    Relevant,
}

/// The least score of a memory that is worth showing: one rare word of a short
/// message, or several of a longer one.
const FLOOR: f64 = 0.3;
/// The share of the best score that a memory needs besides.
const SHARE_OF_BEST: f64 = 0.6;
/// How much the terms of a message that a memory lacks count against it.
const LACK: f64 = 0.4;
/// The least share of its weight that one of two memories has in common with the other
/// if they say something of the same subject.
const SAME_SUBJECT: f64 = 0.3;
/// The same if they share a single term.
const SAME_WORD: f64 = 0.7;
/// Of fewer memories, how many have a word says little about the word.
const LEAST_TEXTS: usize = 50;
/// Letters of the beginning of a word that a person searches for.
const SEARCHED_PREFIX: usize = 3;

impl Kind {
    /// Runs overlap, and say less each.
    fn weight(self) -> f64 {
        match self {
            Kind::Word => 1.0,
            Kind::WeakWord => 0.2,
            Kind::Run => 0.5,
            Kind::ThaiRun => 0.3,
            Kind::Character => 0.35,
        }
    }
}

/// A term of the memories.
struct Known {
    /// The memories that have it.
    memories: usize,
    /// The terms of the message that are like it, and how much.
    like: Vec<(usize, f64)>,
}

/// A memory that shares a term with the message.
struct Match {
    place: usize,
    /// Each shared term of the message once, and how alike.
    shared: Vec<(usize, f64)>,
    score: f64,
}

/// The places of the texts that fit a message, best first, at most `limit`. Of two
/// that fit as well, the later one comes first.
pub(crate) fn rank(texts: &[&str], message: &str, choice: &Choice, limit: usize) -> Vec<usize> {
    let asked = significant_terms(message, MOST_TERMS);
    let (mut matches, known) = find_matches(texts, &asked, choice);
    let mut having = vec![0; asked.len()];
    for (term, _) in matches.iter().flat_map(|found| &found.shared) {
        having[*term] += 1;
    }
    let weights: Vec<f64> = asked
        .iter()
        .zip(having)
        .map(|(term, having)| term.kind.weight() * rarity(having, texts.len()))
        .collect();
    let counted = asked.iter().zip(&weights);
    let all: f64 = counted
        .filter(|(term, _)| term.kind != Kind::Character)
        .map(|(_, weight)| weight)
        .sum();
    // As of half a word, if it is only of single characters.
    let all = all.max(0.5).powf(LACK);
    for found in &mut matches {
        let shared = found.shared.iter();
        found.score = shared
            .map(|(term, like)| weights[*term] * like)
            .sum::<f64>()
            / all;
    }
    matches.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(other.place.cmp(&one.place))
    });
    if let Choice::Relevant = choice {
        let best = matches.first().map_or(0.0, |best| best.score);
        let least = FLOOR.max(SHARE_OF_BEST * best);
        matches.retain(|found| found.score >= least);
        matches.truncate(2 * limit);
        drop_outdated(&mut matches, texts, &known);
    }
    matches.truncate(limit);
    matches.into_iter().map(|found| found.place).collect()
}

/// The texts that share a term with the message, and all terms of all texts.
fn find_matches(
    texts: &[&str],
    asked: &[Term],
    choice: &Choice,
) -> (Vec<Match>, HashMap<String, Known>) {
    let is_begun = |term: &Term, text: &str| {
        matches!(choice, Choice::Any)
            && term.text.len() >= SEARCHED_PREFIX
            && text.starts_with(&term.text)
    };
    let mut known: HashMap<String, Known> = HashMap::new();
    let mut matches = Vec::new();
    for (place, text) in texts.iter().enumerate() {
        let mut shared: Vec<(usize, f64)> = Vec::new();
        let mut note = |term: &mut Known| {
            term.memories += 1;
            for (asked, like) in &term.like {
                match shared.iter_mut().find(|(term, _)| term == asked) {
                    Some((_, best)) => *best = best.max(*like),
                    None => shared.push((*asked, *like)),
                }
            }
        };
        each_term(&fold(text), &mut |kind, text| {
            if let Some(term) = known.get_mut(text) {
                return note(term);
            }
            let like = asked.iter().enumerate().filter_map(|(place, term)| {
                let alike = match likeness_of(term, kind, text) {
                    0.0 if is_begun(term, text) => 0.5,
                    alike => alike,
                };
                (alike > 0.0).then_some((place, alike))
            });
            let mut term = Known {
                memories: 0,
                like: like.collect(),
            };
            note(&mut term);
            known.insert(text.to_owned(), term);
        });
        if !shared.is_empty() {
            let score = 0.0;
            matches.push(Match {
                place,
                shared,
                score,
            });
        }
    }
    (matches, known)
}

fn likeness_of(term: &Term, kind: Kind, text: &str) -> f64 {
    match (term.kind, kind) {
        (Kind::Word | Kind::WeakWord, Kind::Word | Kind::WeakWord) => likeness(&term.text, text),
        _ if term.text == text => 1.0,
        _ => 0.0,
    }
}

/// What a term says, by how many of the texts have it: 1 if none or hardly any, and
/// near 0 if all do.
fn rarity(having: usize, texts: usize) -> f64 {
    let all = (texts.max(LEAST_TEXTS) + 1) as f64;
    (all / (having as f64 + 0.5)).ln() / (all / 0.5).ln()
}

/// Drops those of which a later one says something newer.
fn drop_outdated(matches: &mut Vec<Match>, texts: &[&str], known: &HashMap<String, Known>) {
    let terms: Vec<Vec<Term>> = matches
        .iter()
        .map(|found| significant_terms(texts[found.place], MOST_MEMORY_TERMS))
        .collect();
    let weight = |term: &Term| match term.kind {
        Kind::WeakWord | Kind::Character => 0.0,
        kind => {
            let having = known.get(&term.text).map_or(0, |known| known.memories);
            kind.weight() * rarity(having, texts.len())
        }
    };
    let sum = |terms: &mut dyn Iterator<Item = &Term>| terms.map(weight).sum::<f64>();
    let is_same_subject = |old: &[Term], new: &[Term]| {
        let all = sum(&mut old.iter()).min(sum(&mut new.iter()));
        let is_shared = |term: &&Term| {
            let like = |other: &Term| likeness_of(term, other.kind, &other.text) > 0.0;
            weight(term) > 0.0 && new.iter().any(like)
        };
        let shared: Vec<&Term> = old.iter().filter(is_shared).collect();
        // A single word may be the place where both are.
        let least = match shared.len() {
            1 => SAME_WORD,
            _ => SAME_SUBJECT,
        };
        sum(&mut shared.into_iter()) >= least * all
    };
    let is_outdated: Vec<bool> = (0..matches.len())
        .map(|old| {
            (0..matches.len()).any(|new| {
                matches[new].place > matches[old].place && is_same_subject(&terms[old], &terms[new])
            })
        })
        .collect();
    let mut outdated = is_outdated.into_iter();
    matches.retain(|_| outdated.next() != Some(true));
}
