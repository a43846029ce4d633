//! A power cut, as far as it can be shown without cutting any.
//!
//! The real server runs under strace, which notes every write, truncation and
//! sync of the database's files and every acknowledgement, in their order. From
//! that log the files are rebuilt as a disk may hold them after a cut at some
//! point: everything that was synced by then, and of what was written since
//! nothing, everything, or any part, whole or torn at a sector. The rebuilt
//! database must be sound, and hold everything that was acknowledged by then: turns,
//! items of lists and their removal, memories, people, tokens, files and imports.
//!
//! This shows that the server (and SQLite as it is set up here) syncs before it
//! acknowledges, and writes in an order that can be recovered from. It does not
//! show that a disk which is told to sync does so, nor test the file system.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::clock::Clock;
use base::ids::TurnId;
use rusqlite::Connection;
use serde_json::{Value, json};
use store::Store;

use super::{
    Posted, Poster, chat_meanwhile, check_integrity, look_into, mark_in, random, wait_until_done,
    with_account, within,
};
use support::SetOnDrop;
use support::client::Client;
use support::home::{PASSWORD, TemporaryDirectory, Tokens, make_people, write_config};
use support::http::exchange;
use support::model::{Act, Model};
use support::program::{Program, hearth, is_there, skipped};
use support::receiver::Receiver;

/// What a disk writes whole.
const SECTOR: usize = 512;
/// The files that a cut is shown on; the -shm file is made anew after one.
const FILES: [&str; 2] = ["hearth.db", "hearth.db-wal"];
const CALLS: &str = "trace=openat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,fallocate,\
                     fsync,fdatasync,sync_file_range,rename,renameat,unlink,unlinkat,sendto";

/// One thing that the server did, in the order of the log.
#[derive(Debug)]
enum Event {
    /// The file was made; the name is safe once the directory is synced.
    Create(usize),
    Write(usize, usize, Vec<u8>),
    Truncate(usize, usize),
    Unlink(usize),
    Sync(usize),
    SyncDirectory,
    /// The mark of what was acknowledged.
    Acknowledge(String),
}

/// Begins the marks of imports.
const IMPORTED: &str = "import-";

/// A query that finds what was acknowledged by its mark.
type Kept = &'static str;

/// What is kept of the turn of a webhook, whose mark is its id.
const TURN: Kept = "SELECT 1 FROM turns WHERE id = ?1";
const ITEM: Kept = "SELECT 1 FROM list_items WHERE text = ?1";
const REMOVED_ITEM: Kept = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM list_items WHERE text = ?1)";
const MEMORY: Kept = "SELECT 1 FROM memories WHERE content = ?1";
const PERSON: Kept = "SELECT 1 FROM users WHERE name = ?1";
const TOKEN: Kept = "SELECT 1 FROM tokens WHERE name = ?1";
/// All its pieces are there.
const FILE: Kept = "SELECT 1 FROM attachments WHERE name = ?1 AND bytes =
    (SELECT sum(length(data)) FROM attachment_pieces WHERE attachment_id = attachments.id)";
/// All its messages are there.
const IMPORT: Kept = "SELECT 1 FROM conversations WHERE title = ?1 AND
    (SELECT count(*) FROM messages WHERE conversation_id = conversations.id) = 3";

