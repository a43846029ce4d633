//! Which memories fit a message, by the words and the topics that they share.
//!
//! [`Vocabulary`] has each different word of the memories once, so that a message is
//! compared with words, and not with memories: first each word of the message with each
//! of those, and then each memory gets the sum of what its words say. Words are compared
//! as they are, and not looked up: an index would miss inflections and compounds.

mod household;
mod likeness;
mod outdated;
mod question;
mod stop_words;
mod terms;
mod topics;
mod vocabulary;

use likeness::{Form, likeness};
use outdated::Subjects;
use question::Question;
use terms::Kind;
use topics::Topics;
use vocabulary::Known;

pub(crate) use vocabulary::Vocabulary;

/// Which of the matches are good enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All that share a term.
    Any,
    /// Those that are worth showing to the model.
    Relevant,
}

/// The least score of a memory that is worth showing: one rare word of a short
/// message, or several of a longer one.
const FLOOR: f64 = 0.33;
/// The same of a message that asks for something general, as a poem or a translation.
const GENERAL_FLOOR: f64 = 0.8;
/// The same of a memory of a topic of which everything is wanted.
const WHOLE_FLOOR: f64 = 0.08;
/// The same of a memory with search words that shares one word of its text and none of
/// those: it may stand there by the way.
const LONE_FLOOR: f64 = 0.5;
/// The share of the best score that a memory needs besides.
const SHARE_OF_BEST: f64 = 0.7;
/// The share of these that a newer memory needs to take the place of an older one.
const NEWER: f64 = 0.47;
/// How much the terms of a message that a memory lacks count against it.
const LACK: f64 = 0.29;
/// What a topic weighs, for one word between spaces.
const TOPIC: f64 = 0.63;
/// How much of this a memory lacks that is of another topic.
const TOPIC_LACK: f64 = 0.33;
/// What the name of somebody weighs of whom many memories are.
const SUBJECT: f64 = 0.6;
/// What is left of the score of a memory of somebody else.
const OTHER_SUBJECT: f64 = 0.5;
/// The terms at the beginning of a memory, which say what it is about, and what the
/// others say beside them.
const BEGINNING: usize = 4;
const LATER: f64 = 0.69;
/// What a search word says beside a word of the text.
const SEARCH_WORD: f64 = 0.55;
/// What is left of a topic where search words could have said the same.
const WORDED_TOPIC: f64 = 0.8;
/// Of fewer memories, how many have a word says little about the word.
const LEAST_MEMORIES: usize = 50;
/// How many memories begin with the name of somebody or something at least.
const SUBJECT_MEMORIES: u32 = 2;
/// Letters of the beginning of a word that a person searches for.
const SEARCHED_PREFIX: usize = 3;
/// How little the places at the beginning of two orders differ that are made one: as
/// reciprocal rank fusion is usually done.
const RANK: f64 = 60.0;
/// Most matches of which outdated ones are dropped, for each that is wanted.
const POOL: usize = 4;

/// A memory that may fit.
struct Match {
    place: usize,
    score: f64,
    /// Whether it is good enough.
    is_kept: bool,
}

/// A word of the memories that is like terms of the message.
struct Hit {
    term: usize,
    likeness: f64,
}

/// How many of the memories that are seen have each word, and begin with it.
#[derive(Clone, Copy, Default)]
struct Count {
    having: u32,
    beginning: u32,
}

