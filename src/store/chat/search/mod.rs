//! Finding what was said.
//!
//! A search has two parts. First the index of terms gives candidates: those with rare words,
//! and which of them have the common ones. Then the best of these are read, with the message
//! before and after each, and ranked by all that they share with the question. The weights
//! were measured: see `tests/data/search`.

mod dates;
pub(crate) mod index;
mod query;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rusqlite::{Connection, Row, params};

use crate::chat::conversations;
use crate::chat::messages::{Message, PAGE, Page, find_message};
use crate::engine::failure::Outcome;
use crate::engine::query::{exists, row, rows, value};
use crate::home::recall::terms::Kind;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{BELONGS, Seen, Sight, seen_columns};
use base::clock::Timestamp;
use base::error::Result;
use base::ids::{ConversationId, MessageId, first_at};
use protocol::command::SearchOrder;
use query::Query;

/// Most messages that are ranked at all, and most of them that are read.
const MOST_CANDIDATES: usize = 8_000;
const MOST_READ: usize = 200;
/// In how many messages a word is that is only a hint, at most.
const MOST_OF_HINT: usize = 1_000;
/// Most titles with a word that are looked at, the newest, most that are compared, and most that
/// are found.
const MOST_OF_TITLES: i64 = 1_000;
const MOST_TITLES: usize = 300;
const TITLES_FOUND: usize = 3;
/// The share of a question that a title needs.
const TITLE_SHARE: f64 = 0.4;
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
/// What it is worth to be of the days that were asked for, to be said by somebody who was asked
/// for, and to tell when something was if that was asked; as shares of all words.
const OF_DAYS: f64 = 0.6;
const OF_SPEAKER: f64 = 0.1;
/// What is left of a message that says the same as a better one.
const REPEATED: f64 = 0.5;
const TELLS_WHEN: f64 = 0.06;

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order that was asked for.
    pub hits: Vec<Hit>,
    /// The words that were looked for, for [`excerpt`](crate::excerpt).
    pub words: Vec<String>,
    /// Whether older messages are not found yet: their index is being made.
    pub is_indexing: bool,
}

/// A passage that a search found, or a title.
#[derive(Debug)]
pub struct Hit {
    /// Where it was said.
    pub conversation_id: ConversationId,
    /// What that is called.
    pub title: String,
    /// How well it fits beside other hits.
    pub score: f64,
    /// The message that fits best, unless it is the title that fits.
    pub message: Option<Message>,
    /// The one before it, if that is not part of a better hit.
    pub before: Option<Message>,
    /// The one after it, likewise.
    pub after: Option<Message>,
}

impl Snapshot<'_> {
    /// What was said about `query`: at most `limit` hits, 1,000, and about 4 MiB of text. The
    /// last word also matches as a prefix if there is no such word.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn search_messages(&self, query: &str, limit: usize, order: SearchOrder) -> Result<Found> {
        let (connection, sight) = self.parts();
        let query = Query::new(query, self.store.clock.now());
        let limit = limit.min(PAGE);
        let mut found = Found {
            hits: Vec::new(),
            words: query.words(),
            is_indexing: index::is_unfinished(connection)?,
        };
        if !sight.is_blind() {
            let mut search = Search::new(connection, sight, query)?;
            found.hits = match order {
                SearchOrder::Relevance => search.best(limit)?,
                SearchOrder::Newest => search.newest(limit)?,
            };
        }
        Ok(found)
    }
}

/// A message that may fit: where it is, and which of the words it has, by bit.
#[derive(Clone, Copy)]
struct Candidate {
    conversation: ConversationId,
    has: u32,
}

struct Search<'a> {
    connection: &'a Connection,
    sight: &'a Sight,
    query: Query,
    /// The words that there are and how many messages have each, as far as that is counted;
    /// the rarest first.
    counted: Vec<(usize, usize)>,
    sees: HashMap<ConversationId, bool>,
    spans: Option<Vec<(i64, i64)>>,
    said: HashMap<i64, Rc<Said>>,
}

/// The score of a message, its id, where it is, and those before and after it.
type Passage = (f64, i64, ConversationId, [Option<i64>; 2]);

