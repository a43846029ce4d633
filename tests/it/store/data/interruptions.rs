//! What is cut short leaves nothing half done.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use base::clock::Clock;
use serde_json::json;
use store::Store;

use super::{exported, good, household, text};
use support::program::{Program, finish, hearth, printed};

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
    let output: Output = finish(
        std::process::Command::new("sh")
            .args(["-c", &script])
            .env("HEARTH_DATA_DIR", folder.path()),
    );
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(
        printed(&output).contains("cannot be written"),
        "{}",
        printed(&output)
    );
    assert!(!target.exists() && !folder.path().join("copy.db.partial").exists());
}

#[test]
fn what_a_killed_export_left_is_in_nobodys_way() {
    let folder = household();
    let (target, partial) = (folder.path().join("all"), folder.path().join("all.partial"));
    let elsewhere = folder.path().join("elsewhere");
    let export = ["export", "--all", "--force", "--output", text(&target)];
    for round in 0..2 {
        match round {
            0 => fs::write(&partial, "").unwrap(),
            _ => std::os::unix::fs::symlink(&elsewhere, &partial).unwrap(),
        }
        good(folder.path(), &export);
        assert!(!partial.exists() && !elsewhere.exists());
        let mode = fs::symlink_metadata(&target).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(
            fs::read_to_string(&target).unwrap(),
            exported(folder.path())
        );
    }
}
