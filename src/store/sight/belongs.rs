//! To whom things belong, and the columns that say so.

use rusqlite::Row;

use base::ids::{AudienceId, UserId};

/// To whom a thing belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belongs {
    pub owner_id: Option<UserId>,
    pub audience_id: AudienceId,
    pub account: Option<String>,
}

/// The columns of [`Belongs`], of the table with this name in the statement. They
/// come first, and have names of their own beside `*`.
macro_rules! seen_columns {
    ($table:literal) => {
        concat!(
            $table,
            ".audience_id AS its_audience, ",
            $table,
            ".owner_id AS its_owner, ",
            $table,
            ".account AS its_account "
        )
    };
}

pub(crate) use seen_columns;

/// How many they are.
pub(crate) const SEEN_COLUMNS: usize = 3;

impl Belongs {
    /// From the first three columns of a row.
    pub fn from_row(row: &Row<'_>) -> rusqlite::Result<Belongs> {
        Ok(Belongs {
            audience_id: row.get(0)?,
            owner_id: row.get(1)?,
            account: row.get(2)?,
        })
    }
}

/// To whom a conversation belongs.
pub(crate) const BELONGS: &str = concat!(
    "SELECT ",
    seen_columns!("c"),
    "FROM conversations c WHERE id = ?"
);
