//! Crash at every step: one life runs in the real binary, and one system call of
//! it kills the server or fails, each in turn. A life is a webhook's turn, a chat
//! with approvals, files and their message, a schedule, an import, a backup, a change of the configuration.
//!
//! First strace notes which calls each thread makes in a life without faults. A
//! point is a thread, a call and its number. At each the life begins anew, in a
//! data directory of its own, with strace attached to this thread alone. After a
//! kill the server starts again without strace, and the life goes on as its
//! client would: with the same key. Then everything that was acknowledged is
//! there once, each tool took effect at most once, all callbacks carry one
//! `webhook-id`, and the database is sound. After an error the same server must
//! refuse clearly or go on, and complete the life without a restart.

mod attachments;
mod commands;
mod household;
mod lines;
mod lives;
mod settings;
mod starts;
mod tracer;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Poster, SOON, random};
use commands::{COMMANDS, Task};
use household::Template;
use lives::{Begin, LIVES, Life, live};
use starts::STARTS;
use support::home::TemporaryDirectory;
use support::http::get;
use support::program::Program;
use support::{MAX_WAIT, SetOnDrop, eventually};
use tracer::{CALLS, Event, Point, reachable, read_log};

pub use tracer::{Tracer, can_trace, threads_of};

/// Points that are tried at the same time on each processor: most of the time they
/// wait, but a life must come to its end within its time.
const TOGETHER: usize = 8;
/// How long a fault that lasts does so.
const LASTING: Duration = Duration::from_millis(1500);

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    /// The call fails once with this error.
    Once(&'static str),
    /// This call and all like it after it fail, for a while.
    Lasting(&'static str),
}

impl Fault {
    /// The fault, in the syntax of strace.
    fn injection(self, point: &Point) -> String {
        let Point { call, number, .. } = point;
        match self {
            Fault::Kill => format!("inject={call}:signal=KILL:when={number}"),
            Fault::Once(error) => format!("inject={call}:error={error}:when={number}"),
            Fault::Lasting(error) => format!("inject={call}:error={error}:when={number}+"),
        }
    }
}

/// A life that is tried.
struct Subject {
    name: &'static str,
    kind: Kind,
}

enum Kind {
    Server(Begin),
    Start(Begin),
    Command(Task),
}

/// What is tried: a life, a point in it and what happens there.
struct Trial<'a> {
    subject: &'a Subject,
    point: Point,
    is_followed: bool,
    fault: Fault,
}

impl std::fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Point {
            thread,
            call,
            number,
        } = &self.point;
        write!(f, "{}/{thread}/{call}/{number}/", self.subject.name)?;
        match self.fault {
            Fault::Kill => f.write_str("kill"),
            Fault::Once(error) => write!(f, "{error}"),
            Fault::Lasting(error) => write!(f, "{error}+"),
        }
    }
}

/// How a trial went that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    /// The fault happened, and all was well.
    Hit,
    /// The fault happened, and the turn ended in an error.
    Told,
    /// The life was complete before the thread came to this call.
    NotReached,
    /// The thread was not there when strace was to be attached.
    NoThread,
}

/// Kills the server at every point of every life, or at `most` of each.
pub fn kill_at_every_step(most: usize) {
    run(most, |_| vec![Fault::Kill]);
}

/// Makes every call of every life fail, or `most` of each.
pub fn fail_at_every_step(most: usize) {
    run(most, errors_of);
}