/// A conversation, its title and the score of that.
type Title = (ConversationId, String, f64);

/// A message, beside the question.
struct Said {
    id: i64,
    /// How much it has of each word.
    has: Vec<f32>,
    /// Whether the one who says it is asked for by name.
    is_speaker: bool,
    text: String,
    tells_when: bool,
    created_at: i64,
}

impl<'a> Search<'a> {
    fn new(connection: &'a Connection, sight: &'a Sight, mut query: Query) -> Outcome<Search<'a>> {
        let count = |expression: String, most: usize| -> Outcome<usize> {
            let parameters = params![expression, most as i64];
            let count: Option<i64> = value(connection, COUNT, parameters)?;
            Ok(count.unwrap_or_default() as usize)
        };
        let mut counted = Vec::new();
        let last = query.words().len().saturating_sub(1);
        for (place, asked) in query.asked.iter_mut().enumerate() {
            let most = if asked.is_hint {
                MOST_OF_HINT
            } else {
                MOST_CANDIDATES + 1
            };
            let mut messages = count(asked.expression(), most)?;
            if messages == 0
                && place == last
                && !asked.is_hint
                && asked.word.chars().nth(1).is_some()
                && !exists(connection, IN_TITLES, params![asked.expression()])?
            {
                asked.widen();
                messages = count(asked.expression(), most)?;
            }
            // Hints that nearly every message has are none.
            if messages > 0 && (!asked.is_hint || messages < most) {
                counted.push((messages, place));
            }
        }
        counted.sort_unstable();
        Ok(Search {
            connection,
            sight,
            query,
            counted,
            sees: HashMap::new(),
            spans: None,
            said: HashMap::new(),
        })
    }

    /// The best hits for a question.
    fn best(&mut self, limit: usize) -> Outcome<Vec<Hit>> {
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
        let by_title: HashMap<ConversationId, f64> =
            titles.iter().map(|(id, _, score)| (*id, *score)).collect();

        let mut rough: Vec<(f64, i64, ConversationId)> = Vec::new();
        let of_days = self.query.days.map(|(from, until)| {
            let place = |millis| first_at(Timestamp::from_millis(millis));
            place(from)..place(until)
        });
        for (id, candidate) in &candidates {
            let has = |place: &usize| candidate.has >> place & 1 == 1;
            let words: f64 = (0..weights.len())
                .filter(has)
                .map(|place| weights[place])
                .sum();
            let is_of_days = of_days.as_ref().is_some_and(|days| days.contains(id));
            let days = if is_of_days { OF_DAYS * all } else { 0.0 };
            rough.push((words + days, *id, candidate.conversation));
        }
        let by_score = |one: &(f64, i64, ConversationId), other: &(f64, i64, ConversationId)| {
            other.0.total_cmp(&one.0).then(other.1.cmp(&one.1))
        };
        if rough.len() > MOST_READ {
            rough.select_nth_unstable_by(MOST_READ, by_score);
            rough.truncate(MOST_READ);
        }

        // By what is read of each, and of its neighbours.
        let mut passages: Vec<Passage> = Vec::new();
        for (_, id, conversation) in rough {
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
            if self.query.is_when && said.tells_when {
                score += TELLS_WHEN * all;
            }
            score += OF_TITLE * by_title.get(&conversation).unwrap_or(&0.0);
            let neighbours = [before, after].map(|said| said.map(|said| said.id));
            passages.push((score, id, conversation, neighbours));
        }
        let by_score =
            |one: &Passage, other: &Passage| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1));
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
        self.hits(passages, titles, all, limit)
    }

    /// Makes hits of passages, best first, and of titles. What one shows no later one shows.
    fn hits(
        &mut self,
        passages: Vec<Passage>,
        titles: Vec<Title>,
        all: f64,
        limit: usize,
    ) -> Outcome<Vec<Hit>> {
        // A title that is the beginning of a message is found with that.
        let is_of_message = |title: &Title| {
            let mut of_same = passages.iter().filter(|passage| passage.2 == title.0);
            of_same.any(|passage| {
                let said = self.said.get(&passage.1);
                said.is_some_and(|said| conversations::title(&said.text) == title.1)
            })
        };
        let titles = titles.into_iter();
        let titles = titles.filter(|title| title.2 >= TITLE_SHARE * all && !is_of_message(title));
        let titles: Vec<Title> = titles.take(TITLES_FOUND).collect();
        let mut titles = titles.into_iter().peekable();
        let mut shown: Vec<i64> = Vec::new();
        let mut page: Page<Hit> = Page::new(limit);
        let (connection, all) = (self.connection, all);
        let share = |score: f64| (score / all * 1_000.0).round() / 1_000.0;
        let of_title = |(conversation_id, title, score): Title| Hit {
            conversation_id,
            title,
            score: share(score),
            message: None,
            before: None,
            after: None,
        };
        for (score, id, conversation_id, neighbours) in passages {
            while let Some(title) = titles.next_if(|(_, _, of_title)| *of_title >= score) {
                if page.has_room(title.1.len()) {
                    page.messages.push(of_title(title));
                }
            }
            if shown.contains(&id) {
                continue;
            }
            let mut read = |id: Option<i64>| match id {
                Some(id) if !shown.contains(&id) => {
                    shown.push(id);
                    find_message(connection, MessageId::from(id))
                }
                _ => Ok(None),
            };
            let Some(message) = read(Some(id))? else {
                continue;
            };
            let [before, after] = neighbours;
            let (before, after) = (read(before)?, read(after)?);
            let parts = [Some(&message), before.as_ref(), after.as_ref()];
            let bytes = parts
                .into_iter()
                .flatten()
                .map(|part| part.content.len())
                .sum();
            if !page.has_room(bytes) {
                return Ok(page.messages);
            }
            page.messages.push(Hit {
                conversation_id,
                title: value(connection, TITLE, params![conversation_id])?.unwrap_or_default(),
                score: share(score),
                message: Some(message),
                before,
                after,
            });
        }
        for title in titles {
            if page.has_room(title.1.len()) {
                page.messages.push(of_title(title));
            }
        }
        Ok(page.messages)
    }

    /// The newest messages with all words or, where there is none, with any.
    fn newest(&mut self, limit: usize) -> Outcome<Vec<Hit>> {
        let own = self.query.asked.iter().filter(|asked| !asked.is_hint);
        let expressions: Vec<String> = own.map(query::Asked::expression).collect();
        let mut page = Page::new(limit);
        for joined in [expressions.join(" AND "), expressions.join(" OR ")] {
            if !page.messages.is_empty() || expressions.is_empty() {
                break;
            }
            let connection = self.connection;
            self.matches(&joined, &mut |id, conversation_id| {
                // The text is read only now.
                let Some(message) = find_message(connection, MessageId::from(id))? else {
                    return Ok(true);
                };
                if !page.has_room(message.content.len()) {
                    return Ok(false);
                }
                page.messages.push(Hit {
                    conversation_id,
                    title: value(connection, TITLE, params![conversation_id])?.unwrap_or_default(),
                    score: 0.0,
                    message: Some(message),
                    before: None,
                    after: None,
                });
                Ok(true)
            })?;
        }
        Ok(page.messages)
    }

    /// The messages that may fit. A word of too many is looked for only among those with
    /// rarer ones or, if all words are so, in the newest messages with most of them.
    fn candidates(&mut self) -> Outcome<HashMap<i64, Candidate>> {
        let mut found: HashMap<i64, Candidate> = HashMap::new();
        let (mut rare, mut common) = (Vec::new(), Vec::new());
        for (messages, place) in self.counted.clone() {
            let rows: usize = rare.iter().map(|(messages, _)| messages).sum();
            match rows + messages <= MOST_CANDIDATES {
                true => rare.push((messages, place)),
                false => common.push(place),
            }
        }
        let expression = |search: &Search<'_>, place: usize| search.query.asked[place].expression();
        let take = |found: &mut HashMap<i64, Candidate>, id, conversation, has: u32| {
            let new = Candidate {
                conversation,
                has: 0,
            };
            found.entry(id).or_insert(new).has |= has;
        };
        for (_, place) in &rare {
            let of_word = expression(self, *place);
            self.matches(&of_word, &mut |id, conversation| {
                take(&mut found, id, conversation, 1 << place);
                Ok(true)
            })?;
        }
        if rare.is_empty() {
            for words in (1..=common.len()).rev() {
                if found.len() >= MOST_CANDIDATES / 2 {
                    break;
                }
                let has = common[..words]
                    .iter()
                    .fold(0, |has, place| has | 1 << place);
                let all: Vec<String> = common[..words]
                    .iter()
                    .map(|place| expression(self, *place))
                    .collect();
                let mut rows = 0;
                self.matches(&all.join(" AND "), &mut |id, conversation| {
                    take(&mut found, id, conversation, has);
                    rows += 1;
                    Ok(rows < MOST_CANDIDATES / 2)
                })?;
            }
        } else {
            let any: Vec<String> = rare
                .iter()
                .map(|(_, place)| expression(self, *place))
                .collect();
            for place in common {
                let both = format!("({}) AND {}", any.join(" OR "), expression(self, place));
                for id in rows(self.connection, MATCHES, params![both], |row| row.get(0))? {
                    if let Some(candidate) = found.get_mut(&id) {
                        candidate.has |= 1 << place;
                    }
                }
            }
        }
        if let Some((from, until)) = self.query.days
            && found.len() < MOST_READ
        {
            let place = |millis| first_at(Timestamp::from_millis(millis));
            let parameters = params![place(from), place(until), MOST_READ as i64];
            let of_days = rows(self.connection, OF_TIME, parameters, |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            for (id, conversation) in of_days {
                if self.sees(conversation)? {
                    take(&mut found, id, conversation, 0);
                }
            }
        }
        Ok(found)
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
            titles.extend(sight.rows(self.connection, TITLES, parameters, room, read)?);
        }
        titles.sort_unstable();
        titles.dedup();
        let compared = titles.into_iter().map(|(id, title)| {
            let (has, _, _) = self.compare(&title);
            (id, title, has)
        });
        Ok(compared.collect())
    }

    /// How much a text has of each word that is asked, how many words it has, and whether it
    /// tells when something was.
    fn compare(&self, text: &str) -> (Vec<f32>, usize, bool) {
        let asked = &self.query.asked;
        let (mut has, mut words, mut tells_when) = (vec![0.0; asked.len()], 0, false);
        let mut term = String::new();
        let text = &text[..text.floor_char_boundary(MOST_BYTES)];
        index::each_word(text, &mut |kind, word| {
            words += 1;
            tells_when |= self.query.is_when && kind == Kind::Word && dates::tells_when(word);
            index::to_term(kind, word, &mut term);
            for (asked, has) in asked.iter().zip(&mut has) {
                *has += asked.likeness(word, &term);
            }
        });
        (has, words, tells_when)
    }

    /// A message of a conversation: the one with this id, or the next or last beside it.
    fn read(
        &mut self,
        sql: &str,
        id: i64,
        conversation: ConversationId,
    ) -> Outcome<Option<Rc<Said>>> {
        let found = row(self.connection, sql, params![id, conversation], |row| {
            let id: i64 = row.get(0)?;
            if let Some(known) = self.said.get(&id) {
                return Ok(Rc::clone(known));
            }
            let text = row.get_ref(1)?.as_str()?;
            let (mut has, words, tells_when) = self.compare(text);
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
                tells_when,
                created_at: row.get(3)?,
            }))
        })?;
        if let Some(said) = &found {
            self.said.insert(said.id, Rc::clone(said));
        }
        Ok(found)
    }

    fn sees(&mut self, conversation: ConversationId) -> Outcome<bool> {
        Ok(match self.sees.entry(conversation) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let seen = |row: &Row<'_>| self.sight.sees_row(row);
                let seen = row(self.connection, BELONGS, params![conversation], seen)?;
                *unknown.insert(seen.unwrap_or_default())
            }
        })
    }

    /// Calls `take` with each message that matches and is seen, newest first, until it has
    /// enough.
    fn matches(
        &mut self,
        expression: &str,
        take: &mut dyn FnMut(i64, ConversationId) -> Outcome<bool>,
    ) -> Outcome<()> {
        let mut until = i64::MAX;
        let mut patience = FIRST_PATIENCE;
        // Again for each part that is skipped.
        loop {
            let mut statement = self.connection.prepare_cached(SEARCH_IDS)?;
            let mut rows = statement.query(params![expression, until])?;
            let mut hidden = 0;
            let skip_to = loop {
                let Some(found) = rows.next()? else {
                    break None;
                };
                let (id, conversation) = (found.get(0)?, found.get(1)?);
                if self.sees(conversation)? {
                    hidden = 0;
                    if !take(id, conversation)? {
                        break None;
                    }
                    continue;
                }
                hidden += 1;
                if hidden < patience {
                    continue;
                }
                hidden = 0;
                let spans = match &mut self.spans {
                    Some(spans) => spans,
                    None => self.spans.insert(seen_spans(self.connection, self.sight)?),
                };
                patience = PATIENCE;
                match newest_within(spans, id) {
                    Some(place) if place == id => {}
                    other => break other,
                }
            };
            match skip_to {
                Some(place) => until = place,
                None => return Ok(()),
            }
        }
    }
}

