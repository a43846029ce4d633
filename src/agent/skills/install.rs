//! Installs skills, removes them and lists what is installed.
//!
//! A skill is copied beside its place and renamed into it, so that whoever reads finds
//! it whole or not at all. What a crash leaves begins with a dot and is removed by
//! the next installation.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::manifest;
use super::{FOLDER, MANIFEST, MOST_MANIFEST_BYTES, MOST_SKILLS, Skill};
use base::secret::reference;

/// Most bytes of all skills: a backup holds them in memory.
const MOST_BYTES_OF_ALL: u64 = 16 * 1024 * 1024;
/// Most bytes of a skill.
pub(super) const MOST_BYTES: u64 = 4 * 1024 * 1024;
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
pub enum SkillError {
    /// It is not what a skill must be.
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, with the line where there is one, and what to do.
        reason: String,
    },
    /// No skill of this name is installed.
    Unknown(String),
    /// A file or folder cannot be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl fmt::Display for SkillError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkillError::Refused { path, reason } => {
                write!(formatter, "{}: {reason}", path.display())
            }
            SkillError::Unknown(name) => write!(formatter, "there is no skill {name:?}"),
            SkillError::Io { path, error } => write!(formatter, "{}: {error}", path.display()),
        }
    }
}

impl error::Error for SkillError {}

fn refused(path: &Path, reason: impl Into<String>) -> SkillError {
    SkillError::Refused {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SkillError {
    let path = path.to_owned();
    move |error| SkillError::Io { path, error }
}

/// Installs the skill in the folder `source`, in place of one of the same name. Names
/// that begin with a dot are left out.
///
/// # Errors
/// It is no skill, has another name than its folder, holds symbolic links or is too large; there are too many; the files
/// cannot be read or written. Then nothing has changed.
pub fn add(data_dir: &Path, source: &Path) -> Result<Installed, SkillError> {
    let mut skill = read_skill(source)?;
    check_folder_name(source, &skill.name)?;
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

/// The format wants folder and skill to have the same name: other agents find no skill
/// otherwise.
fn check_folder_name(source: &Path, name: &str) -> Result<(), SkillError> {
    let folder = fs::canonicalize(source).map_err(failed(source))?;
    let is = folder.file_name().unwrap_or_default();
    if is == name {
        return Ok(());
    }
    let reason = format!(
        "the folder is called {:?}, but its {MANIFEST} names the skill {name:?}: the format wants \
         one name for both, so rename the folder to {name:?} or correct the name",
        is.to_string_lossy()
    );
    Err(refused(source, reason))
}

/// Removes an installed skill.
///
/// # Errors
/// There is none of this name, or it cannot be removed.
pub fn remove(data_dir: &Path, name: &str) -> Result<(), SkillError> {
    let folder = data_dir.join(FOLDER);
    let place = folder.join(name);
    // Also one that cannot be used any more.
    if !manifest::is_name(name) || place.symlink_metadata().is_err() {
        return Err(SkillError::Unknown(name.to_owned()));
    }
    let gone = folder.join(format!("{UNFINISHED}{}", reference()));
    fs::rename(&place, &gone).map_err(failed(&place))?;
    sync(&folder)?;
    // The skill is gone in any case; what is left of it, the next installation removes.
    let _ = fs::remove_dir_all(&gone);
    Ok(())
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
    let read = |name| {
        let path = folder.join(name);
        let skill = read_skill(&path)?;
        match path.file_name().is_some_and(|name| *name == *skill.name) {
            true => Ok(skill),
            false => Err(refused(
                &path,
                format!(
                    "its {MANIFEST} names it {:?}, and folder and skill must have the same name: \
                     install it again",
                    skill.name
                ),
            )),
        }
    };
    Ok(names.into_iter().map(read).collect())
}

/// The skill in this folder.
fn read_skill(folder: &Path) -> Result<Skill, SkillError> {
    let path = folder.join(MANIFEST);
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let reason = format!(
                "there is no {MANIFEST} in it: name the folder that holds it, or write one"
            );
            return Err(refused(folder, reason));
        }
        Err(error) => return Err(failed(&path)(error)),
    };
    if !about.is_file() {
        return Err(refused(
            &path,
            "it is no regular file: put the file itself there",
        ));
    }
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
    let manifest = manifest::parse(&text).map_err(|broken| refused(&path, broken.to_string()))?;
    let mut skill = Skill {
        name: manifest.name,
        description: manifest.description,
        bytes: 0,
        files: Vec::new(),
    };
    survey(folder, folder, 0, &mut skill)?;
    skill.files.retain(|file| file != MANIFEST);
    skill.files.sort();
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
        if about.is_symlink() {
            let reason = "it is a symbolic link: put the file itself there";
            return Err(refused(&path, reason));
        }
        if !about.is_file() {
            return Err(refused(&path, "it is no regular file: remove it"));
        }
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

/// Copies the files of a skill to a new folder, and syncs them.
fn copy(source: &Path, skill: &Skill, target: &Path, data_dir: &Path) -> Result<(), SkillError> {
    make_folder(target, data_dir)?;
    let files = skill.files.iter().map(String::as_str);
    for file in files.chain([MANIFEST]) {
        let (from, to) = (source.join(file), target.join(file));
        if let Some(parent) = Path::new(file).parent() {
            let mut folder = target.to_owned();
            for name in parent {
                folder.push(name);
                make_folder(&folder, data_dir)?;
            }
        }
        copy_file(&from, &to, data_dir).map_err(failed(&from))?;
    }
    sync(target)
}

fn copy_file(from: &Path, to: &Path, data_dir: &Path) -> io::Result<()> {
    let from = File::open(from)?;
    // Scripts stay executable.
    let mode = match from.metadata()?.permissions().mode() & 0o100 {
        0 => 0o600,
        _ => 0o700,
    };
    let mut to_file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to)?;
    io::copy(&mut from.take(MOST_BYTES), &mut to_file)?;
    to_file.flush()?;
    to_file.sync_all()?;
    give_to_owner(to, data_dir)
}

/// Makes a folder, if it is not there.
fn make_folder(folder: &Path, data_dir: &Path) -> Result<(), SkillError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => give_to_owner(folder, data_dir).map_err(failed(folder)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(folder)(error)),
    }
}

/// What an admin of the machine installs, the server must be able to read.
fn give_to_owner(path: &Path, data_dir: &Path) -> io::Result<()> {
    let (owner, now) = (fs::metadata(data_dir)?, fs::symlink_metadata(path)?);
    match (owner.uid(), owner.gid()) == (now.uid(), now.gid()) {
        true => Ok(()),
        false => chown(path, Some(owner.uid()), Some(owner.gid())),
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
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(UNFINISHED.as_bytes());
        let age = entry.metadata().and_then(|about| about.modified());
        let is_old = age.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() > 3_600));
        if is_ours && is_old {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
