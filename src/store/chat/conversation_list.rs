//! The list of conversations.

use std::cmp::Reverse;

use rusqlite::types::Null;
use rusqlite::{Row, ToSql, params};

use crate::chat::conversation_marks;
use crate::chat::conversations::{self, Conversation, conversation_columns, conversation_from_row};
use crate::engine::failure::Outcome;
use crate::engine::query::Statements;
use crate::sight::snapshot::Snapshot;
use crate::sight::viewer::{Seen, Sight, seen_columns};
use base::error::Result;
use base::ids::{ConversationId, UserId};
use protocol::command::ConversationCursor;

/// Most conversations of one page, whatever a caller asks for.
const PAGE: usize = 1000;

/// A page of conversations, newest activity first.
#[derive(Clone, Debug)]
pub struct ConversationPage {
    /// At most as many as requested.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins; `None` on the last.
    pub next: Option<ConversationCursor>,
}

impl Snapshot<'_> {
    /// A page of at most 1,000 conversations, newest activity first, without those that the
    /// viewer has archived unless these are wanted, too.
    pub fn conversations(
        &self,
        limit: usize,
        after: Option<ConversationCursor>,
        with_archived: bool,
    ) -> Result<ConversationPage> {
        let limit = limit.min(PAGE);
        let before = after.map_or(i64::MAX, |cursor| cursor.0.as_i64());
        // One more than the page: then there is a next page.
        let archivist = self.sight.viewer.user_id().filter(|_| !with_archived);
        let mut conversations = newest(&self.sight, before, limit + 1, archivist)?;
        let has_more = conversations.len() > limit;
        conversations.truncate(limit);
        conversation_marks::add(&self.sight, &mut conversations)?;
        let next = conversations.last().filter(|_| has_more);
        let next = next.map(|last| ConversationCursor(last.latest));
        Ok(ConversationPage {
            conversations,
            next,
        })
    }

    /// The page of this conversation alone, which the viewer may have archived.
    ///
    /// # Errors
    /// `not_found`.
    pub fn conversation_alone(&self, id: ConversationId) -> Result<ConversationPage> {
        let mut conversations = vec![conversations::find(&self.sight, id)?];
        conversation_marks::add(&self.sight, &mut conversations)?;
        Ok(ConversationPage {
            conversations,
            next: None,
        })
    }
}

/// The newest conversations of these audiences. Each has the index in the order of the
/// list, and SQLite merges them: it reads no more of each than the page takes.
macro_rules! newest_of {
    ($first:literal $(, $other:literal)*) => {
        concat!(
            "SELECT ",
            conversation_columns!(),
            "FROM (",
            newest_of!(@one $first),
            $(" UNION ALL ", newest_of!(@one $other),)*
            " ORDER BY latest DESC LIMIT ?3) newest \
             CROSS JOIN conversations c ON c.id = newest.id"
        )
    };
    (@one $audience:literal) => {
        concat!(
            "SELECT latest, id FROM conversations INDEXED BY conversations_by_audience \
             WHERE audience_id = ",
            $audience,
            " AND latest > ?1 AND latest < ?2 AND NOT EXISTS (SELECT 1 FROM conversation_marks \
                 WHERE user_id = ?12 AND conversation_id = conversations.id AND is_archived)"
        )
    };
}

pub(crate) const NEWEST_OF_AUDIENCES: &str =
    newest_of!("?4", "?5", "?6", "?7", "?8", "?9", "?10", "?11");

/// As many as the statement merges.
const MERGED: usize = 8;

pub(crate) const OF_ACCOUNT: &str = concat!(
    "SELECT ",
    conversation_columns!(),
    "FROM conversations c INDEXED BY conversations_by_name \
     WHERE c.account = ?1 AND c.external_name IS NOT NULL AND c.latest < ?2"
);

/// The newest conversations that are seen, at most `most`, newest first, without those that
/// the archivist has archived.
fn newest(
    sight: &Sight<'_>,
    before: i64,
    most: usize,
    archivist: Option<UserId>,
) -> Outcome<Vec<Conversation>> {
    let mut conversation = |row: &Row<'_>| conversation_from_row(&sight.directory, row);
    let mut newest: Vec<Conversation> = Vec::new();
    let every;
    let audiences = match sight.seen() {
        Seen::Of(audiences) => &audiences[..],
        Seen::All => {
            every = sight.values("SELECT id FROM audiences", params![])?;
            &every
        }
        Seen::OfAccount(account) => {
            let parameters = params![account, before];
            newest = sight.seen_rows(OF_ACCOUNT, parameters, usize::MAX, &mut conversation)?;
            sort_newest_first(&mut newest, most);
            &[]
        }
    };
    for audiences in audiences.chunks(MERGED) {
        // Older ones have no place beside those that are found already.
        let oldest = newest
            .get(most - 1)
            .map_or(i64::MIN, |one| one.latest.as_i64());
        let limit = match sight.has_caller() {
            true => i64::MAX,
            false => most as i64,
        };
        let mut parameters: Vec<&dyn ToSql> = vec![&oldest, &before, &limit];
        parameters.extend(audiences.iter().map(|audience| audience as &dyn ToSql));
        parameters.resize(3 + MERGED, &Null);
        parameters.push(&archivist);
        newest.extend(sight.seen_rows(
            NEWEST_OF_AUDIENCES,
            &parameters,
            usize::MAX,
            &mut conversation,
        )?);
        sort_newest_first(&mut newest, most);
    }
    Ok(newest)
}

fn sort_newest_first(conversations: &mut Vec<Conversation>, most: usize) {
    conversations.sort_by_key(|one| Reverse(one.latest));
    conversations.truncate(most);
}
