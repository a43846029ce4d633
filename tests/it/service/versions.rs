//! Messages that are written anew, deleted, and answered by another model; and how each
//! person keeps the list of conversations.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use support::MAX_WAIT;
use support::client::Client;
use support::home::Home;
use support::model::{Act, Model};
use support::program::{printed, run};

use crate::agent::memory::say;

/// A model that repeats the last thing that was said, and with which model.
fn echo() -> Model {
    Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_str().unwrap();
        let said = last.rsplit("] ").next().unwrap();
        Act::say(&format!("{}: {said}", request["model"].as_str().unwrap()))
    })
}

fn texts(client: &mut Client, conversation: &Value) -> Vec<String> {
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let messages = client.ask(page)["messages"].clone();
    let text = |message: &Value| message["content"].as_str().unwrap().to_owned();
    messages.as_array().unwrap().iter().map(text).collect()
}

fn ids(client: &mut Client, conversation: &Value) -> Vec<Value> {
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let messages = client.ask(page)["messages"].clone();
    let id = |message: &Value| message["id"].clone();
    messages.as_array().unwrap().iter().map(id).collect()
}

fn replace(client: &mut Client, conversation: &Value, message: &Value, text: &str) -> Value {
    client.ask(json!({
        "type": "chat", "conversation_id": conversation, "replaces": message, "message": text
    }))
}

fn versions(client: &mut Client, conversation: &Value, place: usize) -> Vec<Value> {
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let versions = &client.ask(page)["messages"][place]["versions"];
    versions.as_array().cloned().unwrap_or_default()
}

fn why(client: &mut Client, request: &Value) -> String {
    client.send(request);
    client.response()["error"].as_str().unwrap().to_owned()
}

fn select(client: &mut Client, message: &Value) {
    client.ask(json!({ "type": "select_version", "message_id": message }));
}

#[test]
fn a_message_can_be_written_anew_and_both_versions_stay() {
    let model = echo();
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("one")["conversation_id"].clone();
    say(&mut client, &conversation, "two");
    say(&mut client, &conversation, "three");
    let before = ids(&mut client, &conversation);
    assert_eq!(versions(&mut client, &conversation, 2), [] as [Value; 0]);

    let mut other = home.admin();
    other
        .ask(json!({ "type": "subscribe", "events": ["message.created", "conversation.changed"] }));
    replace(&mut client, &conversation, &before[2], "TWO");
    let told = other.event("message.created")["message"].clone();
    let changed = other.event("conversation.changed");
    assert_eq!(
        (&changed["conversation_id"], changed.get("marks_only")),
        (&conversation, None)
    );
    let both = versions(&mut client, &conversation, 2);
    assert_eq!(told["versions"], json!(both));
    assert_eq!(both[0], before[2]);
    let new = ["one", "scripted: one", "TWO", "scripted: TWO"];
    assert_eq!(texts(&mut client, &conversation), new);
    // The model is shown what is shown.
    let shown = model.requests().last().unwrap()["messages"].to_string();
    assert!(
        shown.contains("scripted: one") && !shown.contains("two"),
        "{shown}"
    );
    let row = client.ask(json!({ "type": "list_conversations" }))["conversations"][0].clone();
    assert_eq!(row["message_count"], 4);
    let search = json!({ "type": "search_messages", "query": "three", "order": "newest" });
    assert_eq!(client.ask(search.clone())["messages"], json!([]));

    home.restart();
    let mut client = home.admin();
    let mut other = home.admin();
    other.ask(json!({ "type": "subscribe", "events": ["conversation.changed"] }));
    assert_eq!(texts(&mut client, &conversation), new);
    select(&mut client, &both[0]);
    assert_eq!(
        other.event("conversation.changed")["conversation_id"],
        conversation
    );
    let old = [
        "one",
        "scripted: one",
        "two",
        "scripted: two",
        "three",
        "scripted: three",
    ];
    assert_eq!(texts(&mut client, &conversation), old);
    assert_eq!(client.ask(search)["messages"].as_array().unwrap().len(), 2);
    say(&mut client, &conversation, "four");
    select(&mut client, &both[1]);
    assert_eq!(texts(&mut client, &conversation), new);
    select(&mut client, &both[0]);
    assert_eq!(
        texts(&mut client, &conversation)[6..],
        ["four", "scripted: four"]
    );
    // Again changes nothing.
    select(&mut client, &both[0]);
    assert_eq!(texts(&mut client, &conversation).len(), 8);
}

