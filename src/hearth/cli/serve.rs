//! `hearth serve`: prepares the data directory, starts the server and runs it until
//! a signal stops it.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::arguments::Arguments;
use super::called::Renamed;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::first_run::{self, FirstRun};
use super::is_command;
use super::local_models;
use super::logging::{self, Logging};
use super::service_manager::ServiceManager;
use crate::qr;
use crate::server::{self, Options, Server};
use base::clock::Clock;
use base::secret::Secret;
use net::capacity;

/// The stack of the thread that stops the server.
const STOP_STACK_BYTES: usize = 2 * 1024 * 1024;

pub const COMMAND: Command = Command::new(
    "\
serve: Run the server
On the first start this writes a configuration to the data directory and adds the user
`admin`, with the password in HEARTH_ADMIN_PASSWORD or one that is shown once.

SIGTERM and Ctrl-C stop the server: running turns get 10 seconds, and the rest resumes at the
next start. A second signal stops it immediately. SIGHUP reloads the configuration. HEARTH_LOG
sets the log level: error, warn, info (the default), debug or trace. Without it, the setting
log_level applies.
--data-dir
--bind ADDR  Listen on this address instead of the configured one
--port N     Listen on this port instead of the configured one;
             0 lets the system choose",
)
.run(run);

/// Runs the server until a signal stops it.
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let bind = arguments.value::<IpAddr>("bind", "an IP address")?;
    let port = arguments.port()?;
    let directory = DataDirectory::of(arguments, context)?;
    directory.check_readable()?;
    let filter = context.variable("HEARTH_LOG");
    logging::checked(filter.as_deref())?;
    let given = context.variable("HEARTH_ADMIN_PASSWORD").map(Secret::new);
    // Before anything is made, so that a start that cannot serve prints no password and
    // leaves no files.
    if let Some(config) = first_run::config_to_be(&directory, given.as_ref())? {
        server::check_ports(&config, bind, port).map_err(CliError::failed)?;
    }
    directory.create()?;
    let logging = logging::start(
        filter.as_deref(),
        Some(&directory.log()),
        context.environment,
    )?;
    raise_descriptor_limit();
    // Without a handler, a write over the limit of a file's size would end the process.
    // Now it fails like one to a full disk. Child processes get the default again.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(|error| CliError::failed(format!("cannot handle signals: {error}")))?;
    // From here on signals are queued until `wait`, so that they cannot kill the
    // process in the middle of a first run.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| CliError::failed(format!("cannot handle signals: {error}")))?;

    server::prepare(directory.path()).map_err(CliError::failed)?;
    let errors = &mut context.errors;
    let made = first_run::prepare(&directory, &Clock::system(), given, &mut |generated| {
        write!(errors, "{}", account(generated))?;
        errors.flush()
    })?;
    let options = Options {
        data_dir: directory.path().to_owned(),
        clock: Clock::system(),
        bind,
        port,
    };
    // The log level also applies to the start itself.
    let started = Server::start_with(options, &|config| logging.apply(config));
    let server = started.map_err(CliError::failed)?;
    let logger = logging.clone();
    server.observe_settings(move |config| logger.apply(config));
    let manager = ServiceManager::find(context.environment);
    manager.ready(&status(&server));
    announce(&server, &made, &directory, arguments, context, &logging)?;
    wait(&server, signals, &manager, &logging)
}

/// Says where the server listens, and after a first run what to do.
fn announce(
    server: &Server,
    made: &FirstRun,
    directory: &DataDirectory,
    arguments: &Arguments,
    context: &mut CliContext,
    logging: &Logging,
) -> io::Result<()> {
    // A terminal that is gone or stopped must not stop a server that runs.
    let mut errors = logging.errors();
    let mut errors = Renamed::new(&mut errors, &is_command);
    let scheme = if server.is_secure() { "https" } else { "http" };
    let mut text = String::new();
    for address in server.addrs() {
        text.push_str(&format!("hearth listening on {scheme}://{address}\n"));
    }
    let is_given = arguments.has("data-dir")
        || context.variable("HEARTH_DATA_DIR").is_some()
        || context.variable("STATE_DIRECTORY").is_some();
    if made.admin || made.config {
        let addresses = (scheme, server.addrs());
        text.push_str(&welcome(directory, addresses, is_given));
        if let (true, Some(address)) = (context.output_is_terminal, server.addrs().first()) {
            text.push_str(&picture(scheme, reachable(*address)));
        }
    }
    errors.write_all(text.as_bytes())?;
    // The server is running already, so the search delays nothing.
    if made.config {
        let command = format!("hearth config set{}", directory.option(is_given));
        let suggestions = local_models::search(|name| context.variable(name));
        let text = local_models::text(&suggestions, &command);
        errors.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Handles signals until the server has stopped: the first SIGTERM or SIGINT drains
/// it, the second stops it immediately, SIGHUP reloads the configuration.
fn wait(
    server: &Server,
    mut signals: Signals,
    manager: &ServiceManager,
    logging: &Logging,
) -> CliResult {
    let handle = signals.handle();
    thread::scope(|scope| {
        let _watch = manager.watch(server, scope)?;
        let mut draining = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    manager.reloading();
                    reload(server);
                    manager.ready(&status(server));
                }
                _ if draining => {
                    log::warn!("stopping immediately");
                    server.stop_now();
                }
                _ => {
                    draining = true;
                    manager.stopping();
                    log::info!("stopping: running turns get 10 seconds");
                    let handle = handle.clone();
                    let stop = move || {
                        server.stop();
                        // Ends the loop above.
                        handle.close();
                    };
                    let builder = thread::Builder::new().name("stop".to_owned());
                    let builder = builder.stack_size(STOP_STACK_BYTES);
                    // A thread that starts without room aborts the process.
                    if !capacity::has_room(STOP_STACK_BYTES)
                        || builder.spawn_scoped(scope, stop.clone()).is_err()
                    {
                        // Without a thread the second signal has to wait for it.
                        stop();
                    }
                }
            }
        }
        logging.finish();
        Ok(())
    })
}

