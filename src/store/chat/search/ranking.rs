//! Which of the messages that may fit do so best.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rusqlite::{Row, params};

use super::candidates::Candidate;
use super::{Hit, MOST_READ, Search, index};
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::home::vector::Vector;
use crate::sight::viewer::select_seen;
use base::clock::Timestamp;
use base::ids::{ConversationId, first_at};

/// Most titles with a word that are looked at, the newest, most that are compared, and most that
/// are found.
const MOST_OF_TITLES: i64 = 1_000;
const MOST_TITLES: usize = 300;
const TITLES_FOUND: usize = 3;
/// The share of a question that a title needs.
const TITLE_SHARE: f64 = 0.4;
/// How little the places at the beginning of two orders differ that are made one, which is
/// reciprocal rank fusion.
const RANK: f64 = 20.0;
/// Bytes of a message that are compared.
const MOST_BYTES: usize = 16 * 1024;

/// How soon more of a word says no more, and how much a long message counts less: as BM25
/// is usually done, with less for the length, because what is long here was asked for.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.4;
/// Words of a usual message.
const USUAL_LENGTH: f32 = 25.0;
/// What is shorter says little beside its words.
const SHORT_LENGTH: f32 = 15.0;
/// What a word says in the message before or after, and in the title.
const NEIGHBOUR: f32 = 0.4;
const OF_TITLE: f64 = 0.15;
/// What it is worth to be of the days that were asked for, and to be said by somebody who was
/// asked for; as shares of all words.
const OF_DAYS: f64 = 0.6;
const OF_SPEAKER: f64 = 0.1;
/// What is left of a message that says the same as a better one.
const REPEATED: f64 = 0.5;

/// The score of a message, its id, where it is, and those before and after it.
pub(super) type Passage = (f64, i64, ConversationId, [Option<i64>; 2]);

/// A conversation, its title and the score of that.
pub(super) type Title = (ConversationId, String, f64);

/// A message, beside the question.
pub(super) struct Said {
    id: i64,
    /// How much it has of each word.
    has: Vec<f32>,
    /// Whether the one who says it is asked for by name.
    is_speaker: bool,
    pub text: String,
    created_at: i64,
}

