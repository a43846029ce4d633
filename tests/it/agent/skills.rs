//! Skills: installed by an admin, named to the model, read when needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::program::{Program, printed, run};

const PLANNER: &str = "---\nname: meal-planner\ndescription: >\n  Plans the meals of a week.\n  Use \
                       it when somebody asks what to cook.\n---\n# Meals\n\nRead \
                       references/likes.md first.\n";

/// A folder with a skill.
fn skill(root: &Path, folder: &str, manifest: &str) -> PathBuf {
    let folder = root.join(folder);
    fs::create_dir_all(folder.join("references")).unwrap();
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::write(folder.join("SKILL.md"), manifest).unwrap();
    fs::write(folder.join("references/likes.md"), "Leo likes peas.\n").unwrap();
    let script = folder.join("scripts/count.sh");
    fs::write(&script, "#!/bin/sh\necho counted $1\n").unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    folder
}

fn skill_command(data_dir: &Path, words: &[&str]) -> (bool, String) {
    let output = run(data_dir, &[&["skill"], words].concat());
    (output.status.success(), printed(&output))
}

fn prompt(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

/// The results of tools in a request.
fn results(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

const LINE: &str = "\n- meal-planner: Plans the meals of a week. Use it when somebody asks what to \
                    cook.";

#[test]
fn a_skill_is_used_by_a_running_server_until_it_is_removed() {
    let reads = [
        json!({ "name": "meal-planner" }),
        json!({ "name": "meal-planner", "file": "references/likes.md" }),
        json!({ "name": "meal-planner", "file": "../../config.json" }),
        json!({ "name": "meal-planner", "file": "references/none.md" }),
        json!({ "name": "../meal-planner" }),
    ];
    let model = Model::start(move |request, _| match results(request).len() {
        0 if offered(request).contains(&"read_skill") => {
            let calls = reads
                .iter()
                .map(|read| ("read_skill".to_owned(), read.clone()));
            Act::Call(calls.collect())
        }
        _ => Act::say("Peas."),
    });
    let folder = TemporaryDirectory::new();
    let mut config = model.config();
    // Reading asks nobody.
    config["permission_mode"] = json!("ask");
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut user = support::client::Client::websocket(program.address);
    user.authenticate(&tokens.user);
    user.chat("What is for dinner?");
    let before = model.requests().pop().unwrap();
    assert!(!offered(&before).contains(&"read_skill"), "{before}");
    assert!(!prompt(&before).contains("kills"), "{before}");

    let sources = TemporaryDirectory::new();
    let planner = skill(sources.path(), "meal-planner", PLANNER);
    let (ok, said) = skill_command(folder.path(), &["add", planner.to_str().unwrap()]);
    assert!(ok, "{said}");
    assert!(said.contains("Installed meal-planner: Plans"), "{said}");
    user.chat("What is for dinner?");
    let requests = model.requests();
    let [.., first, last] = &requests[..] else {
        panic!("two requests");
    };
    assert!(prompt(first).contains(LINE), "{first}");
    assert_eq!(
        offered(first)
            .iter()
            .filter(|name| **name == "read_skill")
            .count(),
        1
    );
    let [instructions, file, outside, missing, unknown] = results(last)[..] else {
        panic!("{last}");
    };
    assert_eq!(
        instructions,
        "[Files of this skill: references/likes.md, scripts/count.sh. Scripts cannot run here, \
         because run_command is off: do what you can without, and say what you could not do.]\n\n\
         # Meals\n\nRead references/likes.md first."
    );
    assert_eq!(file, "Leo likes peas.\n");
    assert!(outside.contains("no path may hold .."), "{outside}");
    assert!(missing.contains("references/likes.md"), "{missing}");
    assert!(unknown.contains("there are meal-planner"), "{unknown}");

    // A changed one replaces it.
    fs::write(
        planner.join("SKILL.md"),
        PLANNER.replace("a week", "a month"),
    )
    .unwrap();
    let (ok, said) = skill_command(folder.path(), &["add", planner.to_str().unwrap()]);
    assert!(ok && said.contains("Replaced meal-planner"), "{said}");
    user.chat("And then?");
    assert!(prompt(model.requests().last().unwrap()).contains("meals of a month"));

    // Those who use the page see it, guests do not, and admins remove it.
    let mut viewer = support::client::Client::websocket(program.address);
    viewer.authenticate(&tokens.viewer);
    assert_eq!(
        viewer.refused(json!({ "type": "list_skills" })),
        "unauthorized"
    );
    let listed = user.ask(json!({ "type": "list_skills" }));
    assert_eq!(listed["skills"][0]["name"], "meal-planner", "{listed}");
    assert_eq!(
        listed["skills"][0]["files"],
        json!(["references/likes.md", "scripts/count.sh"])
    );
    let remove = json!({ "type": "remove_skill", "name": "meal-planner" });
    assert_eq!(user.refused(remove.clone()), "unauthorized");
    let mut admin = support::client::Client::websocket(program.address);
    admin.authenticate(&tokens.admin);
    admin.ask(remove.clone());
    assert_eq!(admin.refused(remove), "not_found");
    user.chat("And now?");
    let after = model.requests().pop().unwrap();
    assert!(!offered(&after).contains(&"read_skill"), "{after}");
    assert!(!folder.path().join("skills/meal-planner").exists());
}

#[test]
fn what_is_no_skill_is_refused_and_changes_nothing() {
    let data = TemporaryDirectory::new();
    make_people(data.path());
    let sources = TemporaryDirectory::new();
    let good = skill(sources.path(), "meal-planner", PLANNER);
    assert!(skill_command(data.path(), &["add", good.to_str().unwrap()]).0);
    let refused = |folder: &Path| {
        let (ok, said) = skill_command(data.path(), &["add", folder.to_str().unwrap()]);
        assert!(!ok, "{said}");
        said
    };
    let broken = skill(
        sources.path(),
        "broken",
        "---\nname: Meal Planner\ndescription: x\n---\n",
    );
    let said = refused(&broken);
    assert!(
        said.contains("broken/SKILL.md: line 2: the name \"Meal Planner\" must be"),
        "{said}"
    );
    assert!(said.contains("change it"), "{said}");
    let said = refused(&sources.path().join("none"));
    assert!(said.contains("there is no SKILL.md in it"), "{said}");
    let linked = skill(sources.path(), "linked", PLANNER);
    symlink("/etc/passwd", linked.join("references/passwd")).unwrap();
    assert!(refused(&linked).contains("references/passwd: it is a symbolic link"));
    let linked = skill(sources.path(), "linked-folder", PLANNER);
    symlink("/etc", linked.join("etc")).unwrap();
    assert!(refused(&linked).contains("it is a symbolic link"));
    let said = refused(&skill(sources.path(), "planner", PLANNER));
    assert!(
        said.contains("called \"planner\", but its SKILL.md names the skill \"meal-planner\""),
        "{said}"
    );
    let large = skill(sources.path(), "large", PLANNER);
    fs::write(large.join("large.bin"), vec![0; 4 * 1024 * 1024]).unwrap();
    assert!(refused(&large).contains("at most 4194304 bytes"));
    let deep = skill(sources.path(), "deep", PLANNER);
    let below = deep.join(["d"; 9].join("/"));
    fs::create_dir_all(&below).unwrap();
    fs::write(below.join("x"), "x").unwrap();
    assert!(refused(&deep).contains("folders are inside each other"));

    let (ok, listed) = skill_command(data.path(), &["list", "--json"]);
    assert!(ok);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["name"], "meal-planner");
    // Only what is whole, and nothing unfinished.
    let entries = fs::read_dir(data.path().join("skills")).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["meal-planner"]);
    for name in ["none", "..", "../skills", "meal-planner/references"] {
        let (ok, said) = skill_command(data.path(), &["remove", name]);
        assert!(!ok && said.contains("there is no skill"), "{said}");
    }
    assert!(skill_command(data.path(), &["remove", "meal-planner"]).0);
}