fn run(most: usize, faults: fn(&Event) -> Vec<Fault>) {
    if !can_trace() {
        return;
    }
    let began = Instant::now();
    let template = Template::new();
    // `FAULT=webhook/store-writer/pwrite64/12/kill` tries this alone; a part of
    // a name tries all that begin with it.
    let wanted = std::env::var("FAULT").unwrap_or_default();
    let most = if wanted.is_empty() { most } else { usize::MAX };
    let is_wanted = |name: &str| wanted.is_empty() || wanted.split('/').next() == Some(name);
    let servers = LIVES.map(|(name, begin)| (name, Kind::Server(begin)));
    let starts = STARTS.map(|(name, begin)| (name, Kind::Start(begin)));
    let subjects: Vec<Subject> = servers
        .into_iter()
        .chain(starts)
        .chain(COMMANDS.map(|(name, prepare)| (name, Kind::Command(prepare(&template)))))
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, kind)| Subject { name, kind })
        .collect();
    let recorded: Vec<(&Subject, (Vec<Event>, usize))> = std::thread::scope(|scope| {
        let recording: Vec<_> = subjects
            .iter()
            .map(|subject| {
                let template = &template;
                scope.spawn(move || match &subject.kind {
                    Kind::Server(begin) => (subject, record(*begin, template)),
                    Kind::Start(begin) => (subject, starts::record(*begin, template)),
                    Kind::Command(task) => (subject, commands::record(task)),
                })
            })
            .collect();
        recording
            .into_iter()
            .map(|one| one.join().unwrap())
            .collect()
    });
    let (mut report, mut trials) = (String::new(), Vec::new());
    for (subject, (events, missed)) in recorded {
        let mut all: Vec<Trial<'_>> = Vec::new();
        for event in &events {
            for fault in faults(event) {
                // `strace -f` would also interrupt what tells a thread of a signal,
                // which nothing can interrupt.
                let is_send = matches!(event.point.call.as_str(), "write" | "sendto");
                let is_start = matches!(subject.kind, Kind::Start(_));
                if is_start && is_send && fault == Fault::Once("EINTR") {
                    continue;
                }
                let point = event.point.clone();
                let is_followed = event.is_followed;
                all.push(Trial {
                    subject,
                    point,
                    is_followed,
                    fault,
                });
            }
        }
        all.retain(|trial| trial.to_string().starts_with(&wanted));
        let step = all.len().div_ceil(most).max(1);
        writeln!(
            report,
            "{}: {} calls in a life ({}), {missed} of others that cannot be hit; {} of {} trials",
            subject.name,
            events.len(),
            threads(&events),
            all.len().div_ceil(step),
            all.len(),
        )
        .unwrap();
        // Not always the same of each.
        let first = random(step as u64) as usize;
        trials.extend(all.into_iter().skip(first).step_by(step));
    }
    print!("{report}");
    let results = try_all(&template, &trials);
    println!("{results} in {:.0} s", began.elapsed().as_secs_f64());
    assert!(
        results.failures.is_empty(),
        "{}",
        results.failures.join("\n")
    );
}

fn threads(events: &[Event]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        *counts.entry(&event.point.thread).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    counts.join(", ")
}

#[derive(Default)]
struct Results {
    /// Trials by life and outcome.
    counts: BTreeMap<(&'static str, &'static str), usize>,
    failures: Vec<String>,
}

impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for ((life, outcome), count) in &self.counts {
            writeln!(f, "{life}: {count} {outcome}")?;
        }
        write!(f, "{} failed", self.failures.len())
    }
}

