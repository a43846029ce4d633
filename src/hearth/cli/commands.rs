//! The one table of all commands: names, help and functions. Parsing, help and
//! suggestions are made from it. Each of the modules declares some of them.

mod conversations;
mod data;
mod declaration;
mod finding;
mod people;
#[cfg(feature = "relay")]
mod relay;
mod server;
mod settings;
mod shell;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "web")]
mod web;
mod webhooks;

pub use declaration::{Action, Command, Many, Operand, Setting};
pub use finding::{Found, all, find};

use declaration::{flag, option};

const DATA_DIR: Setting = option(
    "data-dir",
    "DIR",
    "The data directory. Without it: HEARTH_DATA_DIR,\nSTATE_DIRECTORY, $XDG_DATA_HOME/hearth or\n~/.local/share/hearth",
);
const CA_FILE: Setting = option(
    "ca-file",
    "FILE",
    "Trust also the certificates in this file (PEM)\nwhere --url begins with wss:// or https://",
);
const JSON: Setting = flag("json", "Print JSON, for scripts");

/// Every command, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    server::SERVE,
    server::INIT,
    conversations::CHAT,
    #[cfg(feature = "relay")]
    relay::RELAY,
    people::USER,
    people::TOKEN,
    conversations::SEARCH,
    conversations::MEMORY,
    conversations::SCHEDULE,
    settings::CONFIG,
    #[cfg(feature = "web")]
    web::WEB,
    webhooks::WEBHOOK,
    webhooks::DELIVERIES,
    data::BACKUP,
    data::RESTORE,
    data::EXPORT,
    data::IMPORT,
    conversations::USAGE,
    #[cfg(feature = "tls")]
    tls::TLS,
    server::DOCTOR,
    server::HEALTH,
    shell::COMPLETIONS,
    shell::MAN,
];
