//! What goes with a person, and what stays.

use super::*;

fn ids(gone: &[(ConversationId, Readers)]) -> Vec<ConversationId> {
    let mut ids: Vec<ConversationId> = gone.iter().map(|(id, _)| *id).collect();
    ids.sort();
    ids
}

#[test]
fn a_removed_person_takes_along_what_they_alone_see() {
    let mut house = House::new();
    house.made.remove("alarm");
    let store = &house.store;
    let ann = house.people["ann"].0;
    let root = Viewer::person(house.people["root"].0, UserRole::Admin);
    let left = |viewer: &Viewer| {
        let page = store.seen(viewer).conversations(100, None, false).unwrap();
        house.names(
            page.conversations
                .iter()
                .map(|one| one.id)
                .filter(|id| house.made.values().any(|made| made.0 == *id)),
        )
    };
    let gone = store.remove_user(ann, None).unwrap().unseen;
    assert_eq!(ids(&gone), ["diary", "reminder"].map(|name| house.id(name)));
    assert_eq!(
        left(&all()),
        ["kitchen", "holiday", "party", "bell", "bins"]
    );
    let remembered: Vec<String> = store
        .seen(&all())
        .memories()
        .unwrap()
        .into_iter()
        .map(|one| one.content)
        .collect();
    assert!(
        !remembered.iter().any(|text| text.ends_with("diary")),
        "{remembered:?}"
    );
    assert!(newest_with(store, &all(), "diary", 10).is_empty());
    let kitchen = store.seen(&root).conversation(house.id("kitchen")).unwrap();
    assert_eq!((kitchen.owner, kitchen.owner_id), (None, None));
    let holiday = store
        .seen(&house.viewer("bob"))
        .conversation(house.id("holiday"))
        .unwrap();
    assert_eq!(holiday.audience, Audience::People(vec!["bob".to_owned()]));
    assert!(
        store
            .seen(&all())
            .schedules()
            .unwrap()
            .iter()
            .all(|one| one.text == "bell" || one.text == "alarm")
    );

    // Somebody else of the same name, and by chance with the same id.
    store.name_forgotten("ann").unwrap();
    let again = store.add_user("ann", UserRole::User, "-").unwrap().id;
    assert_ne!(again, ann);
    for id in [again, ann] {
        let viewer = Viewer::person(id, UserRole::User);
        assert_eq!(left(&viewer), ["kitchen", "bell", "bins"], "{id}");
    }
    assert_eq!(
        left(&Viewer::person(again, UserRole::Viewer)),
        Vec::<&str>::new()
    );
    let shared = store
        .share_conversation(
            &root,
            house.id("bell"),
            &Audience::People(vec!["ann".to_owned(), "bob".to_owned()]),
        )
        .unwrap();
    assert_eq!(left(&Viewer::person(again, UserRole::Viewer)), ["bell"]);
    assert!(shared.readers.include(again, UserRole::User));
}

#[test]
fn a_deleted_account_takes_along_all_that_it_owned() {
    let house = House::new();
    let store = &house.store;
    let gone = store.delete_account(house.people["ann"].0).unwrap().unseen;
    let owned = ["diary", "kitchen", "holiday", "party", "reminder", "bins"];
    assert_eq!(ids(&gone), owned.map(|name| house.id(name)));
    let saw = |name: &str, who: &str| {
        let (_, readers) = gone.iter().find(|(id, _)| *id == house.id(name)).unwrap();
        readers.include(house.people[who].0, house.people[who].1)
    };
    assert!(saw("kitchen", "root") && saw("holiday", "bob") && saw("party", "gina"));
    assert!(!saw("holiday", "root") && !saw("diary", "bob"));
    let left = store
        .seen(&all())
        .conversations(100, None, false)
        .unwrap()
        .conversations;
    assert_eq!(
        house.names(left.iter().map(|one| one.id)),
        ["bell", "alarm"]
    );
    let memories = store.seen(&all()).memories().unwrap();
    assert_eq!(memories.len(), 2);
    let refused = store.delete_account(house.people["root"].0).unwrap_err();
    assert!(refused.message().contains("last admin"), "{refused}");
}

