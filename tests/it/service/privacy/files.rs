//! Files of tools: each person's own, and everybody's.

use super::*;
use support::program::{printed, run};

/// What a tool answers in a new conversation of this audience.
fn answer(client: &mut Client, audience: &str, tool: &str, arguments: &Value) -> String {
    let message = format!("run {tool} {arguments}");
    let chat = json!({ "type": "chat", "message": message, "audience": audience });
    let reply = client.ask(chat)["response"].as_str().unwrap().to_owned();
    let said = reply
        .split_once(" answered: ")
        .or(reply.split_once(" failed: "));
    said.unwrap_or_else(|| panic!("{reply}"))
        .1
        .trim()
        .to_owned()
}

fn home() -> Home {
    Home::start(json!({
        "permission_mode": "allow",
        "tools": { "run_command": { "enabled": true } },
    }))
}

#[test]
fn a_private_conversation_works_with_its_owners_files() {
    let home = home();
    let cleo = home.add_person("cleo", UserRole::User);
    let [mut user, mut cleo] = [&home.tokens.user, &cleo].map(|token| home.websocket(token));
    let file = |path: &str| json!({ "path": path });
    let write = |path: &str| json!({ "path": path, "content": path });
    let private = "private";
    let wrote = answer(&mut user, private, "write_file", &write("gift.txt"));
    assert_eq!(wrote, "Wrote gift.txt (8 bytes). Only user sees it.");
    let wrote = answer(&mut user, private, "write_file", &write("shared/plan.txt"));
    assert_eq!(
        wrote,
        "Wrote plan.txt (15 bytes). Everybody in the household sees it."
    );
    let listed = answer(&mut user, private, "list_files", &json!({}));
    assert!(listed.starts_with("gift.txt (8 bytes"), "{listed}");
    assert!(listed.ends_with("\nshared/ (everybody's)"), "{listed}");
    assert_eq!(
        answer(&mut user, private, "read_file", &file("gift.txt")),
        "gift.txt"
    );

    // Nobody else finds it, nor does its owner where others read.
    for (who, audience) in [(&mut cleo, private), (&mut user, "household")] {
        let listed = answer(who, audience, "list_files", &json!({}));
        assert!(!listed.contains("gift.txt"), "{listed}");
        let missing = answer(who, audience, "read_file", &file("gift.txt"));
        assert!(missing.contains("no such file"), "{missing}");
        let plan = answer(who, audience, "read_file", &file("shared/plan.txt"));
        assert_eq!(plan, "shared/plan.txt");
    }
    let listed = answer(&mut cleo, "household", "list_files", &file("shared"));
    assert!(listed.starts_with("plan.txt"), "{listed}");

    // So do commands.
    let command = |text: &str| json!({ "command": text });
    let run = |who: &mut Client, text: &str| answer(who, private, "run_command", &command(text));
    assert_eq!(run(&mut user, "cat gift.txt"), "gift.txt");
    assert_eq!(run(&mut cleo, "cat $SHARED/plan.txt"), "shared/plan.txt");
    let place = run(&mut user, "pwd");
    if net::process::has_landlock() {
        let refused = run(&mut cleo, &format!("cat {place}/gift.txt"));
        assert!(refused.contains("denied"), "{refused}");
    }
}

#[test]
fn an_account_whose_conversations_one_person_sees_has_the_household_s_files() {
    let receiver = Receiver::start();
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match (last["role"] == "tool", text.contains("keep")) {
            (true, _) => Act::say(text),
            (_, true) => Act::call(
                "write_file",
                json!({ "path": "gift.txt", "content": "a bicycle" }),
            ),
            _ => Act::call("read_file", json!({ "path": "gift.txt" })),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "allow",
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": { "bell": {
                "incoming_path": "/bell", "outgoing_url": receiver.url(),
                "tools": ["read_file"], "audience": ["user"],
            } } },
        ],
    })));
    home.websocket(&home.tokens.user).chat("keep it");
    let body = json!({ "message": "What is in the file?" });
    assert_eq!(post(home.address(), "/bell", &[], &body).status, 202);
    let answer = receiver.wait_for(1).remove(0).body["message"].to_string();
    assert!(answer.contains("no such file"), "{answer}");
}

