//! Who changes what, and how it is shared.

use super::*;

/// Who, what they change, and how it ends.
const CHANGED: &str = "
    ann   | diary    | done
    ann   | kitchen  | done
    ann   | bell     | only an admin may change this
    bob   | diary    | there is no
    bob   | kitchen  | only ann or an admin may change this
    bob   | holiday  | only ann may change this
    root  | kitchen  | done
    root  | bell     | done
    root  | diary    | there is no
    root  | holiday  | there is no
    gina  | party    | only ann may change this
    gina  | kitchen  | there is no
    ann, household only | kitchen | done
    ann, household only | diary   | there is no
    account door | bell | done
    account door | bins | only ann or an admin may change this
    readers of diary | kitchen | only ann or an admin may change this
    the server | diary | done
";

#[test]
fn things_are_changed_by_their_owner_and_shared_ones_by_an_admin() {
    let house = House::new();
    let store = &house.store;
    for line in lines(CHANGED) {
        let [who, name, end] = line[..] else {
            panic!("{line:?}")
        };
        let (viewer, id) = (&house.viewer(who), house.id(name));
        let before = store.seen(&all()).conversation(id).unwrap();
        let memories = store.seen(&all()).memories().unwrap();
        let content = format!("remember {name}");
        let memory = memories.iter().find(|one| one.content == content).unwrap();
        let schedules = store.seen(&all()).schedules().unwrap();
        let schedule = schedules.iter().find(|one| one.text == name).unwrap();
        let at = schedule.timing.as_ref().unwrap().next_at;
        let check = |what: &str, changed: Result<()>| match changed {
            Ok(()) => assert_eq!(end, "done", "{who}: {what} {name}"),
            Err(error) => {
                assert!(
                    error.message().contains(end),
                    "{who}: {what} {name}: {error}"
                );
                let unseen = end == "there is no";
                let code = if unseen {
                    Code::NotFound
                } else {
                    Code::Unauthorized
                };
                assert_eq!(error.code(), code, "{who}: {what} {name}");
            }
        };
        let rename = store.rename_conversation(viewer, id, name);
        check(
            "rename",
            rename.map(|readers| assert_eq!(readers, before.readers)),
        );
        let share = store.share_conversation(viewer, id, &before.audience);
        check(
            "share",
            share.map(|shared| assert_eq!(shared.audience, before.audience)),
        );
        check(
            "pause",
            store
                .pause_schedule(viewer, schedule.id, true, Some(at))
                .map(drop),
        );
        if !who.starts_with("account") {
            check("forget", store.forget(viewer, memory.id).map(drop));
            if end == "done" {
                let again = NewMemory {
                    owner_id: memory.owner_id,
                    seen_as: Some(id),
                    ..fact(&content, None)
                };
                store.remember(again).unwrap();
            }
        }
        // Something is under way in it.
        match store.delete_conversation(viewer, id) {
            Err(error) if end == "done" => assert_eq!(error.code(), Code::InvalidRequest),
            deleted => check("delete", deleted.map(drop)),
        }
    }
    // The model acts for who asked.
    let [diary, kitchen] = ["diary", "kitchen"].map(|name| house.id(name));
    let model = |who: Option<&str>, account| {
        let asker = who.map(|who| house.people[who].0);
        Viewer::readers_of(diary, &Readers::Household).asked_by(asker, account)
    };
    for (viewer, may) in [
        (model(Some("ann"), None), true),
        (model(Some("root"), None), true),
        (model(Some("bob"), None), false),
        (model(None, Some("door")), false),
        (model(None, None), false),
    ] {
        let renamed = store.rename_conversation(&viewer, kitchen, "kitchen");
        assert_eq!(renamed.is_ok(), may, "{viewer:?}");
    }
}

