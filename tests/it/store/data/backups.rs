//! Backups and restoring.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{eventually, exported, good, household, nightly, refused, text};
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{Program, printed, run};
use support::{MAX_WAIT, SetOnDrop};

#[test]
fn a_backup_under_load_is_restored_elsewhere() {
    let folder = TemporaryDirectory::new();
    write_config(
        folder.path(),
        json!({"limits": {"commands_per_second": 100_000, "commands_burst": 100_000}}),
    );
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let target = folder.path().join("copy.db");
    let said = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let mut first = Client::websocket(program.address);
    first.authenticate(&tokens.user);
    first.chat("said before the backup");
    std::thread::scope(|scope| {
        let _stopped = SetOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                first.chat("said meanwhile");
                said.store(true, Ordering::SeqCst);
            }
        });
        eventually("load", || said.load(Ordering::SeqCst).then_some(()));
        for round in 0..5 {
            let arguments: &[&str] = match round {
                0 => &["backup", text(&target)],
                _ => &["backup", text(&target), "--force"],
            };
            let told = good(folder.path(), arguments);
            assert!(told.contains("without secrets"), "{told}");
        }
    });
    let again = refused(folder.path(), &["backup", text(&target)]);
    assert!(
        again.contains("already exists") && again.contains("--force"),
        "{again}"
    );
    let running = refused(folder.path(), &["restore", text(&target)]);
    assert!(running.contains("another hearth (process"), "{running}");
    let checked = good(folder.path(), &["restore", "--check", text(&target)]);
    assert!(checked.contains("is valid: "), "{checked}");
    assert_eq!(program.signal("TERM"), Some(0));
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.path().join("copy.db.partial").exists());

    // All that was said until the backup, in its order, on another machine.
    let other = TemporaryDirectory::new();
    let told = good(other.path(), &["restore", text(&target)]);
    assert!(
        told.starts_with("Restored ") && !told.contains("before"),
        "{told}"
    );
    let (before, after) = (exported(folder.path()), exported(other.path()));
    let messages = |export: &str| -> Vec<String> {
        let lines = export
            .lines()
            .filter(|line| line.contains("\"type\":\"message\""));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        // A line begins with the id, and ids rise with time.
        lines.sort();
        lines
    };
    let (before, after) = (messages(&before), messages(&after));
    assert!(after.len() >= 2 && after.len() <= before.len());
    assert!(
        after[..] == before[..after.len()],
        "{} of {}",
        after.len(),
        before.len()
    );
    let program = Program::serve(other.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    client.chat("and it goes on");
}

#[test]
fn a_backup_has_secrets_only_when_asked() {
    let folder = household();
    let (without, with) = (folder.path().join("a.db"), folder.path().join("b.db"));
    good(folder.path(), &["backup", text(&without)]);
    let told = good(folder.path(), &["backup", text(&with), "--with-secrets"]);
    assert!(told.contains("including all secrets"), "{told}");
    let holds = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes
            .windows(18)
            .any(|bytes| bytes == b"sk-very-secret-key")
    };
    assert!(!holds(&without));
    assert!(holds(&with));

    // The secret in place is kept, and said to be.
    let before = exported(folder.path());
    let told = good(folder.path(), &["restore", text(&without)]);
    assert!(
        told.contains("kept from the current configuration: api_key."),
        "{told}"
    );
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    assert!(config.contains("sk-very-secret-key"));
    assert_eq!(exported(folder.path()), before);
    let aside = told
        .lines()
        .find_map(|line| line.strip_prefix("The earlier data is in "));
    let aside = PathBuf::from(aside.unwrap().trim_end_matches('.'));
    assert!(aside.join("hearth.db").exists() && aside.join("config.json").exists());

    let other = TemporaryDirectory::new();
    let told = good(other.path(), &["restore", text(&without)]);
    assert!(
        told.contains("Not in the backup") && told.contains(": api_key."),
        "{told}"
    );
    Program::serve(other.path());
}

#[cfg(feature = "tls")]
#[test]
fn the_authority_of_the_household_is_in_backups_with_secrets_alone() {
    let folder = household();
    good(folder.path(), &["tls", "household"]);
    let key = fs::read_to_string(folder.path().join("authority.key.pem")).unwrap();
    let line = key.lines().nth(1).unwrap().as_bytes();
    let (without, with) = (folder.path().join("a.db"), folder.path().join("b.db"));
    good(folder.path(), &["backup", text(&without)]);
    good(folder.path(), &["backup", text(&with), "--with-secrets"]);
    let holds = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(line.len()).any(|bytes| bytes == line)
    };
    assert!(!holds(&without) && holds(&with));

    // Devices that trust it need nothing new on another machine.
    let other = TemporaryDirectory::new();
    good(other.path(), &["restore", text(&with)]);
    let restored = other.path().join("authority.key.pem");
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&restored).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_to_string(restored).unwrap(), key);
    Program::serve(other.path());
    assert!(other.path().join("household.pem").exists());
}

