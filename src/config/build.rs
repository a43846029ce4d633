//! Compresses the documentation of the settings, which few processes read.

use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

const SETTINGS: &str = "settings.tsv";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SETTINGS}");
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    let file = fs::File::create(Path::new(&folder).join(format!("{SETTINGS}.gz")))?;
    let mut packed = GzEncoder::new(file, Compression::best());
    packed.write_all(&fs::read(SETTINGS)?)?;
    packed.finish().map(drop)
}
