//! Reminders and routines: from the time that was set to the reply.

use std::path::Path;
use std::time::Duration;

use base::calendar::Timing;
use base::clock::Clock;
use base::secret::hmac_sha256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use store::{NewSchedule, Store, UserRole, Viewer};

use support::eventually;
use support::home::{Home, TemporaryDirectory, write_config};
use support::model::{Act, Model};
use support::program::{Program, printed, run};
use support::receiver::Receiver;

const HOUR: Duration = Duration::from_secs(3_600);
const SECRET: &str = "a secret of at least 24 bytes";

/// All messages of all conversations, by what they say.
fn said(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    let seen = store.seen(&Viewer::server());
    for conversation in seen.conversations(500, None, true).unwrap().conversations {
        let page = seen.messages(conversation.id, 500, None).unwrap();
        all.extend(page.messages.into_iter().map(|message| message.content));
    }
    all
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("hearth.db"), Clock::system()).unwrap()
}

#[test]
fn a_reminder_reaches_its_conversation_the_subscribers_and_a_webhook() {
    let (model, receiver) = (Model::saying("The bins!"), Receiver::start());
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "phone": {
            "incoming_path": "/webhook/phone", "outgoing_url": receiver.url(), "secret": SECRET,
        } } },
    ]);
    config["privacy"] = json!({ "conversations": "household" });
    let home = Home::start(config);
    let mut client = home.websocket(&home.tokens.user);
    let conversation = client.chat("hello")["conversation_id"].clone();
    let mut watcher = home.admin();
    watcher.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    client.ask(json!({
        "type": "create_schedule", "prompt": "Remind me of the bins", "at": "+3h",
        "conversation_id": conversation, "webhook": "phone",
    }));
    home.server().advance_clock(3 * HOUR);

    let question = watcher.event("message.created");
    assert_eq!(question["conversation_id"], conversation);
    assert_eq!(question["message"]["speaker"], "user");
    let content = question["message"]["content"].as_str().unwrap();
    assert!(
        content.starts_with("Remind me of the bins\n\n[scheduled for 2"),
        "{content}"
    );
    let reply = watcher.event("message.created");
    assert_eq!(reply["message"]["content"], "The bins!");
    assert_eq!(reply["turn_id"], question["turn_id"]);
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": question["turn_id"] }));
    assert_eq!(turn["channel"], "schedule");

    let callback = receiver.wait_for(1).remove(0);
    assert_eq!(
        callback.body,
        json!({ "message": "The bins!", "conversation_id": conversation })
    );
    assert_eq!(callback.header("x-service-secret"), Some(SECRET));
    let header = |name: &str| callback.header(name).unwrap().to_owned();
    let mut signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
    signed.push_str(std::str::from_utf8(&callback.raw).unwrap());
    let tag = hmac_sha256(SECRET.as_bytes(), signed.as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(tag));
    assert_eq!(header("webhook-signature"), signature);

    // The model was told what this is, and the routine is over, and says what became of it.
    let request = &model.requests()[1];
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let told = last["content"].as_str().unwrap();
    assert!(told.contains("set up earlier to come to you now"), "{told}");
    let left = client.ask(json!({ "type": "list_schedules" }));
    let over = &left["schedules"][0];
    assert_eq!(
        (&over["next_at"], &over["when"]),
        (&Value::Null, &json!("it has run"))
    );
    let id = over["schedule_id"].clone();
    let runs = client.ask(json!({ "type": "list_schedule_runs", "schedule_id": id }));
    assert_eq!(runs["runs"][0]["outcome"], "replied", "{runs}");
}

