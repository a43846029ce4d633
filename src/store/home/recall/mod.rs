//! Which memories fit a message, by the words and the topics that they share.
//!
//! [`Vocabulary`] has each different word of the memories once, so that a message is
//! compared with words, and not with memories: first each word of the message with each
//! of those, and then each memory gets the sum of what its words say, the rare ones most.
//! Words are compared as they are, and not looked up: an index would miss inflections and
//! compounds. What each weight is worth was measured: see `tests/data/recall`.

pub(crate) mod lexicon;
pub(crate) mod terms;

use std::collections::HashMap;

use lexicon::LEXICON;
use terms::{Kind, Side, Term, languages, terms};

/// Most characters of a message, and most terms in these; the rest is ignored.
const MOST_CHARACTERS: usize = 4_000;
const MOST_TERMS: usize = 64;
/// Most terms that are looked for: more than the longest memory has.
const ALL_TERMS: usize = 4_096;

/// What a run of characters weighs beside a word: runs overlap, and say less each.
const RUN: f64 = 0.33;
/// What is only a hint weighs: a topic, a search word, or the name of somebody of whom many
/// memories are.
const HINT: f64 = 0.6;
/// What is left of a topic where search words could have said the same.
const WORDED_TOPIC: f64 = 0.8;
/// The terms at the beginning of a memory, which say what it is about, and what the
/// others say beside them.
const BEGINNING: usize = 3;
const LATER: f64 = 0.7;
/// What a part of a word says beside the word.
const PART: f64 = 0.5;
/// How many memories begin with the name of somebody or something at least.
const SUBJECT_MEMORIES: u32 = 2;
/// Of fewer memories, how many have a word says little about the word.
const LEAST_MEMORIES: usize = 50;

/// The least score of a memory that is worth showing: one rare word of a short
/// message, or several of a longer one.
const FLOOR: f64 = 0.3;
/// The same of a memory with search words that shares one term of several: if it were meant, more
/// of its words would probably be among them.
const LONE_FLOOR: f64 = 0.55;
/// The share of the best score that a memory needs besides.
const SHARE_OF_BEST: f64 = 0.7;
/// How many memories are few and very many, and how much more of both a match needs among very
/// many: of more memories, more fit by chance.
const FEW: f64 = 60.0;
const VERY_MANY: f64 = 5_000.0;
const CHANCE: f64 = 0.12;
/// The share of its weight that one of two memories has in common with the other if they
/// say something of the same subject.
const SAME_SUBJECT: f64 = 0.33;
/// The same of two that no message asks for together.
const SAME_THING: f64 = 0.4;
/// Most matches of which outdated ones are dropped, for each that is wanted.
const POOL: usize = 4;
/// How little the places at the beginning of two orders differ that are made one: as
/// reciprocal rank fusion is usually done.
const RANK: f64 = 60.0;

/// Which of the matches are good enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All that share a term.
    Any,
    /// Those that are worth showing to the model.
    Relevant,
}

/// The terms of memories and their search words, oldest first, without the words of grammar.
#[derive(Default)]
pub(crate) struct Vocabulary {
    places: HashMap<String, u32>,
    /// By place.
    kinds: Vec<Kind>,
    memories: Vec<Entry>,
}

struct Entry {
    /// The places of its terms and what each says: those of its text, and after these those
    /// of its search words.
    terms: Box<[(u32, f32)]>,
    text_terms: u32,
    /// Whether it says that something has changed.
    is_update: bool,
    /// Those that it may be in, by bit.
    languages: u32,
}

impl Entry {
    fn has_search_words(&self) -> bool {
        (self.text_terms as usize) < self.terms.len()
    }

    /// The term that it begins with, which often names the person it is about.
    fn first(&self) -> Option<usize> {
        let first = self.terms.first().filter(|_| self.text_terms > 0);
        first.map(|(place, _)| *place as usize)
    }
}

