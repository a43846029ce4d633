//! `hearth serve`: prepares the data directory, starts the server and keeps it
//! until a signal says stop.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::arguments::{Arguments, DATA_DIR, option};
use super::command::Command;
use super::context::{Context, Failure, Outcome};
use super::data_directory::DataDirectory;
use super::first_run::{self, Made};
use super::local_models;
use super::logging::{self, Logging};
use super::service_manager::ServiceManager;
use crate::server::{self, Options, Server};
use base::clock::Clock;
use base::secret::Secret;
use config::Settings;

pub const COMMAND: Command = Command::new("serve", "Run the server")
    .details(
        "\
On the first start this writes a configuration to the data directory and adds the user
`admin`, with the password in HEARTH_ADMIN_PASSWORD or one that is shown once.

SIGTERM and Ctrl-C stop the server: running turns get 10 seconds, and the rest resumes at the
next start. A second signal stops it immediately. SIGHUP reloads the configuration. HEARTH_LOG
sets the log level: error, warn, info (the default), debug or trace. Without it, the setting
log_level applies.",
    )
    .options(&[
        DATA_DIR,
        option(
            "bind",
            "ADDR",
            "Listen on this address instead of the configured one",
        ),
        option(
            "port",
            "N",
            "Listen on this port instead of the configured one;\n0 lets the system choose",
        ),
    ])
    .run(run);

/// Runs the server until it is told to stop.
fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let bind = arguments.value::<IpAddr>("bind", "an IP address")?;
    let port = arguments.number("port", 0..=u64::from(u16::MAX))?;
    let directory = DataDirectory::of(arguments, context)?;
    directory.create()?;
    let logging = logging::start(
        context.variable("HEARTH_LOG").as_deref(),
        &directory.log(),
        context.environment,
    )?;
    raise_descriptor_limit();
    // From here on a signal waits for its answer below instead of killing us
    // with half a first run behind us.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::failed(format!("signals cannot be handled: {error}")))?;

    server::prepare(directory.path()).map_err(Failure::failed)?;
    let given = context.variable("HEARTH_ADMIN_PASSWORD").map(Secret::new);
    let made = first_run::prepare(&directory, &Clock::system(), given)?;
    // The start's own lines heed it too; if the file is wrong, the start says so.
    if let Ok(settings) = Settings::load(&directory.config()) {
        logging.follow(settings.current().log_level);
    }
    let started = Server::start(Options {
        data_dir: directory.path().to_owned(),
        clock: Clock::system(),
        bind,
        port: port.map(|port| u16::try_from(port).expect("the range of --port is that of u16")),
    });
    let server = match started {
        Ok(server) => server,
        Err(error) => {
            // The password is shown once; a port in use must not swallow it.
            write!(context.errors, "{}", account(&made))?;
            return Err(Failure::failed(error));
        }
    };
    let scheme = match server.is_secure() {
        true => "https",
        false => "http",
    };
    let manager = ServiceManager::find(context.environment);
    manager.ready(&status(&server));
    for address in server.addrs() {
        writeln!(context.errors, "hearth listening on {scheme}://{address}")?;
    }
    let named = arguments.has("data-dir")
        || context.variable("HEARTH_DATA_DIR").is_some()
        || context.variable("STATE_DIRECTORY").is_some();
    if made.admin || made.config {
        let text = welcome(
            &made,
            &directory,
            (scheme, server.addrs()),
            &program(),
            named,
        );
        write!(context.errors, "{text}")?;
    }
    context.errors.flush()?;
    // The server answers already: whoever looks for models waits for nobody.
    if made.config {
        let command = program() + " config set" + &data_dir_option(&directory, named);
        let offers = local_models::look(|name| context.variable(name));
        write!(context.errors, "{}", local_models::text(&offers, &command))?;
        context.errors.flush()?;
    }
    wait(&server, signals, &manager, &logging)
}

/// Answers signals until the server has stopped: the first SIGTERM or SIGINT
/// drains it, the second stops it at once, SIGHUP rereads the configuration.
fn wait(
    server: &Server,
    mut signals: Signals,
    manager: &ServiceManager,
    logging: &Logging,
) -> Outcome {
    let handle = signals.handle();
    thread::scope(|scope| {
        let _watch = manager.watch(server, scope)?;
        let mut draining = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    manager.reloading();
                    reload(server, logging);
                    manager.ready(&status(server));
                }
                _ if draining => {
                    log::warn!("stopping at once");
                    server.stop_now();
                }
                _ => {
                    draining = true;
                    manager.stopping();
                    log::info!("stopping: turns under way get 10 seconds");
                    let handle = handle.clone();
                    thread::Builder::new()
                        .name("stop".to_owned())
                        .spawn_scoped(scope, move || {
                            server.stop();
                            // Ends the loop above.
                            handle.close();
                        })
                        .map_err(|error| {
                            Failure::failed(format!("no thread to stop with: {error}"))
                        })?;
                }
            }
        }
        log::info!("stopped");
        Ok(())
    })
}

