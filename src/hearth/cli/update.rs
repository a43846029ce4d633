//! `hearth update`: says which version is installed and how, and with which command
//! another one takes its place.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::help::version;

pub const COMMAND: Command = Command::new(
    "\
update: Say which version is installed, and how to update it
Prints the command for how Hearth was installed: from a package, as a container's image or from
its source. Changes nothing and asks nobody for a newer version.",
)
.run(run);

/// Where the package puts the program, and what dpkg keeps about it.
const PACKAGED: (&str, &str) = ("/usr/bin/hearth", "/var/lib/dpkg/info/hearth.list");
/// Which an image sets to `image`.
const INSTALLATION: &str = "HEARTH_INSTALLATION";

/// How the program was installed.
#[derive(Debug, PartialEq, Eq)]
enum Installation {
    Package,
    Image,
    /// Built in this folder, and run from there.
    Source(PathBuf),
    /// `make install` or an archive, below this prefix.
    Prefix(PathBuf),
}

impl Installation {
    fn of(program: &Path, is_image: bool, is_file: &dyn Fn(&Path) -> bool) -> Installation {
        if is_image {
            return Installation::Image;
        }
        if program == Path::new(PACKAGED.0) && is_file(Path::new(PACKAGED.1)) {
            return Installation::Package;
        }
        let source = program
            .ancestors()
            .filter(|folder| folder.ends_with("target"))
            .filter_map(Path::parent)
            .find(|folder| is_file(&folder.join("Cargo.toml")));
        if let Some(source) = source {
            return Installation::Source(source.to_owned());
        }
        // Above PREFIX/bin/hearth.
        let prefix = program.ancestors().nth(2).unwrap_or(Path::new("/"));
        Installation::Prefix(prefix.to_owned())
    }

    fn name(&self) -> &'static str {
        match self {
            Installation::Package => "installed from a package",
            Installation::Image => "in a container's image",
            Installation::Source(_) => "built from source",
            Installation::Prefix(_) => "installed from source or an archive",
        }
    }

    /// What a person types, `NEW` being the version they want.
    fn commands(&self) -> Vec<String> {
        let processor = match ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "arm" => "armhf",
            other => other,
        };
        match self {
            Installation::Package => {
                vec![format!("sudo apt install ./hearth_NEW_{processor}.deb")]
            }
            Installation::Image => vec![
                format!("podman load --input hearth-NEW-{processor}.oci.tar"),
                "then replace the container by one of the new image, with the same volume"
                    .to_owned(),
            ],
            Installation::Source(folder) => vec![format!(
                "git -C {0} pull && make -C {0} build",
                folder.display()
            )],
            Installation::Prefix(prefix) => {
                let prefix = prefix.display();
                vec![
                    format!("git pull && make install PREFIX={prefix}   (in the source)"),
                    format!(
                        "tar -xzf hearth-NEW-{processor}.tar.gz --strip-components=1 -C {prefix}   \
                         (the archive)"
                    ),
                ]
            }
        }
    }
}

/// `hearth update`
fn run(_: &Arguments, context: &mut CliContext) -> CliResult {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("the program's own path: {error}")))?;
    let is_image = context.variable(INSTALLATION).as_deref() == Some("image");
    let installation = Installation::of(&program, is_image, &|path| path.is_file());
    let mut text = format!("hearth {}, {}\n", version(), installation.name());
    text.push_str("To update it:\n");
    for command in installation.commands() {
        text.push_str(&format!("  {command}\n"));
    }
    text.push_str(
        "A server that starts with an older database copies it to backups/ before it upgrades it.\n\
         `hearth help changelog` has what changed.",
    );
    context.print(format_args!("{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_that_of_the_installation() {
        let is_file = |path: &Path| {
            ["/var/lib/dpkg/info/hearth.list", "/src/hearth/Cargo.toml"]
                .iter()
                .any(|file| path == Path::new(file))
        };
        for (program, is_image, expected, says) in [
            (
                "/usr/bin/hearth",
                false,
                Installation::Package,
                "apt install ./hearth_NEW_",
            ),
            (
                "/usr/bin/hearth",
                true,
                Installation::Image,
                "load --input hearth-NEW-",
            ),
            (
                "/src/hearth/target/release/hearth",
                false,
                Installation::Source("/src/hearth".into()),
                "make -C /src/hearth build",
            ),
            (
                "/usr/local/bin/hearth",
                false,
                Installation::Prefix("/usr/local".into()),
                "make install PREFIX=/usr/local",
            ),
        ] {
            let found = Installation::of(Path::new(program), is_image, &is_file);
            assert_eq!(found, expected, "{program}");
            assert!(found.commands()[0].contains(says), "{program}");
        }
    }
}
