//! What people say to the assistant, and what came of it.

use super::declaration::{flag, one, option};
use super::{Action, CA_FILE, Command, DATA_DIR, JSON, Many, Operand};
use crate::cli::{chat, memory, schedule, search, usage};

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

/// `hearth chat`.
pub const CHAT: Command = Command {
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
        option(
            "url",
            "URL",
            "The server: ws://HOST:PORT/ws, or wss://; through a relay,\nwhich cannot read it: wss://RELAY/ws?machine_id=M",
        ),
        #[cfg(feature = "relay")]
        option(
            "relay-token",
            "TOKEN",
            "The relay's AUTH_TOKEN; better given as\nHEARTH_RELAY_TOKEN",
        ),
        CA_FILE,
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
};

/// `hearth search`.
pub const SEARCH: Command = Command {
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
};

/// `hearth memory`.
pub const MEMORY: Command = Command {
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
};

/// `hearth schedule`.
pub const SCHEDULE: Command = Command {
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
};

/// `hearth usage`.
pub const USAGE: Command = Command {
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
};
