//! The system's clock is set while the server runs, or is wrong when it starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use serde_json::{Value, json};

use support::client::Client;
use support::eventually;
use support::home::{Home, PASSWORD, TemporaryDirectory, make_people, write_config};
use support::http::post;
use support::model::Model;
use support::program::{Program, hearth, skipped};
use support::receiver::Receiver;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// A receiver that refuses the first callback: the next attempt is due in 5 seconds.
fn refusing_once() -> Receiver {
    Receiver::answering(|_, number| match number {
        0 => "503 Service Unavailable".to_owned(),
        _ => "200 OK".to_owned(),
    })
}

fn with_webhook(model: &Model, receiver: &Receiver) -> Value {
    let mut config = model.config();
    config["channels"] = json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": { "door": {
            "incoming_path": "/webhook/door", "outgoing_url": receiver.url(),
        } } },
    ]);
    config
}

fn ring(address: std::net::SocketAddr) {
    let body = json!({ "message": "ding dong", "conversation_id": "door" });
    assert_eq!(post(address, "/webhook/door", &[], &body).status, 202);
}

/// The first attempt is over, and the next one is due in 5 seconds.
fn has_failed_once(client: &mut Client) {
    eventually("the first attempt is stored", || {
        let list = client.ask(json!({ "type": "list_deliveries" }));
        (list["deliveries"][0]["attempts"] == 1).then_some(())
    });
}

/// The server has followed the clock that was set.
fn has_followed(home: &Home) {
    eventually("the server follows the clock", || {
        home.clock.step().is_none().then_some(())
    });
}

/// The timekeeper, which expires and deletes what is old, has looked twice.
fn two_rounds(home: &Home) {
    for _ in 0..2 {
        let before = home.server().last_tick();
        eventually("a round", || {
            (home.server().last_tick() > before).then_some(())
        });
    }
}

#[test]
fn a_clock_that_is_ahead_for_a_while_deletes_nothing() {
    let retention = json!({ "retention": { "conversations_days": 30 }, "backup": { "keep": 0 } });
    let mut home = Home::start(retention);
    let mut client = home.admin();
    client.chat("do not forget");
    let count = |client: &mut Client| {
        let list = client.ask(json!({ "type": "list_conversations" }));
        list["conversations"].as_array().unwrap().len()
    };
    // While it runs, and at a start.
    home.clock.set_by(400 * DAY);
    has_followed(&home);
    two_rounds(&home);
    assert_eq!(count(&mut client), 1);
    home.restart();
    two_rounds(&home);
    let mut client = home.admin();
    assert_eq!(count(&mut client), 1);
    home.clock.set_by(-400 * DAY);
    has_followed(&home);
    home.server()
        .advance_clock(Duration::from_secs(31 * 86_400));
    eventually("it goes in time", || {
        (count(&mut client) == 0).then_some(())
    });
}

/// A Raspberry Pi has no battery clock.
#[test]
fn what_is_said_before_the_clock_is_set_ahead_is_kept() {
    let retention = json!({ "retention": { "conversations_days": 30 }, "backup": { "keep": 0 } });
    let mut home = Home::start(retention);
    home.admin().chat("long ago");
    home.server()
        .advance_clock(Duration::from_secs(29 * 86_400));
    home.clock.set_by(-20_000 * DAY);
    has_followed(&home);
    home.restart();
    let mut client = home.admin();
    client.chat("said in the wrong year");
    home.clock.set_by(20_000 * DAY);
    has_followed(&home);
    home.server().advance_clock(Duration::from_secs(2 * 86_400));
    let mut titles = || {
        let list = client.ask(json!({ "type": "list_conversations" }));
        list["conversations"].to_string()
    };
    eventually("the old one goes", || {
        (!titles().contains("long ago")).then_some(())
    });
    two_rounds(&home);
    assert!(titles().contains("said in the wrong year"));
}

#[test]
fn callbacks_wait_no_longer_after_the_clock_was_set() {
    for step in [-DAY, DAY] {
        let (model, receiver) = (Model::saying("Coming."), refusing_once());
        let home = Home::start(with_webhook(&model, &receiver));
        ring(home.address());
        receiver.wait_for(1);
        has_failed_once(&mut home.admin());
        home.clock.set_by(step);
        ring(home.address());
        let callbacks = receiver.wait_for(3);
        let id = |place: usize| callbacks[place].header("webhook-id").map(str::to_owned);
        assert_eq!(id(0), id(1), "the first was tried again");
        assert_ne!(id(1), id(2), "and the next of the conversation followed");
    }
}

