//! Files in the workspace: listing, reading and writing them.

mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use serde_json::{Value, json};

use super::definition::{Arguments, Definition, Tool, ToolContext, required_text, text};
use super::output::{minute, page, text_of};
use base::clock::Timestamp;
use base::measure::byte_count;
use store::{Store, Viewer};
pub(crate) use workspace::Workspace;

/// Most bytes of a file that are read.
const MAX_READ: usize = 2 * 1024 * 1024;
/// Most bytes that are written to a file.
const MAX_WRITTEN: usize = 1024 * 1024;
/// Most entries of a directory that are listed.
const MAX_LISTED: usize = 300;

/// The three tools, for the workspace in this directory or the default one.
pub(super) fn all(directory: Option<&Path>) -> Vec<Arc<dyn Tool>> {
    let path = json!({"type": "string", "description": "Such as notes/list.txt"});
    let list = Definition::builtin(
        "list_files",
        "List a directory of your workspace.",
        json!({"path": {"type": "string"}}),
        &[],
    );
    let read = Definition::builtin(
        "read_file",
        "Read a text file of your workspace.",
        json!({
            "path": path,
            "offset": {"type": "integer", "description": "Read on at this character"},
        }),
        &["path"],
    );
    let write = Definition::builtin(
        "write_file",
        "Write a whole text file in your workspace.",
        json!({"path": path, "content": {"type": "string"}}),
        &["path", "content"],
    );
    // Nobody knows who put a file there.
    let reader = |definition: Definition| definition.read_only().bringing_outside_text();
    [
        (reader(list), Action::List),
        (reader(read), Action::Read),
        (write, Action::Write),
    ]
    .map(|(definition, action)| {
        Arc::new(FileTool {
            definition,
            directory: directory.map(Path::to_owned),
            action,
        }) as Arc<dyn Tool>
    })
    .into()
}

#[derive(Clone, Copy)]
enum Action {
    List,
    Read,
    Write,
}

struct FileTool {
    definition: Definition,
    directory: Option<PathBuf>,
    action: Action,
}

impl Tool for FileTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, _: &Store, _: &Viewer) -> Option<String> {
        let path = text(arguments, "path");
        Some(match self.action {
            Action::List => match path {
                Some(path) => format!("list the files in {path}"),
                None => "list the files in its workspace".to_owned(),
            },
            Action::Read => format!("read the file {}", path?),
            Action::Write => {
                let content = arguments.get("content")?.as_str()?;
                format!(
                    "write the file {} ({}): {content}",
                    path?,
                    byte_count(content.len())
                )
            }
        })
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        let workspace = Workspace::new(self.directory.as_deref(), context.data_dir);
        let path = || required_text(arguments, "path");
        match self.action {
            Action::List => list(&workspace, text(arguments, "path").unwrap_or_default()),
            Action::Read => read(&workspace, path()?, arguments),
            Action::Write => write(&workspace, path()?, arguments),
        }
    }
}

fn list(workspace: &Workspace, path: &str) -> Result<String, String> {
    let listing = workspace.list(path)?;
    let entries = listing.entries;
    if entries.is_empty() {
        return Ok("There are no files here.".to_owned());
    }
    let mut lines: Vec<String> = entries
        .iter()
        .take(MAX_LISTED)
        .map(|entry| match entry.kind {
            FileType::Directory => format!("{}/", entry.name),
            FileType::RegularFile => {
                let changed = Timestamp::from_millis(entry.changed.saturating_mul(1000));
                format!(
                    "{} ({}, {})",
                    entry.name,
                    byte_count(entry.size),
                    minute(changed)
                )
            }
            FileType::Symlink => format!("{} (a symbolic link, not followed)", entry.name),
            _ => format!("{} (no regular file)", entry.name),
        })
        .collect();
    if entries.len() > MAX_LISTED || listing.is_cut {
        let more = if listing.is_cut { "at least " } else { "" };
        lines.push(format!("[{more}{} more]", entries.len() - lines.len()));
    }
    Ok(lines.join("\n"))
}

fn read(workspace: &Workspace, path: &str, arguments: &Arguments) -> Result<String, String> {
    let content = workspace.read(path, MAX_READ)?;
    let size = content.size;
    let is_whole = size <= MAX_READ as u64;
    let text = text_of(content.bytes)
        .ok_or_else(|| format!("{path:?} is binary, {}", byte_count(size)))?;
    if text.is_empty() {
        return Ok("[the file is empty]".to_owned());
    }
    let mut shown = page(&text, arguments)?;
    if !is_whole {
        shown.push_str(&format!(
            "\n[the file has {size} bytes; what is beyond the first {MAX_READ} cannot be read]"
        ));
    }
    Ok(shown)
}

