//! Files that people give to commands, broken in every way.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::mutation::mutate;
use super::{Effort, corpus, shown};
use support::home::{TemporaryDirectory, make_people, write_config};
use support::program::{printed, run};
use support::random::Random;

/// Conversations to import: what is good is taken in, the rest is counted or
/// refused with a sentence, and the database stays whole.
pub fn imports(effort: Effort) {
    let home = household();
    let mut samples = corpus::imports();
    // Its own form, made by itself of what it has taken in.
    for (number, sample) in samples.clone().iter().enumerate() {
        let path = home.path().join(format!("sample-{number}.json"));
        fs::write(&path, sample).unwrap();
        tried(home.path(), &["import", text(&path)]);
    }
    let exported = run(home.path(), &["export", "--all"]).stdout;
    assert!(exported.len() > 500, "{}", shown(&exported));
    samples.push(exported);
    let path = home.path().join("conversations.json");
    let count = repeat(effort, &samples, |bytes| {
        fs::write(&path, bytes).unwrap();
        tried(home.path(), &["import", text(&path)]);
    });
    tried_well(home.path(), &["backup", "--force", text(&path)]);
    println!("{count} broken imports");
}

/// Backups to restore: each is refused with a sentence and nothing changes, or
/// what is there afterwards can be worked with.
pub fn backups(effort: Effort) {
    let home = household();
    let path = home.path().join("backup.db");
    tried_well(home.path(), &["backup", text(&path)]);
    let samples = vec![fs::read(&path).unwrap()];
    let count = repeat(effort, &samples, |bytes| {
        let other = TemporaryDirectory::new();
        let path = other.path().join("backup.db");
        fs::write(&path, bytes).unwrap();
        if tried(other.path(), &["restore", text(&path)]) {
            tried(other.path(), &["user", "list"]);
            tried(other.path(), &["config", "check"]);
        } else {
            assert!(!other.path().join("hearth.db").exists());
        }
    });
    println!("{count} broken backups");
}

/// Hands changed samples over until the time is over; returns how many.
fn repeat(effort: Effort, samples: &[Vec<u8>], mut hand_over: impl FnMut(&[u8])) -> usize {
    let (mut random, deadline) = (Random::new(effort.seed), Instant::now() + effort.time);
    let mut count = 0;
    while Instant::now() < deadline {
        let sample = &samples[random.below(samples.len())];
        hand_over(&mutate(&mut random, sample, samples));
        count += 1;
    }
    count
}

/// Runs a command, which must do it or say why not; whether it did.
fn tried(folder: &Path, arguments: &[&str]) -> bool {
    let output = run(folder, arguments);
    let said = printed(&output);
    let code = output.status.code();
    let good = matches!(code, Some(0 | 1)) && !said.contains("panicked");
    assert!(good && !said.trim().is_empty(), "{arguments:?}: {said}");
    code == Some(0)
}

fn tried_well(folder: &Path, arguments: &[&str]) {
    assert!(tried(folder, arguments), "{arguments:?}");
}

fn household() -> TemporaryDirectory {
    let folder = TemporaryDirectory::new();
    write_config(folder.path(), serde_json::json!({}));
    make_people(folder.path());
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
