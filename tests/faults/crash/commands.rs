//! The lives of a command: it runs to its end, and once it was killed or failed
//! it is simply run again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::super::{check_integrity, look_into, within};
use super::household::Template;
use super::tracer::{CALLS, Event, Point, reachable, read_log};
use super::{Fault, Tried};
use support::MAX_WAIT;
use support::home::{TemporaryDirectory, write_config};
use support::program::{Program, hearth, printed, run};

/// One command in a data directory of its own.
pub struct Task {
    folder: TemporaryDirectory,
    outside: TemporaryDirectory,
    arguments: fn(&Task) -> Vec<String>,
    /// What must hold whenever it has ended, in whatever way.
    always: fn(&Task),
    /// What must hold once it has succeeded.
    done: fn(&Task),
}

pub type Prepare = fn(&Template) -> Task;

pub const COMMANDS: [(&str, Prepare); 4] = [
    ("import", import),
    ("backup", backup),
    ("restore", restore),
    ("config", config),
];

impl Task {
    fn new(template: &Template) -> Task {
        let folder = template.copy();
        write_config(folder.path(), json!({ "//": "a remark that stays" }));
        Task {
            folder,
            outside: TemporaryDirectory::new(),
            arguments: |_| Vec::new(),
            always: |_| {},
            done: |_| {},
        }
    }

    /// The same again, in directories of its own.
    fn copy(&self) -> Task {
        let copy = Task {
            folder: TemporaryDirectory::new(),
            outside: TemporaryDirectory::new(),
            ..*self
        };
        for (from, to) in [(&self.folder, &copy.folder), (&self.outside, &copy.outside)] {
            for entry in fs::read_dir(from.path()).unwrap() {
                let path = entry.unwrap().path();
                fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
            }
        }
        copy
    }

    fn outside(&self, name: &str) -> String {
        self.outside.path().join(name).to_str().unwrap().to_owned()
    }

    fn good(&self, arguments: &[&str]) -> String {
        good(self.folder.path(), arguments)
    }

    /// Runs the command without faults.
    fn finish(&self) {
        let arguments = (self.arguments)(self);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.good(&arguments);
        (self.done)(self);
    }
}

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        printed(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// An export of another Hearth with so many conversations and messages.
fn export(path: &str, first: usize, conversations: usize, messages: usize) {
    let mut lines = vec![json!({"type": "hearth_export", "version": 1}).to_string()];
    for conversation in first..first + conversations {
        let time = "2026-01-05T10:00:00.000Z";
        lines.push(
            json!({"type": "conversation", "id": format!("conv_{conversation:013}"),
                "title": "t", "channel": "lines", "created_at": time, "updated_at": time})
            .to_string(),
        );
        for number in 0..messages {
            let role = ["user", "assistant"][number % 2];
            let content = format!("message {number} of {conversation}");
            lines.push(
                json!({"type": "message", "role": role, "timestamp": time, "content": content})
                    .to_string(),
            );
        }
    }
    fs::write(path, lines.join("\n")).unwrap();
}

/// How many conversations there are with so many messages; of others there is
/// only the beginning. None is there twice.
fn whole_conversations(folder: &Path, messages: usize) -> usize {
    let text = good(folder, &["export", "--all"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        match line["type"].as_str().unwrap() {
            "conversation" => found.push((line["id"].as_str().unwrap().to_owned(), Vec::new())),
            "message" => {
                let content = line["content"].as_str().unwrap().to_owned();
                found.last_mut().unwrap().1.push(content);
            }
            _ => {}
        }
    }
    for (id, contents) in &found {
        let number: usize = id.strip_prefix("conv_").unwrap().parse().unwrap();
        let expected: Vec<String> = (0..messages)
            .map(|message| format!("message {message} of {number}"))
            .collect();
        assert!(expected.starts_with(contents), "{id}: {contents:?}");
    }
    let mut ids: Vec<&String> = found.iter().map(|(id, _)| id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), found.len(), "a conversation is there twice");
    let is_whole = |(_, contents): &&(String, Vec<String>)| contents.len() == messages;
    found.iter().filter(is_whole).count()
}

const MESSAGES: usize = 210;

fn import(template: &Template) -> Task {
    let mut task = Task::new(template);
    let file = task.outside("export.jsonl");
    // More than one transaction for each.
    export(&file, 1, 2, MESSAGES);
    task.arguments = |task| vec!["import".to_owned(), task.outside("export.jsonl")];
    task.always = |task| {
        whole_conversations(task.folder.path(), MESSAGES);
    };
    task.done = |task| {
        assert_eq!(whole_conversations(task.folder.path(), MESSAGES), 2);
        check_integrity(&look_into(task.folder.path()));
    };
    task
}

fn backup(template: &Template) -> Task {
    let mut task = Task::new(template);
    let (file, target) = (task.outside("export.jsonl"), task.outside("copy.db"));
    task.good(&["backup", &target]);
    export(&file, 1, 2, 20);
    task.good(&["import", &file]);
    task.arguments = |task| {
        ["backup", &task.outside("copy.db"), "--force"]
            .map(str::to_owned)
            .to_vec()
    };
    task.always = |task| {
        // The old one or the new one.
        let target = task.outside("copy.db");
        task.good(&["restore", "--check", &target]);
        // The next run may have another name.
        task.good(&["backup", &task.outside("next.db")]);
        check_left_over(task.outside.path(), "copy.db.partial");
        fs::remove_file(task.outside("next.db")).unwrap();
    };
    task.done = |task| {
        let told = task.good(&["restore", "--check", &task.outside("copy.db")]);
        assert!(told.contains("2 conversations"), "{told}");
        check_left_over(task.outside.path(), "copy.db.partial");
    };
    task
}

fn restore(template: &Template) -> Task {
    let mut task = Task::new(template);
    let (file, target) = (task.outside("export.jsonl"), task.outside("copy.db"));
    export(&file, 1, 2, 20);
    task.good(&["import", &file]);
    task.good(&["backup", &target]);
    export(&file, 3, 1, 20);
    task.good(&["import", &file]);
    task.arguments = |task| {
        ["restore", &task.outside("copy.db")]
            .map(str::to_owned)
            .to_vec()
    };
    task.always = |task| {
        // The data of before, which has one more, or those of the backup.
        Program::serve(task.folder.path()).kill();
        let found = whole_conversations(task.folder.path(), 20);
        assert!(found == 2 || found == 3, "{found} conversations");
        check_left_over(task.folder.path(), "restore.");
    };
    task.done = |task| {
        Program::serve(task.folder.path()).kill();
        assert_eq!(whole_conversations(task.folder.path(), 20), 2);
        check_integrity(&look_into(task.folder.path()));
        check_left_over(task.folder.path(), "restore.");
    };
    task
}

/// Checks that nothing is there whose name begins so, but for an empty file, in which nothing
/// is the household's.
fn check_left_over(folder: &Path, beginning: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_empty = entry.metadata().unwrap().len() == 0;
        assert!(!name.starts_with(beginning) || is_empty, "{name} is left");
    }
}

