//! Callbacks: the order of each conversation, retries and their end.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::testing::*;
use base::error::Code;
use base::ids::DeliveryId;

/// A turn of the named conversation with a callback.
fn deliver(store: &Store, name: &str, body: &str) -> Delivery {
    let turn = begin(store, named(name), "ring");
    let callback = Some(callback(body));
    let finished = store.finish_turn(
        turn.id,
        done("yes?"),
        Usage::default(),
        "m",
        callback,
        Vec::new(),
    );
    finished.unwrap().into_inner().delivery.unwrap()
}

/// Runs `ask` while a callback is stored and not committed yet, then lets that
/// commit succeed, or fail.
fn while_uncommitted<T: Send>(
    store: &Store,
    succeeds: bool,
    ask: impl FnOnce(DeliveryId) -> T + Send,
) -> (DeliveryId, T) {
    let turn = begin(store, named("a"), "ring");
    let (stored, new) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let queued = store.inner.writer.queue();
    thread::scope(|scope| {
        let storing = scope.spawn(move || {
            store.write(move |write| {
                let delivery = deliveries::insert(
                    write,
                    turn.id,
                    turn.conversation_id,
                    callback("{}"),
                    None,
                    None,
                    &[],
                )?;
                stored.send(delivery.id).unwrap();
                held.recv_timeout(MAX_WAIT).unwrap();
                Ok(())
            })
        });
        let id = new.recv_timeout(MAX_WAIT).unwrap();
        let asking = scope.spawn(move || ask(id));
        eventually("the question", || asking.is_finished() || queued.len() == 1);
        if !succeeds {
            let before = queued.len();
            scope.spawn(|| {
                store.write(|write| {
                    write.connection.execute_batch("ROLLBACK")?;
                    Ok(())
                })
            });
            eventually("the end of the transaction", || queued.len() > before);
        }
        release.send(()).unwrap();
        assert_eq!(storing.join().unwrap().is_ok(), succeeds);
        (id, asking.join().unwrap())
    })
}

fn states(store: &Store, ids: &[DeliveryId]) -> Vec<DeliveryState> {
    // Attempts may have a deferred commit.
    store.flush().unwrap();
    ids.iter()
        .map(|id| store.seen(&all()).delivery(*id).unwrap().state)
        .collect()
}

fn due(store: &Store, later: Duration) -> Vec<DeliveryId> {
    let now = store.inner.clock.now().plus(later);
    callbacks(&store.due_outgoing(now, 100).unwrap())
}

fn callbacks(due: &[(Outgoing, Destination)]) -> Vec<DeliveryId> {
    let id = |(one, _): &(Outgoing, Destination)| match one {
        Outgoing::Callback(id) => *id,
        Outgoing::Notification(id) => panic!("{id}"),
    };
    due.iter().map(id).collect()
}

#[test]
fn an_account_with_many_due_hides_no_other() {
    let store = TestStore::new();
    for number in 0..5 {
        deliver(&store, &number.to_string(), "{}");
    }
    let turn = begin(&store, named("last"), "ring");
    let to_gate = NewDelivery {
        account: "gate".to_owned(),
        ..callback("{}")
    };
    let (usage, callback) = (Usage::default(), Some(to_gate));
    let last = store.finish_turn(turn.id, done("yes?"), usage, "m", callback, Vec::new());
    let last = last.unwrap().into_inner().delivery.unwrap();
    let now = store.inner.clock.now();
    let due = store.due_outgoing(now, 3).unwrap();
    assert_eq!(due.len(), 3 + 1);
    let (outgoing, to) = &due[3];
    assert_eq!(*outgoing, Outgoing::Callback(last.id));
    assert!(matches!(to, Destination::Account(name) if name == "gate"));
}