#[test]
fn sharing_shows_and_hides() {
    let house = House::new();
    let store = &house.store;
    let (ann, bob, gina) = ("ann", "bob", "gina");
    let diary = house.id("diary");
    let seen_by = |who: &str| store.seen(&house.viewer(who)).conversation(diary).is_ok();
    let share = |audience: Audience| store.share_conversation(&house.viewer(ann), diary, &audience);
    let people = |names: &[&str]| Audience::People(names.iter().map(|&name| name.into()).collect());
    // Names in any case; the owner's own says nothing more.
    let shared = share(people(&["BOB", "ann", "gina"])).unwrap();
    assert_eq!(shared.audience, people(&[bob, gina]));
    assert_eq!(shared.owner.as_deref(), Some(ann));
    assert_eq!(
        [ann, bob, gina, "root"].map(seen_by),
        [true, true, true, false]
    );
    assert_eq!(
        share(Audience::Household).unwrap().readers,
        Readers::Household
    );
    assert_eq!(
        [ann, bob, gina, "root"].map(seen_by),
        [true, true, false, true]
    );
    assert_eq!(share(people(&[])).unwrap().audience, Audience::Private);
    assert_eq!(
        [ann, bob, gina, "root"].map(seen_by),
        [true, false, false, false]
    );
    let error = share(people(&["nobody"])).unwrap_err();
    assert_eq!(error.message(), "there is no user \"nobody\" to share with");
    let error = store
        .share_conversation(&house.viewer("root"), house.id("bell"), &Audience::Private)
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidRequest);

    // What was remembered in it stays with those who saw it then.
    let memories = store.seen(&house.viewer(bob)).memories().unwrap();
    assert!(memories.iter().all(|one| one.content != "remember diary"));
}

#[test]
fn a_schedule_follows_its_conversation_or_its_owner() {
    let house = House::new();
    let store = &house.store;
    let bob = house.people["bob"].0;
    let schedule = NewSchedule {
        owner: Some("bob".to_owned()),
        owner_id: Some(bob),
        conversation_id: Some(house.id("holiday")),
        ..NewSchedule::new("bob's", Some(once_at(Timestamp::from_millis(1))))
    };
    let made = store.add_schedule(&house.viewer("bob"), schedule.clone());
    let made = made.unwrap();
    assert_eq!(made.audience, Audience::People(vec!["ann".to_owned()]));
    let elsewhere = NewSchedule {
        conversation_id: Some(house.id("diary")),
        ..schedule
    };
    let refused = store.add_schedule(&house.viewer("bob"), elsewhere);
    assert_eq!(refused.unwrap_err().code(), Code::NotFound);

    store
        .share_conversation(
            &house.viewer("ann"),
            house.id("holiday"),
            &Audience::Private,
        )
        .unwrap();
    let moved = store.seen(&house.viewer("bob")).schedule(made.id).unwrap();
    assert_eq!(
        (moved.conversation_id, moved.audience.clone()),
        (None, Audience::Private)
    );
    let begun = store.run_schedule(moved, "bob's".to_owned(), None);
    let begun = begun.unwrap().unwrap();
    assert_eq!(begun.turn().user_id, Some(bob));
    assert_eq!(begun.turn().readers, Readers::People([bob].into()));
    let own = begun.turn().conversation_id;
    assert!(store.seen(&house.viewer("bob")).conversation(own).is_ok());
    assert!(store.seen(&house.viewer("ann")).conversation(own).is_err());
}

fn of_door(audience: &Audience) -> Vec<(String, Audience)> {
    vec![("door".to_owned(), audience.clone())]
}

#[test]
fn an_account_s_audience_is_that_of_all_its_conversations() {
    let house = House::new();
    let store = &house.store;
    let bob = Audience::People(vec!["bob".to_owned(), "carl".to_owned()]);
    let set = |audience: &Audience| {
        let changed = store.set_account_audiences(of_door(audience));
        changed.unwrap()
    };
    let changed = set(&bob);
    assert_eq!(changed.len(), 1, "the alarm has this audience already");
    let bell = &changed[0];
    let (id, before) = (bell.conversation_id, bell.before.clone());
    assert_eq!((id, before), (house.id("bell"), Readers::Household));
    assert!(matches!(bell.now, Readers::People(_)) && bell.has_turn);
    assert!(set(&bob).is_empty(), "it is as it was");
    let seen = |who: &str| {
        let viewer = house.viewer(who);
        let page = store.seen(&viewer).conversations(100, None, false).unwrap();
        house.names(page.conversations.iter().map(|one| one.id))
    };
    assert_eq!(
        seen("root"),
        ["kitchen", "bins"],
        "a person's own stays as it is"
    );
    assert_eq!(seen("bob"), ["kitchen", "holiday", "bell", "alarm", "bins"]);
    // Carl is added later, and the server is started again.
    let carl = store.add_user("carl", UserRole::User, "-").unwrap().id;
    let of_carl = Viewer::person(carl, UserRole::User);
    let bell = house.id("bell");
    assert!(store.seen(&of_carl).conversation(bell).is_err());
    set(&bob);
    assert!(store.seen(&of_carl).conversation(bell).is_ok());
    set(&Audience::Household);
    assert_eq!(seen("root"), ["kitchen", "bell", "alarm", "bins"]);
}

