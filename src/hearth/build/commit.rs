//! Tells the compiler which commit this is, for `hearth --version`: what
//! `HEARTH_COMMIT` says, else what .git says. It is read here rather than by the
//! program git, which need not be there; a source archive has neither, and its
//! version goes without.

use std::fs;
use std::path::{Path, PathBuf};

/// Letters of a commit that are shown.
const SHOWN: usize = 7;

/// Tells the compiler.
pub fn tell() {
    println!("cargo::rerun-if-env-changed=HEARTH_COMMIT");
    let given = std::env::var("HEARTH_COMMIT").ok();
    let commit = given.filter(|text| !text.is_empty()).or_else(read_git);
    let hexadecimal = |text: &String| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(commit) = commit.filter(hexadecimal) {
        let shown = &commit[..commit.len().min(SHOWN)];
        println!("cargo::rustc-env=HEARTH_COMMIT={shown}");
    }
}

/// The commit that is checked out, if this is a checkout.
fn read_git() -> Option<String> {
    let folder = folder()?;
    let head = read(&folder.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else {
        return Some(head);
    };
    // A work tree of its own shares the branches of the first one.
    let common = match fs::read_to_string(folder.join("commondir")) {
        Ok(path) => folder.join(path.trim()),
        Err(_) => folder,
    };
    read(&common.join(name)).or_else(|| {
        read(&common.join("packed-refs"))?
            .lines()
            .find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))
            .map(str::to_owned)
    })
}

/// The folder .git, or the one that a file of this name leads to.
fn folder() -> Option<PathBuf> {
    let path = Path::new(".git");
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = fs::read_to_string(path).ok()?;
    Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))
}

/// Reads a file, and has cargo look again when it changes. A file that is
/// missing is not named: cargo would take it for changed at every build.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
