//! The names of people who were removed, until the configuration has none of them.

use rusqlite::params;

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::{value, values};
use base::error::{Error, Result};
use base::people::folded;

impl Store {
    /// The names of removed people that the configuration may still have:
    /// [`Store::name_forgotten`] is to be told when it has not.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub fn removed_names(&self) -> Result<Provisional<Vec<String>>> {
        self.look(|connection| {
            let (from, until) = (removal_key(""), removal_key("\u{10FFFF}"));
            values(
                connection,
                "SELECT value FROM meta WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
                params![from, until],
            )
        })
    }

    /// The configuration has the name of a removed person no longer: somebody else may
    /// get it.
    ///
    /// # Errors
    /// `server_error` when the database cannot be written.
    pub fn name_forgotten(&self, name: &str) -> Result<()> {
        let key = removal_key(name);
        self.write(move |write| {
            write.execute("DELETE FROM meta WHERE key = ?", params![key])?;
            Ok(())
        })
    }
}

/// Notes that a person of this name was removed.
pub(crate) fn note(write: &Write<'_>, name: &str) -> Outcome<()> {
    write.execute(
        "INSERT INTO meta (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = ?2",
        params![removal_key(name), name],
    )?;
    Ok(())
}

/// Checks that the configuration says nothing about an earlier person of this name.
///
/// # Errors
/// `invalid_request`.
pub(crate) fn check_forgotten(write: &Write<'_>, name: &str) -> Outcome<()> {
    let removed: Option<String> = value(
        write.connection,
        "SELECT value FROM meta WHERE key = ?",
        params![removal_key(name)],
    )?;
    match removed {
        None => Ok(()),
        Some(removed) => Err(Error::invalid_request(format!(
            "{removed:?} was removed, but the configuration may still name them: try again, and \
             if that does not help, see that its file can be written"
        ))
        .into()),
    }
}

/// The key of the `meta` table under which a name is noted.
fn removal_key(name: &str) -> String {
    format!("removed {}", folded(name))
}