fn config(template: &Template) -> Task {
    let mut task = Task::new(template);
    task.arguments = |_| {
        ["config", "set", "system_prompt", "Be kind."]
            .map(str::to_owned)
            .to_vec()
    };
    task.always = |task| {
        let text = fs::read_to_string(task.folder.path().join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["//"], "a remark that stays");
        task.good(&["config", "check"]);
    };
    task.done = |task| {
        let told = task.good(&["config", "get", "system_prompt"]);
        assert!(told.contains("Be kind."), "{told}");
        assert!(!task.folder.path().join("config.json.new").exists());
    };
    task
}

/// Runs the command under strace; its exit code, and what it said.
fn traced(task: &Task, log: &Path, expressions: &[&str]) -> (Option<i32>, String) {
    let inner = hearth(task.folder.path());
    let said = task.outside.path().join("said");
    let mut command = Command::new("strace");
    command.env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.args(["-f", "-Y", "-y", "-s", "40"]);
    for expression in expressions {
        command.args(["-e", expression]);
    }
    let mut child = command
        .arg("-o")
        .arg(log)
        .arg(inner.get_program())
        .args((task.arguments)(task))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said).unwrap())
        .spawn()
        .unwrap();
    let status = within(MAX_WAIT, "the command ends", || child.try_wait().unwrap());
    (status.code(), fs::read_to_string(said).unwrap())
}

/// The calls of a command, and how many of them cannot be tried, because another
/// thread makes as many of this name before.
pub fn record(prepared: &Task) -> (Vec<Event>, usize) {
    let task = prepared.copy();
    let log = task.outside.path().join("log");
    let (status, said) = traced(&task, &log, &[&format!("trace={CALLS}")]);
    assert_eq!(status, Some(0), "{said}");
    let all = read_log(&log);
    (task.done)(&task);
    reachable(all)
}

pub fn try_one(prepared: &Task, point: &Point, fault: Fault) -> Tried {
    let task = prepared.copy();
    let log: PathBuf = task.outside.path().join("log");
    let inject = fault.injection(point);
    let (status, said) = traced(&task, &log, &[&format!("trace={}", point.call), &inject]);
    let text = fs::read_to_string(&log).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    let is_hit = match fault {
        Fault::Kill => text.contains("killed by SIGKILL"),
        _ => text.contains("(INJECTED)"),
    };
    if fault != Fault::Kill {
        match status {
            Some(0) => (task.done)(&task),
            Some(1) => assert!(said.len() > 20, "it failed without a word: {said:?}"),
            other => panic!("it ended with {other:?}: {said}"),
        }
    }
    (task.always)(&task);
    task.finish();
    match is_hit {
        true => Tried::Hit,
        false => Tried::NotReached,
    }
}
