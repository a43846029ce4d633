//! What phones are told, and what they are not told any longer.

use std::time::Duration;

use crate::testing::*;
use base::clock::Timestamp;
use base::ids::{ConversationId, TokenId, UserId};
use base::secret::Secret;

fn new(user: &User, conversation: ConversationId, about: Option<i64>) -> NewNotification {
    NewNotification {
        user_id: user.id,
        service: "ntfy",
        conversation_id: conversation,
        cause: match about {
            Some(_) => NotificationCause::Reply,
            None => NotificationCause::Message,
        },
        about,
        content: about.is_none().then(|| "dinner".to_owned()),
        delay: Duration::ZERO,
    }
}

/// A turn of this person in a conversation of everybody, and its notification.
fn ended(store: &Store, user: &User) -> Turn {
    let begun = store.begin_turn(NewTurn {
        viewer: Viewer::person(user.id, user.role),
        owner: Some(user.id),
        ..message(Target::New, "a long one")
    });
    let turn = begun.unwrap().turn().clone();
    let told = vec![new(user, turn.conversation_id, Some(turn.id.as_i64()))];
    let usage = Usage::default();
    store
        .finish_turn(turn.id, done("at last"), usage, "m", None, told)
        .unwrap();
    turn
}

/// What is due, with its content.
fn due(store: &Store) -> Vec<(Durable<Notification>, Option<String>)> {
    let now = store.inner.clock.now();
    let due = store.due_outgoing(now, 500).unwrap();
    let found = due.into_iter().map(|(outgoing, _)| {
        let Outgoing::Notification(id) = outgoing else {
            panic!("{outgoing}")
        };
        let found = store.notification_to_send(id, now).unwrap().unwrap();
        let content = found.content.clone();
        (found, content)
    });
    found.collect()
}

#[test]
fn nobody_is_told_twice_nor_more_than_their_share() {
    let store = TestStore::new();
    let ann = store.add_user("ann", UserRole::User, "x").unwrap();
    let turn = ended(&store, &ann);
    let again = new(&ann, turn.conversation_id, Some(turn.id.as_i64()));
    assert_eq!(store.add_notifications(vec![again.clone()]).unwrap(), 0);
    let (first, content) = due(&store).remove(0);
    assert_eq!(content.as_deref(), Some("at last"));
    let failed = Attempt::Retry {
        error: "the receiver answered 500".into(),
        next_at: first.expires_at,
    };
    store.record_notification(first.id, failed).unwrap();
    assert!(due(&store).is_empty());
    store
        .record_notification(first.id, Attempt::Delivered)
        .unwrap();
    let next = store.next_due().unwrap().uncommitted();
    assert_eq!(next, None);
    assert_eq!(store.add_notifications(vec![again]).unwrap(), 0);
    let many = vec![new(&ann, turn.conversation_id, None); 150];
    assert_eq!(store.add_notifications(many).unwrap(), 100);
}

#[test]
fn who_does_not_see_the_conversation_any_longer_is_not_told() {
    let store = TestStore::new();
    let ann = store.add_user("ann", UserRole::User, "x").unwrap();
    let bob = store.add_user("bob", UserRole::User, "x").unwrap();
    let turn = ended(&store, &ann);
    let (about, conversation) = (turn.id.as_i64(), turn.conversation_id);
    // As if Bob had asked in Ann's conversation.
    let told = new(&bob, conversation, Some(about));
    store.add_notifications(vec![told]).unwrap();
    let content_of = |user: UserId| {
        let found = due(&store).into_iter().map(|(one, content)| {
            let id = store.user(&one.user).unwrap().unwrap().id;
            (id == user).then_some(content)
        });
        found.flatten().next().unwrap()
    };
    assert!(content_of(bob.id).is_some());
    let owner = Viewer::person(ann.id, ann.role);
    store
        .share_conversation(&owner, conversation, &Audience::Private)
        .unwrap();
    assert!(content_of(bob.id).is_none());
    assert!(content_of(ann.id).is_some());
    // What is gone takes along what was to be told of it.
    store.delete_conversation(&owner, conversation).unwrap();
    assert!(due(&store).is_empty());
}

