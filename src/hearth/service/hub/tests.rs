use super::kept::{KEPT_BYTES, KEPT_EVENTS};
use super::*;
use base::error::Code;
use base::ids::{MessageId, UserId};
use protocol::event::EventKind;
use store::UserRole;

/// Ada is an admin, Bob a user and Gus a guest.
fn ada() -> Person {
    person(1, UserRole::Admin)
}

fn bob() -> Person {
    person(2, UserRole::User)
}

fn gus() -> Person {
    person(3, UserRole::Viewer)
}

fn person(id: i64, role: UserRole) -> Person {
    Person {
        id: UserId::from(id),
        role,
        household_only: false,
        words: Words::ENGLISH,
        is_program: true,
    }
}

fn readers(people: &[Person]) -> Readers {
    Readers::People(people.iter().map(|one| one.id).collect())
}

impl Hub {
    /// Publishes an event of the household.
    fn tell(&self, event: Event) {
        self.publish(event, Recipients::Readers(Readers::Household));
    }
}

fn outbox() -> Arc<Outbox> {
    Arc::new(Outbox::new(1 << 20, || ()))
}

/// A hub with numbers enough.
fn hub_after(last: u64) -> Hub {
    let hub = Hub::after(last);
    hub.reserved(u64::MAX);
    hub
}

fn event(turn: i64, kind: EventKind) -> Event {
    Event {
        turn_id: Some(TurnId::from(turn)),
        conversation_id: None,
        kind,
        translations: Vec::new(),
    }
}

fn delta(turn: i64) -> Event {
    event(turn, EventKind::Delta { text: "x".into() })
}

fn done(turn: i64) -> Event {
    event(
        turn,
        EventKind::Done {
            message_id: MessageId::from(1),
            in_reply_to: None,
            finish_reason: None,
        },
    )
}

fn numbers(outbox: &Outbox) -> Vec<u64> {
    let number = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        value["seq"].as_u64().unwrap()
    };
    outbox
        .take()
        .items
        .iter()
        .flat_map(|item| match item {
            Item::Event(text) => vec![number(text)],
            Item::Replay(texts) => texts.iter().map(|text| number(text)).collect(),
            Item::Response { .. } | Item::Direct(..) => vec![],
        })
        .collect()
}

#[test]
fn a_subscriber_gets_what_it_asked_for() {
    let hub = hub_after(0);
    let (all, some) = (outbox(), outbox());
    let only_done = EventSet::of(&["chat.done".to_owned()]).unwrap();
    hub.subscribe(ConnectionId(1), &all, EventSet::ALL, ada(), None, |_| ());
    hub.subscribe(ConnectionId(2), &some, only_done, bob(), None, |_| ());
    hub.tell(delta(1));
    hub.tell(done(1));
    assert_eq!((numbers(&all), numbers(&some)), (vec![1, 2], vec![2]));
}

#[test]
fn what_was_missed_is_replayed_without_the_pieces_of_text() {
    let hub = hub_after(100);
    for event in [done(1), delta(2), done(2)] {
        hub.tell(event);
    }
    let late = outbox();
    let mut answers = Vec::new();
    hub.subscribe(
        ConnectionId(1),
        &late,
        EventSet::ALL,
        bob(),
        Some(101),
        |one| answers.push(one),
    );
    assert_eq!(
        answers,
        [Subscribed {
            seq: 103,
            events_lost: false
        }]
    );
    assert_eq!(numbers(&late), [103]);
}

#[test]
fn a_gap_that_is_no_longer_kept_is_told() {
    let hub = hub_after(100);
    let is_lost = |since| {
        let (mut answers, id) = (Vec::new(), ConnectionId(1));
        let note = |one| answers.push(one);
        hub.subscribe(id, &outbox(), EventSet::ALL, bob(), Some(since), note);
        answers[0].events_lost
    };
    // Pieces of text are never kept, so nothing is lost with them.
    hub.tell(delta(1));
    assert_eq!([99, 100, 101, 102].map(is_lost), [true, false, false, true]);
    for _ in 0..KEPT_EVENTS + 2 {
        hub.tell(done(1));
    }
    let gaps = [100, 102, 103, 20_000].map(is_lost);
    assert_eq!(gaps, [true, true, false, true]);
}

