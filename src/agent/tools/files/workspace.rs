//! A workspace: a directory whose files the model may see and write. The household has one, and
//! so has each person: what a conversation that nobody else sees works with.
//!
//! The kernel resolves a path below the directory and over no symbolic link, so that
//! replacing a part of it meanwhile cannot lead outside.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags, Stat, fchmod, flock,
    fstat, fsync, mkdirat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use base::ids::UserId;
use base::secret::reference;
use net::process::Sandbox;

/// The household's directory below the data directory, by default.
const DEFAULT_NAME: &str = "files";
/// The directory below the data directory that holds those of people, by their ids.
const OF_PEOPLE: &str = "people";
/// Longest path, in bytes.
const MAX_PATH: usize = 1_000;
/// Most directories above a file.
const MAX_DEPTH: usize = 16;
/// Longest name, in bytes: the limit of the usual file systems.
const MAX_NAME: usize = 255;
/// Most entries of a directory that are read.
const MAX_ENTRIES: usize = 10_000;
/// Prefix of the names of files that are being written.
const UNFINISHED: &str = ".hearth-unfinished-";

/// The directory, which need not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workspace {
    root: PathBuf,
    data_dir: PathBuf,
}

/// The content of a file.
#[derive(Debug)]
pub(crate) struct Content {
    /// Its beginning.
    pub(crate) bytes: Vec<u8>,
    /// Its whole size in bytes.
    pub(crate) size: u64,
}

/// An entry of a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: FileType,
    pub(super) size: u64,
    /// Seconds since 1970.
    pub(super) changed: i64,
}

/// The content of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Sorted by name.
    pub(super) entries: Vec<Entry>,
    /// Whether there are more than were read.
    pub(super) is_cut: bool,
}

/// A path below the workspace, as its components.
struct Steps<'p> {
    path: &'p str,
    names: Vec<&'p str>,
}

impl<'p> Steps<'p> {
    fn parse(path: &'p str) -> Result<Steps<'p>, String> {
        let path = path.trim();
        if path.len() > MAX_PATH {
            return Err(format!("a path has at most {MAX_PATH} bytes"));
        }
        if path.starts_with('/') || path.starts_with('~') {
            return Err(format!(
                "paths begin in the workspace, such as notes/list.txt; {path:?} does not"
            ));
        }
        let names: Vec<&str> = path
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        for name in &names {
            if *name == ".." {
                return Err(format!(
                    "{path:?} leads out of the workspace: no path may hold .."
                ));
            }
            if name.len() > MAX_NAME || name.chars().any(char::is_control) {
                return Err(format!("{name:?} is no possible name of a file"));
            }
        }
        if names.len() > MAX_DEPTH {
            return Err(format!(
                "{path:?} is nested too deeply: at most {MAX_DEPTH} levels"
            ));
        }
        Ok(Steps { path, names })
    }

    /// The directories above, and the file's own name.
    fn file(&self) -> Result<(&[&'p str], &'p str), String> {
        match self.names.split_last() {
            Some((name, above)) if !self.path.ends_with('/') => Ok((above, name)),
            _ => Err(format!("{:?} names no file", self.path)),
        }
    }

    fn failed(&self, error: Errno) -> String {
        failed(self.path, error)
    }
}

fn folder_of(person: UserId, data_dir: &Path) -> PathBuf {
    data_dir.join(OF_PEOPLE).join(person.to_string())
}

/// Deletes the files of a person who has been removed, or puts them below `from-NAME` among
/// those of whoever gets what they had.
///
/// # Errors
/// They cannot be moved or deleted; the error names them.
pub fn settle(
    data_dir: &Path,
    (person, name): (UserId, &str),
    heir: Option<UserId>,
) -> Result<(), String> {
    let folder = folder_of(person, data_dir);
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    if !folder.try_exists().map_err(failed)? {
        return Ok(());
    }
    let Some(heir) = heir else {
        return fs::remove_dir_all(&folder).map_err(failed);
    };
    let place = Workspace::of_person(heir, data_dir).make()?;
    // Names of older versions may hold anything.
    let name = name.replace(['/', '\0'], "_");
    let free = (1..).map(|number| match number {
        1 => place.join(format!("from-{name}")),
        number => place.join(format!("from-{name}-{number}")),
    });
    let mut free = free.filter(|path| !path.exists());
    match free.next() {
        Some(path) => fs::rename(&folder, path).map_err(failed),
        None => Ok(()),
    }
}

impl Workspace {
    /// The household's workspace: in this directory, or in `files` of the data directory.
    pub(crate) fn new(directory: Option<&Path>, data_dir: &Path) -> Workspace {
        Workspace {
            root: directory.map_or_else(|| data_dir.join(DEFAULT_NAME), Path::to_owned),
            data_dir: data_dir.to_owned(),
        }
    }

    /// A person's own.
    pub(crate) fn of_person(person: UserId, data_dir: &Path) -> Workspace {
        Workspace::new(Some(&folder_of(person, data_dir)), data_dir)
    }

    /// Makes the directory if necessary and returns its path without symbolic
    /// links.
    pub(crate) fn make(&self) -> Result<PathBuf, String> {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root);
        made.and_then(|()| self.root.canonicalize())
            .map_err(|error| self.unusable(&error))
            .and_then(|root| self.keep_apart(root))
    }

    fn unusable(&self, error: &io::Error) -> String {
        log::warn!("workspace {}: {error}", self.root.display());
        format!("the workspace directory cannot be used: {}", error.kind())
    }

    /// Where a program runs, and its sandbox, if it is to have one: in `directory`,
    /// else in the workspace within a sandbox and in the data directory without
    /// one. `words` are its command line, if the owner wrote that.
    pub(crate) fn confine(
        &self,
        words: &[&str],
        directory: Option<&Path>,
        is_sandboxed: bool,
    ) -> (PathBuf, Option<Sandbox>) {
        let chosen = |default: &Path| directory.unwrap_or(default).to_owned();
        if !is_sandboxed {
            return (chosen(&self.data_dir), None);
        }
        // Where it cannot be made, a program with a directory of its own may do without.
        let workspace = self.make().unwrap_or_else(|_| self.root.clone());
        let directory = chosen(&workspace);
        let sandbox = Sandbox::new(&self.data_dir, &workspace, words, &directory);
        (directory, Some(sandbox))
    }

    /// Keeps the server's own database and configuration from the model.
    fn keep_apart(&self, root: PathBuf) -> Result<PathBuf, String> {
        let data_dir = self
            .data_dir
            .canonicalize()
            .unwrap_or_else(|_| self.data_dir.clone());
        if data_dir.starts_with(&root) {
            log::warn!(
                "workspace {}: it holds the server's own data",
                root.display()
            );
            return Err(
                "the workspace holds the server's own data: the owner must choose another \
                 directory for tools.files"
                    .to_owned(),
            );
        }
        Ok(root)
    }

    /// The root, opened; `None` while there is none.
    fn root(&self) -> Result<Option<OwnedFd>, String> {
        let root = match self.root.canonicalize() {
            Ok(root) => self.keep_apart(root)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unusable(&error)),
        };
        let opened = openat(CWD, &root, DIRECTORY, Mode::empty());
        opened
            .map(Some)
            .map_err(|error| failed("the workspace", error))
    }

