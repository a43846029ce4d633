//! `hearth relay` and its members.

use super::declaration::{flag, one, option};
use super::{Action, Command, DATA_DIR, JSON};
use crate::cli::relay;

/// The relay, and what a machine does with one.
pub const RELAY: Command = Command {
    name: "relay",
    summary: "Run a relay, by which machines are reached from anywhere",
    details: "\
Machines link to the relay from behind their routers, and clients reach them through it at
/ws?machine_id=... Both must show the token in the environment variable AUTH_TOKEN, which has at
least 32 characters. The relay keeps nothing on disk. SIGTERM and Ctrl-C stop it: machines and
clients connect again, to the relay's next start or to another one. HEARTH_LOG sets what is
logged: error, warn, info (the default), debug or trace.",
    operands: &[],
    options: &[
        flag("show-token", "Print a good new token and how to use it"),
        option("bind", "ADDR", "Listen on this address instead of all"),
        option(
            "port",
            "N",
            "Listen on this port instead of 5000; 0 lets the\nsystem choose",
        ),
        #[cfg(feature = "tls")]
        option(
            "cert",
            "FILE",
            "Speak TLS with this certificate (PEM), which is read\nagain when it changes; with --key",
        ),
        #[cfg(feature = "tls")]
        option("key", "FILE", "The private key of --cert (PEM)"),
        option("machines", "N", "Most machines at once: 10000"),
        option("clients-per-machine", "N", "Most clients of each: 64"),
        option("message-bytes", "N", "Most bytes of a message: 1048576"),
        option(
            "outbox-bytes",
            "N",
            "Most bytes that wait for a client before it is\nlet go: 1048576",
        ),
        option(
            "messages-per-second",
            "N",
            "Most messages a second of each client: 200",
        ),
        option(
            "connections-per-address",
            "N",
            "Most connections from one address: 256",
        ),
        option(
            "trusted-proxy",
            "LIST",
            "Reverse proxies whose X-Forwarded-For, -Proto and\n-Host are believed: address patterns with commas\nbetween them",
        ),
    ],
    action: Action::Both(relay::run, MEMBERS),
};

/// What a machine does with relays.
const MEMBERS: &[Command] = &[
    Command {
        name: "join",
        summary: "Link this machine to a relay and print the address for its clients",
        details: "\
URL is the relay's address, as in wss://relay.example/ws. Its AUTH_TOKEN is taken from the
environment, or asked for. The first time this makes identity.key, by which relays and clients
know the machine: keep a copy. A running server is told.",
        operands: &[one("URL")],
        options: &[
            option(
                "name",
                "NAME",
                "What to call the channel; relay when absent",
            ),
            option(
                "encryption",
                "WORD",
                "required refuses clients whose messages the relay could\nread; optional (the default) takes both",
            ),
            flag(
                "token-stdin",
                "Read AUTH_TOKEN as one line of standard input",
            ),
            flag("qr", "Print the address as a QR code even into a file"),
            JSON,
            DATA_DIR,
        ],
        action: Action::Run(relay::join),
    },
    Command {
        name: "leave",
        summary: "End the link to a relay",
        details: "NAME is the one that `hearth relay status` shows. A running server is told.",
        operands: &[one("NAME")],
        options: &[DATA_DIR],
        action: Action::Run(relay::leave),
    },
    Command {
        name: "status",
        summary: "Show the links of the running server",
        details: "",
        operands: &[],
        options: &[JSON, DATA_DIR],
        action: Action::Run(relay::status),
    },
];
