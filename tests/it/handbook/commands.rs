//! The examples of README and handbook print what is shown there.
//!
//! A `console` block below `<!-- run -->` is run, in one shell with all the
//! others, against one server: those of the README first, then the handbook's in
//! its order. What varies (ids, times, ports) may be anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::handbook::texts::{documents, text_of};
use config::declared_documentation;
use support::eventually;
use support::home::TemporaryDirectory;
use support::program::{Program, example, free_port, is_there, printed, run};

/// A fenced block of commands and what they print.
struct Block {
    /// The comment before it: `run`, `run with python3`, `run in the background`;
    /// empty for one that only a person can run.
    mark: String,
    commands: Vec<Example>,
}

struct Example {
    /// The file and the line.
    place: String,
    command: String,
    output: Vec<String>,
}

/// Blocks of the language `console`: a command begins with `$ ` and goes on
/// with `> `, and what is below it is its output.
fn blocks(document: &Path) -> Vec<Block> {
    let text = text_of(document);
    let mut blocks = Vec::new();
    let mut mark = "";
    let mut lines = (1..).zip(text.lines());
    while let Some((_, line)) = lines.next() {
        if line == "```console" {
            let mut commands: Vec<Example> = Vec::new();
            for (number, line) in lines.by_ref().take_while(|(_, line)| *line != "```") {
                let newest = commands.last_mut();
                if let Some(command) = line.strip_prefix("$ ") {
                    commands.push(Example {
                        place: format!("{} line {number}", document.display()),
                        command: command.to_owned(),
                        output: Vec::new(),
                    });
                } else if let Some(more) = line.strip_prefix("> ")
                    && newest
                        .as_ref()
                        .is_some_and(|newest| newest.output.is_empty())
                {
                    let newest = newest.unwrap();
                    newest.command = format!("{}\n{more}", newest.command);
                } else {
                    newest
                        .expect("a command first")
                        .output
                        .push(line.to_owned());
                }
            }
            blocks.push(Block {
                mark: mark.to_owned(),
                commands,
            });
        }
        mark = line
            .strip_prefix("<!-- ")
            .and_then(|line| line.strip_suffix(" -->"))
            .unwrap_or_default();
    }
    blocks
}

/// Begins what one command printed; a control character that nothing prints.
const SEPARATOR: char = '\u{1e}';

/// The machine that the handbook links to a relay; a key of its own makes another
/// one here.
const MACHINE: &str = "6npfmfqwbiyl6pdoph5hhrlw2qbal2h4";

/// What stands for the parts of a newcomer's terminal that a test lacks: cargo's
/// examples are built already, and nc comes in too many kinds.
const PROLOGUE: &str = r#"
exec 2>&1 </dev/null
cargo() ( name=$4; shift 5; exec "$EXAMPLES/$name" "$@" )
nc() {
    local requests; requests=$(cat)
    exec 7<>"/dev/tcp/127.0.0.1/$3"
    printf '%s\n' "$requests" >&7
    local line answers=0
    while [ $answers -lt $(printf '%s\n' "$requests" | wc -l) ] && read -r -t 10 line <&7; do
        printf '%s\n' "$line"
        case $line in '{"status"'*) answers=$((answers + 1));; esac
    done
    exec 7>&-
}
lines() { # FILE COUNT: waits until the file has so many
    for _ in $(seq 200); do [ "$(wc -l < "$1")" -ge "$2" ] && return; sleep 0.05; done
}
listens() { # FILE: waits until it says where
    for _ in $(seq 200); do grep -q "http://" "$1" && return; sleep 0.05; done
}
machine() { command hearth relay status | sed -n 's/machine id *//p'; }
"#;

