//! The name under which a person can call this program again, in what it prints.

use std::cell::OnceCell;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the texts call the program.
const NAME: &str = "hearth";

/// How a person can call this program again: by name if a shell finds it, else by
/// the path that was used.
fn name() -> String {
    let called = env::args().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if !called.contains('/') || is_found(Path::new(&called), env::split_paths(&path)) {
        NAME.to_owned()
    } else {
        called
    }
}

/// Whether the first `hearth` of these directories is this program.
fn is_found(called: &Path, mut directories: impl Iterator<Item = PathBuf>) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let found = directories.find_map(|directory| file(&directory.join(NAME)));
    found.is_some() && found == file(called)
}

/// Replaces the program's name in the commands that are written to `inner`.
pub struct Renamed<'a> {
    inner: &'a mut dyn Write,
    /// Looked for with the first command.
    name: OnceCell<String>,
    /// Whether a word is a command.
    is_command: &'a dyn Fn(&str) -> bool,
}

impl<'a> Renamed<'a> {
    pub fn new(inner: &'a mut dyn Write, is_command: &'a dyn Fn(&str) -> bool) -> Renamed<'a> {
        Renamed {
            inner,
            name: OnceCell::new(),
            is_command,
        }
    }

    /// The text with `hearth` replaced where a command follows.
    fn renamed(&self, text: &str) -> String {
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(place) = rest.find(NAME) {
            let (before, from) = rest.split_at(place);
            renamed.push_str(before);
            let begins = !renamed
                .ends_with(|last: char| last.is_alphanumeric() || matches!(last, '/' | '.' | '-'));
            rest = &from[NAME.len()..];
            let word = rest.strip_prefix(' ').map(|next| {
                let end = next.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
                &next[..end.unwrap_or(next.len())]
            });
            let is_called = begins && word.is_some_and(|word| (self.is_command)(word));
            let shown = is_called.then(|| self.name.get_or_init(name).as_str());
            renamed.push_str(shown.unwrap_or(NAME));
        }
        renamed + rest
    }
}

impl Write for Renamed<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(text) {
            Ok(readable) if readable.contains(NAME) => {
                self.inner.write_all(self.renamed(readable).as_bytes())?;
            }
            _ => self.inner.write_all(text)?,
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::TemporaryDirectory;

    #[test]
    fn a_shell_finds_the_program_by_a_link_and_before_another_of_its_name() {
        let folder = TemporaryDirectory::new();
        let [own, linked, other, empty] =
            ["own", "linked", "other", "empty"].map(|name| folder.path().join(name));
        for directory in [&own, &linked, &other, &empty] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(own.join(NAME), "").unwrap();
        fs::write(other.join(NAME), "").unwrap();
        std::os::unix::fs::symlink(own.join(NAME), linked.join(NAME)).unwrap();
        for (directories, expected) in [
            (vec![&empty, &linked, &other], true),
            (vec![&other, &own], false),
            (vec![&empty], false),
        ] {
            let found = is_found(
                &own.join(NAME),
                directories.iter().map(|one| one.to_path_buf()),
            );
            assert_eq!(found, expected, "{directories:?}");
        }
    }

    #[test]
    fn commands_name_the_program_as_it_was_called() {
        for (text, expected) in [
            ("run `hearth chat`", "run `./hearth chat`"),
            ("hearth config set a b", "./hearth config set a b"),
            (
                "-> hearth chat\n   hearth config",
                "-> ./hearth chat\n   ./hearth config",
            ),
            (
                "hearth listening on http://x",
                "hearth listening on http://x",
            ),
            (
                "hearth: no hearth.db in /hearth chat",
                "hearth: no hearth.db in /hearth chat",
            ),
            ("systemctl restart hearth", "systemctl restart hearth"),
            ("hearth chatter", "hearth chatter"),
        ] {
            let mut written = Vec::new();
            let is_command = |word: &str| ["chat", "config"].contains(&word);
            let mut renamed = Renamed::new(&mut written, &is_command);
            renamed.name = OnceCell::from("./hearth".to_owned());
            renamed.write_all(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }
}
