//! The [`Service`] and its parts. Its methods are in the sibling modules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::{Duration, Instant};

use super::backups::BackupProgress;
use super::connections::Connections;
use super::database_copies::Copied;
use super::guesser::Guesser;
use super::hub::{ConnectionId, Hub};
use super::meter::Meter;
use super::password::Verifier;
use super::programs::Programs;
use super::queue::{Load, WorkQueue};
use super::throttle::Throttle;
use super::voices::Voices;
use super::wakes::Wakes;
use crate::outgoing::Sender;
use crate::transfer::Exporter;
use agent::mcp::Mcp;
use agent::model::servers::ModelMeter;
use agent::{Around, Assistant};
use base::clock::Clock;
use base::error::Result;
use base::ids::{ConversationId, TurnId, UserId};
use base::secret::Secret;
use base::sync::{lock, read, write};
use config::{Config, Settings};
use net::relay_links::RelayLinks;
use net::token_bucket::TokenBucket;
use store::{Snapshot, Store, Turn, TurnEnd, Usage, Viewer};

/// How many event numbers are reserved on disk at a time: after a crash, the
/// next event gets a number above all earlier ones.
const EVENT_NUMBERS: u64 = 1_000_000;
const EVENT_NUMBERS_KEY: &str = "event_numbers_reserved";

/// What everything that serves people and programs shares.
pub struct Service {
    pub(crate) settings: Arc<Settings>,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) data_dir: PathBuf,
    pub(super) started_at: Instant,
    pub(super) last_tick: Mutex<Instant>,
    pub(super) assistant: RwLock<Arc<Assistant>>,
    /// None of its servers runs before [`Service::start_mcp`].
    pub(crate) mcp: Mcp,
    pub(super) hub: Hub,
    /// The last event number that is reserved on disk; none before the first turn or
    /// subscription.
    pub(super) event_numbers: Mutex<Option<u64>>,
    /// Held while a conversation is shared.
    pub(super) sharing: Mutex<()>,
    /// Held while names of removed people are removed from the configuration.
    pub(super) removing: Mutex<()>,
    /// Held by a command that ends access until its answer is out: nobody else closes the
    /// connection of whoever sent it before.
    pub(super) ending: Mutex<()>,
    pub(super) connections: Connections,
    pub(super) queue: WorkQueue,
    pub(super) sender: Sender,
    /// Whether any browser gets notifications, or did since the start.
    pub(super) tells_browsers: AtomicBool,
    /// Whether anybody has a calendar, or had one since the start.
    pub(super) has_calendars: AtomicBool,
    pub(super) calendar_wakes: Wakes,
    /// Files that arrive over HTTP.
    pub(super) arriving_files: AtomicUsize,
    /// The exports that connections read, and the part that is next.
    pub(super) exports: Mutex<HashMap<ConnectionId, (u64, Exporter)>>,
    /// The copies of the database that connections read.
    pub(super) snapshots: Mutex<HashMap<ConnectionId, Copied>>,
    /// The people that an import is running for.
    pub(super) imports: Mutex<Vec<UserId>>,
    /// Webhook requests that wait for their turn's end.
    pub(super) waiting_requests: AtomicUsize,
    /// Counts of turns and deliveries.
    pub(crate) meter: Meter,
    /// Turns that wait until the database can be written again, and until when
    /// at least.
    pub(super) deferred: Mutex<Vec<(Instant, Deferred)>>,
    /// How the nightly backups go.
    pub(super) backup: Mutex<BackupProgress>,
    pub(super) wakes: Wakes,
    pub(super) verifier: Verifier,
    /// By which the machine's owner is known on a local connection until this service ends.
    pub(crate) owner_key: Secret,
    pub(super) sign_ins: Throttle<Guesser>,
    /// This machine's name on relays, and its links to them.
    pub(crate) relays: Arc<RelayLinks>,
    pub(super) webhook_rates: Mutex<HashMap<String, TokenBucket>>,
    /// The turns of programs that want something beyond the household's settings.
    pub(crate) programs: Programs,
    /// Requests to servers of speech.
    pub(super) voices: Voices,
    /// Requests to the model alone that are under way.
    pub(super) plain_requests: AtomicUsize,
    settings_observers: Mutex<Vec<SettingsObserver>>,
    tick_observer: OnceLock<Box<dyn Fn() + Send + Sync>>,
    runs_mcp: AtomicBool,
}

/// What else applies changed settings.
type SettingsObserver = Box<dyn Fn(&Config) + Send + Sync>;

