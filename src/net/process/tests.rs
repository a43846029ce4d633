use std::fs::{self, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::*;
use base::testing::{TemporaryDirectory, skipped};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const LIMITS: Limits = Limits {
    deadline: None,
    ends_with_output: false,
    children_may_stay: true,
};

fn start(script: &str) -> Process {
    Process::start(Command::new("sh").args(["-c", script]), None).unwrap()
}

/// Runs to the end; how it ended and what it wrote to its standard output.
fn run(process: Process, limits: Limits) -> (ExitReason, String) {
    let mut output = Vec::new();
    let end = process.run(limits, &mut |stream, bytes| {
        if stream == Stream::Output {
            output.extend_from_slice(bytes);
        }
    });
    (end.unwrap(), String::from_utf8(output).unwrap())
}

fn within(limit: Duration) -> Limits {
    Limits {
        deadline: Some(Instant::now() + limit),
        ..LIMITS
    }
}

/// Without pidfds the exit is looked for at intervals.
#[test]
fn an_exit_is_noticed_with_and_without_a_pidfd() {
    for has_pidfd in [true, false] {
        for (script, limit, code) in [
            ("exec >&- 2>&-; exit 7", LONG, Some(7)),
            ("echo x; exit 0", LONG, Some(0)),
            ("exec sleep 60", SHORT, None),
        ] {
            let mut process = start(script);
            if !has_pidfd {
                process.group.exit = None;
            }
            match (run(process, within(limit)).0, code) {
                (ExitReason::Exited(status), code) => assert_eq!(status.code(), code, "{script}"),
                (end, code) => assert_eq!((end, code), (ExitReason::TimedOut, None), "{script}"),
            }
        }
    }
}

#[test]
fn input_comes_in_order_and_ends_where_it_is_ended() {
    let process = start("cat; echo end");
    let control = process.control().clone();
    let big = vec![b'x'; 300_000];
    for piece in [&b"one "[..], b"", &big] {
        control.send(piece.to_vec()).unwrap();
    }
    let thread = std::thread::spawn(move || {
        control.send(b" two\n".to_vec()).unwrap();
        control.end_input();
    });
    let (end, output) = run(process, within(LONG));
    thread.join().unwrap();
    assert!(matches!(end, ExitReason::Exited(status) if status.success()));
    let expected = format!("one {} two\nend\n", "x".repeat(300_000));
    assert!(output == expected, "{} bytes", output.len());
}

#[test]
fn input_that_nobody_reads_is_bounded() {
    let process = start("exec sleep 60");
    let control = process.control();
    let piece = vec![b'x'; INPUT_BYTES / 4];
    for _ in 0..4 {
        control.send(piece.clone()).unwrap();
    }
    assert_eq!(control.send(b"x".to_vec()), Err(InputFull));
}

#[test]
fn a_program_that_closes_its_output_is_ended_where_that_is_wanted() {
    let script = "exec >&-; read -r line; exit 0";
    let limits = Limits {
        ends_with_output: true,
        ..within(LONG)
    };
    assert_eq!(run(start(script), limits).0, ExitReason::OutputClosed);
    assert_eq!(run(start(script), within(SHORT)).0, ExitReason::TimedOut);
}

#[test]
fn a_stop_ends_the_input_then_asks_then_kills() {
    // What they print tells how they noticed.
    for (script, mode, printed) in [
        ("cat; echo end of input", StopMode::Gentle, "end of input\n"),
        (
            "trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.01; done",
            StopMode::Gentle,
            "ready\ntold\n",
        ),
        (
            "trap 'echo told; exit' TERM; echo ready; while :; do sleep 0.01; done",
            StopMode::AtOnce,
            "ready\ntold\n",
        ),
        (
            "trap '' TERM; echo ready; while :; do sleep 0.01; done",
            StopMode::AtOnce,
            "ready\n",
        ),
    ] {
        let process = start(script);
        let control = process.control().clone();
        let mut output = Vec::new();
        if !script.contains("ready") {
            control.stop(mode);
        }
        let end = process.run(LIMITS, &mut |stream, bytes| {
            if stream == Stream::Output {
                output.extend_from_slice(bytes);
                // Only now is its trap set.
                control.stop(mode);
            }
        });
        assert_eq!(end.unwrap(), ExitReason::Stopped, "{script}");
        assert_eq!(String::from_utf8(output).unwrap(), printed, "{script}");
    }
}

#[test]
fn what_cannot_start_is_named() {
    let missing = Process::start(&mut Command::new("/nowhere/light-switch"), None);
    let misplaced = Process::start(Command::new("true").current_dir("/nowhere"), None);
    for (started, subject) in [
        (missing, "program \"/nowhere/light-switch\": "),
        (misplaced, "directory \"/nowhere\": "),
    ] {
        let problem = started.err().unwrap().to_string();
        assert!(problem.starts_with(subject), "{problem}");
    }
}

/// A program could type into a terminal, and change what other programs share.
#[test]
fn a_sandbox_opens_no_terminal_and_no_shared_memory() {
    if !has_landlock() {
        skipped("this kernel has no Landlock");
        return;
    }
    let home = TemporaryDirectory::new();
    let mut scripts = vec![": </dev/tty".to_owned(), ": </dev/ptmx".to_owned()];
    let pty = fs::File::open("/dev/ptmx").and_then(|pty| {
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", pty.as_raw_fd()))?;
        Ok((pty, about))
    });
    match pty
        .as_ref()
        .map(|(_, about)| about.split_once("tty-index:"))
    {
        Ok(Some((_, number))) => {
            let path = format!("/dev/pts/{}", number.trim());
            scripts.extend([format!(": <{path}"), format!(": >>{path}")]);
        }
        _ => skipped("no pseudoterminal can be made"),
    }
    let shared = format!("/dev/shm/hearth-test-{}", std::process::id());
    match fs::write(&shared, "text") {
        Ok(()) => scripts.extend([
            "ls /dev/shm".to_owned(),
            format!("cat {shared}"),
            format!("echo x >>{shared}"),
        ]),
        Err(_) => skipped("/dev/shm cannot be written"),
    }
    let run_script = |script: &String| {
        let sandbox = Sandbox::new(&home, &home.join("files"), &[], Path::new("/usr"));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1; {script}")]);
        command.env("LC_ALL", "C");
        let process = Process::start(&mut command, Some(&sandbox)).unwrap();
        process.control().end_input();
        format!("{script}: {}", run(process, within(LONG)).1)
    };
    let said: Vec<String> = scripts.iter().map(run_script).collect();
    let _ = fs::remove_file(shared);
    for output in said {
        assert!(output.contains("Permission denied"), "{output}");
    }
}

#[test]
fn a_closed_sandbox_lets_nothing_be_written_and_nothing_be_reached() {
    if !has_landlock() {
        skipped("this kernel has no Landlock");
        return;
    }
    let home = TemporaryDirectory::new();
    fs::create_dir(home.join("files")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = home.path().display();
    for script in [
        format!("echo x >{place}/files/x"),
        format!("echo x >{}/hearth-x", std::env::temp_dir().display()),
        format!("cat {place}/files"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
    ] {
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("exec 2>&1; {script}")])
            .env("LC_ALL", "C");
        let process = Process::start(&mut command, Some(&Sandbox::closed(&home))).unwrap();
        process.control().end_input();
        let (_, output) = run(process, within(LONG));
        assert!(output.contains("Permission denied"), "{script}: {output}");
    }
}

/// Landlock lets a program change the mode of any file of its user.
#[test]
fn a_private_data_directory_is_private_again_after_a_run_in_a_sandbox() {
    for (before, after) in [(0o700, 0o700), (0o750, 0o777)] {
        let home = TemporaryDirectory::new();
        fs::set_permissions(home.path(), Permissions::from_mode(before)).unwrap();
        let sandbox = Sandbox::new(&home, &home.join("files"), &[], Path::new("/usr"));
        let mut command = Command::new("chmod");
        command.arg("777").arg(home.path());
        let process = Process::start(&mut command, Some(&sandbox)).unwrap();
        let (end, _) = run(process, within(LONG));
        assert!(matches!(end, ExitReason::Exited(status) if status.success()));
        let mode = fs::metadata(home.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, after);
    }
}

/// Everything that a program may and may not do, as a shell finds it.
#[test]
fn a_sandbox_opens_the_system_its_own_directory_and_the_workspace() {
    if !has_landlock() {
        skipped("this kernel has no Landlock");
        return;
    }
    let home = TemporaryDirectory::new();
    let place = fs::canonicalize(home.path()).unwrap();
    for directory in [
        "data/files",
        "data/backups",
        "tool/bin",
        "tool/lib",
        "other",
    ] {
        fs::create_dir_all(place.join(directory)).unwrap();
    }
    for file in [
        "data/hearth.db",
        "data/backups/x",
        "data/x.sh",
        "tool/bin/x",
        "tool/lib/x",
        "tool/lib/settings",
        "other/x",
    ] {
        fs::write(place.join(file), "text").unwrap();
    }
    let data = place.join("data");
    let link = |to: &str, from: &str| symlink(place.join(to), place.join(from)).unwrap();
    link("data", "tool/link");
    link("tool/lib/settings", "data/config.json");
    let try_it = |words: &[&str], directory: &str, script: &str| {
        let sandbox = Sandbox::new(&data, &data.join("files"), words, &place.join(directory));
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&place);
        let process = Process::start(&mut command, Some(&sandbox)).unwrap();
        process.control().end_input();
        let (end, output) = run(process, within(LONG));
        (
            matches!(end, ExitReason::Exited(status) if status.success()),
            output,
        )
    };
    let tool = place.join("tool/bin/x");
    let words = ["sh", tool.to_str().unwrap(), "s/.*/x/"];
    for (script, works) in [
        (
            "cat /etc/passwd && ls /usr /proc/self && echo x >/dev/null && cat /proc/self/environ",
            true,
        ),
        ("file=$(mktemp) && echo x >$file && rm $file", true),
        (
            "cd data/files && echo x >x && mkdir y && mv x y/z && ln -s y/z link && cat link",
            true,
        ),
        ("cat tool/bin/x tool/lib/x", true),
        ("echo x >tool/lib/x", false),
        ("cat tool/lib/settings", false),
        ("cat data/config.json", false),
        ("cat other/x", false),
        ("ls .", false),
        ("ls data", false),
        ("cat data/hearth.db", false),
        ("cat data/x.sh", false),
        ("cat data/backups/x", false),
        ("cat tool/link/hearth.db", false),
        ("echo x >data/hearth.db", false),
        ("echo x >data/new", false),
        ("mkdir data/new", false),
        ("rm data/hearth.db", false),
        ("ln data/hearth.db data/files/hard", false),
        ("mv data/hearth.db data/files", false),
        (
            "ln -sf ../hearth.db data/files/soft; cat data/files/soft",
            false,
        ),
        ("ls /proc/$PPID/cwd/", false),
    ] {
        assert_eq!(try_it(&words, "tool", script).0, works, "{script}");
    }
    for file in ["environ", "maps", "mem", "fd/"] {
        let script = format!("ls /proc/$PPID/{file} && cat /proc/$PPID/{file}");
        assert!(!try_it(&words, "tool", &script).0, "{file}");
    }
    assert_eq!(fs::read_to_string(data.join("hearth.db")).unwrap(), "text");
    // Where its own directory holds the data, the rest is open; a file in the data
    // directory is not, whatever names it.
    for (words, directory, script, works) in [
        (&[][..], "", "cat other/x", true),
        (&[], "", "cat data/hearth.db", false),
        (&[], "", "cat data/backups/x", false),
        (&[], "data", "cat data/hearth.db", false),
        (&[], "tool/link", "cat data/hearth.db", false),
        (&["sh", "./data/x.sh"], "", "cat data/x.sh", false),
        (&["sh", "/"], "tool", "cat other/x", false),
        (
            &["sh", "-c", "sed s/x/y/ /nowhere"],
            "tool",
            "cat other/x",
            false,
        ),
    ] {
        assert_eq!(
            try_it(words, directory, script).0,
            works,
            "{words:?} {script}"
        );
    }
    let python = "python3 -c 'import json, tempfile; tempfile.TemporaryFile().write(b\"x\")'";
    for script in [python, "perl -e 1", "bash -c :", "awk 'BEGIN { exit }'"] {
        let program = script.split(' ').next().unwrap();
        match Command::new(program)
            .arg("-h")
            .stdin(Stdio::null())
            .output()
        {
            Ok(_) => assert!(try_it(&[], "tool", script).0, "{script}"),
            Err(_) => skipped(format_args!("{program} is not installed")),
        }
    }
    let temporary = try_it(&[], "tool", "printf %s \"$TMPDIR\"").1;
    assert_eq!(
        temporary,
        data.join("files").to_str().unwrap(),
        "not where the data is"
    );
}