#[test]
fn versions_within_versions_come_back_as_they_were_left() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("a")["conversation_id"].clone();
    say(&mut client, &conversation, "b");
    let all = ids(&mut client, &conversation);
    let (first, second) = (all[0].clone(), all[2].clone());
    replace(&mut client, &conversation, &second, "B");
    let newer = ids(&mut client, &conversation)[2].clone();
    replace(&mut client, &conversation, &first, "A");
    assert_eq!(texts(&mut client, &conversation), ["A", "scripted: A"]);
    // What goes with a version that is not shown cannot be shown alone, replaced or deleted.
    for request in [
        json!({ "type": "select_version", "message_id": second }),
        json!({ "type": "delete_message", "message_id": newer }),
        json!({ "type": "chat", "conversation_id": conversation, "replaces": second, "message": "x" }),
    ] {
        let refused = why(&mut client, &request);
        assert!(refused.contains("select"), "{request}: {refused}");
    }
    select(&mut client, &first);
    let left = ["a", "scripted: a", "B", "scripted: B"];
    assert_eq!(texts(&mut client, &conversation), left);
    // The version that is deleted takes with it what followed it, and all versions there.
    client.ask(json!({ "type": "delete_message", "message_id": first }));
    assert_eq!(texts(&mut client, &conversation), ["A", "scripted: A"]);
    assert_eq!(versions(&mut client, &conversation, 0), [] as [Value; 0]);
    for gone in [&first, &second] {
        let select = json!({ "type": "select_version", "message_id": gone });
        assert!(why(&mut client, &select).contains("no message"), "{gone}");
    }
}

#[test]
fn an_exchange_can_be_deleted_and_the_model_forgets_it() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("one")["conversation_id"].clone();
    let events = json!(["message.created", "chat.done", "conversation.changed"]);
    let subscribe = json!({ "type": "subscribe", "events": events });
    let since = home.admin().ask(subscribe)["seq"].clone();
    say(&mut client, &conversation, "two");
    say(&mut client, &conversation, "three");
    let reply = ids(&mut client, &conversation)[3].clone();
    client.ask(json!({ "type": "delete_message", "message_id": reply }));
    // Who was away is told what is left.
    let mut away = home.admin();
    away.ask(json!({ "type": "subscribe", "events": events, "since": since }));
    let mut missed = String::new();
    while !missed.contains("conversation.changed") {
        missed += &away.receive().to_string();
    }
    assert!(
        missed.contains("three") && !missed.contains("two"),
        "{missed}"
    );
    let left = ["one", "scripted: one", "three", "scripted: three"];
    assert_eq!(texts(&mut client, &conversation), left);
    say(&mut client, &conversation, "four");
    let shown = model.requests().last().unwrap()["messages"].to_string();
    assert!(!shown.contains("two"), "{shown}");
    let found = client.ask(json!({ "type": "search_messages", "query": "two" }));
    assert_eq!(found["messages"], json!([]));
}

#[test]
fn others_change_only_what_they_asked_themselves() {
    let model = echo();
    let home =
        Home::start(model.config_with(json!({ "privacy": { "conversations": "household" } })));
    let mut owner = home.websocket(&home.tokens.user);
    let conversation = owner.chat("one")["conversation_id"].clone();
    let mut admin = home.admin();
    say(&mut admin, &conversation, "two");
    let all = ids(&mut owner, &conversation);
    let (first, second) = (all[0].clone(), all[2].clone());
    let replace_by = |message: &Value| {
        json!({ "type": "chat", "conversation_id": conversation, "replaces": message,
            "message": "x" })
    };
    // Who owns the conversation may change all of it; the household's, an admin, too.
    owner.ask(replace_by(&second));
    admin.ask(replace_by(&first));
    let private = owner.ask(json!({ "type": "chat", "message": "mine", "audience": "private" }));
    let message = ids(&mut owner, &private["conversation_id"])[0].clone();
    for request in [
        json!({ "type": "select_version", "message_id": message }),
        json!({ "type": "delete_message", "message_id": message }),
        replace_by(&message),
    ] {
        let refused = why(&mut admin, &request);
        assert!(refused.contains("no message"), "{request}: {refused}");
    }
    let named = owner.ask(json!({ "type": "chat", "message": "ours", "audience": ["admin"] }));
    let message = ids(&mut owner, &named["conversation_id"])[0].clone();
    let delete = json!({ "type": "delete_message", "message_id": message });
    let refused = why(&mut admin, &delete);
    assert!(refused.contains("user"), "{refused}");

    // Nor does a version that they delete take along what others asked after it.
    say(&mut admin, &named["conversation_id"], "hers");
    say(&mut owner, &named["conversation_id"], "his");
    let hers = ids(&mut owner, &named["conversation_id"])[2].clone();
    replace(&mut admin, &named["conversation_id"], &hers, "hers anew");
    let delete = json!({ "type": "delete_message", "message_id": hers });
    let refused = why(&mut admin, &delete);
    assert!(refused.contains("user"), "{refused}");
    select(&mut owner, &hers);
    let shown = texts(&mut owner, &named["conversation_id"]);
    assert_eq!(
        shown[2..],
        ["hers", "scripted: hers", "his", "scripted: his"]
    );
    owner.ask(delete);
    let shown = texts(&mut owner, &named["conversation_id"]);
    assert_eq!(shown[2..], ["hers anew", "scripted: hers anew"]);
}