#[test]
fn the_examples_print_what_is_shown() {
    if !is_there("bash") || !is_there("curl") {
        return;
    }
    let folder = TemporaryDirectory::new();
    let checkout = folder.path().join("checkout");
    fs::create_dir_all(checkout.join("target/release")).unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(project.join("examples"), checkout.join("examples")).unwrap();
    let binary = env!("CARGO_BIN_EXE_hearth");
    symlink(binary, checkout.join("target/release/hearth")).unwrap();
    symlink(binary, folder.path().join("hearth")).unwrap();

    let blocks: Vec<Block> = documents().iter().flat_map(|path| blocks(path)).collect();
    let mut serve = Command::new("./target/release/hearth");
    serve
        .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
        .current_dir(&checkout)
        .env_remove("HEARTH_DATA_DIR")
        .env_remove("STATE_DIRECTORY")
        .env_remove("XDG_DATA_HOME")
        .env_remove("HEARTH_ADMIN_PASSWORD")
        .env("HOME", folder.path());
    let program = Program::launch(serve, folder.path());
    let said = eventually("the server has said everything", || {
        let said = fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
        said.ends_with("hello\n\n").then_some(said)
    });
    let port = program.address.port();
    // What the examples call their ports, and what they are here.
    let ports = [
        ("5000", port),
        ("9000", free_port()),
        ("17000", free_port()),
    ];
    let home = folder.path().to_str().unwrap();
    let shown = |text: &str| {
        ports
            .iter()
            .fold(text.replace(home, "/home/you"), |text, (name, port)| {
                text.replace(&format!(":{port}"), &format!(":{name}"))
            })
    };
    let start = &blocks[0].commands[0];
    assert_eq!(start.command, "make run");
    let mut wrong = Vec::new();
    wrong.extend(difference(start, &shown(&format!("the build\n{said}"))));
    let password = said
        .split_once("Password")
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .unwrap();

    let runs: Vec<&Block> = blocks
        .iter()
        .filter(|block| match block.mark.as_str() {
            "run with python3" => is_there("python3"),
            mark => mark.starts_with("run"),
        })
        .collect();
    let mut script = PROLOGUE.to_owned();
    let mut background = Vec::new();
    for block in &runs {
        for example in &block.commands {
            let command = ports
                .iter()
                .fold(example.command.clone(), |command, (name, port)| {
                    command.replace(name, &port.to_string())
                })
                .replace(MACHINE, "'$(machine)'");
            if block.mark == "run in the background" {
                let file = format!("../background-{}", background.len());
                writeln!(
                    script,
                    "touch {file}; {command} > {file} 2>&1 & listens {file}"
                )
                .unwrap();
                background.push((example, file));
            } else {
                writeln!(script, "printf '{SEPARATOR}'\n{command}").unwrap();
            }
        }
    }
    for (example, file) in &background {
        let lines = example.output.len();
        writeln!(
            script,
            "printf '{SEPARATOR}'\nlines {file} {lines}\ncat {file}"
        )
        .unwrap();
    }
    let examples = example("chat_client");
    example("webhook_receiver");
    let mut bash = Command::new("bash");
    bash.arg("-c")
        .arg(&script)
        .current_dir(&checkout)
        .env_remove("HEARTH_DATA_DIR")
        .env_remove("STATE_DIRECTORY")
        .env_remove("XDG_DATA_HOME")
        .env_remove("HEARTH_TOKEN")
        .env("HOME", folder.path())
        .env("HEARTH_PASSWORD", password)
        .env("EXAMPLES", examples.parent().unwrap())
        .env(
            "PATH",
            format!("{home}:{}", std::env::var("PATH").unwrap_or_default()),
        );
    let output = shown(&run_group(&mut bash, &folder.path().join("output")));
    let mut printed = output.split(SEPARATOR).skip(1);
    let mut checked = 0;
    let foreground = runs
        .iter()
        .filter(|block| block.mark != "run in the background")
        .flat_map(|block| &block.commands)
        .chain(background.iter().map(|(example, _)| *example));
    for example in foreground {
        let printed = printed.next().unwrap_or("(nothing: bash ended)");
        wrong.extend(difference(example, printed));
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked >= 40, "only {checked} examples were found");
}

