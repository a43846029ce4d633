//! Group commit: how jobs in one transaction affect each other.

use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};

use rusqlite::params;

use crate::testing::*;
use base::error::Code;

/// Holds the writer while `submit` queues jobs, so that they share one
/// transaction. Each job is submitted by its own thread, after the one before it is
/// in the queue.
fn together<'a, T: Send>(store: &Store, jobs: Vec<Box<dyn FnOnce() -> T + Send + 'a>>) -> Vec<T> {
    let (started, running) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let queued = store.inner.writer.queue();
    thread::scope(|scope| {
        let holder = scope.spawn(move || {
            store.write(move |_| {
                started.send(()).unwrap();
                held.recv_timeout(MAX_WAIT).unwrap();
                Ok(())
            })
        });
        running.recv_timeout(MAX_WAIT).unwrap();
        let mut callers: Vec<ScopedJoinHandle<'_, T>> = Vec::new();
        for job in jobs {
            callers.push(scope.spawn(job));
            let place = callers.len();
            eventually("a place in the queue", || queued.len() == place);
        }
        drop(queued);
        release.send(()).unwrap();
        // It succeeds or fails with the others.
        let _ = holder.join().unwrap();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .collect()
    })
}

/// Lets the database grow by at most `more` pages; none removes the limit.
fn limit_pages(store: &Store, more: Option<i64>) {
    store
        .deferred_write(move |write| {
            let count: i64 = write
                .connection
                .pragma_query_value(None, "page_count", |row| row.get(0))?;
            let limit = more.map_or(i64::from(u32::MAX - 1), |more| count + more);
            let set = format!("PRAGMA max_page_count = {limit}");
            write.connection.query_row(&set, [], |_| Ok(()))?;
            Ok(())
        })
        .unwrap();
}

fn set(write: &Write<'_>, key: &str) -> failure::Outcome<()> {
    write.execute("INSERT INTO meta (key, value) VALUES (?, 1)", params![key])?;
    Ok(())
}

#[test]
fn many_threads_lose_nothing_and_share_commits() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    let (threads, each) = (16, 25);
    let before = commits(&dir);
    thread::scope(|scope| {
        for thread in 0..threads {
            let store = &store;
            scope.spawn(move || {
                for number in 0..each {
                    let text = format!("message {number} of {thread}");
                    let turn = begin(store, Target::New, &text);
                    assert_eq!(
                        store.seen(&all()).message(turn.message_id).unwrap().content,
                        text
                    );
                }
            });
        }
    });
    assert_eq!(
        store.seen(&all()).counts().unwrap().conversations,
        threads * each
    );
    let made = commits(&dir) - before;
    assert!(made < (threads * each) as usize, "{made} commits");
}

#[test]
fn a_failing_job_does_not_fail_its_neighbours() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    let work: Vec<Box<dyn FnOnce() -> Result<()> + Send>> = vec![
        Box::new(|| store.write(|write| set(write, "first"))),
        Box::new(|| {
            store.write(|write| {
                set(write, "refused")?;
                Err(Error::not_found("nothing here").into())
            })
        }),
        Box::new(|| {
            store.write(|write| {
                set(write, "panicked")?;
                panic!("a bug")
            })
        }),
        Box::new(|| {
            store.write(|write| {
                set(write, "broken")?;
                set(write, "first")
            })
        }),
        Box::new(|| {
            let set = store.deferred_write(|write| set(write, "deferred"));
            set.map(Provisional::uncommitted)
        }),
        Box::new(|| store.write(|write| set(write, "last"))),
    ];
    let before = commits(&dir);
    let results = together(&store, work);
    assert_eq!(commits(&dir) - before, 1);
    let codes: Vec<Option<Code>> = results
        .iter()
        .map(|result| result.as_ref().err().map(Error::code))
        .collect();
    assert_eq!(
        codes,
        [
            None,
            Some(Code::NotFound),
            Some(Code::ServerError),
            Some(Code::ServerError),
            None,
            None
        ]
    );
    for (key, kept) in [
        ("first", true),
        ("refused", false),
        ("panicked", false),
        ("broken", false),
        ("deferred", true),
        ("last", true),
    ] {
        assert_eq!(meta_exists(&store, key), kept, "{key}");
    }
    assert!(store.is_writable(), "no disk was at fault");
}

fn meta_exists(store: &Store, key: &str) -> bool {
    store
        .read(|connection| {
            connection.row("SELECT 1 FROM meta WHERE key = ?", params![key], |_| Ok(()))
        })
        .unwrap()
        .is_some()
}

