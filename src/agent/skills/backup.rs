//! The files of skills in a backup.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path};

use super::install::MOST_BYTES;
use super::{FOLDER, MANIFEST, Skills, manifest};

/// The files of all skills of a data directory, by their paths in it. What cannot be
/// read is left out.
pub fn files(data_dir: &Path) -> Vec<(String, Vec<u8>)> {
    let skills = Skills::load(data_dir);
    let mut found = Vec::new();
    for skill in skills.all() {
        let files = skill.files.iter().map(String::as_str);
        for file in files.chain([MANIFEST]) {
            let path = format!("{FOLDER}/{}/{file}", skill.name);
            let mut content = Vec::new();
            let read = File::open(data_dir.join(&path))
                .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut content));
            match read {
                Ok(_) => found.push((path, content)),
                Err(error) => log::warn!("{path}: not in the backup: {error}"),
            }
        }
    }
    found
}

/// Writes a file of a backup below `root`, which will be a data directory, and syncs it,
/// if its path is one of a skill. Scripts are executable again.
///
/// # Errors
/// The file cannot be written.
pub fn unpack(root: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_plain = parts
        .iter()
        .all(|part| matches!(part, Component::Normal(_)));
    let name = parts.get(1).and_then(|part| part.as_os_str().to_str());
    let is_of_skill = path.starts_with(FOLDER) && parts.len() > 2 && parts[0].as_os_str() == FOLDER;
    if !is_plain || !is_of_skill || !name.is_some_and(manifest::is_name) {
        return Ok(());
    }
    let target = root.join(path);
    let folder = target.parent().unwrap_or(root);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mode = match content.starts_with(b"#!") {
        true => 0o700,
        false => 0o600,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&target)?;
    file.write_all(content)?;
    file.sync_all()
}
