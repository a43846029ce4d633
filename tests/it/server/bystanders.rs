//! Something is stuck, or somebody asks for far too much, and somebody else does not notice.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use base::clock::Clock;
use serde_json::{Value, json};
use store::{Store, TokenScope, Viewer};

use crate::scenarios::{count, look_into};
use support::client::Client;
use support::home::{Home, PASSWORD, TemporaryDirectory, add_token, make_people, write_config};
use support::http::{get, post};
use support::model::{Act, Model};
use support::program::{Program, hearth, send_signal};
use support::receiver::Receiver;
use support::{SetOnDrop, eventually};

/// How soon a bystander is served where nothing of theirs is slow, on a busy machine too.
/// What is stuck in these tests stays so for longer.
const SOON: Duration = Duration::from_secs(5);
/// Turns of a flood.
const FLOOD: usize = 150;

fn time(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

/// The quickest of three times: the machine may be busy, but what is stuck would delay all.
fn quickest(mut act: impl FnMut()) -> Duration {
    let times = [(); 3].map(|()| time(&mut act));
    times.into_iter().min().unwrap()
}

/// The channels with these accounts, each by name and where its callbacks go.
fn channels(accounts: &[(&str, String)]) -> Value {
    let account = |(name, url): &(&str, String)| {
        let path = format!("/webhook/{name}");
        let account = json!({ "incoming_path": path, "outgoing_url": url });
        ((*name).to_owned(), account)
    };
    let accounts: serde_json::Map<String, Value> = accounts.iter().map(account).collect();
    json!([
        { "name": "lan", "type": "tcp", "port": 0 },
        { "name": "hooks", "type": "webhook", "accounts": accounts },
    ])
}

fn tell(home: &Home, account: &str, message: &str) {
    let path = format!("/webhook/{account}");
    let answer = post(home.address(), &path, &[], &json!({ "message": message }));
    assert_eq!(answer.status, 202, "{answer:?}");
}

/// Sends the messages of a flood, each in a conversation of its own. The clients wait for
/// the replies.
fn flood(home: &Home, token: &str, message: &str) -> Vec<Client> {
    let per_connection = 30;
    let connect = |_| {
        let mut client = home.websocket(token);
        for id in 0..per_connection {
            client.send(&json!({ "type": "chat", "message": message, "id": id }));
        }
        client
    };
    (0..FLOOD / per_connection).map(connect).collect()
}

/// Waits until so many turns are there that have not ended.
fn wait_for_turns(home: &Home, least: usize) {
    let database = look_into(home.folder.path());
    let unfinished = "SELECT count(*) FROM turns WHERE finished_at IS NULL";
    eventually("the turns wait", || {
        (count(&database, unfinished) as usize >= least).then_some(())
    });
}

/// A home whose model answers no turn of a flood before the test is over.
fn slow_home() -> (Model, Home) {
    let model =
        Model::start(
            |request, _| match request["messages"].to_string().contains("of the flood") {
                true => Act::Stall("at last".into()),
                false => Act::say("at once"),
            },
        );
    let nowhere = "http://127.0.0.1:1/".to_owned();
    let home = Home::start(model.config_with(json!({
        "channels": channels(&[("flood", nowhere)]),
        "limits": { "webhook_burst": 1_000 },
    })));
    (model, home)
}

/// A chat of whoever has this token is answered, though the flood is not.
fn is_served(home: &Home, token: &str) {
    let mut client = home.websocket(token);
    assert_eq!(client.chat("hello")["response"], "at once");
}

#[test]
fn an_account_with_a_slow_model_delays_no_person() {
    let (_model, mut home) = slow_home();
    for _ in 0..FLOOD {
        tell(&home, "flood", "one of the flood");
    }
    wait_for_turns(&home, FLOOD);
    is_served(&home, &home.tokens.user);
    // Nor where all of it goes on after a restart.
    home.restart_at_once();
    wait_for_turns(&home, FLOOD);
    is_served(&home, &home.tokens.user);
}

#[test]
fn a_person_with_many_conversations_delays_nobody_else() {
    let (_model, home) = slow_home();
    let _flood = flood(&home, &home.tokens.user, "one of the flood");
    wait_for_turns(&home, FLOOD / 2);
    is_served(&home, &home.tokens.admin);
    // Nor themselves where they use something else.
    let store = Store::open(&home.folder.path().join("hearth.db"), Clock::system()).unwrap();
    let user = store.user("user").unwrap().unwrap();
    let page = add_token(&store, &user, TokenScope::default());
    store.close();
    is_served(&home, &page);
}

#[test]
fn tools_and_models_that_hang_leave_a_worker_to_the_others() {
    for message in ["run it", "think of it"] {
        let model = Model::start(|request, _| {
            let messages = request["messages"].to_string();
            match () {
                () if messages.contains("run it") => Act::call("hang", json!({})),
                () if messages.contains("think of it") => Act::Stall("at last".into()),
                () => Act::say("at once"),
            }
        });
        let home = Home::start(model.config_with(json!({ "tools": { "custom": [{
            "name": "hang", "description": "Hangs.", "parameters": {},
            "command": ["/bin/sh", "-c", "exec sleep 600"],
        }] } })));
        let _flood = flood(&home, &home.tokens.user, message);
        // Of 16 workers, 14 run turns, and 13 of these those of one requester.
        model.wait_for_requests(13);
        let mut bystander = home.admin();
        let took = quickest(|| assert_eq!(bystander.chat("hello")["response"], "at once"));
        assert!(took < SOON, "{message}: {took:?}");
    }
}

#[test]
fn a_receiver_that_hangs_delays_no_callback_and_no_notification_of_others() {
    let model = Model::saying("fine");
    let (good, phone) = (Receiver::start(), Receiver::start());
    // It takes the first callback and leaves the next ones without an answer.
    let (gate, came) = (Arc::new(RwLock::new(())), Arc::new(AtomicUsize::new(0)));
    let stuck = Receiver::answering({
        let (gate, came) = (Arc::clone(&gate), Arc::clone(&came));
        move |_, _| {
            if came.fetch_add(1, Ordering::SeqCst) > 0 {
                drop(gate.read());
            }
            "204 No Content".to_owned()
        }
    });
    let home = Home::start(model.config_with(json!({
        "channels": channels(&[("good", good.url()), ("stuck", stuck.url())]),
        "people": { "user": { "notifications": {
            "ntfy": { "url": format!("http://{}", phone.address), "topic": "t" },
        } } },
    })));
    let is_stuck = gate.write().unwrap();
    tell(&home, "stuck", "hello");
    stuck.wait_for(1);
    for _ in 0..24 {
        tell(&home, "stuck", "hello");
    }
    eventually("the receiver hangs", || {
        (came.load(Ordering::SeqCst) > 1).then_some(())
    });
    let mut callbacks = 0;
    let took = quickest(|| {
        tell(&home, "good", "hello");
        callbacks += 1;
        good.wait_for(callbacks);
    });
    assert!(took < SOON, "a callback: {took:?}");
    let mut user = home.websocket(&home.tokens.user);
    let mut notifications = 0;
    let took = quickest(|| {
        let remind = json!({ "type": "create_schedule", "prompt": "Bins", "at": "+3h" });
        user.ask(remind);
        home.server().advance_clock(Duration::from_secs(3 * 3600));
        notifications += 1;
        phone.wait_for(notifications);
    });
    assert!(took < SOON, "a notification: {took:?}");
    let attempts = came.load(Ordering::SeqCst);
    assert!(attempts <= 1 + 4, "{attempts} attempts, of 8 slots");
    drop(is_stuck);
    stuck.wait_for(1 + 24);
}

#[test]
fn searches_that_take_long_delay_no_chat() {
    let home = Home::offline();
    let store = home.server().store();
    let (searching, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _over = SetOnDrop(&is_over);
        for _ in 0..8 {
            scope.spawn(|| {
                let _search = store.snapshot_to_search(&Viewer::server());
                searching.fetch_add(1, Ordering::SeqCst);
                while !is_over.load(Ordering::SeqCst) {
                    std::thread::park_timeout(Duration::from_millis(10));
                }
            });
        }
        eventually("some of them search", || {
            (searching.load(Ordering::SeqCst) > 1).then_some(())
        });
        let mut bystander = home.websocket(&home.tokens.user);
        let took = quickest(|| drop(bystander.chat("hello")));
        assert!(took < SOON, "{took:?}");
    });
}

#[test]
fn a_terminal_that_is_stopped_in_the_middle_of_an_import_holds_up_nobody() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut import = hearth(folder.path())
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // More than the pipe holds: it has begun when this is written.
    let beginning = format!("[{}", " ".repeat(200_000));
    let mut input = import.stdin.take().unwrap();
    input.write_all(beginning.as_bytes()).unwrap();
    send_signal(import.id(), "STOP");
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    let took = quickest(|| {
        assert_eq!(get(program.address, "/health").status, 200);
        let sign_in = json!({ "username": "user", "password": PASSWORD });
        assert_eq!(post(program.address, "/auth", &[], &sign_in).status, 200);
        client.chat("hello");
    });
    assert!(took < 2 * SOON, "{took:?}");
    import.kill().unwrap();
    import.wait().unwrap();
}
