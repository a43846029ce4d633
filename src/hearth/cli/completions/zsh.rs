//! The script for zsh.

use std::fmt::Write;

use super::{Value, described, paths, places};

const BEGINNING: &str = r#"#compdef hearth
# Completes `hearth` in zsh.
_hearth() {
    local path_so_far=hearth word
    local -a entries
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$path_so_far $word" in
"#;

/// In a file of fpath the function is called at once; sourced, it is announced.
const END: &str = r#"    esac
    _describe -t commands hearth entries
}
if [[ "${funcstack[1]}" == _hearth ]]; then
    _hearth "$@"
else
    compdef _hearth hearth
fi
"#;

pub fn script() -> String {
    let mut text = BEGINNING.to_owned();
    let _ = write!(
        text,
        "            ({}) path_so_far=\"$path_so_far $word\" ;;\n        esac\n    done\n    \
         case \"$path_so_far ${{words[CURRENT-1]}}\" in\n",
        paths("|")
    );
    for place in places() {
        for setting in place.options {
            let Some(name) = setting.value else { continue };
            let reply = match super::value(name) {
                Value::Words(words) => format!("compadd -- {}", words.join(" ")),
                Value::Directory => "_files -/".to_owned(),
                Value::File => "_files".to_owned(),
                Value::Free => format!("_message {name}"),
            };
            let (path, option) = (&place.path, setting.name);
            let _ = writeln!(text, "        ('{path} --{option}') {reply}; return ;;");
        }
    }
    text.push_str("    esac\n    case \"$path_so_far\" in\n");
    for place in places() {
        let _ = write!(text, "        ('{}') entries=(", place.path);
        for member in place.members {
            entry(&mut text, member.name, member.summary);
        }
        for setting in place.options {
            entry(&mut text, &format!("--{}", setting.name), setting.help);
        }
        if let Value::Words(words) = place.operand {
            words.iter().for_each(|word| entry(&mut text, word, ""));
        }
        entry(&mut text, "--help", "Print this help");
        if place.path == "hearth" {
            entry(&mut text, "--version", "Print the version");
        }
        text.push_str(") ;;\n");
    }
    text.push_str(END);
    text
}

/// A word with its description; a colon parts the two.
fn entry(text: &mut String, word: &str, help: &str) {
    let word = word.replace(':', "\\:");
    let _ = match help {
        "" => write!(text, "'{word}' "),
        help => write!(text, "'{word}:'{} ", described(help)),
    };
}
