//! What a program gets of ours: a few variables, and a few directories where the
//! kernel has Landlock (<https://docs.kernel.org/userspace-api/landlock.html>).

use std::env;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities,
};

/// Where programs are looked for when our own environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What is used of Landlock; older kernels have less of it.
const VERSION: ABI = ABI::V7;
/// Where distributions keep programs, what these need, and the addresses of name
/// servers. Not the rest of /run, where services keep secrets.
const SYSTEM: [&str; 17] = [
    "/bin",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix",
    "/opt",
    "/proc",
    "/run/NetworkManager",
    "/run/current-system",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/run/wrappers",
    "/sbin",
    "/sys",
    "/usr",
];
/// Devices that are only a facility of the kernel. Not terminals: a program could
/// type into that of the owner. Not /dev/shm: it holds the memory of others.
const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

/// The files that a program may reach. It may read the directories of the system,
/// and write to a workspace and the temporary directory. It cannot reach other
/// processes: neither signal them nor read their environment. Where the kernel
/// has no Landlock, nothing of this holds. Root's programs have none of root's capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// The server's own data, which nothing here opens.
    data_dir: PathBuf,
    /// Its settings, where a link in the data directory leads to them.
    settings: PathBuf,
    /// Whether only its owner could reach the data directory at first.
    is_private: bool,
    workspace: PathBuf,
    /// Another directory that may be written to.
    shared: Option<PathBuf>,
    temporary: PathBuf,
    /// Further files and directories that may be read.
    own: Vec<PathBuf>,
    /// Whether it can write no file, and connect to nothing by TCP.
    is_closed: bool,
}

impl Sandbox {
    /// A sandbox around the directory `workspace` for a program that runs in
    /// `directory`. It may also read what `words` name, the command line that an
    /// owner wrote, never a model: the files with their directories.
    ///
    /// Temporary files go to the workspace if the server's data is in the
    /// temporary directory.
    pub fn new(data_dir: &Path, workspace: &Path, words: &[&str], directory: &Path) -> Sandbox {
        let data_dir = canonical(data_dir);
        let workspace = canonical(workspace);
        let temporary = canonical(&env::temp_dir());
        let settings = canonical(&data_dir.join("config.json"));
        let holds_data = [&data_dir, &settings]
            .iter()
            .any(|own| own.starts_with(&temporary));
        let mut sandbox = Sandbox {
            temporary: match holds_data {
                true => workspace.clone(),
                false => temporary,
            },
            is_private: is_private(&data_dir),
            data_dir,
            settings,
            workspace,
            shared: None,
            own: vec![directory.to_owned()],
            is_closed: false,
        };
        for (place, word) in words.iter().enumerate() {
            if word.contains('/') {
                sandbox.open(&directory.join(word));
            } else if place == 0 {
                let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
                let found = env::split_paths(&path).map(|directory| directory.join(word));
                if let Some(found) = found.into_iter().find(|path| path.is_file()) {
                    sandbox.open(&found);
                }
            }
        }
        sandbox
    }

    /// The same, which may also write to this directory.
    #[must_use]
    pub fn and_shared(mut self, directory: &Path) -> Sandbox {
        self.shared = Some(canonical(directory));
        self
    }

    /// A sandbox for a program that gets and gives everything through its pipes: it can write
    /// no file, and connect to nothing by TCP.
    pub fn closed(data_dir: &Path) -> Sandbox {
        let nowhere = Path::new("/");
        Sandbox {
            own: Vec::new(),
            is_closed: true,
            ..Sandbox::new(data_dir, nowhere, &[], nowhere)
        }
    }

    /// Opens a file with its directory, or a directory, if it exists: as it is
    /// named, and as what a link there leads to.
    fn open(&mut self, path: &Path) {
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let Ok(target) = fs::canonicalize(path) else {
            return;
        };
        for path in [path, &target] {
            let directory = match path.is_dir() {
                true => path,
                false => path.parent().unwrap_or(path),
            };
            let installation = directory.parent().filter(|_| directory.ends_with("bin"));
            let directories = [Some(directory), installation].into_iter().flatten();
            // A program in somebody's home is no reason to open the whole of it.
            let small =
                directories.filter(|path| path.parent().is_some() && !home.starts_with(path));
            self.own.extend(small.map(Path::to_owned));
            if !path.is_dir() {
                self.own.push(path.to_owned());
            }
        }
    }