#[test]
fn a_title_taken_from_a_message_goes_with_it() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("a secret")["conversation_id"].clone();
    say(&mut client, &conversation, "the weather");
    let title = |client: &mut Client| {
        let listed = client.ask(json!({ "type": "list_conversations" }));
        listed["conversations"][0]["title"].clone()
    };
    let first = ids(&mut client, &conversation)[0].clone();
    replace(&mut client, &conversation, &first, "a riddle");
    assert_eq!(title(&mut client), "a riddle");
    select(&mut client, &first);
    assert_eq!(title(&mut client), "a secret");
    client.ask(json!({ "type": "delete_message", "message_id": first }));
    assert_eq!(title(&mut client), "a riddle");
    let first = ids(&mut client, &conversation)[0].clone();
    client.ask(json!({ "type": "delete_message", "message_id": first }));
    assert_eq!(title(&mut client), "");
}

#[test]
fn a_title_follows_its_message_when_the_first_version_is_gone() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let conversation = client.chat("a secret")["conversation_id"].clone();
    let first = ids(&mut client, &conversation)[0].clone();
    replace(&mut client, &conversation, &first, "a riddle");
    let second = ids(&mut client, &conversation)[0].clone();
    replace(&mut client, &conversation, &second, "a joke");
    client.ask(json!({ "type": "delete_message", "message_id": first }));
    let listed = json!({ "type": "list_conversations" });
    assert_eq!(
        client.ask(listed.clone())["conversations"][0]["title"],
        "a joke"
    );
    select(&mut client, &second);
    assert_eq!(
        client.ask(listed.clone())["conversations"][0]["title"],
        "a riddle"
    );
    replace(&mut client, &conversation, &second, "a poem");
    assert_eq!(client.ask(listed)["conversations"][0]["title"], "a poem");
}

#[test]
fn a_reply_and_a_conversation_can_be_given_another_model() {
    let model = echo();
    let home = Home::start(model.config_with(json!({ "models": ["large"] })));
    let mut client = home.admin();
    let conversation = client.chat("one")["conversation_id"].clone();
    let first = ids(&mut client, &conversation)[0].clone();
    let again = json!({ "type": "chat", "conversation_id": conversation, "replaces": first,
        "message": "one", "model": "large" });
    assert_eq!(client.ask(again)["response"], "large: one");
    assert_eq!(
        say(&mut client, &conversation, "two")["response"],
        "scripted: two"
    );
    let update = |more: Value| {
        let mut update = json!({ "type": "update_conversation", "conversation_id": conversation });
        for (key, value) in more.as_object().unwrap() {
            update[key] = value.clone();
        }
        update
    };
    let changed = client.ask(update(
        json!({ "model": "large", "instructions": "Be brief." }),
    ));
    assert_eq!(changed["model"], "large");
    assert_eq!(
        say(&mut client, &conversation, "three")["response"],
        "large: three"
    );
    let system = model.requests().last().unwrap()["messages"][0]["content"].to_string();
    assert!(system.contains("Be brief."), "{system}");
    let refused = why(&mut client, &update(json!({ "model": "huge" })));
    assert!(
        refused.contains("huge") && refused.contains("large"),
        "{refused}"
    );
    let changed = client.ask(update(json!({ "model": "", "instructions": "" })));
    assert_eq!(changed.get("model"), None);
    assert_eq!(
        say(&mut client, &conversation, "four")["response"],
        "scripted: four"
    );
}