/// Runs `messages` messages, and as many other changes of the household, and cuts the power at
/// up to `cuts` points.
pub fn cuts(messages: usize, cuts: usize) {
    if !is_there("strace") {
        return;
    }
    let (model, receiver) = (remembering(), Receiver::start());
    let (folder, outside) = (TemporaryDirectory::new(), TemporaryDirectory::new());
    write_config(folder.path(), with_account(&model, receiver.url()));
    let tokens = make_people(folder.path());
    let before = fs::read(folder.path().join(FILES[0])).unwrap();
    let log = outside.path().join("trace");
    let Some(program) = serve(folder.path(), &log) else {
        skipped("strace cannot read what the server writes here: perhaps only root may");
        return;
    };
    let poster = Poster::new(program.address);
    let mut household = Household::sign_in(&program, &tokens);
    let mut kept: HashMap<String, Kept> = HashMap::new();
    let is_done = AtomicBool::new(false);
    let replies = std::thread::scope(|scope| {
        let done = SetOnDrop(&is_done);
        let bystander = scope.spawn(|| chat_meanwhile(program.address, &tokens.user, &is_done));
        for number in 0..messages {
            kept.extend([household.change(number)]);
            let text = format!("tok-{number} {}", "x".repeat(random(20_000) as usize));
            let body = json!({ "message": text, "conversation_id": format!("c{}", number % 7) });
            match poster.post(&[], &body) {
                Posted::Answered(202, receipt) => {
                    let turn = receipt["data"]["turn_id"].as_str().unwrap();
                    kept.insert(turn.to_owned(), TURN);
                }
                posted => panic!("{posted:?}"),
            }
        }
        drop(done);
        bystander.join().unwrap()
    });
    wait_until_done(folder.path(), Duration::from_secs(60));
    program.kill();
    wait_for_end(&log);

    let events = read_log(&log, folder.path());
    let syncs = events
        .iter()
        .filter(|one| matches!(one, Event::Sync(_)))
        .count();
    let acknowledged: Vec<usize> = (0..events.len())
        .filter(|&place| matches!(events[place], Event::Acknowledge(_)))
        .collect();
    let mut missing = kept.clone();
    for place in &acknowledged {
        if let Event::Acknowledge(mark) = &events[*place] {
            missing.remove(mark);
        }
    }
    assert!(
        missing.is_empty(),
        "no acknowledgement of {missing:?} is in the log"
    );
    assert_eq!(acknowledged.len(), kept.len());
    // Cuts right after acknowledgements, where the promise is dearest, and
    // anywhere else.
    let mut points: Vec<usize> = (0..cuts / 2)
        .map(|_| acknowledged[random(acknowledged.len() as u64) as usize] + 1)
        .chain((0..cuts - cuts / 2).map(|_| random(events.len() as u64 + 1) as usize))
        .collect();
    points.sort_unstable();

    let mut disk = Disk::holding(before);
    let (mut place, mut promised, mut checked, mut most) = (0, Vec::new(), 0, 0);
    for point in points {
        while place < point {
            if let Event::Acknowledge(mark) = &events[place] {
                promised.push((mark.as_str(), kept[mark]));
            }
            disk.apply(&events[place]);
            place += 1;
        }
        for survivors in [Survivors::Nothing, Survivors::Everything, Survivors::Some] {
            check(&disk.after_cut(survivors), &promised);
            checked += 1;
            most = most.max(promised.len());
        }
    }
    println!(
        "power cut: {messages} messages and {} other changes of the household, {} file events, \
         {syncs} syncs; the files rebuilt after {checked} cuts (unsynced writes lost, kept, or \
         kept in part and torn): integrity_check ok, up to {most} that were acknowledged all there; \
         a bystander got {replies} replies meanwhile",
        kept.len() - messages,
        events.len() - kept.len(),
    );
}

/// A model that answers with the mark in a message, and remembers it when it is asked to.
fn remembering() -> Model {
    Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap();
        match text.split_once("remember kept-") {
            Some((_, number)) if last["role"] == "user" => {
                let number: String = number.chars().take_while(char::is_ascii_digit).collect();
                Act::call("remember", json!({ "content": format!("kept-{number}") }))
            }
            _ if last["role"] == "user" => Act::Say(mark_in(text)),
            _ => Act::say("Done."),
        }
    })
}

/// Somebody who changes one thing after the other.
struct Household {
    client: Client,
    address: SocketAddr,
    token: String,
}

impl Household {
    fn sign_in(program: &Program, tokens: &Tokens) -> Household {
        let mut client = Client::lines(program.address);
        client.authenticate(&tokens.admin);
        Household {
            client,
            address: program.address,
            token: format!("Bearer {}", tokens.admin),
        }
    }

