//! `hearth config edit`: a draft beside the file, opened in the person's editor.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use serde_json::json;

use super::report;
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::Door;
use crate::server::StartError;
use base::files;

/// The draft of `hearth config edit` in the data directory.
pub(super) const DRAFT: &str = "config.draft.json";
/// The file as it was when the draft was begun, beside it.
const DRAFT_BASE: &str = "config.draft.base.json";

/// `hearth config edit`
pub(super) fn edit(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = door.directory()?.clone();
    directory.check_is_configured()?;
    let was = fs::read_to_string(directory.config())?;
    let (draft, base) = (
        directory.path().join(DRAFT),
        directory.path().join(DRAFT_BASE),
    );
    if draft.exists() {
        if fs::read_to_string(&base).is_ok_and(|base| base == was) {
            context.note("This is the draft of an earlier edit.")?;
        } else {
            let aside = set_aside(&draft)?;
            context.note(format_args!(
                "The file has changed since the draft of an earlier edit was begun. That draft \
                 is now {}; this is a new one.",
                aside.display()
            ))?;
        }
    }
    if !draft.exists() {
        write_new(&base, &was)?;
        write_new(&draft, &was)?;
    }
    let remove = || fs::remove_file(&draft).and_then(|()| fs::remove_file(&base));
    loop {
        open_editor(&draft, context)?;
        let text = fs::read_to_string(&draft).map_err(|error| match error.kind() {
            ErrorKind::NotFound => CliError::failed(format!(
                "nothing was changed: the editor left no {}",
                draft.display()
            )),
            _ => CliError::failed(format!("{}: {error}", draft.display())),
        })?;
        if text == was {
            remove()?;
            return context.note("Nothing was changed.");
        }
        let request = json!({ "type": "replace_config", "text": text, "was": was });
        let error = match door.ask(&request) {
            Ok(changed) => {
                remove()?;
                let done = format!("Saved in {}", directory.config().display());
                return report(door, &done, &changed, arguments, context);
            }
            Err(error) => error,
        };
        // A server may start while the person writes.
        door.release();
        context.note(error.message().replace("; ", "\n"))?;
        if fs::read_to_string(directory.config())? != was {
            let aside = set_aside(&draft)?;
            return Err(CliError::failed(format!(
                "nothing was saved; your draft is now {}, and `hearth config edit` opens the file \
                 as it is now",
                aside.display()
            )));
        }
        let again = context.ask("Edit it again? (yes or no)", "yes")?;
        if !matches!(again.as_deref(), Some("yes" | "y")) {
            return Err(CliError::failed(format!(
                "nothing was changed; the draft is {}, and `hearth config edit` opens it again",
                draft.display()
            )));
        }
    }
}

/// Writes a file of the owner's alone, in place of one that may be there.
fn write_new(path: &Path, text: &str) -> CliResult {
    let _ = fs::remove_file(path);
    files::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| CliError::failed(StartError::unwritable(path, &error)))
}

/// Renames a draft to a name that is free, and returns that.
fn set_aside(draft: &Path) -> Result<PathBuf, CliError> {
    let mut names = (1..).map(|number| draft.with_file_name(format!("config.draft.{number}.json")));
    let aside = names.find(|path| !path.exists()).unwrap_or_default();
    fs::rename(draft, &aside)
        .map_err(|error| CliError::failed(StartError::unwritable(draft, &error)))?;
    Ok(aside)
}

fn open_editor(draft: &Path, context: &CliContext) -> CliResult {
    let editor = context
        .variable("VISUAL")
        .or_else(|| context.variable("EDITOR"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // Its name may come with arguments, as for other programs.
    let mut process = Process::new("sh");
    process
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(draft);
    match process.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(CliError::failed(format!(
            "{editor:?} failed; nothing was changed"
        ))),
        Err(error) => Err(CliError::failed(format!(
            "{editor:?} cannot be started: {error}"
        ))),
    }
}
