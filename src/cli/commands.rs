//! The one table of all commands: names, help and functions. Parsing, help and
//! suggestions are made from it.

use super::arguments::Arguments;
use super::help::nearest;
use super::{Context, Failure, Outcome};
use super::{
    backup, chat, config, deliveries, doctor, export, import, memory, restore, search, serve,
    token, usage, user, webhook,
};

/// One command, or a group of them.
pub struct Command {
    pub name: &'static str,
    /// One line, without its full stop.
    pub summary: &'static str,
    /// What else a person should know.
    pub details: &'static str,
    pub operands: &'static [Operand],
    pub options: &'static [Setting],
    pub action: Action,
}

/// What a command does.
pub enum Action {
    Run(fn(&Arguments, &mut Context) -> Outcome),
    Group(&'static [Command]),
}

/// A word that is no option.
pub struct Operand {
    pub name: &'static str,
    pub many: Many,
}

/// How often an operand stands in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Many {
    One,
    ZeroOrOne,
    AnyNumber,
}

/// An option: `--name`, with a value if `value` says what to call it.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    pub value: Option<&'static str>,
    pub help: &'static str,
}

/// What the first words of a command line name.
pub struct Found {
    pub command: &'static Command,
    /// How it is called, with the program's name.
    pub path: String,
    /// How many words that took.
    pub words: usize,
}

/// Finds the command that `words` begin with.
///
/// Errors: a usage failure with the nearest known command.
pub fn find(words: &[&str]) -> Result<Found, Failure> {
    let mut level = COMMANDS;
    let mut path = String::from("hearth");
    for (place, word) in words.iter().enumerate() {
        let Some(command) = level.iter().find(|known| known.name == *word) else {
            let hint = match nearest(word, level.iter().map(|known| known.name)) {
                Some(near) => format!("did you mean `{path} {near}`?"),
                None => {
                    let names: Vec<&str> = level.iter().map(|known| known.name).collect();
                    format!("there are {}", names.join(", "))
                }
            };
            return Err(Failure::Usage {
                message: format!("there is no command `{path} {word}`; {hint}"),
                command: path,
            });
        };
        path = format!("{path} {word}");
        // A group goes on with the next word, unless that asks for its help.
        match command.action {
            Action::Group(members)
                if words
                    .get(place + 1)
                    .is_some_and(|next| !next.starts_with('-')) =>
            {
                level = members;
            }
            _ => {
                return Ok(Found {
                    command,
                    path,
                    words: place + 1,
                });
            }
        }
    }
    Err(Failure::Usage {
        message: "no command given".to_owned(),
        command: path,
    })
}

const fn option(name: &'static str, value: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        value: Some(value),
        help,
    }
}

const fn flag(name: &'static str, help: &'static str) -> Setting {
    Setting {
        name,
        value: None,
        help,
    }
}

const fn one(name: &'static str) -> Operand {
    Operand {
        name,
        many: Many::One,
    }
}

/// What is looked for.
const WORDS: &[Operand] = &[
    one("WORD"),
    Operand {
        name: "WORD",
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
is logged: error, warn, info (the default), debug or trace.",
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
            option("url", "URL", "The server: ws://HOST:PORT/ws"),
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
    Command {
        name: "doctor",
        summary: "Check whether everything works, and say what to do where not",
        details: "\
Asks each configured provider whether it is there, takes the key and has the model; nothing
is sent to a model. The exit code is 1 when there is a problem. Keys are looked up in this
shell's environment, which may differ from the server's.",
        operands: &[],
        options: &[JSON, DATA_DIR],
        action: Action::Run(doctor::run),
    },
];
