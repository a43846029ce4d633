//! Lists of the household.

use crate::testing::*;
use crate::{ITEM_BYTES, ITEMS, LIST_NAME_BYTES, LISTS, List, ListChange, ListSummary};
use base::error::Code;

fn adding(items: &[&str]) -> ListChange {
    ListChange {
        add: items.iter().map(|item| (*item).to_owned()).collect(),
        ..ListChange::default()
    }
}

/// Open items, and ticked ones in brackets.
fn shown(list: &List) -> String {
    let items: Vec<String> = (list.items.iter())
        .map(|item| match item.is_checked {
            true => format!("({})", item.text),
            false => item.text.clone(),
        })
        .collect();
    items.join(" ")
}

#[test]
fn a_list_is_made_changed_and_deleted() {
    let store = TestStore::new();
    let update = |change| store.update_list(&all(), " shopping ", change).unwrap();
    let made = store
        .update_list(
            &all(),
            "Shopping",
            adding(&["milk", " two\n breads ", "Milk"]),
        )
        .unwrap();
    assert_eq!((made.name.as_str(), made.items.len()), ("Shopping", 2));
    assert_eq!(made.items[1].text, "two breads");
    let bread = made.items[1].id.to_string();
    let change = ListChange {
        check: vec![bread.clone(), "MILK".to_owned()],
        ..ListChange::default()
    };
    assert_eq!(shown(&update(change)), "(milk) (two breads)");
    // What is needed again is open again.
    assert_eq!(
        shown(&update(adding(&["MILK", "eggs"]))),
        "milk (two breads) eggs"
    );
    let all_at_once = ListChange {
        add: vec!["tea".to_owned()],
        check: vec!["tea".to_owned(), "eggs".to_owned()],
        uncheck: vec![bread],
        remove: vec!["milk".to_owned(), "eggs".to_owned()],
        is_outside: true,
        turn_id: None,
    };
    let now = update(all_at_once);
    assert_eq!(shown(&now), "two breads (tea)");
    let outside: Vec<bool> = now.items.iter().map(|item| item.is_outside).collect();
    assert_eq!((now.is_outside, outside), (false, vec![false, true]));
    assert_eq!(store.seen(&all()).list("SHOPPING").unwrap(), now);
    let summary = ListSummary {
        name: "Shopping".to_owned(),
        items: 2,
        unchecked: 1,
        is_outside: false,
    };
    assert_eq!(store.seen(&all()).lists().unwrap(), [summary]);
    assert_eq!(store.delete_list(&all(), "shopping").unwrap(), "Shopping");
    assert!(store.seen(&all()).lists().unwrap().is_empty());
    let left = store.read(|connection| {
        connection.row("SELECT count(*) FROM list_items", params![], |row| {
            Ok(row.get::<_, i64>(0)?)
        })
    });
    assert_eq!(left.unwrap(), Some(0));
}

#[test]
fn what_looks_the_same_is_one_item() {
    let store = TestStore::new();
    let list = store
        .update_list(
            &all(),
            "Ko\u{308}ln\u{200b}",
            adding(&["äpfel", "a\u{308}PFEL", "\u{200b}milk", "mi\u{202e}lk"]),
        )
        .unwrap();
    assert_eq!(
        (list.name.as_str(), shown(&list).as_str()),
        ("Köln", "äpfel milk")
    );
    let change = ListChange {
        check: vec!["A\u{308}pfel".to_owned(), "milk\u{feff}".to_owned()],
        ..ListChange::default()
    };
    let list = store.update_list(&all(), "ko\u{308}ln", change).unwrap();
    assert_eq!(shown(&list), "(äpfel) (milk)");
    let refused = store.update_list(&all(), "köln", adding(&["\u{200b}"]));
    assert_eq!(refused.unwrap_err().code(), Code::InvalidRequest);
}