#[test]
fn a_turn_that_begins_before_an_account_s_audience_changes_is_named() {
    let house = House::new();
    let store = &house.store;
    let of_account = || NewTurn {
        account: Some("door".to_owned()),
        ..message(Target::New, "ding")
    };
    // Not on disk and not queued yet.
    let early = store
        .begin_turn_deferred(of_account())
        .unwrap()
        .uncommitted();
    let early = early.turn();
    let bob = Audience::People(vec!["bob".to_owned()]);
    let changed = store.set_account_audiences(of_door(&bob)).unwrap();
    let is_early = |one: &&Reshared| one.conversation_id == early.conversation_id;
    let found = changed.iter().find(is_early);
    let found = found.expect("its events would go to its earlier readers");
    assert_eq!(found.before, early.readers);
    assert!(found.has_turn);
}

/// A result of a tool for the readers of a conversation.
fn found(text: &str) -> Vec<Step> {
    vec![Step::Result {
        call_id: "1".to_owned(),
        ok: true,
        content: text.to_owned(),
        outside: false,
        private: true,
        memories: Vec::new(),
        files: Vec::new(),
        page: None,
    }]
}

#[test]
fn what_tools_found_goes_when_more_people_see_the_conversation() {
    // The audience before and after, and whether the result stays.
    for (before, after, stays) in [
        ("private", "household", false),
        ("private", "bob", false),
        ("bob", "household", false),
        ("bob", "gina", false),
        ("household", "bob, gina", false),
        ("household", "household", true),
        ("household", "bob", true),
        ("household", "private", true),
        ("bob, gina", "gina", true),
        ("bob", "private", true),
    ] {
        let house = House::new();
        let store = &house.store;
        let (ann, id) = (house.viewer("ann"), house.id("kitchen"));
        let share = |to: &str| store.share_conversation(&ann, id, &audience(to)).unwrap();
        share(before);
        let past = begin(store, Target::Existing(id), "now");
        store
            .record_steps(past.id, found("old"), past.audience_id)
            .unwrap();
        finish(store, &past, "done");
        let turn = begin(store, Target::Existing(id), "and?");
        store
            .record_steps(turn.id, found("early"), turn.audience_id)
            .unwrap();
        let summary = || store.save_summary(id, past.id, "sum", past.audience_id, 0);
        summary().unwrap();
        share(after);
        // Found before, and stored after.
        store
            .record_steps(turn.id, found("late"), turn.audience_id)
            .unwrap();
        let kept = |id| {
            let steps = store.seen(&Viewer::server()).steps(id).unwrap();
            let text = |step: &Step| serde_json::to_string(step).unwrap();
            steps
                .iter()
                .map(text)
                .filter(|text| text.contains("\"private\":true"))
                .count()
        };
        let expected = if stays { (1, 2) } else { (0, 0) };
        assert_eq!((kept(past.id), kept(turn.id)), expected, "{before} {after}");
        let has_summary = || testing::past(store, id, 9, 9_999).summary.is_some();
        assert_eq!(has_summary(), stays, "{before} {after}");
        summary().unwrap();
        assert_eq!(has_summary(), stays, "{before} {after}");
    }
}

