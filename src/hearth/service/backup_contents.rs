//! What every backup holds besides the database.

use std::fs;
use std::path::Path;

use agent::skills;
use base::clock::Timestamp;
use base::sealed::SEALING_KEY_FILE;
use config::{AUTHORITY, AUTHORITY_KEY, without_secrets};
use serde_json::json;
use store::BackupFile;

/// The configuration's name in a backup.
pub const CONFIG: &str = "config.json";
/// The keys of the machine, for push services and for kept passwords, and the household's
/// authority, in backups with secrets only.
pub const KEYS: [&str; 5] = [
    "identity.key",
    "push.key",
    SEALING_KEY_FILE,
    AUTHORITY,
    AUTHORITY_KEY,
];
/// The description of a backup, inside it.
pub const ABOUT: &str = "about.json";

/// The files that a backup of this data directory holds besides the database, and
/// why the configuration is not among them, if it is not.
pub fn enclosed(
    data_dir: &Path,
    with_secrets: bool,
    now: Timestamp,
) -> (Vec<BackupFile>, Option<String>) {
    let mut problem = None;
    let mut files = Vec::new();
    let mut enclose = |name: &str, content: Vec<u8>| {
        let name = name.to_owned();
        files.push(BackupFile { name, content });
    };
    let path = data_dir.join(CONFIG);
    let config = config::read(&path).and_then(|text| {
        if with_secrets {
            Ok(text)
        } else {
            without_secrets(&path, &text)
        }
    });
    match config {
        Ok(text) => enclose(CONFIG, text.into_bytes()),
        Err(problems) => problem = Some(format!("the configuration is left out: {problems}")),
    }
    for name in KEYS {
        if with_secrets && let Ok(key) = fs::read(data_dir.join(name)) {
            enclose(name, key);
        }
    }
    let machine = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let about = json!({
        "hearth": env!("CARGO_PKG_VERSION"),
        "made_at": now,
        "machine": machine.trim(),
        "with_secrets": with_secrets,
    });
    enclose(ABOUT, about.to_string().into_bytes());
    for (path, content) in skills::files(data_dir) {
        enclose(&path, content);
    }
    (files, problem)
}
