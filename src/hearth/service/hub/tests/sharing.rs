//! What sharing and deleting a conversation does to its events.

use super::*;

#[test]
fn a_share_decides_about_earlier_and_later_events() {
    let hub = hub_after(0);
    let (bobs, adas) = (outbox(), outbox());
    hub.subscribe(ConnectionId(1), &bobs, EventSet::ALL, bob(), None, |_| ());
    hub.subscribe(ConnectionId(2), &adas, EventSet::ALL, ada(), None, |_| ());
    let (private, both) = (readers(&[bob()]), readers(&[bob(), ada()]));
    let publish = |conversation| {
        // With the readers that its turn began with.
        let recipients = Recipients::Readers(private.clone());
        hub.publish(of_conversation(conversation), recipients);
    };
    let share = |before: &Readers, now: &Readers| {
        let (id, busy) = (ConversationId::from(7), HashSet::new());
        hub.share(id, before.clone(), now.clone(), &busy, renamed());
    };
    publish(7);
    publish(8);
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![1, 2], vec![]));
    // 3 is for those who cannot see it any longer: nobody.
    share(&private, &both);
    publish(7);
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![4, 5], vec![4, 5]));
    assert_eq!(replay(&hub, ada()), [1, 4, 5]);
    share(&both, &private);
    publish(7);
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![7, 8], vec![6]));
    assert_eq!(replay(&hub, ada()), [6], "that it is gone");
    assert_eq!(replay(&hub, bob()), [1, 2, 4, 5, 7, 8]);
    // Gone for everybody.
    hub.delete(7.into(), private.clone(), &HashSet::new());
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![9], vec![]));
    assert_eq!(replay(&hub, bob()), [2, 9]);
    assert_eq!(replay(&hub, ada()), [6]);
    // What still ran then is announced once, and never replayed. A deletion is final.
    publish(7);
    share(&private, &both);
    publish(7);
    assert_eq!(replay(&hub, bob())[..2], [2, 9]);
    assert!(
        hub.lock()
            .kept
            .after_seq(9, ada(), |kept| kept.name != EventName::ConversationDeleted)
            .is_empty()
    );
    publish(8);
    assert_eq!(replay(&hub, bob()).last(), Some(&hub.seq()));
}

#[test]
fn what_still_runs_after_a_deletion_is_for_those_who_saw_the_conversation_last() {
    let hub = hub_after(0);
    let (bobs, adas) = (outbox(), outbox());
    hub.subscribe(ConnectionId(1), &bobs, EventSet::ALL, bob(), None, |_| ());
    hub.subscribe(ConnectionId(2), &adas, EventSet::ALL, ada(), None, |_| ());
    let (private, both) = (readers(&[bob()]), readers(&[bob(), ada()]));
    let busy = HashSet::new();
    let publish = |conversation| {
        // With the readers that its turn began with.
        let recipients = Recipients::Readers(both.clone());
        hub.publish(of_conversation(conversation), recipients);
    };
    hub.share(7.into(), both.clone(), private.clone(), &busy, renamed());
    hub.delete(7.into(), private.clone(), &busy);
    publish(7);
    assert_eq!(numbers(&adas), [1], "that it is gone");
    // Of one that is not known to have been shared, too.
    hub.delete(8.into(), private.clone(), &busy);
    publish(8);
    assert!(numbers(&adas).is_empty());
    assert_eq!(numbers(&bobs), [2, 3, 4, 5, 6]);
}

#[test]
fn what_a_tool_found_is_for_those_who_saw_the_conversation_then() {
    let hub = hub_after(0);
    let (bobs, adas) = (outbox(), outbox());
    hub.subscribe(ConnectionId(1), &bobs, EventSet::ALL, bob(), None, |_| ());
    hub.subscribe(ConnectionId(2), &adas, EventSet::ALL, ada(), None, |_| ());
    let (private, both) = (readers(&[bob()]), readers(&[bob(), ada()]));
    let found = || {
        let (then, now) = (private.clone(), private.clone());
        hub.publish(of_conversation(7), Recipients::Finders { then, now });
    };
    let share = |before: &Readers, now: &Readers| {
        let (id, busy) = (ConversationId::from(7), HashSet::new());
        hub.share(id, before.clone(), now.clone(), &busy, renamed());
    };
    found();
    // 2 is for those who cannot see it any longer: nobody.
    share(&private, &both);
    found();
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![1, 3, 4], vec![3]));
    assert_eq!(replay(&hub, ada()), [3]);
    share(&both, &readers(&[ada()]));
    found();
    assert_eq!((numbers(&bobs), numbers(&adas)), (vec![5], vec![6]));
    assert_eq!(replay(&hub, bob()), [5], "that it is gone");
}

#[test]
fn a_stream_ends_for_whoever_cannot_see_it_any_longer() {
    let hub = hub_after(0);
    let own = outbox();
    let (sender, _end) = base::sync::channel::bounded::<TurnEnded>(1);
    let watch = hub.watch(TurnId::from(7), None, Box::new(sender));
    hub.stream(watch, ConnectionId(1), &own, bob());
    let piece = || Event {
        conversation_id: Some(ConversationId::from(7)),
        ..delta(7)
    };
    let publish = || hub.publish(piece(), Recipients::Readers(Readers::Household));
    publish();
    let (id, busy) = (ConversationId::from(7), HashSet::new());
    hub.share(id, Readers::Household, readers(&[ada()]), &busy, renamed());
    publish();
    assert_eq!(numbers(&own), [1]);
    let state = hub.lock();
    assert!(!state.is_streamed(TurnId::from(7), id, &Readers::Household));
}

#[test]
fn shares_are_remembered_while_somebody_may_hold_earlier_readers() {
    let mut shares = Shares::default();
    let busy = HashSet::from([ConversationId::from(1)]);
    for id in 1..=5_000 {
        shares.note(id.into(), readers(&[ada()]), false, &busy);
    }
    let known = |id: i64| {
        let mut readers = Readers::Household;
        shares.update(id.into(), &mut readers);
        readers != Readers::Household
    };
    assert!(known(1) && known(5_000) && known(4_001));
    let remembered = (1..=5_000).filter(|&id| known(id)).count();
    assert!((1_000..=2_001).contains(&remembered), "{remembered}");
}