#[test]
fn results_go_to_an_account_while_their_person_may_send_them_there() {
    let (model, receiver) = (Model::saying("The bins!"), Receiver::start());
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "phone": {
            "incoming_path": "/webhook/phone", "outgoing_url": receiver.url(),
        } } },
    ]);
    config["privacy"] = json!({ "conversations": "household" });
    let home = Home::start(config);
    let cleo = home.add_person("cleo", UserRole::User);
    let (mut admin, mut user) = (home.admin(), home.websocket(&home.tokens.user));
    let mut cleo = home.websocket(&cleo);
    let plan = |what: &str| json!({ "type": "create_schedule", what: "Bins", "at": "+3h", "webhook": "phone" });
    user.ask(plan("prompt"));
    for client in [&mut user, &mut cleo, &mut admin] {
        client.ask(plan("say"));
    }
    let narrow = json!({ "tools": ["schedule"] });
    admin.ask(json!({ "type": "set_limits", "name": "user", "limits": narrow }));
    let audience = "channels.hooks.accounts.phone.audience";
    let set = run(
        home.folder.path(),
        &["config", "set", audience, r#"["admin"]"#],
    );
    assert!(set.status.success(), "{}", printed(&set));
    admin.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
    home.server().advance_clock(3 * HOUR);
    for _ in 0..4 {
        admin.event("chat.done");
    }
    // What there is was stored with the replies.
    let deliveries = admin.ask(json!({ "type": "list_deliveries" }));
    assert_eq!(deliveries["deliveries"].as_array().unwrap().len(), 1);
    assert_eq!(receiver.wait_for(1)[0].body["message"], "Bins");
}

#[test]
fn whoever_has_an_account_get_the_replies_is_lent_none_of_its_permissions() {
    let model = Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("Done."),
            false => Act::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        }
    });
    let receiver = Receiver::start();
    let mut config = model.config();
    config["permission_mode"] = json!("ask");
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "alarm": {
            "incoming_path": "/webhook/alarm", "outgoing_url": receiver.url(), "secret": SECRET,
            "tools": ["write_file"], "tool_permissions": { "write_file": "allow" },
        } } },
    ]);
    let home = Home::start(config);
    let events = json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] });
    for (mut client, is_asked) in [
        (home.websocket(&home.tokens.user), true),
        // An admin may give themselves what the account has.
        (home.admin(), false),
    ] {
        client.ask(events.clone());
        client.ask(json!({
            "type": "create_schedule", "prompt": "Write", "at": "+1h", "webhook": "alarm",
        }));
        home.server().advance_clock(HOUR);
        let event = client.receive();
        let expected = if is_asked {
            "approval.requested"
        } else {
            "chat.done"
        };
        assert_eq!(event["event"], expected, "{event}");
    }
}

