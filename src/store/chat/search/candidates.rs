//! Which messages may fit a question: those with its words that are seen.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Row, params};

use super::query::Query;
use super::{MOST_READ, Search};
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::sight::viewer::{BELONGS, Seen, Sight};
use base::clock::Timestamp;
use base::ids::{ConversationId, first_at};

/// Most messages that are ranked at all.
const MOST_CANDIDATES: usize = 8_000;
/// In how many messages a word is that is only a hint, at most.
const MOST_OF_HINT: usize = 1_000;

/// A message that may fit: where it is, and which of the words it has, by bit.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub conversation: ConversationId,
    pub has: u32,
}

impl<'a> Search<'a> {
    pub(super) fn new(sight: &'a Sight<'a>, mut query: Query) -> Outcome<Search<'a>> {
        let count = |expression: String, most: usize| -> Outcome<usize> {
            let count = sight.value(COUNT, params![expression, most])?;
            Ok(count.unwrap_or_default())
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
                && !sight.exists(IN_TITLES, params![asked.expression()])?
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
            sight,
            query,
            counted,
            sees: HashMap::new(),
            spans: None,
            said: HashMap::new(),
        })
    }

    /// The messages that may fit. A word of too many is looked for only among those with
    /// rarer ones or, if all words are so, in the newest messages with most of them.
    pub(super) fn candidates(&mut self) -> Outcome<HashMap<i64, Candidate>> {
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
                for id in self.sight.values(MATCHES, params![both])? {
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
            let parameters = params![place(from), place(until), MOST_READ];
            let of_days: Vec<(i64, ConversationId)> =
                self.sight
                    .rows(OF_TIME, parameters, |row| Ok(row.try_into()?))?;
            for (id, conversation) in of_days {
                if self.sees(conversation)? {
                    take(&mut found, id, conversation, 0);
                }
            }
        }
        Ok(found)
    }

    pub(super) fn sees(&mut self, conversation: ConversationId) -> Outcome<bool> {
        Ok(match self.sees.entry(conversation) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => {
                let seen = |row: &Row<'_>| self.sight.sees_row(row);
                let seen = self.sight.row(BELONGS, params![conversation], seen)?;
                *unknown.insert(seen.unwrap_or_default())
            }
        })
    }

    /// Calls `take` with each message that matches and is seen, newest first, until it has
    /// enough.
    pub(super) fn matches(
        &mut self,
        expression: &str,
        take: &mut dyn FnMut(i64, ConversationId) -> Outcome<bool>,
    ) -> Outcome<()> {
        let mut until = i64::MAX;
        let mut patience = FIRST_PATIENCE;
        // Again for each part that is skipped.
        loop {
            let mut statement = self.sight.connection().prepare_cached(SEARCH_IDS)?;
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
                    None => self.spans.insert(seen_spans(self.sight)?),
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
fn seen_spans(sight: &Sight<'_>) -> Outcome<Vec<(i64, i64)>> {
    const EVERYWHERE: (i64, i64) = (i64::MIN, i64::MAX);
    let Seen::Of(audiences) = sight.seen() else {
        return Ok(vec![EVERYWHERE]);
    };
    let mut spans = Vec::new();
    for audience in audiences {
        let parameters = params![audience, MOST_SPANS + 1];
        let found: Vec<(i64, i64)> = sight.rows(SPANS, parameters, |row| Ok(row.try_into()?))?;
        spans.extend(found);
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

const IN_TITLES: &str = "SELECT 1 FROM title_terms WHERE title_terms MATCH ?1 LIMIT 1";