/// The commands of Hearth that a document names, in its blocks and within its text.
fn named_commands(document: &Path) -> Vec<String> {
    let text = text_of(document);
    let mut blocks = text.split("```");
    let mut commands = Vec::new();
    while let Some(prose) = blocks.next() {
        let flowing = prose.replace('\n', " ");
        commands.extend(flowing.split('`').skip(1).step_by(2).map(str::to_owned));
        let block = blocks.next().unwrap_or_default();
        let lines = block.lines().skip(1).map(str::to_owned);
        if block.starts_with("sh\n") {
            commands.extend(lines);
        } else if block.starts_with("console\n") {
            commands.extend(lines.filter_map(|line| Some(line.strip_prefix("$ ")?.to_owned())));
        }
    }
    let named = commands.into_iter().filter_map(|line| {
        let line = line.trim_start_matches("sudo ");
        let rest = line.strip_prefix("./target/release/").unwrap_or(line);
        let rest = rest.strip_prefix("hearth ")?;
        Some(rest.strip_prefix("help").unwrap_or(rest).trim().to_owned())
    });
    named.collect()
}

#[test]
fn the_commands_that_are_named_have_the_options_that_are_named() {
    let folder = TemporaryDirectory::new();
    let mut helps: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut help = |command: &str| {
        let of_command = || {
            let arguments = std::iter::once("help").chain(command.split(' '));
            let arguments: Vec<&str> = arguments.collect();
            let output = run(folder.path(), &arguments);
            (output.status.success()).then(|| printed(&output))
        };
        let known = helps.entry(command.to_owned()).or_insert_with(of_command);
        known.clone()
    };
    let settings = declared_documentation();
    let is_setting = |key: &str| {
        settings.iter().any(|setting| {
            let mut parts = key.split('.');
            let known = setting.key.split('.').take_while(|name| *name != "NAME");
            let mut known = known.map(|name| name.trim_end_matches("[]"));
            known.all(|name| parts.next().is_some_and(|part| part == name))
        })
    };
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for document in documents() {
        for named in named_commands(&document) {
            let words = named.split([' ', '\n']).filter(|word| !word.is_empty());
            let words: Vec<&str> = words
                .take_while(|word| !word.starts_with(['#', '|', '&', ';', '>', '<']))
                .collect();
            let is_name = |word: &&&str| {
                let letters = word.bytes();
                !word.starts_with('-')
                    && letters
                        .clone()
                        .all(|one| one.is_ascii_lowercase() || one == b'-')
            };
            let names: Vec<&str> = words.iter().take_while(is_name).take(2).copied().collect();
            let Some(first) = names.first() else { continue };
            checked += 1;
            let place = document.display();
            let Some(shown) = help(&names.join(" ")).or_else(|| help(first)) else {
                wrong.push(format!("{place}: there is no command: hearth {named}"));
                continue;
            };
            for word in words.iter().filter(|word| word.starts_with("--")) {
                let option = word.split('=').next().unwrap_or_default();
                let option = option.trim_end_matches(|one: char| !one.is_ascii_alphanumeric());
                if !shown.contains(&format!("{option} ")) && !shown.contains(&format!("{option}\n"))
                {
                    wrong.push(format!("{place}: no option {option}: hearth {named}"));
                }
            }
            if let ["config", "set", key, ..] = words[..]
                && key
                    .bytes()
                    .all(|one| one.is_ascii_lowercase() || matches!(one, b'.' | b'_'))
                && !is_setting(key)
            {
                wrong.push(format!("{place}: no setting {key}: hearth {named}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 250, "only {checked} commands were found");
}

/// Runs a shell, for at most a minute, and then ends what it has left running.
/// Returns what was printed to `file`.
fn run_group(shell: &mut Command, file: &Path) -> String {
    let mut child = shell
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(file).unwrap())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-KILL", "--", &group])
        .stderr(Stdio::null())
        .status();
    child.wait().unwrap();
    fs::read_to_string(file).unwrap()
}

/// What a command printed and its document does not show.
fn difference(example: &Example, printed: &str) -> Option<String> {
    let plain = |line: &str| without_what_varies(line.trim_end());
    let shown: Vec<String> = example.output.iter().map(|line| plain(line)).collect();
    let found: Vec<String> = printed.trim_end().lines().map(plain).collect();
    let shown = match shown.iter().rposition(|line| !line.is_empty()) {
        Some(last) => &shown[..=last],
        None => &[],
    };
    (!lines_match(shown, &found)).then(|| {
        format!(
            "{}: {}\nprints\n{printed}\nand not\n{}\n",
            example.place,
            example.command,
            example.output.join("\n")
        )
    })
}

/// Whether the lines are the same. A line `...` stands for any number of lines,
/// `...` in a line for any text.
fn lines_match(shown: &[String], found: &[String]) -> bool {
    match (shown.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => {
            (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..]))
        }
        (Some((shown, rest)), Some((found, others))) => {
            line_matches(shown, found) && lines_match(rest, others)
        }
        _ => false,
    }
}

fn line_matches(shown: &str, found: &str) -> bool {
    let parts: Vec<&str> = shown.split("...").collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return shown == found;
    };
    let Some(mut rest) = found.strip_prefix(first) else {
        return false;
    };
    for part in middle {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The line with words in place of ids, tokens, times and numbers that are
/// others on every machine.
fn without_what_varies(line: &str) -> String {
    const IDS: [&str; 10] = [
        "conv_", "msg_", "turn_", "appr_", "att_", "dlv_", "mem_", "sched_", "user_", "tok_",
    ];
    // What ends before each of these, and the letters of what varies behind it.
    const BEHIND: [(&str, &str); 8] = [
        ("http://", "0123456789.:[]"),
        ("Password  ", "abcdefghijklmnopqrstuvwxyz0123456789-"),
        ("hearth_", "abcdefghijklmnopqrstuvwxyz0123456789"),
        ("\"uptime_seconds\":", "0123456789"),
        ("\"seq\":", "0123456789"),
        ("(process ", "0123456789"),
        ("machine id  ", "abcdefghijklmnopqrstuvwxyz234567"),
        ("machine_id=", "abcdefghijklmnopqrstuvwxyz234567"),
    ];
    let mut plain = String::new();
    let mut rest = line;
    'text: while let Some(letter) = rest.chars().next() {
        for prefix in IDS {
            if let Some(id) = rest.strip_prefix(prefix)
                && id.bytes().take_while(u8::is_ascii_alphanumeric).count() == 13
            {
                plain.push_str(prefix);
                rest = &id[13..];
                continue 'text;
            }
        }
        for (before, letters) in BEHIND {
            if let Some(varies) = rest.strip_prefix(before) {
                plain.push_str(before);
                rest = varies.trim_start_matches(|letter| letters.contains(letter));
                continue 'text;
            }
        }
        if let Some(time) = TIMES.iter().find(|sample| is_like(rest, sample)) {
            plain.push_str("TIME");
            rest = &rest[time.len()..];
            continue;
        }
        plain.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    plain
}

/// Times of the wire, and as people read them.
const TIMES: [&str; 2] = ["2026-11-21T03:21:50.423Z", "21 Nov 2026 03:21"];

/// Whether the text begins like the sample: with any digits, and any three letters
/// for its month.
fn is_like(text: &str, sample: &str) -> bool {
    let is_like = |(found, sample): (u8, u8)| match sample {
        b'N' | b'o' | b'v' => found.is_ascii_alphabetic(),
        _ => found == sample || found.is_ascii_digit() && sample.is_ascii_digit(),
    };
    text.len() >= sample.len() && text.bytes().zip(sample.bytes()).all(is_like)
}