#[test]
fn both_bounds_of_what_is_kept_hold_and_are_documented() {
    let hub = hub_after(0);
    let kept = || hub.lock().kept.size();
    let long = || "x".repeat(KEPT_BYTES / 4);
    let failed = EventKind::Failed {
        code: Code::ServerError,
        error: long().into(),
        key: None,
        cancelled: false,
        text: None,
    };
    let renamed = EventKind::ConversationRenamed { title: long() };
    for (kind, is_worded) in [(failed, true), (renamed.clone(), false)] {
        for _ in 0..5 {
            hub.tell(event(1, kind.clone()));
        }
        let (count, bytes, texts) = kept();
        assert_eq!(count, 3, "a fourth does not fit");
        assert_eq!(
            texts,
            if is_worded { 0 } else { bytes },
            "each is kept once"
        );
    }
    for _ in 0..5 {
        let translations = vec![(Words::of("de"), renamed.clone())];
        hub.tell(Event {
            translations,
            ..event(1, renamed.clone())
        });
    }
    assert_eq!(kept().0, 1, "a translation takes room, too");
    for _ in 0..KEPT_EVENTS + 1 {
        hub.tell(done(1));
    }
    let (count, bytes, _) = kept();
    assert!(
        count <= KEPT_EVENTS && bytes <= KEPT_BYTES,
        "{count} {bytes}"
    );
    let documented = crate::handbook::topic("protocol").unwrap().text(false);
    let documented = documented.split_whitespace().collect::<Vec<_>>().join(" ");
    let bounds = format!(
        "the last {},000 events, as far as they fit into {} MiB",
        KEPT_EVENTS / 1_000,
        KEPT_BYTES / (1024 * 1024)
    );
    assert!(documented.contains(&bounds), "{bounds}");
}

/// Notes what it is notified of.
struct Notes(Arc<Mutex<Vec<String>>>);

impl Watcher for Notes {
    fn wants_events(&self) -> bool {
        true
    }

    fn event(&mut self, kind: &EventKind) {
        self.0.lock().unwrap().push(kind.name().as_str().to_owned());
    }

    fn ended(self: Box<Self>, end: &TurnEnded) {
        self.0
            .lock()
            .unwrap()
            .push(format!("{:?}", end.result.is_ok()));
    }
}

#[test]
fn a_watcher_gets_its_turns_events_and_its_end() {
    let hub = hub_after(0);
    let notes = Arc::<Mutex<Vec<String>>>::default();
    hub.watch(TurnId::from(7), None, Box::new(Notes(Arc::clone(&notes))));
    assert!(is_streamed(&hub, 7) && !is_streamed(&hub, 8));
    for event in [delta(7), delta(8), done(7)] {
        hub.tell(event);
    }
    let end = TurnEnded::from(Err(base::error::Error::not_found("x")));
    assert!(hub.turn_ended(TurnId::from(7), &end));
    hub.tell(delta(7));
    assert_eq!(*notes.lock().unwrap(), ["chat.delta", "chat.done", "false"]);
}

#[test]
fn a_turn_is_streamed_until_its_end() {
    let hub = hub_after(0);
    let own = outbox();
    let (sender, _end) = base::sync::channel::bounded::<TurnEnded>(1);
    let watch = hub.watch(TurnId::from(7), None, Box::new(sender));
    assert!(!is_streamed(&hub, 7), "the end alone is wanted");
    hub.stream(watch, ConnectionId(1), &own, bob());
    assert!(is_streamed(&hub, 7) && !is_streamed(&hub, 8));
    for event in [delta(7), delta(8), done(7)] {
        hub.tell(event);
    }
    let end = TurnEnded::from(Err(base::error::Error::not_found("x")));
    hub.turn_ended(TurnId::from(7), &end);
    hub.tell(delta(7));
    assert_eq!(numbers(&own), [1, 3]);
    assert!(!is_streamed(&hub, 7));
}

#[test]
fn a_connection_that_leaves_keeps_its_watchers() {
    let hub = hub_after(0);
    let own = outbox();
    let (sender, end) = base::sync::channel::bounded::<TurnEnded>(1);
    let watch = hub.watch(TurnId::from(7), None, Box::new(sender));
    hub.stream(watch, ConnectionId(1), &own, bob());
    hub.leave(ConnectionId(1));
    hub.tell(delta(7));
    assert!(numbers(&own).is_empty());
    let ended = TurnEnded::from(Err(base::error::Error::not_found("x")));
    assert!(hub.turn_ended(TurnId::from(7), &ended) && end.try_recv().is_ok());
}

fn askers(asker: Option<UserId>, readers: Readers) -> Recipients {
    Recipients::Askers { asker, readers }
}

fn asker(asker: UserId, readers: Readers) -> Recipients {
    Recipients::Asker { asker, readers }
}

