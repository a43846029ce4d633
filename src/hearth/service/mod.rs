//! Who may do what: sessions, commands, events, approvals and the workers.
//!
//! Everything that people and programs ask for comes to the one [`Service`].
//! A message becomes a turn, whichever way it came (`turns`, `webhooks`,
//! `turn_stream`, `routines`); the turn waits in the `queue` until one of the
//! [`workers`] runs it (`running`), and what happens in it is told to whoever
//! subscribed at the [`hub`].

mod accounts;
mod approvals;
pub mod backups;
mod commands;
pub mod connections;
pub mod hub;
pub mod meter;
pub mod password;
pub mod people;
mod queue;
pub mod responses;
mod routines;
mod running;
pub mod session;
pub mod throttle;
pub mod turn_stream;
mod turns;
mod views;
mod webhooks;
pub mod workers;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

use agent::Assistant;
use agent::mcp::Mcp;
use agent::meter::ModelMeter;
use base::clock::Clock;
use base::error::Result;
use base::secret::Secret;
use config::Settings;
use connections::Connections;
use hub::Hub;
use meter::Meter;
use net::peer::ThrottleKey;
use net::relay_links::RelayLinks;
use net::tls::Trust;
use net::token_bucket::TokenBucket;
use queue::WorkQueue;
use responses::Responses;
use store::Store;
use throttle::Throttle;
use workers::{Deferred, Deliver, Wake};

pub use webhooks::{Accepted, WebhookRequest};

/// Numbers of events that are reserved on disk at a time: after a crash the
/// next event gets a number above any that was given out before.
const EVENT_NUMBERS: u64 = 1_000_000;
const EVENT_NUMBERS_KEY: &str = "event_numbers_reserved";

/// Everything that the ways in have in common.
pub struct Service {
    settings: Arc<Settings>,
    store: Store,
    clock: Clock,
    data_dir: PathBuf,
    started_at: Instant,
    last_tick: Mutex<Instant>,
    assistant: RwLock<Arc<Assistant>>,
    mcp: Mcp,
    hub: Hub,
    event_numbers: Mutex<u64>,
    connections: Connections,
    queue: WorkQueue,
    deliver: Arc<dyn Deliver>,
    waiters: Mutex<turns::Waiters>,
    responses: Responses,
    meter: Meter,
    /// Turns that wait until the database can be written again.
    stalled: Mutex<Vec<(Instant, Deferred)>>,
    /// Why the last nightly backup failed, if it did.
    backup_problem: Mutex<Option<String>>,
    nudges: (Sender<Wake>, Receiver<Wake>),
    verifier: password::Verifier,
    login_guessers: Throttle<ThrottleKey>,
    login_names: Throttle<(Option<Arc<str>>, String)>,
    relays: Arc<RelayLinks>,
    webhook_rates: Mutex<HashMap<String, TokenBucket>>,
}

/// What POST /auth returns.
pub struct Login {
    /// Shown to the client once; only its fingerprint is stored.
    pub token: Secret,
    /// How long it is valid from now on.
    pub expires_in: Duration,
}

/// What the workers have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Turns that run.
    pub running: usize,
    /// Turns that wait for a worker.
    pub waiting: usize,
    /// Deliveries that wait for a worker.
    pub due_deliveries: usize,
}

/// What a service is made of.
pub struct Parts {
    /// The configuration, which may change at any time.
    pub settings: Arc<Settings>,
    /// The open database.
    pub store: Store,
    /// Time for everything that is stored or expires.
    pub clock: Clock,
    /// Where programs run that custom tools name.
    pub data_dir: PathBuf,
    /// Sends callbacks; `webhook` gives it, so that this room needs none.
    pub deliver: Arc<dyn Deliver>,
}

impl Service {
    /// A service that does not work yet: [`workers::Workers::start`] does.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn new(parts: Parts) -> Result<Arc<Service>> {
        let Parts {
            settings,
            store,
            clock,
            data_dir,
            deliver,
        } = parts;
        let config = settings.current();
        let last_event = match store.meta(EVENT_NUMBERS_KEY)? {
            Some(text) => text.parse().unwrap_or(0),
            None => 0,
        };
        let mcp = Mcp::new(data_dir.clone());
        Ok(Arc::new(Service {
            assistant: RwLock::new(Arc::new(Assistant::from_config(Arc::clone(&config), &mcp))),
            mcp,
            hub: Hub::after(last_event),
            event_numbers: Mutex::new(last_event),
            connections: Connections::default(),
            queue: WorkQueue::new(config.workers),
            waiters: Mutex::default(),
            responses: Responses::default(),
            meter: Meter::default(),
            stalled: Mutex::default(),
            backup_problem: Mutex::default(),
            nudges: bounded(4),
            verifier: password::Verifier::default(),
            login_guessers: Throttle::new(clock.clone()),
            login_names: Throttle::new(clock.clone()),
            relays: Arc::default(),
            webhook_rates: Mutex::default(),
            started_at: Instant::now(),
            last_tick: Mutex::new(Instant::now()),
            settings,
            store,
            clock,
            data_dir,
            deliver,
        }))
    }

    /// The settings in force.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Events and their subscribers.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The authenticated connections.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// This machine's name on relays, and its links to them.
    pub fn relays(&self) -> &Arc<RelayLinks> {
        &self.relays
    }

    /// The MCP servers; none runs before [`Service::start_mcp`].
    pub fn mcp(&self) -> &Mcp {
        &self.mcp
    }

    /// Begins to start the MCP servers of the configuration.
    pub fn start_mcp(&self) {
        let config = self.settings.current();
        let trust = Trust::new(config.tls.ca_file.as_deref());
        self.mcp.apply(&config.mcp_servers, &trust);
    }

    /// What turns and deliveries have come to.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What asking models has come to.
    pub fn model_meter(&self) -> Arc<ModelMeter> {
        Arc::clone(&self.assistant().meter)
    }

    /// What the workers have to do.
    pub fn load(&self) -> Load {
        let (running, waiting) = self.queue.load();
        Load {
            running,
            waiting,
            due_deliveries: self.queue.due_deliveries(),
        }
    }

    /// How long the server has run.
    pub fn uptime(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// When the timekeeper last had looked after everything.
    pub fn last_tick(&self) -> Instant {
        *self
            .last_tick
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn waiters(&self) -> MutexGuard<'_, turns::Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn backup_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.backup_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What answers under the configuration in force.
    fn assistant(&self) -> Arc<Assistant> {
        let config = self.settings.current();
        let known = self
            .assistant
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let is_same = Arc::ptr_eq(&known.config, &config);
        if is_same && known.mcp_version == self.mcp.version() {
            return Arc::clone(&known);
        }
        let fresh = Arc::new(match is_same {
            // The provider knows its server and keeps connections to it.
            true => known.with_mcp(&self.mcp),
            false => Assistant {
                calibration: Arc::clone(&known.calibration),
                meter: Arc::clone(&known.meter),
                ..Assistant::from_config(config, &self.mcp)
            },
        });
        drop(known);
        *self
            .assistant
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        fresh
    }

    /// Reserves more event numbers on disk before they run out. The first are
    /// reserved with the first tick, long before a million events.
    fn reserve_event_numbers(&self) {
        let mut reserved = self
            .event_numbers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.hub.seq() + EVENT_NUMBERS / 2 < *reserved {
            return;
        }
        let more = self.hub.seq() + EVENT_NUMBERS;
        match self.store.set_meta(EVENT_NUMBERS_KEY, &more.to_string()) {
            Ok(()) => *reserved = more,
            Err(error) => log::warn!("event numbers: {error}"),
        }
    }
}
