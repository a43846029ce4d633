//! Senders of webhook accounts that are linked to people.

use std::time::Duration;

use serde_json::{Value, json};

use base::people::UserRole;
use support::client::Client;
use support::eventually;
use support::home::Home;
use support::http::{Answer, post};
use support::model::{Act, Model};
use support::program::run;
use support::receiver::Receiver;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const WRONG: &str = "This code does not work";

/// Two accounts with a secret, one that is trusted, and one without a secret.
fn config(model: &Model, receiver: &Receiver) -> Value {
    let account = |path: &str, more: Value| {
        let mut account = json!({
            "incoming_path": path, "outgoing_url": receiver.url(), "secret": SECRET,
        });
        for (key, value) in more.as_object().unwrap() {
            account[key] = value.clone();
        }
        account
    };
    model.config_with(json!({
        "permission_mode": "ask",
        "channels": [
            { "name": "lan", "type": "tcp", "port": 0 },
            { "name": "hooks", "type": "webhook", "accounts": {
                "bridge": account("/bridge", json!({ "tools": ["remember", "recall"] })),
                "other": account("/other", json!({})),
                "own": account("/own", json!({
                    "tools": ["remember", "recall", "lists", "schedule"], "trusted": true,
                })),
                "open": account("/open", json!({ "secret": null })),
                "mapped": account("/mapped", json!({
                    "map": { "message": "{/text}", "user_id": "{/from}" },
                })),
            } },
        ],
    }))
}

fn send(home: &Home, path: &str, body: Value) -> Answer {
    let headers = [("x-service-secret", SECRET), ("prefer", "wait=60")];
    post(home.address(), path, &headers, &body)
}

