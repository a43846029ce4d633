//! The pool of reader connections.

use std::cell::Cell;
use std::marker::PhantomData;
use std::path::PathBuf;
#[cfg(any(test, feature = "testing"))]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;

#[cfg(any(test, feature = "testing"))]
use crate::engine::commit_gate;
use crate::engine::connection::{self, Purpose};
use crate::engine::failure::{Failure, Outcome, closed};
use crate::engine::query::Statements;
use base::error::{Error, Result};
use base::sync::channel::{Receiver, Sender, bounded};

/// Most connections that read at once.
const READERS: usize = 4;
/// Most of them that search at once: what is short does not wait for what is long.
const SEARCHERS: usize = READERS / 2;
/// How long a caller waits for a free one.
const READER_WAIT: Duration = Duration::from_secs(5);

/// At most [`READERS`] connections, each opened when it is first needed: an idle
/// server has none.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Receiver<Connection>,
    give_back: Sender<Connection>,
    opened: AtomicUsize,
    /// A token for each that may search.
    searchers: Receiver<()>,
    stop_search: Sender<()>,
    /// How often one was lent.
    lent: AtomicU64,
    closed: AtomicBool,
    wait: Duration,
    /// Statements that have run.
    #[cfg(any(test, feature = "testing"))]
    pub statements: Arc<AtomicUsize>,
}

impl Readers {
    /// A pool of readers of the database at `path`, which must exist.
    pub fn new(path: PathBuf) -> Readers {
        let (give_back, idle) = bounded(READERS);
        let (stop_search, searchers) = bounded(SEARCHERS);
        for _ in 0..SEARCHERS {
            let _ = stop_search.try_send(());
        }
        Readers {
            path,
            idle,
            give_back,
            opened: AtomicUsize::new(0),
            searchers,
            stop_search,
            lent: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            wait: READER_WAIT,
            #[cfg(any(test, feature = "testing"))]
            statements: Arc::default(),
        }
    }

    /// Runs statements on a reader. All see what was committed when the first began:
    /// who may see a thing, and the thing.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        Ok(work(self.begin()?.connection())?)
    }

    /// Lends a reader with an open transaction. Separate from [`Readers::read`], which the
    /// compiler repeats for every caller.
    pub fn begin(&self) -> Result<Lent<'_>> {
        let lent = self.lend()?;
        // One lock of the file for all statements, too.
        execute(lent.connection(), "BEGIN")?;
        Ok(lent)
    }

    /// The same for a search, which takes long: it waits for its share of the readers.
    pub fn begin_search(&self) -> Result<Lent<'_>> {
        self.searchers
            .recv_timeout(self.wait)
            .map_err(|_| busy("searching in it"))?;
        let search = Search(self);
        let mut lent = self.begin()?;
        lent.search = Some(search);
        Ok(lent)
    }

    /// Runs one statement on a reader, which needs no transaction around it.
    pub fn read_once<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        work(self.lend()?.connection()).map_err(Failure::on_read)
    }

    /// Closes the idle readers. Later calls fail; running ones end normally.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        while self.idle.try_recv().is_ok() {}
    }

    /// How often something was read.
    pub fn lent(&self) -> u64 {
        self.lent.load(Ordering::Relaxed)
    }

    /// Closes the idle readers, with what they hold in memory. The next caller opens one.
    pub fn release(&self) {
        while self.idle.try_recv().is_ok() {
            self.opened.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn lend(&self) -> Result<Lent<'_>> {
        self.lent.fetch_add(1, Ordering::Relaxed);
        Ok(Lent {
            readers: self,
            connection: Some(self.take()?),
            search: None,
        })
    }

    fn take(&self) -> Result<Connection> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        if let Ok(connection) = self.idle.try_recv() {
            return Ok(connection);
        }
        let may_open = self
            .opened
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |opened| {
                (opened < READERS).then_some(opened + 1)
            })
            .is_ok();
        if may_open {
            let opened = connection::open(&self.path).and_then(|connection| {
                connection::prepare(&connection, Purpose::Read)?;
                #[cfg(any(test, feature = "testing"))]
                let connection = commit_gate::counted(connection, &self.statements)?;
                Ok(connection)
            });
            match opened {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    if self.opened.fetch_sub(1, Ordering::SeqCst) == 1 {
                        return Err(Failure::from(error).on_read());
                    }
                    // Without a descriptor for another, this one takes its turn.
                    log::debug!("no further reader of the database: {error}");
                }
            }
        }
        self.idle
            .recv_timeout(self.wait)
            .map_err(|_| busy("reading from it"))
    }
}

fn busy(doing: &str) -> Error {
    let told = format!("the database is busy: too many requests are {doing}");
    Error::overloaded(told, 1).of_storage()
}

/// Runs a cached statement that has no rows.
fn execute(connection: &Connection, sql: &str) -> Result<()> {
    let run = || connection.prepare_cached(sql)?.execute([]);
    run().map_err(|error| Failure::from(error).on_read())?;
    Ok(())
}

/// A borrowed connection; dropping it returns it, even after a panic.
pub(crate) struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
    search: Option<Search<'a>>,
}

