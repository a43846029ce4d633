//! Installs skills, removes them, lists what is installed and keeps it in backups.
//!
//! A skill is copied beside its place and renamed into it, so that whoever reads finds
//! it whole or not at all. What a crash leaves begins with a dot and is removed by
//! the next installation.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::{error, fmt};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::manifest;
use super::{FOLDER, MANIFEST, MOST_MANIFEST_BYTES, MOST_SKILLS, Skill, Skills};
use base::files::give_to_owner_of;
use base::secret::reference;

/// Most bytes of all skills: a backup holds them in memory.
const MOST_BYTES_OF_ALL: u64 = 16 * 1024 * 1024;
/// Most bytes of a skill.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Most files of a skill.
const MOST_FILES: usize = 256;
/// Most folders inside each other, the skill's own not counted.
const MOST_DEPTH: usize = 8;
/// What is being installed or removed begins so.
const UNFINISHED: &str = ".unfinished-";

/// What [`add`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The skill as it is now.
    pub skill: Skill,
    /// Whether one of that name was there before.
    pub was_there: bool,
}

/// Why a skill cannot be installed, removed or used.
#[derive(Debug)]
pub struct SkillError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong, with the line where there is one, and what to do.
    pub reason: String,
}

impl fmt::Display for SkillError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.reason)
    }
}

impl error::Error for SkillError {}

fn refused(path: &Path, reason: impl Into<String>) -> SkillError {
    SkillError {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SkillError {
    |error| refused(path, error.to_string())
}

/// Installs the skill in the folder `source`, in place of one of the same name. Names
/// that begin with a dot are left out.
///
/// # Errors
/// It is no skill, has another name than its folder, holds symbolic links or is too large;
/// there are too many; the files cannot be read or written. Then nothing has changed.
pub fn add(data_dir: &Path, source: &Path) -> Result<Installed, SkillError> {
    let source = &fs::canonicalize(source).unwrap_or_else(|_| source.to_owned());
    let mut skill = read_skill(source)?;
    let folder = data_dir.join(FOLDER);
    make_folder(&folder, data_dir)?;
    remove_leftovers(&folder);
    let place = folder.join(&skill.name);
    let was_there = place.symlink_metadata().is_ok();
    let others: Vec<Skill> = installed(&folder)
        .map_err(failed(&folder))?
        .into_iter()
        .flatten()
        .filter(|other| other.name != skill.name)
        .collect();
    let bytes: u64 = others.iter().map(|other| other.bytes).sum();
    if others.len() >= MOST_SKILLS || bytes + skill.bytes > MOST_BYTES_OF_ALL {
        let reason = format!(
            "there can be at most {MOST_SKILLS} skills with {MOST_BYTES_OF_ALL} bytes together: \
             remove one"
        );
        return Err(refused(&folder, reason));
    }
    let unfinished = folder.join(format!("{UNFINISHED}{}", reference()));
    let copied = copy(source, &skill, &unfinished, data_dir)
        .and_then(|()| put_in_place(&unfinished, &place, was_there));
    // What it has replaced, or what could not be completed.
    let _ = fs::remove_dir_all(&unfinished);
    copied?;
    // The source may have changed meanwhile.
    skill = read_skill(&place)?;
    Ok(Installed { skill, was_there })
}

/// Removes an installed skill; false if there is none of this name.
///
/// # Errors
/// It cannot be removed.
pub fn remove(data_dir: &Path, name: &str) -> Result<bool, SkillError> {
    let folder = data_dir.join(FOLDER);
    let place = folder.join(name);
    // Also one that cannot be used any more.
    if !manifest::is_name(name) || place.symlink_metadata().is_err() {
        return Ok(false);
    }
    let gone = folder.join(format!("{UNFINISHED}{}", reference()));
    fs::rename(&place, &gone).map_err(failed(&place))?;
    sync(&folder)?;
    // The skill is gone in any case; what is left of it, the next installation removes.
    let _ = fs::remove_dir_all(&gone);
    Ok(true)
}

/// What is in the folder of the skills, by name: skills, or why one cannot be used.
pub(super) fn installed(folder: &Path) -> io::Result<Vec<Result<Skill, SkillError>>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(name);
        }
    }
    names.sort();
    names.truncate(MOST_SKILLS);
    let read = |name| read_skill(&folder.join(name));
    Ok(names.into_iter().map(read).collect())
}

/// The skill in this folder.
fn read_skill(folder: &Path) -> Result<Skill, SkillError> {
    let path = folder.join(MANIFEST);
    let about = path
        .symlink_metadata()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => refused(
                folder,
                format!(
                    "there is no {MANIFEST} in it: name the folder that holds it, or write one"
                ),
            ),
            _ => failed(&path)(error),
        })?;
    check_regular(&path, &about)?;
    let mut text = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MOST_MANIFEST_BYTES + 1).read_to_end(&mut text))
        .map_err(failed(&path))?;
    if text.len() as u64 > MOST_MANIFEST_BYTES {
        let reason = format!(
            "it has more than {MOST_MANIFEST_BYTES} bytes: move parts of it to files beside it"
        );
        return Err(refused(&path, reason));
    }
    let text = String::from_utf8(text)
        .map_err(|_| refused(&path, "it is not UTF-8: save it in that encoding"))?;
    let manifest = manifest::parse(&text).map_err(|reason| refused(&path, reason))?;
    let mut skill = Skill {
        name: manifest.name,
        description: manifest.description,
        bytes: 0,
        files: Vec::new(),
    };
    survey(folder, folder, 0, &mut skill)?;
    skill.files.retain(|file| file != MANIFEST);
    skill.files.sort();
    // Other agents find no skill otherwise.
    let called = folder.file_name().unwrap_or_default();
    let name = &skill.name;
    if called != name.as_str() {
        let reason = format!(
            "the folder is called {:?}, but its {MANIFEST} names the skill {name:?}, and folder and \
             skill must have the same name: rename the folder to {name:?} or correct the name",
            called.to_string_lossy()
        );
        return Err(refused(folder, reason));
    }
    Ok(skill)
}

