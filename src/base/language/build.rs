//! Leaves the words of the page, which the page's own files hold, out of the program's words,
//! and sorts the others: they are looked up by halves. Those of other languages than English,
//! which few processes read, are compressed.

use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What the keys of the page begin with.
const PAGE: &str = "page.";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=language");
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    for entry in fs::read_dir("language")? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| name.ends_with(".tsv")) else {
            continue;
        };
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().filter(|line| !line.starts_with(PAGE));
        let mut kept: Vec<&str> = lines.collect();
        kept.sort_unstable();
        let kept = kept.join("\n");
        if name == "en.tsv" {
            fs::write(Path::new(&folder).join(name), kept)?;
        } else {
            let file = fs::File::create(Path::new(&folder).join(format!("{name}.gz")))?;
            let mut packed = GzEncoder::new(file, Compression::best());
            packed.write_all(kept.as_bytes())?;
            packed.finish()?;
        }
    }
    Ok(())
}