#[test]
fn callbacks_wait_no_longer_after_a_start_in_the_past() {
    let (model, receiver) = (Model::saying("Coming."), refusing_once());
    let mut home = Home::start(with_webhook(&model, &receiver));
    ring(home.address());
    receiver.wait_for(1);
    has_failed_once(&mut home.admin());
    home.stop();
    home.clock.set_by(-DAY);
    home.restart();
    receiver.wait_for(2);
    // The network tells the time.
    home.clock.set_by(DAY);
    ring(home.address());
    receiver.wait_for(3);
}

#[test]
fn a_question_and_a_session_outlast_a_clock_that_was_wrong() {
    let mut home = Home::offline();
    home.stop();
    home.clock.set_by(-400 * DAY);
    home.restart();
    let credentials = json!({ "username": "admin", "password": PASSWORD });
    let session = post(home.address(), "/auth", &[], &credentials).json();
    let session = session["data"]["token"].as_str().unwrap().to_owned();
    let mut client = home.websocket(&session);
    client.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
    client.send(&json!({ "type": "chat", "message": "remember that winter has come" }));
    let asked = client.event("approval.requested")["approval_id"].clone();

    home.clock.set_by(400 * DAY);
    has_followed(&home);
    two_rounds(&home);
    let mut watcher = home.admin();
    let waiting = watcher.ask(json!({ "type": "list_approvals" }));
    assert_eq!(waiting["approvals"][0]["approval_id"], asked, "{waiting}");
    client.send(&json!({ "type": "approve", "approval_id": asked }));
    client.event("chat.done");
    home.websocket(&session);
}

/// What is said in the one conversation of a schedule.
fn runs(client: &mut Client) -> Vec<String> {
    let list = client.ask(json!({ "type": "list_conversations" }));
    let conversation = &list["conversations"][0]["conversation_id"];
    let conversation = match conversation {
        Value::Null => &list["conversations"][0]["id"],
        id => id,
    };
    let page = client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
    let messages = page["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the only schedule is due next within an hour of `time`.
fn is_next_after(client: &mut Client, time: Timestamp) {
    eventually("the next time is found anew", || {
        let listed = client.ask(json!({ "type": "list_schedules" }));
        let next_at = listed["schedules"][0]["next_at"].as_str()?.to_owned();
        (time.to_string() < next_at && next_at <= time.shifted(HOUR).to_string()).then_some(())
    });
}

#[test]
fn a_routine_runs_on_after_the_clock_was_ahead_and_back_and_no_time_twice() {
    for ahead in [2 * HOUR, 5 * DAY] {
        let model = Model::saying("Done.");
        let home = Home::start(model.config());
        let mut client = home.admin();
        client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
        client.ask(json!({ "type": "create_schedule", "prompt": "Water", "cron": "0 * * * *" }));
        let an_hour = || {
            home.server()
                .advance_clock(Duration::from_millis(HOUR as u64))
        };
        an_hour();
        client.event("chat.done");

        // Late, for the hour that the step skipped.
        home.clock.set_by(ahead);
        client.event("chat.done");
        home.clock.set_by(-ahead);
        has_followed(&home);
        // The next hour has run already; the one after it comes.
        is_next_after(&mut client, home.clock.now().shifted(HOUR));
        an_hour();
        an_hour();
        client.event("chat.done");
        let said = runs(&mut client);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].contains("[late: due at "), "{said:?}");

        // Just before the full hour again: it does not come twice.
        let past_the_hour = home.clock.now().as_millis() % HOUR;
        home.clock.set_by(-past_the_hour - 30_000);
        has_followed(&home);
        is_next_after(&mut client, home.clock.now().shifted(30_000));
        an_hour();
        an_hour();
        client.event("chat.done");
        let said = runs(&mut client);
        assert_eq!(said.len(), 4, "{said:?}");
    }
}