    /// Starts `command` within the sandbox. What Landlock restricts is the calling
    /// thread and its children, so this takes a thread of its own.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        thread::scope(|scope| {
            let spawning = thread::Builder::new()
                .name("sandbox".to_owned())
                .spawn_scoped(scope, || {
                    command.env("TMPDIR", &self.temporary);
                    self.restrict_thread().map_err(io::Error::other)?;
                    drop_capabilities()?;
                    command.spawn()
                })?;
            let panicked = |_| Err(io::Error::other("its thread ended in a panic"));
            spawning.join().unwrap_or_else(panicked)
        })
    }

    /// The directory that the program may write to.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Undoes what the program may have done to the mode of the data directory,
    /// because Landlock does not cover that.
    pub(super) fn restore_mode(&self) {
        if self.is_private
            && !is_private(&self.data_dir)
            && let Err(error) = fs::set_permissions(&self.data_dir, Permissions::from_mode(0o700))
        {
            log::warn!("{} is no longer private: {error}", self.data_dir.display());
        }
    }

    fn restrict_thread(&self) -> Result<(), RulesetError> {
        let mut readable = Vec::new();
        for directory in SYSTEM.iter().map(Path::new) {
            self.collect(directory, &mut readable);
        }
        for path in &self.own {
            self.collect(path, &mut readable);
        }
        let writable = [&self.workspace, &self.temporary].into_iter();
        let writable = writable.chain(&self.shared).map(PathBuf::as_path);
        let writable = writable.filter(|path| !self.is_closed && !self.holds_data(path));
        let writable = writable.chain(DEVICES.iter().map(Path::new));
        let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(VERSION))?;
        if self.is_closed {
            ruleset = ruleset.handle_access(AccessNet::from_all(VERSION))?;
        }
        ruleset
            .scope(Scope::from_all(VERSION))?
            .create()?
            .add_rules(path_beneath_rules(readable, AccessFs::from_read(VERSION)))?
            .add_rules(path_beneath_rules(writable, AccessFs::from_all(VERSION)))?
            .restrict_self()?;
        Ok(())
    }

    /// Whether `path` is above the server's data, or is that.
    fn holds_data(&self, path: &Path) -> bool {
        self.data_dir.starts_with(path) || self.settings.starts_with(path)
    }

    /// Adds `path` without the server's data: where it holds that, its other
    /// entries instead. Of the data directory only subdirectories can be opened,
    /// because Hearth's own files are those in it.
    fn collect(&self, path: &Path, readable: &mut Vec<PathBuf>) {
        let path = canonical(path);
        if self.holds_data(&path) {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            for entry in entries.filter(|_| path != self.data_dir) {
                // What a link leads to is opened by its own place.
                if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                    self.collect(&entry.path(), readable);
                }
            }
        } else if path.parent() != Some(&self.data_dir) || path.is_dir() {
            readable.push(path);
        }
    }
}

/// Takes from the calling thread, and from what it starts, what root may do beyond the user
/// that it is: reading other processes, the server among them, and the files of anybody.
fn drop_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        // Only root may do this, and only root gets capabilities by starting a program.
        let capability = CapabilitySet::from_bits_retain(1 << number);
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    Ok(set_capabilities(None, sets)?)
}

/// Whether this kernel has Landlock and lets us use it.
pub fn has_landlock() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let handled = ruleset.handle_access(AccessFs::from_all(ABI::V1));
    handled.and_then(Ruleset::create).is_ok()
}

/// Leaves `command` nothing of our environment but these variables and a PATH:
/// the rest may hold keys.
pub fn keep_only(command: &mut Command, names: &[&str]) {
    command.env_clear().env("PATH", DEFAULT_PATH);
    for name in names {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
}

fn is_private(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|status| status.mode() & 0o777 == 0o700)
}

/// The path without symbolic links, where it exists.
fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