/// Found messages in a row that are not seen, before the search looks where those are
/// that may be. For nearly everybody it is over by then.
const FIRST_PATIENCE: usize = 1000;

/// The same once it knows.
const PATIENCE: usize = 32;

/// Most conversations whose places are looked up. Who sees more of them finds enough.
const MOST_SPANS: usize = 1000;

/// From which to which message the conversations last that are seen.
fn seen_spans(connection: &Connection, sight: &Sight) -> Outcome<Vec<(i64, i64)>> {
    const EVERYWHERE: (i64, i64) = (i64::MIN, i64::MAX);
    let Seen::Of(audiences) = sight.seen() else {
        return Ok(vec![EVERYWHERE]);
    };
    let mut spans = Vec::new();
    for audience in audiences {
        let parameters = params![audience, MOST_SPANS as i64 + 1];
        let span = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        spans.extend(rows(connection, SPANS, parameters, span)?);
        if spans.len() > MOST_SPANS {
            return Ok(vec![EVERYWHERE]);
        }
    }
    Ok(spans)
}

/// The newest place of these spans that is at most `place`.
fn newest_within(spans: &[(i64, i64)], place: i64) -> Option<i64> {
    let before = spans.iter().filter(|(first, _)| *first <= place);
    before.map(|(_, last)| place.min(*last)).max()
}