#[test]
fn the_same_words_are_remembered_once_for_each_audience() {
    let house = House::new();
    let store = &house.store;
    let remember = |name: &str| {
        let new = NewMemory {
            owner_id: Some(house.people["ann"].0),
            seen_as: Some(house.id(name)),
            channel: Some("websocket".to_owned()),
            ..fact("the key is under the mat", Some("ann"))
        };
        store.remember(new).unwrap()
    };
    let first = remember("diary");
    assert_eq!(first.audience, Audience::Private);
    assert_eq!(remember("diary").id, first.id);
    assert_eq!(remember("reminder").id, first.id, "ann alone sees both");
    assert_ne!(remember("kitchen").id, first.id);
    let of_bob = store
        .seen(&house.viewer("bob"))
        .recall("mat", None, 10)
        .unwrap();
    assert_eq!(of_bob.len(), 1);
    assert_eq!(of_bob[0].channel.as_deref(), Some("websocket"));
    // What may not be forgotten is not replaced either; nothing is remembered then.
    let replaced = [&of_bob[0].id, &first.id].map(ToString::to_string);
    for (replaced, code) in replaced.iter().zip([Code::Unauthorized, Code::NotFound]) {
        let new = fact("the key is in the shed", Some("bob"));
        let refused = store.replace_memory(&house.viewer("bob"), replaced, new);
        assert_eq!(refused.unwrap_err().code(), code);
    }
    assert!(
        store
            .seen(&house.viewer("bob"))
            .recall("shed", None, 10)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn schedules_leave_the_conversation_that_their_owner_loses_with_an_account_s_audience() {
    let house = House::new();
    let (store, ann) = (&house.store, house.people["ann"].0);
    let of_ann = || NewSchedule {
        owner_id: Some(ann),
        conversation_id: Some(house.id("bell")),
        ..NewSchedule::new("ann's", Some(once_at(Timestamp::from_millis(i64::MAX / 2))))
    };
    let made = store.add_schedule(&house.viewer("ann"), of_ann());
    let id = made.unwrap().id;
    store
        .set_account_audiences(of_door(&audience("bob")))
        .unwrap();
    let find = |who: &str| {
        let schedules = store.seen(&house.viewer(who)).schedules().unwrap();
        schedules.into_iter().find(|one| one.id == id)
    };
    let left = find("ann").unwrap();
    assert_eq!(
        (left.conversation_id, left.audience),
        (None, Audience::Private)
    );
    assert!(find("bob").is_none());
    // One whose owner still sees the conversation stays there.
    store
        .set_account_audiences(of_door(&Audience::Household))
        .unwrap();
    let id = store
        .add_schedule(&house.viewer("ann"), of_ann())
        .unwrap()
        .id;
    store
        .set_account_audiences(of_door(&audience("ann, bob")))
        .unwrap();
    let schedules = store.seen(&house.viewer("bob")).schedules().unwrap();
    let stays = schedules.into_iter().find(|one| one.id == id).unwrap();
    assert_eq!(stays.conversation_id, Some(house.id("bell")));
}

#[test]
fn what_nobody_owns_is_deleted_by_those_who_see_it() {
    let house = House::new();
    let store = &house.store;
    store
        .set_account_audiences(of_door(&audience("bob, gina")))
        .unwrap();
    let left = NewMemory {
        seen_as: Some(house.id("alarm")),
        account: Some("door".to_owned()),
        ..fact("left", None)
    };
    let left = store.remember(left).unwrap().id;
    let forget = |who: &str| store.forget(&house.viewer(who), left);
    assert_eq!(forget("root").unwrap_err().code(), Code::NotFound);
    assert!(forget("gina").is_err());
    forget("bob").unwrap();
    let schedules = store.seen(&house.viewer("bob")).schedules().unwrap();
    let of_account = schedules.iter().find(|one| one.text == "alarm").unwrap().id;
    let delete = |who: &str| store.delete_schedule(&house.viewer(who), of_account);
    assert!(delete("gina").is_err());
    delete("bob").unwrap();
    let delete = |who: &str| {
        let deleted = store.delete_conversation(&house.viewer(who), house.id("alarm"));
        deleted.unwrap_err().code()
    };
    assert_eq!(delete("gina"), Code::Unauthorized);
    assert_eq!(delete("bob"), Code::InvalidRequest, "a turn waits there");
    // Who sees it, and what it is called, is for the admin to say.
    let renamed = store.rename_conversation(&house.viewer("bob"), house.id("alarm"), "x");
    assert_eq!(renamed.unwrap_err().code(), Code::Unauthorized);
    let viewer = house.viewer("bob");
    let shared = store.share_conversation(&viewer, house.id("alarm"), &Audience::Household);
    assert_eq!(shared.unwrap_err().code(), Code::Unauthorized);
}
