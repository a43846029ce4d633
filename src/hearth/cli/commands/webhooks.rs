//! `hearth webhook` and `hearth deliveries`.

use super::declaration::{flag, one, option};
use super::{Action, Command, DATA_DIR, JSON};
use crate::cli::{deliveries, webhook};

/// `hearth webhook`.
pub const WEBHOOK: Command = Command {
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
};

/// `hearth deliveries`.
pub const DELIVERIES: Command = Command {
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
};
