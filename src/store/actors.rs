//! Who acts when no person is there: what `hearth doctor` lists, without changing
//! anything.

use std::path::Path;

use rusqlite::Row;

use crate::integrity::open_to_look;
use crate::schema::OpenError;
use crate::tokens::SESSION;
use base::role::UserRole;

/// The users, and what acts in their name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actors {
    /// The names of all users.
    pub users: Vec<String>,
    /// The tokens of programs that are valid now or were.
    pub tokens: Vec<ActingToken>,
    /// Owners with the number of their schedules that are not paused; a schedule of
    /// an older version may have none.
    pub schedules: Vec<(Option<String>, u64)>,
}

/// A token of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActingToken {
    /// A name for people.
    pub name: String,
    /// The name of the user whom it acts as.
    pub user: String,
    /// Its role.
    pub role: UserRole,
    /// The only tools of its turns, with commas between them; none for all.
    pub tools: Option<String>,
}

/// The users of the database at `path` and what acts in their name, without changing
/// it; a server may be using it.
///
/// # Errors
/// It does not exist, cannot be read, or is not a database of this version of Hearth.
pub fn look_up_actors(path: &Path) -> Result<Actors, OpenError> {
    let connection = open_to_look(path)?;
    let failed = |error| OpenError::new(path, error);
    Ok(Actors {
        users: all(
            &connection,
            "SELECT name FROM users ORDER BY folded_name",
            |row| row.get(0),
        )
        .map_err(failed)?,
        tokens: all(
            &connection,
            &format!(
                "SELECT t.name AS name, u.name AS user, t.role, t.tools FROM tokens t
                 JOIN users u ON u.id = t.user_id WHERE t.name <> '{SESSION}' ORDER BY t.id"
            ),
            |row| {
                Ok(ActingToken {
                    name: row.get("name")?,
                    user: row.get("user")?,
                    role: row.get("role")?,
                    tools: row.get("tools")?,
                })
            },
        )
        .map_err(failed)?,
        schedules: all(
            &connection,
            "SELECT u.name, count(*) FROM schedules s LEFT JOIN users u ON u.id = s.owner_id
             WHERE s.is_paused = 0 GROUP BY u.id ORDER BY u.folded_name",
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())),
        )
        .map_err(failed)?,
    })
}

fn all<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], read)?.collect()
}