/// What a sender is answered.
fn said(home: &Home, path: &str, sender: &str, message: &str) -> String {
    let body = json!({ "message": message, "user_id": sender, "conversation_id": "chat" });
    let answer = send(home, path, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["data"]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn code(client: &mut Client, account: &str) -> String {
    let made = client.ask(json!({ "type": "link_sender", "account": account }));
    made["code"].as_str().unwrap().to_owned()
}

fn link(home: &Home, client: &mut Client, account: &str, sender: &str) {
    let code = code(client, account);
    let answer = said(
        home,
        &format!("/{account}"),
        sender,
        &format!("/link {code}"),
    );
    assert!(answer.starts_with("This chat is linked to"), "{answer}");
}

fn conversations(client: &mut Client) -> Vec<Value> {
    let listed = client.ask(json!({ "type": "list_conversations" }));
    listed["conversations"].as_array().unwrap().clone()
}

/// The newest conversation that is no notice.
fn newest(client: &mut Client) -> Value {
    let mut all = conversations(client);
    all.retain(|one| one["channel"] != "notice");
    all.remove(0)
}

#[test]
fn what_a_linked_sender_sends_is_the_person_s_own() {
    let (model, receiver) = (Model::saying("Noted."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let (mut user, mut admin) = (home.websocket(&home.tokens.user), home.admin());
    link(&home, &mut user, "bridge", "+47 1");
    assert!(model.requests().is_empty(), "no model sees the code");
    assert_eq!(said(&home, "/bridge", "+47 1", "plums"), "Noted.");
    let own = newest(&mut user);
    assert_eq!(own["owner"], "user", "{own}");
    assert_eq!(own["audience"], "private", "{own}");
    assert_eq!(own["channel"], "outside_sender:bridge", "{own}");
    assert!(
        conversations(&mut admin).is_empty(),
        "an admin reads no diary"
    );
    // It goes on, and the model knows who speaks.
    said(&home, "/bridge", "+47 1", "pears");
    let request = model.requests().pop().unwrap().to_string();
    assert!(
        request.contains("plums") && request.contains("[user, "),
        "{request}"
    );
    let message = last_message(&model);
    assert!(
        message.contains("<outside "),
        "its account is not trusted: {message}"
    );
    // Another sender of the same account is a stranger, and calls another conversation so.
    said(&home, "/bridge", "+47 2", "cherries");
    assert!(
        !model
            .requests()
            .pop()
            .unwrap()
            .to_string()
            .contains("plums")
    );
    let stranger = newest(&mut admin);
    assert_eq!(stranger["channel"], "webhook:bridge", "{stranger}");
    assert_eq!(stranger["audience"], "household", "{stranger}");
    // The person was told, and can end it; an admin may, too.
    let notices = conversations(&mut user);
    assert!(
        notices
            .iter()
            .any(|one| one["title"] == "A sender that is you"),
        "{notices:?}"
    );
    let listed = user.ask(json!({ "type": "list_senders" }))["senders"].clone();
    assert_eq!(listed[0]["account"], "bridge");
    assert_eq!(listed[0]["sender"], "+47 1");
    assert_eq!(listed[0]["person"], "user");
    assert_eq!(
        admin.ask(json!({ "type": "list_senders" }))["senders"],
        json!([])
    );
    let all = json!({ "type": "list_senders", "all": true });
    assert_eq!(admin.ask(all.clone())["senders"], listed);
    user.refused(all);
    let unlink = json!({ "type": "unlink_sender", "account": "bridge", "sender": "+47 1" });
    let mut other = home.websocket(&home.add_person("eve", UserRole::User));
    other.refused(unlink.clone());
    user.ask(unlink.clone());
    user.refused(unlink);
    said(&home, "/bridge", "+47 1", "grapes");
    let request = model.requests().pop().unwrap().to_string();
    assert!(
        !request.contains("plums") && request.contains("+47 1 by webhook bridge"),
        "{request}"
    );
}

#[test]
fn a_code_works_once_in_time_and_at_its_account() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let mut user = home.websocket(&home.tokens.user);
    let try_code =
        |home: &Home, path, sender, code: &str| said(home, path, sender, &format!("/link {code}"));
    // At another account, which knows it from then on.
    let elsewhere = code(&mut user, "bridge");
    assert!(try_code(&home, "/other", "a", &elsewhere).starts_with(WRONG));
    assert!(try_code(&home, "/bridge", "a", &elsewhere).starts_with(WRONG));
    // Too late.
    let late = code(&mut user, "bridge");
    home.clock.advance(Duration::from_secs(601));
    assert!(try_code(&home, "/bridge", "b", &late).starts_with(WRONG));
    // One that was replaced, and one that was used.
    let (replaced, used) = (code(&mut user, "bridge"), code(&mut user, "bridge"));
    assert!(try_code(&home, "/bridge", "c", &replaced).starts_with(WRONG));
    assert!(try_code(&home, "/bridge", "c", &used.to_uppercase()).contains("linked to user"));
    assert!(try_code(&home, "/bridge", "d", &used).starts_with(WRONG));
    // Who guesses must wait, and nobody else.
    for number in 0..5 {
        let guess = format!("aaaaaaaaa{}", char::from(b'b' + number));
        assert!(try_code(&home, "/bridge", "e", &guess).starts_with(WRONG));
    }
    let right = code(&mut user, "bridge");
    assert!(try_code(&home, "/bridge", "e", &right).starts_with("Too many codes"));
    assert!(try_code(&home, "/bridge", "f", &right).contains("linked to user"));
    // No model was asked, and no code is kept.
    assert!(model.requests().is_empty());
    let shown = run(home.folder.path(), &["export", "--all"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        !shown.contains(&right) && !shown.contains(&elsewhere),
        "{shown}"
    );
}

#[test]
fn a_repeat_of_the_command_is_answered_as_before() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let mut user = home.websocket(&home.tokens.user);
    let code = code(&mut user, "bridge");
    let body = json!({ "message": format!("/link {code}"), "user_id": "a" });
    let headers = [
        ("x-service-secret", SECRET),
        ("prefer", "wait=60"),
        ("idempotency-key", "k"),
    ];
    let answers = [(); 2].map(|()| post(home.address(), "/bridge", &headers, &body).json());
    assert_eq!(answers[0], answers[1]);
    assert!(
        answers[0]["data"]["message"]
            .to_string()
            .contains("linked to user"),
        "{answers:?}"
    );
}

#[test]
fn only_what_nobody_can_pretend_is_linked() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let mut user = home.websocket(&home.tokens.user);
    let refused = user.refused(json!({ "type": "link_sender", "account": "open" }));
    assert_eq!(refused, "invalid_request");
    user.refused(json!({ "type": "link_sender", "account": "nothing" }));
    let mut guest = home.websocket(&home.tokens.viewer);
    guest.refused(json!({ "type": "link_sender", "account": "bridge" }));
    let narrow = home.token("user", &json!({ "tools": ["recall"] }));
    let mut narrow = home.websocket(&narrow);
    narrow.refused(json!({ "type": "link_sender", "account": "bridge" }));
    // A name that was adapted may be that of two senders.
    let mapped = |from: &str, text: &str| {
        let answer = send(&home, "/mapped", json!({ "from": from, "text": text }));
        answer.json()["data"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let linked = mapped("ann", &format!("/link {}", code(&mut user, "mapped")));
    assert!(linked.contains("linked to user"), "{linked}");
    for (from, channel) in [
        ("ann", "outside_sender:mapped"),
        ("ann\n", "webhook:mapped"),
        (" ann", "webhook:mapped"),
    ] {
        mapped(from, "plums");
        assert_eq!(newest(&mut user)["channel"], channel, "{from:?}");
    }
    // Who is a guest since may not chat.
    home.admin()
        .ask(json!({ "type": "set_role", "name": "user", "role": "viewer" }));
    let refused = send(&home, "/mapped", json!({ "from": "ann", "text": "pears" }));
    assert_eq!(refused.status, 403, "{refused:?}");
}

/// What the model was asked last.
fn last_message(model: &Model) -> String {
    let request = model.requests().pop().unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap();
    last["content"].as_str().unwrap().to_owned()
}

/// The names of the tools that the model was offered last.
fn offered(model: &Model) -> Vec<String> {
    let request = model.requests().pop().unwrap();
    let tools = request["tools"].as_array().into_iter().flatten();
    let names = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name != "current_time").collect();
    names.sort();
    names
}

#[test]
fn tools_and_modes_are_the_lesser_of_the_account_s_and_the_person_s() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let mut config = config(&model, &receiver);
    config["people"] = json!({ "user": { "tools": ["recall", "lists"] } });
    let home = Home::start(config);
    let (mut user, mut admin) = (home.websocket(&home.tokens.user), home.admin());
    for (account, of_user, of_admin) in [
        ("bridge", &["recall"][..], &["recall", "remember"][..]),
        (
            "own",
            &["lists", "recall"],
            &["lists", "recall", "remember", "schedule"],
        ),
    ] {
        let path = format!("/{account}");
        link(&home, &mut user, account, "u");
        link(&home, &mut admin, account, "a");
        said(&home, &path, "u", "hello");
        assert_eq!(offered(&model), of_user, "{account}");
        said(&home, &path, "a", "hello");
        let mut found = offered(&model);
        found.retain(|name| !["notify", "web_fetch"].contains(&name.as_str()));
        assert_eq!(found, of_admin, "{account}");
    }
    // The words of a trusted account's sender are the person's own.
    let message = last_message(&model);
    assert!(message.ends_with("] hello"), "{message}");
}

#[test]
fn a_linked_sender_has_no_rights_of_an_admin() {
    let receiver = Receiver::start();
    let model = Model::start(|request, _| {
        let messages = request["messages"].as_array().unwrap();
        let last = &messages[messages.len() - 1];
        let text = last["content"].as_str().unwrap_or_default();
        match (last["role"] == "tool", text.split_once("forget ")) {
            (true, _) => Act::say(text),
            (false, Some((_, id))) => {
                let id: String = id
                    .chars()
                    .take_while(|letter| !letter.is_whitespace())
                    .collect();
                Act::call("forget", json!({ "memory_id": id }))
            }
            (false, None) => Act::call(
                "remember",
                json!({ "content": "The bins go out on Monday.", "share": true }),
            ),
        }
    });
    let mut config = config(&model, &receiver);
    config["permission_mode"] = json!("allow");
    config["channels"][1]["accounts"]["own"]["tools"] = json!(["forget"]);
    let home = Home::start(config);
    let (mut user, mut admin) = (home.websocket(&home.tokens.user), home.admin());
    user.chat("Remember for all when the bins go out.");
    let memories = admin.ask(json!({ "type": "list_memories" }));
    let id = memories["memories"][0]["memory_id"]
        .as_str()
        .unwrap()
        .to_owned();
    link(&home, &mut admin, "own", "a");
    let answer = said(&home, "/own", "a", &format!("forget {id}"));
    assert!(
        answer.contains("only user or an admin may change this"),
        "{answer}"
    );
    let answer = admin.chat(&format!("forget {id}"));
    assert!(
        !answer["response"].to_string().contains("only user"),
        "{answer}"
    );
}

#[test]
fn a_linked_sender_is_asked_for_what_the_account_may_do_unasked() {
    let receiver = Receiver::start();
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("remember", json!({ "content": "The bins go out." })),
        }
    });
    let mut config = config(&model, &receiver);
    config["channels"][1]["accounts"]["own"]["tool_permissions"] = json!({ "remember": "allow" });
    let home = Home::start(config);
    assert_eq!(said(&home, "/own", "anybody", "remember it"), "Done.");
    for mut person in [home.websocket(&home.tokens.user), home.admin()] {
        link(&home, &mut person, "own", "a");
        person.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
        let body = json!({ "message": "remember it", "user_id": "a" });
        let secret = [("x-service-secret", SECRET)];
        assert_eq!(post(home.address(), "/own", &secret, &body).status, 202);
        let event = person.receive();
        assert_eq!(event["event"], "approval.requested", "{event}");
        let unlink = json!({ "type": "unlink_sender", "account": "own", "sender": "a" });
        person.ask(unlink);
    }
}