impl Service {
    /// The service of a data directory with these settings, which may change at any time, and
    /// its open database. It runs no turns until
    /// [`Workers::start`](super::workers::Workers::start).
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn new(
        data_dir: &Path,
        settings: Arc<Settings>,
        store: Store,
        clock: Clock,
    ) -> Result<Arc<Service>> {
        let data_dir = data_dir.to_owned();
        let config = settings.current();
        let last_event = match store.meta(EVENT_NUMBERS_KEY)?.uncommitted() {
            Some(text) => text.parse().unwrap_or(0),
            None => 0,
        };
        let around = Around {
            tells_browsers: store.has_push_subscriptions()?.uncommitted(),
            has_calendars: store.has_calendars()?.uncommitted(),
        };
        let mcp = Mcp::new(data_dir.clone());
        let (of_sender, sent_from) = (Arc::clone(&settings), data_dir.clone());
        Ok(Arc::new(Service {
            assistant: RwLock::new(Arc::new(Assistant::from_config(
                Arc::clone(&config),
                &mcp,
                &clock,
                &data_dir,
                around,
            ))),
            mcp,
            hub: Hub::after(last_event),
            event_numbers: Mutex::default(),
            sharing: Mutex::default(),
            removing: Mutex::default(),
            ending: Mutex::default(),
            connections: Connections::default(),
            queue: WorkQueue::new(config.workers),
            sender: Sender::new(of_sender, store.clone(), clock.clone(), sent_from),
            tells_browsers: AtomicBool::new(around.tells_browsers),
            has_calendars: AtomicBool::new(around.has_calendars),
            calendar_wakes: Wakes::default(),
            arriving_files: AtomicUsize::new(0),
            exports: Mutex::default(),
            snapshots: Mutex::default(),
            imports: Mutex::default(),
            waiting_requests: AtomicUsize::new(0),
            meter: Meter::default(),
            deferred: Mutex::default(),
            backup: Mutex::default(),
            wakes: Wakes::default(),
            verifier: Verifier::default(),
            owner_key: Secret::random_token(),
            sign_ins: Throttle::new(clock.clone()),
            relays: Arc::default(),
            webhook_rates: Mutex::default(),
            programs: Programs::default(),
            voices: Voices::default(),
            plain_requests: AtomicUsize::new(0),
            settings_observers: Mutex::default(),
            tick_observer: OnceLock::new(),
            runs_mcp: AtomicBool::new(false),
            started_at: Instant::now(),
            last_tick: Mutex::new(Instant::now()),
            settings,
            store,
            clock,
            data_dir,
        }))
    }