    /// Makes a change and returns its mark, which its acknowledgement has too, and how to find
    /// what it has changed. It is none of those that are begun only.
    fn change(&mut self, number: usize) -> (String, Kept) {
        let mark = format!("kept-{number}");
        match number % 7 {
            0 => self.ask(
                &mark,
                json!({ "type": "update_list", "list": "all", "add": [mark] }),
                ITEM,
            ),
            1 => {
                let list =
                    |change: &str| json!({ "type": "update_list", "list": "all", change: [mark] });
                self.client.ask(list("add"));
                self.ask(&mark, list("remove"), REMOVED_ITEM)
            }
            2 => {
                let command = json!({ "type": "chat", "message": format!("remember {mark}") });
                self.ask(&mark, command, MEMORY)
            }
            3 => {
                let command = json!({ "type": "add_user", "name": mark, "password": PASSWORD });
                self.ask(&mark, command, PERSON)
            }
            4 => self.ask(
                &mark,
                json!({ "type": "create_token", "name": mark }),
                TOKEN,
            ),
            5 => self.post(
                &mark,
                "/attachments",
                &vec![b'x'; random(300_000) as usize + 1],
                FILE,
            ),
            _ => {
                // The response has no word of the file's.
                let mark = format!("{IMPORTED}{}", number / 7);
                self.post(&mark, "/import", exported(&mark, number).as_bytes(), IMPORT)
            }
        }
    }

    fn ask(&mut self, mark: &str, mut command: Value, kept: Kept) -> (String, Kept) {
        command["id"] = json!(mark);
        self.client.ask(command);
        (mark.to_owned(), kept)
    }

    fn post(&self, mark: &str, path: &str, body: &[u8], kept: Kept) -> (String, Kept) {
        let name = format!("attachment; filename=\"{mark}\"");
        let headers = [
            ("authorization", &*self.token),
            ("content-disposition", &*name),
        ];
        let answer = exchange(self.address, "POST", path, &headers, body);
        assert!(answer.status < 300, "{}", answer.json());
        (mark.to_owned(), kept)
    }
}

