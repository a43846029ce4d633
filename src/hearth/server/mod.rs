//! The whole server as one value: [`Server::start`] builds it from a data
//! directory, [`Server::stop`] ends it. The command line and the tests use both.

pub mod door;
mod identity;
mod lock;
mod ports;
#[cfg_attr(not(feature = "relay"), path = "no_relay.rs")]
mod relay;
pub mod restore;
mod start_error;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::http::{Pages, Router, RouterExtensions, Serves};
use crate::service::Service;
use crate::service::backups::how_to_restore;
use crate::service::session::sessions;
use crate::service::workers::Workers;
use crate::telegram::Telegram;
use crate::webhook::incoming::Incoming;
use base::clock::Clock;
use base::sync::lock;
use config::{Config, Problems, Settings};
use door::Door;
use net::listener::{Listener, Listeners};
use relay::Links;
use store::{Store, check_after_crash};

pub use lock::{Holder, Lock};
pub use start_error::StartError;

/// The configuration file's name in the data directory.
pub const CONFIG_FILE: &str = "config.json";

/// How long running turns may take to finish when the server stops; the next
/// start resumes the others.
const DRAIN: Duration = Duration::from_secs(10);

/// How to start a server.
pub struct Options {
    /// Holds the configuration, the database and the log. Must exist.
    pub data_dir: PathBuf,
    /// Address to bind, in place of every channel's own.
    pub bind: Option<IpAddr>,
    /// Port of the first tcp channel, in place of its own; 0 lets the system
    /// choose.
    pub port: Option<u16>,
    /// The time of day.
    pub clock: Clock,
}

/// A running server.
pub struct Server {
    service: Arc<Service>,
    workers: Workers,
    links: Arc<Links>,
    telegram: Arc<Telegram>,
    listeners: Mutex<Vec<Listener>>,
    door: Mutex<Option<Arc<Door>>>,
    addrs: Vec<SocketAddr>,
    is_secure: bool,
    _lock: Lock,
}

impl Server {
    /// Starts a server. It accepts connections when this returns.
    ///
    /// # Errors
    /// Another server uses the data directory, or the configuration, the database,
    /// a certificate or a port cannot be used.
    pub fn start(options: Options) -> Result<Server, StartError> {
        Server::start_with(options, &|_| {})
    }

    /// The same; `read` gets the configuration as soon as it is read.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_with(options: Options, read: &dyn Fn(&Config)) -> Result<Server, StartError> {
        let mut lock = Lock::take(&options.data_dir, Holder::Server)?;
        finish_restore(&options.data_dir)?;
        let settings = Settings::load(&options.data_dir.join(CONFIG_FILE));
        let settings = Arc::new(settings.map_err(StartError::new)?);
        let config = settings.current();
        read(&config);
        for warning in settings.warnings() {
            log::warn!("configuration: {warning}");
        }
        let clock = options.clock.clone();
        clock.run_evenly();
        #[cfg(feature = "tls")]
        identity::renew(&config, &options.data_dir, clock.now())?;
        #[cfg_attr(not(feature = "tls"), expect(clippy::let_unit_value, unused_variables))]
        let identity = identity::open(&config)?;
        let relay = relay::open(&config)?;
        let database = options.data_dir.join(restore::DATABASE_FILE);
        let store = check_after_crash(&database)
            .and_then(|was_checked| {
                if was_checked {
                    log::info!("the last run ended in a crash; its database was checked");
                }
                Store::open(&database, clock.clone())
            })
            .map_err(|error| {
                let advice = if error.is_damage() {
                    how_to_restore(&config.backup, &options.data_dir)
                } else {
                    String::new()
                };
                StartError::new(format_args!("{error}{advice}"))
            })?;
        // Ports are bound before anything runs, so that a start that cannot serve
        // does no work either.
        let sockets = ports::bind(&config, options.bind, options.port)?;
        let service = Service::new(&options.data_dir, Arc::clone(&settings), store, clock);
        let service = service.map_err(StartError::new)?;
        let links = Links::new(Arc::clone(&service), options.data_dir.clone(), &config)?;
        let links = Arc::new(links);
        let linked = Arc::downgrade(&links);
        service.observe_settings(move |config| {
            if let Some(links) = linked.upgrade() {
                links.apply(config);
            }
        });
        // Before the workers: a turn that continues waits for those that are starting.
        service.start_mcp();
        let workers = Workers::start(&service, config.workers).map_err(StartError::new)?;
        let telegram = Arc::new(Telegram::new(Arc::clone(&service)));
        let observed = Arc::downgrade(&telegram);
        service.observe_settings(move |config| {
            if let Some(telegram) = observed.upgrade() {
                telegram.apply(config);
            }
        });
        let listeners = Listeners::new(settings, sessions(Arc::clone(&service)));
        #[cfg(feature = "tls")]
        let listeners = listeners.with_tls(identity, config.tls.is_only());
        let extensions = RouterExtensions {
            pages: pages(),
            relay,
            own_machine: links.own_machine(),
            admissions: Some(listeners.admissions()),
        };
        let mut open = Vec::new();
        let mut addrs = Vec::new();
        for port in sockets {
            addrs.push(port.address);
            open.push(serve(&service, &listeners, port, extensions.clone())?);
        }
        let certificate = config.tls.identity().map(|(certificate, _)| certificate);
        if let Err(error) = lock.write_details(&addrs, certificate) {
            log::warn!("hearth.lock: {error}");
        }
        let webhooks = Incoming::new(Arc::clone(&service), None);
        let router = Router::new(
            Arc::clone(&service),
            webhooks,
            Serves::Everything,
            extensions,
        );
        let door = Door::open(&service, &options.data_dir, router)?;
        links.apply(&config);
        telegram.apply(&config);
        Ok(Server {
            is_secure: certificate.is_some(),
            door: Mutex::new(Some(door)),
            links,
            telegram,
            service,
            workers,
            listeners: Mutex::new(open),
            addrs,
            _lock: lock,
        })
    }

    /// Where it listens: the tcp channels in the order of the configuration,
    /// then the webhook channel's own port.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Whether its ports speak TLS, perhaps beside plain connections.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Has this called after each change that may concern any setting.
    pub fn observe_settings(&self, observer: impl Fn(&Config) + Send + Sync + 'static) {
        self.service.observe_settings(observer);
    }

    /// The database.
    pub fn store(&self) -> &Store {
        &self.service.store
    }

    /// When the timekeeper last finished its round, which it does each second.
    /// Longer ago means that it, or the database, hangs.
    pub fn last_tick(&self) -> Instant {
        self.service.last_tick()
    }

    /// Rereads the configuration file; returns the top-level fields that
    /// changed. Ports and the number of workers stay as they are until the next
    /// start.
    ///
    /// # Errors
    /// What is wrong with the file; the settings in force stay.
    pub fn reload(&self) -> Result<Vec<String>, Problems> {
        let changed = self.service.settings.reload()?;
        self.service.config_edited(&changed);
        Ok(changed)
    }

    /// Advances the clock by `duration`, for tests of what takes hours.
    pub fn advance_clock(&self, duration: Duration) {
        self.service.clock.advance(duration);
        self.service.clock_advanced();
    }

    /// Stops. Running turns get 10 seconds to finish; the next start resumes the
    /// others. Everything is on disk when this returns. Stopping again does
    /// nothing.
    pub fn stop(&self) {
        self.shut_down(DRAIN);
    }

    /// Stops without waiting for turns, even while [`Server::stop`] waits for them
    /// in another thread.
    pub fn stop_now(&self) {
        self.service.abandon_turns();
        self.shut_down(Duration::ZERO);
    }

    fn shut_down(&self, grace: Duration) {
        let listeners = std::mem::take(&mut *lock(&self.listeners));
        if listeners.is_empty() {
            return;
        }
        for listener in &listeners {
            listener.refuse_new();
        }
        let door = lock(&self.door).take();
        if let Some(door) = &door {
            door.refuse_new();
        }
        self.telegram.stop();
        self.workers.stop(grace);
        self.links.stop();
        self.service.mcp.stop(grace.is_zero());
        for listener in listeners {
            listener.stop();
        }
        if let Some(door) = door {
            door.stop();
        }
        self.service.store.close();
    }
}