    /// What the server itself sees, which is everything.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read.
    pub(crate) fn server_snapshot(&self) -> Result<Snapshot<'_>> {
        self.store.snapshot(&Viewer::server())
    }

    /// Has this called after each change that may concern any setting.
    pub fn observe_settings(&self, observer: impl Fn(&Config) + Send + Sync + 'static) {
        lock(&self.settings_observers).push(Box::new(observer));
    }

    /// Has the timekeeper call this each second. The first observer stays the only one.
    pub fn observe_ticks(&self, observer: impl Fn() + Send + Sync + 'static) {
        let _ = self.tick_observer.set(Box::new(observer));
    }

    pub(super) fn observed_tick(&self) {
        if let Some(observer) = self.tick_observer.get() {
            observer();
        }
    }

    /// Applies and publishes changed settings.
    pub fn config_changed(&self, fields: &[String]) {
        if fields.is_empty() {
            return;
        }
        log::info!("configuration: {} changed", fields.join(", "));
        // A command of the terminal without a server runs none.
        if self.runs_mcp.load(Ordering::Relaxed) {
            self.start_mcp();
        }
        self.apply_account_audiences();
        self.hub.publish_settings(fields);
        self.end_lost_questions();
    }

    /// The same after a change that may concern any setting. Nobody makes one through a relay:
    /// a link cannot end on a thread of its own.
    pub fn config_edited(&self, fields: &[String]) {
        self.config_changed(fields);
        let config = self.settings.current();
        for observer in &*lock(&self.settings_observers) {
            observer(&config);
        }
    }

    /// Starts the MCP servers of the configuration, without waiting for them.
    pub fn start_mcp(&self) {
        self.runs_mcp.store(true, Ordering::Relaxed);
        self.mcp.apply(&self.settings.current());
    }

    /// Counts of requests to models.
    pub fn model_meter(&self) -> Arc<ModelMeter> {
        Arc::clone(&self.assistant().meter)
    }

    /// What the workers have to do.
    pub fn load(&self) -> Load {
        self.queue.load()
    }

    /// How long the server has run.
    pub fn uptime(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// When the timekeeper last finished a round.
    pub fn last_tick(&self) -> Instant {
        *lock(&self.last_tick)
    }

    /// The assistant with the current configuration.
    pub(crate) fn assistant(&self) -> Arc<Assistant> {
        let config = self.settings.current();
        let around = Around {
            tells_browsers: self.tells_browsers.load(Ordering::Relaxed),
            has_calendars: self.has_calendars.load(Ordering::Relaxed),
        };
        let known = read(&self.assistant);
        let is_same = Arc::ptr_eq(&known.config, &config);
        if is_same && known.is_current(&self.mcp, around) {
            return Arc::clone(&known);
        }
        self.pin_tools();
        let fresh = Arc::new(match is_same {
            // The provider knows its server and keeps connections to it.
            true => known.refreshed(&self.mcp, &self.data_dir, around),
            false => Assistant {
                meter: Arc::clone(&known.meter),
                ..Assistant::from_config(config, &self.mcp, &self.clock, &self.data_dir, around)
            },
        });
        drop(known);
        *write(&self.assistant) = Arc::clone(&fresh);
        fresh
    }

    /// Notes the tools of MCP servers as their owner chose them.
    fn pin_tools(&self) {
        let key = |server: &str| format!("mcp_pins:{server}");
        let known = |server: &str| Ok(self.store.meta(&key(server))?.uncommitted().clone());
        let keep = |server: &str, text: &str| self.store.set_meta(&key(server), text);
        if let Err(error) = self.mcp.pin(&known, &keep) {
            log::warn!("the tools of an MCP server are not noted: {error}");
        }
    }

    /// Reserves event numbers on disk, before somebody hears of events, and more before
    /// they run out.
    pub(super) fn reserve_event_numbers(&self) {
        let mut reserved = lock(&self.event_numbers);
        if reserved.is_some_and(|last| self.hub.seq() + EVENT_NUMBERS / 2 < last) {
            return;
        }
        let last = self.hub.seq() + EVENT_NUMBERS;
        match self.store.set_meta(EVENT_NUMBERS_KEY, &last.to_string()) {
            Ok(()) => {
                *reserved = Some(last);
                self.hub.reserved(last);
            }
            Err(error) => log::warn!("event numbers: {error}"),
        }
    }

    /// Reserves more of them before they run out, if any are reserved.
    pub(super) fn refill_event_numbers(&self) {
        let is_used = lock(&self.event_numbers).is_some();
        if is_used {
            self.reserve_event_numbers();
        }
    }
}

/// A turn that waits until the database can be written again.
pub(super) enum Deferred {
    /// This turn of this conversation continues from its last step.
    Run(TurnId, ConversationId),
    /// It has ended, but its end is not stored. The model is not asked again.
    Conclude {
        turn: Box<Turn>,
        end: TurnEnd,
        usage: Usage,
        model: String,
    },
}

impl Deferred {
    pub(super) fn ids(&self) -> (TurnId, ConversationId) {
        match self {
            Deferred::Run(turn, conversation) => (*turn, *conversation),
            Deferred::Conclude { turn, .. } => (turn.id, turn.conversation_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::hub::Person;
    use base::ids::UserId;
    use base::language::Words;
    use base::testing::TemporaryDirectory;
    use net::outbox::{Item, Outbox};
    use protocol::event::EventSet;
    use store::UserRole;

    /// The number of the first event of a service that nothing else has happened to,
    /// not even a tick of its timekeeper.
    fn first_event(folder: &TemporaryDirectory) -> u64 {
        let clock = Clock::system();
        let config = folder.path().join("config.json");
        let settings = Arc::new(Settings::from_text(&config, "{}", |_| None).unwrap());
        let store = Store::open(&folder.path().join("hearth.db"), clock.clone()).unwrap();
        let service = Service::new(folder.path(), settings, store, clock).unwrap();
        let outbox = Arc::new(Outbox::new(1 << 20, || ()));
        let connection = service.connections.open();
        let admin = Person {
            id: UserId::from(1),
            role: UserRole::Admin,
            household_only: false,
            words: Words::ENGLISH,
            is_program: true,
        };
        service.reserve_event_numbers();
        (service.hub).subscribe(connection, &outbox, EventSet::ALL, admin, None, |_| ());
        service.hub.publish_settings(&[]);
        match outbox.take().items.pop_front() {
            Some(Item::Event(text)) => {
                let event: serde_json::Value = serde_json::from_str(&text).unwrap();
                event["seq"].as_u64().unwrap()
            }
            _ => panic!("no event"),
        }
    }

    #[test]
    fn a_crash_right_after_the_start_does_not_bring_an_event_number_back() {
        let folder = TemporaryDirectory::new();
        let numbers: Vec<u64> = (0..3).map(|_| first_event(&folder)).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    }
}
