//! What happens to the files of the data directory from outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use support::client::Client;
use support::eventually;
use support::home::{PASSWORD, TemporaryDirectory, Tokens, make_people, write_config};
use support::http::{get, post};
use support::model::Model;
use support::program::{Program, finish, hearth, printed, run};

/// A user with no rights, for what root may do in any case.
const NOBODY: u32 = 65_534;

/// `hearth serve` on a free port, as a user whom permissions bind.
fn serve(folder: &Path) -> Command {
    let mut command = hearth(folder);
    command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("hearth.db"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_refused_start_leaves_nothing_that_makes_later_ones_fail() {
    let folder = TemporaryDirectory::new();
    let data = folder.join("data");
    fs::create_dir(&data).unwrap();
    write_config(&data, json!({}));
    make_people(&data);
    let database = data.join("hearth.db");
    fs::set_permissions(&database, Permissions::from_mode(0o400)).unwrap();
    if rustix::process::getuid().is_root() {
        let all = fs::read_dir(&data).unwrap();
        let all = all.map(|entry| entry.unwrap().path()).chain([data.clone()]);
        all.for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
    }
    let refused = finish(&mut serve(&data));
    let said = printed(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("hearth.db cannot be written"), "{said}");
    assert_eq!(names(&data), ["hearth.db"]);
    fs::set_permissions(&database, Permissions::from_mode(0o600)).unwrap();
    let program = Program::launch(serve(&data), &folder);
    assert_eq!(get(program.address, "/health").status, 200);
}

#[test]
fn a_server_whose_data_directory_is_taken_away_says_so_and_stores_nothing() {
    let (folder, model) = (TemporaryDirectory::new(), Model::saying("fine"));
    let data = folder.join("data");
    fs::create_dir(&data).unwrap();
    write_config(&data, model.config());
    let tokens = make_people(&data);
    let mut command = hearth(&data);
    command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    let program = Program::launch(command, &folder);
    let becomes = |status| {
        eventually("the server to notice", || {
            (get(program.address, "/health").status == status).then_some(())
        });
    };
    becomes(200);
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    let elsewhere = folder.join("elsewhere");
    fs::rename(&data, &elsewhere).unwrap();
    becomes(503);
    let said = || fs::read_to_string(folder.join("stderr.txt")).unwrap();
    let expected = format!("{}/hearth.db was moved, deleted", data.display());
    eventually("the log", || said().contains(&expected).then_some(()));
    assert_eq!(said().matches(&expected).count(), 1, "once: {}", said());
    client.send(&json!({ "type": "chat", "message": "hello" }));
    let refused = client.response();
    assert_eq!(refused["code"], "server_error", "{refused}");
    assert!(refused["retry_after"].is_number(), "{refused}");
    assert_eq!(model.requests().len(), 0, "nothing can keep an answer");

    fs::rename(&elsewhere, &data).unwrap();
    becomes(200);
    client.chat("hello");
    assert_eq!(model.requests().len(), 1);
    fs::remove_dir_all(&data).unwrap();
    becomes(503);
}

/// A server whose model always answers, and its people.
fn serve_with_model(folder: &Path, model: &Model) -> (Program, Tokens) {
    write_config(folder, model.config());
    let tokens = make_people(folder);
    (Program::serve(folder), tokens)
}

fn sign_in(program: &Program, token: &str) -> Client {
    let mut client = Client::websocket(program.address);
    client.authenticate(token);
    client
}

fn all_messages(folder: &Path) -> String {
    let output = run(folder, &["export", "--all"]);
    assert!(output.status.success(), "{}", printed(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_second_server_is_refused_whatever_was_removed() {
    let outside = TemporaryDirectory::new();
    let (folder, model) = (TemporaryDirectory::new(), Model::saying("fine"));
    let (program, tokens) = serve_with_model(&folder, &model);
    let mut client = sign_in(&program, &tokens.user);
    client.chat("one");
    for files in [
        &["hearth.lock"][..],
        &["hearth.sock", "hearth.sock.key", "hearth.lock"],
    ] {
        for file in files {
            // The second server that is refused makes no new one.
            let _ = fs::remove_file(folder.join(file));
        }
        let mut second = hearth(&folder);
        second.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
        let said = Program::try_launch(second, outside.path(), Duration::from_millis(5));
        let said = said.err().expect("a second server runs");
        assert!(said.contains("another hearth"), "{said}");
        let restored = run(&folder, &["restore", "/nowhere.db"]);
        assert!(printed(&restored).contains("another hearth"));
    }
    client.chat("two");
    assert_eq!(model.requests().len(), 2, "each turn ran once");
    assert_eq!(program.signal("TERM"), Some(0));
    Program::serve(&folder);
}

/// The log is deleted, moved or replaced: what was acknowledged before and after is there
/// when the server is killed.
#[test]
fn a_write_ahead_log_that_is_taken_away_loses_nothing() {
    let (folder, model) = (TemporaryDirectory::new(), Model::saying("fine"));
    let (mut program, tokens) = serve_with_model(&folder, &model);
    let (log, index) = (folder.join("hearth.db-wal"), folder.join("hearth.db-shm"));
    let earlier = folder.join("earlier");
    let mut said = Vec::new();
    for round in 0..4 {
        let mut client = sign_in(&program, &tokens.user);
        let mut say = |text: &str| {
            let message = format!("{text} in round {round}");
            client.chat(&message);
            said.push(message);
        };
        say("before");
        fs::copy(&log, &earlier).unwrap();
        say("also before");
        match round {
            0 => fs::remove_file(&log).unwrap(),
            1 => fs::rename(&earlier, &log).unwrap(),
            2 => fs::rename(&log, folder.join("moved")).unwrap(),
            _ => [&log, &index]
                .map(|file| fs::remove_file(file).unwrap())
                .into_iter()
                .collect(),
        }
        if round != 0 {
            // Nobody writes: it is found out all the same.
            eventually("a new log", || {
                let stderr = fs::read_to_string(folder.join("stderr.txt")).unwrap();
                stderr
                    .contains("-shm was moved, deleted or replaced")
                    .then_some(())
            });
        }
        say("after");
        say("later");
        assert_eq!(get(program.address, "/health").status, 200);
        program.kill();
        program = Program::serve(&folder);
    }
    program.kill();
    let found = all_messages(&folder);
    for message in said {
        let content = format!("\"content\":\"{message}\"");
        assert_eq!(found.matches(&content).count(), 1, "{message}: {found}");
    }
}

/// As Ctrl-Z on a program that is writing.
#[test]
fn another_program_that_holds_the_lock_is_noticed_once_and_holds_up_no_reader() {
    const AT_ONCE: Duration = Duration::from_secs(3);
    let (folder, model) = (TemporaryDirectory::new(), Model::saying("fine"));
    let (program, tokens) = serve_with_model(&folder, &model);
    let mut client = sign_in(&program, &tokens.user);
    let conversation = client.chat("before")["conversation_id"].clone();
    // The timekeeper tries what is due with every tick.
    let soon = base::clock::Clock::system()
        .now()
        .plus(Duration::from_secs(2));
    client.ask(json!({ "type": "create_schedule", "prompt": "bins", "at": soon.to_string() }));
    let other = Connection::open(folder.join("hearth.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let refused: Vec<Duration> = std::thread::scope(|scope| {
        let chats: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = sign_in(&program, &tokens.user);
                    client.send(&json!({ "type": "chat", "message": "meanwhile" }));
                    let refused = client.response();
                    assert_eq!(refused["code"], "server_error", "{refused}");
                    assert!(refused["retry_after"].is_number(), "{refused}");
                    began.elapsed()
                })
            })
            .collect();
        // A bystander notices nothing.
        let mut slowest = Duration::ZERO;
        while !chats.iter().all(|chat| chat.is_finished()) {
            let began = Instant::now();
            let mut client = sign_in(&program, &tokens.user);
            client.ask(json!({ "type": "get_messages", "conversation_id": conversation }));
            get(program.address, "/health");
            slowest = slowest.max(began.elapsed());
        }
        assert!(slowest < AT_ONCE, "{slowest:?}");
        chats.into_iter().map(|chat| chat.join().unwrap()).collect()
    });
    let slowest = refused.iter().max().unwrap();
    println!("a lock held by another program: refused after {slowest:?}");
    assert!(
        *slowest < 2 * Duration::from_secs(5),
        "one after the other: {refused:?}"
    );
    let health = get(program.address, "/health");
    assert_eq!(health.status, 503, "{}", health.body);
    let credentials = json!({ "username": "user", "password": PASSWORD });
    for path in ["/auth", "/auth"] {
        let began = Instant::now();
        let answer = post(program.address, path, &[], &credentials);
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    }
    let stderr = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    let told = "another program has locked the database";
    assert_eq!(stderr.matches(told).count(), 1, "{stderr}");
    assert!(!stderr.contains("the database is busy"), "{stderr}");

    drop(other);
    eventually("it works again", || {
        (get(program.address, "/health").status == 200).then_some(())
    });
    client.chat("after");
}