#[test]
fn what_is_no_good_is_refused_and_nothing_changes() {
    let folder = household();
    let backup = folder.path().join("a.db");
    good(folder.path(), &["backup", text(&backup)]);
    let before = fs::read(folder.path().join("hearth.db")).unwrap();
    let whole = fs::read(&backup).unwrap();

    let damaged = folder.path().join("damaged.db");
    let mut bytes = whole.clone();
    let end = bytes.len();
    bytes[8192..end - 8192].fill(0x5a);
    fs::write(&damaged, &bytes).unwrap();
    let cut = folder.path().join("cut.db");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let newer = folder.path().join("newer.db");
    let mut bytes = whole.clone();
    // The schema's number in the header (user_version).
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&newer, &bytes).unwrap();
    let text_file = folder.path().join("notes.txt");
    fs::write(&text_file, "notes\n".repeat(2000)).unwrap();
    for (file, says) in [
        (&damaged, "is damaged"),
        (&cut, "is damaged"),
        (&newer, "was made by a newer Hearth (schema 99)"),
        (&text_file, "is neither a backup nor a database of Hearth"),
        (&folder.path().join("nowhere.db"), "cannot be read"),
    ] {
        for arguments in [
            &["restore", text(file)][..],
            &["restore", "--check", text(file)],
        ] {
            let told = refused(folder.path(), arguments);
            assert!(told.contains(says) && told.contains(text(file)), "{told}");
        }
    }
    for file in [
        "hearth.db",
        "hearth.db-wal",
        "config.json",
        "identity.key",
        "push.key",
    ] {
        let file = folder.path().join(file);
        let link = folder
            .path()
            .join("../")
            .join(folder.path().file_name().unwrap());
        let roundabout = link.join(file.file_name().unwrap());
        for arguments in [
            &["backup", "--force", text(&file)][..],
            &["backup", text(&roundabout)],
            &["export", "--all", "--force", "--output", text(&file)],
        ] {
            let told = refused(folder.path(), arguments);
            assert!(
                told.contains("one of Hearth's own files"),
                "{arguments:?}: {told}"
            );
        }
    }
    assert_eq!(fs::read(folder.path().join("hearth.db")).unwrap(), before);
    assert!(!folder.path().join("restore.partial").exists());
    let names = nightly(folder.path());
    assert!(
        !names.iter().any(|name| name.starts_with("replaced-")),
        "{names:?}"
    );
}

#[test]
fn a_plain_copy_of_the_database_is_restored_too() {
    let folder = household();
    let expected = exported(folder.path());
    let other = TemporaryDirectory::new();
    let database = folder.path().join("hearth.db");
    let told = good(other.path(), &["restore", text(&database)]);
    assert!(told.contains("contains no configuration"), "{told}");
    assert_eq!(exported(other.path()), expected);
}

#[test]
fn a_damaged_database_says_how_to_restore_it() {
    let folder = household();
    let backups = folder.path().join("backups");
    fs::create_dir(&backups).unwrap();
    let newest = backups.join("hearth-nightly-2026-11-20.db");
    good(folder.path(), &["backup", text(&newest)]);
    let database = folder.path().join("hearth.db");
    let mut bytes = fs::read(&database).unwrap();
    let end = bytes.len();
    bytes[8192..end - 4096].fill(0x5a);
    fs::write(&database, &bytes).unwrap();

    let told = refused(
        folder.path(),
        &["serve", "--bind", "127.0.0.1", "--port", "0"],
    );
    assert!(told.contains("hearth.db is damaged"), "{told}");
    assert!(told.contains("Nothing was changed."), "{told}");
    let command = format!(
        "hearth restore --data-dir {} {}",
        text(folder.path()),
        text(&newest)
    );
    assert!(told.contains(&command), "{told}");
    assert_eq!(fs::read(&database).unwrap(), bytes, "nothing was changed");
    let doctor = run(folder.path(), &["doctor"]);
    assert!(
        printed(&doctor).contains("hearth.db is damaged"),
        "{}",
        printed(&doctor)
    );

    let words: Vec<&str> = command.split(' ').skip(1).collect();
    good(folder.path(), &words);
    Program::serve(folder.path());
}

#[test]
fn an_interrupted_restore_is_finished_by_the_next_start() {
    let folder = household();
    let expected = exported(folder.path());
    let ready = folder.path().join("restore.ready");
    fs::create_dir(&ready).unwrap();
    fs::create_dir(folder.path().join("replaced-1")).unwrap();
    fs::write(ready.join("aside"), "replaced-1").unwrap();
    // The moment in which there is no database in place.
    fs::rename(folder.path().join("hearth.db"), ready.join("hearth.db")).unwrap();
    let told = refused(folder.path(), &["export", "--all"]);
    assert!(told.contains("hearth serve` completes it"), "{told}");
    let program = Program::serve(folder.path());
    assert!(
        !program.said.contains("Password"),
        "no new household: {}",
        program.said
    );
    assert!(!ready.exists());
    assert_eq!(exported(folder.path()), expected);
}

