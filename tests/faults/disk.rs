//! A disk that fills up: a small tmpfs under the data directory. Mounting needs
//! root; without it the scenario says that it was skipped.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::crash::{Tracer, can_trace, threads_of};
use super::{
    Posted, Poster, SOON, check_integrity, echoing, look_into, random, wait_until_done,
    with_account, within,
};
use support::client::Client;
use support::home::{TemporaryDirectory, make_people, write_config};
use support::http::get;
use support::program::{Program, finish, hearth, printed, skipped};
use support::receiver::Receiver;
use support::{MAX_WAIT, SetOnDrop};

/// The disk's size in MiB: little more than the write-ahead log may have.
const SIZE: u64 = 8;
/// How soon after there is room again the server must work.
const RECOVERY: Duration = Duration::from_secs(60);

/// A tmpfs in a folder of its own, unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None where this process may not mount.
    pub fn mount(path: PathBuf) -> Option<SmallDisk> {
        fs::create_dir_all(&path).unwrap();
        let options = format!("size={SIZE}m,mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk(path)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                skipped(format_args!("a tmpfs cannot be mounted here: {why}"));
                None
            }
            Err(error) => {
                skipped(format_args!("there is no mount: {error}"));
                None
            }
        }
    }

    /// Writes until nothing more fits.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        for size in [64 * 1024, 4096, 1] {
            while ballast.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Leaves so much room.
    pub fn leave(&self, bytes: usize) {
        let ballast = vec![0; SIZE as usize * 1024 * 1024 - bytes];
        fs::write(self.ballast(), ballast).unwrap();
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Fills the disk and makes room again, `rounds` times, under load.
pub fn full(rounds: u64) {
    let outside = TemporaryDirectory::new();
    let Some(disk) = SmallDisk::mount(outside.path().join("disk")) else {
        return;
    };
    let data = disk.0.join("data");
    fs::create_dir(&data).unwrap();
    let (model, receiver) = (echoing(), Receiver::start());
    write_config(&data, with_account(&model, receiver.url()));
    let tokens = make_people(&data);
    let mut program = serve(outside.path(), &data);
    let accepted: Mutex<Vec<String>> = Mutex::default();
    let (mut refused, mut slowest) = (0, Duration::ZERO);

    for round in 0..rounds {
        let stop = AtomicBool::new(false);
        let address = program.address;
        refused += std::thread::scope(|scope| {
            let stopped = SetOnDrop(&stop);
            let poster = scope.spawn(|| post_until(address, &accepted, &stop, round));
            let mut bystander = Client::websocket(address);
            bystander.authenticate(&tokens.user);
            std::thread::park_timeout(Duration::from_millis(100 + random(200)));
            disk.fill();
            within(MAX_WAIT, "/health tells", || {
                let answer = get(address, "/health");
                (answer.status == 503).then(|| {
                    assert!(answer.header("retry-after").is_some());
                    assert!(answer.body.contains("\"error\""), "{}", answer.body);
                })
            });
            within(MAX_WAIT, "the log tells", || {
                let said = fs::read_to_string(outside.path().join("stderr.txt")).unwrap();
                let told = said.contains("the database cannot be written");
                told.then_some(())
            });
            // Who reads does not notice.
            let asked = Instant::now();
            bystander.ask(json!({ "type": "list_conversations" }));
            assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
            std::thread::park_timeout(Duration::from_millis(random(1500)));
            disk.make_room();
            let began = Instant::now();
            within(RECOVERY, "it works again", || {
                let posted = Poster::new(address).post(&[], &json!({ "message": "tok-probe" }));
                let works = matches!(posted, Posted::Answered(202, _));
                (works && get(address, "/health").status == 200).then_some(())
            });
            slowest = slowest.max(began.elapsed());
            drop(stopped);
            poster.join().unwrap()
        });
        // Now and then it is killed while the disk is full, and started when
        // there is room again.
        if round % 4 == 3 {
            disk.fill();
            program.kill();
            disk.make_room();
            program = serve(outside.path(), &data);
        }
    }

    wait_until_done(&data, MAX_WAIT);
    assert_eq!(program.signal("TERM"), Some(0));

    // A start says what is wrong, and leaves nothing that the next one meets.
    disk.fill();
    let mut start = hearth(outside.path());
    start
        .args(["serve", "--port", "0", "--data-dir"])
        .arg(&data);
    let said = printed(&finish(&mut start));
    assert!(said.contains("the disk is full"), "{said}");
    disk.make_room();
    assert_eq!(serve(outside.path(), &data).signal("TERM"), Some(0));
    let database = look_into(&data);
    check_integrity(&database);
    let callbacks = receiver.callbacks();
    let accepted = accepted.into_inner().unwrap();
    assert!(refused > 0 && !accepted.is_empty());
    for mark in &accepted {
        let came = callbacks.iter().any(|one| one.body["message"] == **mark);
        assert!(came, "{mark} was accepted and not called back");
    }
    println!(
        "full disk: {rounds} times on a tmpfs of {SIZE} MiB; {} messages accepted and called back, \
         {refused} refused with 503; service again at most {:.1} s after there was room; \
         integrity_check ok",
        accepted.len(),
        slowest.as_secs_f64(),
    );
}

/// Lets single reads of the database fail under turns, which end well all the same: at the
/// first, second and so on that a worker makes.
pub fn reads(count: usize) {
    if !can_trace() {
        return;
    }
    let (folder, model) = (TemporaryDirectory::new(), echoing());
    write_config(folder.path(), model.config());
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut client = Client::websocket(program.address);
    client.authenticate(&tokens.user);
    let conversation = client.chat("tok-first")["conversation_id"].clone();
    let database = look_into(folder.path());
    let mut hit = 0;
    for number in 1..=count {
        let workers = threads_of(program.id()).into_iter();
        let workers = workers.filter(|(_, name)| name.starts_with("worker-"));
        let workers: Vec<u32> = workers.map(|(number, _)| number).collect();
        let log = folder.path().join("strace");
        let inject = format!("inject=pread64:error=EIO:when={number}");
        let arguments = ["-e", "trace=pread64", "-e", &inject];
        let tracer = Tracer::attach(&workers, &arguments, Some(&log)).expect("strace attaches");
        let message = format!("tok-{number}");
        client
            .send(&json!({ "type": "chat", "message": message, "conversation_id": conversation }));
        let response = client.response();
        tracer.detach();
        let is_hit = fs::read_to_string(&log).unwrap().contains("(INJECTED)");
        hit += usize::from(is_hit);
        assert!(is_hit || response["status"] == "ok", "{response}");
        // The refusal may come before the turn's own beginning is committed.
        within(MAX_WAIT, "every turn is done", || {
            let failed = "SELECT error_message FROM turns WHERE state = 'failed'";
            let failed = database.query_row(failed, [], |row| row.get::<_, String>(0));
            assert!(failed.is_err(), "{failed:?}");
            let done = super::count(&database, "SELECT count(*) FROM turns WHERE state = 'done'");
            (done == number as i64 + 1).then_some(())
        });
    }
    assert!(hit > 0, "no read was hit");
    println!("failing reads: {hit} of {count} hit, and every turn has its reply");
}

/// What it prints goes elsewhere than to the full disk.
fn serve(outside: &Path, data: &Path) -> Program {
    let mut command = hearth(outside);
    command
        .args(["serve", "--bind", "127.0.0.1", "--port", "0", "--data-dir"])
        .arg(data);
    Program::launch(command, outside)
}

/// Posts until told to stop; returns how many posts were refused.
fn post_until(
    address: SocketAddr,
    accepted: &Mutex<Vec<String>>,
    stop: &AtomicBool,
    round: u64,
) -> u64 {
    let poster = Poster::new(address);
    let mut refused = 0;
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let mark = format!("tok-{round}-{number}");
        match poster.post(&[], &json!({ "message": mark, "conversation_id": "c" })) {
            Posted::Answered(202, _) => accepted.lock().unwrap().push(mark),
            Posted::Answered(503, refusal) => {
                assert_eq!(refusal["code"], "server_error");
                assert!(refusal["error"].as_str().unwrap().len() > 10, "{refusal}");
                assert!(refusal["retry_after"].is_number(), "{refusal}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    refused
}
