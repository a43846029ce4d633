//! The one table of all commands: names, help and functions. Parsing, help and
//! suggestions are made from it.

mod declaration;
mod finding;
#[cfg(feature = "relay")]
mod relay;

pub use declaration::{Action, Command, Many, Operand, Setting};
pub use finding::{Found, all, find};

use declaration::{flag, one, option};

#[cfg(feature = "tls")]
use super::tls;
use super::{
    backup, chat, completions, config, deliveries, doctor, export, health, import, init, manual,
    memory, restore, schedule, search, serve, token, usage, user, webhook,
};

/// What is looked for.
const WORDS: &[Operand] = &[
    one("WORD"),
    Operand {
        name: "WORD",
        many: Many::AnyNumber,
    },
];

/// What is said to the assistant.
const PROMPT: &[Operand] = &[
    one("PROMPT"),
    Operand {
        name: "PROMPT",
        many: Many::AnyNumber,
    },
];

const DATA_DIR: Setting = option(
    "data-dir",
    "DIR",
    "The data directory. Without it: HEARTH_DATA_DIR,\nSTATE_DIRECTORY, $XDG_DATA_HOME/hearth or\n~/.local/share/hearth",
);
const JSON: Setting = flag("json", "Print JSON, for scripts");
const PASSWORD_STDIN: Setting = flag(
    "password-stdin",
    "Read the password as one line of standard input",
);
const GENERATE: Setting = flag("generate", "Make a password and print it once");

