//! What `make` and `make dist` do where something is missing. What they build is tested by
//! `make test-dist`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use support::home::TemporaryDirectory;
use support::program::{finish, printed};

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `.ci/dist` on a machine that can compile for x86-64 alone, with a `cargo` that only
/// notes that it ran, and fails.
fn dist(folder: &Path, processors: &[&str]) -> Output {
    script(&folder.join("dpkg"), "echo amd64");
    script(&folder.join("x86_64-linux-gnu-gcc"), "exit 1");
    script(
        &folder.join("cargo"),
        &format!("touch {}/compiled; exit 1", folder.display()),
    );
    let library = folder.join("x86_64-unknown-linux-gnu");
    fs::create_dir_all(&library).unwrap();
    fs::write(library.join("libstd-1.rlib"), "").unwrap();
    // `rustc --print target-libdir --target NAME`
    let rustc = folder.join("rustc");
    script(&rustc, &format!("echo {}/$4", folder.display()));
    finish(
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/dist"))
            .args(processors)
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .env("CARGO", folder.join("cargo"))
            .env("RUSTC", &rustc)
            .env("OUT", folder.join("packages")),
    )
}

#[test]
fn packages_that_cannot_be_built_are_named_before_anything_is_compiled() {
    let folder = TemporaryDirectory::new();
    let output = dist(folder.path(), &["armhf"]);
    let said = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "skipped: armhf: no standard library of Rust",
        "nothing can be built for armhf",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!folder.path().join("compiled").exists());
    assert!(!folder.path().join("packages").exists());

    let output = dist(folder.path(), &["armhf", "amd64"]);
    let said = printed(&output);
    assert!(said.starts_with("skipped: armhf: "), "{said}");
    assert!(folder.path().join("compiled").exists(), "{said}");
    assert_eq!(output.status.code(), Some(1), "its cargo fails: {said}");
    assert!(!folder.path().join("packages/SHA256SUMS").exists());

    let output = dist(folder.path(), &["sparc"]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
}

#[test]
fn a_compiler_that_is_missing_or_too_old_is_named_before_anything_is_compiled() {
    let folder = TemporaryDirectory::new();
    let cargo = folder.path().join("cargo");
    let tools = |version: Option<&str>| {
        if let Some(version) = version {
            script(
                &cargo,
                &format!("echo 'cargo {version} (built from a source tarball)'"),
            );
        }
        let mut make = Command::new("make");
        make.arg("tools").arg(format!("CARGO={}", cargo.display()));
        finish(make.current_dir(env!("CARGO_MANIFEST_DIR")))
    };
    for version in [None, Some("1.63.0"), Some("1.90.1")] {
        let output = tools(version);
        let said = printed(&output);
        assert!(!output.status.success(), "{version:?}: {said}");
        assert!(said.contains("Rust 1.91 or newer is missing"), "{said}");
        assert!(said.contains("apt install cargo-web"), "{said}");
    }
    for version in ["1.91.0", "1.96.0", "2.0.0"] {
        let output = tools(Some(version));
        assert!(output.status.success(), "{}", printed(&output));
    }
}
