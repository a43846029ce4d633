//! Finding what was said.
//!
//! A search has two parts. First the index of terms gives candidates: those with rare words,
//! and which of them have the common ones. Then the best of these are read, with the message
//! before and after each, and ranked by all that they share with the question. The weights
//! were measured: see `tests/data/search`. With a vector of the question, the messages that
//! mean about the same are candidates as well, and both orders are made one.

pub(crate) mod candidates;
mod dates;
pub(crate) mod index;
mod query;
pub(crate) mod ranking;
pub(crate) mod vectors;

use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::params;

use crate::chat::conversations;
use crate::chat::messages::{Message, PAGE, Page, find_message};
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::home::vector::Vector;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::Sight;
use base::error::Result;
use base::ids::{ConversationId, MessageId};
use protocol::command::SearchOrder;
use query::Query;
use ranking::{Passage, Said, Title};

/// Most messages that are read.
const MOST_READ: usize = 200;

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
    /// last word also matches as a prefix if there is no such word. With a vector of the query,
    /// what is near by its meaning is among them.
    pub fn search_messages(
        &self,
        query: &str,
        vector: Option<&Vector>,
        limit: usize,
        order: SearchOrder,
    ) -> Result<Found> {
        let query = Query::new(query, self.store.clock.now());
        let limit = limit.min(PAGE);
        let mut found = Found {
            hits: Vec::new(),
            words: query.words(),
            is_indexing: index::is_unfinished(self.connection())?,
        };
        if !self.sight.is_blind() {
            let mut search = Search::new(&self.sight, query)?;
            found.hits = match order {
                SearchOrder::Relevance => search.best(vector, limit)?,
                SearchOrder::Newest => search.newest(limit)?,
            };
        }
        Ok(found)
    }
}

/// One search.
struct Search<'a> {
    sight: &'a Sight<'a>,
    query: Query,
    /// The words that there are and how many messages have each, as far as that is counted;
    /// the rarest first.
    counted: Vec<(usize, usize)>,
    sees: HashMap<ConversationId, bool>,
    spans: Option<Vec<(i64, i64)>>,
    said: HashMap<i64, Rc<Said>>,
}

impl Search<'_> {
    /// Makes hits of passages, best first, and of titles. What one shows no later one shows.
    fn hits(
        &mut self,
        passages: Vec<Passage>,
        mut titles: Vec<Title>,
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
        titles.retain(|title| !is_of_message(title));
        let mut titles = titles.into_iter().peekable();
        let mut shown: Vec<i64> = Vec::new();
        let mut page: Page<Hit> = Page::new(limit);
        let (connection, all) = (self.sight.connection(), all);
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
                title: connection
                    .value(TITLE, params![conversation_id])?
                    .unwrap_or_default(),
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
            let connection = self.sight.connection();
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
                    title: connection
                        .value(TITLE, params![conversation_id])?
                        .unwrap_or_default(),
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
}

const TITLE: &str = "SELECT title FROM conversations WHERE id = ?1";
