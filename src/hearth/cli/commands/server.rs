//! `hearth serve` and what sets a server up and looks after it.

use super::declaration::{flag, option};
use super::{Action, CA_FILE, Command, DATA_DIR, JSON};
use crate::cli::{doctor, health, init, serve};

/// `hearth serve`.
pub const SERVE: Command = Command {
    name: "serve",
    summary: "Run the server",
    details: "\
On the first start this writes a configuration to the data directory and makes the user
`admin`, with the password in HEARTH_ADMIN_PASSWORD or one that is shown once.

SIGTERM and Ctrl-C stop it: turns under way get 10 seconds, the rest goes on at the next
start; a second one stops it at once. SIGHUP rereads the configuration. HEARTH_LOG sets what
is logged: error, warn, info (the default), debug or trace; without it, the setting log_level.",
    operands: &[],
    options: &[
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
    ],
    action: Action::Run(serve::run),
};

/// `hearth init`.
pub const INIT: Command = Command {
    name: "init",
    summary: "Set up a model, who may connect and a password, step by step",
    details: "\
Asks in a terminal for what no option says. Where standard input is no terminal nothing is
asked: what is missing takes its default, or is named. The model is tried before anything is
written. `hearth serve` does without this, and starts with the offline stand-in.",
    operands: &[],
    options: &[
        option(
            "provider",
            "PROVIDER",
            "The model provider; offline when absent",
        ),
        option("model", "MODEL", "The model's name at the provider"),
        option(
            "base-url",
            "URL",
            "Where the provider is, when not at its usual address",
        ),
        option(
            "api-key-env",
            "NAME",
            "The API key is in this variable of the environment,\nhere and where the server runs",
        ),
        flag(
            "api-key-stdin",
            "Read the API key as one line of standard input",
        ),
        flag("lan", "Devices in the house may connect (the default)"),
        flag("local-only", "Only this machine may connect"),
        option(
            "relay",
            "URL",
            "Link to a relay too; its token is taken from\nHEARTH_RELAY_TOKEN",
        ),
        flag(
            "admin-password-stdin",
            "Read the password of admin as one line of standard\ninput, after the API key",
        ),
        flag("generate", "Make the password of admin and print it once"),
        flag("no-test", "Do not ask the provider whether it answers"),
        DATA_DIR,
    ],
    action: Action::Run(init::run),
};

/// `hearth doctor`.
pub const DOCTOR: Command = Command {
    name: "doctor",
    summary: "Check whether everything works, and say what to do where not",
    details: "\
Checks the configuration, who can reach the server, the providers, MCP servers and relays, the
data directory with its database, disk, log and clock, and the server that runs. Each line is ok,
a warning or a problem, with what to do about it; the exit code is 1 when there is a problem.

Each provider is asked whether it takes the key and has the model; nothing is sent to a model.
MCP servers are started and ended again. Keys are looked up in this shell's environment, which
may differ from the server's.",
    operands: &[],
    options: &[JSON, DATA_DIR],
    action: Action::Run(doctor::run),
};

/// `hearth health`.
pub const HEALTH: Command = Command {
    name: "health",
    summary: "Ask the server on this machine whether it does its work",
    details: "\
For scripts and containers: the exit code is 0 when /health says ok within 5 seconds, else 1.",
    operands: &[],
    options: &[
        option(
            "url",
            "URL",
            "The server, such as http://192.168.1.20:5000; without\nit, the one that runs on the data directory",
        ),
        CA_FILE,
        DATA_DIR,
    ],
    action: Action::Run(health::run),
};
