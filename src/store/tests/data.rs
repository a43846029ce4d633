//! Imports, retention, and backups.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::testing::*;
use base::clock::Timestamp;
use base::ids::{ConversationId, MessageId, UserId};

/// 2023-11-14T22:13:20Z.
const LONG_AGO: i64 = 1_700_000_000_000;

fn begin_import(store: &Store, source: &str, id: Option<ConversationId>) -> Option<Import> {
    let began = Timestamp::from_millis(LONG_AGO);
    let mut new = ExportedConversation::new("a title".to_owned(), began);
    new.id = id;
    let ownership = Ownership {
        owner: None,
        audience: Audience::Household,
        copy_for: None,
    };
    (store.begin_import(source, new, Vec::new(), ownership)).unwrap()
}

fn said(role: Role, content: &str, millis: i64) -> (ExportedMessage, Option<UserId>) {
    let at = Timestamp::from_millis(LONG_AGO + millis);
    (ExportedMessage::new(role, content.to_owned(), at), None)
}

fn take_in(
    store: &Store,
    source: &str,
    messages: Vec<(ExportedMessage, Option<UserId>)>,
) -> ConversationId {
    let mut importing = begin_import(store, source, None).unwrap();
    importing.add(messages).unwrap();
    let id = importing.id();
    importing.finish().unwrap();
    id
}

#[test]
fn the_model_is_shown_what_was_imported() {
    let store = TestStore::new();
    let id = take_in(
        &store,
        "x:1",
        vec![
            said(Role::Assistant, "welcome", 0),
            said(Role::User, "first", 1),
            said(Role::User, "second", 1),
            said(Role::Assistant, "answer", 1),
        ],
    );
    let past = past(&store, id, 100, 1_000_000);
    let shown: Vec<(&str, Option<&str>)> = past
        .turns
        .iter()
        .map(|turn| {
            let reply = turn.reply.as_ref().map(|reply| reply.content.as_str());
            (turn.message.content.as_str(), reply)
        })
        .collect();
    assert_eq!(shown, [("first", None), ("second", Some("answer"))]);
    let next = begin(&store, Target::Existing(id), "third");
    assert!(next.id > past.turns[1].id);
    let page = store.seen(&all()).messages(id, 10, None).unwrap();
    let texts: Vec<&str> = page
        .messages
        .iter()
        .map(|one| one.content.as_str())
        .collect();
    assert_eq!(texts, ["welcome", "first", "second", "answer", "third"]);
    assert!(page.messages.is_sorted_by_key(|message| message.id));
    assert_eq!(newest_with(&store, &all(), "answer", 10).len(), 1);
}

#[test]
fn an_import_happens_once_and_replaces_what_a_crash_left() {
    let store = TestStore::new();
    let mut broken_off = begin_import(&store, "x:1", None).unwrap();
    broken_off.add(vec![said(Role::User, "half", 0)]).unwrap();
    drop(broken_off);
    let id = take_in(&store, "x:1", vec![said(Role::User, "whole", 0)]);
    assert!(begin_import(&store, "x:1", None).is_none());
    assert!(begin_import(&store, "x:2", Some(id)).is_none());
    let page = store.seen(&all()).conversations(10, None, false).unwrap();
    assert_eq!(page.conversations.len(), 1);
    assert_eq!(page.conversations[0].message_count, 1);
    assert!(newest_with(&store, &all(), "half", 10).is_empty());
}

#[test]
fn ids_of_the_future_are_not_taken_over() {
    let store = TestStore::new();
    let far = ConversationId::from(i64::MAX);
    let mut importing = begin_import(&store, "x:1", Some(far)).unwrap();
    let mut message = said(Role::User, "hello", 10_000_000_000_000);
    message.0.id = Some(MessageId::from(i64::MAX));
    importing.add(vec![message]).unwrap();
    assert!(importing.id() < far);
    let id = importing.id();
    importing.finish().unwrap();
    let message = &store.seen(&all()).messages(id, 1, None).unwrap().messages[0];
    assert!(message.created_at <= Clock::system().now());
    let newer = conversation(&store, "said now");
    let page = store.seen(&all()).conversations(10, None, false).unwrap();
    assert_eq!(page.conversations[0].id, newer, "what is new stays on top");
}

#[test]
fn idle_conversations_go_unless_something_is_under_way() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let idle = conversation(&store, "old");
    let busy = begin(&store, Target::New, "under way").conversation_id;
    store
        .remember(fact("the bins go out on Monday", None))
        .unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(
        store.delete_idle_conversation(day).unwrap(),
        Deleted::Nothing
    );
    clock.advance(2 * day);
    let fresh = conversation(&store, "new");
    let old_but_just_come = take_in(&store, "x:1", vec![said(Role::User, "imported", 0)]);
    let gone = store.delete_idle_conversation(day).unwrap();
    assert_eq!(gone, Deleted::Conversation(idle, Readers::Household));
    assert_eq!(
        store.delete_idle_conversation(day).unwrap(),
        Deleted::Nothing
    );
    assert!(store.seen(&all()).conversation(idle).is_err());
    for kept in [busy, fresh, old_but_just_come] {
        assert!(store.seen(&all()).conversation(kept).is_ok());
    }
    assert!(newest_with(&store, &all(), "old", 10).is_empty());
    assert_eq!(store.seen(&all()).memories().unwrap().len(), 1);
}

