//! A machine's links to its relays: one thread for each `websocket` channel,
//! which dials out, serves the clients that the relay brings, and redials when the
//! link is lost.
//!
//! ```text
//! relay <-> carrier (one thread: frames in and out) <-> client (a thread each) <-> Session
//! ```
//!
//! - [`Links::apply`] starts a link's thread: `Link::run` dials
//!   ([`net::dial::open`]), proves its key (`greeting::greet`), then carries frames
//!   (`Carrier::run`).
//! - `Carrier::read` gives a client's frame to its thread (`Client::give`), whose
//!   `PrivateSession` decrypts it and hands it to the session.
//! - The session's replies go from its outbox through `PrivateSession::arrange_frames`
//!   into the outbox of the link, as far as that has room for the client, and from there
//!   `Carrier::write` sends them.

mod carrier;
mod client;
mod greeting;
mod private_session;
mod redial;

use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tungstenite::http::header::AUTHORIZATION;

use super::identity::{self, Identity};
use super::noise::PrivateKey;
use base::clock::Clock;
use base::ids::MachineId;
use base::secret::random_fraction;
use base::sync::lock;
use base::url::Url;
use carrier::{Carrier, End};
use client::Common;
use config::{Config, RelayChannel, Settings};
use greeting::Linked;
use net::cancel::Cancel;
use net::client_handler::HandlerFactory;
use net::dial::{Dial, DialError, OpenSocket, open, websocket_url};
use net::outbox::{Backlog, Outbox};
use net::relay_links::{LinkState, RelayLink, RelayLinks};
use net::task::Task;
use net::tls::Trust;
use net::wait::Waker;
use protocol::relay::HEADER_BYTES;
use redial::Redial;

pub use private_session::OwnMachine;

/// How long opening a link may take.
const OPENING: Duration = Duration::from_secs(20);
/// Largest message of a relay's handshake.
const GREETING_BYTES: usize = 64 * 1024;

/// Bytes of all clients' messages that may wait for their threads; beyond that, the link
/// is not read from.
const INBOX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of what tells the relay that clients are refused or have ended. What they send
/// is bounded by their share of the outbox.
const OUTBOX_BYTES: usize = 64 * 1024;
/// Bytes for replies to pings of a relay that does not read them.
const PONG_BYTES: usize = 64 * 1024;

/// The path of a relay's WebSocket (protocol section 6).
const PATH: &str = "/ws";

/// The server behind the links.
#[derive(Clone)]
pub struct Server {
    /// Limits, and which authorities are trusted.
    pub settings: Arc<Settings>,
    /// The clock for the time of the next attempt.
    pub clock: Clock,
    /// Where the links report their state.
    pub relays: Arc<RelayLinks>,
    /// Handles the clients that a relay brings.
    pub sessions: HandlerFactory,
}

/// All links of one server.
pub struct Links {
    server: Server,
    data_dir: PathBuf,
    /// This machine's key, once the first link has started.
    key: Arc<OnceLock<PrivateKey>>,
    running: Mutex<Vec<Running>>,
}

struct Running {
    channel: RelayChannel,
    entry: Arc<RelayLink>,
    stop: Cancel,
    task: Task,
}

impl Links {
    /// No links yet. The machine's key is read, and made if `config` names a
    /// relay and there is none.
    ///
    /// # Errors
    /// The key cannot be read or made.
    pub fn new(server: Server, data_dir: PathBuf, config: &Config) -> Result<Links, String> {
        let identity = match config.relays().next() {
            Some(_) => Some(Identity::load_or_make(&data_dir)?),
            None => Identity::load(&data_dir)?,
        };
        let key = Arc::new(OnceLock::new());
        if let Some(identity) = identity {
            server.relays.set_machine_id(identity.machine_id);
            key.get_or_init(|| identity.key);
        }
        if let Some(warning) = identity::warning(&data_dir) {
            log::warn!("{warning}");
        }
        Ok(Links {
            server,
            data_dir,
            key,
            running: Mutex::default(),
        })
    }