/// Finishes a restore that was interrupted, if there is one.
fn finish_restore(data_dir: &Path) -> Result<(), StartError> {
    match restore::finish(data_dir) {
        Ok(None) => Ok(()),
        Ok(Some(aside)) => {
            let aside = aside.display();
            log::warn!("an interrupted restore was finished; what it replaced is in {aside}");
            Ok(())
        }
        Err(error) => Err(StartError::unwritable(data_dir, &error)),
    }
}

/// Finishes a restore that was interrupted before anything else looks at the
/// data directory.
///
/// # Errors
/// A server runs there, or the directory cannot be written.
pub fn prepare(data_dir: &Path) -> Result<(), StartError> {
    if !restore::is_pending(data_dir) {
        return Ok(());
    }
    let _lock = Lock::take(data_dir, Holder::Server)?;
    finish_restore(data_dir)
}

/// Checks that the ports of a configuration can be bound, and gives them back.
///
/// # Errors
/// One cannot, as at [`Server::start`].
pub fn check_ports(
    config: &Config,
    bind: Option<IpAddr>,
    port: Option<u16>,
) -> Result<(), StartError> {
    ports::bind(config, bind, port).map(drop)
}

/// Checks the files that the section `tls` names, as the start does.
///
/// # Errors
/// A server would not start with them.
pub fn check_certificates(config: &Config) -> Result<(), StartError> {
    identity::open(config).map(drop)
}

/// Checks that a server that is to be a relay too can be one: its token may be in the
/// environment.
///
/// # Errors
/// It would not start here.
pub fn check_relay(config: &Config) -> Result<(), StartError> {
    relay::open(config).map(drop)
}

/// The web front end, where it is built in.
fn pages() -> Option<Arc<dyn Pages>> {
    #[cfg(feature = "web")]
    return Some(Arc::new(crate::web::Web::new()));
    #[cfg(not(feature = "web"))]
    None
}

fn serve(
    service: &Arc<Service>,
    listeners: &Listeners,
    port: ports::Port,
    extensions: RouterExtensions,
) -> Result<Listener, StartError> {
    let (own_port, serves) = if port.serves_webhooks_only {
        (Some(port.configured), Serves::WebhooksOnly)
    } else {
        (None, Serves::Everything)
    };
    let webhooks = Incoming::new(Arc::clone(service), own_port);
    let router = Router::new(Arc::clone(service), webhooks, serves, extensions);
    let listening = match serves {
        Serves::Everything => listeners.listen(port.socket, port.allow_from, Arc::new(router)),
        Serves::WebhooksOnly => {
            listeners.listen_http(port.socket, port.allow_from, Arc::new(router))
        }
    };
    listening.map_err(|error| StartError::listen(port.address, port.setting, &error))
}