#[test]
fn what_a_command_found_among_somebody_s_files_is_gone_once_others_read() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let said = text
            .split_once("run ")
            .and_then(|(_, said)| said.split_once(' '));
        match said.filter(|_| last["role"] == "user") {
            Some((tool, rest)) => {
                let end = rest.rfind('}').unwrap() + 1;
                Act::call(tool, rest[..end].parse().unwrap())
            }
            None => Act::say("Done."),
        }
    });
    let home = Home::start(model.config_with(json!({
        "permission_mode": "allow",
        "tools": { "run_command": { "enabled": true } },
    })));
    let cleo = home.add_person("cleo", UserRole::User);
    let [mut user, mut cleo] = [&home.tokens.user, &cleo].map(|token| home.websocket(token));
    let shown = || model.requests().pop().unwrap()["messages"].to_string();
    let command = json!({ "command": "echo a bicycle; seq 20000" });
    let id = user.chat(&format!("run run_command {command}"))["conversation_id"].clone();
    let found = shown();
    assert!(found.contains("a bicycle"), "{found}");
    let kept = found.split_once("read_file with the path ");
    let (_, kept) = kept.unwrap_or_else(|| panic!("{found}"));
    let path = json!({ "path": kept.split_once(' ').unwrap().0 });
    let go_on = |text: String| json!({ "type": "chat", "conversation_id": id, "message": text });
    user.ask(go_on(format!("run read_file {path}")));
    assert_eq!(
        shown().matches("a bicycle").count(),
        4,
        "its owner reads on"
    );

    user.ask(json!({
        "type": "share_conversation", "conversation_id": id, "audience": "household",
    }));
    cleo.ask(go_on("Hello".to_owned()));
    let known = shown();
    assert!(known.contains("shared with more people since"), "{known}");
    cleo.ask(go_on(format!("run read_file {path}")));
    let missing = shown();
    assert!(missing.contains("is not kept here any more"), "{missing}");
}

#[test]
fn files_go_with_an_account_that_its_owner_deletes() {
    let home = home();
    let mut user = home.websocket(&home.tokens.user);
    let gift = json!({ "path": "gift.txt", "content": "a bicycle" });
    answer(&mut user, "private", "write_file", &gift);
    let people = || std::fs::read_dir(home.folder.path().join("people")).unwrap();
    assert_eq!(people().count(), 1);
    user.ask(json!({ "type": "delete_account", "password": support::home::PASSWORD }));
    assert_eq!(people().count(), 0);
}

#[test]
fn files_go_with_their_owner_or_to_somebody_else() {
    for heir in [None, Some("cleo")] {
        let home = home();
        let cleo = home.add_person("cleo", UserRole::User);
        let gift = json!({ "path": "gift.txt", "content": "a bicycle" });
        let mut user = home.websocket(&home.tokens.user);
        answer(&mut user, "private", "write_file", &gift);
        let mut words = vec!["user", "remove", "user", "--yes"];
        words.extend(heir.iter().flat_map(|heir| ["--hand-over-to", heir]));
        let removed = run(home.folder.path(), &words);
        assert!(removed.status.success(), "{}", printed(&removed));
        let mut cleo = home.websocket(&cleo);
        let path = json!({ "path": "from-user/gift.txt" });
        let found = answer(&mut cleo, "private", "read_file", &path);
        match heir {
            Some(_) => assert_eq!(found, "a bicycle"),
            None => assert!(found.contains("no such file"), "{found}"),
        }
        let people = std::fs::read_dir(home.folder.path().join("people")).unwrap();
        assert_eq!(people.count(), usize::from(heir.is_some()));
    }
}