#[test]
fn a_routine_comes_again_in_the_conversation_of_its_own() {
    let model = Model::saying("Done.");
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
    client.ask(json!({ "type": "create_schedule", "prompt": "Water", "cron": "0 * * * *" }));
    let mut conversations = Vec::new();
    for _ in 0..3 {
        home.server().advance_clock(HOUR);
        let done = client.event("chat.done");
        conversations.push(done["conversation_id"].clone());
    }
    assert!(conversations.iter().all(|one| *one == conversations[0]));
    let listed = client.ask(json!({ "type": "list_schedules" }));
    let schedule = &listed["schedules"][0];
    assert_eq!(schedule["conversation_id"], conversations[0]);
    assert!(schedule["last_at"].is_string() && schedule["next_at"].is_string());
    let id = schedule["schedule_id"].clone();
    client.ask(json!({ "type": "pause_schedule", "schedule_id": id }));
    home.server().advance_clock(5 * HOUR);
    client.ask(json!({ "type": "pause_schedule", "schedule_id": id, "paused": false }));
    home.server().advance_clock(HOUR);
    client.event("chat.done");
    let page = client.ask(json!({
        "type": "get_messages", "conversation_id": conversations[0],
    }));
    let messages = page["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 8, "nothing ran while it was paused: {page}");
}

#[test]
fn what_was_missed_while_off_runs_once_at_the_start_marked_late() {
    let model = Model::saying("Done.");
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    for request in [
        json!({ "type": "create_schedule", "prompt": "routine", "cron": "0 * * * *" }),
        json!({ "type": "create_schedule", "prompt": "reminder", "at": "+90m" }),
        json!({ "type": "create_schedule", "prompt": "not yet", "at": "+9h" }),
    ] {
        client.ask(request);
    }
    home.stop();
    home.clock.advance(5 * HOUR);
    home.restart();
    let mut client = home.admin();
    let store = open(home.folder.path());
    let said = eventually("both replies are there", || {
        let all = said(&store);
        (all.len() >= 4).then_some(all)
    });
    let questions: Vec<&String> = said.iter().filter(|text| *text != "Done.").collect();
    assert_eq!(questions.len(), 2, "{said:?}");
    for prompt in ["routine", "reminder"] {
        let late = format!("{prompt}\n\n[late: due at 2");
        let found = questions.iter().filter(|text| text.starts_with(&late));
        assert_eq!(found.count(), 1, "{said:?}");
    }
    let listed = client.ask(json!({ "type": "list_schedules" }));
    let all = listed["schedules"].as_array().unwrap().iter();
    let waiting = all.filter(|one| one["next_at"].is_string());
    assert_eq!(waiting.count(), 2, "{listed}");
    store.close();
}

#[test]
fn the_model_sets_a_reminder_which_comes_back_to_the_same_conversation() {
    let model = Model::start(|request, number| match number {
        0 => Act::call(
            "schedule",
            json!({ "action": "create", "prompt": "Tell Ann to call granny", "at": "+2h" }),
        ),
        _ => {
            let messages = request["messages"].as_array().unwrap();
            Act::Say(format!("heard: {}", messages.last().unwrap()["content"]))
        }
    });
    let mut config = model.config();
    config["tool_permissions"] = json!({ "schedule": "allow" });
    let home = Home::start(config);
    let mut client = home.admin();
    let asked = client.chat("remind me to call granny");
    let answer = asked["response"].as_str().unwrap();
    assert!(answer.contains("Set as sched_"), "{answer}");
    client.ask(json!({ "type": "subscribe", "events": ["message.created"] }));
    home.server().advance_clock(2 * HOUR);
    let question = client.event("message.created");
    assert_eq!(question["conversation_id"], asked["conversation_id"]);
    let reply = client.event("message.created");
    let reply = reply["message"]["content"].as_str().unwrap();
    assert!(reply.contains("Tell Ann to call granny"), "{reply}");
    assert!(reply.contains("[scheduled for 2"), "{reply}");
}

#[test]
fn a_model_that_errs_is_helped_and_hears_the_date_it_meant() {
    let create = |when: &str| json!({ "action": "create", "prompt": "bins", "at": when });
    let model = Model::acting(vec![
        Act::call("shedule", create("6pm")),
        Act::call("schedule", json!({ "acton": "create", "prompt": "bins" })),
        Act::call("schedule", create("soon")),
        Act::call("schedule", create("every other Friday at 18:00")),
        Act::say("done"),
    ]);
    let home = Home::start(model.config_with(json!({ "time_zone": "Europe/Oslo" })));
    home.admin().chat("remind me of the bins");
    let results = model.requests().pop().unwrap();
    let results = results["messages"].as_array().unwrap();
    let results = results.iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = results
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    let [unknown, misnamed, unclear, set] = results[..] else {
        panic!("{results:?}");
    };
    assert!(unknown.contains(r#"nearest is "schedule", for example with {"action":"create"}"#));
    assert!(
        misnamed.contains(
            r#"one of "create", "list", "cancel", "done", "snooze", not "acton". For example: {"#
        ),
        "{misnamed}"
    );
    assert!(unclear.contains("in 20 minutes"), "{unclear}");
    assert!(set.contains("; it comes on Friday, "), "{set}");
    assert!(set.contains(", 18:00, then by 0 18 * * 5 2"), "{set}");
    assert!(
        !results.iter().any(|result| result.contains("<outside")),
        "{results:?}"
    );
}

#[test]
fn the_terminal_understands_the_same_times() {
    let folder = TemporaryDirectory::new();
    let _program = Program::serve(folder.path());
    for (when, says) in [
        (["--at", "tomorrow at 18:00"], "tomorrow at 18:00\n"),
        (["--at", "every weekday at 7"], " 07:00\n"),
        (["--cron", "@daily"], "tomorrow at 00:00\n"),
    ] {
        let added = run(
            folder.path(),
            &["schedule", "add", when[0], when[1], "bins"],
        );
        let printed = printed(&added);
        assert!(printed.contains(says), "{printed}");
    }
}

#[test]
fn a_tool_that_asks_waits_for_a_person_though_nobody_is_there() {
    let home = Home::offline();
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
    client.ask(json!({
        "type": "create_schedule", "prompt": "remember that winter has come", "at": "+1h",
    }));
    home.server().advance_clock(HOUR);
    let asked = client.event("approval.requested");
    assert_eq!(asked["arguments"]["content"], "winter has come");
    client.send(&json!({ "type": "approve", "approval_id": asked["approval_id"] }));
    client.event("chat.done");
}

#[test]
fn what_an_account_set_up_does_not_run_without_it() {
    let mut home = Home::offline();
    home.stop();
    let store = open(home.folder.path());
    let schedule = store
        .add_schedule(
            &Viewer::server(),
            NewSchedule {
                channel: "webhook:gone".to_owned(),
                account: Some("gone".to_owned()),
                ..NewSchedule::new("run what you like", Some(Timing::once(home.clock.now())))
            },
        )
        .unwrap();
    home.restart();
    eventually("it is paused", || {
        store
            .seen(&Viewer::server())
            .schedule(schedule.id)
            .unwrap()
            .is_paused
            .then_some(())
    });
    assert!(said(&store).is_empty());
    store.close();
}

#[test]
fn another_time_zone_moves_what_comes_next() {
    let home = Home::start(json!({ "time_zone": "UTC" }));
    let mut client = home.admin();
    client.ask(json!({ "type": "create_schedule", "prompt": "x", "cron": "0 12 * * *" }));
    let store = open(home.folder.path());
    let next_at = || {
        store.seen(&Viewer::server()).schedules().unwrap()[0]
            .timing
            .as_ref()
            .unwrap()
            .next_at
            .to_string()
    };
    assert!(next_at().ends_with("T12:00:00.000Z"));
    client.ask(json!({ "type": "update_config", "config": { "time_zone": "Asia/Kolkata" } }));
    eventually("it is planned anew", || {
        next_at().ends_with("T06:30:00.000Z").then_some(())
    });
    store.close();
    let unknown = json!({ "type": "update_config", "config": { "time_zone": "Mars/Olympus" } });
    assert_eq!(client.refused(unknown), "invalid_request");
}

#[test]
fn kill_9_neither_loses_nor_doubles_a_run() {
    const COUNT: usize = 40;
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({ "provider": "offline" }));
    let program = Program::serve(folder.path());
    let store = open(folder.path());
    let now = Clock::system().now();
    for number in 0..COUNT {
        let milliseconds = 500 + 25 * number as u64;
        store
            .add_schedule(
                &Viewer::server(),
                NewSchedule::new(
                    &format!("reminder {number}"),
                    Some(Timing::once(now.plus(Duration::from_millis(milliseconds)))),
                ),
            )
            .unwrap();
    }
    let left = || {
        let all = store.seen(&Viewer::server()).schedules().unwrap();
        all.iter().filter(|one| one.timing.is_some()).count()
    };
    eventually("some have run", || (left() <= COUNT - 10).then_some(()));
    program.kill();
    let missed = left();
    let program = Program::serve(folder.path());
    eventually("all have run", || (left() == 0).then_some(()));
    eventually("all are answered", || {
        store
            .unfinished_turns()
            .unwrap()
            .uncommitted()
            .is_empty()
            .then_some(())
    });
    drop(program);
    let all = said(&store);
    assert_eq!(all.len(), 2 * COUNT, "{all:?}");
    for number in 0..COUNT {
        let beginning = format!("reminder {number}\n\n[");
        let runs = all.iter().filter(|text| text.starts_with(&beginning));
        assert_eq!(runs.count(), 1, "reminder {number} of {missed} missed");
    }
    store.close();
}

#[test]
fn the_command_line_schedules_beside_a_running_server() {
    let folder = TemporaryDirectory::new();
    let _program = Program::serve(folder.path());
    let added = run(
        folder.path(),
        &[
            "schedule", "add", "--at", "+1s", "what", "time", "is", "it?",
        ],
    );
    assert!(added.status.success(), "{}", printed(&added));
    let store = open(folder.path());
    let said = eventually("it is answered", || {
        let all = said(&store);
        (all.len() == 2).then_some(all)
    });
    assert!(
        said[0].starts_with("what time is it?\n\n[scheduled for 2"),
        "{said:?}"
    );
    assert!(said[1].starts_with("It is "), "{said:?}");
    let listed = run(folder.path(), &["schedule", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let over = (&listed[0]["next_at"], &listed[0]["last_run"]["outcome"]);
    assert_eq!(over, (&Value::Null, &json!("replied")));
    store.close();
}
