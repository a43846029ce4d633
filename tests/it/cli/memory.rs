//! What a person finds and deletes from the command line.

use base::clock::Clock;
use serde_json::Value;
use store::{NewMemory, Store};

use support::eventually;
use support::home::{Home, TemporaryDirectory};
use support::model::Model;
use support::program::{Program, printed, run};

fn lines(folder: &TemporaryDirectory, arguments: &[&str]) -> Vec<String> {
    let output = run(folder.path(), arguments);
    assert!(output.status.success(), "{}", printed(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn parsed(folder: &TemporaryDirectory, arguments: &[&str]) -> Value {
    serde_json::from_str(&lines(folder, arguments).join("\n")).unwrap()
}

#[test]
fn memories_are_listed_found_and_deleted_beside_a_running_server() {
    let folder = TemporaryDirectory::new();
    let _program = Program::serve(folder.path());
    let empty = run(folder.path(), &["memory", "list"]);
    assert!(printed(&empty).contains("Nothing is remembered yet"));
    let store = Store::open(&folder.path().join("hearth.db"), Clock::system()).unwrap();
    let tea = store
        .remember(NewMemory {
            content: "Ann drinks\n green tea".to_owned(),
            speaker: Some("Ann".to_owned()),
            ..NewMemory::default()
        })
        .unwrap();
    store
        .remember(NewMemory {
            content: "the bins go out on Tuesday".to_owned(),
            search_words: vec!["garbage".to_owned()],
            ..NewMemory::default()
        })
        .unwrap();
    // A caller who claims to be Ann.
    store
        .remember(NewMemory {
            content: "the key is under the mat".to_owned(),
            speaker: Some("Ann".to_owned()),
            account: Some("door".to_owned()),
            ..NewMemory::default()
        })
        .unwrap();
    store.close();

    let listed = lines(&folder, &["memory", "list"]);
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert!(
        listed[1].contains("  Ann by webhook door  household  the key"),
        "{listed:?}"
    );
    let claimed = parsed(&folder, &["memory", "search", "key", "--json"]);
    assert_eq!(claimed[0]["speaker"], "Ann by webhook door");
    assert!(
        listed[2].contains("  -                    household  the bins go out on Tuesday"),
        "{listed:?}"
    );
    assert!(
        listed[3].starts_with(&tea.id.to_string())
            && listed[3].ends_with("Ann                  household  Ann drinks green tea"),
        "{listed:?}"
    );
    let found = parsed(&folder, &["memory", "search", "TEA", "--json"]);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["speaker"], "Ann");
    assert_eq!(found[0]["content"], "Ann drinks\n green tea");
    assert_eq!(found[0].get("search_words"), None);
    let found = parsed(&folder, &["memory", "search", "garbage", "--json"]);
    assert_eq!(found[0]["content"], "the bins go out on Tuesday");
    assert_eq!(found[0]["search_words"], serde_json::json!(["garbage"]));

    let id = tea.id.to_string();
    let deleted = run(folder.path(), &["memory", "remove", &id]);
    assert_eq!(printed(&deleted), format!("Removed {id}.\n"));
    let again = run(folder.path(), &["memory", "remove", &id]);
    assert_eq!(again.status.code(), Some(1));
    assert!(printed(&again).contains(&format!("there is no memory {id}")));
    let none = run(folder.path(), &["memory", "search", "tea"]);
    assert!(printed(&none).contains("No memory matches."));
    let usage = run(folder.path(), &["memory", "search"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn memories_are_written_and_changed_and_a_backup_is_started() {
    let folder = TemporaryDirectory::new();
    let none = run(folder.path(), &["backup", "--start"]);
    assert_eq!(none.status.code(), Some(1), "{}", printed(&none));
    let _program = Program::serve(folder.path());
    let id = |arguments: &[&str]| lines(&folder, arguments).remove(0);
    let bins = id(&["memory", "add", "The bins go out", "on Monday"]);
    let changed = id(&["memory", "change", &bins, "The bins go out on Tuesday"]);
    let nothing = run(folder.path(), &["memory", "change", &changed]);
    assert_eq!(nothing.status.code(), Some(2), "{}", printed(&nothing));
    // What is nobody's own can be for some, and not private.
    let private = ["memory", "change", &changed, "--audience", "private"];
    assert_eq!(run(folder.path(), &private).status.code(), Some(1));
    id(&["memory", "change", &changed, "--audience", "admin"]);
    let listed = parsed(&folder, &["memory", "list", "--json"]);
    assert_eq!(listed[0]["content"], "The bins go out on Tuesday");
    assert_eq!(listed[0]["audience"], serde_json::json!(["admin"]));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let started = run(folder.path(), &["backup", "--start"]);
    assert!(printed(&started).contains("The server makes it now"));
    eventually("the backup is listed", || {
        let backups = parsed(&folder, &["backup", "--list", "--json"]);
        (backups.as_array().unwrap().len() == 1).then_some(())
    });
}

#[test]
fn messages_are_found_in_all_conversations() {
    let model = Model::saying("It was the pump that hummed.");
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    client.chat(&format!("{} the boiler hums at night", "la ".repeat(100)));
    client.chat("what is for dinner?");
    let found = client.ask(serde_json::json!({ "type": "search_messages", "query": "boiler" }));
    let snippet = found["messages"][0]["snippet"].as_str().unwrap();
    assert!(
        snippet.starts_with('…') && snippet.ends_with("the boiler hums at night"),
        "{snippet}"
    );
    home.stop();

    // In any form, and the last word unfinished.
    for query in [&["boilers"][..], &["boil"], &["boiler", "nigh"]] {
        let found = lines(&home.folder, &[&["search"], query].concat());
        assert!(
            found
                .iter()
                .any(|line| line.ends_with("boiler hums at night")),
            "{found:?}"
        );
    }
    assert!(lines(&home.folder, &["search", "chimney"]).is_empty());
    let one = parsed(&home.folder, &["search", "hum", "--limit", "1", "--json"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    let passage = one[0]["passage"].as_array().unwrap();
    assert!((2..=3).contains(&passage.len()), "{passage:?}");
}
