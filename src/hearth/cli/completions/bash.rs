//! The script for bash.

use std::fmt::Write;

use super::{Value, paths, places};

const BEGINNING: &str = r#"# Completes `hearth` in bash.
_hearth() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local path=hearth word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path $word" in
"#;

pub fn script() -> String {
    let mut text = BEGINNING.to_owned();
    let _ = write!(
        text,
        "            {}) path=\"$path $word\" ;;\n        esac\n    done\n",
        paths("|")
    );
    text.push_str("    COMPREPLY=()\n    case \"$path $previous\" in\n");
    for place in places() {
        for setting in place.options {
            let Some(name) = setting.value else { continue };
            let reply = match super::value(name) {
                Value::Words(words) => compgen(&format!("-W '{}'", words.join(" "))),
                Value::Directory => compgen("-d"),
                Value::File => compgen("-f"),
                Value::Free => String::new(),
            };
            let (path, option) = (&place.path, setting.name);
            let _ = writeln!(text, "        '{path} --{option}') {reply}return ;;");
        }
    }
    text.push_str("    esac\n    case \"$path\" in\n");
    for place in places() {
        let members = place.members.iter().map(|member| member.name.to_owned());
        let options = place.options.iter().map(|one| format!("--{}", one.name));
        let mut words: Vec<String> = members.chain(options).collect();
        if let Value::Words(operand) = place.operand {
            words.extend(operand);
        }
        words.push("--help".to_owned());
        if place.path == "hearth" {
            words.push("--version".to_owned());
        }
        let reply = compgen(&format!("-W '{}'", words.join(" ")));
        let _ = writeln!(text, "        '{}') {reply};;", place.path);
    }
    text.push_str("    esac\n}\ncomplete -F _hearth hearth\n");
    text
}

fn compgen(what: &str) -> String {
    format!("mapfile -t COMPREPLY < <(compgen {what} -- \"$current\"); ")
}