/// Every command, in the order of the overview.
pub const COMMANDS: &[Command] = &[
    Command {
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
    },
    Command {
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
    },
    Command {
        name: "chat",
        summary: "Talk to the assistant",
        details: "\
With a question, answers it and ends. Without one, asks in the terminal, or reads one
message per line of standard input. Into a file or pipe only the answers are written.

Without --url it talks to the server on this machine and needs no password: whoever can
write to the data directory is its owner. Ctrl-C stops an answer; a second one leaves.",
        operands: &[Operand {
            name: "QUESTION",
            many: Many::AnyNumber,
        }],
        options: &[
            option("url", "URL", "The server: ws://HOST:PORT/ws, or wss://"),
            option(
                "ca-file",
                "FILE",
                "Trust also the certificates in this file (PEM)\nwhere the address begins with wss://",
            ),
            option(
                "token",
                "TOKEN",
                "Sign in with this token; better given as HEARTH_TOKEN,\nwhich other people on the machine cannot see",
            ),
            option(
                "user",
                "NAME",
                "Sign in with a password, which is asked for",
            ),
            option("conversation", "ID", "Go on with this conversation"),
            flag("new", "Begin a new conversation (the default)"),
            DATA_DIR,
        ],
        action: Action::Run(chat::run),
    },
    #[cfg(feature = "relay")]
    relay::RELAY,
    Command {
        name: "user",
        summary: "Add, list and remove the people who may sign in",
        details: "These work while the server runs, and while it does not.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "add",
                summary: "Add a user",
                details: "Asks for the password in a terminal, else reads it as a line of standard input.",
                operands: &[one("NAME")],
                options: &[
                    option(
                        "role",
                        "ROLE",
                        "viewer (reads), user (and chats; the default) or\nadmin (and configures, approves, manages tokens)",
                    ),
                    PASSWORD_STDIN,
                    GENERATE,
                    DATA_DIR,
                ],
                action: Action::Run(user::add),
            },
            Command {
                name: "passwd",
                summary: "Set a user's password and end their sessions",
                details: "Asks for the password in a terminal, else reads it as a line of standard input.",
                operands: &[one("NAME")],
                options: &[PASSWORD_STDIN, GENERATE, DATA_DIR],
                action: Action::Run(user::passwd),
            },
            Command {
                name: "list",
                summary: "List the users",
                details: "",
                operands: &[],
                options: &[JSON, DATA_DIR],
                action: Action::Run(user::list),
            },
            Command {
                name: "remove",
                summary: "Remove a user and all their tokens",
                details: "",
                operands: &[one("NAME")],
                options: &[DATA_DIR],
                action: Action::Run(user::remove),
            },
        ]),
    },
    Command {
        name: "token",
        summary: "Create, list and revoke API tokens",
        details: "A token signs a program in as a user. These work while the server runs, and while it does not.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "create",
                summary: "Create a token and print it once",
                details: "",
                operands: &[],
                options: &[
                    option("name", "NAME", "What the token is for (required)"),
                    option("user", "NAME", "Whose token it is; admin when absent"),
                    option(
                        "role",
                        "ROLE",
                        "viewer, user or admin; never more than the user's\nown role, which is the default",
                    ),
                    option(
                        "expires-days",
                        "N",
                        "Valid for so many days; without it, until revoked",
                    ),
                    JSON,
                    DATA_DIR,
                ],
                action: Action::Run(token::create),
            },
            Command {
                name: "list",
                summary: "List the API tokens",
                details: "",
                operands: &[],
                options: &[
                    flag("sessions", "Also the sessions of people who signed in"),
                    JSON,
                    DATA_DIR,
                ],
                action: Action::Run(token::list),
            },
            Command {
                name: "revoke",
                summary: "Revoke a token and close its connections",
                details: "ID is the one that `hearth token list` shows.",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(token::revoke),
            },
        ]),
    },
    Command {
        name: "search",
        summary: "Find messages of all conversations",
        details: "Shows the newest messages that hold all the words; accents and case do not count.",
        operands: WORDS,
        options: &[
            option("limit", "N", "At most so many; 20 when absent"),
            JSON,
            DATA_DIR,
        ],
        action: Action::Run(search::run),
    },
    Command {
        name: "memory",
        summary: "See and delete what the assistant remembers",
        details: "These work while the server runs, and while it does not.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "list",
                summary: "List everything that is remembered, newest first",
                details: "",
                operands: &[],
                options: &[JSON, DATA_DIR],
                action: Action::Run(memory::list),
            },
            Command {
                name: "search",
                summary: "Find what is remembered, best first",
                details: "Any of the words may fit, also as the beginning of a longer one.",
                operands: WORDS,
                options: &[
                    option("limit", "N", "At most so many; 50 when absent"),
                    JSON,
                    DATA_DIR,
                ],
                action: Action::Run(memory::search),
            },
            Command {
                name: "delete",
                summary: "Delete what is remembered",
                details: "ID is the one that `hearth memory list` shows.",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(memory::delete),
            },
        ]),
    },
    Command {
        name: "schedule",
        summary: "Have the assistant do something later, once or regularly",
        details: "These work while the server runs, and while it does not.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "add",
                summary: "Add a prompt that runs at a time, and print its id",
                details: "\
Times are those of the setting time_zone. What fell due while the server was off runs once at
its next start, marked late.",
                operands: PROMPT,
                options: &[
                    option(
                        "at",
                        "TIME",
                        "Once: 18:30, 2026-11-22T18:30, or +20m (s, m, h, d)",
                    ),
                    option(
                        "cron",
                        "FIELDS",
                        "Again and again: minute, hour, day, month, weekday,\nas \"30 7 * * mon-fri\"",
                    ),
                    option(
                        "conversation",
                        "ID",
                        "Where it runs; a conversation of its own when absent",
                    ),
                    option("webhook", "NAME", "The account that gets the replies, too"),
                    DATA_DIR,
                ],
                action: Action::Run(schedule::add),
            },
            Command {
                name: "list",
                summary: "List what is scheduled, the next one first",
                details: "",
                operands: &[],
                options: &[JSON, DATA_DIR],
                action: Action::Run(schedule::list),
            },
            Command {
                name: "pause",
                summary: "Leave a schedule out until it is resumed",
                details: "ID is the one that `hearth schedule list` shows.",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(schedule::pause),
            },
            Command {
                name: "resume",
                summary: "Take a paused schedule up again",
                details: "",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(schedule::resume),
            },
            Command {
                name: "remove",
                summary: "Remove a schedule",
                details: "",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(schedule::remove),
            },
        ]),
    },
    Command {
        name: "config",
        summary: "Check, read and change the configuration",
        details: "The configuration is the file config.json in the data directory.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "check",
                summary: "Say everything that is wrong with the configuration",
                details: "",
                operands: &[],
                options: &[DATA_DIR],
                action: Action::Run(config::check),
            },
            Command {
                name: "get",
                summary: "Print one setting, or all that may be shown",
                details: "KEY may be dotted, as in tool_permissions.current_time. Secrets are never printed.",
                operands: &[Operand {
                    name: "KEY",
                    many: Many::ZeroOrOne,
                }],
                options: &[JSON, DATA_DIR],
                action: Action::Run(config::get),
            },
            Command {
                name: "set",
                summary: "Change one setting",
                details: "\
KEY may be dotted, as in limits.turn_seconds. VALUE is JSON, or else a text; null goes back
to the default; `-` reads it from standard input, so that a secret stays out of the shell's
history. A running server is told, and takes it up with the next turn.",
                operands: &[one("KEY"), one("VALUE")],
                options: &[DATA_DIR],
                action: Action::Run(config::set),
            },
            Command {
                name: "path",
                summary: "Print where the configuration is",
                details: "",
                operands: &[],
                options: &[DATA_DIR],
                action: Action::Run(config::path),
            },
            Command {
                name: "keys",
                summary: "Explain every setting",
                details: "",
                operands: &[],
                options: &[JSON],
                action: Action::Run(config::keys),
            },
        ]),
    },
    #[cfg(feature = "web")]
    Command {
        name: "web",
        summary: "Export the web page, to serve it from elsewhere",
        details: "The server has the page built in; this is for a web server of your own.",
        operands: &[],
        options: &[],
        action: Action::Group(&[Command {
            name: "export",
            summary: "Write the page's files to a directory",
            details: "Says which setting lets the page talk to Hearth.",
            operands: &[one("DIR")],
            options: &[flag("force", "Write although the directory is not empty")],
            action: Action::Run(super::web::export),
        }]),
    },
    Command {
        name: "webhook",
        summary: "Let other systems post messages and get the replies",
        details: "\
An account has a path that a system posts its messages to, and a URL that the replies are
posted to. `hearth config keys` explains its other settings.",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "add",
                summary: "Add an account and print how to call it",
                details: "\
Makes a secret, which is printed once: it must come with every message, and every reply
carries it and is signed with it (Standard Webhooks). A running server is told.",
                operands: &[one("NAME")],
                options: &[
                    option("url", "URL", "Where the replies are posted to (required)"),
                    option(
                        "path",
                        "PATH",
                        "Where the messages are posted to;\n/webhook/NAME when absent",
                    ),
                    option("model", "MODEL", "The model for this account's turns"),
                    option(
                        "permission-mode",
                        "MODE",
                        "ask, allow or deny: narrows what tools may do",
                    ),
                    flag(
                        "secret-stdin",
                        "Read the secret as one line of standard input",
                    ),
                    flag("no-secret", "Take messages from anyone who can connect"),
                    DATA_DIR,
                ],
                action: Action::Run(webhook::add),
            },
            Command {
                name: "list",
                summary: "List the accounts",
                details: "",
                operands: &[],
                options: &[JSON, DATA_DIR],
                action: Action::Run(webhook::list),
            },
            Command {
                name: "test",
                summary: "Post a message through an account and follow it to the callback",
                details: "\
Posts to the running server as the other system would, shows each step, and says what is
wrong when the reply does not arrive. The model is asked and the receiver is called.",
                operands: &[one("NAME")],
                options: &[
                    option("message", "TEXT", "What to say"),
                    option(
                        "body",
                        "FILE",
                        "Post this JSON file instead, or standard input (-):\nfor an account with a `map`",
                    ),
                    option(
                        "wait",
                        "SECONDS",
                        "How long to wait for the reply; 60 when absent",
                    ),
                    DATA_DIR,
                ],
                action: Action::Run(webhook::test),
            },
            Command {
                name: "remove",
                summary: "Remove an account",
                details: "Callbacks that it still owes are given up. A running server is told.",
                operands: &[one("NAME")],
                options: &[DATA_DIR],
                action: Action::Run(webhook::remove),
            },
        ]),
    },
    Command {
        name: "deliveries",
        summary: "List webhook callbacks and send one again",
        details: "",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "list",
                summary: "List the newest callbacks",
                details: "",
                operands: &[],
                options: &[
                    option(
                        "state",
                        "STATE",
                        "Only these: pending, held, delivered or dead",
                    ),
                    option("limit", "N", "At most so many; 50 when absent"),
                    JSON,
                    DATA_DIR,
                ],
                action: Action::Run(deliveries::list),
            },
            Command {
                name: "retry",
                summary: "Send a callback again, now",
                details: "A running server sends it within 2 seconds; else the next start does.",
                operands: &[one("ID")],
                options: &[DATA_DIR],
                action: Action::Run(deliveries::retry),
            },
        ]),
    },
    Command {
        name: "backup",
        summary: "Copy everything into one file, also while the server runs",
        details: "\
FILE is a database that any SQLite program opens; it gets its name only when it was read
back and found whole. It holds the configuration with *** in place of each secret. The
server makes such backups by itself at night (`hearth config keys` explains `backup`).",
        operands: &[one("FILE")],
        options: &[
            flag(
                "with-secrets",
                "With API keys and passwords, and the machine's key",
            ),
            flag("force", "Replace FILE if it exists"),
            DATA_DIR,
        ],
        action: Action::Run(backup::run),
    },
    Command {
        name: "restore",
        summary: "Put a backup in the place of what is there",
        details: "\
FILE is a backup, or a copy of hearth.db. It is checked first; what it replaces is moved to
a directory beside it. Secrets that are not in the backup are kept from the configuration in
place, as far as they are for the same thing. The server must not run.",
        operands: &[one("FILE")],
        options: &[
            flag("check", "Only check the file, and change nothing"),
            DATA_DIR,
        ],
        action: Action::Run(restore::run),
    },
    Command {
        name: "export",
        summary: "Write conversations to a file",
        details: "JSON Lines can be imported again; Markdown is for reading.",
        operands: &[],
        options: &[
            option("conversation", "ID", "This conversation"),
            flag("all", "All conversations"),
            option("format", "FORMAT", "jsonl (the default) or markdown"),
            option(
                "output",
                "FILE",
                "Write to this file; standard output when absent",
            ),
            flag("force", "Replace FILE if it exists"),
            DATA_DIR,
        ],
        action: Action::Run(export::run),
    },
    Command {
        name: "import",
        summary: "Take conversations in, also from ChatGPT and Claude",
        details: "\
FILE is what `hearth export` has written, or the file conversations.json of an account export
of ChatGPT or Claude. A conversation that is there already is left as it is, so that the same
file may be imported again. This works while the server runs, and while it does not.",
        operands: &[one("FILE")],
        options: &[JSON, DATA_DIR],
        action: Action::Run(import::run),
    },
    Command {
        name: "usage",
        summary: "Show how many tokens were used, by month and model",
        details: "Months and days are those of UTC. Tokens in include those that the provider had cached.",
        operands: &[],
        options: &[
            option("by", "PERIOD", "day or month (the default)"),
            option("limit", "N", "At most so many rows; 50 when absent"),
            JSON,
            DATA_DIR,
        ],
        action: Action::Run(usage::run),
    },
    #[cfg(feature = "tls")]
    Command {
        name: "tls",
        summary: "Make and show the certificate with which the server speaks TLS",
        details: "",
        operands: &[],
        options: &[],
        action: Action::Group(&[
            Command {
                name: "self-signed",
                summary: "Make a certificate for this machine, signed with its own key",
                details: "\
Writes cert.pem and key.pem into the data directory, for this machine's names and addresses,
and sets `tls` in the configuration if it is not set. Browsers warn of such a certificate
until it is accepted: compare its fingerprint then.",
                operands: &[],
                options: &[
                    Setting {
                        repeats: true,
                        ..option(
                            "name",
                            "NAME",
                            "Another name or address that the server has; may be\ngiven more than once",
                        )
                    },
                    option("days", "N", "Valid for so many days; 365 when absent"),
                    flag("force", "Replace a certificate that is there"),
                    DATA_DIR,
                ],
                action: Action::Run(tls::self_signed),
            },
            Command {
                name: "show",
                summary: "Show the certificate: its fingerprint, names and expiry",
                details: "",
                operands: &[],
                options: &[JSON, DATA_DIR],
                action: Action::Run(tls::show),
            },
        ]),
    },
    Command {
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
    },
    Command {
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
            DATA_DIR,
        ],
        action: Action::Run(health::run),
    },
    Command {
        name: "completions",
        summary: "Print what completes `hearth` in a shell",
        details: "SHELL is bash, zsh or fish. `make install` puts all three where the shells look for them.",
        operands: &[one("SHELL")],
        options: &[],
        action: Action::Run(completions::run),
    },
    Command {
        name: "man",
        summary: "Print the manual page",
        details: "In the form of man(7): `hearth man | man -l -` shows it, and `make install` installs it.",
        operands: &[],
        options: &[],
        action: Action::Run(manual::run),
    },
];