#[test]
fn each_event_reaches_its_recipients_now_and_later() {
    let household = || Readers::Household;
    let adas = || readers(&[ada()]);
    let bobs = || readers(&[bob()]);
    let with_guest = || readers(&[bob(), gus()]);
    for (recipients, expected) in [
        (Recipients::Readers(household()), [true, true, false]),
        (Recipients::Readers(adas()), [true, false, false]),
        (Recipients::Readers(bobs()), [false, true, false]),
        (Recipients::Readers(with_guest()), [false, true, true]),
        (Recipients::Readers(readers(&[])), [false, false, false]),
        (Recipients::ReadingAdmins(household()), [true, false, false]),
        (Recipients::ReadingAdmins(bobs()), [false, false, false]),
        (askers(Some(bob().id), bobs()), [true, true, false]),
        (askers(Some(bob().id), adas()), [true, false, false]),
        (askers(None, bobs()), [true, false, false]),
        (asker(bob().id, bobs()), [false, true, false]),
        (asker(bob().id, adas()), [false, false, false]),
        (asker(ada().id, adas()), [true, false, false]),
        (askers(Some(gus().id), with_guest()), [true, false, false]),
        (asker(gus().id, with_guest()), [false, false, false]),
        (Recipients::OtherAdmins(bob().id), [true, false, false]),
        (Recipients::OtherAdmins(ada().id), [false, false, false]),
        (Recipients::Admins, [true, false, false]),
        (
            Recipients::Former {
                before: household(),
                now: bobs(),
            },
            [true, false, false],
        ),
        (
            Recipients::Former {
                before: with_guest(),
                now: household(),
            },
            [false, false, true],
        ),
    ] {
        let hub = hub_after(0);
        let live = [ada(), bob(), gus()].map(|person| {
            let outbox = outbox();
            let id = ConnectionId(person.id.as_i64() as u64);
            hub.subscribe(id, &outbox, EventSet::ALL, person, None, |_| ());
            outbox
        });
        hub.publish(done(1), recipients.clone());
        let got = live.map(|outbox| !numbers(&outbox).is_empty());
        assert_eq!(got, expected, "{recipients:?}");
        let replayed = [ada(), bob(), gus()].map(|person| !replay(&hub, person).is_empty());
        assert_eq!(replayed, expected, "{recipients:?}");
    }
}

/// The numbers of what is replayed to somebody who comes back.
fn replay(hub: &Hub, person: Person) -> Vec<u64> {
    let (late, id) = (outbox(), ConnectionId(99));
    hub.subscribe(id, &late, EventSet::ALL, person, Some(0), |_| ());
    hub.leave(id);
    numbers(&late)
}

fn of_conversation(conversation: i64) -> Event {
    Event {
        conversation_id: Some(conversation.into()),
        ..done(1)
    }
}

fn renamed() -> EventKind {
    EventKind::ConversationRenamed { title: "x".into() }
}

#[test]
fn a_narrowed_token_hears_only_of_what_is_the_household_s() {
    let narrowed = Person {
        household_only: true,
        ..bob()
    };
    let hub = hub_after(0);
    for readers in [Readers::Household, readers(&[bob()]), readers(&[ada()])] {
        hub.publish(done(1), Recipients::Readers(readers));
    }
    // What he asks for may be about a conversation of his own.
    let bobs = readers(&[bob()]);
    hub.publish(done(1), askers(Some(bob().id), bobs));
    assert_eq!(replay(&hub, bob()), [1, 2, 4]);
    assert_eq!(replay(&hub, narrowed), [1]);
}

fn is_streamed(hub: &Hub, turn: i64) -> bool {
    let conversation = ConversationId::from(1);
    let state = hub.lock();
    state.is_streamed(TurnId::from(turn), conversation, &Readers::Household)
}

#[test]
fn no_number_is_given_out_before_it_is_reserved() {
    let hub = Hub::after(7);
    let all = outbox();
    hub.subscribe(ConnectionId(1), &all, EventSet::ALL, ada(), None, |_| ());
    let notes = Arc::<Mutex<Vec<String>>>::default();
    hub.watch(TurnId::from(1), None, Box::new(Notes(Arc::clone(&notes))));
    hub.tell(delta(1));
    hub.reserved(8);
    hub.tell(delta(1));
    hub.tell(delta(1));
    assert_eq!(numbers(&all), [8]);
    assert_eq!(notes.lock().unwrap().len(), 3, "a watcher needs no numbers");
}

#[cfg(feature = "shuttle")]
mod interleavings;
mod sharing;
