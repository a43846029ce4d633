//! The script for fish.

use std::fmt::Write;

use super::completion::{Candidates, completions, paths, value};
use crate::cli::command::Command;

const BEGINNING: &str = r"# Completes `hearth` in fish.
function __hearth_command
    set -l path hearth
    for word in (commandline -opc)[2..]
        switch $path' '$word
            case ";

pub fn script(table: &'static [Command]) -> String {
    let mut text = BEGINNING.to_owned();
    let _ = write!(
        text,
        "{}\n                set path $path' '$word\n        end\n    end\n    echo $path\nend\n\
         complete -c hearth -f\n",
        paths(table, " ")
    );
    for completion in completions(table) {
        let at = format!(
            "complete -c hearth -n 'test (__hearth_command) = \"{}\"'",
            completion.path
        );
        for member in completion.members {
            let summary = described(member.summary());
            let _ = writeln!(text, "{at} -a {} -d {summary}", member.name());
        }
        if let Candidates::Words(words) = completion.operand {
            let _ = writeln!(text, "{at} -a '{}'", words.join(" "));
        }
        for option in &completion.options {
            let takes = match option.value.map(value) {
                None => String::new(),
                Some(Candidates::Words(words)) => format!(" -x -a '{}'", words.join(" ")),
                Some(Candidates::Directory) => " -x -a '(__fish_complete_directories)'".to_owned(),
                Some(Candidates::File) => " -r -F".to_owned(),
                Some(Candidates::Free) => " -x".to_owned(),
            };
            let help = described(&option.help);
            let _ = writeln!(text, "{at} -l {}{takes} -d {help}", option.name);
        }
        let _ = writeln!(text, "{at} -l help -d 'Print this help'");
    }
    text.push_str(
        "complete -c hearth -n 'test (__hearth_command) = \"hearth\"' -l version -d 'Print the version'\n",
    );
    text
}

/// The first line of a help text, quoted: fish knows `\'` within quotes.
fn described(help: &str) -> String {
    let line = help.lines().next().unwrap_or_default();
    format!("'{}'", line.replace('\\', "\\\\").replace('\'', "\\'"))
}