#[test]
fn only_the_oldest_of_a_conversation_is_pending() {
    use DeliveryState::*;
    let store = TestStore::new();
    let a1 = deliver(&store, "a", "1").id;
    let b1 = deliver(&store, "b", "1").id;
    let a2 = deliver(&store, "a", "2").id;
    let a3 = deliver(&store, "a", "3").id;
    let every = [a1, a2, a3, b1];
    assert_eq!(states(&store, &every), [Pending, Held, Held, Pending]);
    assert_eq!(due(&store, Duration::ZERO), [a1, b1]);

    let now = store.inner.clock.now();
    let retry = Attempt::Retry {
        error: "refused".into(),
        next_at: now.plus(Duration::from_secs(30)),
    };
    let retried = store.record_attempt(a1, retry).unwrap().uncommitted();
    assert_eq!(retried.attempts, 1);
    assert_eq!(retried.last_error, Some("refused".into()));
    assert_eq!(states(&store, &every), [Pending, Held, Held, Pending]);
    assert_eq!(due(&store, Duration::ZERO), [b1]);
    assert_eq!(due(&store, Duration::from_secs(31)), [b1, a1]);

    store.record_attempt(a1, Attempt::Delivered).unwrap();
    assert_eq!(
        due(&store, Duration::ZERO),
        [b1, a2],
        "at once, although its success is not committed yet"
    );
    assert_eq!(states(&store, &every), [Delivered, Pending, Held, Pending]);

    let dead = Attempt::Dead {
        error: "gone".into(),
    };
    store.record_attempt(a2, dead).unwrap();
    assert_eq!(states(&store, &every), [Delivered, Dead, Pending, Pending]);
    let counts = store.seen(&all()).counts().unwrap().deliveries;
    assert_eq!(counts, [(Dead, 1), (Pending, 2)]);
    let listed = store.seen(&all()).deliveries(Some(Dead), 10).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, a2);
    assert_eq!(store.seen(&all()).deliveries(None, 3).unwrap().len(), 3);

    // A retry goes before the younger one that became pending meanwhile.
    let again = store.retry_delivery(&all(), a2).unwrap();
    assert_eq!((again.state, again.attempts), (Pending, 0));
    assert_eq!(states(&store, &every), [Delivered, Pending, Held, Pending]);
    // The younger one was being sent, and arrives.
    store.record_attempt(a3, Attempt::Delivered).unwrap();
    assert_eq!(
        states(&store, &every),
        [Delivered, Pending, Delivered, Pending]
    );
    store.record_attempt(a2, Attempt::Delivered).unwrap();
    assert_eq!(due(&store, Duration::ZERO), [b1]);
}

#[test]
fn a_callback_is_not_handed_out_before_it_is_on_disk() {
    let store = TestStore::new();
    let later = store.inner.clock.now().plus(Duration::from_secs(60));
    let to_send = |id| store.callback_to_send(id, later);
    let due = || Ok(callbacks(&store.due_outgoing(later, 100)?));

    let (_, lost) = while_uncommitted(&store, false, to_send);
    assert_eq!(lost.unwrap_err().code(), Code::NotFound);
    let (_, lost): (_, Result<_>) = while_uncommitted(&store, false, |_| due());
    assert_eq!(lost.unwrap_err().status(), 503);
    eventually("the writer's own probe", || store.is_writable());
    assert_eq!(due(), Ok(vec![]), "nothing was stored");

    let (first, early) = while_uncommitted(&store, true, to_send);
    assert_eq!(early.unwrap_err().code(), Code::NotFound);
    assert_eq!(to_send(first).unwrap().unwrap().delivery.id, first);
    store.record_attempt(first, Attempt::Delivered).unwrap();
    let (second, found) = while_uncommitted(&store, true, |_| due());
    assert_eq!(found, Ok(vec![second]), "with its commit");
}

#[test]
fn a_success_that_is_not_on_disk_yet_is_not_sent_again() {
    let store = TestStore::new();
    let id = deliver(&store, "a", "{}").id;
    let now = store.inner.clock.now();
    let (recorded, is_recorded) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let queued = store.inner.writer.queue();
    thread::scope(|scope| {
        scope.spawn(|| {
            store.deferred_write(move |write| {
                deliveries::record(write, id, Attempt::Delivered)?;
                recorded.send(()).unwrap();
                held.recv_timeout(MAX_WAIT).unwrap();
                Ok(())
            })
        });
        is_recorded.recv_timeout(MAX_WAIT).unwrap();
        assert_eq!(
            store.seen(&all()).delivery(id).unwrap().state,
            DeliveryState::Pending
        );
        let asking = scope.spawn(|| store.callback_to_send(id, now));
        let listing = scope.spawn(|| store.due_outgoing(now, 100));
        eventually("both questions", || queued.len() == 2);
        release.send(()).unwrap();
        assert!(asking.join().unwrap().unwrap().is_none());
        assert!(listing.join().unwrap().unwrap().is_empty());
    });
}

