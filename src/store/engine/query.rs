//! Running cached statements, and enums that are stored, and sent, as words.

use std::fmt::Display;
use std::ops::ControlFlow;

use rusqlite::types::FromSql;
use rusqlite::{Connection, Row, ToSql};

use crate::engine::failure::{Failure, Outcome};
use base::error::{Code, Error};

/// Gives an enum its words: `as_str`, `parse`, and the columns that hold it.
macro_rules! words {
    ($kind:ty { $($variant:ident: $word:literal,)* }) => {
        base::words! { $kind { $($variant: $word,)* } }
        base::word_columns! { $kind }
    };
}

pub(crate) use words;

/// A value from a row: fields that are columns of the same names, and the others.
macro_rules! from_row {
    ($row:ident => $kind:ident {
        $($column:ident),+ $(; $($field:ident: $value:expr),+)? $(,)?
    }) => {
        $kind {
            $($column: $row.get(stringify!($column))?,)+
            $($($field: $value,)+)?
        }
    };
}

pub(crate) use from_row;

/// The cached statements of a connection, and of what has one.
pub(crate) trait Statements {
    /// Where they run.
    fn connection(&self) -> &Connection;

    /// Calls `take` with each row until it breaks.
    fn each_row(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        take: &mut dyn FnMut(&Row<'_>) -> Outcome<ControlFlow<()>>,
    ) -> Outcome<()> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            if take(row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// All rows.
    fn rows<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        mut from_row: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let mut found = Vec::new();
        self.each_row(sql, parameters, &mut |row| {
            found.push(from_row(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// The first row.
    fn row<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        mut from_row: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Option<T>> {
        let mut found = None;
        self.each_row(sql, parameters, &mut |row| {
            found = Some(from_row(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The first column of all rows.
    fn values<T: FromSql>(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<Vec<T>> {
        self.rows(sql, parameters, |row| Ok(row.get(0)?))
    }

    /// The first column of the first row.
    fn value<T: FromSql>(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<Option<T>> {
        self.row(sql, parameters, |row| Ok(row.get(0)?))
    }

    /// Whether there is a row.
    fn exists(&self, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<bool> {
        Ok(self.row(sql, parameters, |_| Ok(()))?.is_some())
    }

    /// The row of a `what` by its id, the only parameter of the statement.
    ///
    /// # Errors
    /// `not_found`.
    fn find<T, I: ToSql + Display>(
        &self,
        what: &str,
        sql: &str,
        id: I,
        from_row: impl FnMut(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        self.row(sql, &[&id], from_row)?
            .ok_or_else(|| not_found(what, id))
    }
}

impl Statements for Connection {
    fn connection(&self) -> &Connection {
        self
    }
}

pub(crate) fn not_found(what: &str, id: impl Display) -> Failure {
    let fields = [("what", what), ("id", &*id.to_string())];
    Error::worded(Code::NotFound, "error.none", &fields).into()
}

/// Checks that a statement changed the row of a `what`.
///
/// # Errors
/// `not_found` when it changed none.
pub(crate) fn check_changed(changed: usize, what: &str, id: impl Display) -> Outcome<()> {
    match changed {
        0 => Err(not_found(what, id)),
        _ => Ok(()),
    }
}

/// The bytes of a text column, without copying it.
pub(crate) fn length(row: &Row<'_>, column: &str) -> Outcome<usize> {
    Ok(row.get_ref(column)?.as_bytes()?.len())
}