#[test]
fn a_change_is_whole_or_nothing() {
    let store = TestStore::new();
    let update = |name: &str, change| store.update_list(&all(), name, change);
    update("shopping", adding(&["milk"])).unwrap();
    let named = |items: &[&str]| adding(items).add;
    let (unknown, wrong) = (Code::NotFound, Code::InvalidRequest);
    let long = "x".repeat(ITEM_BYTES + 1);
    for (name, change, code) in [
        ("to-do", ListChange::default(), unknown),
        (
            "to-do",
            ListChange {
                check: named(&["milk"]),
                ..ListChange::default()
            },
            unknown,
        ),
        (
            "shopping",
            ListChange {
                check: named(&["eggs"]),
                ..adding(&["tea"])
            },
            unknown,
        ),
        (
            "shopping",
            ListChange {
                remove: named(&["milk", "milk"]),
                ..ListChange::default()
            },
            unknown,
        ),
        (
            "shopping",
            ListChange {
                remove: named(&["item_0000000000001"]),
                ..adding(&["tea"])
            },
            unknown,
        ),
        ("shopping", adding(&["tea", " \n"]), wrong),
        ("shopping", adding(&["tea", &long]), wrong),
        ("shopping", adding(&["tea", "a\u{1b}b"]), wrong),
        ("shopping", adding(&vec!["tea"; ITEMS + 1]), wrong),
        (" ", adding(&["tea"]), wrong),
        (&"x".repeat(LIST_NAME_BYTES + 1), adding(&["tea"]), wrong),
    ] {
        let refused = update(name, change.clone()).unwrap_err();
        assert_eq!(refused.code(), code, "{name} {change:?}");
    }
    assert_eq!(shown(&store.seen(&all()).list("shopping").unwrap()), "milk");
    assert_eq!(store.seen(&all()).lists().unwrap().len(), 1);
}

#[test]
fn lists_are_bounded() {
    let store = TestStore::new();
    let items: Vec<String> = (0..ITEMS).map(|number| number.to_string()).collect();
    let full = ListChange {
        add: items,
        ..ListChange::default()
    };
    store.update_list(&all(), "full", full).unwrap();
    // One that is there already needs no room.
    store.update_list(&all(), "full", adding(&["1"])).unwrap();
    let more = store
        .update_list(&all(), "full", adding(&["more"]))
        .unwrap_err();
    assert!(more.message().contains("at most 500 items"), "{more}");
    for number in 1..LISTS {
        store
            .update_list(&all(), &number.to_string(), adding(&["x"]))
            .unwrap();
    }
    let more = store
        .update_list(&all(), "one more", adding(&["x"]))
        .unwrap_err();
    assert!(more.message().contains("100 lists already"), "{more}");
}

#[test]
fn lists_are_the_household_s() {
    let store = TestStore::new();
    let add = |name: &str, role| store.add_user(name, role, "").unwrap().id;
    let (ann, gina) = (add("ann", UserRole::User), add("gina", UserRole::Viewer));
    store
        .update_list(&all(), "shopping", adding(&["milk"]))
        .unwrap();
    let begin = |audience| {
        let mut new = message(Target::New, "hello");
        (new.owner, new.audience) = (Some(ann), audience);
        match store.begin_turn(new).unwrap().into_inner() {
            Begun::New { turn, .. } | Begun::Repeat(turn) | Begun::Again(turn) => turn,
        }
    };
    let readers = |audience| {
        let turn = begin(audience);
        Viewer::readers_of(turn.conversation_id, &turn.readers).asked_by(Some(ann), None)
    };
    let person = |id, role| Viewer::person(id, role);
    for (who, viewer, sees) in [
        ("ann", person(ann, UserRole::User), true),
        (
            "ann, household only",
            person(ann, UserRole::User).household_only(),
            true,
        ),
        ("a guest", person(gina, UserRole::Viewer), false),
        ("ann's diary", readers(Audience::Private), true),
        ("the kitchen", readers(Audience::Household), true),
        (
            "with a guest",
            readers(Audience::People(vec!["gina".to_owned()])),
            false,
        ),
    ] {
        assert_eq!(
            store.seen(&viewer).lists().unwrap().len(),
            usize::from(sees),
            "{who}"
        );
        assert_eq!(store.seen(&viewer).list("shopping").is_ok(), sees, "{who}");
        let changed = store.update_list(&viewer, "shopping", adding(&["milk"]));
        let refused = changed.map(|_| ()).map_err(|error| error.code());
        let expected = if sees {
            Ok(())
        } else {
            Err(Code::Unauthorized)
        };
        assert_eq!(refused, expected, "{who}");
        let gone = store.delete_list(&viewer, "no such list").unwrap_err();
        let expected = if sees {
            Code::NotFound
        } else {
            Code::Unauthorized
        };
        assert_eq!(gone.code(), expected, "{who}");
    }
}
