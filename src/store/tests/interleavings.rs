//! The writer under many schedules of its callers: run with `make interleavings`.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::engine::failure::Outcome;
use crate::engine::job::{Acknowledge, Write};
use crate::engine::readers::Readers;
use crate::engine::writer::Writer;
use base::clock::Clock;
use base::error::{Error, Result};
use base::ids::Sequence;
use base::sync::{Mutex, lock, thread};
use base::testing::{TemporaryDirectory, explore};

/// A writer of a small database that nothing slows down.
struct Scene {
    writer: Writer,
    directory: TemporaryDirectory,
    kept: Mutex<Option<(i64, bool)>>,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let directory = TemporaryDirectory::new();
        let connection = open(&directory);
        connection
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
                 CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
                 CREATE TABLE links (note INTEGER NOT NULL
                   REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);",
            )
            .unwrap();
        let readers = Arc::new(Readers::new(directory.path().to_owned()));
        let ids = Sequence::after(0);
        Arc::new(Scene {
            writer: Writer::start(connection, readers, ids, Clock::system()).unwrap(),
            directory,
            kept: Mutex::default(),
        })
    }

    fn write(&self, text: &'static str) -> Result<()> {
        self.call(Acknowledge::AfterCommit, text)
    }

    fn call(&self, acknowledge: Acknowledge, text: &'static str) -> Result<()> {
        self.writer
            .call(acknowledge, move |write| note(write, text))
    }

    /// Whether other connections see it, once: whether it is committed.
    fn is_committed(&self, text: &str) -> bool {
        let count: i64 = open(&self.directory)
            .query_row(
                "SELECT count(*) FROM notes WHERE text = ?",
                params![text],
                |row| row.get(0),
            )
            .unwrap();
        assert!(count <= 1, "{text} is there {count} times");
        count == 1
    }
}