#[test]
fn scripts_run_only_through_run_command_and_its_approval() {
    let model = Model::start(|request, _| match results(request)[..] {
        [] => Act::call("read_skill", json!({ "name": "meal-planner" })),
        [read] => {
            let folder = read.split("they are in ").nth(1).unwrap();
            let folder = folder.split(".]").next().unwrap();
            let command = format!("{folder}/scripts/count.sh peas; cat {folder}/../../config.json");
            Act::call("run_command", json!({ "command": command }))
        }
        _ => Act::say("Done."),
    });
    let config = model.config_with(json!({
        "permission_mode": "ask", "tools": { "run_command": { "enabled": true } },
    }));
    let home = Home::start(config);
    let sources = TemporaryDirectory::new();
    let planner = skill(sources.path(), "meal-planner", PLANNER);
    let (ok, said) = skill_command(home.folder.path(), &["add", planner.to_str().unwrap()]);
    assert!(ok, "{said}");
    let mut admin = home.admin();
    admin.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    admin.send(&json!({ "type": "chat", "message": "Count." }));
    let asked = admin.event("approval.requested");
    assert_eq!(asked["tool"], "run_command");
    admin.send(&json!({ "type": "approve", "approval_id": asked["approval_id"], "id": 1 }));
    let requests = model.wait_for_requests(3);
    let counted = results(&requests[2])[1];
    assert!(counted.contains("counted peas"), "{counted}");
    if !counted.contains("Permission denied") {
        println!("skipped: this kernel has no Landlock");
    }
    assert!(
        !counted.contains("provider") || !counted.contains("Permission denied"),
        "{counted}"
    );
}