fn reload(server: &Server) {
    match server.reload() {
        Ok(fields) if fields.is_empty() => {
            log::info!("configuration reloaded: nothing changed");
        }
        // The service has logged what changed.
        Ok(_) => {}
        Err(problems) => {
            let problems = problems.to_string().replace('\n', "; ");
            log::error!("the configuration was not reloaded: {problems}");
        }
    }
}

/// The status of a running server for a service manager.
fn status(server: &Server) -> String {
    let addresses: Vec<String> = server.addrs().iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => "Running without a listening address".to_owned(),
        addresses => format!("Listening on {}", addresses.join(", ")),
    }
}

/// Raises the limit of open files to what the system allows: the usual soft limit
/// of 1,024 is too low for our connection limit.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        log::debug!(
            "the limit of open files was not raised: {}",
            io::Error::from(error)
        );
    }
}

/// The credentials of the new user.
fn account(generated: Option<&Secret>) -> String {
    let password = match generated {
        Some(password) => format!("{}   (shown only once)", password.expose()),
        None => "the one in HEARTH_ADMIN_PASSWORD".to_owned(),
    };
    format!(
        "\n  User      {}\n  Password  {password}\n\n",
        first_run::ADMIN
    )
}

/// What to do after a first start.
fn welcome(
    directory: &DataDirectory,
    (scheme, addresses): (&str, &[SocketAddr]),
    is_given: bool,
) -> String {
    let mut text = String::from("\n");
    if let Some(address) = addresses.first() {
        text.push_str(&format!("  Address   {scheme}://{}\n", reachable(*address)));
    }
    let option = directory.option(is_given);
    text.push_str(&format!(
        "  Settings  {}   (`hearth config keys` explains them)\n\n\
         Try it from another terminal: hearth chat{option} hello\n\n",
        directory.config().display(),
    ));
    text
}

/// The address as a QR code, for a phone; none for one that works on this machine alone.
fn picture(scheme: &str, address: SocketAddr) -> String {
    if address.ip().is_loopback() {
        return String::new();
    }
    let code = qr::code(&format!("{scheme}://{address}/"));
    code.map_or_else(
        |_| String::new(),
        |code| format!("Open it on a phone or a tablet:\n\n{code}\n"),
    )
}

/// An address to type: for a server that listens on all addresses, the one with
/// which this machine reaches its network.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let own = if address.is_ipv6() {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    };
    let ip = outgoing_address().unwrap_or(own);
    SocketAddr::new(ip, address.port())
}

/// The address with which this machine reaches its network. Connecting a UDP socket
/// sends nothing; it only selects the route. The target is a documentation address
/// (RFC 5737).
pub fn outgoing_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    #[test]
    fn a_first_start_prints_what_to_do() {
        let root = DataDirectoryUnderTest::default();
        let addresses = ["192.0.2.7:5000".parse().unwrap()];
        let text = welcome(&root.data_directory(), ("http", &addresses), true);
        for part in [
            "http://192.0.2.7:5000",
            "config.json",
            "hearth chat --data-dir ",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn the_address_is_drawn_where_another_device_reaches_it() {
        let drawn = picture("http", "192.0.2.7:5000".parse().unwrap());
        let code = qr::code("http://192.0.2.7:5000/").unwrap();
        assert!(drawn.contains(&code) && drawn.contains("phone"), "{drawn}");
        assert_eq!(picture("http", "127.0.0.1:5000".parse().unwrap()), "");
    }

    #[test]
    fn only_a_generated_password_is_shown() {
        assert!(account(None).contains("HEARTH_ADMIN_PASSWORD"));
        let text = account(Some(&Secret::new("abcde-fghij")));
        assert!(
            text.contains("admin") && text.contains("abcde-fghij"),
            "{text}"
        );
    }

    #[test]
    fn the_printed_address_is_never_unspecified() {
        for (bound, port) in [("[::]:5000", 5000), ("0.0.0.0:81", 81)] {
            let shown = reachable(bound.parse().unwrap());
            assert!(!shown.ip().is_unspecified());
            assert_eq!(shown.port(), port);
        }
        let exact: SocketAddr = "127.0.0.1:5000".parse().unwrap();
        assert_eq!(reachable(exact), exact);
    }
}