#[test]
fn the_last_reader_takes_along_what_others_left() {
    let house = House::new();
    let store = &house.store;
    store.remove_user(house.people["ann"].0, None).unwrap();
    let gone = store
        .remove_user(house.people["gina"].0, None)
        .unwrap()
        .unseen;
    assert_eq!(ids(&gone), [house.id("party")]);
    // That of a webhook account stays its own.
    store.remove_user(house.people["bob"].0, None).unwrap();
    let door = Viewer::account("door");
    assert!(store.seen(&door).conversation(house.id("alarm")).is_ok());
    assert!(
        store
            .seen(&all())
            .conversation(house.id("holiday"))
            .is_err()
    );
}

#[test]
fn an_heir_s_routines_run_in_no_conversation_that_the_heir_does_not_see() {
    let house = House::new();
    let store = &house.store;
    let [root, bob] = ["root", "bob"].map(|name| house.people[name].0);
    let made = ["holiday", "kitchen"].map(|place| {
        let routine = NewSchedule {
            owner_id: Some(bob),
            conversation_id: Some(house.id(place)),
            ..NewSchedule::new(place, Some(once_at(Timestamp::from_millis(1))))
        };
        let made = store.add_schedule(&house.viewer("bob"), routine);
        made.unwrap().id
    });
    store.remove_user(bob, Some(root)).unwrap();
    let seen = store.seen(&house.viewer("root"));
    let [of_holiday, of_kitchen] = made.map(|id| seen.schedule(id).unwrap());
    assert!(of_holiday.is_paused && of_kitchen.is_paused);
    let place = |schedule: Schedule| (schedule.conversation_id, schedule.audience);
    assert_eq!(place(of_holiday), (None, Audience::Private));
    let kitchen = house.id("kitchen");
    assert_eq!(place(of_kitchen), (Some(kitchen), Audience::Household));
}

#[test]
fn usage_is_counted_for_each_person() {
    let house = House::new();
    let store = &house.store;
    let (ann, bob) = (house.people["ann"].0, house.people["bob"].0);
    for (who, input, output) in [
        (Some(ann), 100, 10),
        (Some(bob), 20, 2),
        (None, 3, 0),
        (Some(ann), 1, 1),
    ] {
        let new = NewTurn {
            owner: who,
            ..message(Target::New, "hello")
        };
        let turn = store.begin_turn(new).unwrap().into_inner().turn().id;
        let usage = Usage {
            input,
            output,
            cached: 0,
        };
        store
            .finish_turn(turn, done("hi"), usage, "m", None, Vec::new())
            .unwrap();
    }
    let now = Clock::system().now();
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month_by(ann, now)
            .unwrap(),
        112
    );
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month_by(bob, now)
            .unwrap(),
        22
    );
    let later = now.plus(Duration::from_secs(40 * 24 * 60 * 60));
    assert_eq!(
        store
            .seen(&Viewer::server())
            .tokens_of_month_by(ann, later)
            .unwrap(),
        0
    );
}

#[test]
fn a_name_is_free_once_the_configuration_has_forgotten_it() {
    let house = House::new();
    let store = &house.store;
    let names = || store.removed_names().unwrap().uncommitted();
    let add = |name: &str| store.add_user(name, UserRole::User, "-");
    assert!(names().is_empty());
    store.remove_user(house.people["bob"].0, None).unwrap();
    store.delete_account(house.people["ann"].0).unwrap();
    assert_eq!(names(), ["ann", "bob"]);
    let refused = add("Bob").unwrap_err();
    assert_eq!(refused.code(), Code::InvalidRequest);
    assert!(
        refused.message().contains("may still name them"),
        "{refused}"
    );
    store.name_forgotten("bob").unwrap();
    assert_eq!(names(), ["ann"]);
    add("Bob").unwrap();
}

#[test]
fn a_call_of_somebody_who_causes_nothing_any_more_does_not_start() {
    let house = House::new();
    let (store, bob) = (&house.store, house.people["bob"].0);
    let turn = begin(store, Target::Existing(house.id("kitchen")), "now");
    let start = |user| {
        let started = store.start_call(turn.id, user, vec![], turn.audience_id, "1".to_owned());
        started.map(drop).map_err(|error| error.code())
    };
    assert_eq!(start(Some(bob)), Ok(()));
    store.set_role(bob, UserRole::Viewer).unwrap();
    assert_eq!(start(Some(bob)), Err(Code::Unauthorized));
    store.remove_user(bob, None).unwrap();
    assert_eq!(start(Some(bob)), Err(Code::Unauthorized));
    assert_eq!(start(None), Ok(()));
    assert_eq!(
        store.seen(&Viewer::server()).steps(turn.id).unwrap().len(),
        2
    );
}