#[test]
fn a_start_with_a_clock_a_little_behind_runs_nothing_twice() {
    let model = Model::saying("Done.");
    let mut home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));
    client.ask(json!({ "type": "create_schedule", "prompt": "Water", "cron": "0 * * * *" }));
    home.server()
        .advance_clock(Duration::from_millis(HOUR as u64));
    client.event("chat.done");
    let before = home.clock.now();
    home.stop();
    home.clock.set_by(-2 * HOUR);
    home.restart();
    let mut client = home.admin();
    is_next_after(&mut client, before);
    home.clock.set_by(2 * HOUR);
    has_followed(&home);
    is_next_after(&mut client, before);
    assert_eq!(runs(&mut client).len(), 1);
}

#[test]
fn nightly_backups_go_on_after_the_clock_was_a_year_ahead() {
    let home = Home::start(json!({ "backup": { "keep": 2, "at": "00:00" } }));
    let backups = home.folder.path().join("backups");
    home.admin().chat("hello");
    fs::create_dir(&backups).unwrap();
    for night in ["2090-01-01", "2090-01-02", "2090-01-03"] {
        fs::write(backups.join(format!("hearth-nightly-{night}.db")), "ahead").unwrap();
    }
    let names = || {
        let mut names: Vec<String> = fs::read_dir(&backups)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".db"))
            .collect();
        names.sort();
        names
    };
    let day = Duration::from_millis(DAY as u64);
    home.server().advance_clock(day);
    let first = eventually("the first night's", || {
        let names = names();
        (names.len() == 2 && names[0].as_str() < "hearth-nightly-2090").then_some(names)
    });
    home.server().advance_clock(day);
    eventually("the second night's", || {
        let names = names();
        let both_are_new = names.iter().all(|name| !name.contains("2090"));
        (names.len() == 2 && both_are_new && names[0] == first[0]).then_some(())
    });
}

/// The library that lets a program see another time.
fn faketime() -> Option<PathBuf> {
    let found = fs::read_dir("/usr/lib").ok()?.flatten().find_map(|entry| {
        let library = entry.path().join("faketime/libfaketime.so.1");
        library.exists().then_some(library)
    });
    if found.is_none() {
        skipped("libfaketime is not installed");
    }
    found
}

/// The real binary, which sees the time that [`set`] last wrote.
fn serve_with(library: &Path, folder: &Path) -> Program {
    let mut command = hearth(folder);
    command
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", folder.join("time"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1");
    Program::launch(command, folder)
}

/// Sets the clock of the real binary so many milliseconds from the machine's, rounded
/// to five seconds before a full minute: its schedule is due then, whenever this runs.
fn set(folder: &Path, from_real: i64) {
    let to_minute = 55_000 - Clock::system().now().as_millis() % 60_000;
    let next = folder.join("time.next");
    fs::write(&next, format!("{:+}.000\n", (from_real + to_minute) / 1000)).unwrap();
    fs::rename(&next, folder.join("time")).unwrap();
}

#[test]
fn the_real_binary_goes_on_when_the_clock_is_set() {
    let Some(library) = faketime() else { return };
    let (model, receiver) = (Model::saying("Coming."), refusing_once());
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), with_webhook(&model, &receiver));
    let tokens = make_people(folder.path());
    set(folder.path(), 0);
    let program = serve_with(&library, folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.admin);
    client.ask(json!({ "type": "create_schedule", "prompt": "Water", "cron": "* * * * *" }));
    client.ask(json!({ "type": "subscribe", "events": ["chat.done"] }));

    ring(program.address);
    receiver.wait_for(1);
    client.event("chat.done");
    let mut watcher = Client::websocket(program.address);
    watcher.authenticate(&tokens.admin);
    has_failed_once(&mut watcher);
    set(folder.path(), -DAY);
    receiver.wait_for(2);
    client.event("chat.done");
    set(folder.path(), 6 * HOUR);
    client.event("chat.done");
    // Past the minute in which it ran first.
    set(folder.path(), 60_000);
    client.event("chat.done");
    program.kill();
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    assert!(log.contains("the clock was set back by"), "{log}");
    for stutter in [" turn turn_", " delivery dlv_", " schedule sched_"] {
        assert!(!log.contains(stutter), "{stutter}: {log}");
    }

    // And at a start in the past.
    set(folder.path(), -DAY);
    let program = serve_with(&library, folder.path());
    ring(program.address);
    receiver.wait_for(3);
}
