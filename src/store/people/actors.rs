//! Who acts when no person is there: what `hearth doctor` lists, without changing
//! anything.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::integrity::open_to_look;
use crate::engine::query::Statements;
use crate::engine::schema::OpenError;
use crate::people::senders;
use crate::people::tokens::{self, Token};
use base::error::Result;
use base::language::Said;
use protocol::record::Sender;

/// The users, and what acts in their name.
#[derive(Clone, Debug, Default)]
pub struct Actors {
    /// The names of all users.
    pub users: Vec<String>,
    /// Guests that no conversation names, so that they see none: what an older version showed
    /// everybody is the household's.
    pub guests: Vec<String>,
    /// The tokens of programs that are valid now or were, newest first.
    pub tokens: Vec<Token>,
    /// Owners with the number of their schedules that are not paused; a schedule of
    /// an older version may have none.
    pub schedules: Vec<(Option<String>, u64)>,
    /// Calendars in which something is wrong: owner, name, what it is, and whether they cannot be
    /// read at all.
    pub calendars: Vec<(String, String, Said, bool)>,
    /// The linked senders of all people.
    pub senders: Vec<Sender>,
}

/// Guests that no conversation names.
const BLIND_GUESTS: &str = "SELECT name FROM users WHERE role = 'viewer'
     AND id NOT IN (SELECT user_id FROM audience_members) ORDER BY folded_name";

impl Store {
    /// The guests of [`Actors::guests`].
    pub fn blind_guests(&self) -> Result<Vec<String>> {
        let look = |connection: &Connection| connection.values(BLIND_GUESTS, params![]);
        self.look(look).map(Provisional::uncommitted)
    }
}

/// The users of the database at `path` and what acts in their name, without changing
/// it; a server may be using it.
///
/// # Errors
/// It does not exist, cannot be read, or is not a database of this version of Hearth.
pub fn look_up_actors(path: &Path) -> std::result::Result<Actors, OpenError> {
    let connection = open_to_look(path)?;
    let read = || -> Outcome<Actors> {
        Ok(Actors {
            users: connection.values("SELECT name FROM users ORDER BY folded_name", params![])?,
            guests: connection.values(BLIND_GUESTS, params![])?,
            tokens: tokens::list(&connection, false, None)?,
            schedules: connection.rows(
                "SELECT u.name, count(*) FROM schedules s LEFT JOIN users u ON u.id = s.owner_id
                 WHERE s.is_paused = 0 GROUP BY u.id ORDER BY u.folded_name",
                params![],
                |row| Ok(row.try_into()?),
            )?,
            calendars: connection.rows(
                "SELECT u.name, c.name, c.problem, c.is_failing FROM calendars c
                 CROSS JOIN users u ON u.id = c.owner_id WHERE c.problem IS NOT NULL
                 ORDER BY u.folded_name, c.folded",
                params![],
                |row| Ok(row.try_into()?),
            )?,
            senders: senders::all(&connection)?,
        })
    };
    read().map_err(|failure| OpenError::new(path, failure))
}