#[test]
fn each_person_pins_archives_and_reads_for_themselves() {
    let model = echo();
    let home =
        Home::start(model.config_with(json!({ "privacy": { "conversations": "household" } })));
    let mut one = home.websocket(&home.tokens.user);
    let mut other = home.admin();
    let conversation = one.chat("one")["conversation_id"].clone();
    let row = |client: &mut Client, archived: bool| {
        let list = json!({ "type": "list_conversations", "archived": archived });
        client.ask(list)["conversations"][0].clone()
    };
    assert_eq!(row(&mut one, false).get("unread"), None);
    assert_eq!(row(&mut other, false)["unread"], true);
    other.ask(json!({ "type": "mark_read", "conversation_id": conversation }));
    assert_eq!(row(&mut other, false).get("unread"), None);
    say(&mut one, &conversation, "two");
    assert_eq!(row(&mut other, false)["unread"], true);

    one.ask(
        json!({ "type": "update_conversation", "conversation_id": conversation,
        "archived": true, "pinned": true }),
    );
    assert_eq!(row(&mut one, false), Value::Null);
    assert_eq!(row(&mut one, true)["archived"], true);
    assert_eq!(row(&mut one, true)["pinned"], true);
    assert_eq!(row(&mut other, false).get("archived"), None);
    one.ask(
        json!({ "type": "update_conversation", "conversation_id": conversation,
        "archived": false }),
    );
    assert_eq!(row(&mut one, false)["pinned"], true);
}

#[test]
fn the_files_of_a_message_go_with_each_version() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let data = "RmxvdXI=";
    let put = client.ask(json!({ "type": "put_attachment", "name": "a.txt", "bytes": 5 }));
    let file = put["attachment_id"].clone();
    client.ask(json!({ "type": "put_attachment_part", "attachment_id": file, "data": data }));
    let first = client.ask(json!({ "type": "chat", "message": "look", "attachments": [file] }));
    let conversation = first["conversation_id"].clone();
    let message = ids(&mut client, &conversation)[0].clone();
    client.ask(
        json!({ "type": "chat", "conversation_id": conversation, "replaces": message,
        "message": "look again", "attachments": [file] }),
    );
    let page = json!({ "type": "get_messages", "conversation_id": conversation });
    let copy = client.ask(page)["messages"][0]["attachments"][0].clone();
    assert_ne!(copy["attachment_id"], file);
    client.ask(json!({ "type": "delete_message", "message_id": message }));
    let read = json!({ "type": "get_attachment", "attachment_id": copy["attachment_id"] });
    assert_eq!(client.ask(read)["data"], data);
}

#[test]
fn a_conversation_of_the_page_gets_a_title_from_the_model() {
    let titles = |request: &Value| {
        let system = request["messages"][0]["content"].as_str().unwrap();
        system.starts_with("You name conversations")
    };
    let model = Model::start(move |request, _| match titles(request) {
        true => Act::say("\"Pancakes for four.\""),
        false => Act::say("Flour, eggs and milk."),
    });
    let home = Home::start(model.config_with(json!({ "titles": true })));
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["conversation.renamed"] }));
    let ask = |surface: &str| json!({ "type": "chat", "message": "how do I make pancakes?", "surface": surface });
    let first = client.ask(ask("page"));
    let conversation = first["conversation_id"].clone();
    assert_eq!(
        client.event("conversation.renamed")["title"],
        "Pancakes for four"
    );
    let request = model.requests()[1].clone();
    assert!(
        request["messages"].to_string().contains("Flour, eggs"),
        "{request}"
    );
    assert_eq!(request.get("tools"), None);
    // Once, and only there; and a person's title stays.
    say(&mut client, &conversation, "for six");
    client.ask(ask("terminal"));
    assert_eq!(model.requests().iter().filter(|one| titles(one)).count(), 1);
    client.ask(json!({ "type": "update_config", "config": { "titles": false } }));
    client.ask(ask("page"));
    client.ask(ask("plain"));
    assert_eq!(model.requests().iter().filter(|one| titles(one)).count(), 1);
}

#[test]
fn a_title_that_a_person_gave_stays() {
    let ((named, asked), (go_on, waits)) = (channel(), channel::<()>());
    let waits = Mutex::new(waits);
    let model = Model::start(move |request, _| {
        let system = request["messages"][0]["content"].as_str().unwrap();
        if system.starts_with("You name conversations") {
            named.send(()).unwrap();
            waits.lock().unwrap().recv_timeout(MAX_WAIT).unwrap();
            return Act::say("Pancakes");
        }
        Act::say("Flour.")
    });
    let home = Home::start(model.config_with(json!({ "titles": true })));
    let mut client = home.admin();
    let ask = json!({ "type": "chat", "message": "how?", "surface": "page" });
    let conversation = client.ask(ask)["conversation_id"].clone();
    asked.recv_timeout(MAX_WAIT).unwrap();
    client.ask(
        json!({ "type": "rename_conversation", "conversation_id": conversation,
        "title": "Mine" }),
    );
    go_on.send(()).unwrap();
    // It comes after the title.
    say(&mut client, &conversation, "for six");
    let row = client.ask(json!({ "type": "list_conversations" }))["conversations"][0].clone();
    assert_eq!(row["title"], "Mine");
}