/// The places of the memories that fit a message, best first, at most `limit`. Of two
/// that fit as well, the later one comes first. Only those that are seen count, in any
/// way. What is `near` by its meaning, the nearest first, fits too.
pub(crate) fn rank(
    vocabulary: &mut Vocabulary,
    is_seen: &[bool],
    message: &str,
    choice: Choice,
    near: &[usize],
    limit: usize,
) -> Vec<usize> {
    let mut question = Question::of(vocabulary, message);
    if choice == Choice::Any {
        question.topics = Topics::default();
    }
    let search = Search::new(vocabulary, &question, is_seen, choice);
    let mut matches = search.matches();
    let by_score = |one: &Match, other: &Match| {
        let kept = other.is_kept.cmp(&one.is_kept);
        let by_score = kept.then(other.score.total_cmp(&one.score));
        by_score.then(other.place.cmp(&one.place))
    };
    if choice == Choice::Relevant {
        search.keep_relevant(&mut matches);
    }
    matches.sort_unstable_by(by_score);
    if !near.is_empty() {
        fuse(&mut matches, near);
        matches.sort_unstable_by(by_score);
    }
    if choice == Choice::Any {
        matches.truncate(limit);
        return matches.into_iter().map(|found| found.place).collect();
    }
    matches.truncate(POOL * limit);
    let subjects = Subjects {
        vocabulary,
        counts: &search.counts,
        seen: search.seen.len(),
        topics: question.topics,
    };
    let mut found: Vec<usize> = Vec::new();
    for old in matches.iter().filter(|found| found.is_kept) {
        let is_newer = |new: &&Match| {
            let counts = new.is_kept || vocabulary.is_update(new.place);
            counts && new.place > old.place && subjects.is_same(old.place, new.place)
        };
        let newer = matches.iter().filter(is_newer).map(|new| new.place).max();
        let place = newer.unwrap_or(old.place);
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found.truncate(limit);
    found
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

/// The memories that are seen, beside a question.
struct Search<'a> {
    vocabulary: &'a Vocabulary,
    question: &'a Question,
    /// By place in the vocabulary.
    counts: Vec<Count>,
    /// The place in `hits` of each word that is like a term, counted from 1.
    marks: Vec<u32>,
    hits: Vec<Vec<Hit>>,
    seen: Vec<usize>,
    choice: Choice,
}

impl<'a> Search<'a> {
    fn new(
        vocabulary: &'a Vocabulary,
        question: &'a Question,
        is_seen: &[bool],
        choice: Choice,
    ) -> Search<'a> {
        let mut counts = vec![Count::default(); vocabulary.word_count()];
        let seen: Vec<usize> = (0..vocabulary.len())
            .filter(|place| is_seen[*place])
            .collect();
        for memory in &seen {
            for term in vocabulary.terms(*memory) {
                counts[*term as usize].having += 1;
            }
            if let Some(first) = vocabulary.first_term(*memory) {
                counts[first].beginning += 1;
            }
        }
        let asked = question.terms.iter().map(|term| Known {
            form: Form::of(&term.text),
            kind: term.kind,
        });
        let asked: Vec<Known<'_>> = asked.collect();
        let mut marks = vec![0; vocabulary.word_count()];
        let mut hits: Vec<Vec<Hit>> = Vec::new();
        for (place, word) in vocabulary.words().enumerate() {
            let like = asked.iter().enumerate().filter_map(|(term, asked)| {
                let likeness = likeness_of(asked, &word, choice);
                (likeness > 0.0).then_some(Hit { term, likeness })
            });
            let like: Vec<Hit> = like.collect();
            if !like.is_empty() {
                hits.push(like);
                marks[place] = hits.len() as u32;
            }
        }
        Search {
            vocabulary,
            question,
            counts,
            marks,
            hits,
            seen,
            choice,
        }
    }

    /// The terms that a word is like.
    fn hits_of(&self, word: u32) -> &[Hit] {
        match self.marks[word as usize] {
            0 => &[],
            mark => &self.hits[mark as usize - 1],
        }
    }

    /// How much a memory has of each term, and then of each topic; false if of none.
    fn shared(&self, memory: usize, shared: &mut [f64]) -> bool {
        shared.fill(0.0);
        let terms = self.question.terms.len();
        let mut is_any = false;
        let words = match self.choice {
            Choice::Any => self.vocabulary.all_terms(memory),
            Choice::Relevant => self.vocabulary.terms(memory),
        };
        let of_text = words.iter().enumerate().map(|(place, word)| {
            let weight = if place < BEGINNING { 1.0 } else { LATER };
            (word, weight, 0.0)
        });
        let search_words = self.vocabulary.search_terms(memory);
        // They are chosen to be asked with: what is only like one means something else.
        let least = match self.choice {
            Choice::Any => 0.0,
            Choice::Relevant => 1.0,
        };
        let of_search = search_words.iter().map(|word| (word, SEARCH_WORD, least));
        for (word, weight, least) in of_text.chain(of_search) {
            for hit in self
                .hits_of(*word)
                .iter()
                .filter(|hit| hit.likeness >= least)
            {
                shared[hit.term] = shared[hit.term].max(weight * hit.likeness);
                is_any = true;
            }
        }
        let topics = self.vocabulary.topics(memory) & self.question.topics;
        if topics.is_empty() {
            return is_any;
        }
        let of_topic = match self.vocabulary.is_worded(memory) {
            true => WORDED_TOPIC,
            false => 1.0,
        };
        for topic in (0..Topics::COUNT).filter(|topic| topics.has(*topic)) {
            // The word itself says more.
            let mut of_terms = self.question.topics_of.iter().zip(&shared[..terms]);
            if !of_terms.any(|(of_term, shared)| of_term.has(topic) && *shared > 0.0) {
                shared[terms + topic] = of_topic;
                is_any = true;
            }
        }
        is_any
    }

    /// The memories that share something, with their scores, unordered.
    fn matches(&self) -> Vec<Match> {
        let terms = &self.question.terms;
        let mut shared = vec![0.0; terms.len() + Topics::COUNT];
        let mut having = vec![0; shared.len()];
        let mut found: Vec<usize> = Vec::new();
        for memory in &self.seen {
            if self.shared(*memory, &mut shared) {
                found.push(*memory);
                for (count, shared) in having.iter_mut().zip(&shared) {
                    *count += u32::from(*shared > 0.0);
                }
            }
        }
        let is_subject = self.asked_subjects();
        let weights: Vec<f64> = having
            .iter()
            .enumerate()
            .map(|(place, having)| {
                let weight = match (terms.get(place), is_subject.get(place)) {
                    (Some(term), Some(true)) => SUBJECT * term.kind.weight(),
                    (Some(term), _) => term.kind.weight(),
                    (None, _) => TOPIC,
                };
                weight * rarity(*having, self.seen.len())
            })
            .collect();
        let all = self.weight_of_all(&weights);
        let asks_subject = is_subject.contains(&true);
        found
            .into_iter()
            .map(|place| {
                self.shared(place, &mut shared);
                let sum: f64 = shared
                    .iter()
                    .zip(&weights)
                    .map(|(one, two)| one * two)
                    .sum();
                let mut asked = is_subject.iter().zip(&shared);
                let is_of_other = asks_subject
                    && !asked.any(|(is_subject, shared)| *is_subject && *shared > 0.0)
                    && self.has_subject(place);
                let score = match is_of_other {
                    true => OTHER_SUBJECT * sum / all,
                    false => sum / all,
                };
                Match {
                    place,
                    score,
                    is_kept: true,
                }
            })
            .collect()
    }

    /// Whether all that a memory with search words shares is one word of its text.
    fn is_lone(&self, memory: usize, shared: &mut [f64]) -> bool {
        if !self.vocabulary.is_worded(memory) {
            return false;
        }
        self.shared(memory, shared);
        let mut places = (0..shared.len()).filter(|place| shared[*place] > 0.0);
        let (Some(place), None) = (places.next(), places.next()) else {
            return false;
        };
        let term = self.question.terms.get(place);
        let is_asked = |hit: &Hit| hit.term == place && hit.likeness >= 1.0;
        let mut hits = self
            .vocabulary
            .search_terms(memory)
            .iter()
            .flat_map(|word| self.hits_of(*word));
        term.is_some_and(|term| term.kind.is_word()) && !hits.any(is_asked)
    }

    /// What a memory would have of everything that is asked.
    fn weight_of_all(&self, weights: &[f64]) -> f64 {
        let terms = &self.question.terms;
        let of_terms = terms.iter().zip(weights);
        let of_terms = of_terms.filter(|(term, _)| term.kind != Kind::Character);
        let sum: f64 = of_terms.map(|(_, weight)| weight).sum();
        let topics = weights[terms.len()..].iter().enumerate();
        let topics = topics.filter(|(topic, _)| self.question.topics.has(*topic));
        let topics: f64 = topics.map(|(_, weight)| TOPIC_LACK * weight).sum();
        // As of half a word, if it is only of single characters.
        (sum + topics).max(0.5).powf(LACK)
    }

    /// Which terms name somebody or something of which several memories are.
    fn asked_subjects(&self) -> Vec<bool> {
        let mut is_subject = vec![false; self.question.terms.len()];
        let counts = self.counts.iter().zip(0u32..);
        for (_, word) in counts.filter(|(count, _)| count.beginning >= SUBJECT_MEMORIES) {
            for hit in self.hits_of(word).iter().filter(|hit| hit.likeness >= 1.0) {
                is_subject[hit.term] = true;
            }
        }
        is_subject
    }

    fn has_subject(&self, memory: usize) -> bool {
        let mut terms = self.vocabulary.terms(memory).iter();
        terms.any(|term| self.counts[*term as usize].beginning >= SUBJECT_MEMORIES)
    }

    /// Marks what is worth showing, and drops what cannot even take the place of that.
    fn keep_relevant(&self, matches: &mut Vec<Match>) {
        let floor = match self.question.is_general {
            true => GENERAL_FLOOR,
            false => FLOOR,
        };
        let best = matches.iter().map(|found| found.score).fold(0.0, f64::max);
        let least = floor.max(SHARE_OF_BEST * best);
        let wanted = self.question.topics.wanted_whole();
        let mut shared = vec![0.0; self.question.terms.len() + Topics::COUNT];
        for found in matches.iter_mut() {
            let topics = self.vocabulary.topics(found.place) & wanted;
            let is_wanted = !topics.is_empty() && !self.question.is_general;
            found.is_kept = match found.score {
                score if score >= least.max(LONE_FLOOR) => true,
                score if score >= least && !self.is_lone(found.place, &mut shared) => true,
                score => is_wanted && score >= WHOLE_FLOOR,
            };
        }
        matches.retain(|found| found.is_kept || found.score >= NEWER * least);
    }
}

fn likeness_of(asked: &Known<'_>, word: &Known<'_>, choice: Choice) -> f64 {
    let (text, known) = (asked.form.text, word.form.text);
    if text == known {
        return 1.0;
    }
    if !asked.kind.is_word() || !word.kind.is_word() {
        return 0.0;
    }
    let is_begun =
        || choice == Choice::Any && text.len() >= SEARCHED_PREFIX && known.starts_with(text);
    match likeness(asked.form, word.form) {
        0.0 if is_begun() => 0.5,
        alike => alike,
    }
}

/// What a term says, by how many of the memories have it: 1 if none or hardly any, and
/// near 0 if all do.
fn rarity(having: u32, memories: usize) -> f64 {
    let all = (memories.max(LEAST_MEMORIES) + 1) as f64;
    (all / (f64::from(having) + 0.5)).ln() / (all / 0.5).ln()
}
