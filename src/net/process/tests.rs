use std::process::Command;

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);
const LIMITS: Limits = Limits {
    deadline: None,
    ends_with_output: false,
    children_may_stay: true,
};

fn start(script: &str) -> Process {
    Process::start(Command::new("sh").args(["-c", script])).unwrap()
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
    let missing = Process::start(&mut Command::new("/nowhere/light-switch"));
    let misplaced = Process::start(Command::new("true").current_dir("/nowhere"));
    for (started, subject) in [
        (missing, "program \"/nowhere/light-switch\": "),
        (misplaced, "directory \"/nowhere\": "),
    ] {
        let problem = started.err().unwrap().to_string();
        assert!(problem.starts_with(subject), "{problem}");
    }
}