#[test]
fn what_is_not_shown_is_exported_and_imported() {
    let model = echo();
    let home = Home::start(model.config());
    let mut client = home.admin();
    let first = client.chat("how war is it");
    let conversation = &first["conversation_id"];
    let asked = ids(&mut client, conversation).remove(0);
    replace(&mut client, conversation, &asked, "how warm is it");
    let hidden = json!({
        "type": "get_messages", "conversation_id": conversation, "hidden": true, "limit": 1,
    });
    let page = client.ask(hidden.clone());
    assert_eq!(page["messages"][0]["content"], "scripted: how war is it");
    assert_eq!(page["has_more"], true);
    let mut earlier = hidden.clone();
    earlier["before"] = page["messages"][0]["id"].clone();
    let page = client.ask(earlier);
    assert_eq!(page["messages"][0]["content"], "how war is it");
    assert_eq!(page["has_more"], false);
    // As little for others as what is shown.
    let mut other = home.websocket(&home.tokens.user);
    assert_eq!(other.refused(hidden), "not_found");

    let exported = |arguments: &[&str]| {
        let id = conversation.as_str().unwrap();
        let arguments = [&["export", "--conversation", id], arguments].concat();
        let output = run(home.folder.path(), &arguments);
        assert!(output.status.success(), "{}", printed(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = exported(&["--format", "markdown"]);
    let (shown, hidden) = text.split_once("# Versions that are not shown").unwrap();
    let (warm, war) = ("scripted: how warm is it", "scripted: how war is it");
    assert!(shown.contains(warm) && !shown.contains(war), "{shown}");
    assert!(hidden.contains(war) && !hidden.contains(warm), "{hidden}");
    let lines = exported(&[]);
    let is_hidden = |line: &&str| line.contains(r#""type":"hidden_message""#);
    assert_eq!(lines.lines().filter(is_hidden).count(), 2);
    let elsewhere = Home::start(model.config());
    let file = elsewhere.folder.path().join("export.jsonl");
    std::fs::write(&file, &lines).unwrap();
    let output = run(elsewhere.folder.path(), &["import", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", printed(&output));
    let mut client = elsewhere.admin();
    let listed = client.ask(json!({ "type": "list_conversations" }));
    let id = &listed["conversations"][0]["id"];
    let imported = texts(&mut client, id);
    assert_eq!(imported, ["how warm is it", "scripted: how warm is it"]);
    let asked = ids(&mut client, id).remove(0);
    let earlier = client.ask(json!({ "type": "get_messages", "conversation_id": id }));
    let earlier = earlier["messages"][0]["versions"][0].clone();
    assert_ne!(earlier, json!(asked));
    client.ask(json!({ "type": "select_version", "message_id": earlier }));
    assert_eq!(
        texts(&mut client, id),
        ["how war is it", "scripted: how war is it"]
    );
}

/// What a person notes for themselves, their other devices learn and nobody else.
#[test]
fn marks_are_told_to_the_other_connections_of_the_person_alone() {
    let model = echo();
    let home =
        Home::start(model.config_with(json!({ "privacy": { "conversations": "household" } })));
    let mut phone = home.websocket(&home.tokens.user);
    let mut laptop = home.websocket(&home.tokens.user);
    let mut admin = home.admin();
    let conversation = admin.chat("one")["conversation_id"].clone();
    let events =
        json!({ "type": "subscribe", "events": ["conversation.changed", "conversation.renamed"] });
    let mut other = home.admin();
    for client in [&mut phone, &mut laptop, &mut other] {
        client.ask(events.clone());
    }
    let pin =
        json!({ "type": "update_conversation", "conversation_id": conversation, "pinned": true });
    let read = json!({ "type": "mark_read", "conversation_id": conversation });
    for mark in [&pin, &read] {
        phone.ask(mark.clone());
        let told = laptop.event("conversation.changed");
        assert_eq!(told["marks_only"], true, "{told}");
    }
    // There is nothing new to tell.
    phone.ask(read);
    admin.ask(
        json!({ "type": "rename_conversation", "conversation_id": conversation,
        "title": "A \u{202e}b" }),
    );
    for client in [&mut phone, &mut laptop, &mut other] {
        let next = client.receive();
        assert_eq!(next["event"], "conversation.renamed", "{next}");
        assert_eq!(next["title"], "A b");
    }
    let nothing = why(
        &mut admin,
        &json!({ "type": "rename_conversation",
        "conversation_id": conversation, "title": "\u{200b}" }),
    );
    assert!(nothing.contains("title"), "{nothing}");
}
