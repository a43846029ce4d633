//! The whole house as one value: built from a data directory, stopped when
//! asked. The command line and the tests start it alike.

mod lock;
mod ports;
mod start_error;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{Channel, Problems, Settings};
use crate::gate::listen::Listener;
use crate::gate::{Gate, GateParts};
use crate::http::{Extension, Pages, Router, Serves};
use crate::metrics::Metrics;
use crate::model_api::ModelApi;
use crate::service::workers::{Deliver, Workers};
use crate::service::{Parts, Service};
use crate::store::Store;
use crate::webhook::deliver::Deliverer;
use crate::webhook::incoming::Incoming;
use lock::Lock;

pub use start_error::StartError;

/// The configuration file's name in the data directory.
pub const CONFIG_FILE: &str = "config.json";
/// The database file's name in the data directory.
pub const DATABASE_FILE: &str = "hearth.db";

/// How long running turns may go on when the server stops; the rest goes on
/// at the next start.
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
    listeners: Mutex<Vec<Listener>>,
    addrs: Vec<SocketAddr>,
    lock: Lock,
}

impl Server {
    /// Starts a server; when this returns, it serves.
    pub fn start(options: Options) -> Result<Server, StartError> {
        let mut lock = Lock::take(&options.data_dir)?;
        let settings = Arc::new(Settings::load(&options.data_dir.join(CONFIG_FILE))?);
        for warning in settings.warnings() {
            log::warn!("configuration: {warning}");
        }
        let clock = options.clock.clone();
        let store = Store::open(&options.data_dir.join(DATABASE_FILE), clock.clone())?;
        let config = settings.current();
        // Ports are bound before anything runs, so that a second start that
        // cannot serve does no work either.
        let sockets = ports::bind(&config, &options)?;
        let deliver: Arc<dyn Deliver> = Arc::new(Deliverer::new(
            Arc::clone(&settings),
            store.clone(),
            clock.clone(),
        ));
        let service = Service::new(Parts {
            settings: Arc::clone(&settings),
            store,
            clock,
            data_dir: options.data_dir,
            deliver,
        })?;
        let workers = Workers::start(&service, config.workers)?;
        let gate = Gate::new(GateParts {
            service: Arc::clone(&service),
            settings,
        });
        let pages = pages();
        let extensions: Vec<Arc<dyn Extension>> = vec![
            Arc::new(Metrics::new(Arc::clone(&service), gate.admissions())),
            Arc::new(ModelApi::new(Arc::clone(&service))),
        ];
        let mut listeners = Vec::new();
        let mut addrs = Vec::new();
        for port in sockets {
            addrs.push(port.address);
            listeners.push(serve(
                &service,
                &gate,
                port,
                pages.clone(),
                extensions.clone(),
            )?);
        }
        if let Err(error) = lock.tell(&addrs) {
            log::warn!("hearth.lock: {error}");
        }
        service.start_mcp();
        for channel in &config.channels {
            if let Channel::Relay(relay) = channel {
                log::warn!(
                    "channel {}: this version does not link to relays",
                    relay.name
                );
            }
        }
        Ok(Server {
            service,
            workers,
            listeners: Mutex::new(listeners),
            addrs,
            lock,
        })
    }

    /// Where it listens: the tcp channels in the order of the configuration,
    /// then the webhook channel's own port.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Rereads the configuration file; returns the top-level fields that
    /// changed. Ports and the number of workers keep until the next start.
    pub fn reload(&self) -> Result<Vec<String>, Problems> {
        let changed = self.service.settings().reload();
        if let Ok(changed) = &changed {
            self.service.config_changed(changed);
        }
        self.lock.stamp();
        changed
    }

    /// Lets `duration` pass at once: for tests of what takes hours.
    pub fn advance_clock(&self, duration: Duration) {
        self.service.clock().advance(duration);
        self.service.clock_advanced();
    }

    /// Stops: running turns get 10 seconds, and what is not over then goes on
    /// at the next start. Everything is on disk when this returns. Stopping
    /// again does nothing.
    pub fn stop(&self) {
        self.shut_down(DRAIN);
    }

    /// Stops without waiting for turns, also while [`Server::stop`] waits for
    /// them in another thread.
    pub fn stop_now(&self) {
        self.service.abandon_turns();
        self.shut_down(Duration::ZERO);
    }

    fn shut_down(&self, grace: Duration) {
        let listeners = std::mem::take(
            &mut *self
                .listeners
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if listeners.is_empty() {
            return;
        }
        for listener in &listeners {
            listener.refuse_new();
        }
        self.workers.stop(grace);
        self.service.mcp().stop(grace.is_zero());
        for listener in listeners {
            listener.stop();
        }
        self.service.store().close();
    }
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
    gate: &Gate,
    port: ports::Port,
    pages: Option<Arc<dyn Pages>>,
    extensions: Vec<Arc<dyn Extension>>,
) -> Result<Listener, StartError> {
    let (own_port, serves) = match port.serves_webhooks_only {
        true => (Some(port.configured), Serves::WebhooksOnly),
        false => (None, Serves::Everything),
    };
    let webhooks = Box::new(Incoming::new(Arc::clone(service), own_port));
    let router = Router::new(Arc::clone(service), webhooks, serves, None)
        .with_pages(pages)
        .with_extensions(extensions);
    let listening = match serves {
        Serves::Everything => gate.listen(port.socket, port.allow_from, Arc::new(router)),
        Serves::WebhooksOnly => gate.listen_http(port.socket, port.allow_from, Arc::new(router)),
    };
    listening.map_err(|error| StartError::listen(port.address, error))
}