impl Vocabulary {
    /// Adds memories after those that are there: their texts with their search words.
    pub fn add<'a>(&mut self, memories: impl Iterator<Item = (&'a str, &'a str)>) {
        let changed = LEXICON.topic("changed").map(Kind::Topic);
        for (text, search_words) in memories {
            let of_text = terms(&LEXICON, text, ALL_TERMS, Side::Said);
            let of_search = terms(&LEXICON, search_words, ALL_TERMS, Side::Neither);
            let of_topic = if of_search.is_empty() {
                1.0
            } else {
                WORDED_TOPIC
            };
            let is_update = of_text.iter().any(|term| Some(term.kind) == changed);
            let mut entry: Vec<(u32, f32)> = Vec::new();
            for (number, term) in of_text.into_iter().enumerate() {
                let weight = match term.kind {
                    Kind::Topic(_) => of_topic,
                    _ if number < BEGINNING => 1.0,
                    _ => LATER,
                };
                entry.push((self.place_of(term), weight as f32));
            }
            let text_terms = entry.len() as u32;
            for term in of_search {
                let place = self.place_of(term);
                if !entry.iter().any(|(known, _)| *known == place) {
                    entry.push((place, HINT as f32));
                }
            }
            self.memories.push(Entry {
                terms: entry.into(),
                text_terms,
                is_update,
                languages: languages(&LEXICON, text),
            });
        }
    }

    /// Whether a memory that is newer may say something else of the same thing: it says that
    /// something has changed, or begins alike. The birthdays of two people are no such.
    fn may_outdate(&self, old: usize, new: usize) -> bool {
        let (old, new) = (&self.memories[old], &self.memories[new]);
        new.is_update || old.first() == new.first()
    }

    fn place_of(&mut self, term: Term) -> u32 {
        let new = self.kinds.len() as u32;
        let place = *self.places.entry(term.text).or_insert(new);
        if place == new {
            self.kinds.push(term.kind);
        }
        place
    }
}

/// A memory that may fit.
struct Match {
    place: usize,
    score: f64,
    /// Whether it is good enough.
    is_kept: bool,
}

/// The places of the memories that fit a message, best first, at most `limit`. Of two
/// that fit as well, the later one comes first. Only those that are seen count, in any
/// way. What is `near` by its meaning, the nearest first, fits too.
pub(crate) fn rank(
    vocabulary: &Vocabulary,
    is_seen: &[bool],
    message: &str,
    choice: Choice,
    near: &[usize],
    limit: usize,
) -> Vec<usize> {
    if !is_seen.contains(&true) {
        return Vec::new();
    }
    let search = Search::new(vocabulary, is_seen, message, choice);
    let mut matches = search.matches();
    let by_score = |one: &Match, other: &Match| {
        let kept = other.is_kept.cmp(&one.is_kept);
        let by_score = kept.then(other.score.total_cmp(&one.score));
        by_score.then(other.place.cmp(&one.place))
    };
    matches.sort_unstable_by(by_score);
    if !near.is_empty() {
        fuse(&mut matches, near);
        matches.sort_unstable_by(by_score);
    }
    matches.truncate(POOL * limit);
    let weights = search.weights();
    let mut found: Vec<usize> = Vec::new();
    for old in matches.iter().filter(|found| found.is_kept) {
        let said = search.said(old.place, &weights);
        let is_newer = |new: &&Match| {
            let counts = new.is_kept || vocabulary.memories[new.place].is_update;
            let is_newer = counts && new.place > old.place;
            is_newer && search.is_same_subject(&said, new.place, &weights, SAME_SUBJECT)
        };
        let newer = match choice {
            Choice::Any => None,
            Choice::Relevant => matches.iter().filter(is_newer).map(|new| new.place).max(),
        };
        let place = newer.unwrap_or(old.place);
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found.truncate(limit);
    found
}

/// The pairs of a memory and the newest one that says something else of the same thing, for each
/// of these `places` where there is one that is seen. `counts` says which pairs count.
pub(crate) fn outdated(
    vocabulary: &Vocabulary,
    is_seen: &[bool],
    places: &[usize],
    counts: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let search = Search::new(vocabulary, is_seen, "", Choice::Relevant);
    let weights = search.weights();
    let newest = |old: &usize| {
        let said = search.said(*old, &weights);
        let newer = search.seen.iter().rev().take_while(|new| *new > old);
        let may = |new: &usize| vocabulary.may_outdate(*old, *new) && counts(*old, *new);
        let mut newer = newer.copied().filter(may);
        let new = newer.find(|new| search.is_same_subject(&said, *new, &weights, SAME_THING));
        new.map(|new| (*old, new))
    };
    places.iter().filter_map(newest).collect()
}

/// The newest of the older memories that are seen of whose thing this one says something else.
pub(crate) fn outdates(
    vocabulary: &Vocabulary,
    is_seen: &[bool],
    new: usize,
    counts: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let search = Search::new(vocabulary, is_seen, "", Choice::Relevant);
    let weights = search.weights();
    let said = search.said(new, &weights);
    let older = search.seen.iter().rev().skip_while(|old| **old >= new);
    let may = |old: &usize| vocabulary.may_outdate(*old, new) && counts(*old, new);
    let mut older = older.copied().filter(may);
    older.find(|old| search.is_same_subject(&said, *old, &weights, SAME_THING))
}

/// Makes one order of two: by score, and by nearness.
fn fuse(matches: &mut Vec<Match>, near: &[usize]) {
    let score_of = |rank: usize| 1.0 / (RANK + rank as f64);
    for (rank, found) in matches.iter_mut().enumerate() {
        found.score = score_of(rank);
    }
    for (rank, place) in near.iter().enumerate() {
        let score = score_of(rank);
        match matches.iter_mut().find(|found| found.place == *place) {
            Some(found) => {
                found.score += score;
                found.is_kept = true;
            }
            None => matches.push(Match {
                place: *place,
                score,
                is_kept: true,
            }),
        }
    }
}

/// The memories that are seen, beside a message.
struct Search<'a> {
    vocabulary: &'a Vocabulary,
    choice: Choice,
    asked: Vec<Term>,
    /// Whether something general is asked for, as a poem or a translation.
    is_general: bool,
    /// The topics of which every memory is wanted: an emergency, what everybody eats.
    wanted_whole: Vec<Kind>,
    seen: Vec<usize>,
    /// Those that the message may be in, by bit.
    languages: u32,
    /// By place of a term, how many of the memories that are seen have it, and begin with it.
    having: Vec<u32>,
    beginning: Vec<u32>,
    /// By place of a term, which of those that are asked it is like, and how much.
    like: Vec<Vec<(usize, f64)>>,
}

