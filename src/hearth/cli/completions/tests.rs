use std::process::{Command, Stdio};

use super::{bash, fish, zsh};
use crate::cli::COMMANDS;
use base::testing::skipped;

/// Whether a shell is installed; otherwise says that its test is skipped.
fn is_there(shell: &str) -> bool {
    let there = Command::new(shell)
        .args(["-c", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        skipped(format_args!("{shell} is not installed"));
    }
    there
}

fn output(shell: &str, arguments: &[&str]) -> String {
    let output = Command::new(shell)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What is offered for the last of the words, in any order.
const OFFERED: [(&str, &str, &str); 9] = [
    ("hearth se", "serve search", "user"),
    ("hearth user ", "add list passwd remove", "serve"),
    (
        "hearth user add --",
        "--role --generate --data-dir",
        "--json",
    ),
    ("hearth user add --role ", "viewer user admin", "--generate"),
    ("hearth user add ada --role v", "viewer", "user"),
    ("hearth completions ", "bash zsh fish", "serve"),
    ("hearth config set permission_", "permission_mode", "model"),
    ("hearth usage --by ", "day month", "--limit"),
    ("hearth --v", "--version", "serve"),
];

fn check(shell: &str, offers: impl Fn(&str) -> String) {
    for (line, wanted, unwanted) in OFFERED {
        let said = offers(line);
        let offered: Vec<&str> = said.split_whitespace().collect();
        for word in wanted.split_whitespace() {
            assert!(offered.contains(&word), "{shell}, {line:?}: {offered:?}");
        }
        assert!(
            !offered.contains(&unwanted),
            "{shell}, {line:?}: {offered:?}"
        );
    }
}

#[test]
fn bash_offers_what_may_follow() {
    if !is_there("bash") {
        return;
    }
    let script = bash::script(COMMANDS);
    check("bash", |line| {
        let mut words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let last = words.len() - 1;
        words.insert(0, String::new());
        let program = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}; _hearth; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" ")
        );
        output("bash", &["-c", &program])
    });
}

#[test]
fn zsh_offers_what_may_follow() {
    if !is_there("zsh") {
        return;
    }
    // The widgets that show the offers need a terminal; stubs print them instead.
    let beginning = "_describe() { print -l -- ${entries%%:*} }; compadd() { shift; print -l -- $@ }; \
         _files() { print files }; _message() { print message }; compdef() { }\n";
    let script = zsh::script(COMMANDS);
    check("zsh", |line| {
        let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let program = format!(
            "{beginning}{script}\nwords=({}); CURRENT={}; _hearth",
            words.join(" "),
            words.len()
        );
        let prefix = line.rsplit(' ').next().unwrap_or_default();
        let offered = output("zsh", &["-f", "-c", &program]);
        let fits = offered.lines().filter(|word| word.starts_with(prefix));
        fits.collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn fish_offers_what_may_follow() {
    if !is_there("fish") {
        return;
    }
    let script = fish::script(COMMANDS);
    check("fish", |line| {
        let program = format!("{script}\ncomplete -C '{line}'");
        let offered = output("fish", &["--no-config", "-c", &program]);
        let words = offered.lines().filter_map(|line| line.split('\t').next());
        words.collect::<Vec<_>>().join("\n")
    });
}