#[test]
fn neighbours_of_an_undone_transaction_get_an_error() {
    let store = TestStore::new();
    let work: Vec<Box<dyn FnOnce() -> Result<()> + Send>> = vec![
        Box::new(|| store.write(|write| set(write, "before"))),
        // SQLite does this by itself after some disk errors.
        Box::new(|| {
            store.write(|write| {
                write.connection.execute_batch("ROLLBACK")?;
                Ok(())
            })
        }),
        Box::new(|| store.write(|write| set(write, "after"))),
    ];
    let results = together(&store, work);
    let statuses: Vec<Option<u16>> = results
        .iter()
        .map(|result| result.as_ref().err().map(Error::status))
        .collect();
    assert_eq!(statuses, [Some(503), Some(503), None]);
    assert!(!meta_exists(&store, "before"));
    assert!(meta_exists(&store, "after"));
}

#[test]
fn a_failed_commit_fails_all_who_wait_for_it_and_heals() {
    let store = TestStore::new();
    let work: Vec<Box<dyn FnOnce() -> Result<()> + Send>> = vec![
        Box::new(|| store.write(|write| set(write, "neighbour"))),
        Box::new(|| {
            store.write(|write| {
                // A violated constraint that SQLite detects only at COMMIT.
                write
                    .connection
                    .execute_batch("PRAGMA defer_foreign_keys = ON")?;
                write.execute(
                    "INSERT INTO steps (turn_id, body) VALUES (?, ?)",
                    params![1, ""],
                )?;
                Ok(())
            })
        }),
    ];
    for result in together(&store, work) {
        let error = result.unwrap_err();
        assert!(
            error
                .message()
                .starts_with("the database could not be written"),
            "{error}"
        );
    }
    assert!(!store.is_writable());
    assert!(!meta_exists(&store, "neighbour"));
    eventually("the writer's own probe", || store.is_writable());
    store.set_meta("neighbour", "again").unwrap();
}

#[test]
fn a_full_disk_is_an_error_that_heals_by_itself() {
    let store = TestStore::new();
    let turn = begin(&store, Target::New, "small");
    limit_pages(&store, Some(8));
    let error = store
        .begin_turn(message(
            Target::Existing(turn.conversation_id),
            &"large ".repeat(40_000),
        ))
        .unwrap_err();
    assert_eq!(error.status(), 503);
    assert!(
        error
            .message()
            .starts_with("the database could not be written: the disk is full (reference "),
        "{error}"
    );
    assert!(!store.is_writable());
    assert_eq!(
        store
            .seen(&all())
            .conversation(turn.conversation_id)
            .unwrap()
            .message_count,
        1,
        "reads go on and see nothing half done"
    );
    limit_pages(&store, None);
    eventually("the writer's own probe", || store.is_writable());
    finish(&store, &turn, "there is room again");
    assert!(store.meta("probe").unwrap().uncommitted().is_none());
}

#[test]
fn a_small_write_goes_on_beside_a_large_one_that_does_not_fit() {
    let store = TestStore::new();
    limit_pages(&store, Some(20));
    let work: Vec<Box<dyn FnOnce() -> Result<Durable<Begun>> + Send>> = vec![
        Box::new(|| store.begin_turn(message(Target::New, "small"))),
        Box::new(|| store.begin_turn(message(Target::New, &"large ".repeat(40_000)))),
        Box::new(|| store.begin_turn(message(Target::New, "small too"))),
    ];
    let kept: Vec<bool> = together(&store, work).iter().map(Result::is_ok).collect();
    assert_eq!(kept, [true, false, true]);
    assert_eq!(store.seen(&all()).counts().unwrap().conversations, 2);
}

#[test]
fn an_instant_turn_costs_one_commit() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    // A busy machine may need more than 5 ms somewhere, but not every time.
    eventually("a turn in one commit", || {
        let before = commits(&dir);
        let begun = store.begin_turn_deferred(message(Target::New, "hello"));
        let begun = begun.unwrap().uncommitted();
        let turn = begun.turn();
        store.mark_running(turn.id, turn.created_at);
        let finished = finish(&store, turn, "hi");
        assert_eq!(finished.turn.started_at, Some(turn.created_at));
        assert_eq!(
            store.seen(&all()).turn(turn.id).unwrap().state,
            TurnState::Done
        );
        commits(&dir) - before == 1
    });
}

#[test]
fn a_deferred_commit_happens_by_itself() {
    let store = TestStore::new();
    let begun = store.begin_turn_deferred(message(Target::New, "hello"));
    let begun = begun.unwrap().uncommitted();
    let turn = begun.turn();
    eventually("the commit", || store.seen(&all()).turn(turn.id).is_ok());
    store.mark_running(turn.id, turn.created_at);
    store.flush().unwrap();
    assert_eq!(
        store.seen(&all()).turn(turn.id).unwrap().state,
        TurnState::Running
    );
}

