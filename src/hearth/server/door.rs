//! The terminal's way to the service: a socket in the data directory while a server runs,
//! else a service in the terminal's own process.
//!
//! Whoever runs commands on the machine is its owner. The kernel says that a peer is the
//! server's user or root, and the secret of this start that it may read the data directory:
//! a tool in its sandbox runs as the same user, and nothing keeps it from a socket.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt;

use super::StartError;
use super::lock::{Lock, check_own};
use crate::http::{Router, RouterExtensions, Serves};
use crate::service::Service;
use crate::service::session::sessions;
use crate::webhook::incoming::Incoming;
use base::clock::Clock;
use base::files::{create, unless_missing};
use base::secret::Secret;
use base::sync::lock;
use config::Settings;
use net::http::Handler;
use net::listener::{Listener, Listeners, LocalConnection};
use store::Store;

/// The socket's name in the data directory.
pub const SOCKET_FILE: &str = "hearth.sock";
/// The name of the file with the secret of this start.
pub const KEY_FILE: &str = "hearth.sock.key";
/// Most bytes of that file that are read.
const KEY_BYTES: u64 = 256;
/// Bytes of the address of a socket in the file system, its end included.
const ADDRESS_BYTES: usize = 108;

/// The socket of a running server. Its files go with it.
pub struct Door {
    /// The newest first. Behind it the one whose socket was removed before, for the connections
    /// that it still has; none once the server stops.
    listeners: Mutex<Vec<Listener>>,
    service: Arc<Service>,
    router: Arc<Router>,
    directory: PathBuf,
}

impl Door {
    /// Listens in the data directory, whose lock the caller holds.
    ///
    /// # Errors
    /// The files cannot be written, or no descriptor or thread is left.
    pub(super) fn open(
        service: &Arc<Service>,
        directory: &Path,
        router: Router,
    ) -> Result<Arc<Door>, StartError> {
        let door = Arc::new(Door {
            listeners: Mutex::default(),
            service: Arc::clone(service),
            router: Arc::new(router),
            directory: directory.to_owned(),
        });
        let listener = door.listen();
        let listener = listener
            .map_err(|error| StartError::unwritable(&directory.join(SOCKET_FILE), &error))?;
        lock(&door.listeners).push(listener);
        let looked_after = Arc::downgrade(&door);
        service.observe_ticks(move || {
            if let Some(door) = looked_after.upgrade() {
                door.restore();
            }
        });
        Ok(door)
    }

    fn listen(&self) -> io::Result<Listener> {
        let (path, service) = (self.directory.join(SOCKET_FILE), &self.service);
        write_key(&self.directory, &service.owner_key)?;
        unless_missing(fs::remove_file(&path))?;
        let socket = at(&self.directory, |path| UnixListener::bind(path))?;
        rustix::fs::chmod(&path, Mode::RUSR | Mode::WUSR)?;
        // Counted by itself: a crowd on the network must not keep the owner out.
        let listeners =
            Listeners::new(Arc::clone(&service.settings), sessions(Arc::clone(service)));
        listeners.listen_local(socket, Arc::clone(&self.router) as Arc<dyn Handler>)
    }

    /// Makes its files again if somebody has removed one, as those do who tidy up.
    fn restore(&self) {
        let is_there = |name| self.directory.join(name).exists();
        if is_there(SOCKET_FILE) && is_there(KEY_FILE) {
            return;
        }
        let mut listeners = lock(&self.listeners);
        let Some(current) = listeners.first() else {
            return;
        };
        match self.listen() {
            Ok(listener) => {
                log::warn!("{SOCKET_FILE} or its key was removed: both were made again");
                current.refuse_new();
                listeners.truncate(1);
                listeners.insert(0, listener);
            }
            // The next look tries it again.
            Err(error) => log::debug!("{SOCKET_FILE}: {error}"),
        }
    }

    pub(super) fn refuse_new(&self) {
        for listener in &*lock(&self.listeners) {
            listener.refuse_new();
        }
    }

    /// Ends its connections and removes its files.
    pub(super) fn stop(&self) {
        let listeners = std::mem::take(&mut *lock(&self.listeners));
        listeners.into_iter().for_each(Listener::stop);
        for name in [SOCKET_FILE, KEY_FILE] {
            if let Err(error) = unless_missing(fs::remove_file(self.directory.join(name))) {
                log::warn!("{name}: {error}");
            }
        }
    }
}

/// Connects to the server that listens in a data directory.
///
/// # Errors
/// None listens there, or this user may not connect.
pub fn connect(directory: &Path) -> io::Result<(UnixStream, Secret)> {
    let stream = at(directory, |path| UnixStream::connect(path))?;
    // Checked before the first byte goes out: root may be led to somebody else's socket.
    let server = sockopt::socket_peercred(&stream)?.uid;
    if !server.is_root() && server.as_raw() != fs::metadata(directory)?.uid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(directory.join(KEY_FILE))?;
    check_own(&file, directory)?;
    let mut key = String::new();
    file.take(KEY_BYTES).read_to_string(&mut key)?;
    Ok((stream, Secret::new(key)))
}

/// A service without listeners, workers, MCP servers and relay, for one command while no
/// server runs. With the lock it keeps servers out of the data directory until it is dropped.
pub struct OwnService {
    service: Arc<Service>,
    listeners: Listeners,
    router: Arc<Router>,
    _lock: Option<Lock>,
}

impl OwnService {
    /// Opens the database with these settings.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn open(
        directory: &Path,
        settings: Settings,
        store: Store,
        clock: Clock,
        lock: Option<Lock>,
    ) -> Result<OwnService, StartError> {
        let service = Service::new(directory, Arc::new(settings), store, clock);
        let service = service.map_err(StartError::new)?;
        let router = Router::new(
            Arc::clone(&service),
            Incoming::new(Arc::clone(&service), None),
            Serves::Everything,
            RouterExtensions::default(),
        );
        Ok(OwnService {
            listeners: Listeners::new(
                Arc::clone(&service.settings),
                sessions(Arc::clone(&service)),
            ),
            router: Arc::new(router),
            service,
            _lock: lock,
        })
    }

    /// One connection, as a running server would take it, and the owner's secret.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub fn connect(&self) -> io::Result<(UnixStream, LocalConnection, Secret)> {
        let (ours, theirs) = UnixStream::pair()?;
        let router = Arc::clone(&self.router);
        let connection = self.listeners.serve_local(theirs, router)?;
        Ok((ours, connection, self.service.owner_key.clone()))
    }
}

impl Drop for OwnService {
    fn drop(&mut self) {
        self.service.store.close();
    }
}

/// Uses the socket's path. One that is longer than an address may be (unix(7)) is named by
/// the descriptor of its directory.
fn at<T>(directory: &Path, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = directory.join(SOCKET_FILE);
    if path.as_os_str().len() < ADDRESS_BYTES {
        return with(&path);
    }
    let opened = rustix::fs::open(
        directory,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    with(Path::new(&format!(
        "/proc/self/fd/{}/{SOCKET_FILE}",
        opened.as_raw_fd()
    )))
}

fn write_key(directory: &Path, key: &Secret) -> io::Result<()> {
    let path = directory.join(KEY_FILE);
    unless_missing(fs::remove_file(&path))?;
    create(&path)?.write_all(key.expose().as_bytes())
}
