//! What cargo runs before it compiles: says which commit this is, compresses the
//! web page, and asks the linker for packed relocations.

mod assets;
mod commit;
mod words;

use std::env;
use std::error::Error;
use std::process::Command;

/// The first GNU C library that loads packed relocations.
const PACKED_RELOCATIONS: (u32, u32) = (2, 36);

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/hearth/build");
    commit::tell();
    assets::compress_handbook()?;
    assets::compress_catalogue()?;
    if env::var_os("CARGO_FEATURE_WEB").is_some() {
        assets::compress_page()?;
    }
    if can_pack_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

/// Whether the linker and the C library know packed relocations, which make a
/// release 200 KB smaller. The usual linker knows them on x86-64 alone; one that
/// somebody chose by -Clinker or -Clink-arg may not.
fn can_pack_relocations() -> bool {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    // Not the whole text: a path to map may have the word in it.
    let names_linker = |flag: &str| flag.trim_start_matches("-C").starts_with("link");
    let is_chosen = env::var("CARGO_ENCODED_RUSTFLAGS")
        .is_ok_and(|flags| flags.split('\u{1f}').any(names_linker));
    is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && env::var_os("HOST") == env::var_os("TARGET")
        && !is_chosen
        && c_library() >= Some(PACKED_RELOCATIONS)
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
