//! The table `meta`: single values, each under its key.

use rusqlite::types::FromSql;
use rusqlite::{Connection, ToSql, params};

use crate::engine::database::Store;
use crate::engine::durability::Provisional;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use base::error::Result;

impl Store {
    /// A value of the `meta` table.
    pub fn meta(&self, key: &str) -> Result<Provisional<Option<String>>> {
        let key = key.to_owned();
        self.look(move |connection| get(connection, &key))
    }

    /// Sets a value of the `meta` table, durably.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.write(move |write| set(write, &key, &value))
    }
}

/// The value of this key.
pub(crate) fn get<T: FromSql>(connection: &Connection, key: &str) -> Outcome<Option<T>> {
    connection.value("SELECT value FROM meta WHERE key = ?", params![key])
}

/// Sets the value of a key.
pub(crate) fn set(write: &Write<'_>, key: &str, value: &dyn ToSql) -> Outcome<()> {
    write.run(
        "INSERT INTO meta (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = ?2",
        params![key, value],
    )
}

/// Removes a key.
pub(crate) fn remove(write: &Write<'_>, key: &str) -> Outcome<()> {
    write.run("DELETE FROM meta WHERE key = ?", params![key])
}