#[test]
fn a_long_conversation_goes_in_parts() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    // Of many messages, and of few that are long.
    for (count, length) in [(2500, 1), (20, 100_000)] {
        let text = "word ".repeat(length);
        let messages = (0..count)
            .map(|number| said(Role::User, &text, number))
            .collect();
        let id = take_in(&store, "x:1", messages);
        clock.advance(Duration::from_secs(10));
        let mut parts = 0;
        let delete = || store.delete_idle_conversation(Duration::from_secs(5));
        let last = loop {
            match delete().unwrap() {
                Deleted::Part => parts += 1,
                last => break last,
            }
        };
        assert!(parts > 2, "{parts}");
        assert_eq!(last, Deleted::Conversation(id, Readers::Household));
        assert!(store.seen(&all()).conversation(id).is_err());
    }
}

#[test]
fn a_backup_can_be_stopped_and_leaves_nothing() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    // More than is copied in one step.
    conversation(&store, &"word ".repeat(400_000));
    let (database, target) = (dir.path().join("hearth.db"), dir.path().join("copy.db"));
    let order = || BackupRequest {
        database: &database,
        target: &target,
        overwrite: false,
        files: Vec::new(),
        encryption: None,
    };
    let looks = std::sync::Arc::new(AtomicU64::new(0));
    let counting = std::sync::Arc::clone(&looks);
    let watch: ProgressWatcher = std::sync::Arc::new(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        false
    });
    let stopped = back_up(order(), &watch);
    assert!(matches!(stopped, Err(BackupError::Stopped)), "{stopped:?}");
    assert_eq!(looks.load(Ordering::SeqCst), 1);
    assert!(!target.exists() && !dir.path().join("copy.db.partial").exists());
    let made = back_up(order(), &unwatched()).unwrap();
    assert_eq!((made.conversations, made.messages), (1, 2));
    assert!(matches!(
        back_up(order(), &unwatched()),
        Err(BackupError::Exists(_))
    ));
    assert_eq!(
        check_integrity(&target, &unwatched()).unwrap(),
        Some(Vec::new())
    );
}

#[test]
fn damage_is_found_after_a_crash() {
    let dir = TemporaryDirectory::new();
    let store = open(&dir);
    for number in 0..50 {
        conversation(&store, &format!("message {number}"));
    }
    store.close();
    let path = dir.path().join("hearth.db");
    assert!(!check_after_crash(&path).unwrap(), "it ended well");
    std::fs::write(dir.path().join("hearth.db-wal"), "a crash").unwrap();
    assert!(check_after_crash(&path).unwrap());
    assert!(!check_after_crash(&dir.path().join("missing.db")).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    // One page in the middle.
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let error = check_after_crash(&path).unwrap_err();
    assert!(error.is_damage(), "{error}");
    assert!(error.to_string().contains("is damaged ("), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert!(
        !check_integrity(&path, &unwatched())
            .unwrap()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn half_a_long_conversation_is_deleted_in_parts() {
    let store = TestStore::new();
    let import_half = || {
        let mut importing = begin_import(&store, "x:1", None).unwrap();
        for batch in 0i64..100 {
            let message = |number| said(Role::User, "a few words", batch * 200 + number);
            importing.add((0i64..200).map(message).collect()).unwrap();
        }
        importing
    };
    // Whoever says something meanwhile waits for a part of it at most.
    let delete = |deleted: &mut (dyn FnMut() + Send)| {
        let begun = Instant::now();
        thread::scope(|scope| {
            let deleting = scope.spawn(deleted);
            let mut longest = Duration::ZERO;
            while !deleting.is_finished() {
                let asked = Instant::now();
                begin(&store, Target::New, "hello");
                longest = longest.max(asked.elapsed());
            }
            deleting.join().unwrap();
            let whole = begun.elapsed();
            assert!(longest < whole / 5, "{longest:?} of {whole:?}");
        });
    };
    let mut cut = Some(import_half());
    delete(&mut || drop(cut.take()));
    let count = "SELECT count(*) FROM messages WHERE content = 'a few words'";
    assert_eq!(number(&store, count), 0);
    // What a crash has left goes when it is imported again.
    std::mem::forget(import_half());
    let mut again = None;
    delete(&mut || again = begin_import(&store, "x:1", None));
    assert_eq!(number(&store, count), 0);
}
