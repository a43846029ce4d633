//! Tells the linker how to lay out a release, on Linux.
//!
//! Functions that run together lie together: at the end of all code those of every
//! start, where the data follows that it changes; before them those of ordinary
//! work; before these the rest. A system reads a program into memory in pieces of
//! 64 KiB or more around what is used. The compiler leaves the functions of a
//! start, 1 MB in all, strewn over the whole program, which is then in memory
//! whole: 2 MB more for an idle server, and as much to read from a slow card.
//!
//! `make layout` writes the lists. A name that they hold in vain does no harm, nor
//! does one that they lack, but that its function lies with the rest.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Functions that every start runs.
const START: &str = include_str!("start.txt");
/// Functions that ordinary work runs, but no start.
const WORK: &str = include_str!("work.txt");
/// The first C library that reads packed relocations.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

/// Tells the linker, if it is one that understands.
pub fn tell() {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    // A linker that somebody chose by -Clinker or -Clink-arg may know no scripts,
    // as mold does not.
    let chosen = env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"));
    if !is("PROFILE", "release") || !is("CARGO_CFG_TARGET_OS", "linux") || chosen {
        return;
    }
    let Some(folder) = env::var_os("OUT_DIR") else {
        return;
    };
    let script = Path::new(&folder).join("layout.ld");
    match fs::write(&script, script_of(&[("work", WORK), ("start", START)])) {
        // Two arguments: in one, a comma of the path would end it.
        Ok(()) => {
            println!("cargo::rustc-link-arg-bins=-T");
            println!("cargo::rustc-link-arg-bins={}", script.display());
        }
        Err(error) => println!("cargo::warning={}: {error}", script.display()),
    }
    // 200 KB less. Elsewhere than on x86-64 the usual linker does not know it.
    let native = env::var_os("HOST") == env::var_os("TARGET");
    if native && is("CARGO_CFG_TARGET_ARCH", "x86_64") && c_library() >= Some(PACKED_RELOCATIONS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// A linker script that puts each list behind the section of all code. What has
/// no name there, as the way into the program and the assembly of cryptography,
/// goes with the last list.
fn script_of(lists: &[(&str, &str)]) -> String {
    let mut script = String::from("SECTIONS\n{\n");
    for (place, (name, list)) in lists.iter().enumerate() {
        let _ = writeln!(script, "  .text.{name} :\n  {{\n    *(");
        for function in list.lines().filter(|line| !line.starts_with('#')) {
            let _ = writeln!(script, "      {}", sections(function));
        }
        if place + 1 == lists.len() {
            script.push_str("      .text\n");
        }
        script.push_str("    )\n  }\n");
    }
    script + "}\nINSERT AFTER .text;\n"
}

/// The sections that a line of a list stands for. Of Rust it holds how names
/// begin, as each ends in a hash; the compiler puts what it takes for seldom used
/// into sections of its own. A name of C stands for itself, and for what the
/// compiler made of it for certain arguments.
fn sections(function: &str) -> String {
    if function.starts_with("_ZN") || function.starts_with("_R") {
        format!(".text.{function}* .text.unlikely.{function}*")
    } else {
        format!(".text.{function} .text.{function}.*")
    }
}

/// The version of the GNU C library here, if it is one.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
