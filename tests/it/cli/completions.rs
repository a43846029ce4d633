//! What bash, zsh and fish offer with the scripts of `hearth completions`.

use std::path::Path;
use std::process::Command;

use base::testing::skipped;
use support::program::{binary, finish, printed, run};

/// A command line, what is offered for its last word, and what is not.
const OFFERED: [(&str, &str, &str); 10] = [
    ("hearth se", "serve search", "user"),
    ("hearth user ", "add list passwd remove", "serve"),
    (
        "hearth user add --",
        "--role --generate --data-dir --help",
        "--json",
    ),
    ("hearth user add --role ", "viewer user admin", "--generate"),
    ("hearth user add ada --role v", "viewer", "user"),
    ("hearth completions ", "bash zsh fish", "serve"),
    ("hearth config set permission_", "permission_mode", "model"),
    ("hearth usage --by ", "day month purpose", "--limit"),
    ("hearth serve --bind ", "", "--port"),
    ("hearth --v", "--version", "serve"),
];

/// Runs a program of a shell, which finds `hearth` in its PATH.
fn output(shell: &str, arguments: &[&str]) -> String {
    let binary = binary();
    let folder = binary.parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = finish(
        Command::new(shell)
            .args(arguments)
            .env("PATH", format!("{folder}:{path}")),
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks what a shell offers for each line, with its script; skipped where the shell is
/// not installed.
fn check(shell: &str, offers: impl Fn(&str, &str) -> String) {
    let found = Command::new(shell).args(["-c", "true"]).status();
    if !found.is_ok_and(|status| status.success()) {
        skipped(format_args!("{shell} is not installed"));
        return;
    }
    let script = said_by_hearth(&["completions", shell]);
    for (line, wanted, unwanted) in OFFERED {
        let said = offers(&script, line);
        let offered: Vec<&str> = said.split_whitespace().collect();
        for word in wanted.split_whitespace() {
            assert!(offered.contains(&word), "{shell}, {line:?}: {offered:?}");
        }
        let is_offered = offered.contains(&unwanted);
        assert!(!is_offered, "{shell}, {line:?}: {offered:?}");
    }
}

fn said_by_hearth(arguments: &[&str]) -> String {
    printed(&run(Path::new("/"), arguments))
}

fn quoted(line: &str) -> Vec<String> {
    line.split(' ').map(|word| format!("'{word}'")).collect()
}

#[test]
fn bash_offers_what_may_follow() {
    check("bash", |script, line| {
        let words = quoted(line);
        let program = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _hearth; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        output("bash", &["-c", &program])
    });
}

#[test]
fn zsh_offers_what_may_follow() {
    // The widgets that show the offers need a terminal; stubs print them instead.
    let beginning = "_describe() { print -l -- ${offers%%:*} }; _files() { print files }; \
         _message() { print message }; compdef() { }\n";
    check("zsh", |script, line| {
        let words = quoted(line);
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
    check("fish", |script, line| {
        let program = format!("{script}\ncomplete -C '{line}'");
        let offered = output("fish", &["--no-config", "-c", &program]);
        let words = offered.lines().filter_map(|line| line.split('\t').next());
        words.collect::<Vec<_>>().join("\n")
    });
}

#[test]
fn files_and_directories_are_the_shells() {
    for (line, offers) in [
        (&["__complete", "serve", "--data-dir", ""][..], ":DIR\n"),
        (&["__complete", "chat", "--ca-file", "/"], ":FILE\n"),
        (&["__complete", "serve", "--port", "5"], ":N\n"),
    ] {
        assert_eq!(said_by_hearth(line), offers, "{line:?}");
    }
    let help = said_by_hearth(&["--help"]) + &said_by_hearth(&["man"]);
    assert!(!help.contains("__complete"), "it is for the scripts alone");
}
