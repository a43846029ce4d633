//! The terminal's way to the service: what it changes shows on an open page, it is the
//! owner's alone, and it works beside a server, without one, and while one starts.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use base::people::UserRole;
use protocol::command::DECLARATIONS;
use rustix::fs::FlockOperation;
use rustix::process::Uid;
use rustix::thread::set_thread_uid;
use serde_json::{Value, json};

use support::client::Client;
use support::home::{Home, PASSWORD, TemporaryDirectory, make_people, write_config};
use support::http::{exchange, post};
use support::program::{Program, hearth, output_of, printed, run, skipped};
use support::receiver::Receiver;
#[cfg(feature = "relay")]
use support::relay::Relay;
use support::{MAX_WAIT, eventually};

const KEY: &str = "hearth.sock.key";

fn ok(output: Output) -> String {
    assert!(output.status.success(), "{}", printed(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// A command with a password on its standard input.
fn run_with_password(folder: &Path, words: &[&str]) -> Output {
    let mut child = hearth(folder)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{PASSWORD}").unwrap();
    output_of(child)
}

fn page(program: &Program, token: &str) -> Client {
    let mut client = Client::websocket(program.address);
    client.authenticate(token);
    client.ask(json!({ "type": "subscribe", "events": ["*"] }));
    client
}

/// What the connection was told until now: the names of events.
fn told(client: &mut Client) -> Vec<String> {
    client.send(&json!({ "type": "ping" }));
    let mut names = Vec::new();
    loop {
        let message = client.receive();
        if message.get("status").is_some() {
            return names;
        }
        names.push(message["event"].as_str().unwrap().to_owned());
    }
}

#[test]
fn what_the_terminal_changes_shows_on_an_open_page() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({ "tool_permissions": { "remember": "allow" } }),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut admin = page(&program, &tokens.admin);
    let mut user = page(&program, &tokens.user);
    let mut guest = page(&program, &tokens.viewer);
    let everybody = |admin: &mut Client, user: &mut Client, guest: &mut Client| {
        [told(admin), told(user), told(guest)]
    };
    let skill = folder.path().join("tea");
    fs::create_dir(&skill).unwrap();
    let manifest = "---\nname: tea\ndescription: How to brew tea\n---\nSlowly.\n";
    fs::write(skill.join("SKILL.md"), manifest).unwrap();
    let skill = skill.to_str().unwrap();
    // What is changed, and who of the admin, the user and the guest is told what.
    type Change<'a> = (&'a [&'a str], [&'a [&'a str]; 3]);
    let people: [&[&str]; 3] = [&["people.updated"], &[], &[]];
    let schedules: [&[&str]; 3] = [&["schedule.updated"], &["schedule.updated"], &[]];
    let lists: [&[&str]; 3] = [&["list.updated"], &["list.updated"], &[]];
    let skills: [&[&str]; 3] = [&["skill.updated"], &["skill.updated"], &[]];
    let configuration: [&[&str]; 3] = [&["config.updated"], &[], &[]];
    let child: [&[&str]; 3] = [&["config.updated", "people.updated"], &[], &[]];
    let url = "http://hearth.local/";
    let changes: &[Change<'_>] = &[
        (&["user", "add", "eva", "--password-stdin"], people),
        (&["user", "role", "eva", "viewer"], people),
        (&["user", "passwd", "eva", "--password-stdin"], people),
        (
            &["token", "create", "--name", "door", "--user", "eva"],
            people,
        ),
        (&["user", "remove", "eva", "--yes"], people),
        (
            &["user", "add", "kim", "--child", "--password-stdin"],
            child,
        ),
        (&["user", "invite", "fay", "--url", url], people),
        (&["user", "revoke", "fay"], people),
        (&["user", "reset", "user", "--url", url], people),
        (&["list", "add", "shopping", "milk"], lists),
        (&["list", "delete", "shopping"], lists),
        (&["schedule", "add", "--at", "+3h", "Bins"], schedules),
        (&["skill", "add", skill], skills),
        (&["skill", "remove", "tea"], skills),
        (&["config", "set", "max_tokens", "500"], configuration),
        (&["config", "unset", "max_tokens"], configuration),
        (
            &["tool", "add", "brave", "key=-", "--no-test"],
            configuration,
        ),
        (&["tool", "remove", "brave"], configuration),
        (
            &["webhook", "add", "ci", "--url", "http://127.0.0.1:9/"],
            configuration,
        ),
        (&["webhook", "remove", "ci"], configuration),
    ];
    for (words, expected) in changes {
        ok(run_with_password(folder.path(), words));
        let found = everybody(&mut admin, &mut user, &mut guest);
        assert_eq!(found, expected.map(|names| names.to_vec()), "{words:?}");
    }
    let listed = |words: &[&str], id: &str| {
        let words = [words, &["--json"]].concat();
        let listed: Value = serde_json::from_str(&ok(run(folder.path(), &words))).unwrap();
        listed[0][id].as_str().unwrap().to_owned()
    };
    let schedule = listed(&["schedule", "list"], "schedule_id");
    let words = ["token", "create", "--name", "door", "--user", "user"];
    ok(run(folder.path(), &words));
    everybody(&mut admin, &mut user, &mut guest);
    let token = listed(&["token", "list"], "token_id");
    for (words, expected) in [
        (["schedule", "pause", &schedule], schedules),
        (["schedule", "resume", &schedule], schedules),
        (["schedule", "remove", &schedule], schedules),
        (["token", "revoke", &token], people),
    ] {
        ok(run(folder.path(), &words));
        let found = everybody(&mut admin, &mut user, &mut guest);
        assert_eq!(found, expected.map(|names| names.to_vec()), "{words:?}");
    }

    // A memory of one person is theirs, whoever deletes it.
    user.chat("run remember {\"content\": \"the key is under the mat\"}");
    let memories = |found: [Vec<String>; 3]| {
        found.map(|names| {
            names
                .iter()
                .filter(|name| *name == "memory.updated")
                .count()
        })
    };
    let mut found = everybody(&mut admin, &mut user, &mut guest);
    let remembered = user.ask(json!({ "type": "list_memories" }));
    let memory = remembered["memories"][0]["memory_id"].as_str().unwrap();
    // The response to the chat came after some of them.
    found[1].retain(|name| name != "memory.updated");
    assert_eq!(memories(found), [0, 0, 0]);
    ok(run(folder.path(), &["memory", "remove", memory]));
    let found = everybody(&mut admin, &mut user, &mut guest);
    assert_eq!(memories(found), [0, 1, 0]);
}

#[test]
fn what_the_terminal_decides_and_sends_again_shows_on_an_open_page() {
    let folder = TemporaryDirectory::new();
    let receiver = Receiver::answering(|_, _| "410 Gone".to_owned());
    let account = json!({ "incoming_path": "/ci", "outgoing_url": receiver.url() });
    write_config(
        folder.path(),
        json!({ "channels": {
            "lan": { "type": "tcp", "port": 0 },
            "webhook": { "accounts": { "ci": account } },
        } }),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut admin = page(&program, &tokens.admin);
    let mut user = page(&program, &tokens.user);
    user.send(&json!({ "type": "chat", "message": "run remember {\"content\": \"tea\"}" }));
    let asked = user.event("approval.requested");
    let approval = asked["approval_id"].as_str().unwrap();
    ok(run(folder.path(), &["approvals", "allow", approval]));
    let resolved = user.event("approval.resolved");
    assert_eq!(resolved["approval_id"], approval);
    assert_eq!(resolved["decision"], "approved");

    post(program.address, "/ci", &[], &json!({ "message": "hello" }));
    let dead = eventually("it is given up", || {
        let event = admin.event("delivery.updated");
        (event["state"] == "dead").then_some(event)
    });
    let delivery = dead["delivery_id"].as_str().unwrap();
    ok(run(folder.path(), &["deliveries", "retry", delivery]));
    let again = admin.event("delivery.updated");
    assert_eq!(
        (&again["delivery_id"], &again["state"]),
        (&dead["delivery_id"], &json!("pending"))
    );
}

/// The socket of a running server.
fn dial(folder: &Path) -> UnixStream {
    let stream = UnixStream::connect(folder.join("hearth.sock")).unwrap();
    stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
    stream
}

/// The data of a response over the socket of a running server, or its error.
fn over_socket(folder: &Path, requests: &[Value]) -> Vec<Value> {
    let stream = dial(folder);
    let mut lines = BufReader::new(stream);
    requests
        .iter()
        .map(|request| {
            writeln!(lines.get_mut(), "{request}").unwrap();
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap_or_default()
        })
        .collect()
}

fn key(folder: &Path) -> String {
    fs::read_to_string(folder.join(KEY)).unwrap()
}

#[test]
fn each_command_is_refused_to_the_roles_below_its_own_on_every_way() {
    #[cfg(feature = "relay")]
    let relay = Relay::new();
    #[cfg(feature = "relay")]
    let mut config = relay.config();
    #[cfg(not(feature = "relay"))]
    let mut config = json!({});
    config["limits"] = json!({ "commands_per_second": 100_000, "commands_burst": 100_000 });
    let home = Home::start(config);
    let people = [
        (UserRole::Viewer, &home.tokens.viewer),
        (UserRole::User, &home.tokens.user),
        (UserRole::Admin, &home.tokens.admin),
    ];
    #[cfg(feature = "relay")]
    let mut link = relay.link();
    for (number, (role, token)) in (1..).zip(people) {
        let mut websocket = home.websocket(token);
        let mut lines = Client::lines(home.address());
        lines.authenticate(token);
        #[cfg(feature = "relay")]
        link.sign_in(number, token);
        let mut refused = 0;
        for command in DECLARATIONS.iter().filter(|one| role < one.role) {
            // Without its fields: what they must be is no business of others.
            let request = json!({ "type": command.name });
            assert_eq!(
                websocket.refused(request.clone()),
                "unauthorized",
                "{request}"
            );
            assert_eq!(lines.refused(request.clone()), "unauthorized", "{request}");
            #[cfg(feature = "relay")]
            {
                link.text(number, &request.to_string());
                assert_eq!(link.response(number)["code"], "unauthorized", "{request}");
            }
            refused += 1;
        }
        assert!(refused > 0, "{role:?} {number}");
    }
    let owner = DECLARATIONS
        .iter()
        .filter(|one| one.role == UserRole::Owner);
    assert!(owner.count() > 0);
}

#[test]
fn the_owner_s_secret_is_worth_nothing_elsewhere_and_names_nobody_for_others() {
    #[cfg(feature = "relay")]
    let relay = Relay::new();
    #[cfg(feature = "relay")]
    let home = Home::start(relay.config());
    #[cfg(not(feature = "relay"))]
    let home = Home::offline();
    let folder = home.folder.path();
    let key = key(folder);
    let auth = json!({ "type": "auth", "token": key });
    assert_eq!(
        Client::websocket(home.address()).refused(auth.clone()),
        "invalid_token"
    );
    assert_eq!(
        Client::lines(home.address()).refused(auth.clone()),
        "invalid_token"
    );
    #[cfg(feature = "relay")]
    {
        let mut link = relay.link();
        link.open(1, "192.0.2.1");
        link.text(1, &auth.to_string());
        assert_eq!(link.response(1)["code"], "invalid_token");
    }
    let owner = over_socket(folder, &[auth, json!({ "type": "create_session" })]);
    assert_eq!(owner[0]["data"]["role"], "owner");
    assert_eq!(owner[1]["data"]["user"], "admin");
    let as_user = json!({ "type": "auth", "token": key, "as_user": "user" });
    let acting = over_socket(folder, &[as_user, json!({ "type": "create_session" })]);
    assert_eq!(acting[0]["data"]["user"], "user");
    assert_eq!(acting[1]["code"], "unauthorized");

    // An admin is no owner, over the socket neither, and names nobody.
    let admin = json!({ "type": "auth", "token": home.tokens.admin });
    let answers = over_socket(
        folder,
        &[admin.clone(), json!({ "type": "create_session" })],
    );
    assert_eq!(answers[0]["data"]["role"], "admin");
    assert_eq!(answers[1]["code"], "unauthorized");
    let mut as_user = admin;
    as_user["as_user"] = json!("user");
    let answers = over_socket(folder, &[as_user.clone()]);
    assert_eq!(answers[0]["code"], "unauthorized");
    for mut client in [
        Client::websocket(home.address()),
        Client::lines(home.address()),
    ] {
        assert_eq!(client.refused(as_user.clone()), "unauthorized");
    }
    let wrong = json!({ "type": "auth", "token": "hearth_wrong" });
    assert_eq!(over_socket(folder, &[wrong])[0]["code"], "invalid_token");
}

#[test]
fn the_owner_s_secret_opens_nothing_over_the_network() {
    let config = json!({ "openai_api": { "enabled": true }, "mcp_api": { "enabled": true } });
    let home = Home::start(config);
    let bearer = format!("Bearer {}", key(home.folder.path()));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    for (method, path, body) in [
        ("GET", "/export?all=1", ""),
        (
            "POST",
            "/import",
            "{\"type\":\"hearth_export\",\"version\":1}\n",
        ),
        ("POST", "/attachments", "x"),
        (
            "POST",
            "/mcp",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        ),
        ("GET", "/v1/models", ""),
        (
            "POST",
            "/api/chat",
            r#"{"model":"hearth","messages":[{"role":"user","content":"hi"}]}"#,
        ),
        ("DELETE", "/auth", ""),
    ] {
        let answer = exchange(home.address(), method, path, &headers, body.as_bytes());
        assert_eq!(answer.status, 401, "{method} {path}");
    }
}

#[test]
fn another_user_is_kept_out_with_the_owner_s_secret_too() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can act for another user");
    }
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let _program = Program::serve(folder.path());
    let auth = json!({ "type": "auth", "token": key(folder.path()) });
    // Even where the files would let everybody in.
    for (path, mode) in [("", 0o711), ("hearth.sock", 0o666)] {
        let path = folder.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let answer = |user: u32| {
        let ask = || {
            // That of this thread alone.
            set_thread_uid(Uid::from_raw(user)).unwrap();
            let mut stream = dial(folder.path());
            let _ = writeln!(stream, "{auth}");
            let mut line = String::new();
            let _ = BufReader::new(stream).read_line(&mut line);
            line
        };
        thread::scope(|scope| scope.spawn(ask).join().unwrap())
    };
    assert!(answer(0).contains("\"role\":\"owner\""), "{}", answer(0));
    assert_eq!(answer(65534), "");
}

#[test]
fn the_socket_and_its_key_are_the_owner_s_in_no_backup_and_gone_after_a_stop() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let program = Program::serve(folder.path());
    for name in ["hearth.sock", KEY] {
        let about = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let key = key(folder.path());
    assert!(key.len() > 40, "{key}");
    let backup = folder.path().join("all.backup");
    let file = backup.to_str().unwrap();
    ok(run(folder.path(), &["backup", file, "--with-secrets"]));
    let bytes = fs::read(&backup).unwrap();
    for secret in [key.as_bytes(), KEY.as_bytes()] {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret));
    }
    let log = fs::read_to_string(folder.path().join("hearth.log")).unwrap();
    assert!(!log.contains(&key));
    assert_eq!(program.signal("TERM"), Some(0));
    for name in ["hearth.sock", KEY] {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    // Each start has another.
    let again = Program::serve(folder.path());
    assert_ne!(self::key(folder.path()), key);
    again.kill();
    // What a server that was killed has left behind is in nobody's way.
    assert!(ok(run(folder.path(), &["user", "list"])).contains("admin"));
    let _again = Program::serve(folder.path());
    assert!(ok(run(folder.path(), &["user", "list"])).contains("admin"));
}

#[test]
fn a_socket_that_somebody_removes_is_made_again() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let _program = Program::serve(folder.path());
    let open = dial(folder.path());
    let mut open = BufReader::new(open);
    let is_there = |name: &str| folder.path().join(name).exists();
    for removed in [
        &["hearth.sock"][..],
        &[KEY],
        &["hearth.sock", "hearth.lock"],
    ] {
        for name in removed {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        eventually("the socket", || {
            (is_there("hearth.sock") && is_there(KEY)).then_some(())
        });
        let about = fs::metadata(folder.path().join("hearth.sock")).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        assert!(ok(run(folder.path(), &["user", "list"])).contains("admin"));
        if removed.len() == 1 && removed[0] == "hearth.sock" {
            // Whoever was connected still is.
            let auth = json!({ "type": "auth", "token": key(folder.path()) });
            writeln!(open.get_mut(), "{auth}").unwrap();
            let mut line = String::new();
            open.read_line(&mut line).unwrap();
            assert!(line.contains("\"authenticated\":true"), "{line}");
        }
    }
    let doctor = printed(&run(folder.path(), &["doctor"]));
    assert!(doctor.contains("a server runs on"), "{doctor}");
    let second = printed(&run(folder.path(), &["serve"]));
    assert!(second.contains("another hearth uses"), "{second}");
}

#[test]
fn commands_wait_for_each_other_and_a_server_for_them() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let spawn = |words: &[&str]| {
        let mut command = hearth(folder.path());
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // Several at once, while a server starts in the midst of them.
    let words = |item: &str| spawn(&["list", "add", "shopping", item]);
    let mut running: Vec<_> = ["milk", "tea", "salt"].map(words).into();
    let program = Program::serve(folder.path());
    running.extend(["oil", "rice", "soap"].map(words));
    for child in running {
        ok(output_of(child));
    }
    let items = ok(run(folder.path(), &["list", "show", "shopping"]));
    for item in ["milk", "tea", "salt", "oil", "rice", "soap"] {
        assert!(items.contains(item), "{items}");
    }
    drop(program);
}

#[test]
fn a_server_waits_for_a_command_that_holds_the_directory() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let path = folder.path().join("hearth.lock");
    fs::write(&path, "command 1\n").unwrap();
    let held = File::open(&path).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    let program = thread::scope(|scope| {
        let starting = scope.spawn(|| Program::serve(folder.path()));
        eventually("it begins to start", || {
            folder.path().join("hearth.log").exists().then_some(())
        });
        assert!(!starting.is_finished());
        drop(held);
        starting.join().unwrap()
    });
    assert_eq!(program.signal("TERM"), Some(0));
}

#[test]
fn a_person_who_is_asked_keeps_nobody_out() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let mut child = hearth(folder.path())
        .args(["user", "passwd", "user", "--password-stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _program = Program::serve(folder.path());
    writeln!(child.stdin.take().unwrap(), "{PASSWORD}").unwrap();
    ok(output_of(child));
}

#[test]
fn the_newest_errors_and_backups_are_listed() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let errors = || ok(run(folder.path(), &["errors", "--json"]));
    assert_eq!(errors(), "[]\n");
    let line = |number: usize| format!("2026-11-21T09:30:00.125Z WARN  disk {number} is slow\n");
    let quiet = "2026-11-21T09:30:00.125Z INFO  WARN and ERROR are levels\n";
    let log: String = (0..5_000).map(|number| line(number) + quiet).collect();
    fs::write(folder.path().join("hearth.log"), log).unwrap();
    let found: Vec<String> = serde_json::from_str(&errors()).unwrap();
    assert_eq!(found.len(), 100);
    assert_eq!(found[99], line(4_999).trim_end());
    assert_eq!(found[0], line(4_900).trim_end());
    let backups = folder.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for night in ["2026-11-20", "2026-11-21"] {
        fs::write(backups.join(format!("hearth-nightly-{night}.db")), "x").unwrap();
    }
    let program = Program::serve(folder.path());
    let listed = over_socket(
        folder.path(),
        &[
            json!({ "type": "auth", "token": key(folder.path()) }),
            json!({ "type": "list_backups" }),
        ],
    );
    let names = listed[1]["data"]["backups"].as_array().unwrap().iter();
    let nights: Vec<&Value> = names.map(|one| &one["night"]).collect();
    assert_eq!(nights, ["2026-11-21", "2026-11-20"]);
    drop(program);
}

#[test]
fn a_long_path_is_no_hindrance() {
    let place = TemporaryDirectory::new();
    let folder = place.path().join("x".repeat(100)).join("y".repeat(100));
    fs::create_dir_all(&folder).unwrap();
    write_config(&folder, json!({}));
    make_people(&folder);
    assert!(ok(run(&folder, &["user", "list"])).contains("admin"));
    let program = Program::serve(&folder);
    ok(run(&folder, &["list", "add", "shopping", "milk"]));
    let mut client = page(&program, &{
        let made = ok(run(
            &folder,
            &[
                "token", "create", "--name", "door", "--user", "user", "--json",
            ],
        ));
        let made: Value = serde_json::from_str(&made).unwrap();
        made["token"].as_str().unwrap().to_owned()
    });
    let list = client.ask(json!({ "type": "get_list", "list": "shopping" }));
    assert_eq!(list["items"][0]["text"], "milk");
}

#[test]
fn what_root_makes_belongs_to_the_directory_s_owner() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can act for another user");
    }
    const SOMEBODY: u32 = 65534;
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let give = |path: &Path| std::os::unix::fs::chown(path, Some(SOMEBODY), Some(SOMEBODY));
    give(folder.path()).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        give(&entry.unwrap().path()).unwrap();
    }
    ok(run(folder.path(), &["list", "add", "shopping", "milk"]));
    ok(run_with_password(
        folder.path(),
        &["user", "add", "eva", "--child", "--password-stdin"],
    ));
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(
            fs::metadata(&path).unwrap().uid(),
            SOMEBODY,
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_broken_configuration_keeps_nobody_from_setting_a_password() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    fs::write(folder.path().join("config.json"), "{ \"port\": ").unwrap();
    let output = run_with_password(
        folder.path(),
        &["user", "passwd", "user", "--password-stdin"],
    );
    ok(output);
    let refused = run(folder.path(), &["list", "show"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        printed(&refused).contains("config.json"),
        "{}",
        printed(&refused)
    );
}

#[test]
fn a_file_that_is_no_json_is_not_shown_as_if_it_were_read() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({ "max_tokens": 500 }));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let get = |words: &[&str]| run(folder.path(), &[&["config", "get"], words].concat());
    assert_eq!(ok(get(&["max_tokens"])), "500\n");
    fs::write(folder.path().join("config.json"), "{ \"max_tokens\": ").unwrap();
    for words in [&[] as &[&str], &["max_tokens"], &["--json"]] {
        let output = get(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        for part in ["config.json", "ends too early", "hearth config edit"] {
            assert!(printed(&output).contains(part), "{}", printed(&output));
        }
    }
    // Whoever is not the owner sees what is in force.
    let mut admin = page(&program, &tokens.admin);
    let shown = admin.ask(json!({ "type": "get_config", "path": "max_tokens" }));
    assert_eq!(shown["value"], 500);
}