impl Search<'_> {
    /// The best hits for a question.
    pub(super) fn best(&mut self, vector: Option<&Vector>, limit: usize) -> Outcome<Vec<Hit>> {
        let near = match vector {
            Some(vector) => self.near(vector)?,
            None => Vec::new(),
        };
        let candidates = self.candidates()?;
        let titles = self.titles()?;
        let weights = self.weights(&candidates, &titles);
        let all: f64 = weights.iter().sum::<f64>().max(1.0);
        let score = |has: &[f32]| -> f64 {
            let each = has.iter().zip(&weights);
            each.map(|(has, weight)| f64::from(has.min(1.0)) * weight)
                .sum()
        };
        let titles = titles.into_iter();
        let titles = titles.map(|(id, title, has)| (id, title, score(&has)));
        let mut titles: Vec<Title> = titles.collect();
        titles.sort_by(|one, other| other.2.total_cmp(&one.2));

        let mut places = self.most_words(&candidates, &weights, all);
        for (id, conversation) in &near {
            if !places.iter().any(|(known, _)| known == id) {
                places.push((*id, *conversation));
            }
        }
        let mut passages = self.passages(places, &weights, &titles, all)?;
        titles.retain(|title| title.2 >= TITLE_SHARE * all);
        titles.truncate(TITLES_FOUND);
        if !near.is_empty() {
            fuse(&mut passages, &mut titles, &near, all);
        }
        self.hits(passages, titles, all, limit)
    }

    /// The candidates that are worth reading: those with the most words, or of the days that
    /// were asked for.
    fn most_words(
        &self,
        candidates: &HashMap<i64, Candidate>,
        weights: &[f64],
        all: f64,
    ) -> Vec<(i64, ConversationId)> {
        let of_days = self.query.days.map(|(from, until)| {
            let place = |millis| first_at(Timestamp::from_millis(millis));
            place(from)..place(until)
        });
        let mut rough: Vec<(f64, i64, ConversationId)> = Vec::new();
        for (id, candidate) in candidates {
            let has = |place: &usize| candidate.has >> place & 1 == 1;
            let words: f64 = (0..weights.len())
                .filter(has)
                .map(|place| weights[place])
                .sum();
            let is_of_days = of_days.as_ref().is_some_and(|days| days.contains(id));
            let days = if is_of_days { OF_DAYS * all } else { 0.0 };
            rough.push((words + days, *id, candidate.conversation));
        }
        if rough.len() > MOST_READ {
            rough.select_nth_unstable_by(MOST_READ, |one, other| {
                other.0.total_cmp(&one.0).then(other.1.cmp(&one.1))
            });
            rough.truncate(MOST_READ);
        }
        let places = rough.into_iter();
        places
            .map(|(_, id, conversation)| (id, conversation))
            .collect()
    }

    /// Reads these messages and their neighbours, and ranks them by what is in both.
    fn passages(
        &mut self,
        places: Vec<(i64, ConversationId)>,
        weights: &[f64],
        titles: &[Title],
        all: f64,
    ) -> Outcome<Vec<Passage>> {
        let by_title: HashMap<ConversationId, f64> =
            titles.iter().map(|(id, _, score)| (*id, *score)).collect();
        let mut passages: Vec<Passage> = Vec::new();
        for (id, conversation) in places {
            let Some(said) = self.read(ITSELF, id, conversation)? else {
                continue;
            };
            let before = self.read(BEFORE, id, conversation)?;
            let after = self.read(AFTER, id, conversation)?;
            let mut score = 0.0;
            for (place, weight) in weights.iter().enumerate() {
                let of =
                    |said: &Option<Rc<Said>>| said.as_ref().map_or(0.0, |said| said.has[place]);
                let beside = NEIGHBOUR * of(&before).max(of(&after));
                score += weight
                    * f64::from(said.has[place] + beside * (1.0 - 0.5 * said.has[place].min(1.0)));
            }
            if let Some((from, until)) = self.query.days
                && (from..until).contains(&said.created_at)
            {
                score += OF_DAYS * all;
            }
            if said.is_speaker {
                score += OF_SPEAKER * all;
            }
            score += OF_TITLE * by_title.get(&conversation).unwrap_or(&0.0);
            let neighbours = [before, after].map(|said| said.map(|said| said.id));
            passages.push((score, id, conversation, neighbours));
        }
        passages.sort_unstable_by(by_score);
        // What is said again and again is seldom the answer.
        let mut texts: HashSet<&str> = HashSet::new();
        for passage in &mut passages {
            let said = self.said.get(&passage.1);
            if said.is_some_and(|said| !texts.insert(&said.text)) {
                passage.0 *= REPEATED;
            }
        }
        passages.sort_unstable_by(by_score);
        Ok(passages)
    }

    /// What each word weighs: the rare ones most. Only messages that are seen count.
    fn weights(
        &self,
        candidates: &HashMap<i64, Candidate>,
        titles: &[(ConversationId, String, Vec<f32>)],
    ) -> Vec<f64> {
        let mut having = vec![0usize; self.query.asked.len()];
        for candidate in candidates.values() {
            for (place, having) in having.iter_mut().enumerate() {
                *having += (candidate.has >> place & 1) as usize;
            }
        }
        for (_, _, has) in titles {
            for (having, has) in having.iter_mut().zip(has) {
                *having += usize::from(*has > 0.0);
            }
        }
        let all = (4 * candidates.len()).max(2_000) as f64;
        let weights = self.query.asked.iter().zip(having).map(|(asked, having)| {
            let rarity = (1.0 + all / (having as f64 + 0.5)).ln();
            if having == 0 {
                0.0
            } else {
                asked.weight * rarity
            }
        });
        weights.collect()
    }

    /// The titles that are seen and have something of the question, and how much of each word.
    /// Those with the rarest words come first.
    fn titles(&self) -> Outcome<Vec<(ConversationId, String, Vec<f32>)>> {
        let messages = |place: &usize| {
            let mut counted = self.counted.iter();
            let known = counted.find(|(_, counted)| counted == place);
            known.map_or(0, |(messages, _)| *messages)
        };
        let asked = &self.query.asked;
        let mut places: Vec<usize> = (0..asked.len())
            .filter(|place| !asked[*place].is_hint)
            .collect();
        places.sort_by_key(messages);
        let mut titles: Vec<(ConversationId, String)> = Vec::new();
        for place in places {
            let parameters = params![asked[place].expression(), MOST_OF_TITLES];
            let room = MOST_TITLES.saturating_sub(titles.len());
            let read = |row: &Row<'_>| Ok((row.get("id")?, row.get("title")?));
            let sight = self.sight;
            titles.extend(sight.seen_rows(TITLES, parameters, room, read)?);
        }
        titles.sort_unstable();
        titles.dedup();
        let compared = titles.into_iter().map(|(id, title)| {
            let (has, _) = self.compare(&title);
            (id, title, has)
        });
        Ok(compared.collect())
    }

    /// How much a text has of each word that is asked, and how many words it has.
    fn compare(&self, text: &str) -> (Vec<f32>, usize) {
        let asked = &self.query.asked;
        let (mut has, mut words) = (vec![0.0; asked.len()], 0);
        let mut term = String::new();
        let text = &text[..text.floor_char_boundary(MOST_BYTES)];
        index::each_word(text, &mut |kind, word| {
            words += 1;
            index::to_term(kind, word, &mut term);
            for (asked, has) in asked.iter().zip(&mut has) {
                *has += asked.likeness(word, &term);
            }
        });
        (has, words)
    }

    /// A message of a conversation: the one with this id, or the next or last beside it.
    fn read(
        &mut self,
        sql: &str,
        id: i64,
        conversation: ConversationId,
    ) -> Outcome<Option<Rc<Said>>> {
        let found = self.sight.row(sql, params![id, conversation], |row| {
            let id: i64 = row.get(0)?;
            if let Some(known) = self.said.get(&id) {
                return Ok(Rc::clone(known));
            }
            let text = row.get_ref(1)?.as_str()?;
            let (mut has, words) = self.compare(text);
            let words = (words as f32).max(SHORT_LENGTH);
            let length = 1.0 - LENGTH + LENGTH * words / USUAL_LENGTH;
            for has in &mut has {
                *has = *has * (SATURATION + 1.0) / (*has + SATURATION * length);
            }
            let is_speaker = match row.get_ref(2)?.as_str_or_null()? {
                Some(speaker) => self.compare(speaker).0.iter().any(|has| *has >= 0.9),
                None => false,
            };
            Ok(Rc::new(Said {
                id,
                has,
                is_speaker,
                text: text.to_owned(),
                created_at: row.get(3)?,
            }))
        })?;
        if let Some(said) = &found {
            self.said.insert(said.id, Rc::clone(said));
        }
        Ok(found)
    }
}

