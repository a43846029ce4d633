//! `hearth user` and `hearth token`: who may sign in.

use super::declaration::{flag, one, option};
use super::{Action, Command, DATA_DIR, JSON, Setting};
use crate::cli::{token, user};

const PASSWORD_STDIN: Setting = flag(
    "password-stdin",
    "Read the password as one line of standard input",
);
const GENERATE: Setting = flag("generate", "Make a password and print it once");

/// `hearth user`.
pub const USER: Command = Command {
    name: "user",
    summary: "Add, change and remove the people who may sign in",
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
            name: "role",
            summary: "Change a user's role and end their sessions",
            details: "\
ROLE is viewer (reads), user (and chats) or admin (and configures, approves, manages tokens).
Tokens that may do more are lowered to it. The last admin stays one.",
            operands: &[one("NAME"), one("ROLE")],
            options: &[DATA_DIR],
            action: Action::Run(user::set_role),
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
};

/// `hearth token`.
pub const TOKEN: Command = Command {
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
};