pub(crate) const SPANS: &str = "SELECT ifnull((SELECT min(id) FROM messages \
         WHERE conversation_id = c.id), c.latest), c.latest \
     FROM conversations c INDEXED BY conversations_by_audience \
     WHERE c.audience_id = ?1 LIMIT ?2";

/// The full-text index returns rows in the order of their ids; CROSS JOIN keeps SQLite from
/// reordering the join.
pub(crate) const SEARCH_IDS: &str = "SELECT m.id, m.conversation_id FROM message_terms f \
     CROSS JOIN messages m ON m.id = f.rowid \
     WHERE message_terms MATCH ?1 AND f.rowid <= ?2 AND m.hidden_with IS NULL \
     ORDER BY f.rowid DESC";

const MATCHES: &str = "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1";

const COUNT: &str = "SELECT count(*) FROM \
     (SELECT 1 FROM message_terms WHERE message_terms MATCH ?1 LIMIT ?2)";

const OF_TIME: &str = "SELECT id, conversation_id FROM messages \
     WHERE id >= ?1 AND id < ?2 AND hidden_with IS NULL ORDER BY id DESC LIMIT ?3";

const TITLE: &str = "SELECT title FROM conversations WHERE id = ?1";

const IN_TITLES: &str = "SELECT 1 FROM title_terms WHERE title_terms MATCH ?1 LIMIT 1";

const TITLES: &str = concat!(
    "SELECT ",
    seen_columns!("c"),
    ", c.id, c.title FROM title_terms f CROSS JOIN conversations c ON c.id = f.rowid \
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