#[test]
fn closing_keeps_what_is_queued_and_refuses_what_comes_later() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    let turn = begin(&store, Target::New, "hello");
    store.mark_running(turn.id, turn.created_at);
    store.clone().close();
    for error in [
        store.snapshot(&all()).map(drop).unwrap_err(),
        store.flush().unwrap_err(),
        store.begin_turn(message(Target::New, "late")).unwrap_err(),
    ] {
        assert_eq!(error.status(), 503);
        assert!(error.message().contains("closed"), "{error}");
    }
    assert!(
        !dir.path().join("hearth.db-wal").exists(),
        "the file alone is the whole database"
    );
    assert_eq!(
        open(&dir).seen(&all()).turn(turn.id).unwrap().state,
        TurnState::Running
    );
}

#[test]
fn the_last_clone_may_be_dropped_by_the_writer_itself() {
    let store = TestStore::new();
    let (done, finished) = mpsc::channel();
    let clone = store.clone();
    store.inner.writer.post(move |_| {
        let store = clone;
        // Once the test's own clone is gone, this is the last one.
        eventually("the other clone to go", || {
            Arc::strong_count(&store.inner) == 1
        });
        drop(store);
        done.send(()).unwrap();
        Ok(())
    });
    drop(store);
    finished
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap();
}

#[test]
fn reopening_keeps_everything_and_ids_rise() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let path = dir.path().join("hearth.db");
    let store = Store::open(&path, clock.clone()).unwrap();
    clock.advance(std::time::Duration::from_secs(3600));
    let turn = exchange(&store, Target::New, "hello", "hi");
    let token_owner = store.add_user("Ann", UserRole::Admin, "hash").unwrap();
    drop(store);

    // The clock is an hour behind the ids now.
    let store = open(&dir);
    assert!(token_owner.id.as_i64() > turn.id.as_i64());
    let later = begin(&store, Target::Existing(turn.conversation_id), "again");
    assert!(later.conversation_id == turn.conversation_id);
    assert!(later.id.as_i64() > token_owner.id.as_i64());
    assert!(later.message_id > turn.reply_id.unwrap());
    let page = store
        .seen(&all())
        .messages(turn.conversation_id, 10, None)
        .unwrap();
    let texts: Vec<&str> = page.messages.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(texts, ["hello", "hi", "again"]);
    assert_eq!(
        store.unfinished_turns().unwrap().uncommitted()[0].id,
        later.id
    );
}

#[test]
fn the_log_is_copied_into_the_database_as_it_grows() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    let size = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len();
    let small = size("hearth.db");
    for _ in 0..100 {
        begin(&store, Target::New, &"words ".repeat(10_000));
    }
    store.flush().unwrap();
    assert!(size("hearth.db") > small + 4_000_000);
    assert!(size("hearth.db-wal") < 12_000_000, "the log starts over");
}

#[test]
fn another_process_is_noticed_and_our_own_writes_are_not() {
    let dir = TemporaryDirectory::new();
    let (store, other) = (open(&dir), open(&dir));
    let before = store.version().unwrap();
    store.set_meta("a", "1").unwrap();
    let own = store.version().unwrap();
    assert_eq!((own.own, own.others), (before.own + 1, before.others));
    other.set_meta("b", "2").unwrap();
    let both = store.version().unwrap();
    assert_eq!((both.own, both.others), (own.own, own.others + 1));
    assert_eq!(store.version().unwrap(), both);
    assert_eq!(store.meta("b").unwrap().uncommitted().as_deref(), Some("2"));
}

/// A turn reads its past from what is committed: it waits for a deletion in the same
/// transaction.
#[test]
fn a_turn_is_not_shown_what_is_deleted_as_it_begins() {
    let store = TestStore::new();
    let old = exchange(&store, Target::New, "the secret", "told");
    let conversation = old.conversation_id;
    let shown: Vec<usize> = together(
        &store,
        vec![
            Box::new(|| {
                store.delete_message(&all(), old.message_id).unwrap();
                0
            }),
            Box::new(|| {
                let new = message(Target::Existing(conversation), "what do you know?");
                store.begin_turn_deferred(new).unwrap();
                let past = past(&store, conversation, 10, 10_000);
                past.turns.iter().filter(|one| one.id == old.id).count()
            }),
        ],
    );
    assert_eq!(shown, [0, 0]);
}
