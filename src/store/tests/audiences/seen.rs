//! Who sees and continues what.

use std::collections::HashSet;

use super::*;

#[test]
fn everybody_sees_their_own_part_of_everything() {
    let house = House::new();
    let store = &house.store;
    // Those of one conversation have the same direction.
    let waiting = store.messages_without_vector("one", 1_000).unwrap();
    let direction = |id: base::ids::MessageId| {
        let sql = format!(
            "SELECT conversation_id FROM messages WHERE id = {}",
            id.as_i64()
        );
        let of = house
            .made
            .values()
            .position(|made| made.0.as_i64() == number(store, &sql));
        towards(of.unwrap() % 8)
    };
    let made = waiting
        .iter()
        .map(|(message, _)| (*message, direction(message.id)));
    store.keep_message_vectors("one", made.collect()).unwrap();
    for line in lines(SEEN) {
        let [who, seen] = line[..] else {
            panic!("{line:?}")
        };
        let viewer = &house.viewer(who);
        let seen: Vec<&str> = seen.split_whitespace().collect();
        let of_text = |texts: Vec<String>| {
            let of = |name: &&str| texts.iter().any(|text| text.ends_with(*name));
            let mut names: Vec<_> = house.made.keys().copied().filter(of).collect();
            names.sort_by_key(|name| house.id(name));
            assert_eq!(names.len(), texts.len(), "{who}: {texts:?}");
            names
        };

        let listed = store
            .seen(viewer)
            .conversations(100, None, false)
            .unwrap()
            .conversations;
        let mut one_by_one = Vec::new();
        let mut after = None;
        loop {
            let page = store.seen(viewer).conversations(1, after, false).unwrap();
            one_by_one.extend(page.conversations.iter().map(|one| one.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(listed.iter().map(|one| one.id).eq(one_by_one), "{who}");
        let memories = store.seen(viewer).memories().unwrap();
        let schedules = store.seen(viewer).schedules().unwrap();
        let count = store.seen(viewer).counts().unwrap();
        let of = |found: Vec<ConversationId>| house.names(found);
        let search = newest_with(store, viewer, "answered", 100);
        for direction in 0..8 {
            let (seen, vector) = (store.seen(viewer), towards(direction));
            let near = seen.search_messages("?", Some(&vector), 100, SearchOrder::Relevance);
            let mut near = near
                .unwrap()
                .hits
                .into_iter()
                .map(|hit| hit.conversation_id);
            assert!(who != "the server" || near.len() > 0);
            assert!(
                near.all(|id| listed.iter().any(|one| one.id == id)),
                "{who}"
            );
        }
        let approvals = store.seen(viewer).waiting_approvals().unwrap();
        let deliveries = store.seen(viewer).deliveries(None, 100).unwrap();
        let pending = Some(DeliveryState::Pending);
        let pending = store.seen(viewer).deliveries(pending, 100).unwrap();
        let recalled = store.seen(viewer).recall("remember", None, 100).unwrap();
        let relevant = store
            .seen(viewer)
            .relevant_memories("remember", None, &HashSet::new(), 9_999)
            .unwrap();
        // Those who asked and those who may answer, whoever sees the conversation.
        let asked = approvals.iter().map(|one| one.user_id);
        match (who, viewer.user_id()) {
            ("the server" | "root", _) => assert_eq!(asked.len(), house.made.len(), "{who}"),
            (_, Some(person)) if !who.ends_with("household only") => {
                assert!({ asked }.all(|one| one == Some(person)), "{who}");
            }
            _ => assert_eq!(asked.len(), 0, "{who}"),
        }
        for (what, found) in [
            ("list", of(listed.iter().map(|one| one.id).collect())),
            (
                "search",
                of(search.iter().map(|one| one.conversation_id).collect()),
            ),
            (
                "deliveries",
                of(deliveries.iter().map(|one| one.conversation_id).collect()),
            ),
            (
                "pending",
                of(pending.iter().map(|one| one.conversation_id).collect()),
            ),
            (
                "memories",
                of_text(memories.iter().map(|one| one.content.clone()).collect()),
            ),
            (
                "recall",
                of_text(recalled.iter().map(|one| one.content.clone()).collect()),
            ),
            (
                "relevant",
                of_text(relevant.iter().map(|one| one.content.clone()).collect()),
            ),
            (
                "schedules",
                of_text(schedules.iter().map(|one| one.text.clone()).collect()),
            ),
        ] {
            // Memories of an account come without it here, and are the household's or
            // of those who are named.
            if who.starts_with("account") && ["memories", "recall", "relevant"].contains(&what) {
                assert_eq!(found, Vec::<&str>::new(), "{who}: {what}");
                continue;
            }
            let mut seen = seen.clone();
            if who == "readers of alarm" && ["memories", "recall", "relevant"].contains(&what) {
                seen.retain(|name| *name != "alarm");
            }
            assert_eq!(found, seen, "{who}: {what}");
        }
        assert_eq!(count.conversations as usize, seen.len(), "{who}");
        let tally = |rows: &[(_, u64)]| rows.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!(tally(&count.turns) as usize, seen.len(), "{who}");
        let undelivered: u64 = count.deliveries.iter().map(|(_, count)| count).sum();
        assert_eq!(undelivered as usize, seen.len(), "{who}");

        for (name, &(id, turn)) in &house.made {
            let is_seen = seen.contains(name);
            let check = |what: &str, found: Result<()>, unknown: Result<()>, shown: &str| {
                let what = format!("{who}: {what} of {name}");
                match (found, is_seen) {
                    (Ok(()), true) => {}
                    (Err(error), false) => {
                        assert_eq!(error.code(), Code::NotFound, "{what}");
                        // As if it did not exist.
                        let nothing = unknown.unwrap_err();
                        let nothing = nothing.message().replace(&unknown_id(shown), shown);
                        assert_eq!(error.message(), nothing, "{what}");
                    }
                    (found, _) => panic!("{what}: {found:?}"),
                }
            };
            let nowhere = ConversationId::from(9);
            let text = id.to_string();
            let conversation = |id| store.seen(viewer).conversation(id).map(drop);
            check(
                "conversation",
                conversation(id),
                conversation(nowhere),
                &text,
            );
            let messages = |id| store.seen(viewer).messages(id, 10, None).map(drop);
            check("messages", messages(id), messages(nowhere), &text);
            let after = |id| store.seen(viewer).messages_after(id, 10, None).map(drop);
            check("messages after", after(id), after(nowhere), &text);
            let view = |id| store.seen(viewer).turn(id).map(drop);
            check("turn", view(turn), view(TurnId::from(9)), &turn.to_string());
            let stored = store.seen(&all()).turn(turn).unwrap().into_inner();
            let message = |id| store.seen(viewer).message(id).map(drop);
            let text = stored.message_id.to_string();
            check(
                "message",
                message(stored.message_id),
                message(9.into()),
                &text,
            );
            let delivery = store.seen(&all()).deliveries(None, 100).unwrap();
            let delivery = delivery.iter().find(|one| one.turn_id == turn).unwrap().id;
            let find = |id| store.seen(viewer).delivery(id).map(drop);
            check(
                "delivery",
                find(delivery),
                find(9.into()),
                &delivery.to_string(),
            );
            let retry = |id| store.retry_delivery(viewer, id).map(drop);
            check(
                "retry",
                retry(delivery),
                retry(9.into()),
                &delivery.to_string(),
            );
        }
    }
}

#[test]
fn nobody_continues_what_they_do_not_see() {
    let house = House::new();
    for line in lines(SEEN) {
        let [who, seen] = line[..] else {
            panic!("{line:?}")
        };
        for (name, &(id, _)) in &house.made {
            let say = |id| {
                house.store.begin_turn(NewTurn {
                    viewer: house.viewer(who),
                    ..message(Target::Existing(id), "me too")
                })
            };
            let begun = say(id).map(|begun| begun.into_inner().turn().conversation_id);
            match seen.split_whitespace().any(|one| one == *name) {
                true => assert_eq!(begun, Ok(id), "{who}: {name}"),
                false => {
                    let nothing = say(9.into()).unwrap_err();
                    let nothing = nothing
                        .message()
                        .replace("conv_0000000000009", &id.to_string());
                    assert_eq!(begun.unwrap_err().message(), nothing, "{who}: {name}");
                }
            }
        }
    }
    // A name that an account may not use for a person's own conversation.
    let reminder = house.id("reminder").to_string();
    let through_door = |name: &str| {
        house.store.begin_turn(NewTurn {
            viewer: Viewer::account("door"),
            account: Some("door".to_owned()),
            ..message(named(name), "what did she say?")
        })
    };
    assert_eq!(through_door(&reminder).unwrap_err().code(), Code::NotFound);
    let bins = through_door(&house.id("bins").to_string()).unwrap();
    assert_eq!(bins.into_inner().turn().conversation_id, house.id("bins"));
}

#[test]
fn a_repeated_key_does_not_show_what_is_hidden_by_now() {
    let house = House::new();
    let store = &house.store;
    let say = || {
        store.begin_turn(NewTurn {
            viewer: house.viewer("bob"),
            owner: Some(house.people["bob"].0),
            ..keyed("user:bob", "k", 1, Target::Existing(house.id("holiday")))
        })
    };
    let first = say().unwrap().into_inner().turn().id;
    assert!(matches!(say().unwrap().into_inner(), Begun::Repeat(turn) if turn.id == first));
    store
        .share_conversation(
            &house.viewer("ann"),
            house.id("holiday"),
            &Audience::Private,
        )
        .unwrap();
    assert_eq!(say().unwrap_err().code(), Code::NotFound);
}

#[test]
fn a_token_for_the_household_only_makes_things_of_the_household() {
    let house = House::new();
    let store = &house.store;
    let (ann, _) = house.people["ann"];
    let begun = store
        .begin_turn(NewTurn {
            viewer: house.viewer("ann, household only"),
            owner: Some(ann),
            audience: Audience::Private,
            ..message(Target::New, "hello")
        })
        .unwrap()
        .into_inner();
    assert_eq!(begun.turn().readers, Readers::Household);
}

#[test]
fn readers_are_told_without_the_database() {
    let house = House::new();
    let (ann, bob) = (house.people["ann"].0, house.people["bob"].0);
    for (name, role, expected) in [
        ("diary", UserRole::Admin, [true, false]),
        ("diary", UserRole::Viewer, [true, false]),
        ("holiday", UserRole::Viewer, [true, true]),
        ("kitchen", UserRole::User, [true, true]),
        ("kitchen", UserRole::Viewer, [false, false]),
    ] {
        let turn = house.store.seen(&all()).turn(house.made[name].1).unwrap();
        let included = [ann, bob].map(|person| turn.readers.include(person, role));
        assert_eq!(included, expected, "{name} {role:?}");
    }
}

/// The id 9 with the prefix of another.
fn unknown_id(like: &str) -> String {
    let (prefix, _) = like.split_once('_').unwrap();
    format!("{prefix}_0000000000009")
}

#[test]
fn the_model_sees_no_more_than_who_asks() {
    let house = House::new();
    let store = &house.store;
    for (conversation, asker, seen) in [
        ("holiday", "ann", "kitchen holiday bell bins"),
        ("holiday", "bob", "kitchen holiday bell bins"),
        ("diary", "bob", "kitchen holiday bell bins"),
        ("diary", "root", "kitchen bell bins"),
        ("diary", "gina", "party"),
        ("kitchen", "gina", ""),
        ("diary", "account door", "kitchen bell bins"),
        ("holiday", "account door", "kitchen bell bins"),
        ("alarm", "account door", "kitchen bell alarm bins"),
        ("alarm", "account window", "kitchen bell bins"),
        // The account's caller reads what others say there.
        ("alarm", "bob", "kitchen bell alarm bins"),
        (
            "reminder",
            "ann",
            "diary kitchen holiday party bell reminder bins",
        ),
    ] {
        let account = asker.strip_prefix("account ");
        let user = match account {
            Some(_) => None,
            None => Some(house.people[asker].0),
        };
        let viewer =
            Viewer::readers_of(house.id(conversation), &Readers::Household).asked_by(user, account);
        let found = newest_with(store, &viewer, "answered", 100);
        let found = house.names(found.iter().map(|one| one.conversation_id));
        let seen: Vec<&str> = seen.split_whitespace().collect();
        assert_eq!(found, seen, "{conversation}, asked by {asker}");
    }
}

#[test]
fn a_turn_ends_whose_asker_does_not_see_its_conversation_any_longer() {
    let house = House::new();
    let store = &house.store;
    let (holiday, bob) = (house.id("holiday"), house.people["bob"].0);
    let new = NewTurn {
        viewer: house.viewer("bob"),
        owner: Some(bob),
        account: Some("door".to_owned()),
        ..message(Target::Existing(holiday), "and the code?")
    };
    let begun = store.begin_turn(new).unwrap().into_inner();
    let turn = begun.turn();
    let far = Timestamp::from_millis(i64::MAX / 2);
    let suspend = || {
        let asked = vec![question("4711")];
        store.suspend_turn(turn.id, vec![], turn.audience_id, asked, far)
    };
    let approval = suspend().unwrap().into_inner()[0].id;
    let listed = |who: &str| {
        let listed = store.seen(&house.viewer(who)).waiting_approvals().unwrap();
        listed.iter().any(|one| one.id == approval)
    };
    assert!(listed("bob") && listed("root"));
    assert!(
        store
            .seen(&Viewer::server())
            .turns_of_former_readers(holiday)
            .unwrap()
            .is_empty()
    );
    let ann = house.viewer("ann");
    store
        .share_conversation(&ann, holiday, &Audience::Private)
        .unwrap();
    assert!(!listed("bob") && !listed("root"));
    let found = store.seen(&house.viewer("bob")).approval(approval);
    assert_eq!(found.unwrap_err().code(), Code::NotFound);
    assert_eq!(
        store
            .seen(&Viewer::server())
            .turns_of_former_readers(holiday)
            .unwrap(),
        [turn.id]
    );
    let nothing = store.seen(&house.viewer("bob")).conversation(holiday);
    let nothing = nothing.unwrap_err();
    let (steps, audience) = (vec![], turn.audience_id);
    let read = store.seen(&Viewer::server()).audience_of(turn).map(drop);
    for refused in [
        read,
        store.record_steps(turn.id, steps.clone(), audience),
        store
            .start_call(turn.id, None, steps, audience, "1".to_owned())
            .map(drop),
        suspend().map(drop),
    ] {
        assert_eq!(refused.unwrap_err(), nothing);
    }
    let callback = NewDelivery {
        more: Vec::new(),
        of_file: None,
        body: Box::new(|lost, _| format!("{lost:?}")),
        ..callback("")
    };
    let ended = store.finish_turn(
        turn.id,
        done("4711"),
        Usage::default(),
        "m",
        Some(callback),
        Vec::new(),
    );
    let ended = ended.unwrap().into_inner();
    assert_eq!(ended.turn.state, TurnState::Failed);
    assert_eq!(ended.turn.error.as_ref(), Some(&nothing));
    assert!(ended.reply.is_none());
    let body = body(store, ended.delivery.unwrap().id);
    assert!(body.contains(nothing.message()), "{body}");
    let kept = store.seen(&ann).messages(holiday, 100, None).unwrap();
    assert!(kept.messages.iter().all(|one| one.content != "4711"));
}

#[test]
fn the_first_turn_of_a_conversation_sees_before_its_commit() {
    let house = House::new();
    let store = &house.store;
    let [ann, bob, gina] = ["ann", "bob", "gina"].map(|name| house.people[name].0);
    let unknown = ConversationId::from(9);
    for (known, seen) in [
        (Readers::Household, "kitchen bell bins"),
        (
            Readers::People([ann, bob].into()),
            "kitchen holiday bell bins",
        ),
        (Readers::People([ann, gina].into()), "party"),
        (Readers::People([bob, gina].into()), ""),
        (Readers::People([].into()), ""),
    ] {
        let viewer = Viewer::readers_of(unknown, &known);
        let page = store.seen(&viewer).conversations(100, None, false).unwrap();
        let found = house.names(page.conversations.iter().map(|one| one.id));
        let seen: Vec<&str> = seen.split_whitespace().collect();
        assert_eq!(found, seen, "{known:?}");
    }
}
