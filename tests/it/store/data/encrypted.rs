//! Encrypted backups: at night to a key, by hand with a passphrase, and to and from the program
//! `age`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{DAY, eventually, exported, good, household, nightly, refused, text};
use support::home::{Home, TemporaryDirectory};
use support::program::{finish, hearth, is_there, output_of, printed, run};

const PASSPHRASE: &str = "the kettle sings at nine";

/// Runs a command with a line on standard input.
fn typed(folder: &Path, arguments: &[&str], line: &str) -> Output {
    let mut command = hearth(folder);
    command.args(arguments).env("TMPDIR", folder);
    fed(command, format!("{line}\n").as_bytes())
}

fn fed(mut command: Command, input: &[u8]) -> Output {
    let piped = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A command that is over has no need of it.
    let _ = child.stdin.take().unwrap().write_all(input);
    output_of(child)
}

/// A fresh key: the file of its secret, and the public one.
fn new_key(folder: &Path) -> (PathBuf, String) {
    let file = folder.join("backup.key");
    let made = run(folder, &["backup", "--new-key", text(&file)]);
    assert!(made.status.success(), "{}", printed(&made));
    let said = printed(&made);
    let public = said
        .split_whitespace()
        .find(|word| word.starts_with("age1"))
        .unwrap()
        .to_owned();
    assert!(
        said.contains(&format!("hearth config set backup.encrypt_to {public}")),
        "{said}"
    );
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = refused(folder, &["backup", "--new-key", text(&file)]);
    assert!(again.contains("already exists"), "{again}");
    (file, public)
}

/// Everything in a directory that is not encrypted.
fn plain_files(directory: &Path) -> Vec<String> {
    let names = nightly(directory);
    names
        .into_iter()
        .filter(|name| !name.ends_with(".age"))
        .collect()
}

/// Restores a backup elsewhere; returns what is in it.
fn restored(arguments: &[&str], line: &str) -> String {
    let other = TemporaryDirectory::new();
    let restore = [&["restore"], arguments].concat();
    let output = typed(other.path(), &restore, line);
    assert!(output.status.success(), "{}", printed(&output));
    let left = nightly(other.path());
    let is_left = |name: &&String| name.contains("decrypted") || name.contains("partial");
    assert_eq!(left.iter().find(is_left), None, "a copy is left");
    exported(other.path())
}

