//! `hearth relay`: a relay, and this machine's links to relays.

mod join;
mod leave;
mod run;
mod status;

use super::command::Command;
use super::door::Configuration;

pub const COMMAND: Command = Command::new(
    "\
relay: Run a relay, through which machines can be reached from anywhere
Machines link to the relay from behind their routers, and clients reach them through it at
/ws?machine_id=... Both must present the token in the environment variable AUTH_TOKEN, which has
at least 32 characters. The relay keeps nothing on disk. SIGTERM and Ctrl-C stop it; machines and
clients then reconnect, to its next start or to another relay. HEARTH_LOG sets the log level:
error, warn, info (the default), debug or trace.
--show-token                 Print a new secure token and how to use it
--bind ADDR                  Listen on this address (default: all)
--port N                     Listen on this port (default: 5000); 0 lets the
                             system choose
--cert FILE                  Use TLS with this certificate (PEM), which is reloaded
                             when it changes; with --key
--key FILE                   The private key of --cert (PEM)
--machines N                 Maximum number of machines (default: 10000)
--clients-per-machine N      Maximum number of clients of each (default: 64)
--message-bytes N            Maximum size of a message (default: 1048576)
--outbox-bytes N             Maximum bytes queued for a client before it is
                             disconnected (default: 1048576)
--messages-per-second N      Maximum messages per second of each client
                             (default: 200)
--connections-per-address N  Maximum connections from one address (default: 256)
--trusted-proxy LIST         Trust X-Forwarded-For, -Proto and -Host of these
                             reverse proxies: address patterns, comma-separated",
)
.run(run::run)
.members(&[
    Command::new(
        "\
join URL: Link this machine to a relay and print the address for its clients
URL is the relay's address, such as wss://relay.example/ws. Its AUTH_TOKEN is taken from the
environment, or asked for. The first run creates identity.key, by which relays and clients
recognise this machine: keep a copy. A running server opens the link at once.
--name NAME        The name of the channel (default: relay)
--encryption WORD  required rejects clients whose messages the relay could
                   read; optional (the default) accepts both
--token-stdin      Read AUTH_TOKEN as one line of standard input
--qr               Print the address as a QR code even into a file
--json",
    )
    .ask_with(Configuration::Mended, join::run),
    Command::new(
        "\
leave NAME: Remove the link to a relay
`hearth relay status` shows the NAME. A running server ends the link at once.",
    )
    .ask_with(Configuration::Mended, leave::run),
    Command::new("status: Show the links of the running server\n--json\n--data-dir")
        .run(status::run),
]);