impl<'a> Search<'a> {
    fn new(
        vocabulary: &'a Vocabulary,
        is_seen: &[bool],
        message: &str,
        choice: Choice,
    ) -> Search<'a> {
        let side = match choice {
            Choice::Any => Side::Neither,
            Choice::Relevant => Side::Asked,
        };
        let end = message.char_indices().nth(MOST_CHARACTERS);
        let beginning = &message[..end.map_or(message.len(), |(end, _)| end)];
        let mut asked = terms(&LEXICON, beginning, MOST_TERMS, side);
        let topic = |name: &str| LEXICON.topic(name).map(Kind::Topic);
        let mut take = |name: &str| {
            let before = asked.len();
            asked.retain(|term| Some(term.kind) != topic(name));
            asked.len() < before
        };
        let (is_general, is_everybody) = (take("general"), take("everybody"));
        let wanted = [("water", true), ("power", true), ("food", is_everybody)];
        let wanted = wanted.iter().filter(|(_, is_wanted)| *is_wanted);
        let wanted_whole = wanted.filter_map(|(name, _)| topic(name)).collect();

        let terms = vocabulary.kinds.len();
        let (mut having, mut begun) = (vec![0; terms], vec![0; terms]);
        let seen = (0..vocabulary.memories.len()).filter(|place| is_seen[*place]);
        let seen: Vec<usize> = seen.collect();
        for memory in seen.iter().map(|place| &vocabulary.memories[*place]) {
            for (term, _) in &memory.terms {
                having[*term as usize] += 1;
            }
            if let Some(first) = memory.first() {
                begun[first] += 1;
            }
        }
        let mut like = vec![Vec::new(); terms];
        for (text, place) in &vocabulary.places {
            let kind = vocabulary.kinds[*place as usize];
            like[*place as usize] = (asked.iter().enumerate())
                .map(|(number, asked)| (number, likeness(asked, text, kind)))
                .filter(|(_, likeness)| *likeness > 0.0)
                .collect();
        }
        Search {
            vocabulary,
            choice,
            asked,
            is_general,
            wanted_whole,
            languages: languages(&LEXICON, beginning),
            seen,
            having,
            beginning: begun,
            like,
        }
    }

    /// How much a memory has of each term that is asked; none if it has nothing.
    fn shared(&self, place: usize) -> Option<Vec<f64>> {
        let mut shared = Vec::new();
        for (term, weight) in &self.vocabulary.memories[place].terms {
            for (asked, likeness) in &self.like[*term as usize] {
                shared.resize(self.asked.len(), 0.0);
                shared[*asked] = f64::max(shared[*asked], f64::from(*weight) * likeness);
            }
        }
        // The word itself says more than the topic.
        for number in 0..shared.len() {
            if let Kind::Topic(topic) = self.asked[number].kind {
                let mut words = self.asked.iter().zip(&shared);
                if words.any(|(word, shared)| *shared > 0.0 && word.tells(topic)) {
                    shared[number] = 0.0;
                }
            }
        }
        (!shared.is_empty()).then_some(shared)
    }

    /// The memories that share something, with their scores, unordered.
    fn matches(&self) -> Vec<Match> {
        let found = self.seen.iter();
        let found = found.filter_map(|place| Some((*place, self.shared(*place)?)));
        let found: Vec<(usize, Vec<f64>)> = found.collect();
        let is_subject = self.asked_subjects();
        let weights = self.asked.iter().enumerate().map(|(number, term)| {
            let having = found.iter().filter(|(_, shared)| shared[number] > 0.0);
            let weight = match term.kind {
                Kind::Word if is_subject[number] => HINT,
                Kind::Topic(_) => HINT,
                kind => weight_of(kind),
            };
            weight * rarity(having.count() as u32, self.seen.len())
        });
        let weights: Vec<f64> = weights.collect();
        // What nobody asked about in many words counts more; as of half a word at least.
        let all = weights.iter().sum::<f64>().max(0.5).cbrt();
        let scores = found.iter().map(|(place, shared)| {
            let is_asked = |number: usize| is_subject[number] && shared[number] > 0.0;
            let is_of_other = self.choice == Choice::Relevant
                && is_subject.contains(&true)
                && self.subject_of(*place).is_some()
                && !(0..shared.len()).any(is_asked);
            let sum: f64 = shared
                .iter()
                .zip(&weights)
                .map(|(one, two)| one * two)
                .sum();
            if is_of_other { 0.0 } else { sum / all }
        });
        let scores: Vec<f64> = scores.collect();
        let best = scores.iter().copied().fold(0.0, f64::max);
        let share_of_many = (self.seen.len() as f64 / FEW).ln() / (VERY_MANY / FEW).ln();
        let chance = CHANCE * share_of_many.clamp(0.0, 1.0);
        let least = (FLOOR + chance).max((SHARE_OF_BEST + chance) * best);
        let matches = found.iter().zip(scores).map(|((place, shared), score)| {
            let is_lone = shared.len() > 1
                && self.vocabulary.memories[*place].has_search_words()
                && shared.iter().filter(|shared| **shared > 0.0).count() == 1;
            let floor = if is_lone {
                LONE_FLOOR.max(least)
            } else {
                least
            };
            let is_chance = chance > 0.0 && self.is_foreign(*place, shared);
            let fits = !self.is_general && !is_chance;
            let is_relevant = fits && (score >= floor || self.is_wanted(*place));
            Match {
                place: *place,
                score,
                is_kept: self.choice == Choice::Any || is_relevant,
            }
        });
        matches.collect()
    }

    /// Whether a memory shares a topic alone, and is in another language. Among few memories,
    /// that may be all that there is.
    fn is_foreign(&self, place: usize, shared: &[f64]) -> bool {
        let theirs = self.vocabulary.memories[place].languages;
        let is_known = theirs != 0 && self.languages != 0;
        let mut asked = self.asked.iter().zip(shared);
        let is_topic =
            |(term, shared): (&Term, &f64)| *shared == 0.0 || matches!(term.kind, Kind::Topic(_));
        is_known && theirs & self.languages == 0 && asked.all(is_topic)
    }

    /// Whether every memory of its topics is wanted.
    fn is_wanted(&self, place: usize) -> bool {
        let is_asked = |kind: &Kind| {
            self.wanted_whole.contains(kind) && self.asked.iter().any(|term| term.kind == *kind)
        };
        let terms = self.vocabulary.memories[place].terms.iter();
        let mut kinds = terms.map(|(term, _)| &self.vocabulary.kinds[*term as usize]);
        kinds.any(is_asked)
    }

    /// Which terms name somebody or something of which several memories are.
    fn asked_subjects(&self) -> Vec<bool> {
        let mut is_subject = vec![false; self.asked.len()];
        let beginnings = self.like.iter().zip(&self.beginning);
        for (like, _) in beginnings.filter(|(_, begun)| **begun >= SUBJECT_MEMORIES) {
            for (asked, _) in like.iter().filter(|(_, likeness)| *likeness >= 1.0) {
                is_subject[*asked] = true;
            }
        }
        is_subject
    }

    /// The term that a memory and others begin with.
    fn subject_of(&self, place: usize) -> Option<usize> {
        let first = self.vocabulary.memories[place].first();
        first.filter(|first| self.beginning[*first] >= SUBJECT_MEMORIES)
    }

    /// What each term says, by its place.
    fn weights(&self) -> Vec<f64> {
        let terms = self.vocabulary.kinds.iter().zip(&self.having);
        let memories = self.seen.len();
        terms
            .map(|(kind, having)| weight_of(*kind) * rarity(*having, memories))
            .collect()
    }

    /// A memory, to be compared with others.
    fn said(&self, place: usize, weights: &[f64]) -> Said {
        let mut has = vec![false; weights.len()];
        let mut sum = 0.0;
        for (term, _) in &self.vocabulary.memories[place].terms {
            has[*term as usize] = true;
            sum += weights[*term as usize];
        }
        let subject = self.subject_of(place);
        Said {
            place,
            has,
            sum,
            subject,
        }
    }

    /// Whether both memories say something of the same subject: of what one of them says,
    /// at least this `share`.
    fn is_same_subject(&self, one: &Said, other: usize, weights: &[f64], share: f64) -> bool {
        if let (Some(one), Some(other)) = (one.subject, self.subject_of(other))
            && one != other
        {
            return false;
        }
        let memories = &self.vocabulary.memories;
        let (mut sum, mut common, mut count) = (0.0, 0.0, 0);
        for (term, _) in &memories[other].terms {
            let weight = weights[*term as usize];
            sum += weight;
            if one.has[*term as usize] && weight > 0.0 {
                common += weight;
                count += 1;
            }
        }
        // A single one may be the place where both are.
        let newer = &memories[one.place.max(other)];
        let least = if newer.is_update { 1 } else { 2 };
        count >= least && common >= share * f64::min(one.sum, sum)
    }
}

