//! What happens to the files of the data directory from outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use support::client::Client;
use support::eventually;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::get;
use support::model::Model;
use support::program::{Program, hearth, printed};

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
    let refused = serve(&data).output().unwrap();
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
