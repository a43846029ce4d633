//! The pool of reader connections.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::connection::{self, Purpose};
use crate::failure::{Failure, Outcome, closed};
use base::error::{Error, Result};
use base::sync::channel::{Receiver, Sender, bounded};

/// Most connections that read at once.
const READERS: usize = 4;
/// How long a caller waits for a free one.
const READER_WAIT: Duration = Duration::from_secs(5);

/// At most [`READERS`] connections, each opened when it is first needed: an idle
/// server has none.
pub(crate) struct Readers {
    path: PathBuf,
    idle: Receiver<Connection>,
    give_back: Sender<Connection>,
    opened: AtomicUsize,
    /// How often one was lent.
    lent: AtomicU64,
    closed: AtomicBool,
    wait: Duration,
}

impl Readers {
    /// A pool of readers of the database at `path`, which must exist.
    pub fn new(path: PathBuf) -> Readers {
        let (give_back, idle) = bounded(READERS);
        Readers {
            path,
            idle,
            give_back,
            opened: AtomicUsize::new(0),
            lent: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            wait: READER_WAIT,
        }
    }

    /// Runs statements on a reader. All see what was committed when the first began:
    /// who may see a thing, and the thing.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        let lent = self.begin()?;
        let found = work(lent.connection()).map_err(Failure::on_read)?;
        execute(lent.connection(), "COMMIT")?;
        Ok(found)
    }

    /// Lends a reader with an open transaction. Separate from [`Readers::read`], which the
    /// compiler repeats for every caller.
    fn begin(&self) -> Result<Lent<'_>> {
        let lent = self.lend()?;
        // One lock of the file for all statements, too.
        execute(lent.connection(), "BEGIN")?;
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
        self.idle.recv_timeout(self.wait).map_err(|_| {
            Error::overloaded(
                "the database is busy: too many requests are reading from it",
                1,
            )
        })
    }
}

/// Runs a cached statement that has no rows.
fn execute(connection: &Connection, sql: &str) -> Result<()> {
    let run = || connection.prepare_cached(sql)?.execute([]);
    run().map_err(|error| Failure::from(error).on_read())?;
    Ok(())
}

/// A borrowed connection; dropping it returns it, even after a panic.
struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Lent<'_> {
    fn connection(&self) -> &Connection {
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
            // After a failure or a panic its transaction is open, and would go on to see
            // the past. A connection that cannot end it fails at its next one.
            if !connection.is_autocommit() {
                let _ = connection.execute_batch("ROLLBACK");
            }
            // Never full: the channel holds as many as there are connections.
            let _ = self.readers.give_back.try_send(connection);
        }
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
