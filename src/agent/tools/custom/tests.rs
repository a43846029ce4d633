use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};

use super::*;
use base::secret::Secret;
use base::testing::{TemporaryDirectory, rows, skipped};

/// Most time for something that should happen immediately.
/// Sooner than the programs of these tests end by themselves.
const SOON: Duration = Duration::from_secs(30);

/// Makes a named pipe: its reader learns when the last writer has ended.
fn make_pipe(directory: &TemporaryDirectory) -> PathBuf {
    let path = directory.join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

/// A tool and its program.
struct Tool {
    settings: config::CustomTool,
    command: CustomCommand,
}

fn tool(argv: &[&str]) -> Tool {
    let command = CustomCommand {
        argv: argv.iter().map(|part| (*part).to_owned()).collect(),
        environment: BTreeMap::new(),
        directory: None,
        sandbox: true,
    };
    let settings = config::CustomTool {
        name: "test".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        run: CustomRun::Command(command.clone()),
        read_only: false,
        timeout_seconds: 60,
        output_bytes: 1_000,
        trusted: false,
        household: false,
    };
    Tool { settings, command }
}

fn shell(script: &str) -> Tool {
    tool(&["sh", "-c", script])
}

/// A script that writes to a pipe outside the sandbox.
fn writer(script: &str) -> Tool {
    let mut tool = shell(script);
    tool.command.sandbox = false;
    tool
}

/// Runs with plenty of time.
fn run(tool: &Tool, arguments: Value) -> Result<String, String> {
    run_until(tool, arguments, SOON, &Cancel::default())
}

fn run_until(
    tool: &Tool,
    arguments: Value,
    time: Duration,
    cancel: &Cancel,
) -> Result<String, String> {
    let data_dir = TemporaryDirectory::new();
    super::run(
        &tool.settings,
        &tool.command,
        arguments.as_object().unwrap(),
        &Workspace::new(None, &data_dir),
        Instant::now() + time,
        cancel,
    )
}

/// What a program has said when it ends or is stopped. A busy machine may need longer
/// to begin it than it is given at first.
fn given_time_to_speak(script: &str) -> String {
    let said = |seconds| {
        let time = Duration::from_secs(seconds);
        match run_until(&shell(script), json!({}), time, &Cancel::default()) {
            Ok(text) | Err(text) => text,
        }
    };
    let mut tries = [1, 10, 60].into_iter().map(said);
    let spoke = tries.find(|text| !text.ends_with(" is up"));
    spoke.expect("it says something within a minute")
}

#[test]
fn what_a_program_prints_is_the_result() {
    let table = r#"
        set -e; read -r line; echo "<$line>"       | <{"room":"kitchen","n":[1]}>
        exit 0                                     | [no output]
        echo out; echo complaint >&2               | out
        printf 'a\377b'                            | a�b¶[bytes that are not UTF-8 were replaced]
        printf 'a\000b'                            | [binary output of 3 bytes]
        echo out; echo complaint >&2; exit 3       | failed with exit code 3: complaint
        echo out; exit 3                           | failed with exit code 3: out
        exit 3                                     | failed with exit code 3: [no output]
        kill -9 $$                                 | was ended by signal 9: [no output]
    "#;
    let arguments = json!({"room": "kitchen", "n": [1]});
    for [script, expected] in rows(table) {
        let expected = match expected.starts_with("failed ") || expected.starts_with("was ") {
            true => Err(format!("the tool \"test\" {expected}")),
            false => Ok(expected.replace('¶', "\n")),
        };
        let found = run(&shell(script), arguments.clone());
        assert_eq!(found, expected, "{script}");
    }
    let given = run(&tool(&["cat"]), arguments.clone());
    assert_eq!(given.as_deref(), Ok(r#"{"room":"kitchen","n":[1]}"#));
    let plain = run(&tool(&["echo", "$HOME", "a b"]), arguments);
    assert_eq!(plain.as_deref(), Ok("$HOME a b"));
}

#[test]
fn long_output_is_cut_and_the_program_goes_on() {
    let tool = shell("head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2; exit 1");
    assert_eq!(
        run(&tool, json!({})).unwrap_err(),
        "the tool \"test\" failed with exit code 1: end"
    );
    let tool = shell("head -c 1000000 /dev/zero | tr '\\0' x");
    assert_eq!(
        run(&tool, json!({})).unwrap(),
        format!(
            "{}\n[output cut: only its first 1000 bytes are shown]",
            "x".repeat(1000)
        )
    );
    let tool = shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo ' end' >&2; exit 1");
    let complaint = run(&tool, json!({})).unwrap_err();
    assert!(complaint.ends_with("x end"), "{complaint}");
    assert!(complaint.len() < 4_200, "{} bytes", complaint.len());
}

#[test]
fn large_input_blocks_nobody() {
    let arguments = json!({"text": "x".repeat(1_000_000)});
    let size = arguments.to_string().len() + 1;
    // Reads nothing, reads all, writes much before it reads, closes its input.
    for (script, result) in [
        ("exit 0", "[no output]".to_owned()),
        ("wc -c | tr -d ' '", size.to_string()),
        (
            "head -c 300000 /dev/zero >&2; wc -c | tr -d ' '",
            size.to_string(),
        ),
        ("exec <&-; echo closed", "closed".to_owned()),
    ] {
        assert_eq!(
            run(&shell(script), arguments.clone()),
            Ok(result),
            "{script}"
        );
    }
}

#[test]
fn a_program_sees_only_the_environment_that_is_meant_for_it() {
    let mut tool = tool(&["env"]);
    for (name, value) in [("LAMP_KEY", "bright"), ("TZ", "UTC")] {
        let environment = &mut tool.command.environment;
        environment.insert(name.to_owned(), Secret::new(value));
    }
    let output = run(&tool, json!({})).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    for wanted in ["LAMP_KEY=bright", "TZ=UTC"] {
        assert!(lines.contains(&wanted), "{output}");
    }
    for line in lines {
        let name = line.split('=').next().unwrap();
        assert!(
            process::INHERITED.contains(&name) || ["LAMP_KEY", "TMPDIR"].contains(&name),
            "{name} leaked"
        );
    }
}

#[test]
fn the_home_of_a_program_is_one_that_it_can_read() {
    let owner = std::env::var("HOME").unwrap_or_default();
    let mut tool = shell("test \"$HOME\" = \"$(pwd -P)\" && echo workspace || echo \"$HOME\"");
    assert_eq!(run(&tool, json!({})).unwrap(), "workspace");
    tool.command.sandbox = false;
    assert_eq!(run(&tool, json!({})).unwrap(), owner);
    for sandbox in [true, false] {
        tool.command.sandbox = sandbox;
        let environment = &mut tool.command.environment;
        environment.insert("HOME".to_owned(), Secret::new("/srv/lamps"));
        assert_eq!(run(&tool, json!({})).unwrap(), "/srv/lamps");
    }
    let git = shell("git init -q . && git config --global user.name Ada && git config user.name");
    match std::process::Command::new("git").arg("--version").output() {
        Ok(_) => assert_eq!(run(&git, json!({})).as_deref(), Ok("Ada")),
        Err(_) => skipped("git is not installed"),
    }
}

#[test]
fn a_program_runs_in_its_directory() {
    let scratch = TemporaryDirectory::new();
    let real = std::fs::canonicalize(scratch.path()).unwrap();
    let mut tool = tool(&["sh", "-c", "pwd -P; ls"]);
    std::fs::write(scratch.join("lamp.conf"), "").unwrap();
    tool.command.directory = Some(scratch.to_path_buf());
    let listed = format!("{}\nlamp.conf", real.display());
    assert_eq!(run(&tool, json!({})).unwrap(), listed);
    // In the workspace, else in the data directory.
    let temporary = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    for (sandbox, depth) in [(true, 2), (false, 1)] {
        tool.command = shell("pwd -P").command;
        tool.command.sandbox = sandbox;
        let default = run(&tool, json!({})).unwrap();
        assert_eq!(
            Path::new(&default).ancestors().nth(depth),
            Some(&*temporary)
        );
    }
}

#[test]
fn what_cannot_start_is_named() {
    let missing = tool(&["/nowhere/light-switch"]);
    let mut misplaced = tool(&["true"]);
    misplaced.command.directory = Some(PathBuf::from("/nowhere"));
    for (tool, subject) in [
        (missing, "program \"/nowhere/light-switch\": "),
        (misplaced, "directory \"/nowhere\": "),
        (tool(&[]), "names no program"),
    ] {
        let problem = run(&tool, json!({})).unwrap_err();
        assert!(problem.contains(subject), "{problem}");
    }
}

#[test]
fn a_program_that_takes_too_long_is_stopped() {
    for script in [
        "exec sleep 60",
        "trap '' TERM; while :; do sleep 60; done",
        "exec >&- 2>&-; sleep 60",
        "yes",
    ] {
        let began = Instant::now();
        let mut tool = shell(script);
        let time = Duration::from_millis(100);
        assert_eq!(
            run_until(&tool, json!({}), time, &Cancel::default()).unwrap_err(),
            "the tool \"test\" was stopped: the time for this turn is up",
            "{script}"
        );
        tool.settings.timeout_seconds = 0;
        assert_eq!(
            run(&tool, json!({})).unwrap_err(),
            "the tool \"test\" was stopped: it did not finish within 0 seconds",
            "{script}"
        );
        assert!(began.elapsed() < SOON, "{script}");
    }
    let complaint = given_time_to_speak("echo why >&2; exec sleep 60");
    assert!(complaint.ends_with(" is up: why"), "{complaint}");
}

#[test]
fn stopping_a_program_stops_its_children() {
    let scratch = TemporaryDirectory::new();
    let pipe = make_pipe(&scratch);
    let script = format!(
        "trap '' TERM; sleep 60 >{0} & sleep 60 >{0}",
        pipe.display()
    );
    let cancel = Cancel::default();
    let canceller = cancel.clone();
    let (gone, is_gone) = crossbeam_channel::bounded(1);
    let reader = std::thread::spawn(move || {
        // Opening waits for a child to open its end; the end of the file comes
        // when none is left.
        let mut pipe = File::open(pipe).unwrap();
        canceller.cancel();
        let ended = pipe.read_to_end(&mut Vec::new());
        gone.send(ended.is_ok()).unwrap();
    });
    let time = Duration::from_secs(60);
    let result = run_until(&writer(&script), json!({}), time, &cancel);
    assert!(result.unwrap_err().contains("cancelled"));
    assert!(is_gone.recv_timeout(SOON).expect("a child lives on"));
    reader.join().unwrap();
}

#[test]
fn a_child_left_behind_neither_delays_nor_dies() {
    let began = Instant::now();
    let child = run(&shell("sleep 60 & echo $!"), json!({})).unwrap();
    assert!(began.elapsed() < SOON);
    let child = Pid::from_raw(child.parse().unwrap()).unwrap();
    kill_process(child, Signal::KILL).expect("it was left alone");
}

#[test]
fn no_zombie_stays() {
    for script in [
        "echo $$",
        "echo $$ >&2; exit 1",
        "echo $$ >&2; exec sleep 60",
    ] {
        let text = given_time_to_speak(script);
        let id = text.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(
            waitpid(Pid::from_raw(id), WaitOptions::NOHANG).unwrap_err(),
            rustix::io::Errno::CHILD,
            "{script}"
        );
    }
}

#[test]
fn cancelling_stops_a_program_at_once() {
    let scratch = TemporaryDirectory::new();
    let pipe = make_pipe(&scratch);
    let script = format!("echo started >{}; exec sleep 60", pipe.display());
    let cancel = Cancel::default();
    let canceller = cancel.clone();
    let began = Instant::now();
    let thread = std::thread::spawn(move || {
        // To the end: a writer to a pipe without a reader is killed.
        let line = std::fs::read_to_string(pipe).unwrap();
        assert_eq!(line, "started\n");
        canceller.cancel();
    });
    let time = Duration::from_secs(60);
    let stopped = "the tool \"test\" was stopped because the turn was cancelled";
    assert_eq!(
        run_until(&writer(&script), json!({}), time, &cancel).unwrap_err(),
        stopped
    );
    thread.join().unwrap();
    assert_eq!(
        run_until(&shell("sleep 60"), json!({}), time, &cancel).unwrap_err(),
        stopped
    );
    assert!(began.elapsed() < SOON);
}
