//! [`Snapshot`], from which everything is read for somebody.

use rusqlite::Connection;

use crate::engine::database::{Inner, Store};
use crate::engine::durability::Durable;
use crate::engine::failure::Outcome;
use crate::engine::job::Write;
use crate::engine::query::Statements;
use crate::engine::readers::{Lent, OpenSnapshot, Readers, Source};
use crate::sight::viewer::{Sight, Viewer};
use base::error::Result;

/// One moment of the database, as somebody sees it: a read transaction, and what the viewer may
/// see in it, which is resolved once. It ends when it is dropped, and a thread has one at a
/// time; in debug builds, which all tests are, waiting for a commit with one panics, and so
/// does [`Snapshot::none_open`], which is called before the network is used.
///
/// Nothing is read without a viewer:
///
/// ```compile_fail
/// use base::ids::ConversationId;
/// use store::{Conversation, Store};
///
/// fn read(store: &Store, id: ConversationId) -> Conversation {
///     store.conversation(id).unwrap()
/// }
/// ```
///
/// It stays on its thread, so that no transaction is carried to a worker that waits for a model:
///
/// ```compile_fail
/// fn carry<T: Send>() {}
///
/// carry::<store::Snapshot<'static>>();
/// ```
pub struct Snapshot<'a> {
    pub(crate) store: &'a Inner,
    /// What is seen, and where it is read.
    pub(crate) sight: Sight<'a>,
    open: OpenSnapshot,
}

impl Store {
    /// What `viewer` sees at this moment, until the snapshot is dropped.
    pub fn snapshot(&self, viewer: &Viewer) -> Result<Snapshot<'_>> {
        self.open_snapshot(viewer, Readers::begin)
    }

    /// The same for a search by words, which may take long: searches have only a share of the
    /// connections, and wait for one of it.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read, and 503 when too many search.
    pub fn snapshot_to_search(&self, viewer: &Viewer) -> Result<Snapshot<'_>> {
        self.index_new();
        self.open_snapshot(viewer, Readers::begin_search)
    }

    fn open_snapshot<'a>(
        &'a self,
        viewer: &Viewer,
        begin: impl FnOnce(&'a Readers) -> Result<Lent<'a>>,
    ) -> Result<Snapshot<'a>> {
        let open = OpenSnapshot::here();
        let lent = begin(&self.inner.readers)?;
        let sight = viewer.sight(Source::Reader(lent))?;
        Ok(Snapshot {
            store: &self.inner,
            sight,
            open,
        })
    }

    /// Changes what `viewer` may see, and returns once that is committed.
    pub(crate) fn write_for<T: Send + 'static>(
        &self,
        viewer: &Viewer,
        work: impl FnOnce(&Write<'_>, &Sight<'_>) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        let viewer = viewer.clone();
        self.write(move |write| work(write, &viewer.sight(write.connection)?))
    }

    /// The same as a snapshot, for tests.
    ///
    /// # Panics
    /// When the database cannot be read.
    #[cfg(any(test, feature = "testing"))]
    pub fn seen(&self, viewer: &Viewer) -> Snapshot<'_> {
        self.snapshot(viewer).expect("the database can be read")
    }
}

impl Snapshot<'_> {
    /// In debug builds, checks that this thread has none: it is going to wait for something else
    /// than the database.
    pub fn none_open() {
        OpenSnapshot::none_here();
    }

    /// Reads what has an effect outside.
    pub(crate) fn durable<T>(
        &self,
        work: impl FnOnce(&Sight<'_>) -> Outcome<T>,
    ) -> Result<Durable<T>> {
        Durable::seen(&self.open, || work(&self.sight))
    }
}

impl Statements for Snapshot<'_> {
    fn connection(&self) -> &Connection {
        self.sight.connection()
    }
}