    fn descend(&self, steps: &Steps<'_>, names: &[&str]) -> Result<OwnedFd, String> {
        let root = self.root()?.ok_or_else(|| steps.failed(Errno::NOENT))?;
        open_below(root, names).map_err(|error| steps.failed(error))
    }

    /// Reads the first `most` bytes of a regular file.
    pub(crate) fn read(&self, path: &str, most: usize) -> Result<Content, String> {
        let steps = Steps::parse(path)?;
        let (above, name) = steps.file()?;
        let directory = self.descend(&steps, above)?;
        read_in(&steps, &directory, name, most)
    }

    /// Lists a directory, the workspace itself for an empty path.
    pub(super) fn list(&self, path: &str) -> Result<Listing, String> {
        let steps = Steps::parse(path)?;
        if steps.names.is_empty() && self.root()?.is_none() {
            return Ok(Listing::default());
        }
        let directory = self.descend(&steps, &steps.names)?;
        let mut listing = Listing::default();
        let entries = Dir::read_from(&directory).map_err(|error| steps.failed(error))?;
        for entry in entries {
            let entry = entry.map_err(|error| steps.failed(error))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_string_lossy();
            if matches!(&*name, "." | "..") || name.starts_with(UNFINISHED) {
                continue;
            }
            if listing.entries.len() == MAX_ENTRIES {
                listing.is_cut = true;
                break;
            }
            // It may have been removed.
            let Ok(stat) = statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            listing.entries.push(Entry {
                name: name.into_owned(),
                kind: FileType::from_raw_mode(stat.st_mode),
                size: u64::try_from(stat.st_size).unwrap_or(0),
                changed: stat.st_mtime,
            });
        }
        listing
            .entries
            .sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listing)
    }

    /// Replaces a file atomically: a reader, also after a power cut, finds either the old
    /// content or the new, which `change` makes of the old one while nobody else writes
    /// through here. Creates the directories above. Returns whether the file existed.
    pub(super) fn write(
        &self,
        path: &str,
        change: impl FnOnce(Option<Before<'_>>) -> Result<Vec<u8>, String>,
    ) -> Result<bool, String> {
        let steps = Steps::parse(path)?;
        let (above, name) = steps.file()?;
        if name.starts_with(UNFINISHED) {
            return Err(format!("{name:?} is no possible name of a file"));
        }
        self.make()?;
        let mut directory = self.descend(&steps, &[])?;
        for name in above {
            directory = match mkdirat(&directory, *name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => open_below(directory, &[name]),
                Err(error) => Err(error),
            }
            .map_err(|error| steps.failed(error))?;
        }
        lock(&steps, &directory)?;
        let before = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            found => Some(regular(&steps, found)?),
        };
        let content = change(before.is_some().then_some(Before {
            steps: &steps,
            directory: &directory,
            name,
        }))?;
        let unfinished = format!("{UNFINISHED}{}", reference());
        let written = put(&directory, &unfinished, name, &content, before.as_ref());
        if let Err(error) = written {
            let _ = unlinkat(&directory, unfinished.as_str(), AtFlags::empty());
            return Err(steps.failed(error));
        }
        Ok(before.is_some())
    }
}

