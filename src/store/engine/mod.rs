//! The database itself: opening and migrating it, the writer thread that commits in groups,
//! the connections that read, and its checks.

pub(crate) mod check;
pub(crate) mod commit;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod commit_gate;
pub(crate) mod connection;
pub(crate) mod database;
pub(crate) mod durability;
pub(crate) mod failure;
pub(crate) mod integrity;
pub(crate) mod job;
pub(crate) mod meta;
pub(crate) mod query;
pub(crate) mod readers;
pub(crate) mod schema;
pub(crate) mod writer;
