//! The script for zsh.

use std::fmt::Write;

use super::completion::{Candidates, completions, described, paths, value};
use crate::cli::command::Command;

const BEGINNING: &str = r#"#compdef hearth
# Completes `hearth` in zsh.
_hearth() {
    local path_so_far=hearth word
    local -a entries
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$path_so_far $word" in
"#;

/// As a file in fpath the function is called at once; when sourced it is registered.
const END: &str = r#"    esac
    _describe -t commands hearth entries
}
if [[ "${funcstack[1]}" == _hearth ]]; then
    _hearth "$@"
else
    compdef _hearth hearth
fi
"#;

pub fn script(table: &'static [Command]) -> String {
    let mut text = BEGINNING.to_owned();
    let _ = write!(
        text,
        "            ({}) path_so_far=\"$path_so_far $word\" ;;\n        esac\n    done\n    \
         case \"$path_so_far ${{words[CURRENT-1]}}\" in\n",
        paths(table, "|")
    );
    for completion in completions(table) {
        for option in &completion.options {
            let Some(value_name) = option.value else {
                continue;
            };
            let reply = match value(value_name) {
                Candidates::Words(words) => format!("compadd -- {}", words.join(" ")),
                Candidates::Directory => "_files -/".to_owned(),
                Candidates::File => "_files".to_owned(),
                Candidates::Free => format!("_message {value_name}"),
            };
            let (path, name) = (&completion.path, option.name);
            let _ = writeln!(text, "        ('{path} --{name}') {reply}; return ;;");
        }
    }
    text.push_str("    esac\n    case \"$path_so_far\" in\n");
    for completion in completions(table) {
        let _ = write!(text, "        ('{}') entries=(", completion.path);
        for member in completion.members {
            entry(&mut text, member.name(), member.summary());
        }
        for option in &completion.options {
            entry(&mut text, &format!("--{}", option.name), &option.help);
        }
        if let Candidates::Words(words) = completion.operand {
            words.iter().for_each(|word| entry(&mut text, word, ""));
        }
        entry(&mut text, "--help", "Print this help");
        if completion.path == "hearth" {
            entry(&mut text, "--version", "Print the version");
        }
        text.push_str(") ;;\n");
    }
    text.push_str(END);
    text
}

/// A word with its description, separated by a colon.
fn entry(text: &mut String, word: &str, help: &str) {
    let word = word.replace(':', "\\:");
    let _ = match help {
        "" => write!(text, "'{word}' "),
        help => write!(text, "'{word}:'{} ", described(help)),
    };
}
