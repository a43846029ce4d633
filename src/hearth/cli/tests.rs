//! Tests of the command line as a whole, and helpers for the tests of its modules.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::command::CommandFunction;
use super::context::CliContext;
use super::data_directory::DataDirectory;
use super::{COMMANDS, command, run_in};
use crate::handbook::{TOPICS, topic};
use base::testing::{TemporaryDirectory, rows};

/// A data directory that is removed at the end.
#[derive(Default)]
pub struct DataDirectoryUnderTest(TemporaryDirectory);

impl DataDirectoryUnderTest {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a command line on it as the data directory.
    pub fn run(&self, line: &str, input: &str) -> CommandOutput {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(["--data-dir", self.0.to_str().unwrap()]);
        run_with(&words, input, &[])
    }

    /// Runs each line of a table, `CODE | COMMAND LINE < INPUT | PART OF THE ERRORS`,
    /// and checks that it prints nothing to the output.
    pub fn check(&self, table: &str) {
        for [code, line, says] in rows(table) {
            let (line, input) = match line.split_once(" < ") {
                Some((line, input)) => (line, format!("{input}\n")),
                None => (line, String::new()),
            };
            let ran = self.run(line, &input);
            assert_eq!(ran.code.to_string(), code, "{line}: {}", ran.errors);
            assert!(ran.errors.contains(says), "{line}: {}", ran.errors);
            assert_eq!(ran.output, "", "{line}");
        }
    }

    pub fn data_directory(&self) -> DataDirectory {
        DataDirectory::resolve(Some(self.0.as_os_str()), &|_| None).unwrap()
    }
}

/// What came of a command line.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: u8,
    pub output: String,
    pub errors: String,
}

/// Runs a command line with `input` on standard input, which is no terminal, nor is
/// the output.
pub fn run_with(words: &[&str], input: &str, variables: &[(&str, &str)]) -> CommandOutput {
    run_on(false, words, input, variables)
}

/// The same with an output that may be a terminal.
pub fn run_on(
    output_is_terminal: bool,
    words: &[&str],
    input: &str,
    variables: &[(&str, &str)],
) -> CommandOutput {
    let (mut writer, mut reader) = UnixStream::pair().unwrap();
    writer.write_all(input.as_bytes()).unwrap();
    drop(writer);
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let code = run_in(
        words.iter().map(Into::into).collect(),
        &mut CliContext {
            environment: &|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            },
            input: &mut reader,
            input_is_terminal: false,
            output_is_terminal,
            output: &mut output,
            errors: &mut errors,
        },
    );
    CommandOutput {
        code,
        output: String::from_utf8(output).unwrap(),
        errors: String::from_utf8(errors).unwrap(),
    }
}

fn run_line(line: &str) -> CommandOutput {
    run_with(&line.split_whitespace().collect::<Vec<_>>(), "", &[])
}