fn reload(server: &Server, logging: &Logging) {
    let reloaded = server.reload();
    logging.follow(server.settings().current().log_level);
    match reloaded {
        Ok(fields) if fields.is_empty() => {
            log::info!("configuration reread: nothing changed");
        }
        // The service has logged what changed.
        Ok(_) => {}
        Err(problems) => {
            let problems = problems.to_string().replace('\n', "; ");
            log::error!("the configuration was not taken over: {problems}");
        }
    }
}

/// What a service manager shows of a server that runs.
fn status(server: &Server) -> String {
    let addresses: Vec<String> = server.addrs().iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => "Running; no address to listen on".to_owned(),
        addresses => format!("Listening on {}", addresses.join(", ")),
    }
}

/// Raises the number of files that may be open to what the system allows: the
/// usual soft limit of 1,024 is less than our connection limit needs.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        log::debug!("the limit of open files stays: {}", io::Error::from(error));
    }
}

/// How a person can call this program again: by its name when it was found by
/// it, else by the path that they used.
fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    if called.contains('/') {
        called
    } else {
        "hearth".to_owned()
    }
}

/// What a person must note of the user that was made.
fn account(made: &Made) -> String {
    match (&made.password, made.admin) {
        (Some(password), _) => format!(
            "\n  User      {}\n  Password  {}   (shown only now)\n",
            first_run::ADMIN,
            password.expose(),
        ),
        (None, true) => format!(
            "\n  User      {}\n  Password  the one in HEARTH_ADMIN_PASSWORD\n",
            first_run::ADMIN
        ),
        (None, false) => String::new(),
    }
}

/// Where to go after a first start.
fn welcome(
    made: &Made,
    directory: &DataDirectory,
    (scheme, addresses): (&str, &[SocketAddr]),
    program: &str,
    named: bool,
) -> String {
    let mut text = account(made);
    if let Some(address) = addresses.first() {
        text.push_str(&format!("  Address   {scheme}://{}\n", reachable(*address)));
    }
    let option = data_dir_option(directory, named);
    text.push_str(&format!(
        "  Settings  {}   (`{program} config keys` explains them)\n\n\
         Say hello from another terminal: {program} chat{option} hello\n\n",
        directory.config().display(),
    ));
    text
}

/// What commands need to find a directory that was named.
fn data_dir_option(directory: &DataDirectory, named: bool) -> String {
    match named {
        true => format!(" --data-dir {}", directory.path().display()),
        false => String::new(),
    }
}

/// An address that a person can type: for a server that listens on all of
/// them, the one by which this machine reaches its network.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    // Connecting a UDP socket sends nothing; it only picks the route. The
    // target is a documentation address (RFC 5737).
    let ip = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| {
            socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
            socket.local_addr()
        })
        .map(|local| local.ip())
        .unwrap_or(match address.is_ipv6() {
            true => Ipv6Addr::LOCALHOST.into(),
            false => Ipv4Addr::LOCALHOST.into(),
        });
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::TemporaryDirectory;

    #[test]
    fn a_first_start_says_where_to_go() {
        let root = TemporaryDirectory::new();
        let made = Made {
            config: true,
            admin: true,
            password: Some(Secret::new("abcde-fghij")),
        };
        let addresses = ["192.0.2.7:5000".parse().unwrap()];
        let text = welcome(
            &made,
            &root.data_directory(),
            ("http", &addresses),
            "./target/release/hearth",
            true,
        );
        for part in [
            "http://192.0.2.7:5000",
            "admin",
            "abcde-fghij",
            "config.json",
            "./target/release/hearth chat --data-dir ",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert_eq!(text.matches("abcde-fghij").count(), 1);
    }

    #[test]
    fn a_given_password_is_not_repeated() {
        let made = Made {
            config: true,
            admin: true,
            password: None,
        };
        assert!(account(&made).contains("HEARTH_ADMIN_PASSWORD"));
        assert_eq!(account(&Made::default()), "");
    }

    #[test]
    fn an_address_to_type_is_never_unspecified() {
        for (bound, port) in [("[::]:5000", 5000), ("0.0.0.0:81", 81)] {
            let shown = reachable(bound.parse().unwrap());
            assert!(!shown.ip().is_unspecified());
            assert_eq!(shown.port(), port);
        }
        let exact: SocketAddr = "127.0.0.1:5000".parse().unwrap();
        assert_eq!(reachable(exact), exact);
    }
}
