//! Effects follow commits: while a commit is held back, nothing that depends on it
//! leaves the server, and when it fails, nothing ever does.

use std::sync::{Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::scenarios::with_account;
use store::Viewer;
use support::client::Client;
use support::home::{Home, TemporaryDirectory};
use support::http::post;
use support::model::{Act, Model};
use support::receiver::Receiver;
use support::{MAX_WAIT, eventually};

/// A model that calls the tool `mark` and then answers. Before its first call it
/// waits for the test, too.
fn marking(first: Option<mpsc::Receiver<()>>) -> Model {
    let first = first.map(Mutex::new);
    Model::start(move |request, number| {
        if let Some(first) = first.as_ref().filter(|_| number == 0) {
            first.lock().unwrap().recv_timeout(MAX_WAIT).unwrap();
        }
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last["role"] == "tool" {
            true => Act::say("marked"),
            false => Act::call("mark", json!({})),
        }
    })
}

/// The tool `mark`, which has an effect: it adds a line to a file.
fn with_mark(mut config: Value, folder: &TemporaryDirectory, permission: &str) -> Value {
    let script = format!("echo marked >> {}", folder.join("marks").display());
    config["permission_mode"] = json!(permission);
    config["tools"] = json!({
        // The workspace, where a program of a tool may write.
        "files": { "directory": folder.path() },
        "custom": [{
            "name": "mark", "description": "Marks.", "parameters": {},
            "command": ["/bin/sh", "-c", script],
        }],
    });
    config
}

/// Posts a message to the account `ci`; returns the status.
fn send(home: &Home) -> u16 {
    let body = json!({ "message": "hello" });
    post(home.address(), "/webhook/ci", &[], &body).status
}

fn wait_until_writable(home: &Home, is_writable: bool) {
    eventually("the database can be written, or no longer", || {
        (home.server().store().is_writable() == is_writable).then_some(())
    });
}

fn marks(folder: &TemporaryDirectory) -> usize {
    std::fs::read_to_string(folder.join("marks")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_webhook_is_accepted_after_its_commit() {
    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = Home::start(with_account(&model, receiver.url()));
    let gate = home.server().store().commit_gate(&["turns"]);
    gate.hold();
    thread::scope(|scope| {
        let posting = scope.spawn(|| send(&home));
        gate.wait_for(1);
        assert!(!posting.is_finished());
        gate.fail();
        assert!(posting.join().unwrap() >= 500);
    });
    gate.open();
    wait_until_writable(&home, true);
    assert_eq!(send(&home), 202);
    receiver.wait_for(1);
    let requests = model.requests().len();
    assert_eq!(requests, 1, "for the message that was accepted");
}

#[test]
fn a_reply_leaves_after_its_commit() {
    let model = Model::acting(vec![Act::Stall("fine".to_owned())]);
    let home = Home::start(model.config());
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": ["*"] }));
    client.send(&json!({ "type": "chat", "message": "hello", "stream": true }));
    model.wait_for_requests(1);
    let store = home.server().store();
    store.flush().unwrap();
    let gate = store.commit_gate(&["messages"]);
    gate.hold();
    model.release();
    gate.wait_for(1);
    gate.fail();
    let refused = loop {
        let message = client.receive();
        if message.get("status").is_some() {
            break message;
        }
        let is_reply = message["message"]["role"] == "assistant";
        assert!(
            !is_reply && message["event"] != "chat.done",
            "before its commit: {message}"
        );
    };
    assert_eq!(refused["status"], "error", "{refused}");

    gate.open();
    let done = client.event("chat.done");
    let turn = client.ask(json!({ "type": "get_turn", "turn_id": done["turn_id"] }));
    assert_eq!(turn["response"], "fine");
    let conversation = &done["conversation_id"];
    let read = client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
    assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{read}");
    assert_eq!(model.requests().len(), 1, "the model is not asked again");
}

#[test]
fn a_callback_leaves_after_its_commit() {
    let model = Model::acting(vec![Act::Stall("fine".to_owned())]);
    let receiver = Receiver::start();
    let mut home = Home::start(with_account(&model, receiver.url()));
    assert_eq!(send(&home), 202);
    model.wait_for_requests(1);
    let store = home.server().store().clone();
    let gate = store.commit_gate(&["deliveries"]);
    gate.hold();
    model.release();
    gate.wait_for(1);
    gate.fail();
    wait_until_writable(&home, false);
    assert!(receiver.callbacks().is_empty());
    gate.open();
    let sent = receiver.wait_for(1)[0]
        .header("webhook-id")
        .map(str::to_owned);
    let stored = store.seen(&Viewer::server()).deliveries(None, 10).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(sent, Some(stored[0].id.to_string()));
    home.stop();
    assert_eq!(receiver.callbacks().len(), 1);
}

/// A chat whose turn calls `mark`. The first commit that changes `table` is held
/// back and fails, later ones do not.
fn chat_past_a_failed_commit(
    permission: &str,
    table: &'static [&'static str],
    event: &str,
) -> (Home, Client, Value, TemporaryDirectory) {
    let (go, first) = mpsc::channel();
    let (model, folder) = (marking(Some(first)), TemporaryDirectory::new());
    let home = Home::start(with_mark(model.config(), &folder, permission));
    let mut client = home.admin();
    client.ask(json!({ "type": "subscribe", "events": [event] }));
    client.send(&json!({ "type": "chat", "message": "hello" }));
    model.wait_for_requests(1);
    // The beginning of the turn is another commit.
    home.server().store().flush().unwrap();
    let gate = home.server().store().commit_gate(table);
    gate.hold();
    go.send(()).unwrap();
    gate.wait_for(1);
    gate.fail();
    let next = client.receive();
    assert_eq!(next["status"], "error", "no event comes first: {next}");
    assert_eq!(marks(&folder), 0);
    gate.open();
    let event = client.event(event);
    (home, client, event, folder)
}

#[test]
fn a_tool_with_an_effect_runs_after_its_start_is_committed() {
    let (_home, _client, _, folder) = chat_past_a_failed_commit("allow", &["steps"], "chat.done");
    assert_eq!(marks(&folder), 1);
}

#[test]
fn a_person_is_asked_after_the_question_is_committed() {
    let (_home, mut client, asked, folder) =
        chat_past_a_failed_commit("ask", &["approvals"], "approval.requested");
    let waiting = client.ask(json!({ "type": "list_approvals" }));
    let waiting = waiting["approvals"].as_array().unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0]["approval_id"], asked["approval_id"]);
    assert_eq!(marks(&folder), 0);
}