fn write(workspace: &Workspace, path: &str, arguments: &Arguments) -> Result<String, String> {
    let content = arguments.get("content").and_then(Value::as_str);
    let content = content.unwrap_or_default();
    if content.len() > MAX_WRITTEN {
        return Err(format!(
            "at most {MAX_WRITTEN} bytes can be written, not {}",
            content.len()
        ));
    }
    let existed = workspace.write(path, content.as_bytes())?;
    let done = if existed { "Replaced" } else { "Wrote" };
    Ok(format!("{done} {path} ({}).", byte_count(content.len())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Household;
    use super::*;

    #[test]
    fn a_file_is_written_listed_and_read() {
        let household = Household::new();
        let run = |tool: &str, arguments: Value| household.run(tool, arguments);
        assert_eq!(
            run("list_files", json!({})),
            Ok("There are no files here.".to_owned())
        );
        let bread = json!({"path": "lists/shopping.txt", "content": "bread\nmilk\n"});
        let written = run("write_file", bread.clone());
        assert_eq!(
            written,
            Ok("Wrote lists/shopping.txt (11 bytes).".to_owned())
        );
        let again = run("write_file", bread).unwrap();
        assert_eq!(again, "Replaced lists/shopping.txt (11 bytes).");
        assert_eq!(run("list_files", json!({})), Ok("lists/".to_owned()));
        let listed = run("list_files", json!({"path": "lists"})).unwrap();
        assert!(listed.starts_with("shopping.txt (11 bytes, 20"), "{listed}");
        let read = run("read_file", json!({"path": "lists/shopping.txt"}));
        assert_eq!(read, Ok("bread\nmilk\n".to_owned()));
        let problem = run("read_file", json!({"path": "../hearth.db"})).unwrap_err();
        assert!(problem.contains("leads out"), "{problem}");
    }

    #[test]
    fn sizes_are_bounded() {
        let household = Household::new();
        let files = household.directory().join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("binary"), [1, 0, 2]).unwrap();
        std::fs::write(files.join("empty"), "").unwrap();
        std::fs::write(files.join("large"), "ü".repeat(MAX_READ)).unwrap();
        let read = |path: &str, offset: usize| {
            household.run("read_file", json!({"path": path, "offset": offset}))
        };
        assert!(
            read("binary", 0)
                .unwrap_err()
                .contains("is binary, 3 bytes")
        );
        assert_eq!(read("empty", 0), Ok("[the file is empty]".to_owned()));
        let beginning = read("large", 0).unwrap();
        assert!(beginning.starts_with("üüü"));
        assert!(beginning.contains("cannot be read]"), "{}", beginning.len());
        assert!(beginning.chars().count() < 16_000);
        let end = read("large", MAX_READ / 2 - 3).unwrap();
        assert!(end.starts_with("üüü\n[characters"), "{end}");
        assert!(read("large", MAX_READ).unwrap_err().contains("offset"));
        let big = json!({"path": "x", "content": "x".repeat(MAX_WRITTEN + 1)});
        assert!(
            household
                .run("write_file", big)
                .unwrap_err()
                .contains("at most")
        );
        for number in 0..MAX_LISTED + 5 {
            std::fs::write(files.join(format!("{number}.txt")), "").unwrap();
        }
        let listed = household.run("list_files", json!({})).unwrap();
        assert!(listed.ends_with("[8 more]"), "{listed}");
    }

    #[test]
    fn a_person_is_told_which_file() {
        let household = Household::new();
        for (tool, arguments, intent) in [
            ("list_files", json!({}), "list the files in its workspace"),
            ("list_files", json!({"path": "a"}), "list the files in a"),
            ("read_file", json!({"path": "a.txt"}), "read the file a.txt"),
            (
                "write_file",
                json!({"path": "notes.txt", "content": "hü"}),
                "write the file notes.txt (3 bytes): hü",
            ),
            (
                "write_file",
                json!({"path": "notes.txt", "content": "h"}),
                "write the file notes.txt (1 byte): h",
            ),
        ] {
            let tools = all(None);
            let tool = tools
                .iter()
                .find(|known| known.spec().name == tool)
                .unwrap();
            let found = tool.intent(
                arguments.as_object().unwrap(),
                household.store(),
                &Viewer::server(),
            );
            assert_eq!(found.as_deref(), Some(intent));
        }
    }
}
