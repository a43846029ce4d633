//! Lists of the household: over the protocol, by the model, from the command line, and in
//! exports.

use std::fs;

use crate::service::privacy::so_far;
use base::clock::Clock;
use serde_json::{Value, json};
use store::{ListChange, Store, Viewer};
use support::home::{Home, TemporaryDirectory};
use support::http::post;
use support::model::{Act, Model};
use support::program::{Program, printed, run};
use support::receiver::Receiver;

/// The texts of a list; ticked ones in brackets.
fn texts(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            let text = item["text"].as_str().unwrap();
            match item["checked"].as_bool().unwrap() {
                true => format!("({text})"),
                false => text.to_owned(),
            }
        })
        .collect()
}

#[test]
fn a_list_is_shared_by_the_household_and_nobody_else() {
    let home = Home::offline();
    let tokens = [&home.tokens.admin, &home.tokens.user, &home.tokens.viewer];
    let mut listeners = tokens.map(|token| {
        let mut client = home.websocket(token);
        client.ask(json!({ "type": "subscribe", "events": ["list.updated"] }));
        client
    });
    let fridge = home.token("user", &json!({ "only": "household" }));
    let mut user = home.websocket(&home.tokens.user);
    let made = user.ask(json!({
        "type": "update_list", "list": "Shopping", "add": ["milk", "bread", "milk"],
    }));
    assert_eq!(made["list"], "Shopping");
    assert_eq!(texts(&made), ["milk", "bread"]);
    let bread = made["items"][1]["item_id"].clone();
    assert!(bread.as_str().unwrap().starts_with("item_"), "{bread}");
    let mut admin = home.admin();
    let changed = admin.ask(json!({
        "type": "update_list", "list": "shopping", "check": [bread], "remove": ["milk"],
        "add": ["tea"],
    }));
    assert_eq!(texts(&changed), ["(bread)", "tea"]);
    let mut display = home.websocket(&fridge);
    let undone = display.ask(json!({
        "type": "update_list", "list": "shopping", "uncheck": ["Bread"],
    }));
    assert_eq!(texts(&undone), ["bread", "tea"]);
    assert_eq!(
        user.ask(json!({ "type": "list_lists" }))["lists"],
        json!([{ "list": "Shopping", "items": 2, "unchecked": 2 }])
    );
    assert_eq!(
        display.ask(json!({ "type": "get_list", "list": "shopping" })),
        undone
    );
    for (command, code) in [
        (json!({ "type": "get_list", "list": "none" }), "not_found"),
        (json!({ "type": "get_list" }), "invalid_request"),
        (
            json!({ "type": "update_list", "list": "none", "check": ["x"] }),
            "not_found",
        ),
        (
            json!({ "type": "update_list", "list": "shopping", "check": ["x"] }),
            "not_found",
        ),
        (
            json!({ "type": "update_list", "list": "shopping", "add": "x" }),
            "invalid_request",
        ),
        (
            json!({ "type": "update_list", "list": "shopping", "add": [""] }),
            "invalid_request",
        ),
        (
            json!({ "type": "delete_list", "list": "none" }),
            "not_found",
        ),
    ] {
        assert_eq!(user.refused(command.clone()), code, "{command}");
    }
    let mut guest = home.websocket(&home.tokens.viewer);
    for command in ["list_lists", "get_list", "update_list", "delete_list"] {
        let command = json!({ "type": command, "list": "shopping", "add": ["x"] });
        assert_eq!(guest.refused(command), "unauthorized");
    }
    user.ask(json!({ "type": "delete_list", "list": "shopping" }));
    let [admin, user, viewer] = &mut listeners;
    for listener in [admin, user] {
        let events = so_far(listener);
        assert_eq!(events.len(), 4, "{events:?}");
        for event in events {
            assert_eq!(
                (&event["event"], &event["list"]),
                (&json!("list.updated"), &json!("Shopping"))
            );
            assert!(
                event["turn_id"].is_null() && event["conversation_id"].is_null(),
                "{event}"
            );
        }
    }
    assert!(so_far(viewer).is_empty());
}

/// A model that puts on the list what follows "buy", and shows the list when asked.
fn shopper() -> Model {
    Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        if last["role"] != "user" {
            return Act::say("done");
        }
        let call = |arguments| Act::call("lists", arguments);
        match text.split_once("buy ") {
            Some((_, item)) => {
                let item = item.split_whitespace().next();
                call(json!({ "action": "add", "list": "shopping", "items": [item] }))
            }
            None => call(json!({ "action": "show", "list": "shopping" })),
        }
    })
}