#[test]
fn links_end_with_the_account_and_the_person() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let (mut user, mut admin) = (home.websocket(&home.tokens.user), home.admin());
    link(&home, &mut user, "bridge", "a");
    link(&home, &mut user, "own", "a");
    let doctor = String::from_utf8(run(home.folder.path(), &["doctor"]).stdout).unwrap();
    let says = "a of webhook account bridge is user; whoever runs its outgoing_url, at 127.0.0.1, \
                reads the answers";
    assert!(doctor.contains(says), "{doctor}");
    run(home.folder.path(), &["webhook", "remove", "bridge"]);
    let senders = |client: &mut Client, all| {
        let listed = client.ask(json!({ "type": "list_senders", "all": all }));
        let listed = listed["senders"].as_array().unwrap().clone();
        let accounts = listed
            .iter()
            .map(|one| one["account"].as_str().unwrap().to_owned());
        accounts.collect::<Vec<_>>()
    };
    eventually("the links of the account end", || {
        (senders(&mut user, false) == ["own"]).then_some(())
    });
    admin.ask(json!({ "type": "remove_user", "name": "user" }));
    assert!(senders(&mut admin, true).is_empty());
    said(&home, "/own", "a", "plums");
    assert_eq!(newest(&mut admin)["channel"], "webhook:own");
}