/// A file that is about to be replaced.
pub(super) struct Before<'s> {
    steps: &'s Steps<'s>,
    directory: &'s OwnedFd,
    name: &'s str,
}

impl Before<'_> {
    /// Its whole content.
    ///
    /// # Errors
    /// It is larger than `most` bytes, or cannot be read.
    pub(super) fn read(&self, most: usize) -> Result<Vec<u8>, String> {
        let content = read_in(self.steps, self.directory, self.name, most)?;
        match content.size <= most as u64 && content.bytes.len() as u64 == content.size {
            true => Ok(content.bytes),
            false => Err(format!(
                "{:?} has more than the {most} bytes that can be changed",
                self.steps.path
            )),
        }
    }
}

/// How long another change in the same directory may take.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// Waits until nobody else changes files of this directory through here. Closing the
/// descriptor ends that.
fn lock(steps: &Steps<'_>, directory: &OwnedFd) -> Result<(), String> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                thread::sleep(LOCK_RETRY);
            }
            Err(Errno::WOULDBLOCK) => {
                return Err(format!(
                    "{:?}: another change of this directory takes long; try again",
                    steps.path
                ));
            }
            // File systems without locks.
            Err(_) => return Ok(()),
        }
    }
}

/// Reads the first `most` bytes of a regular file of this directory.
fn read_in(
    steps: &Steps<'_>,
    directory: &OwnedFd,
    name: &str,
    most: usize,
) -> Result<Content, String> {
    // Opening a device or a pipe may have an effect, so the type is checked
    // before opening, and again after.
    regular(steps, statat(directory, name, AtFlags::SYMLINK_NOFOLLOW))?;
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file =
        openat(directory, name, flags, Mode::empty()).map_err(|error| steps.failed(error))?;
    let stat = regular(steps, fstat(&file))?;
    let mut bytes = Vec::new();
    File::from(file)
        .take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{:?} cannot be read: {}", steps.path, error.kind()))?;
    Ok(Content {
        bytes,
        size: u64::try_from(stat.st_size).unwrap_or(0),
    })
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// Writes `content` to a file next to `name`, and renames it once it is on disk.
fn put(
    directory: &OwnedFd,
    unfinished: &str,
    name: &str,
    content: &[u8],
    before: Option<&Stat>,
) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, unfinished, flags, Mode::from_raw_mode(0o644))?;
    if let Some(before) = before {
        // The file keeps its permissions, except special bits.
        fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o777))?;
    }
    let mut file = File::from(file);
    let failure = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(content).map_err(failure)?;
    file.sync_all().map_err(failure)?;
    renameat(directory, unfinished, directory, name)?;
    fsync(directory)
}

/// The status of a file that must be a regular one.
fn regular(steps: &Steps<'_>, stat: Result<Stat, Errno>) -> Result<Stat, String> {
    let stat = stat.map_err(|error| steps.failed(error))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        FileType::Symlink => Err(steps.failed(Errno::LOOP)),
        FileType::Directory => Err(format!("{:?} is a directory", steps.path)),
        _ => Err(format!("{:?} is no regular file", steps.path)),
    }
}

/// Opens a directory below another one.
fn open_below(root: OwnedFd, names: &[&str]) -> Result<OwnedFd, Errno> {
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    open_by(root, names, |root, path| {
        openat2(root, path, DIRECTORY, Mode::empty(), beneath)
    })
}

/// The same by `resolve`, where the kernel has that.
fn open_by(
    root: OwnedFd,
    names: &[&str],
    resolve: impl FnOnce(&OwnedFd, String) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    if names.is_empty() {
        return Ok(root);
    }
    match resolve(&root, names.join("/")) {
        // Linux before 5.6, or a sandbox.
        Err(Errno::NOSYS | Errno::PERM) => walk(root, names),
        opened => opened,
    }
}

/// The same by one directory after the other.
fn walk(root: OwnedFd, names: &[&str]) -> Result<OwnedFd, Errno> {
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    let mut names = names.iter();
    names.try_fold(root, |above, name| {
        openat(above, *name, flags, Mode::empty())
    })
}

fn failed(path: &str, error: Errno) -> String {
    let why = match error {
        Errno::NOENT => "there is no such file or directory in the workspace".to_owned(),
        Errno::NOTDIR => "what should be a directory is none".to_owned(),
        Errno::LOOP => "it goes over a symbolic link, which is not followed".to_owned(),
        Errno::NOSPC | Errno::DQUOT => "the disk is full".to_owned(),
        error => io::Error::from(error).kind().to_string(),
    };
    format!("{path:?}: {why}")
}

#[cfg(test)]
mod tests;
