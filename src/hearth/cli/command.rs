//! The type that declares a command, and the lookup of one in a table.

use super::arguments::{Arguments, CommandOption};
use super::context::{CliContext, CliError, CliResult};
use super::door::{Configuration, Door};
use super::row::{Request, Row, Shown};
use crate::handbook::topic;
use base::nearest::nearest;

/// One command, a group of commands, or both.
pub struct Command {
    /// What its help shows: a line `NAME OPERAND...: SUMMARY`, paragraphs with what
    /// else a person should know, and the options, one on each line (see
    /// [`CommandOption`]), without those that [`Command::options`] adds. An operand is `WORD`, `[WORD]` when it may be missing, or
    /// `[WORD...]` when it takes all remaining words.
    text: &'static str,
    /// What it does when no member follows; a group without it shows its help.
    pub run: Option<CommandFunction>,
    /// The commands of a group.
    pub members: &'static [Command],
}

/// The function of a command.
#[derive(Clone, Copy)]
pub enum CommandFunction {
    Plain(fn(&Arguments, &mut CliContext) -> CliResult),
    /// Sends one request to the service and shows its response.
    Row(Row),
    /// Asks the service, signed in as the owner of the machine.
    Door(
        Configuration,
        fn(&mut Door, &Arguments, &mut CliContext) -> CliResult,
    ),
}

impl Command {
    pub const fn new(text: &'static str) -> Command {
        Command {
            text,
            run: None,
            members: &[],
        }
    }

    pub const fn run(mut self, run: fn(&Arguments, &mut CliContext) -> CliResult) -> Command {
        self.run = Some(CommandFunction::Plain(run));
        self
    }

    pub const fn row(self, request: Request, shown: Shown) -> Command {
        self.sends(request, shown, false)
    }

    /// A row of a person who signs in to a server.
    pub const fn own_row(self, request: Request, shown: Shown) -> Command {
        self.sends(request, shown, true)
    }

    const fn sends(mut self, request: Request, shown: Shown, is_own: bool) -> Command {
        self.run = Some(CommandFunction::Row(Row {
            request,
            shown,
            is_own,
        }));
        self
    }

    pub const fn ask(
        self,
        ask: fn(&mut Door, &Arguments, &mut CliContext) -> CliResult,
    ) -> Command {
        self.ask_with(Configuration::Needed, ask)
    }

    pub const fn ask_with(
        mut self,
        configuration: Configuration,
        ask: fn(&mut Door, &Arguments, &mut CliContext) -> CliResult,
    ) -> Command {
        self.run = Some(CommandFunction::Door(configuration, ask));
        self
    }

    pub const fn members(mut self, members: &'static [Command]) -> Command {
        self.members = members;
        self
    }

    fn head(&self) -> (&'static str, &'static str) {
        let line = self.text.lines().next().unwrap_or_default();
        line.split_once(": ").unwrap_or((line, ""))
    }

    pub fn name(&self) -> &'static str {
        self.operands_and_name().next().unwrap_or_default()
    }

    /// One line, without its full stop.
    pub fn summary(&self) -> &'static str {
        self.head().1
    }

    /// The operands as declared.
    pub fn operands(&self) -> impl Iterator<Item = &'static str> {
        self.operands_and_name().skip(1)
    }

    fn operands_and_name(&self) -> impl Iterator<Item = &'static str> {
        self.head().0.split(' ')
    }

    /// What else a person should know.
    pub fn details(&self) -> &'static str {
        let (_, rest) = self.text.split_once('\n').unwrap_or_default();
        let end = rest.find("--").filter(|&at| at == 0);
        let end = end.or_else(|| rest.find("\n--")).unwrap_or(rest.len());
        rest[..end].trim()
    }

    /// The options: `--data-dir` is one of all that ask the service, `--json` of those that show
    /// a table, and what names a server of those that sign in to it.
    pub fn options(&self) -> Vec<CommandOption> {
        let mut options = CommandOption::list(self.text);
        options.extend(CommandOption::list(match self.run {
            Some(CommandFunction::Row(row)) => match (row.is_own, row.shown.is_table()) {
                (true, true) => "--json\n--SERVER",
                (true, false) => "--SERVER",
                (false, true) => "--json\n--data-dir",
                (false, false) => "--data-dir",
            },
            Some(CommandFunction::Door(..)) => "--data-dir",
            _ => "",
        }));
        options
    }
}

/// The command that the first words of a command line name.
pub struct Invocation {
    pub command: &'static Command,
    /// How it is called, with the program's name: `hearth user add`.
    pub path: String,
    /// How many words the path took.
    pub words: usize,
}

/// Finds the command in `table` that `words` begin with.
///
/// # Errors
///
/// A usage failure with the nearest known command.
pub fn find(table: &'static [Command], words: &[&str]) -> Result<Invocation, CliError> {
    let mut level = table;
    let mut path = String::from("hearth");
    for (index, word) in words.iter().enumerate() {
        let Some(command) = level.iter().find(|known| known.name() == *word) else {
            let names: Vec<&str> = level.iter().map(Command::name).collect();
            let hint = match nearest(word, names.iter().copied()) {
                Some(near) => format!("did you mean `{path} {near}`?"),
                None if index == 0 && topic(word).is_some() => {
                    format!("did you mean `{path} help {word}`?")
                }
                None => format!("there are {}", names.join(", ")),
            };
            return Err(CliError::Usage {
                message: format!("unknown command `{path} {word}`; {hint}"),
                command: path,
            });
        };
        path = format!("{path} {word}");
        // The next word names a member, unless it is an option.
        let continues = words
            .get(index + 1)
            .is_some_and(|next| !next.starts_with('-'));
        if let Some(option) = words.get(index + 1)
            && command.run.is_none()
            && option.starts_with("--")
            && *option != "--help"
        {
            let option = option.split('=').next().unwrap_or(option);
            return Err(CliError::Usage {
                message: format!("put options such as {option} after the last word of the command"),
                command: path,
            });
        }
        if !continues || command.members.is_empty() {
            return Ok(Invocation {
                command,
                path,
                words: index + 1,
            });
        }
        level = command.members;
    }
    Err(CliError::Usage {
        message: "no command given".to_owned(),
        command: path,
    })
}

/// Every command of `table` with its path, each group before its members.
pub fn all(table: &'static [Command]) -> Vec<(String, &'static Command)> {
    fn collect(
        prefix: &str,
        level: &'static [Command],
        found: &mut Vec<(String, &'static Command)>,
    ) {
        for command in level {
            let path = format!("{prefix} {}", command.name());
            found.push((path.clone(), command));
            collect(&path, command.members, found);
        }
    }
    let mut found = Vec::new();
    collect("hearth", table, &mut found);
    found
}