#[test]
fn a_backup_with_a_passphrase_is_read_with_it_alone() {
    let folder = household();
    let away = TemporaryDirectory::new();
    let file = away.path().join("a.age");
    let before = nightly(folder.path());
    let back_up = ["backup", "--encrypt", text(&file)];
    let short = typed(folder.path(), &back_up, "too short");
    assert!(
        printed(&short).contains("at least 12 characters"),
        "{}",
        printed(&short)
    );
    assert!(!short.status.success() && !file.exists());
    let made = typed(folder.path(), &back_up, PASSPHRASE);
    assert!(made.status.success(), "{}", printed(&made));
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let bytes = fs::read(&file).unwrap();
    assert!(
        !bytes
            .windows(6)
            .any(|part| part == b"boiler" || part == b"SQLite")
    );
    assert_eq!(nightly(away.path()), ["a.age"]);
    assert_eq!(nightly(folder.path()), before, "a plain copy is left");
    assert_eq!(
        restored(&[text(&file)], PASSPHRASE),
        exported(folder.path())
    );
    let checked = typed(
        folder.path(),
        &["restore", "--check", text(&file)],
        PASSPHRASE,
    );
    assert!(
        printed(&checked).contains("a.age is valid: 4 messages"),
        "{}",
        printed(&checked)
    );

    // Whatever is wrong with it changes nothing, in a household that was there.
    let here = household();
    let (database, expected) = (here.path().join("hearth.db"), exported(here.path()));
    let (present, there) = (fs::read(&database).unwrap(), nightly(here.path()));
    let mut changed = bytes.clone();
    changed[70_000] ^= 1;
    let key = new_key(away.path()).0;
    for (name, content, line, options, says) in [
        (
            "wrong.age",
            &bytes[..],
            "the kettle sings at ten",
            &[][..],
            "the passphrase is wrong",
        ),
        (
            "cut.age",
            &bytes[..bytes.len() / 2],
            PASSPHRASE,
            &[],
            "is damaged or was cut off",
        ),
        ("head.age", &bytes[..60], PASSPHRASE, &[], "is damaged"),
        (
            "changed.age",
            &changed[..],
            PASSPHRASE,
            &[],
            "is damaged or was cut off",
        ),
        (
            "key.age",
            &bytes[..],
            "",
            &["--identity", text(&key)],
            "leave --identity out",
        ),
    ] {
        let bad = away.path().join(name);
        fs::write(&bad, content).unwrap();
        for restore in [
            &["restore", text(&bad)][..],
            &["restore", "--check", text(&bad)],
        ] {
            let output = typed(here.path(), &[restore, options].concat(), line);
            let said = printed(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(says) && said.contains(text(&bad)), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        assert_eq!(nightly(here.path()), there, "{name}");
        assert_eq!(fs::read(&database).unwrap(), present, "{name}");
    }
    assert_eq!(exported(here.path()), expected);
}

#[test]
fn nights_are_encrypted_to_the_key_that_was_set_and_such_alone_are_given_away() {
    let keys = TemporaryDirectory::new();
    let (key, public) = new_key(keys.path());
    let disk = TemporaryDirectory::new();
    let mut home = Home::start(json!({"backup": {"at": "00:00", "directory": disk.path()}}));
    let mut admin = home.admin();
    admin.chat("the boiler hums");
    let newest = |home: &Home, ending: &str| {
        let mut admin = home.admin();
        admin.ask(json!({"type": "start_backup"}));
        eventually("the backup", || {
            let known = admin.ask(json!({"type": "list_backups"}));
            let name = known["backups"][0]["name"].as_str()?.to_owned();
            assert_eq!(known["problem"], Value::Null);
            (known["is_running"] == false && name.ends_with(ending)).then_some(name)
        })
    };
    let download = |name: &str| json!({"type": "download_backup", "name": name, "part": 0});
    let plain = newest(&home, ".db");
    assert_eq!(admin.refused(download(&plain)), "not_found");
    // A key is for the owner of the machine to set.
    let set = json!({"type": "update_config", "config": {"backup": {"encrypt_to": public}}});
    admin.refused(set);
    drop(admin);
    home.stop();
    let wrong = refused(
        home.folder.path(),
        &["config", "set", "backup.encrypt_to", "age1x"],
    );
    assert!(wrong.contains("a public key"), "{wrong}");
    let set = ["config", "set", "backup.encrypt_to", &public];
    let set = run(home.folder.path(), &set);
    assert!(set.status.success(), "{}", printed(&set));
    home.restart();
    let name = newest(&home, ".age");
    assert_eq!(
        nightly(disk.path()),
        [&*name],
        "that of the same night is replaced"
    );
    assert_eq!(plain_files(&home.folder.path().join("backups")), [""; 0]);
    assert!(
        !nightly(home.folder.path())
            .iter()
            .any(|name| name.ends_with(".partial"))
    );

    let mut admin = home.admin();
    let mut bytes = Vec::new();
    for part in 0.. {
        let wanted = json!({"type": "download_backup", "name": name, "part": part});
        let got = admin.ask(wanted);
        bytes.extend(STANDARD.decode(got["data"].as_str().unwrap()).unwrap());
        if got["done"] == true {
            break;
        }
    }
    let file = disk.path().join(&name);
    assert!(bytes == fs::read(&file).unwrap(), "{} bytes", bytes.len());
    assert!(
        bytes.len() > 256 * 1024,
        "more than a part: {}",
        bytes.len()
    );
    home.websocket(&home.tokens.user).refused(download(&name));
    // What only looks encrypted stays.
    let next = "hearth-nightly-2999-01-01.db.age";
    fs::write(disk.path().join(next), "SQLite format 3, and more text").unwrap();
    admin.refused(download(next));
    fs::remove_file(disk.path().join(next)).unwrap();
    drop(admin);
    home.stop();
    let expected = exported(home.folder.path());
    assert_eq!(
        restored(&["--identity", text(&key), text(&file)], ""),
        expected
    );

    let other = TemporaryDirectory::new();
    let (wrong_key, _) = new_key(other.path());
    let here = household();
    let present = exported(here.path());
    for (options, says) in [
        (
            &["--identity", text(&wrong_key)][..],
            "is encrypted to another key",
        ),
        (&[], "name the file of its secret key with --identity"),
        (&["--identity", text(&file)], "holds no secret key"),
    ] {
        let said = refused(here.path(), &[&["restore", text(&file)], options].concat());
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(exported(here.path()), present);
}

#[test]
fn an_encrypted_night_is_one_of_those_that_are_kept() {
    let keys = TemporaryDirectory::new();
    let (_, public) = new_key(keys.path());
    let settings = json!({"backup": {"keep": 2, "at": "00:00", "encrypt_to": public}});
    let home = Home::start(settings);
    let backups = home.folder.path().join("backups");
    let mut client = home.admin();
    client.chat("hello");
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..3 {
        home.server().advance_clock(DAY);
        seen.push(eventually("the night's backup", || {
            let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
            let newest = status["newest"].as_str()?.to_owned();
            (!seen.contains(&newest)).then_some(newest)
        }));
    }
    let names = seen[1..]
        .iter()
        .map(|night| format!("hearth-nightly-{night}.db.age"));
    let expected: Vec<String> = names.collect();
    eventually("the oldest to go", || {
        (nightly(&backups) == expected).then_some(())
    });
}

#[test]
fn the_program_age_reads_our_backups_and_we_read_its_files() {
    if !is_there("age") || !is_there("age-keygen") {
        return println!("skipped: no program `age` (apt package `age`)");
    }
    let folder = household();
    let place = TemporaryDirectory::new();
    let at = |name: &str| place.path().join(name);
    let age = |program: &str, arguments: &[&str]| {
        let output = finish(Command::new(program).args(arguments));
        assert!(output.status.success(), "{}", printed(&output));
    };
    let backup = at("plain.db");
    good(folder.path(), &["backup", text(&backup)]);
    let expected = exported(folder.path());

    // Its key and file, read by us.
    age("age-keygen", &["-o", text(&at("age.key"))]);
    let theirs = fs::read_to_string(at("age.key")).unwrap();
    let public = theirs
        .split_whitespace()
        .find(|word| word.starts_with("age1"))
        .unwrap();
    age(
        "age",
        &["-r", public, "-o", text(&at("theirs.age")), text(&backup)],
    );
    let (key, file) = (at("age.key"), at("theirs.age"));
    assert_eq!(
        restored(&["--identity", text(&key), text(&file)], ""),
        expected
    );

    // Our key and file, read by it.
    let (key, public) = new_key(place.path());
    age(
        "age",
        &["-r", &public, "-o", text(&at("ours.age")), text(&backup)],
    );
    let file = at("ours.age");
    assert_eq!(
        restored(&["--identity", text(&key), text(&file)], ""),
        expected
    );
    let settings = json!({"backup": {"at": "00:00", "encrypt_to": public}});
    let home = Home::start(settings);
    home.admin().chat("the boiler hums");
    home.server().advance_clock(DAY);
    let backups = home.folder.path().join("backups");
    let night = eventually("the night's backup", || {
        nightly(&backups)
            .into_iter()
            .find(|name| name.ends_with(".age"))
    });
    age(
        "age",
        &[
            "-d",
            "-i",
            text(&key),
            "-o",
            text(&at("night.db")),
            text(&backups.join(night)),
        ],
    );
    let opened = Connection::open(at("night.db")).unwrap();
    let messages = opened.query_row("SELECT count(*) FROM messages", [], |row| row.get(0));
    assert_eq!(messages, Ok(2));

    // Passphrases, which it takes from a terminal alone.
    if !is_there("script") {
        return println!("skipped: passphrases: no program `script`");
    }
    let ours = at("passphrase.age");
    let made = typed(
        folder.path(),
        &["backup", "--encrypt", text(&ours)],
        PASSPHRASE,
    );
    assert!(made.status.success(), "{}", printed(&made));
    let mut command = Command::new("script");
    let line = format!(
        "age -d -o '{}' '{}'",
        at("opened.db").display(),
        ours.display()
    );
    command.args(["-qec", &line, "/dev/null"]);
    let output = fed(command, format!("{PASSPHRASE}\n").as_bytes());
    assert!(output.status.success(), "{}", printed(&output));
    assert!(
        fs::read(at("opened.db"))
            .unwrap()
            .starts_with(b"SQLite format 3\0")
    );
}