/// A conversation of three messages, as another Hearth exports it.
fn exported(title: &str, number: usize) -> String {
    let time = "2026-01-05T10:00:00.000Z";
    let message =
        |role| json!({ "type": "message", "role": role, "timestamp": time, "content": "x" });
    let lines = [
        json!({ "type": "hearth_export", "version": 1 }),
        json!({
            "type": "conversation", "id": format!("conv_{number:013}"), "title": title,
            "channel": "lines", "created_at": time, "updated_at": time,
        }),
        message("user"),
        message("assistant"),
        message("user"),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

/// The server under strace, as its direct child.
fn serve(folder: &Path, log: &Path) -> Option<Program> {
    let inner = hearth(folder);
    let mut command = Command::new("strace");
    command.env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
        .args(["-D", "-f", "-y", "-xx", "-s", "1000000", "-e", CALLS, "-o"])
        .arg(log)
        .arg(inner.get_program())
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    // Containers may forbid tracing altogether, and only root may look into Hearth.
    let probe = Command::new("strace")
        .args(["-e", "trace=write"])
        .arg(inner.get_program())
        .arg("--version")
        .output()
        .ok()?;
    String::from_utf8_lossy(&probe.stderr)
        .contains("\"hearth ")
        .then(|| Program::launch(command, folder))
}

/// Waits until strace, which is no child of ours, has written all and ended.
fn wait_for_end(log: &Path) {
    let log = log.to_str().unwrap();
    within(Duration::from_secs(60), "strace has ended", || {
        let processes = fs::read_dir("/proc").unwrap();
        let is_there = processes.filter_map(Result::ok).any(|process| {
            let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(log)
        });
        (!is_there).then_some(())
    });
}

/// A disk: what is safe on it, and what was written since the last sync.
struct Disk {
    /// Safe contents of each file; none where the file is not there.
    safe: [Option<Vec<u8>>; 2],
    pending: [Vec<Pending>; 2],
    /// Whether the file's name is safe.
    is_named: [bool; 2],
}

#[derive(Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Clone, Copy)]
enum Survivors {
    Nothing,
    Everything,
    Some,
}

impl Disk {
    fn holding(database: Vec<u8>) -> Disk {
        Disk {
            safe: [Some(database), None],
            pending: [Vec::new(), Vec::new()],
            is_named: [true, false],
        }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Create(file) => {
                self.safe[*file].get_or_insert_default();
            }
            Event::Write(file, offset, data) => {
                self.pending[*file].push(Pending::Write(*offset, data.clone()));
            }
            Event::Truncate(file, length) => {
                self.pending[*file].push(Pending::Truncate(*length));
            }
            Event::Unlink(file) => {
                self.safe[*file] = None;
                self.pending[*file].clear();
                self.is_named[*file] = false;
            }
            Event::Sync(file) => {
                let contents = self.safe[*file].get_or_insert_default();
                for pending in self.pending[*file].drain(..) {
                    put(contents, &pending);
                }
            }
            Event::SyncDirectory => {
                for (named, safe) in self.is_named.iter_mut().zip(&self.safe) {
                    *named |= safe.is_some();
                }
            }
            Event::Acknowledge(_) => {}
        }
    }

    /// The files as they may be found after a cut now.
    fn after_cut(&self, survivors: Survivors) -> [Option<Vec<u8>>; 2] {
        let found = |file: usize| {
            let is_lost = match survivors {
                Survivors::Nothing => !self.is_named[file],
                Survivors::Everything => false,
                Survivors::Some => !self.is_named[file] && random(2) == 0,
            };
            let mut contents = self.safe[file].clone().filter(|_| !is_lost)?;
            for pending in &self.pending[file] {
                match survivors {
                    Survivors::Nothing => {}
                    Survivors::Everything => put(&mut contents, pending),
                    Survivors::Some => match random(3) {
                        0 => {}
                        1 => put(&mut contents, pending),
                        _ => put(&mut contents, &torn(pending)),
                    },
                }
            }
            Some(contents)
        };
        [found(0), found(1)]
    }
}

/// A write of which only some sectors reached the disk.
fn torn(pending: &Pending) -> Pending {
    match pending {
        Pending::Write(offset, data) => {
            let sectors = random((data.len() / SECTOR) as u64 + 1) as usize;
            Pending::Write(*offset, data[..sectors * SECTOR].to_vec())
        }
        truncate => truncate.clone(),
    }
}

fn put(contents: &mut Vec<u8>, pending: &Pending) {
    match pending {
        Pending::Write(offset, data) => {
            let end = offset + data.len();
            if contents.len() < end {
                contents.resize(end, 0);
            }
            contents[*offset..end].copy_from_slice(data);
        }
        Pending::Truncate(length) => contents.resize(*length, 0),
    }
}

/// Opens the rebuilt files as the next start would.
fn check(files: &[Option<Vec<u8>>; 2], promised: &[(&str, Kept)]) {
    let folder = TemporaryDirectory::new();
    for (name, contents) in FILES.iter().zip(files) {
        if let Some(contents) = contents {
            fs::write(folder.path().join(name), contents).unwrap();
        }
    }
    let store = Store::open(&folder.path().join(FILES[0]), Clock::system())
        .unwrap_or_else(|error| panic!("{error}"));
    store.close();
    let database = look_into(folder.path());
    for (mark, kept) in promised {
        assert!(
            is_kept(&database, mark, kept),
            "the acknowledged {mark} is lost: {kept}"
        );
    }
    check_integrity(&database);
}

fn is_kept(database: &Connection, mark: &str, kept: Kept) -> bool {
    let mut statement = database.prepare_cached(kept).unwrap();
    let found = match mark.parse::<TurnId>() {
        Ok(turn) => statement.exists([turn]),
        Err(_) => statement.exists([mark]),
    };
    found.unwrap()
}

/// Reads strace's log. A call that another thread's interrupts in the log is
/// put together; a write counts when it returns, and so does a sync; an
/// acknowledgement when it begins.
fn read_log(log: &Path, folder: &Path) -> Vec<Event> {
    let text = fs::read_to_string(log).unwrap();
    let mut events = Vec::new();
    let mut begun: HashMap<&str, String> = HashMap::new();
    for line in text.lines() {
        let (process, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            acknowledge(begin, &mut events);
            begun.insert(process, begin.to_owned());
        } else if let Some(resumed) = call.strip_prefix("<... ") {
            let end = resumed.split_once(" resumed>").unwrap().1;
            if let Some(begin) = begun.remove(process) {
                finish(&format!("{begin}{end}"), folder, &mut events);
            }
        } else {
            acknowledge(call, &mut events);
            finish(call, folder, &mut events);
        }
    }
    events
}

fn acknowledge(call: &str, events: &mut Vec<Event>) {
    if !call.starts_with("sendto(") {
        return;
    }
    let sent = call.split('"').nth(1).map(decode).unwrap_or_default();
    let sent = String::from_utf8_lossy(&sent);
    let behind = |begin: &str| {
        let rest = sent.split(begin).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    let mark = if sent.starts_with("HTTP/1.1 202") {
        behind("\"turn_id\":\"")
    } else if sent.starts_with("HTTP/1.1 201") {
        behind("\"name\":\"")
    } else if sent.contains("\"imported\":1") {
        let is_import = |event: &&Event| matches!(event, Event::Acknowledge(mark) if mark.starts_with(IMPORTED));
        let number = events.iter().filter(is_import).count();
        Some(format!("{IMPORTED}{number}"))
    } else {
        behind("\"id\":\"kept").map(|mark| format!("kept{mark}"))
    };
    events.extend(mark.map(Event::Acknowledge));
}

/// Adds what a finished call did to the files. A call that failed did nothing.
fn finish(call: &str, folder: &Path, events: &mut Vec<Event>) {
    let Some((call, result)) = call.rsplit_once(" = ") else {
        return;
    };
    let (Some((name, arguments)), false) = (call.split_once('('), result.starts_with('-')) else {
        return;
    };
    let place = |path: &str| {
        FILES
            .iter()
            .position(|name| Path::new(path) == folder.join(name))
    };
    match name {
        "openat" if arguments.contains("O_CREAT") => {
            let path = String::from_utf8(decode(arguments.split('"').nth(1).unwrap())).unwrap();
            if let Some(file) = place(&path) {
                events.push(Event::Create(file));
            }
            return;
        }
        "unlink" | "unlinkat" => {
            let path = String::from_utf8(decode(arguments.split('"').nth(1).unwrap())).unwrap();
            if let Some(file) = place(&path) {
                events.push(Event::Unlink(file));
            }
            return;
        }
        "openat" | "rename" | "renameat" | "sendto" => return,
        _ => {}
    }
    // The first argument is `7</path>`.
    let path = arguments
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'))
        .map_or("", |(path, _)| path);
    let path = String::from_utf8(decode(path)).unwrap();
    if Path::new(&path) == folder && matches!(name, "fsync" | "fdatasync") {
        events.push(Event::SyncDirectory);
        return;
    }
    let Some(file) = place(&path) else { return };
    let last = || {
        let number = arguments
            .trim_end()
            .trim_end_matches(')')
            .rsplit(", ")
            .next();
        number.unwrap().trim().parse().unwrap()
    };
    match name {
        "pwrite64" => {
            let data = decode(arguments.split('"').nth(1).unwrap());
            // The server was killed in this call: nothing was acknowledged after it.
            if result.trim() == "?" {
                return;
            }
            let written: usize = result.trim().parse().unwrap();
            assert!(written <= data.len(), "strace has shortened a write");
            events.push(Event::Write(file, last(), data[..written].to_vec()));
        }
        "ftruncate" => events.push(Event::Truncate(file, last())),
        "fsync" | "fdatasync" => events.push(Event::Sync(file)),
        other => panic!("{other} on {path} is not understood"),
    }
}

/// Undoes strace's `\x41` for every byte; what is not so written stays.
fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len() / 4);
    let mut place = 0;
    while place < bytes.len() {
        if bytes[place..].starts_with(b"\\x") {
            let digits = &text[place + 2..place + 4];
            decoded.push(u8::from_str_radix(digits, 16).unwrap());
            place += 4;
        } else {
            decoded.push(bytes[place]);
            place += 1;
        }
    }
    decoded
}