fn try_all(template: &Template, trials: &[Trial<'_>]) -> Results {
    let next = AtomicUsize::new(0);
    let results: Mutex<Results> = Mutex::default();
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..TOGETHER * processors {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let tried = catch_unwind(AssertUnwindSafe(|| match &trial.subject.kind {
                        Kind::Server(begin) => try_one(*begin, template, trial),
                        Kind::Start(begin) => starts::try_one(*begin, template, trial),
                        Kind::Command(task) => commands::try_one(task, &trial.point, trial.fault),
                    }));
                    let mut results = results.lock().unwrap();
                    match tried {
                        Ok(tried) => {
                            let outcome = match tried {
                                Tried::Hit => "hit",
                                Tried::Told => "hit, ended in an error",
                                Tried::NotReached => "not reached",
                                Tried::NoThread => "no thread",
                            };
                            *results
                                .counts
                                .entry((trial.subject.name, outcome))
                                .or_default() += 1;
                        }
                        Err(panic) => {
                            let why = panic
                                .downcast_ref::<String>()
                                .map(String::as_str)
                                .or(panic.downcast_ref::<&str>().copied())
                                .unwrap_or("a panic");
                            let why = format!("FAULT={trial}: {why}");
                            println!("{why}");
                            results.failures.push(why);
                        }
                    }
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Runs a life without faults under strace: the calls of the threads that are
/// there at its begin, those of later threads where strace can hit them, and how
/// many it cannot.
fn record(begin: Begin, template: &Template) -> (Vec<Event>, usize) {
    let outside = TemporaryDirectory::new();
    let (log, all) = (outside.path().join("log"), outside.path().join("all"));
    let trace = format!("trace={CALLS}");
    let run = |arguments: &[&str], log, follows: bool| {
        let mut life = begin(template);
        let program = Program::serve(&life.folder());
        life.connect(program.address).unwrap();
        let threads = threads_of(program.id());
        let numbers: Vec<u32> = match follows {
            true => vec![program.id()],
            false => threads.iter().map(|(number, _)| *number).collect(),
        };
        let tracer = Tracer::attach(&numbers, arguments, Some(log)).expect("strace attaches");
        assert!(live(life.as_mut(), MAX_WAIT, || true));
        tracer.detach();
        program.kill();
        life.check();
    };
    run(&["-Y", "-y", "-s", "40", "-e", &trace], &log, false);
    run(&["-f", "-Y", "-y", "-s", "40", "-e", &trace], &all, true);
    let mut events = read_log(&log);
    let known: Vec<String> = events
        .iter()
        .map(|event| event.point.thread.clone())
        .collect();
    let is_new = |event: &Event| !known.contains(&event.point.thread);
    let (reachable, _) = reachable(read_log(&all));
    let begun = read_log(&all).iter().filter(|event| is_new(event)).count();
    let followed: Vec<Event> = reachable.into_iter().filter(is_new).collect();
    let missed = begun - followed.len();
    events.extend(followed.into_iter().map(|event| Event {
        is_followed: true,
        ..event
    }));
    (events, missed)
}

fn try_one(begin: Begin, template: &Template, trial: &Trial<'_>) -> Tried {
    let mut life = begin(template);
    let mut program = Program::serve(&life.folder());
    life.connect(program.address).unwrap();
    let mut threads: Vec<u32> = threads_of(program.id())
        .into_iter()
        .filter(|(_, name)| *name == trial.point.thread)
        .map(|(number, _)| number)
        .collect();
    let inject = trial.fault.injection(&trial.point);
    let trace = format!("trace={}", trial.point.call);
    let outside = TemporaryDirectory::new();
    let log = outside.path().join("log");
    let mut arguments = vec!["-Y", "-e", &trace, "-e", &inject];
    if threads.is_empty() && trial.is_followed {
        threads.push(program.id());
        arguments.push("-f");
    }
    let tracer = match threads.is_empty() {
        true => None,
        false => Tracer::attach(&threads, &arguments, Some(&log)),
    };
    let Some(tracer) = tracer else {
        return Tried::NoThread;
    };
    let tried = match trial.fault {
        Fault::Kill => {
            let completed = live(life.as_mut(), MAX_WAIT, || program.is_running());
            program.kill();
            drop(tracer);
            life.restarted();
            program = Program::serve(&life.folder());
            life.connect(program.address).unwrap();
            live(life.as_mut(), MAX_WAIT, || true);
            if completed {
                Tried::NotReached
            } else {
                Tried::Hit
            }
        }
        Fault::Once(_) | Fault::Lasting(_) => {
            let until = Instant::now() + LASTING;
            let lasts = matches!(trial.fault, Fault::Lasting(_));
            let is_done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let done = SetOnDrop(&is_done);
                if serves_nobody(&trial.point.thread) {
                    scope.spawn(|| ask_meanwhile(program.address, &is_done));
                }
                live(life.as_mut(), MAX_WAIT, || !lasts || Instant::now() < until);
                drop(done);
            });
            tracer.detach();
            live(life.as_mut(), MAX_WAIT, || true);
            let log = std::fs::read_to_string(&log).unwrap();
            if log.contains("(INJECTED)") {
                Tried::Hit
            } else {
                Tried::NotReached
            }
        }
    };
    end_well(life.as_mut(), program);
    if life.has_failed() {
        assert!(trial.fault != Fault::Kill, "the turn has failed");
        return Tried::Told;
    }
    tried
}

/// Whether a thread that fails has no part in what a bystander asks.
fn serves_nobody(thread: &str) -> bool {
    !thread.starts_with("conn-") && !matches!(thread, "accept" | "main")
}

/// A bystander, who is answered soon whatever fails, until the rest is done.
fn ask_meanwhile(address: SocketAddr, is_done: &AtomicBool) {
    let bystander = Poster::new(address);
    while !is_done.load(Ordering::SeqCst) {
        let began = Instant::now();
        bystander.warm_up().unwrap();
        let took = began.elapsed();
        assert!(took < SOON, "a bystander waited for {took:?}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

/// The server runs well, ends when told to, and left everything in order.
fn end_well(life: &mut dyn Life, mut program: Program) {
    assert!(program.is_running(), "the server ended");
    // After a fault the writer finds out within a second that it is over.
    eventually("the server is well", || {
        (get(program.address, "/health").status == 200).then_some(())
    });
    assert_eq!(program.signal("TERM"), Some(0));
    let said = std::fs::read_to_string(life.folder().join("stderr.txt")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    life.check();
}

/// The errors that the kernel can return for a call.
fn errors_of(event: &Event) -> Vec<Fault> {
    // The loader's part comes before ours, and what wakes another thread
    // (`eventfd`) cannot fail. Without the line of where it listens the test is lost.
    let spared = [
        ".so",
        "/etc/ld.so",
        "anon_inode:[eventfd]",
        "hearth listening",
    ];
    if event.is_followed || spared.iter().any(|part| event.arguments.contains(part)) {
        return Vec::new();
    }
    let is_file = event.arguments.contains("</") || event.arguments.contains("AT_FDCWD");
    let is_creating = event.arguments.contains("O_CREAT");
    let mut faults = Vec::new();
    match event.point.call.as_str() {
        "write" if is_file => faults.extend([Fault::Once("EIO"), Fault::Once("ENOSPC")]),
        "pwrite64" | "ftruncate" | "rename" | "renameat" | "mkdir" | "fallocate" if is_file => {
            faults.extend([
                Fault::Once("EIO"),
                Fault::Once("ENOSPC"),
                Fault::Lasting("ENOSPC"),
            ]);
        }
        "fsync" | "fdatasync" => faults.extend([Fault::Once("EIO"), Fault::Lasting("EIO")]),
        "read" | "pread64" if is_file => faults.push(Fault::Once("EIO")),
        "unlink" | "unlinkat" => faults.push(Fault::Once("EIO")),
        "openat" => {
            faults.extend([Fault::Once("EIO"), Fault::Once("EMFILE")]);
            if is_creating {
                faults.push(Fault::Once("ENOSPC"));
            }
        }
        _ => {}
    }
    if matches!(
        event.point.call.as_str(),
        "read"
            | "recvfrom"
            | "write"
            | "writev"
            | "sendto"
            | "poll"
            | "ppoll"
            | "accept4"
            | "connect"
            | "openat"
            | "flock"
            | "wait4"
            | "waitid"
    ) {
        faults.push(Fault::Once("EINTR"));
    }
    faults
}
