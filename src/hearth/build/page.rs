//! Compresses the files of the web page, so that the program holds and sends
//! them at a third of their size and never compresses while a browser waits.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The sources of the page.
const FOLDER: &str = "src/hearth/web/page";
/// Names the version of the other files: the program fills it in.
const INDEX: &str = "index.html";

/// Writes a gzip file of everything but the index to the output folder, and
/// beside them assets.rs, the array of `Asset` that embeds them.
///
/// # Errors
///
/// A file cannot be read or written, or its media type is not known.
pub fn compress() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let output = env::var("OUT_DIR")?;
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        let name = entry?.file_name().into_string();
        names.push(name.map_err(|name| format!("{FOLDER} holds {name:?}, which is not UTF-8"))?);
    }
    names.sort_unstable();
    let mut list = String::from("&[\n");
    for name in names.iter().filter(|name| *name != INDEX) {
        let media_type = media_type(name)?;
        let source = fs::read(Path::new(FOLDER).join(name))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&source)?;
        let path = Path::new(&output).join(format!("{name}.gz"));
        fs::write(&path, encoder.finish()?)?;
        writeln!(
            list,
            "    Asset {{ name: {name:?}, media_type: {media_type:?}, gzip: include_bytes!({path:?}) }},"
        )?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&output).join("assets.rs"), list)?;
    Ok(())
}

/// The media type of a file, by the end of its name.
fn media_type(name: &str) -> Result<&'static str, String> {
    match Path::new(name).extension().and_then(|end| end.to_str()) {
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("svg") => Ok("image/svg+xml"),
        Some("png") => Ok("image/png"),
        Some("webmanifest") => Ok("application/manifest+json"),
        _ => Err(format!("add the media type of {name} to the build script")),
    }
}