/// Where somebody's reads run.
pub(crate) enum Source<'a> {
    /// On a reader, whose transaction ends with this.
    Reader(Lent<'a>),
    /// On a connection whose transaction is another's.
    Open(&'a Connection),
}

impl<'a> From<&'a Connection> for Source<'a> {
    fn from(connection: &'a Connection) -> Source<'a> {
        Source::Open(connection)
    }
}

impl Statements for Source<'_> {
    fn connection(&self) -> &Connection {
        match self {
            Source::Reader(lent) => lent.connection(),
            Source::Open(connection) => connection,
        }
    }
}

/// One of those that may search; dropping it lets another one.
struct Search<'a>(&'a Readers);

impl Drop for Search<'_> {
    fn drop(&mut self) {
        // Never full, as below.
        let _ = self.0.stop_search.try_send(());
    }
}

impl Lent<'_> {
    /// The connection.
    pub fn connection(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("only Drop takes the connection")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.readers.closed.load(Ordering::SeqCst)
        {
            // It would go on to see the past. A connection that cannot end its transaction
            // fails at its next one.
            if !connection.is_autocommit() {
                let _ = execute(&connection, "COMMIT");
            }
            // Never full: the channel holds as many as there are connections.
            let _ = self.readers.give_back.try_send(connection);
        }
    }
}

thread_local! {
    /// How many snapshots this thread has.
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// Counts a snapshot as long as it is open, on the thread that it stays on.
pub(crate) struct OpenSnapshot(PhantomData<*const ()>);

impl OpenSnapshot {
    /// Another one.
    pub fn here() -> OpenSnapshot {
        OpenSnapshot::none_here();
        OPEN.set(OPEN.get() + 1);
        OpenSnapshot(PhantomData)
    }

    /// In debug builds, checks that this thread has none.
    pub fn none_here() {
        debug_assert_eq!(OPEN.get(), 0, "a snapshot is open");
    }
}

impl Drop for OpenSnapshot {
    fn drop(&mut self) {
        OPEN.set(OPEN.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TemporaryDirectory, TestStore, open};
    use base::error::Code;

    #[test]
    fn more_threads_than_readers_take_turns() {
        let store = TestStore::new();
        let readers = &store.inner.readers;
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(store.meta("nothing").unwrap().uncommitted(), None);
                    }
                });
            }
        });
        assert!(readers.opened.load(Ordering::SeqCst) <= READERS);
        assert_eq!(
            readers.idle.len(),
            readers.opened.load(Ordering::SeqCst),
            "each came back"
        );
    }

    #[test]
    fn a_caller_does_not_wait_for_a_reader_for_ever() {
        fn nested(readers: &Readers, depth: usize) -> Result<()> {
            readers.read(|_| match depth {
                0 => Ok(()),
                _ => Ok(nested(readers, depth - 1)?),
            })
        }
        let dir = TemporaryDirectory::new();
        let _store = open(&dir);
        let readers = Readers {
            wait: Duration::from_millis(10),
            ..Readers::new(dir.path().join("hearth.db"))
        };
        assert_eq!(nested(&readers, READERS - 1), Ok(()));
        let error = nested(&readers, READERS).unwrap_err();
        assert_eq!((error.status(), error.retry_after()), (503, Some(1)));
    }

    #[test]
    fn searches_leave_readers_to_the_others() {
        let dir = TemporaryDirectory::new();
        let _store = open(&dir);
        let readers = Readers {
            wait: Duration::from_millis(10),
            ..Readers::new(dir.path().join("hearth.db"))
        };
        let mut searches: Vec<_> = (0..SEARCHERS)
            .map(|_| readers.begin_search().unwrap())
            .collect();
        let busy = readers.begin_search().err().unwrap();
        assert_eq!((busy.status(), busy.retry_after()), (503, Some(1)));
        assert!(readers.begin().is_ok());
        searches.pop();
        assert!(readers.begin_search().is_ok());
        // Not even where no reader is left for it.
        let _all: Vec<_> = std::iter::from_fn(|| readers.begin().ok()).collect();
        assert!(readers.begin_search().is_err());
        drop((_all, searches));
        assert_eq!(readers.searchers.len(), SEARCHERS, "each came back");
    }

    #[test]
    fn a_reader_that_cannot_be_opened_leaves_the_work_to_the_others() {
        let dir = TemporaryDirectory::new();
        let _store = open(&dir);
        let readers = Readers {
            wait: Duration::from_millis(10),
            ..Readers::new(dir.path().join("hearth.db"))
        };
        let first = readers.lend().unwrap();
        std::fs::rename(dir.path().join("hearth.db"), dir.path().join("moved")).unwrap();
        let busy = readers.lend().err().unwrap();
        assert_eq!(
            (busy.status(), busy.retry_after()),
            (503, Some(1)),
            "{busy}"
        );
        drop(first);
        assert!(readers.lend().is_ok());

        let none = Readers::new(dir.path().join("hearth.db"));
        let refused = none.lend().err().unwrap();
        assert_eq!(
            (refused.status(), refused.retry_after()),
            (503, Some(10)),
            "{refused}"
        );
    }

    #[test]
    fn a_reader_comes_back_after_a_panic_and_cannot_write() {
        let store = TestStore::new();
        let readers = &store.inner.readers;
        for _ in 0..2 * READERS {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                readers.read::<()>(|_| panic!("a bug"))
            }));
            assert!(panicked.is_err());
        }
        let refused = readers.read(|connection| {
            connection.execute("DELETE FROM users", [])?;
            Ok(())
        });
        assert_eq!(refused.unwrap_err().code(), Code::ServerError);
    }
}