    /// Opens the links that `config` adds and ends those that it removes. The others
    /// stay as they are.
    pub fn apply(&self, config: &Config) {
        let mut running = lock(&self.running);
        let wanted: Vec<&RelayChannel> = config.relays().collect();
        let (kept, ended): (Vec<Running>, Vec<Running>) = std::mem::take(&mut *running)
            .into_iter()
            .partition(|link| wanted.contains(&&link.channel));
        end(&self.server.relays, ended);
        *running = kept;
        for channel in wanted {
            if running.iter().any(|link| link.channel == *channel) {
                continue;
            }
            match self.start(channel) {
                Ok(link) => running.push(link),
                Err(error) => log::error!("relay {}: {error}", channel.name),
            }
        }
    }

    /// Starts a link, or says why not.
    fn start(&self, channel: &RelayChannel) -> Result<Running, String> {
        let identity = Identity::load_or_make(&self.data_dir)?;
        self.server
            .relays
            .set_machine_id(identity.machine_id.clone());
        self.key.get_or_init(|| identity.key.clone());
        let address = relay_address(&channel.url).map_err(|error| error.to_string())?;
        let entry = self.server.relays.add(&channel.name, &address.to_string());
        let link = Link {
            name: address.to_string().into(),
            address,
            channel: channel.clone(),
            server: self.server.clone(),
            identity,
            entry: Arc::clone(&entry),
        };
        let stop = Cancel::default();
        match Task::start("relay-link", &stop, |stop| link.run(stop)) {
            Ok(task) => Ok(Running {
                channel: channel.clone(),
                entry,
                stop,
                task,
            }),
            Err(error) => {
                self.server.relays.remove(&entry);
                Err(format!("no thread is left: {error}"))
            }
        }
    }

    /// This machine for clients that connect to it directly and name it.
    pub fn own_machine(&self) -> OwnMachine {
        OwnMachine {
            sessions: Arc::clone(&self.server.sessions),
            key: Arc::clone(&self.key),
        }
    }

