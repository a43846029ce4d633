//! The household's data: backups, restoring, exports, imports, retention.

mod backups;
mod encrypted;
mod files;
mod imports;
mod interruptions;
mod nights;
mod round_trip;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use support::MAX_WAIT;
use support::home::{Home, TemporaryDirectory};
use support::program::{printed, run};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn good(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        printed(&output)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "progress must be silent in a pipe"
    );
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    printed(&output)
}

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/imports");
    path.join(name).to_str().unwrap().to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Looks less often than the shared one, because the server limits how often a
/// client may ask.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::park_timeout(Duration::from_millis(30));
    }
}

/// A household that does not run, with something said in it.
fn household() -> TemporaryDirectory {
    let mut home = Home::start(json!({
        "api_key": "sk-very-secret-key",
        "base_url": "https://models.example/v1",
        "provider": "offline",
    }));
    let mut client = home.admin();
    client.chat("the boiler hums");
    client.chat("good morning");
    drop(client);
    home.stop();
    std::mem::replace(&mut home.folder, TemporaryDirectory::new())
}

fn exported(folder: &Path) -> String {
    good(folder, &["export", "--all"])
}

fn nightly(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .map(|entries| {
            let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
            entries.map(|entry| name(entry.unwrap())).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}
