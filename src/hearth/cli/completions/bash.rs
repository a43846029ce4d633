//! The script for bash.

use std::fmt::Write;

use super::completion::{Candidates, completions, paths, value};
use crate::cli::command::Command;

const BEGINNING: &str = r#"# Completes `hearth` in bash.
_hearth() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local path=hearth word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path $word" in
"#;

pub fn script(table: &'static [Command]) -> String {
    let mut text = BEGINNING.to_owned();
    let _ = write!(
        text,
        "            {}) path=\"$path $word\" ;;\n        esac\n    done\n",
        paths(table, "|")
    );
    text.push_str("    COMPREPLY=()\n    case \"$path $previous\" in\n");
    for completion in completions(table) {
        for option in &completion.options {
            let Some(value_name) = option.value else {
                continue;
            };
            let reply = match value(value_name) {
                Candidates::Words(words) => compgen(&format!("-W '{}'", words.join(" "))),
                Candidates::Directory => compgen("-d"),
                Candidates::File => compgen("-f"),
                Candidates::Free => String::new(),
            };
            let (path, name) = (&completion.path, option.name);
            let _ = writeln!(text, "        '{path} --{name}') {reply}return ;;");
        }
    }
    text.push_str("    esac\n    case \"$path\" in\n");
    for completion in completions(table) {
        let members = completion
            .members
            .iter()
            .map(|member| member.name().to_owned());
        let options = completion
            .options
            .iter()
            .map(|one| format!("--{}", one.name));
        let mut words: Vec<String> = members.chain(options).collect();
        if let Candidates::Words(operand) = completion.operand {
            words.extend(operand);
        }
        words.push("--help".to_owned());
        if completion.path == "hearth" {
            words.push("--version".to_owned());
        }
        let reply = compgen(&format!("-W '{}'", words.join(" ")));
        let _ = writeln!(text, "        '{}') {reply};;", completion.path);
    }
    text.push_str("    esac\n}\ncomplete -F _hearth hearth\n");
    text
}

fn compgen(what: &str) -> String {
    format!("mapfile -t COMPREPLY < <(compgen {what} -- \"$current\"); ")
}