#[test]
fn a_question_that_is_answered_is_not_told() {
    let store = TestStore::new();
    let root = store.add_user("root", UserRole::Admin, "x").unwrap();
    let kid = store.add_user("kid", UserRole::User, "x").unwrap();
    let turn = begin(&store, Target::New, "do it");
    let expires_at = turn.created_at.plus(Duration::from_secs(60));
    let asked = vec![question("light")];
    let asked = store.suspend_turn(turn.id, vec![], turn.audience_id, asked, expires_at);
    let approval = asked.unwrap().into_inner()[0].id;
    let told = [&root, &kid].map(|user| NewNotification {
        cause: NotificationCause::Approval,
        ..new(user, turn.conversation_id, Some(approval.as_i64()))
    });
    store.add_notifications(told.to_vec()).unwrap();
    let told = |store: &Store| {
        let mut told: Vec<_> = due(store)
            .into_iter()
            .map(|(one, content)| (one.user.clone(), content))
            .collect();
        told.sort();
        told
    };
    let reason = Some("it writes".to_owned());
    // Whoever may not see a question is not told, whoever was to be.
    let (kid, root) = ("kid".to_owned(), "root".to_owned());
    assert_eq!(told(&store), [(kid.clone(), None), (root.clone(), reason)]);
    store.decide(approval, decision(Verdict::Denied)).unwrap();
    assert_eq!(told(&store), [(kid, None), (root, None)]);
}

#[test]
fn each_browser_of_a_person_is_told_while_its_session_lasts() {
    let store = TestStore::new();
    let ann = store.add_user("ann", UserRole::User, "x").unwrap();
    let token = |number: u8, expires_at: Option<Timestamp>| {
        let token = store.add_token(NewToken {
            expires_at,
            ..NewToken::session(ann.id, UserRole::User, [number; 32])
        });
        token.unwrap().id
    };
    let browser = |endpoint: &str| PushSubscription {
        endpoint: Secret::new(endpoint),
        public_key: "key".to_owned(),
        secret: Secret::new("secret"),
    };
    let now = store.inner.clock.now();
    let soon = now.plus(Duration::from_secs(60));
    let (lasting, short) = (token(1, None), token(2, Some(soon)));
    let add = |token: TokenId, endpoint: &str| {
        store
            .add_push_subscription(ann.id, token, browser(endpoint))
            .unwrap();
    };
    let endpoints = || {
        let told = due(&store).into_iter().filter_map(|(one, _)| {
            let (_, browser) = one.browser.clone()?;
            Some(browser.endpoint.expose().to_owned())
        });
        told.collect::<Vec<_>>()
    };
    add(lasting, "a");
    add(short, "b");
    // What is known is not named anew, and so keeps what waits for it.
    let turn = ended(&store, &ann);
    let push = NewNotification {
        service: PUSH,
        ..new(&ann, turn.conversation_id, Some(turn.id.as_i64()))
    };
    assert_eq!(store.add_notifications(vec![push.clone()]).unwrap(), 2);
    assert_eq!(store.add_notifications(vec![push.clone()]).unwrap(), 0);
    add(lasting, "a");
    assert_eq!(endpoints(), ["a", "b"]);
    store.inner.clock.advance(Duration::from_secs(61));
    assert_eq!(endpoints(), ["a"], "its session has expired");
    store.revoke_token(lasting).unwrap();
    assert_eq!(endpoints(), [""; 0]);
    assert!(!store.is_told_by_push(ann.id).unwrap());
    // There is a bound; the first ones go.
    let last = token(3, None);
    for number in 0..PUSH_SUBSCRIPTIONS + 2 {
        add(last, &number.to_string());
    }
    let message = NewNotification {
        service: PUSH,
        ..new(&ann, turn.conversation_id, None)
    };
    let stored = store.add_notifications(vec![message]).unwrap();
    assert_eq!(stored, PUSH_SUBSCRIPTIONS);
    assert!(!endpoints().contains(&"1".to_owned()));
}
