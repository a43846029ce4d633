//! A small machine: 64 MB of memory and one processor, as a control group, and
//! 500 people who chat at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use support::client::Client;
use support::home::{PASSWORD, TemporaryDirectory, make_people, write_config};
use support::http::{get, post};
use support::model::Model;
use support::process::status;
use support::program::{Program, hearth, skipped};

const CLIENTS: usize = 500;
/// Messages of each client.
const MESSAGES: usize = 4;
/// People who sign in with a password meanwhile: each takes 19 MiB.
const SIGN_INS: usize = 8;
const MEMORY: u64 = 64_000_000;
/// Threads beside those of the connections and the workers: the writer, the
/// timekeeper, listeners, signals.
const MORE_THREADS: u64 = 16;
const WORKERS: u64 = 16;
const MAX_WAIT: Duration = Duration::from_secs(300);

/// A control group, removed when dropped.
struct Group {
    /// One folder, or one for each controller where those are apart (cgroup v1).
    folders: Vec<PathBuf>,
    most_used: PathBuf,
}

impl Group {
    /// A group with these ceilings, where this user may make one.
    fn new(memory: u64) -> Option<Group> {
        let name = format!("hearth-test-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let memory = memory.to_string();
        let group = if root.join("cgroup.controllers").exists() {
            let folder = root.join(name);
            let group = Group {
                folders: vec![folder.clone()],
                most_used: folder.join("memory.peak"),
            };
            fs::create_dir(&folder).ok()?;
            fs::write(folder.join("memory.max"), &memory).ok()?;
            let _ = fs::write(folder.join("memory.swap.max"), "0");
            fs::write(folder.join("cpu.max"), "100000 100000").ok()?;
            group
        } else {
            let (space, time) = (
                root.join("memory").join(&name),
                root.join("cpu").join(&name),
            );
            let group = Group {
                folders: vec![space.clone(), time.clone()],
                most_used: space.join("memory.max_usage_in_bytes"),
            };
            fs::create_dir(&space).ok()?;
            fs::write(space.join("memory.limit_in_bytes"), &memory).ok()?;
            let _ = fs::write(space.join("memory.memsw.limit_in_bytes"), &memory);
            fs::create_dir(&time).ok()?;
            fs::write(time.join("cpu.cfs_period_us"), "100000").ok()?;
            fs::write(time.join("cpu.cfs_quota_us"), "100000").ok()?;
            group
        };
        Some(group)
    }

    /// A command line that goes into the group before it becomes `hearth`.
    fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("/bin/sh");
        let mut script = String::new();
        for folder in &self.folders {
            script.push_str(&format!("echo $$ > {}/cgroup.procs && ", folder.display()));
        }
        wrapped
            .arg("-c")
            .arg(script + "exec \"$0\" \"$@\"")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        wrapped
    }

    fn most_used(&self) -> Option<u64> {
        fs::read_to_string(&self.most_used)
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[test]
#[ignore = "long"]
fn five_hundred_clients_in_64_megabytes_on_one_processor() {
    let Some(group) = Group::new(MEMORY) else {
        skipped("this user cannot make control groups");
        return;
    };
    let folder = TemporaryDirectory::new();
    let model = Model::saying("Hello there.");
    let mut config = model.config();
    config["limits"] = json!({
        "connections_per_address": CLIENTS + 16,
        "unauthenticated_per_address": CLIENTS + 16,
    });
    write_config(folder.path(), config);
    let tokens = make_people(folder.path());
    let mut command = hearth(folder.path());
    command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
    let program = Program::launch(group.wrap(&command), folder.path());

    let began = Instant::now();
    let over = AtomicBool::new(false);
    let (most_threads, most_resident) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(program.id(), &over));
        let people: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (address, token) = (program.address, &tokens.user);
                let person = move || {
                    let mut client = patient(address);
                    client.authenticate(token);
                    for turn in 0..MESSAGES {
                        let message = format!("{number}, {turn}: what is the weather like?");
                        assert_eq!(client.chat(&message)["response"], "Hello there.");
                    }
                    client
                };
                std::thread::Builder::new()
                    .stack_size(256 * 1024)
                    .spawn_scoped(scope, person)
                    .unwrap()
            })
            .collect();
        let sign_ins: Vec<_> = (0..SIGN_INS)
            .map(|_| scope.spawn(|| sign_in(&program)))
            .collect();
        // All stay connected until the last has its answers.
        let clients: Vec<Client> = people.into_iter().map(|one| one.join().unwrap()).collect();
        let answers: Vec<u16> = sign_ins
            .into_iter()
            .map(|one| one.join().unwrap())
            .collect();
        assert!(answers.contains(&200), "{answers:?}");
        assert_eq!(get(program.address, "/health").status, 200);
        over.store(true, Ordering::SeqCst);
        drop(clients);
        sampler.join().unwrap()
    });
    let took = began.elapsed();
    let ceiling = CLIENTS as u64 + SIGN_INS as u64 + WORKERS + MORE_THREADS;
    assert!(most_threads <= ceiling, "{most_threads} threads");
    assert!(most_resident * 1024 <= MEMORY, "{most_resident} KiB");
    println!(
        "ceilings: {CLIENTS} clients with {MESSAGES} messages each and {SIGN_INS} sign-ins in {:.1} s \
         with {MEMORY} bytes and one processor; at most {most_threads} threads, {:.1} MiB \
         resident, {:.1} MiB in the group (with the kernel's and the page cache)",
        took.as_secs_f64(),
        most_resident as f64 / 1024.0,
        group.most_used().unwrap_or(0) as f64 / (1024.0 * 1024.0),
    );
    assert_eq!(program.signal("TERM"), Some(0));
}

/// One processor has 2,000 turns to do: a single answer may take its time.
fn patient(address: std::net::SocketAddr) -> Client {
    let client = Client::websocket(address);
    if let Client::WebSocket(websocket) = &client {
        websocket
            .get_ref()
            .set_read_timeout(Some(MAX_WAIT))
            .unwrap();
    }
    client
}

/// Signs in with a password; the server may say that it is too busy for it.
fn sign_in(program: &Program) -> u16 {
    let body = json!({ "username": "user", "password": PASSWORD });
    let answer = post(program.address, "/auth", &[], &body);
    assert!(matches!(answer.status, 200 | 503), "{answer:?}");
    answer.status
}

/// The most threads and the most resident memory in KiB until `over`.
fn sample(process: u32, over: &AtomicBool) -> (u64, u64) {
    let mut most = (0, 0);
    while !over.load(Ordering::SeqCst) {
        let number = |field: &str| status(process, field).unwrap();
        most = (most.0.max(number("Threads")), most.1.max(number("VmRSS")));
        std::thread::park_timeout(Duration::from_millis(5));
    }
    most
}