#[test]
fn a_directory_that_is_a_link_is_one_directory() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let place = TemporaryDirectory::new();
    let other = place.path().join("link");
    symlink(folder.path(), &other).unwrap();
    let _program = Program::serve(folder.path());
    ok(run(&other, &["list", "add", "shopping", "milk"]));
    assert!(ok(run(folder.path(), &["list", "show", "shopping"])).contains("milk"));
}

/// Holds the lock of a directory as somebody else would, whose file has this text.
fn hold(folder: &Path, text: &str) -> File {
    let path = folder.join("hearth.lock");
    fs::write(&path, text).unwrap();
    let held = File::open(&path).unwrap();
    rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
    held
}

#[test]
fn a_server_without_a_socket_is_said_to_be_older_at_once() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    let process = std::process::id();
    let _held = hold(folder.path(), &format!("{process}\n127.0.0.1:5000\n"));
    let begun = Instant::now();
    let refused = run(folder.path(), &["user", "list"]);
    let told = printed(&refused);
    assert!(told.contains("older version, restart it"), "{told}");
    assert!(told.contains(&format!("process {process}")), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_command_that_is_killed_is_in_nobody_s_way() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    make_people(folder.path());
    // A command that waits for the rest of its file, and holds the directory meanwhile.
    let mut import = hearth(folder.path())
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("it holds the directory", || {
        let text = fs::read_to_string(folder.path().join("hearth.lock")).unwrap_or_default();
        text.starts_with("command ").then_some(())
    });
    import.kill().unwrap();
    import.wait().unwrap();
    assert!(ok(run(folder.path(), &["user", "list"])).contains("admin"));
}