/// The best first and, of those that are as good, the newest.
fn by_score(one: &Passage, other: &Passage) -> Ordering {
    other.0.total_cmp(&one.0).then(other.1.cmp(&one.1))
}

/// Makes one order of two: by words, and by nearness.
fn fuse(passages: &mut [Passage], titles: &mut [Title], near: &[(i64, ConversationId)], all: f64) {
    // Whatever is the first of both has all.
    let worth = |rank: usize| all / 2.0 * RANK / (RANK + rank as f64);
    for title in titles {
        let better = passages.iter().filter(|passage| passage.0 > title.2);
        title.2 = worth(better.count());
    }
    for (rank, passage) in passages.iter_mut().enumerate() {
        let has_words = passage.0 > 0.0;
        let of_words = if has_words { worth(rank) } else { 0.0 };
        let rank = near.iter().position(|(id, _)| *id == passage.1);
        passage.0 = of_words + rank.map_or(0.0, worth);
    }
    passages.sort_unstable_by(by_score);
}

const TITLES: &str = select_seen!(
    "c",
    "c.id, c.title FROM title_terms f CROSS JOIN conversations c ON c.id = f.rowid \
     WHERE title_terms MATCH ?1 ORDER BY f.rowid DESC LIMIT ?2"
);

macro_rules! read {
    ($condition:literal) => {
        concat!(
            "SELECT id, content, speaker, created_at FROM messages \
             WHERE hidden_with IS NULL AND conversation_id = ?2 AND ",
            $condition,
            " LIMIT 1"
        )
    };
}

pub(crate) const ITSELF: &str = read!("id = ?1");
pub(crate) const BEFORE: &str = read!("id < ?1 ORDER BY id DESC");
pub(crate) const AFTER: &str = read!("id > ?1 ORDER BY id");
