//! `hearth completions`: scripts that complete the command line in a shell.
//!
//! A script passes the words to `hearth __complete`, which answers from the table of
//! commands, and leaves files and directories to the shell.

use super::COMMANDS;
use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use config::{PRESETS, documentation};

pub const COMMAND: Command = Command::new(
    "\
completions SHELL: Print a script that completes `hearth` in a shell
SHELL is bash, zsh or fish. `make install` installs all three.",
)
.run(run);

const BASH: &str = r#"# Completes `hearth` in bash.
_hearth() {
    local current=${COMP_WORDS[COMP_CWORD]} offers
    mapfile -t offers < <(hearth __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=()
    case ${offers[0]} in
        :DIR) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        :FILE) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        :*) ;;
        *) mapfile -t COMPREPLY < <(compgen -W "${offers[*]%%$'\t'*}" -- "$current") ;;
    esac
}
complete -F _hearth hearth
"#;

/// As a file in fpath the function is called at once; when sourced it is registered.
const ZSH: &str = r#"#compdef hearth
# Completes `hearth` in zsh.
_hearth() {
    local -a offers
    offers=("${(@f)$(hearth __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    case ${offers[1]} in
        :DIR) _files -/ ;;
        :FILE) _files ;;
        :*) _message "${offers[1]#:}" ;;
        *) offers=("${(@)offers/$'\t'/:}")
           _describe -t commands hearth offers ;;
    esac
}
if [[ "${funcstack[1]}" == _hearth ]]; then
    _hearth "$@"
else
    compdef _hearth hearth
fi
"#;

const FISH: &str = r#"# Completes `hearth` in fish.
function __hearth_offers
    set -l words (commandline -opc)[2..]
    set -l current (commandline -ct)
    set -l offers (hearth __complete $words "$current" 2>/dev/null)
    switch "$offers[1]"
        case :DIR
            __fish_complete_directories "$current"
        case :FILE
            __fish_complete_path "$current"
        case ':*'
        case '*'
            printf '%s\n' $offers
    end
end
complete -c hearth -f -a '(__hearth_offers)'
"#;

fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let script = match arguments.required(0) {
        "bash" => BASH,
        "zsh" => ZSH,
        "fish" => FISH,
        shell => {
            return Err(arguments.usage(format!("SHELL must be bash, zsh or fish, not {shell:?}")));
        }
    };
    Ok(context.output.write_all(script.as_bytes())?)
}

/// `hearth __complete WORD...`: prints what the last word may be, after those before it.
/// Each line is a word, or a word, a tab and what it means; or the only line is a colon and
/// the name of a value that no list has, such as `:DIR`.
pub fn complete(words: &[&str], context: &mut CliContext) -> CliResult {
    let before = words.split_last().map_or(words, |(_, before)| before);
    let (mut members, mut command) = (COMMANDS, None);
    for word in before {
        if let Some(member) = members.iter().find(|member| member.name() == *word) {
            (members, command) = (member.members, Some(member));
        }
    }
    let options = command.map(Command::options).unwrap_or_default();
    let last = before.last().and_then(|word| word.strip_prefix("--"));
    let asking = options.iter().find(|option| Some(option.name) == last);
    if let Some(name) = asking.and_then(|option| option.value) {
        return match values(name).as_slice() {
            [] => context.print(format_args!(":{}", name.trim_end_matches('.'))),
            values => context.print(values.join("\n")),
        };
    }
    let mut offer = |word: &str, help: &str| {
        context.print(format_args!(
            "{word}\t{}",
            help.lines().next().unwrap_or_default()
        ))
    };
    for member in members {
        offer(member.name(), member.summary())?;
    }
    for option in &options {
        offer(&format!("--{}", option.name), &option.help)?;
    }
    if command.is_none() {
        offer("--version", "Print the version")?;
    }
    offer("--help", "Print this help")?;
    let operand = command.and_then(|command| command.operands().next());
    let operands = operand.map(values).unwrap_or_default();
    operands.iter().try_for_each(|word| context.print(word))
}

/// The words that a value or an operand of this name may be; none if there is no list of them.
fn values(name: &str) -> Vec<String> {
    let words = match name.trim_matches(['[', ']', '.']) {
        "ROLE" => "viewer user admin",
        "MODE" => "ask allow deny",
        "STATE" => "pending held delivered dead",
        "WHAT" => "day month purpose",
        "SHELL" => "bash zsh fish",
        "PROVIDER" => return PRESETS.iter().map(|one| one.name.to_owned()).collect(),
        "KEY" => {
            let keys = documentation().into_iter().map(|setting| setting.key);
            // Keys with a variable part cannot be completed.
            return keys.filter(|key| !key.contains(['[', 'N'])).collect();
        }
        _ => "",
    };
    words.split_whitespace().map(str::to_owned).collect()
}
