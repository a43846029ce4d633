//! Commits that a test holds back, or lets fail, and statements that it counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

/// How long a test waits for a commit.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Stands before the commits of transactions that change one of some tables. Open
/// at first, and opened when it is dropped.
pub struct CommitGate {
    hooks: Arc<CommitHooks>,
}

/// What a database's hooks ask.
#[derive(Default)]
pub(crate) struct CommitHooks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// Commits that pass before others are held.
    passes: usize,
    tables: &'static [&'static str],
    /// Whether the open transaction changed one of the tables.
    is_concerned: bool,
    /// Commits that came to the gate.
    arrived: usize,
    statements: Statements,
}

/// Statements that have run, on the writer's connection but for the last number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    /// All of them.
    pub all: usize,
    /// Those that began a write transaction.
    pub transactions: usize,
    /// Those of readers.
    pub read: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    #[default]
    Open,
    Held,
    Failing,
}

impl CommitGate {
    /// Holds commits from now on.
    pub fn hold(&self) {
        self.set(Mode::Held);
    }

    /// Lets this many commits pass, and holds those after them.
    pub fn hold_after(&self, commits: usize) {
        self.hooks.lock().passes = commits;
        self.set(Mode::Held);
    }

    /// Lets all commits fail from now on, also those that are held and those of other
    /// tables: the disk is broken.
    pub fn fail(&self) {
        self.set(Mode::Failing);
    }

    /// Lets commits pass from now on, also those that are held.
    pub fn open(&self) {
        self.set(Mode::Open);
    }

    /// How many commits came to the gate.
    pub fn arrived(&self) -> usize {
        self.hooks.lock().arrived
    }

    /// Waits until this many commits came to the gate.
    ///
    /// # Panics
    /// After 30 seconds.
    pub fn wait_for(&self, commits: usize) {
        let (state, waited) = self
            .hooks
            .changed
            .wait_timeout_while(self.hooks.lock(), MAX_WAIT, |state| state.arrived < commits)
            .unwrap_or_else(PoisonError::into_inner);
        let arrived = state.arrived;
        drop(state);
        assert!(!waited.timed_out(), "{arrived} of {commits} commits came");
    }

    fn set(&self, mode: Mode) {
        self.hooks.lock().mode = mode;
        self.hooks.changed.notify_all();
    }
}

impl Drop for CommitGate {
    fn drop(&mut self) {
        self.open();
    }
}

/// A reader whose statements are counted.
pub(crate) fn counted(
    mut connection: Connection,
    statements: &Arc<AtomicUsize>,
) -> rusqlite::Result<Connection> {
    let statements = Arc::clone(statements);
    let count = move |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(..) = event {
            statements.fetch_add(1, Ordering::SeqCst);
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))?;
    Ok(connection)
}

impl CommitHooks {
    /// Sets the hooks of the writer's connection.
    pub fn install(connection: &mut Connection) -> rusqlite::Result<Arc<CommitHooks>> {
        let hooks = Arc::<CommitHooks>::default();
        let (rows, commits) = (Arc::clone(&hooks), Arc::clone(&hooks));
        connection.update_hook(Some(move |_, _: &str, table: &str, _| {
            let mut state = rows.lock();
            state.is_concerned |= state.tables.contains(&table);
        }))?;
        connection.commit_hook(Some(move || commits.refuse()))?;
        let statements = Arc::clone(&hooks);
        let count = move |event: TraceEvent<'_>| {
            if let TraceEvent::Stmt(_, sql) = event {
                let counts = &mut statements.lock().statements;
                counts.all += 1;
                counts.transactions += usize::from(sql == "BEGIN IMMEDIATE");
            }
        };
        connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))?;
        Ok(hooks)
    }

    /// The gate, before the commits that change one of `tables`.
    pub fn gate(self: &Arc<CommitHooks>, tables: &'static [&'static str]) -> CommitGate {
        self.lock().tables = tables;
        CommitGate {
            hooks: Arc::clone(self),
        }
    }

    /// How many statements have run.
    pub fn statements(&self) -> Statements {
        self.lock().statements
    }

    /// Called by a commit. Returns once it may go on (false), or fail (true).
    fn refuse(&self) -> bool {
        let mut state = self.lock();
        if !std::mem::take(&mut state.is_concerned) {
            return state.mode == Mode::Failing;
        }
        state.arrived += 1;
        self.changed.notify_all();
        if state.mode == Mode::Held && state.passes > 0 {
            state.passes -= 1;
            return false;
        }
        let state = self
            .changed
            .wait_while(state, |state| state.mode == Mode::Held)
            .unwrap_or_else(PoisonError::into_inner);
        state.mode == Mode::Failing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
