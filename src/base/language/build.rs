//! Leaves the words of the page, which the page's own files hold, out of the program's words,
//! and sorts the others: they are looked up by halves.

use std::path::Path;
use std::{env, fs, io};

/// What the keys of the page begin with.
const PAGE: &str = "page.";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=language");
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    for entry in fs::read_dir("language")? {
        let path = entry?.path();
        let (Some("tsv"), Some(name)) = (
            path.extension().and_then(|end| end.to_str()),
            path.file_name(),
        ) else {
            continue;
        };
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().filter(|line| !line.starts_with(PAGE));
        let mut kept: Vec<&str> = lines.collect();
        kept.sort_unstable();
        fs::write(Path::new(&folder).join(name), kept.join("\n"))?;
    }
    Ok(())
}