/// No test of schedules cuts the power, and thousands of them wait for every sync.
fn open(directory: &TemporaryDirectory) -> Connection {
    let connection = Connection::open(directory.path().join("notes.db")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;")
        .unwrap();
    connection
}

fn note(write: &Write<'_>, text: &str) -> Outcome<()> {
    write.execute("INSERT INTO notes (text) VALUES (?)", params![text])?;
    Ok(())
}

fn run_all(callers: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = callers.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

macro_rules! caller {
    ($scene:ident, $body:expr) => {{
        let $scene = Arc::clone(&$scene);
        Box::new(move || $body)
    }};
}

/// Whether there are notes, as somebody reads it who keeps what was read: in one transaction
/// with how often something was rewritten.
fn has_notes(scene: &Scene) -> bool {
    // Nobody else runs while the transaction is open: this database has no write-ahead log.
    let mut kept = lock(&scene.kept);
    let mut connection = open(&scene.directory);
    let moment = connection.transaction().unwrap();
    let count = |sql| moment.query_row(sql, [], |row| row.get::<_, i64>(0));
    let rewrites = count("SELECT ifnull(sum(value), 0) FROM meta").unwrap();
    if let Some((at, is_there)) = *kept
        && at == rewrites
    {
        return is_there;
    }
    let is_there = count("SELECT count(*) FROM notes").unwrap() > 0;
    *kept = Some((rewrites, is_there));
    is_there
}

#[test]
fn nothing_that_was_deleted_is_kept() {
    is_gone_once_it_was_deleted("writer: what is kept goes with what is deleted", has_notes);
}

fn is_gone_once_it_was_deleted(what: &'static str, has: fn(&Scene) -> bool) {
    explore(what, move || {
        let scene = Scene::new();
        scene.write("secret").unwrap();
        run_all(vec![
            caller!(scene, {
                let delete = |write: &Write<'_>| write.execute("DELETE FROM notes", &[]);
                scene.writer.call(Acknowledge::AfterCommit, delete).unwrap();
                assert!(!has(&scene));
            }),
            caller!(scene, {
                has(&scene);
                has(&scene);
            }),
            caller!(scene, {
                has(&scene);
            }),
        ]);
        assert!(!has(&scene));
        scene.writer.close();
    });
}

#[test]
fn every_caller_is_answered_after_its_commit() {
    explore("writer: answers follow commits", || {
        let scene = Scene::new();
        run_all(vec![
            caller!(scene, {
                scene.write("first").unwrap();
                assert!(scene.is_committed("first"));
                scene.write("second").unwrap();
                assert!(scene.is_committed("first") && scene.is_committed("second"));
            }),
            caller!(scene, {
                scene.call(Acknowledge::AfterRun, "deferred").unwrap();
                scene.write("after deferred").unwrap();
                assert!(scene.is_committed("deferred"));
            }),
            caller!(scene, scene.writer.post(|write| note(write, "posted"))),
        ]);
        scene.writer.close();
        assert!(scene.is_committed("posted"));
        assert!(scene.writer.is_writable());
    });
}

#[test]
fn a_failing_job_fails_alone() {
    explore("writer: a failing job fails alone", || {
        let scene = Scene::new();
        run_all(vec![
            caller!(scene, {
                scene.write("good").unwrap();
                assert!(scene.is_committed("good"));
            }),
            caller!(scene, {
                let refused: Result<()> = scene.writer.call(Acknowledge::AfterCommit, |write| {
                    note(write, "refused")?;
                    Err(Error::not_found("as asked for").into())
                });
                assert_eq!(refused.unwrap_err().status(), 404);
            }),
            caller!(scene, {
                let panicked: Result<()> = scene.writer.call(Acknowledge::AfterRun, |write| {
                    note(write, "panicked")?;
                    // A panic that no hook reports.
                    std::panic::resume_unwind(Box::new("as asked for"))
                });
                assert_eq!(panicked.unwrap_err().status(), 500);
            }),
            caller!(
                scene,
                scene.call(Acknowledge::AfterRun, "deferred").unwrap()
            ),
        ]);
        scene.writer.close();
        assert!(scene.is_committed("good") && scene.is_committed("deferred"));
        assert!(!scene.is_committed("refused") && !scene.is_committed("panicked"));
    });
}

#[test]
fn a_failed_commit_is_told_to_all_who_wait_for_it() {
    explore("writer: a failed commit", || {
        let scene = Scene::new();
        run_all(vec![
            caller!(scene, {
                let broken = scene.writer.call(Acknowledge::AfterCommit, |write| {
                    write.execute("INSERT INTO links (note) VALUES (99)", params![])?;
                    Ok(())
                });
                broken.unwrap_err();
            }),
            caller!(scene, {
                let written = scene.write("neighbour").is_ok();
                assert_eq!(scene.is_committed("neighbour"), written);
            }),
            caller!(scene, {
                let written = scene.write("another").is_ok();
                assert_eq!(scene.is_committed("another"), written);
            }),
        ]);
        scene.writer.close();
        let orphan = open(&scene.directory)
            .query_row("SELECT 1 FROM links", [], |_| Ok(()))
            .optional();
        assert_eq!(orphan, Ok(None));
    });
}

#[test]
fn closing_answers_everybody() {
    explore("writer: closing answers everybody", || {
        let scene = Scene::new();
        run_all(vec![
            caller!(scene, {
                let written = scene.write("one").is_ok();
                assert_eq!(scene.is_committed("one"), written);
            }),
            caller!(scene, {
                // Whoever is answered before the commit is not let down by closing.
                let written = scene.call(Acknowledge::AfterRun, "deferred").is_ok();
                scene.writer.close();
                assert_eq!(scene.is_committed("deferred"), written);
            }),
            caller!(scene, {
                scene.writer.post(|write| note(write, "posted"));
                scene.writer.close();
                assert_eq!(scene.write("late").unwrap_err().status(), 503);
            }),
        ]);
        assert!(!scene.is_committed("late"));
    });
}
