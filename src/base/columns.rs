//! How ids, times and error codes are stored in columns. Rust's orphan rule puts
//! these next to their types; only the store enables them (feature `sql`).

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::calendar::Cron;
use crate::clock::Timestamp;
use crate::error::{Code, Error};
use crate::ids::{
    ApprovalId, AttachmentId, AudienceId, CalendarId, ConversationId, DeliveryId, EventId, ItemId,
    MemoryId, MessageId, NotificationId, PushId, ResultId, ScheduleId, TokenId, TurnId, UserId,
};
use crate::language::Said;
use crate::people::UserRole;
use crate::reply::Surface;

macro_rules! id_columns {
    ($($id:ty)*) => {$(
        impl ToSql for $id {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(self.as_i64().into())
            }
        }

        impl FromSql for $id {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                i64::column_result(value).map(<$id>::from)
            }
        }
    )*};
}

id_columns! {
    ApprovalId AttachmentId AudienceId CalendarId ConversationId DeliveryId EventId ItemId
    MemoryId MessageId NotificationId PushId ResultId ScheduleId TokenId TurnId UserId
}

impl ToSql for Timestamp {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_millis().into())
    }
}

impl FromSql for Timestamp {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(Timestamp::from_millis)
    }
}

impl ToSql for Cron {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_string().into())
    }
}

impl FromSql for Cron {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value
            .as_str()?
            .parse()
            .map_err(|error: Error| FromSqlError::other(error))
    }
}

impl ToSql for Said {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.to_stored().into())
    }
}

impl FromSql for Said {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Said::from_stored)
    }
}

/// Stores types by their words: each has `as_str` and `parse`.
#[macro_export]
macro_rules! word_columns {
    ($($kind:ty)*) => {$(
        impl ::rusqlite::types::ToSql for $kind {
            fn to_sql(&self) -> ::rusqlite::Result<::rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl ::rusqlite::types::FromSql for $kind {
            fn column_result(value: ::rusqlite::types::ValueRef<'_>) -> ::rusqlite::types::FromSqlResult<Self> {
                let word = value.as_str()?;
                <$kind>::parse(word).ok_or_else(|| {
                    ::rusqlite::types::FromSqlError::other($crate::error::Error::invalid_request(format!(
                        "{word:?} is no {}",
                        stringify!($kind)
                    )))
                })
            }
        }
    )*};
}

word_columns! { Code UserRole Surface }