/// A memory that is compared with others.
struct Said {
    place: usize,
    /// By place of a term, whether it has that.
    has: Vec<bool>,
    /// What its terms say together.
    sum: f64,
    /// The term that it and others begin with.
    subject: Option<usize>,
}

fn weight_of(kind: Kind) -> f64 {
    match kind {
        Kind::Word => 1.0,
        Kind::Run => RUN,
        Kind::Topic(_) => 0.0,
    }
}

/// Letters that two forms of a word begin with, and most that each has after these.
const STEM: usize = 4;
const ENDING: usize = 1;
/// Letters of a word that begins another one.
const FIRST_PART: usize = 3;

/// How alike a term that is asked and one of the memories are, from 0 (not) to 1 (the same,
/// or another form of it).
fn likeness(asked: &Term, known: &str, kind: Kind) -> f64 {
    if asked.text == known {
        return 1.0;
    }
    // A number is that number or another one.
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    if asked.kind != Kind::Word || kind != Kind::Word || is_number(known) {
        return 0.0;
    }
    let (short, long) = match asked.text.len() <= known.len() {
        true => (asked.text.as_str(), known),
        false => (known, asked.text.as_str()),
    };
    let same = short.bytes().zip(long.bytes());
    let same = same.take_while(|(one, other)| one == other).count();
    let is_part = same == short.len() && same >= FIRST_PART
        || same > STEM && short.len() - same <= ENDING
        || short.len() >= STEM && long.ends_with(short);
    match () {
        () if is_number(&asked.text) => 0.0,
        () if same >= STEM && long.len() - same <= ENDING => 1.0,
        () if is_part => PART,
        () => 0.0,
    }
}

/// What a term says, by how many of the memories have it: 1 if none or hardly any, and
/// near 0 if all do.
fn rarity(having: u32, memories: usize) -> f64 {
    let all = (memories.max(LEAST_MEMORIES) + 1) as f64;
    (all / (f64::from(having) + 0.5)).ln() / (all / 0.5).ln()
}