#[test]
fn the_terminal_links_lists_and_unlinks() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let url = format!("ws://{}/ws", home.address());
    let account = |words: &[&str]| {
        let token = ["--url", &url, "--token", &home.tokens.user];
        let words = [&["account"], words, &token].concat();
        let output = run(home.folder.path(), &words);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let command = account(&["link", "bridge"]);
    assert!(
        said(&home, "/bridge", "+47 1", &command).contains("linked to user"),
        "{command}"
    );
    assert!(account(&["senders"]).contains("+47 1"));
    account(&["unlink", "bridge", "+47 1"]);
    assert!(!account(&["senders"]).contains("+47 1"));
}

#[test]
fn what_came_through_a_sender_ends_with_that_link() {
    let (receiver, phone) = (Receiver::start(), Receiver::start());
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        match (last["role"] == "tool", text.split_once("remind me of ")) {
            (false, Some((_, what))) => Act::call(
                "schedule",
                json!({ "action": "create", "say": what, "at": "in 10 minutes" }),
            ),
            _ => Act::say("Set."),
        }
    });
    let mut config = config(&model, &receiver);
    config["permission_mode"] = json!("allow");
    config["people"] = json!({ "user": { "notifications": { "content": true, "ntfy": {
        "url": format!("http://{}", phone.address), "topic": "t",
    } } } });
    let home = Home::start(config);
    let mut user = home.websocket(&home.tokens.user);
    for (sender, what) in [("old phone", "the doctor"), ("new phone", "the bread")] {
        link(&home, &mut user, "own", sender);
        let body = json!({
            "message": format!("remind me of {what}"), "user_id": sender,
            "conversation_id": sender,
        });
        assert_eq!(send(&home, "/own", body).status, 200);
    }
    user.ask(json!({ "type": "unlink_sender", "account": "own", "sender": "old phone" }));
    home.server().advance_clock(Duration::from_secs(660));
    let called_back = receiver.wait_for(1).remove(0);
    assert_eq!(called_back.body["message"], "the bread", "{called_back:?}");
    // Behind those that say who is linked.
    assert_eq!(phone.wait_for(3)[2].body["message"], "the doctor");
    assert_eq!(
        (receiver.callbacks().len(), phone.callbacks().len()),
        (1, 3)
    );
}