#[test]
fn a_delivered_callback_stays_delivered() {
    let store = TestStore::new();
    let id = deliver(&store, "a", "{}").id;
    let delivered = store.record_attempt(id, Attempt::Delivered).unwrap();
    let delivered = delivered.uncommitted();
    assert_eq!(delivered.state, DeliveryState::Delivered);
    let dead = Attempt::Dead {
        error: "late".into(),
    };
    let still = store.record_attempt(id, dead).unwrap().uncommitted();
    assert_eq!((still.state, still.attempts), (DeliveryState::Delivered, 1));
    let error = store.retry_delivery(&all(), id).unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);
    let unknown = store
        .retry_delivery(&all(), DeliveryId::from(4))
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[test]
fn a_waiting_callback_can_be_hurried() {
    let store = TestStore::new();
    let id = deliver(&store, "a", "{}").id;
    let next_at = store.inner.clock.now().plus(Duration::from_secs(3600));
    let retry = Attempt::Retry {
        error: "refused".into(),
        next_at,
    };
    store.record_attempt(id, retry).unwrap();
    assert_eq!(store.next_due().unwrap().uncommitted(), Some(next_at));
    store.retry_delivery(&all(), id).unwrap();
    assert!(store.next_due().unwrap().uncommitted().unwrap() < next_at);
    assert_eq!(due(&store, Duration::ZERO), [id]);
    store.record_attempt(id, Attempt::Delivered).unwrap();
    assert_eq!(store.next_due().unwrap().uncommitted(), None);
}

#[test]
fn what_is_due_is_found_by_ids_and_a_body_is_read_only_to_be_sent() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let mut statements = Vec::new();
    let mut newest = None;
    for number in 0..20 {
        newest = Some(deliver(&store, &number.to_string(), "{}").id);
        let before = store.statements().all;
        let due = store.due_outgoing(clock.now(), 256).unwrap();
        statements.push(store.statements().all - before);
        assert_eq!(due.len(), number + 1);
    }
    let most = statements.into_iter().max();
    assert!(most < Some(16), "{most:?} statements for at most 20");
    // A body that nobody can read hinders only the sending.
    let spoilt = "UPDATE deliveries SET body = CAST(x'ff' AS TEXT)";
    store
        .write(|write| write.execute(spoilt, params![]))
        .unwrap();
    let (id, now) = (newest.unwrap(), clock.now());
    assert!(store.callback_to_send(id, now).is_err());
    assert_eq!(store.due_outgoing(now, 256).unwrap().len(), 20);
    let again = Attempt::Retry {
        error: "no".into(),
        next_at: now,
    };
    store.record_attempt(id, again).unwrap();
    store.retry_delivery(&all(), id).unwrap();
    assert!(store.seen(&all()).delivery(id).is_ok());
    assert_eq!(store.seen(&all()).deliveries(None, 99).unwrap().len(), 20);
    store.record_attempt(id, Attempt::Delivered).unwrap();
}

#[test]
fn what_has_served_its_time_is_purged() {
    let dir = TemporaryDirectory::new();
    let clock = Clock::system();
    let store = open_with(&dir, &clock);
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    let delivered = deliver(&store, "a", "{}").id;
    store.record_attempt(delivered, Attempt::Delivered).unwrap();
    let dead = deliver(&store, "b", "{}").id;
    let end = Attempt::Dead {
        error: "gone".into(),
    };
    store.record_attempt(dead, end).unwrap();
    let waiting = deliver(&store, "c", "{}").id;
    let user = store.add_user("ann", UserRole::User, "hash").unwrap();
    let token = store
        .add_token(NewToken {
            expires_at: Some(clock.now().plus(days(10))),
            ..NewToken::session(user.id, UserRole::User, [1; 32])
        })
        .unwrap();
    store.begin_turn(keyed("a", "b", 0, Target::New)).unwrap();
    let keys = || {
        store
            .read(|connection| {
                connection.row("SELECT count(*) FROM idempotency", params![], |row| {
                    Ok(row.get::<_, i64>(0)?)
                })
            })
            .unwrap()
    };

    store.purge().unwrap();
    assert_eq!(keys(), Some(1));
    clock.advance(days(2));
    store.purge().unwrap();
    assert_eq!(keys(), Some(0));
    assert!(store.token_role(token.id).unwrap().is_some());
    clock.advance(days(27));
    store.purge().unwrap();
    assert!(store.tokens(true).unwrap().is_empty());
    assert!(
        store.seen(&all()).delivery(delivered).is_ok() && store.seen(&all()).delivery(dead).is_ok()
    );
    clock.advance(days(2));
    store.purge().unwrap();
    for (id, kept) in [(delivered, false), (dead, false), (waiting, true)] {
        assert_eq!(store.seen(&all()).delivery(id).is_ok(), kept, "{id}");
    }
}