    /// Ends all links and closes their clients.
    pub fn stop(&self) {
        let running = std::mem::take(&mut *lock(&self.running));
        end(&self.server.relays, running);
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends links, all at the same time.
fn end(relays: &RelayLinks, links: Vec<Running>) {
    for link in &links {
        link.stop.cancel();
    }
    for link in links {
        link.task.stop();
        relays.remove(&link.entry);
    }
}

/// The address of a relay's WebSocket, whose path may be left out.
///
/// # Errors
/// The text is none.
pub fn relay_address(url: &str) -> Result<Url, DialError> {
    let mut address = websocket_url(url)?;
    if matches!(address.path.as_str(), "" | "/") {
        PATH.clone_into(&mut address.path);
    }
    Ok(address)
}

/// Where clients reach a machine through a relay.
pub fn client_address(relay: &Url, machine: &MachineId) -> Url {
    relay.with_parameter("machine_id", machine.as_str())
}

/// One link's thread.
struct Link {
    /// The relay's name in logs and throttles.
    name: Arc<str>,
    address: Url,
    channel: RelayChannel,
    server: Server,
    identity: Identity,
    entry: Arc<RelayLink>,
}

impl Link {
    fn run(self, stop: &Cancel) {
        let mut redial = Redial::default();
        let mut logged = String::new();
        loop {
            self.entry.update(|status| {
                status.state = LinkState::Connecting.as_str();
                status.next_try = None;
            });
            let mut lasted = Duration::ZERO;
            let end = match self.open(stop) {
                Ok((socket, linked)) => {
                    let since = Instant::now();
                    log::info!("relay {}: linked as {}", self.name, self.machine_id());
                    logged.clear();
                    self.entry
                        .update(|status| status.state = LinkState::Linked.as_str());
                    let end = self.carry(socket, linked, stop);
                    lasted = since.elapsed();
                    end
                }
                Err(end) => end,
            };
            if stop.is_cancelled() {
                return;
            }
            let (state, reason, wait) = match end {
                End::Stopped => return,
                End::Replaced => (
                    LinkState::Replaced,
                    REPLACED.to_owned(),
                    redial.replaced(random_fraction()),
                ),
                End::Lost(reason) => (
                    LinkState::Waiting,
                    reason,
                    redial.lost(lasted, random_fraction()),
                ),
            };
            // A reason that repeats every minute is logged once.
            if logged == reason {
                log::debug!("relay {}: {reason}", self.name);
            } else {
                log::warn!("relay {}: {reason}; retrying", self.name);
            }
            let next_try = self.server.clock.now().plus(wait);
            self.entry.update(|status| {
                status.state = state.as_str();
                status.clients = 0;
                status.last_error = Some(reason.clone());
                status.next_try = Some(next_try);
            });
            logged = reason;
            if stop.wait(wait) {
                return;
            }
        }
    }

    fn machine_id(&self) -> &MachineId {
        &self.identity.machine_id
    }

    fn open(&self, stop: &Cancel) -> Result<(OpenSocket, Linked), End> {
        let deadline = Instant::now() + OPENING;
        let opening = Arc::new(Mutex::<Option<Arc<TcpStream>>>::default());
        let begun = Arc::clone(&opening);
        let interrupt = move || {
            if let Some(socket) = &*lock(&begun) {
                let _ = socket.shutdown(Shutdown::Both);
            }
        };
        let begin = |socket: &Arc<TcpStream>| {
            *lock(&opening) = Some(Arc::clone(socket));
            if stop.is_cancelled() {
                let _ = socket.shutdown(Shutdown::Both);
            }
        };
        stop.guard(interrupt, || {
            let mut socket = self.dial(deadline, &begin)?;
            let linked = greeting::greet(&mut socket, &self.identity.key, deadline)?;
            Ok((socket, linked))
        })
    }

    fn carry(&self, mut socket: OpenSocket, linked: Linked, stop: &Cancel) -> End {
        let waker = match Waker::new() {
            Ok(waker) => Arc::new(waker),
            Err(error) => return End::Lost(format!("no file descriptor is left: {error}")),
        };
        let limits = self.server.settings.current().limits.clone();
        // A message that is too large for us closes its client, not the link.
        let message_bytes = linked.message_bytes.max(limits.message_bytes) + HEADER_BYTES;
        socket.set_config(|config| {
            config.max_message_size = Some(message_bytes);
            config.max_frame_size = Some(message_bytes);
            // One frame that is being sent, and answers to pings behind it.
            config.max_write_buffer_size = message_bytes + PONG_BYTES;
        });
        let (wake, interrupt) = (Arc::clone(&waker), Arc::clone(&waker));
        let outbox = Arc::new(Outbox::new(OUTBOX_BYTES, move || wake.wake()));
        let common = Common {
            sessions: Arc::clone(&self.server.sessions),
            key: self.identity.key.clone(),
            encryption: self.channel.encryption,
            limits,
            message_bytes: linked.message_bytes,
            wants_sign_ins: linked.wants_sign_ins,
            received: Backlog::new(Arc::clone(&outbox), INBOX_BYTES),
            outbox,
        };
        let (name, entry, clients) = (&self.name, &self.entry, linked.clients);
        let carrier = Carrier::new(name, entry, socket, &waker, common, clients);
        stop.guard(move || interrupt.wake(), || carrier.run(stop))
    }

    fn dial(&self, deadline: Instant, begun: &dyn Fn(&Arc<TcpStream>)) -> Result<OpenSocket, End> {
        let address = client_address(&self.address, self.machine_id());
        let token = self.channel.auth_token.as_ref();
        let headers: Vec<_> = token
            .map(|token| (AUTHORIZATION, format!("Bearer {}", token.expose())))
            .into_iter()
            .collect();
        let config = self.server.settings.current();
        open(&Dial {
            trust: &Trust::new(config.tls.ca_file.as_deref()),
            url: &address.with_parameter("role", "machine").text(),
            headers: &headers,
            message_bytes: GREETING_BYTES,
            deadline,
            begun,
        })
        .map_err(|error| match error {
            DialError::Refused { status: 401, .. } => End::lost(format!(
                "{error}; \"auth_token\" of the channel {:?} must be the relay's AUTH_TOKEN",
                self.channel.name
            )),
            error => End::lost(error),
        })
    }
}

/// The status of a link that another one has replaced.
const REPLACED: &str = "another server with this machine's identity.key has linked to the relay; \
    only one may run, so stop the other, or give this one a key of its own by moving the file away";
