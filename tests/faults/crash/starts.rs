//! The lives of a start: strace sees it from the first call on.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::household::Template;
use super::lives::{Begin, Life, interrupted, live};
use super::tracer::{CALLS, Event, detach, reachable, read_log};
use super::{Fault, LASTING, Trial, Tried, end_well};
use support::MAX_WAIT;
use support::home::TemporaryDirectory;
use support::program::{Program, hearth};

pub const STARTS: [(&str, Begin); 2] = [
    ("restart", interrupted),
    ("first", |_| Box::new(First::default())),
];

/// The very first start: nothing is there, and a password is made and shown.
#[derive(Default)]
struct First {
    folder: TemporaryDirectory,
    address: Option<SocketAddr>,
    /// What earlier starts said.
    said: String,
    since: Option<Instant>,
    is_in: bool,
}

impl First {
    fn passwords(&self) -> Vec<String> {
        let now = fs::read_to_string(self.folder.path().join("stderr.txt")).unwrap_or_default();
        let said = format!("{}{now}", self.said);
        said.lines()
            .filter_map(|line| line.trim().strip_prefix("Password  "))
            .filter_map(|rest| Some(rest.split_once("   (shown")?.0.to_owned()))
            .collect()
    }
}

impl Life for First {
    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        (self.address, self.since, self.is_in) = (Some(address), Some(Instant::now()), false);
        Ok(())
    }

    /// One of the passwords that were shown is that of `admin`.
    fn advance(&mut self) -> Result<(), String> {
        if self.is_in {
            return Ok(());
        }
        let url = format!("http://{}/auth", self.address.expect("it was started"));
        for password in self.passwords().iter().rev() {
            let body = json!({ "username": "admin", "password": password });
            let request = ureq::post(&url).header("content-type", "application/json");
            if request.send(body.to_string()).is_ok() {
                self.is_in = true;
                return Ok(());
            }
        }
        let waited = self.since.expect("it was started").elapsed();
        assert!(waited < Duration::from_secs(10), "nobody knows a password");
        Err("no password that was shown is good".to_owned())
    }

    fn restarted(&mut self) {
        let said = fs::read_to_string(self.folder.path().join("stderr.txt"));
        self.said.push_str(&said.unwrap_or_default());
    }

    fn check(&mut self) {
        let path = self.folder.path();
        let mut names: Vec<String> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        for name in ["config.json", "hearth.db"] {
            assert!(
                names.iter().any(|one| one == name),
                "{name} is missing: {names:?}"
            );
        }
        assert!(
            !names.iter().any(|name| name.ends_with(".new")),
            "{names:?}"
        );
    }
}

/// Starts the server under strace, as its direct child.
fn launch(folder: &Path, log: &Path, expressions: &[&str]) -> Result<Program, String> {
    let inner = hearth(folder);
    let mut command = Command::new("strace");
    command.env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    // It may be interrupted, so that it can let go.
    command.args(["-D", "-I", "2", "-f", "-Y", "-y", "-s", "40"]);
    for expression in expressions {
        command.args(["-e", expression]);
    }
    command.arg("-o").arg(log).arg(inner.get_program()).args([
        "serve",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
    ]);
    Program::try_launch(command, folder, Duration::from_millis(5))
}

/// The calls of a start and of what it goes on with, and how many of them cannot
/// be tried.
pub fn record(begin: Begin, template: &Template) -> (Vec<Event>, usize) {
    let mut life = begin(template);
    let outside = TemporaryDirectory::new();
    let log = outside.path().join("log");
    let program = launch(&life.folder(), &log, &[&format!("trace={CALLS}")]).unwrap();
    life.connect(program.address).unwrap();
    assert!(live(life.as_mut(), MAX_WAIT, || true));
    let all = read_log(&log);
    end_well(life.as_mut(), program);
    reachable(all)
}

pub fn try_one(begin: Begin, template: &Template, trial: &Trial<'_>) -> Tried {
    let mut life = begin(template);
    let outside = TemporaryDirectory::new();
    let log = outside.path().join("log");
    let inject = trial.fault.injection(&trial.point);
    let trace = format!("trace={}", trial.point.call);
    let launched = launch(&life.folder(), &log, &[&trace, &inject]);
    let (mut program, mut is_complete) = match launched {
        Ok(program) => (Some(program), false),
        Err(said) => {
            assert!(!said.contains("panicked"), "{said}");
            if trial.fault != Fault::Kill {
                assert!(said.contains("exit status: 1"), "{said}");
                assert!(said.len() > 60, "it failed without a word: {said}");
            }
            (None, false)
        }
    };
    if let Some(program) = &mut program {
        let connected = life.connect(program.address);
        if connected.is_ok() {
            let until = Instant::now() + LASTING;
            let lasts = matches!(trial.fault, Fault::Lasting(_));
            is_complete = live(life.as_mut(), MAX_WAIT, || {
                program.is_running() && !(lasts && Instant::now() >= until)
            });
        }
        if trial.fault != Fault::Kill {
            detach(&log);
            is_complete = live(life.as_mut(), MAX_WAIT, || true);
        }
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    if trial.fault == Fault::Kill || program.is_none() {
        if let Some(program) = program.take() {
            program.kill();
        }
        life.restarted();
        let again = Program::serve(&life.folder());
        life.connect(again.address).unwrap();
        live(life.as_mut(), MAX_WAIT, || true);
        program = Some(again);
    }
    end_well(life.as_mut(), program.expect("one runs"));
    match (trial.fault, is_complete) {
        _ if life.has_failed() => Tried::Told,
        (Fault::Kill, false) => Tried::Hit,
        (Fault::Kill, true) => Tried::NotReached,
        _ if text.contains("(INJECTED)") => Tried::Hit,
        _ => Tried::NotReached,
    }
}