#[test]
fn the_model_keeps_lists_and_knows_what_came_from_outside() {
    let (model, receiver) = (shopper(), Receiver::start());
    let mut config = model.config();
    config["tool_permissions"] = json!({ "lists": "allow" });
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": {
            "door": { "incoming_path": "/door", "outgoing_url": receiver.url() },
        } },
    ]);
    config["permission_mode"] = json!("allow");
    let home = Home::start(config);
    let mut user = home.websocket(&home.tokens.user);
    let mut listener = home.admin();
    listener.ask(json!({ "type": "subscribe", "events": ["list.updated"] }));
    user.chat("please buy milk");
    let results = |model: &Model| -> Vec<String> {
        let request = model.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap().clone();
        let results = messages.into_iter().filter(|one| one["role"] == "tool");
        results
            .map(|one| one["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let shown = &results(&model)[0];
    assert!(shown.contains("shopping: 1 open of 1\n[ ] milk"), "{shown}");
    assert_eq!(so_far(&mut listener)[0]["list"], "shopping");
    // An account whose `tools` do not name it is not offered it.
    let offered = |model: &Model| model.requests().pop().unwrap()["tools"].to_string();
    assert!(offered(&model).contains("\"lists\""));
    let body = json!({ "message": "please buy poison" });
    assert_eq!(post(home.address(), "/door", &[], &body).status, 202);
    receiver.wait_for(1);
    assert!(!offered(&model).contains("\"lists\""));
    let list = json!({ "type": "get_list", "list": "shopping" });
    assert_eq!(texts(&user.ask(list.clone())), ["milk"]);
}

#[test]
fn what_came_from_outside_stays_marked() {
    for is_outside in [false, true] {
        let model = shopper();
        let mut config = model.config();
        config["permission_mode"] = json!("ask");
        config["tool_permissions"] = json!({ "lists": "allow" });
        let home = Home::start(config);
        let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
        let change = ListChange {
            add: vec!["anvils".to_owned()],
            is_outside,
            ..ListChange::default()
        };
        let made = store.update_list(&Viewer::server(), "shopping", change);
        made.unwrap();
        store.close();
        let mut user = home.websocket(&home.tokens.user);
        user.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
        let conversation = user.chat("show me")["conversation_id"].clone();
        let last = model.requests().pop().unwrap().to_string();
        assert!(last.contains("[ ] anvils"), "{last}");
        user.send(&json!({
            "type": "chat", "message": "please buy eggs", "conversation_id": conversation,
        }));
        // Adding to a list only tells something: it does not ask, and keeps the mark.
        let answered = user.receive();
        assert_eq!(answered["status"], "ok", "{answered}");
        let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
        let list = store.seen(&Viewer::server()).list("shopping").unwrap();
        let added = list.items.last().unwrap();
        assert_eq!(
            (added.text.as_str(), added.is_outside),
            ("eggs", is_outside)
        );
        store.close();
    }
}

#[test]
fn lists_are_kept_from_the_command_line_exported_and_imported() {
    let folder = TemporaryDirectory::new();
    let _program = Program::serve(folder.path());
    let good = |place: &TemporaryDirectory, arguments: &[&str]| {
        let output = run(place.path(), arguments);
        assert!(output.status.success(), "{}", printed(&output));
        printed(&output)
    };
    assert!(good(&folder, &["list", "show"]).contains("There are no lists yet"));
    good(&folder, &["list", "add", "Shopping", "milk", "green tea"]);
    good(&folder, &["list", "check", "shopping", "MILK"]);
    good(&folder, &["list", "add", "to-do", "call the bank", "rest"]);
    let removed = good(&folder, &["list", "remove", "to-do", "rest", "--json"]);
    let removed: Value = serde_json::from_str(&removed).unwrap();
    assert_eq!(texts(&removed), ["call the bank"]);
    let shown = good(&folder, &["list", "show", "shopping"]);
    assert_eq!(shown.trim_end(), "DONE  ITEM\nx     milk\n-     green tea");
    let lists = good(&folder, &["list", "show"]);
    assert!(
        lists.starts_with("LIST      OPEN  ITEMS\nShopping  1     2\n"),
        "{lists}"
    );
    let missing = run(folder.path(), &["list", "check", "shopping", "anvil"]);
    assert!(!missing.status.success());
    assert!(printed(&missing).contains("there is no \"anvil\" on the list \"Shopping\""));

    let exported = good(&folder, &["export", "--all"]);
    let file = folder.path().join("export.jsonl");
    fs::write(&file, &exported).unwrap();
    let other = TemporaryDirectory::new();
    let _other = Program::serve(other.path());
    for _ in 0..2 {
        good(&other, &["import", file.to_str().unwrap()]);
        assert_eq!(good(&other, &["export", "--all"]), exported);
    }
    let readable = good(&other, &["export", "--all", "--format", "markdown"]);
    assert!(
        readable.contains("# Shopping\n\n- [x] milk\n- [ ] green tea\n"),
        "{readable}"
    );
    good(&other, &["list", "delete", "shopping"]);
    assert!(!good(&other, &["list", "show"]).contains("hopping"));
}