#[test]
fn only_whom_the_tool_is_offered_is_told_of_skills() {
    let model = Model::saying("Hello.");
    let config = model.config_with(json!({
        "people": { "user": { "tools": ["recall"] } },
    }));
    let home = Home::start(config);
    let sources = TemporaryDirectory::new();
    let planner = skill(sources.path(), "meal-planner", PLANNER);
    assert!(skill_command(home.folder.path(), &["add", planner.to_str().unwrap()]).0);
    home.admin().chat("hello");
    home.websocket(&home.tokens.user).chat("hello");
    let requests = model.requests();
    assert!(prompt(&requests[0]).contains(LINE));
    assert!(
        !prompt(&requests[1]).contains("meal-planner"),
        "{}",
        requests[1]
    );
}

#[test]
fn a_backup_brings_skills_back() {
    let data = TemporaryDirectory::new();
    write_config(data.path(), json!({}));
    make_people(data.path());
    let sources = TemporaryDirectory::new();
    let planner = skill(sources.path(), "meal-planner", PLANNER);
    assert!(skill_command(data.path(), &["add", planner.to_str().unwrap()]).0);
    let file = sources.path().join("backup.db");
    let file = file.to_str().unwrap();
    let good = |words: &[&str]| {
        let output = run(data.path(), words);
        assert!(output.status.success(), "{}", printed(&output));
    };
    good(&["backup", file]);
    good(&["skill", "remove", "meal-planner"]);
    good(&["restore", file]);
    let skill = data.path().join("skills/meal-planner");
    assert_eq!(fs::read_to_string(skill.join("SKILL.md")).unwrap(), PLANNER);
    let script = fs::metadata(skill.join("scripts/count.sh")).unwrap();
    assert_eq!(script.permissions().mode() & 0o777, 0o700);
    let (_, listed) = skill_command(data.path(), &["list"]);
    assert!(listed.contains("meal-planner"), "{listed}");
}
