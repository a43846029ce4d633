//! `hearth avahi`: a file for avahi-daemon, by which the devices of the network find the server.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::DataDirectory;
use super::door::address_settings;
use super::running_server::RunningServer;
use config::DEFAULT_PORT;

pub const COMMAND: Command = Command::new(
    "\
avahi: Print a file for avahi-daemon, so that devices in the home find the server
Save it as /etc/avahi/services/hearth.service. It names the port of the running server, or else
that of the configuration.
--data-dir",
)
.run(run);

/// The file of the packages, for the usual port and without TLS.
const FILE: &str = include_str!("../../../.ci/debian/avahi.service");

/// `hearth avahi`
fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let config = address_settings(&directory)?.current();
    let configured = config.tcp_channels().next();
    let configured = configured.map(|tcp| (tcp.bind, tcp.port));
    let server = RunningServer::find(&directory);
    let running = server.and_then(|server| server.addresses.first().copied());
    let running = running.map(|address| (Some(address.ip()), address.port()));
    let (ip, port) = running.or(configured).unwrap_or((None, DEFAULT_PORT));
    let text = FILE.replace(&format!("<port>{DEFAULT_PORT}<"), &format!("<port>{port}<"));
    let text = match config.tls.is_only() {
        true => text.replace("<type>_http._tcp<", "<type>_https._tcp<"),
        false => text,
    };
    context.output.write_all(text.as_bytes())?;
    if ip.is_some_and(|ip| ip.is_loopback()) {
        context.note(
            "The server listens to this machine alone, so no other device reaches it; the `bind` \
             of its channel or --bind says where it listens.",
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::cli::tests::DataDirectoryUnderTest;

    #[test]
    fn it_is_said_that_nobody_reaches_the_server() {
        let root = DataDirectoryUnderTest::default();
        for (address, is_said) in [("127.0.0.1", true), ("::1", true), ("192.0.2.7", false)] {
            let config =
                format!(r#"{{"channels": {{"lan": {{"type": "tcp", "bind": "{address}"}}}}}}"#);
            fs::write(root.data_directory().config(), config).unwrap();
            let ran = root.run("avahi", "");
            assert_eq!(
                ran.errors.contains("this machine alone"),
                is_said,
                "{ran:?}"
            );
            assert!(ran.output.starts_with("<?xml"), "{ran:?}");
        }
    }

    #[test]
    fn the_file_names_the_port_and_whether_it_is_secure() {
        let root = DataDirectoryUnderTest::default();
        for (config, parts) in [
            ("{}", ["<type>_http._tcp</type>", "<port>5000</port>"]),
            (
                r#"{"channels": [{"name": "lan", "type": "tcp", "port": 8443}],
                    "tls": {"cert": "a.pem", "key": "b.pem"}}"#,
                ["<type>_https._tcp</type>", "<port>8443</port>"],
            ),
        ] {
            fs::write(root.data_directory().config(), config).unwrap();
            let ran = root.run("avahi", "");
            for part in parts {
                assert!(ran.output.contains(part), "{part}: {ran:?}");
            }
            assert!(ran.output.starts_with("<?xml"), "{ran:?}");
            assert_eq!(ran.errors, "");
        }
    }
}
