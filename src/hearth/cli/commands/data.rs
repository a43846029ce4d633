//! `hearth backup`, `restore`, `export` and `import`.

use super::declaration::{flag, one, option};
use super::{Action, Command, DATA_DIR, JSON};
use crate::cli::{backup, export, import, restore};

/// `hearth backup`.
pub const BACKUP: Command = Command {
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
};

/// `hearth restore`.
pub const RESTORE: Command = Command {
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
};

/// `hearth export`.
pub const EXPORT: Command = Command {
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
};

/// `hearth import`.
pub const IMPORT: Command = Command {
    name: "import",
    summary: "Take conversations in, also from ChatGPT and Claude",
    details: "\
FILE is what `hearth export` has written, or the file conversations.json of an account export
of ChatGPT or Claude. A conversation that is there already is left as it is, so that the same
file may be imported again. This works while the server runs, and while it does not.",
    operands: &[one("FILE")],
    options: &[JSON, DATA_DIR],
    action: Action::Run(import::run),
};