/// The note that a turn runs is one commit, its steps another. If only the first fails,
/// the turn nevertheless continues from its steps: nobody is asked twice.
#[test]
fn a_turn_continues_from_its_steps_if_the_note_that_it_runs_is_lost() {
    let (go, first) = mpsc::channel();
    let (model, folder) = (marking(Some(first)), TemporaryDirectory::new());
    let receiver = Receiver::start();
    let home = Home::start(with_mark(
        with_account(&model, receiver.url()),
        &folder,
        "ask",
    ));
    let store = home.server().store();
    let gate = store.commit_gate(&["turns"]);
    // The message passes, and the note that its turn runs does not.
    gate.hold_after(1);
    assert_eq!(send(&home), 202);
    gate.wait_for(2);
    gate.fail();
    wait_until_writable(&home, false);
    gate.open();
    wait_until_writable(&home, true);
    go.send(()).unwrap();
    let mut client = home.admin();
    let asked = eventually("somebody is asked", || {
        let list = client.ask(json!({ "type": "list_approvals" }));
        list["approvals"].as_array().unwrap().first().cloned()
    });
    let turn: base::ids::TurnId = asked["turn_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        store
            .seen(&store::Viewer::server())
            .turn(turn)
            .unwrap()
            .started_at,
        None,
        "it is lost"
    );
    client.ask(json!({
        "type": "approve", "approval_id": asked["approval_id"], "remember": "once",
    }));
    assert_eq!(receiver.wait_for(1)[0].body["message"], "marked");
    assert_eq!(
        store
            .seen(&Viewer::server())
            .approvals_of(turn)
            .unwrap()
            .len(),
        1,
        "asked once"
    );
    assert_eq!((marks(&folder), model.requests().len()), (1, 2));
}

/// Repeats `run` until it takes no more than this many commits: on a busy machine
/// some are not shared.
fn costs(home: &Home, commits: usize, what: &str, mut run: impl FnMut(usize)) {
    let store = home.server().store();
    let gate = store.commit_gate(&["turns", "messages", "steps", "deliveries"]);
    let mut number = 0;
    eventually(what, || {
        store.flush().unwrap();
        let before = gate.arrived();
        number += 1;
        run(number);
        store.flush().unwrap();
        (gate.arrived() - before <= commits).then_some(())
    });
}

#[test]
fn a_turn_costs_as_few_commits_as_its_effects_need() {
    let home = Home::offline();
    let mut client = home.admin();
    costs(&home, 1, "the beginning and the end together", |_| {
        client.chat("hello");
    });

    let (model, folder) = (marking(None), TemporaryDirectory::new());
    let home = Home::start(with_mark(model.config(), &folder, "allow"));
    let mut client = home.admin();
    costs(&home, 3, "the start of a call, its result, the end", |_| {
        client.chat("mark");
    });

    let (model, receiver) = (Model::saying("fine"), Receiver::start());
    let home = Home::start(with_account(&model, receiver.url()));
    costs(&home, 3, "the message, the end, the delivery", |number| {
        assert_eq!(send(&home), 202);
        receiver.wait_for(number);
        eventually("the callback counts as delivered", || {
            let pending = Some(store::DeliveryState::Pending);
            let waiting = home
                .server()
                .store()
                .seen(&Viewer::server())
                .deliveries(pending, 10);
            waiting.unwrap().is_empty().then_some(())
        });
    });
}

#[test]
fn a_setting_that_is_saved_is_answered_so_though_nobody_can_be_told() {
    let home = Home::offline();
    let mut admin = home.admin();
    let gate = home.server().store().commit_gate(&["conversations"]);
    gate.hold();
    let place = json!({ "ntfy": { "url": "http://127.0.0.1:9", "topic": "t" } });
    admin.send(&json!({
        "type": "set_limits", "name": "user", "limits": { "notifications": place },
    }));
    gate.wait_for(1);
    gate.fail();
    let answer = admin.response();
    assert_eq!(answer["status"], "ok", "{answer}");
    gate.open();
    wait_until_writable(&home, true);
}
