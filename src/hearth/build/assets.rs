//! Compresses the files of the web page and the handbook, so that the program holds and sends
//! them at a third of their size and never compresses while a browser waits.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::words;

/// The sources of the page.
const PAGE: &str = "src/hearth/web/page";
/// The sources of the handbook.
const HANDBOOK: &str = "src/hearth/handbook";
/// The catalogue of tools.
const CATALOGUE: &str = "src/hearth/catalogue";
/// Names the version of the other files: the program fills it in.
const INDEX: &str = "index.html";

/// Writes a gzip file of every page of the handbook, and of its schemas, to the output folder.
///
/// # Errors
/// A file cannot be read or written.
pub fn compress_handbook() -> Result<(), Box<dyn Error>> {
    for name in names_in(HANDBOOK)? {
        if name.ends_with(".md") || name.ends_with(".json") {
            compress(HANDBOOK, &name)?;
        }
    }
    Ok(())
}

/// Writes a gzip file of the catalogue of tools to the output folder.
///
/// # Errors
/// It cannot be read or written.
pub fn compress_catalogue() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CATALOGUE}");
    compress(CATALOGUE, "entries.json").map(drop)
}

/// Writes a gzip file of everything but the index to the output folder, those of its words
/// too, and beside them assets.rs, the array of `Asset` that embeds them.
///
/// # Errors
/// A file cannot be read or written, or its media type is not known.
pub fn compress_page() -> Result<(), Box<dyn Error>> {
    let mut list = String::from("&[\n");
    let mut files = words::files(&names_in(words::FOLDER)?)?;
    for name in names_in(PAGE)?.into_iter().filter(|name| name != INDEX) {
        let source = fs::read(Path::new(PAGE).join(&name))?;
        files.push((name, source));
    }
    for (name, source) in files {
        let media_type = media_type(&name)?;
        let path = write(&name, &source)?;
        writeln!(
            list,
            "    Asset {{ name: {name:?}, media_type: {media_type:?}, gzip: include_bytes!({path:?}) }},"
        )?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), list)?;
    Ok(())
}

fn names_in(folder: &str) -> Result<Vec<String>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={folder}");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string();
        names.push(name.map_err(|name| format!("{folder} holds {name:?}, which is not UTF-8"))?);
    }
    names.sort_unstable();
    Ok(names)
}

/// Compresses one file into the output folder.
fn compress(folder: &str, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    write(name, &fs::read(Path::new(folder).join(name))?)
}

fn write(name: &str, source: &[u8]) -> Result<PathBuf, Box<dyn Error>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(source)?;
    let path = Path::new(&env::var("OUT_DIR")?).join(format!("{name}.gz"));
    fs::write(&path, encoder.finish()?)?;
    Ok(path)
}

/// The media type of a file, by the end of its name.
fn media_type(name: &str) -> Result<&'static str, String> {
    match Path::new(name).extension().and_then(|end| end.to_str()) {
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("json") => Ok("application/json"),
        Some("svg") => Ok("image/svg+xml"),
        Some("png") => Ok("image/png"),
        Some("webmanifest") => Ok("application/manifest+json"),
        _ => Err(format!("add the media type of {name} to the build script")),
    }
}
