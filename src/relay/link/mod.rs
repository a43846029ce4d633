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
//!   `Conversation::receive` decrypts it (`Privacy`) and hands it to the session.
//! - The session's replies go from its outbox through `Privacy::wrap` into frames,
//!   which `Carrier::write` sends.

mod carrier;
mod client;
mod control;
mod direct;
mod end;
mod greeting;
mod privacy;
mod redial;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use tungstenite::http::header::AUTHORIZATION;

use super::identity::{self, Identity, IdentityError};
use super::noise::PrivateKey;
use base::clock::Clock;
use base::ids::MachineId;
use base::secret::random_fraction;
use base::sync;
use base::url::Url;
use carrier::Carrier;
use client::Common;
use config::{Config, RelayChannel, Settings};
use control::Control;
use end::End;
use net::cancel::Cancel;
use net::client_handler::HandlerFactory;
use net::dial::{Dial, DialError, OpenSocket, open, websocket_url};
use net::relay_links::{LinkState, RelayLink, RelayLinks};
use net::task::Task;
use net::tls::Trust;
use protocol::relay::HEADER_BYTES;
use redial::Redial;

pub use direct::OwnMachine;

/// How long opening a link may take.
const OPENING: Duration = Duration::from_secs(20);
/// Largest message of a relay's handshake.
const GREETING_BYTES: usize = 64 * 1024;

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

/// What every link needs.
struct Parts {
    server: Server,
    identity: Identity,
}

struct Running {
    channel: RelayChannel,
    entry: Arc<RelayLink>,
    control: Arc<Control>,
    task: Task,
}

impl Links {
    /// No links yet. The machine's key is read, and made if `config` names a
    /// relay and there is none.
    ///
    /// # Errors
    /// The key cannot be read or made.
    pub fn new(server: Server, data_dir: PathBuf, config: &Config) -> Result<Links, IdentityError> {
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
        let mut running = self.lock();
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
        let without_system = |error| format!("no thread or file descriptor is left: {error}");
        let identity = Identity::load_or_make(&self.data_dir).map_err(|error| error.to_string())?;
        self.server
            .relays
            .set_machine_id(identity.machine_id.clone());
        self.key.get_or_init(|| identity.key.clone());
        let address = relay_address(&channel.url).map_err(|error| error.to_string())?;
        let control = Arc::new(Control::new().map_err(without_system)?);
        let entry = self.server.relays.add(&channel.name, &address.to_string());
        let link = Link {
            name: address.to_string().into(),
            address,
            channel: channel.clone(),
            parts: Parts {
                server: self.server.clone(),
                identity,
            },
            entry: Arc::clone(&entry),
            control: Arc::clone(&control),
        };
        match Task::start("relay-link", &Cancel::default(), |_| link.run()) {
            Ok(task) => Ok(Running {
                channel: channel.clone(),
                entry,
                control,
                task,
            }),
            Err(error) => {
                self.server.relays.remove(&entry);
                Err(without_system(error))
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
        let running = std::mem::take(&mut *self.lock());
        end(&self.server.relays, running);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        sync::lock(&self.running)
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
        link.control.stop();
    }
    for link in links {
        link.task.stop();
        relays.remove(&link.entry);
    }
}

/// The address of a relay's WebSocket, whose path may be left out.
///
/// # Errors
/// [`DialError::Malformed`].
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
    parts: Parts,
    entry: Arc<RelayLink>,
    control: Arc<Control>,
}

impl Link {
    fn run(self) {
        let mut redial = Redial::default();
        let mut logged = String::new();
        loop {
            self.entry.update(|status| {
                status.state = LinkState::Connecting;
                status.next_try = None;
            });
            let mut lasted = Duration::ZERO;
            let end = match self.open() {
                Ok(carrier) => {
                    let since = Instant::now();
                    log::info!("relay {}: linked as {}", self.name, self.machine_id());
                    logged.clear();
                    self.entry.update(|status| status.state = LinkState::Linked);
                    let end = carrier.run();
                    lasted = since.elapsed();
                    end
                }
                Err(end) => end,
            };
            self.control.opened();
            if self.control.is_stopping() {
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
            let next_try = self.parts.server.clock.now().plus(wait);
            self.entry.update(|status| {
                status.state = state;
                status.clients = 0;
                status.last_error = Some(reason.clone());
                status.next_try = Some(next_try);
            });
            logged = reason;
            if !self.control.pause(wait) {
                return;
            }
        }
    }

    fn machine_id(&self) -> &MachineId {
        &self.parts.identity.machine_id
    }

    fn open(&self) -> Result<Carrier<'_>, End> {
        let deadline = Instant::now() + OPENING;
        let mut socket = self.dial(deadline)?;
        let linked = greeting::greet(&mut socket, &self.parts.identity.key, deadline)?;
        self.control.opened();
        let limits = self.parts.server.settings.current().limits.clone();
        // A message that is too large for us closes its client, not the link.
        let message_bytes = linked.message_bytes.max(limits.message_bytes) + HEADER_BYTES;
        socket.set_config(|config| {
            config.max_message_size = Some(message_bytes);
            config.max_frame_size = Some(message_bytes);
            // One frame that is being sent, and answers to pings behind it.
            config.max_write_buffer_size = message_bytes + PONG_BYTES;
        });
        let common = Common {
            sessions: Arc::clone(&self.parts.server.sessions),
            key: self.parts.identity.key.clone(),
            encryption: self.channel.encryption,
            limits,
            message_bytes: linked.message_bytes,
            wants_sign_ins: linked.wants_sign_ins,
            waker: Arc::clone(&self.control.waker),
            waiting: Arc::default(),
        };
        let (name, control, entry) = (&self.name, &*self.control, &*self.entry);
        Ok(Carrier::new(
            name,
            control,
            entry,
            socket,
            common,
            linked.clients,
        ))
    }

    fn dial(&self, deadline: Instant) -> Result<OpenSocket, End> {
        let address = client_address(&self.address, self.machine_id());
        let token = self.channel.auth_token.as_ref();
        let headers: Vec<_> = token
            .map(|token| (AUTHORIZATION, format!("Bearer {}", token.expose())))
            .into_iter()
            .collect();
        let config = self.parts.server.settings.current();
        open(&Dial {
            trust: &Trust::new(config.tls.ca_file.as_deref()),
            url: &address.with_parameter("role", "machine").text(),
            headers: &headers,
            message_bytes: GREETING_BYTES,
            deadline,
            begun: &|socket| self.control.begun(socket),
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