#[test]
fn an_account_that_one_does_not_see_is_like_none() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let mut config = config(&model, &receiver);
    let accounts = &mut config["channels"][1]["accounts"];
    accounts["bridge"]["audience"] = json!(["admin"]);
    accounts["open"]["audience"] = json!(["admin"]);
    accounts["own"]["audience"] = json!(["user"]);
    let home = Home::start(config);
    let answer = |client: &mut Client, account: &str| {
        client.send(&json!({ "type": "link_sender", "account": account }));
        let answer = client.response();
        let said = answer["error"].as_str().unwrap_or_default();
        (answer["code"].clone(), said.replace(account, "NAME"))
    };
    let mut user = home.websocket(&home.tokens.user);
    let none = answer(&mut user, "nothing");
    assert_eq!(none.0, "not_found");
    for unseen in ["bridge", "open"] {
        assert_eq!(answer(&mut user, unseen), none, "{unseen}");
    }
    for seen in ["own", "other"] {
        code(&mut user, seen);
    }
    // Admins know all accounts.
    code(&mut home.admin(), "own");
    assert_eq!(answer(&mut home.admin(), "open").0, "invalid_request");
}

#[test]
fn signing_out_everywhere_ends_the_codes_that_were_made() {
    let (model, receiver) = (Model::saying("Hello."), Receiver::start());
    let home = Home::start(config(&model, &receiver));
    let mut user = home.websocket(&home.tokens.user);
    let code = code(&mut user, "bridge");
    user.ask(json!({ "type": "sign_out_everywhere" }));
    let answer = said(&home, "/bridge", "thief", &format!("/link {code}"));
    assert!(answer.starts_with(WRONG), "{answer}");
}

#[test]
fn a_question_ends_with_the_link_of_who_asked() {
    let receiver = Receiver::start();
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let add = json!({ "action": "add", "list": "shop", "items": ["bread"] });
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("lists", add),
        }
    });
    let home = Home::start(config(&model, &receiver));
    let mut user = home.websocket(&home.tokens.user);
    link(&home, &mut user, "own", "phone");
    user.ask(json!({ "type": "subscribe", "events": ["approval.requested", "approval.resolved"] }));
    let body = json!({ "message": "bread", "user_id": "phone", "conversation_id": "chat" });
    let headers = [("x-service-secret", SECRET)];
    assert_eq!(post(home.address(), "/own", &headers, &body).status, 202);
    let asked = user.event("approval.requested");
    let unlink = json!({ "type": "unlink_sender", "account": "own", "sender": "phone" });
    home.websocket(&home.tokens.user).ask(unlink);
    let resolved = user.event("approval.resolved");
    assert_eq!(resolved["approval_id"], asked["approval_id"]);
    assert_eq!(resolved["decision"], "denied");
    let approve = json!({ "type": "approve", "approval_id": asked["approval_id"] });
    assert_eq!(user.refused(approve), "invalid_request");
    model.wait_for_requests(2);
    let told = last_message(&model);
    assert!(told.contains("may not do this any more"), "{told}");
    let lists = user.ask(json!({ "type": "list_lists" }));
    assert_eq!(lists["lists"], json!([]));
}
