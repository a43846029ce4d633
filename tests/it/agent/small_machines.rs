//! A machine with little memory: what the server takes of it, and what it gives back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use support::client::Client;
use support::control_group::ControlGroup;
use support::crowd::Crowd;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::process::{private_kib, status};
use support::program::{Program, finish, hearth, printed, skipped, unit_environment};

/// The ceiling, in bytes: what is left of a small machine.
const MEMORY: u64 = 64_000_000;
const PEOPLE: usize = 50;
/// Most private memory that a server may keep that nobody has asked for anything for a
/// while, in KiB: without optimisation it keeps 7 MiB, and 12 MiB as the C library would.
const MOST_KEPT: u64 = 9 * 1024;

#[test]
fn fifty_people_with_a_stream_each_and_a_backup_fit_into_64_megabytes() {
    let folder = TemporaryDirectory::new();
    let text = "It rains a little, ".repeat(200) + "and no more.";
    let reply = text.clone();
    let model = Model::start(move |_, _| Act::Pause(reply.clone()));
    // So many streams at a time.
    write_config(folder.path(), model.config_with(json!({ "workers": 64 })));
    let tokens = make_people(folder.path());
    let group = ControlGroup::new(MEMORY);
    let wrap = |command| match &group {
        Some(group) => group.wrap(&command),
        None => command,
    };
    if group.is_none() {
        skipped("no control group: this user cannot make one; the memory is measured");
    }
    let mut command = hearth(folder.path());
    command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    let program = Program::launch(wrap(command), folder.path());
    let mut people: Vec<Client> = (0..PEOPLE)
        .map(|_| {
            let mut client = Client::websocket(program.address);
            client.authenticate(&tokens.user);
            client.send(&json!({ "type": "chat", "message": "the weather?", "stream": true }));
            client
        })
        .collect();
    for client in &mut people {
        client.event("chat.delta");
    }
    let copy = folder.path().join("copy.db");
    let mut backup = hearth(folder.path());
    backup.arg("backup").arg(&copy);
    let backup = finish(&mut wrap(backup));
    assert!(backup.status.success(), "{}", printed(&backup));
    assert!(fs::metadata(copy).unwrap().len() > 0);
    model.release();
    for client in &mut people {
        assert_eq!(client.response()["data"]["response"], text);
    }
    let most = status(program.id(), "VmHWM").unwrap() * 1024;
    assert!(most <= MEMORY, "{most} bytes");
    if let Some(killed) = group.as_ref().and_then(ControlGroup::killed) {
        assert_eq!(killed, 0);
    }
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn memory_is_given_back_when_a_crowd_has_gone() {
    const CROWD: Crowd = Crowd {
        clients: 150,
        messages: 6,
        sign_ins: 4,
    };
    let folder = TemporaryDirectory::new();
    let model = Model::saying("Hello there.");
    let mut config = model.config();
    config["limits"] = json!({
        "connections_per_address": CROWD.clients + 16,
        "unauthenticated_per_address": CROWD.clients + 16,
    });
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let serve = ["serve", "--bind", "127.0.0.1", "--port", "0"];
    let program = Program::start_in(folder.path(), &serve, &unit_environment());
    let Some(before) = private_kib(program.id()) else {
        return skipped("only root may see the private memory of Hearth");
    };
    CROWD.come(program.address, &tokens.user, "Hello there.", || ());
    let after = private_kib(program.id()).unwrap();
    assert!(after > before + 1024, "{before} KiB, then {after} KiB");
    eventually("it gives memory back", || {
        let kept = private_kib(program.id()).unwrap();
        // One worker, with the threads of an idle server.
        let threads = status(program.id(), "Threads").unwrap();
        (kept <= MOST_KEPT && threads <= 8).then(|| println!("{before}, {after}, {kept} KiB"))
    });
}

#[test]
fn a_server_that_nobody_uses_writes_nothing_in_an_hour() {
    // Without the backup of the night, which may fall into this hour.
    let model = Model::saying("Hello there.");
    let home = Home::start(model.config_with(json!({ "backup": { "keep": 0 } })));
    home.admin().chat("hello");
    // The writer commits a little later what nobody waits for.
    let rounds = |count| {
        for _ in 0..count {
            let before = home.server().last_tick();
            eventually("a round", || {
                (home.server().last_tick() > before).then_some(())
            });
        }
    };
    rounds(3);
    let before = written(home.folder.path());
    for _ in 0..6 {
        home.server().advance_clock(Duration::from_secs(600));
        rounds(1);
    }
    rounds(2);
    assert_eq!(written(home.folder.path()), before);
}

/// Every file, how long it is, and when it was written to last.
fn written(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::metadata(&path).unwrap();
        match about.is_dir() {
            true => files.extend(written(&path)),
            false => drop(files.insert(path, (about.len(), about.modified().unwrap()))),
        }
    }
    files
}