#[test]
fn the_nightly_backups_are_listed_with_and_without_a_server() {
    let folder = household();
    let list = || good(folder.path(), &["backup", "--list", "--json"]);
    assert_eq!(list(), "[]\n");
    let backups = folder.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for night in ["2026-11-20", "2026-11-21"] {
        fs::write(backups.join(format!("hearth-nightly-{night}.db")), "x").unwrap();
    }
    let expected = json!([
        {"name": "hearth-nightly-2026-11-21.db", "night": "2026-11-21", "bytes": 1},
        {"name": "hearth-nightly-2026-11-20.db", "night": "2026-11-20", "bytes": 1},
    ]);
    let listed = || serde_json::from_str::<Value>(&list()).unwrap();
    assert_eq!(listed(), expected);
    let program = Program::serve(folder.path());
    assert_eq!(listed(), expected);
    let told = printed(&run(folder.path(), &["backup", "--list"]));
    assert!(told.contains("hearth-nightly-2026-11-21.db"), "{told}");
    assert!(told.contains(text(&backups)), "{told}");
    drop(program);
    for arguments in [&["backup"][..], &["backup", "a.db", "--list"]] {
        assert_eq!(run(folder.path(), arguments).status.code(), Some(2));
    }
}

#[test]
fn a_backup_is_of_one_moment_and_its_parts_come_in_their_order() {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut person = Client::websocket(program.address);
    person.authenticate(&tokens.user);
    for _ in 0..5 {
        person.chat(&"before ".repeat(20_000));
    }
    let key = fs::read_to_string(folder.path().join("hearth.sock.key")).unwrap();
    let socket = UnixStream::connect(folder.path().join("hearth.sock")).unwrap();
    socket.set_read_timeout(Some(MAX_WAIT)).unwrap();
    let mut lines = BufReader::new(socket);
    let mut ask = |request: Value| -> Value {
        writeln!(lines.get_mut(), "{request}").unwrap();
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    ask(json!({"type": "auth", "token": key}));
    let mut part = |number: u64| ask(json!({"type": "back_up", "part": number}));
    assert_eq!(part(1)["code"], "invalid_request");
    let mut copy = Vec::new();
    let first = part(0);
    person.chat("afterwards, and not in the copy");
    let mut response = first.clone();
    for number in 1.. {
        let data = response["data"]["data"].as_str().unwrap();
        copy.extend(protocol::attachment::decode(data).unwrap());
        if response["data"]["done"] == true {
            assert!(number > 2, "it has several parts");
            break;
        }
        response = part(number);
    }
    assert_eq!(first["data"]["bytes"], copy.len());
    let gone = part(7);
    assert_eq!(gone["code"], "invalid_request", "{gone}");
    let file = folder.path().join("copy.db");
    fs::write(&file, &copy).unwrap();
    let told = good(folder.path(), &["restore", "--check", text(&file)]);
    assert!(told.contains("10 messages"), "{told}");
    let told = good(folder.path(), &["backup", "--force", text(&file)]);
    assert!(told.contains("12 messages"), "{told}");
}

#[test]
fn a_backup_or_export_replaces_nothing_but_a_file() {
    let folder = household();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/null", at("link")).unwrap();
    for name in ["directory", "fifo", "link"] {
        let target = at(name);
        let export = ["export", "--all", "--force", "--output", text(&target)];
        for arguments in [&["backup", "--force", text(&target)][..], &export] {
            let told = refused(folder.path(), arguments);
            assert!(told.contains("no regular file"), "{told}");
        }
        assert!(!at(name).metadata().unwrap().is_file());
    }
    let told = refused(folder.path(), &["backup", text(&at("missing/a.db"))]);
    assert!(told.contains("its directory does not exist"), "{told}");
    let names = fs::read_dir(folder.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.ends_with(".partial")));
}

#[test]
fn what_a_killed_backup_left_goes_with_the_next_whatever_its_name() {
    let folder = household();
    let backups = TemporaryDirectory::new();
    let at = |name: &str| backups.join(name);
    good(folder.path(), &["backup", text(&at("monday.db"))]);
    let left = ["tuesday.db.partial", "tuesday.db.partial-journal"];
    for name in left {
        fs::copy(at("monday.db"), at(name)).unwrap();
    }
    fs::write(at("film.partial"), "of another program").unwrap();
    good(folder.path(), &["backup", text(&at("wednesday.db"))]);
    let names = fs::read_dir(backups.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["film.partial", "monday.db", "wednesday.db"]);
}