/// Adds the files of a folder and those below it.
fn survey(root: &Path, folder: &Path, depth: usize, skill: &mut Skill) -> Result<(), SkillError> {
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let Some(name) = relative
            .to_str()
            .filter(|name| !name.chars().any(char::is_control))
        else {
            return Err(refused(&path, "its name is no plain text: rename it"));
        };
        let hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
        if path.file_name().is_some_and(hidden) {
            continue;
        }
        let about = path.symlink_metadata().map_err(failed(&path))?;
        if about.is_dir() {
            if depth == MOST_DEPTH {
                let reason = format!("more than {MOST_DEPTH} folders are inside each other");
                return Err(refused(&path, reason));
            }
            survey(root, &path, depth + 1, skill)?;
            continue;
        }
        check_regular(&path, &about)?;
        skill.bytes += about.len();
        skill.files.push(name.to_owned());
        if skill.bytes > MOST_BYTES || skill.files.len() > MOST_FILES {
            let reason = format!(
                "a skill has at most {MOST_BYTES} bytes in {MOST_FILES} files: remove some of this \
                 one's"
            );
            return Err(refused(root, reason));
        }
    }
    Ok(())
}

fn check_regular(path: &Path, about: &Metadata) -> Result<(), SkillError> {
    if about.is_file() {
        return Ok(());
    }
    Err(refused(
        path,
        match about.is_symlink() {
            true => "it is a symbolic link: put the file itself there",
            false => "it is no regular file: remove it",
        },
    ))
}

/// Copies the files of a skill to a new folder, and syncs them.
fn copy(source: &Path, skill: &Skill, target: &Path, data_dir: &Path) -> Result<(), SkillError> {
    make_folder(target, data_dir)?;
    let files = skill.files.iter().map(String::as_str);
    for file in files.chain([MANIFEST]) {
        let (from, to) = (source.join(file), target.join(file));
        let mut folder = target.to_owned();
        for name in Path::new(file).parent().into_iter().flatten() {
            folder.push(name);
            make_folder(&folder, data_dir)?;
        }
        copy_file(&from, &to, data_dir).map_err(failed(&from))?;
    }
    sync(target)
}

fn copy_file(from: &Path, to: &Path, data_dir: &Path) -> io::Result<()> {
    let from = File::open(from)?;
    // Scripts stay executable.
    let is_script = from.metadata()?.permissions().mode() & 0o100 != 0;
    write_new(to, is_script, from.take(MOST_BYTES))?;
    give_to_owner_of(data_dir, to)
}

/// Writes a new file, and syncs it.
fn write_new(path: &Path, is_script: bool, mut content: impl Read) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(if is_script { 0o700 } else { 0o600 })
        .open(path)?;
    io::copy(&mut content, &mut file)?;
    file.sync_all()
}

/// Makes a folder, if it is not there.
fn make_folder(folder: &Path, data_dir: &Path) -> Result<(), SkillError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => give_to_owner_of(data_dir, folder).map_err(failed(folder)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(folder)(error)),
    }
}

fn put_in_place(unfinished: &Path, place: &Path, was_there: bool) -> Result<(), SkillError> {
    let renamed = match was_there {
        // At no moment is there none.
        true => renameat_with(CWD, unfinished, CWD, place, RenameFlags::EXCHANGE)
            .map_err(io::Error::from),
        false => fs::rename(unfinished, place),
    };
    renamed.map_err(failed(place))?;
    sync(place.parent().unwrap_or(place))
}

fn sync(folder: &Path) -> Result<(), SkillError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed(folder))
}

/// Removes what crashes have left. Another installation may be under way: what is new
/// stays.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
        let age = entry.metadata().and_then(|about| about.modified());
        let is_old = age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() > 3_600));
        if is_ours && is_old {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The files of all skills of a data directory for a backup, by their paths in it. What
/// cannot be read is left out.
pub fn files(data_dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for skill in Skills::load(data_dir).all() {
        for file in skill.files.iter().map(String::as_str).chain([MANIFEST]) {
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
    let parts = Path::new(path).components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let is_of_skill = match parts.collect::<Option<Vec<&str>>>().as_deref() {
        Some([FOLDER, name, _, ..]) => manifest::is_name(name),
        _ => false,
    };
    if !is_of_skill {
        return Ok(());
    }
    let target = root.join(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(target.parent().unwrap_or(root))?;
    write_new(&target, content.starts_with(b"#!"), content)
}
