//! The household's data: backups, restoring, exports, imports, retention.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hearth::clock::Clock;
use hearth::store::Store;
use serde_json::{Value, json};

use super::support::PATIENCE;
use super::support::client::Client;
use super::support::home::{Folder, Home, make_people, write_config};
use super::support::program::{Program, hearth, printed, run};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        printed(&output)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "progress must be silent in a pipe"
    );
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    printed(&output)
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/imports");
    path.join(name).to_str().unwrap().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::park_timeout(Duration::from_millis(30));
    }
}

/// A household that does not run, with something said in it.
fn household() -> Folder {
    let mut home = Home::start(json!({
        "api_key": "sk-very-secret-key",
        "base_url": "https://models.example/v1",
        "provider": "offline",
    }));
    let mut client = home.admin();
    client.chat("the boiler hums");
    client.chat("good morning");
    drop(client);
    home.stop();
    std::mem::replace(&mut home.folder, Folder::new())
}

fn exported(folder: &Path) -> String {
    good(folder, &["export", "--all"])
}

fn nightly(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
            entries.map(|entry| name(entry.unwrap())).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_backup_under_load_is_restored_elsewhere() {
    let folder = Folder::new();
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
        stop.store(true, Ordering::SeqCst);
    });
    let again = refused(folder.path(), &["backup", text(&target)]);
    assert!(
        again.contains("exists already") && again.contains("--force"),
        "{again}"
    );
    let running = refused(folder.path(), &["restore", text(&target)]);
    assert!(running.contains("another hearth (process"), "{running}");
    let checked = good(folder.path(), &["restore", "--check", text(&target)]);
    assert!(checked.contains("is good: "), "{checked}");
    assert_eq!(program.signal("TERM"), Some(0));
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!folder.path().join("copy.db.partial").exists());

    // All that was said until the backup, in its order, on another machine.
    let other = Folder::new();
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
    assert!(told.contains("with all secrets"), "{told}");
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
        told.contains("kept from the configuration in place: api_key."),
        "{told}"
    );
    let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
    assert!(config.contains("sk-very-secret-key"));
    assert_eq!(exported(folder.path()), before);
    let aside = told
        .lines()
        .find_map(|line| line.strip_prefix("What was here before is in "));
    let aside = PathBuf::from(aside.unwrap().trim_end_matches('.'));
    assert!(aside.join("hearth.db").exists() && aside.join("config.json").exists());

    let other = Folder::new();
    let told = good(other.path(), &["restore", text(&without)]);
    assert!(
        told.contains("Not in the backup") && told.contains(": api_key."),
        "{told}"
    );
    Program::serve(other.path());
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
        (&text_file, "is no backup of Hearth"),
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
    let other = Folder::new();
    let database = folder.path().join("hearth.db");
    let told = good(other.path(), &["restore", text(&database)]);
    assert!(told.contains("holds no configuration"), "{told}");
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
    assert!(told.contains("`hearth serve` finishes it"), "{told}");
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
fn exports_are_imported_as_they_were() {
    let folder = household();
    let export = exported(folder.path());
    let file = folder.path().join("export.jsonl");
    let told = good(folder.path(), &["export", "--all", "--output", text(&file)]);
    assert!(
        told.starts_with("Exported 4 messages in 2 conversations"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), export);
    let again = refused(folder.path(), &["export", "--all", "--output", text(&file)]);
    assert!(again.contains("exists already"), "{again}");

    let told = good(folder.path(), &["import", text(&file)]);
    assert_eq!(
        told,
        "Imported 0 messages in 0 conversations; 2 were already there.\n"
    );
    let other = Folder::new();
    write_config(other.path(), json!({}));
    let tokens = make_people(other.path());
    let program = Program::serve(other.path());
    let told = good(other.path(), &["import", text(&file)]);
    assert_eq!(
        told,
        "Imported 4 messages in 2 conversations; 0 were already there.\n"
    );
    assert_eq!(exported(other.path()), export);
    let told = good(other.path(), &["import", text(&file)]);
    assert!(told.contains("2 were already there"), "{told}");
    // The running server has it.
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    let found = client.ask(json!({"type": "search_messages", "query": "boiler"}));
    let found = found["messages"].as_array().unwrap();
    assert!(
        found
            .iter()
            .any(|message| message["content"] == "the boiler hums")
    );

    let one: Value = serde_json::from_str(export.lines().nth(1).unwrap()).unwrap();
    let id = one["id"].as_str().unwrap();
    let markdown = good(
        folder.path(),
        &["export", "--conversation", id, "--format", "markdown"],
    );
    assert!(
        markdown.starts_with("# good morning\n\nconv_"),
        "{markdown}"
    );
    assert!(markdown.contains("\n## admin, 20") && markdown.contains("\n## Assistant, 20"));
    let usage = run(folder.path(), &["export"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn conversations_of_chatgpt_and_claude_are_taken_in_once() {
    let folder = household();
    let told = good(folder.path(), &["import", &sample("chatgpt.json")]);
    assert_eq!(
        told,
        "Imported 4 messages in 2 conversations; 0 were already there.\n\
         Left out 2: conversations without messages\n\
         Left out 2: items that are no conversation of ChatGPT or Claude\n"
    );
    let told = good(folder.path(), &["import", &sample("claude.json"), "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["imported"], &told["messages"]),
        (&json!(2), &json!(3))
    );
    let again = good(folder.path(), &["import", &sample("chatgpt.json")]);
    assert!(
        again.starts_with("Imported 0 messages in 0 conversations; 2 were"),
        "{again}"
    );

    let markdown = good(folder.path(), &["export", "--all", "--format", "markdown"]);
    for piece in [
        "# Sourdough\n\nconv_",
        ", import, 2023-11-14T22:13:20.250Z\n\n## User, 2023-11-14T22:13:21.500Z\n\n[image]\n\nHow long",
        "## Assistant, 2023-11-14T22:13:23.000Z\n\nLet me look.\n\nFour hours at 26 degrees.\n",
        "# ChatGPT\n",
        "## Assistant, 2020-09-13T12:26:40.000Z\n\nAlder.\n",
        "# Garden plan\n",
        "[attachment: beds.txt]\n\nbed one: north wall\n\n[file: garden.jpg]\n",
        "## Assistant, 2024-05-01T06:00:09.000Z\n\nFerns and hostas.\n",
    ] {
        assert!(markdown.contains(piece), "{piece} is not in {markdown}");
    }
    for piece in ["abandoned", "a web page", "search('leaven')", "hidden"] {
        assert!(!markdown.contains(piece), "{piece} is in {markdown}");
    }
    // What is old is listed after what is new, and found by its words.
    let at = |title: &str| markdown.find(title).unwrap();
    assert!(at("# good morning") < at("# Claude") && at("# Garden plan") < at("# Sourdough"));
    let found = good(folder.path(), &["search", "degrees"]);
    assert!(found.contains("2023-11-14T22:13:23.000Z"), "{found}");

    for (name, content, says) in [
        ("export.zip", &b"PK\x03\x04...."[..], "unzip it first"),
        ("notes.txt", b"notes", "is no export that Hearth knows"),
        (
            "cut.json",
            b"[{\"title\": \"x\", ",
            "the file ends or breaks off",
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let told = refused(folder.path(), &["import", text(&path)]);
        assert!(told.contains(says) && told.contains(name), "{told}");
    }
}

/// Starts a command and kills it after a moment.
fn killed(folder: &Path, arguments: &[&str], moment: Duration) {
    let mut child = hearth(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::park_timeout(moment);
    let _ = child.kill();
    child.wait().unwrap();
}

/// An export with many messages.
fn large_export(folder: &Path) -> PathBuf {
    let mut lines = vec![json!({"type": "hearth_export", "version": 1}).to_string()];
    for conversation in 0..30 {
        let id = format!("conv_{conversation:013}");
        let time = "2026-01-05T10:00:00.000Z";
        lines.push(
            json!({"type": "conversation", "id": id, "title": "t", "channel": "lines",
                "created_at": time, "updated_at": time})
            .to_string(),
        );
        for number in 0..300 {
            let role = ["user", "assistant"][number % 2];
            lines.push(
                json!({"type": "message", "role": role, "timestamp": time,
                    "content": format!("message {number} of {conversation}: {}", "word ".repeat(40))})
                .to_string(),
            );
        }
    }
    let path = folder.join("large.jsonl");
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn kill_9_leaves_nothing_half_done() {
    let folder = household();
    let file = large_export(folder.path());
    for round in 1..=6 {
        killed(
            folder.path(),
            &["import", text(&file)],
            Duration::from_millis(60 * round),
        );
        Store::open(&folder.path().join("hearth.db"), Clock::system())
            .unwrap()
            .close();
    }
    good(folder.path(), &["import", text(&file)]);
    let expected = exported(folder.path());
    assert_eq!(expected.matches("\"type\":\"conversation\"").count(), 32);
    assert_eq!(
        expected.matches("\"type\":\"message\"").count(),
        30 * 300 + 4
    );

    let target = folder.path().join("copy.db");
    for round in 1..=6 {
        killed(
            folder.path(),
            &["backup", text(&target), "--force"],
            Duration::from_millis(25 * round),
        );
        if target.exists() {
            good(folder.path(), &["restore", "--check", text(&target)]);
        }
    }
    good(folder.path(), &["backup", text(&target), "--force"]);
    assert!(!folder.path().join("copy.db.partial").exists());
    for round in 1..=8 {
        killed(
            folder.path(),
            &["restore", text(&target)],
            Duration::from_millis(25 * round),
        );
        Program::serve(folder.path()).kill();
        assert!(exported(folder.path()) == expected, "round {round}");
    }
}

#[test]
fn a_full_disk_leaves_no_half_a_backup() {
    let folder = household();
    let file = large_export(folder.path());
    good(folder.path(), &["import", text(&file)]);
    let target = folder.path().join("copy.db");
    // A file may not grow beyond 200 kB: as on a full disk, writing fails.
    let script = format!(
        "ulimit -f 200; trap '' XFSZ; exec {} backup {}",
        env!("CARGO_BIN_EXE_hearth"),
        text(&target)
    );
    let output: Output = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("HEARTH_DATA_DIR", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(
        printed(&output).contains("cannot be written"),
        "{}",
        printed(&output)
    );
    assert!(!target.exists() && !folder.path().join("copy.db.partial").exists());
}

#[test]
fn nights_have_backups_and_old_ones_go() {
    let mut home = Home::start(json!({"backup": {"keep": 2, "at": "00:00"}}));
    let backups = home.folder.path().join("backups");
    let mut client = home.admin();
    client.chat("hello");
    assert!(
        nightly(&backups).is_empty(),
        "the first day has no night before it"
    );
    fs::create_dir(&backups).unwrap();
    fs::write(backups.join("hearth-before-update.db"), "mine").unwrap();
    fs::write(backups.join("hearth-nightly-2020-01-01.db.partial"), "half").unwrap();
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..3 {
        home.server().advance_clock(DAY);
        let newest = eventually("the night's backup", || {
            let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
            let newest = status["newest"].as_str()?.to_owned();
            (!seen.contains(&newest)).then_some(newest)
        });
        seen.push(newest);
    }
    let expected: Vec<String> = ["hearth-before-update.db".to_owned()]
        .into_iter()
        .chain(
            seen[1..]
                .iter()
                .map(|night| format!("hearth-nightly-{night}.db")),
        )
        .collect();
    eventually("the oldest to go", || {
        (nightly(&backups) == expected).then_some(())
    });

    // A night that was missed is made up for; what goes wrong is told.
    home.stop();
    home.clock.advance(5 * DAY);
    home.restart();
    let mut client = home.admin();
    eventually("the missed night", || {
        let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
        (status["newest"] != json!(seen[2])).then_some(())
    });
    eventually("its end", || (nightly(&backups).len() == 3).then_some(()));
    fs::remove_dir_all(&backups).unwrap();
    fs::write(&backups, "in the way").unwrap();
    home.server().advance_clock(DAY);
    let problem = eventually("the problem", || {
        let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
        status["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("backups"), "{problem}");
}

#[test]
fn old_conversations_go_where_the_owner_wants_it() {
    let home = Home::start(json!({"retention": {"conversations_days": 30}, "backup": {"keep": 0}}));
    let mut client = home.admin();
    client.chat("soon forgotten");
    home.server().advance_clock(20 * DAY);
    client.chat("still fresh");
    let imported = good(home.folder.path(), &["import", &sample("claude.json")]);
    assert!(imported.contains("2 conversations"), "{imported}");
    home.server().advance_clock(20 * DAY);
    let titles = eventually("the old conversation to go", || {
        let list = client.ask(json!({"type": "list_conversations"}))["conversations"].clone();
        let titles: Vec<String> = list
            .as_array()?
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect();
        (!titles.contains(&"soon forgotten".to_owned())).then_some(titles)
    });
    assert!(titles.contains(&"still fresh".to_owned()), "{titles:?}");
}