#[test]
fn a_wrong_command_line_is_named_and_has_code_2() {
    let nothing = ["", "no command given (see `hearth --help`)"];
    let table = r#"
        sevre                                        | unknown command `hearth sevre`; did you mean `hearth serve`? (see `hearth --help`)
        browser --help                               | unknown command `hearth browser`; did you mean `hearth help browser`?
        teapot                                       | unknown command `hearth teapot`; there are serve, init, chat,
        user ad                                      | unknown command `hearth user ad`; did you mean `hearth user add`? (see `hearth user --help`)
        user --data-dir /x list                      | put options such as --data-dir after the last word of the command (see `hearth user --help`)
        tool --data-dir=/x                           | put options such as --data-dir after the last word
        help teapot                                  | unknown command or topic `teapot`; the topics are browser, models,
        help sevre                                   | did you mean `hearth serve`?
        serve now                                    | unexpected argument "now" (see `hearth serve --help`)
        serve --prot 5                               | unknown option --prot; did you mean --port?
        serve --zzzzzzzzz                            | unknown option --zzzzzzzzz (
        serve -p 5                                   | unknown option -p
        serve --port                                 | missing argument for option '--port'
        serve --port 1 --port 2                      | --port is given more than once
        serve --port 65536                           | --port must be a number from 0 to 65535, not 65536
        serve --port x                               | --port must be a number from 0 to 65535, not "x"
        serve --bind here                            | --bind must be an IP address, not "here"
        user add                                     | NAME is missing (see `hearth user add --help`)
        user list --json=yes                         | unexpected argument for option '--json'
        user add ada --role king --data-dir /x       | --role must be viewer, user or admin, not "king"
        token create                                 | --name is missing
        token create --name x --expires-days 0       | --expires-days must be a number from 1 to 3650, not 0
        config set provider                          | VALUE is missing
        token create --name x --only garden          | --only must be household, not "garden"
        deliveries list --state lost                 | --state must be pending, held, delivered or dead, not "lost"
        chat --new --conversation conv_0000000000001 | --conversation and --new cannot be used together
        chat --url ws://h --token t --user u         | --token and --user cannot be used together
        chat --url ws://h                            | with --user NAME, or a token in HEARTH_TOKEN
    "#;
    for [line, says] in [nothing].into_iter().chain(rows(table)) {
        let ran = run_line(line);
        assert_eq!(
            (ran.code, ran.output.as_str()),
            (2, ""),
            "{line}: {}",
            ran.errors
        );
        assert!(ran.errors.starts_with("hearth: "), "{line}: {}", ran.errors);
        assert!(ran.errors.contains(says), "{line}: {}", ran.errors);
        assert_eq!(ran.errors.lines().count(), 1, "{line}: {}", ran.errors);
    }
}

#[test]
fn every_option_says_what_it_is_for() {
    for (path, command) in command::all(COMMANDS) {
        for option in command.options() {
            assert!(!option.help.is_empty(), "{path} {}", option.term());
        }
    }
}

/// The commands that send nothing to the service, and why.
const OUTSIDE: &[(&str, &str)] = &[
    ("config path", "it says where the file is"),
    ("config schema", "it prints what the program knows"),
    ("config keys", "it prints what the program knows"),
    ("serve", "it is the server"),
    ("init", "it asks a person, and sends what they answer"),
    (
        "chat",
        "it is a client with a screen, wherever the server is",
    ),
    ("approvals", "a person's, wherever the server is"),
    ("account", "a person's, wherever the server is"),
    ("relay", "it is a relay, or makes the server use one"),
    ("web", "it copies the page out of the program"),
    (
        "restore",
        "it replaces the database of a server that is stopped",
    ),
    ("tls", "it makes certificates"),
    ("doctor", "it looks at what may not work"),
    ("health", "it asks a server like any monitor"),
    ("avahi", "it prints a file for another program"),
    ("completions", "it prints a file for a shell"),
    ("man", "it prints a page of the manual"),
];

#[test]
fn every_other_command_sends_its_request_to_the_service() {
    let mut used = std::collections::BTreeSet::new();
    for (path, command) in command::all(COMMANDS) {
        if matches!(command.run, Some(CommandFunction::Plain(_))) {
            let path = path.trim_start_matches("hearth ");
            let is_in = |group: &str| path.starts_with(group);
            let known = OUTSIDE.iter().find(|(known, _)| is_in(known));
            used.insert(known.unwrap_or_else(|| panic!("{path} sends no request")).0);
        }
    }
    if cfg!(all(feature = "relay", feature = "tls", feature = "web")) {
        let known = OUTSIDE.iter().map(|(known, _)| *known).collect();
        assert_eq!(
            used, known,
            "what sends requests after all needs no exception"
        );
    }
}

#[test]
fn what_fails_is_named_and_has_code_1() {
    let root = DataDirectoryUnderTest::default();
    let directory = root.path().to_str().unwrap();
    let nothing = [
        "user list",
        "user add ada",
        "user passwd ada",
        "user remove ada",
        "token list",
        "token create --name x",
        "token revoke tok_0000000000001",
        "deliveries list",
        "deliveries retry dlv_0000000000001",
        "config check",
        "config get",
        "config set model x",
        "chat hi",
    ];
    for line in nothing {
        let ran = run_line(&format!("{line} --data-dir {directory}"));
        assert_eq!(
            (ran.code, ran.output.as_str()),
            (1, ""),
            "{line}: {}",
            ran.errors
        );
        assert!(
            ran.errors.contains("`hearth serve`"),
            "{line}: {}",
            ran.errors
        );
        assert!(ran.errors.contains(directory), "{line}: {}", ran.errors);
    }
    assert_eq!(
        fs::read_dir(root.path()).unwrap().count(),
        0,
        "nothing was made"
    );

    let table = r#"
        user list                              | HOME is not set
        chat --conversation x                  | there is no conversation "x"
        chat --url wss://127.0.0.1:1 --token x | no server answers at 127.0.0.1:1
        chat --url ftp://h                     | is not the address of a server
    "#;
    for [line, says] in rows(table) {
        let ran = run_line(line);
        assert_eq!(ran.code, 1, "{line}: {}", ran.errors);
        assert!(
            ran.errors.starts_with("hearth: ") && ran.errors.contains(says),
            "{line}: {}",
            ran.errors
        );
    }
}

#[test]
fn every_command_has_help_that_names_its_options_and_operands() {
    let overview = run_line("--help");
    assert_eq!((overview.code, overview.errors.as_str()), (0, ""));
    assert_eq!(run_line("help").output, overview.output);
    for (path, command) in command::all(COMMANDS) {
        let path = path.strip_prefix("hearth").unwrap();
        let help = run_line(&format!("{path} --help"));
        assert_eq!((help.code, help.errors.as_str()), (0, ""), "{path}");
        // Where a topic of the handbook has the same name, its page comes first.
        let page = topic(path.trim_start()).map(|topic| topic.text(false) + "\n");
        assert_eq!(
            run_line(&format!("help{path}")).output,
            page.unwrap_or_default() + &help.output,
            "{path}"
        );
        assert!(
            help.output.contains(&format!("Usage: hearth{path}")),
            "{}",
            help.output
        );
        for setting in command.options() {
            assert!(
                help.output.contains(&format!("--{}", setting.name)),
                "{}",
                help.output
            );
        }
        for operand in command.operands() {
            assert!(help.output.contains(operand), "{}", help.output);
        }
        if command.run.is_none() {
            assert_eq!(
                run_line(path).output,
                help.output,
                "a group alone shows its help"
            );
        }
        for member in command.members {
            assert!(help.output.contains(member.summary()), "{}", help.output);
        }
        for line in help.output.lines().chain(overview.output.lines()) {
            assert!(line.chars().count() <= 100, "too wide: {line}");
        }
    }
    for command in COMMANDS {
        assert!(overview.output.contains(command.summary()));
    }
}

#[test]
fn help_prints_the_pages_of_the_handbook() {
    let overview = run_line("help").output;
    for one in TOPICS {
        assert!(overview.contains(&one.summary()), "{}", one.name);
        let help = run_line(&format!("help {}", one.name));
        assert_eq!((help.code, help.errors.as_str()), (0, ""), "{}", one.name);
        assert!(help.output.starts_with(&one.text(false)), "{}", one.name);
    }
    let both: Vec<&str> = TOPICS
        .iter()
        .map(|one| one.name)
        .filter(|name| COMMANDS.iter().any(|command| command.name() == *name))
        .collect();
    assert!(both.is_empty() || both == ["relay"], "{both:?}");
    let typo = run_line("help brwoser");
    assert_eq!(typo.code, 2);
    assert!(
        typo.errors.contains("did you mean `hearth help browser`?"),
        "{}",
        typo.errors
    );
}

#[test]
fn help_wins_over_what_is_wrong_or_missing() {
    for line in [
        "user add --help",
        "serve -h",
        "serve extra --help",
        "user --help",
    ] {
        let ran = run_line(line);
        assert_eq!((ran.code, ran.errors.as_str()), (0, ""), "{line}");
    }
}

#[test]
fn the_version_is_that_of_the_package_and_the_commit_if_known() {
    for line in ["--version", "-V"] {
        let ran = run_line(line);
        let commit = option_env!("HEARTH_COMMIT").map(|commit| format!(" ({commit})"));
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("hearth {version}{}\n", commit.unwrap_or_default());
        assert_eq!((ran.code, ran.output), (0, expected));
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_writer, mut reader) = UnixStream::pair().unwrap();
    let mut errors = Vec::new();
    let code = run_in(
        vec!["--help".into()],
        &mut CliContext {
            environment: &|_| None,
            input: &mut reader,
            input_is_terminal: false,
            output_is_terminal: false,
            output: &mut Closed,
            errors: &mut errors,
        },
    );
    assert_eq!((code, errors.as_slice()), (0, &[][..]));
}
