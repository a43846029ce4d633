//! `hearth tls`: creates and shows the server's certificate.

mod names;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::arguments::Arguments;
use super::command::Command;
use super::config::{get_value, set_value};
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::door::{Configuration, Door, settings};
use super::running_server::RunningServer;
use super::table;
use base::clock::{Clock, Timestamp};
use net::tls::self_signed::{MOST_DAYS, make};
use net::tls::{fingerprint, inspect, load_certificates};
use serde_json::json;

pub const COMMAND: Command = Command::new("tls: Create and show the server's TLS certificate")
    .members(&[
        Command::new(
            "\
self-signed: Create a self-signed certificate for this machine
Writes cert.pem and key.pem to the data directory, for this machine's names and addresses, and
sets `tls` in the configuration if it is not set. Browsers warn about such a certificate until
it is accepted: compare its fingerprint then.
--name NAME...  Another name or address of the server; may be
                given more than once
--days N        Valid for N days (default: 365)
--force         Replace an existing certificate",
        )
        .ask_with(Configuration::Mended, self_signed),
        Command::new(
            "\
show: Show the certificate: its fingerprint, names and expiry
--json
--data-dir",
        )
        .run(show),
    ]);

/// The files in the data directory.
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";
/// Default validity of a certificate. Scanners object to more than a year.
const DAYS: u64 = 365;
/// Every client gets the certificate anyway, so everybody may read it.
const CERTIFICATE_MODE: u32 = 0o644;
const KEY_MODE: u32 = 0o600;

/// `hearth tls self-signed`
fn self_signed(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let days = arguments.number("days", 1..=MOST_DAYS)?.unwrap_or(DAYS);
    let mut names = Vec::new();
    for name in arguments.texts("name")? {
        let name = names::normalised(name)
            .ok_or_else(|| arguments.usage(format!("--name {name:?} is not a name or address")))?;
        names.push(name);
    }
    let directory = door.directory()?.clone();
    directory.check_is_configured()?;
    let file = directory.config();
    let folder = std::path::absolute(directory.path()).unwrap_or(directory.path().to_owned());
    let certificate = folder.join(CERTIFICATE);
    let key = folder.join(KEY);
    if !arguments.has("force")
        && let Some(there) = [&certificate, &key].into_iter().find(|path| path.exists())
    {
        return Err(CliError::failed(format!(
            "{} exists already; `hearth tls show` shows it, and --force replaces it",
            there.display()
        )));
    }
    names.extend(names::of_this_machine());
    names::deduplicate(&mut names);
    let made = make(&names, days, Clock::system().now()).map_err(CliError::failed)?;
    // The key first: a server that reloads in between finds a pair that does not
    // match, and keeps its old one.
    write(&key, made.key.expose(), KEY_MODE, &file)?;
    write(&certificate, &made.certificate, CERTIFICATE_MODE, &file)?;
    let is_new = adopt(door)?;
    writeln!(context.output, "Created {}\n", certificate.display())?;
    CertificateSummary::of(&certificate)?.print(context)?;
    writeln!(context.output)?;
    advise(&directory, &certificate, is_new, context)
}

/// Writes a file atomically, for the owner of the configuration: under `sudo`, that
/// is the user who runs the server.
fn write(path: &Path, text: &str, mode: u32, beside: &Path) -> CliResult {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let written = || -> io::Result<()> {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file: File = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        let owner = fs::metadata(beside)?;
        let ours = file.metadata()?;
        if (ours.uid(), ours.gid()) != (owner.uid(), owner.gid()) {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    written()
        .map_err(|error| CliError::failed(format!("{} cannot be written: {error}", path.display())))
}

/// Sets `tls` in the configuration, unless a certificate is set there. Returns
/// whether it was set.
fn adopt(door: &mut Door) -> Result<bool, CliError> {
    if !get_value(door, "tls.cert")?.is_null() {
        return Ok(false);
    }
    let mut section = json!({"cert": CERTIFICATE, "key": KEY});
    let ca_file = get_value(door, "tls.ca_file")?;
    if !ca_file.is_null() {
        section["ca_file"] = ca_file;
    }
    set_value(door, "tls", section)?;
    Ok(true)
}

/// What to do next.
fn advise(
    directory: &DataDirectory,
    certificate: &Path,
    is_new: bool,
    context: &mut CliContext,
) -> CliResult {
    let running = RunningServer::find(directory);
    let current = settings(directory, Configuration::Needed)?.current();
    let in_use = current.tls.identity().map(|(path, _)| path.to_owned());
    let next = match &running {
        _ if in_use.as_deref() != Some(certificate) => format!(
            "The configuration uses another certificate. To use this one: hearth config set tls \
             '{{\"cert\": \"{CERTIFICATE}\", \"key\": \"{KEY}\"}}'"
        ),
        Some(server) if server.certificate.as_deref() == Some(certificate) => format!(
            "The running server (process {}) uses it from the next connection.",
            server.process()
        ),
        Some(server) => format!(
            "Restart the server (process {}). It then accepts only https:// and wss://.",
            server.process()
        ),
        None => "From its next start the server accepts only https:// and wss://.".to_owned(),
    };
    writeln!(context.output, "{next}")?;
    if is_new {
        context.print(format_args!(
            "Browsers warn about it once: compare the SHA-256 above with the one that they show.\n\
             For programs, copy {CERTIFICATE} (never {KEY}) to their machine and give them its \
             path, for example:\n  \
             curl --cacert {CERTIFICATE} https://HOST:PORT/health\n  \
             hearth chat --ca-file {CERTIFICATE} --url wss://HOST:PORT/ws --user NAME"
        ))?;
    }
    Ok(())
}

/// `hearth tls show`
fn show(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let config = directory.settings()?.current();
    let Some((path, _)) = config.tls.identity() else {
        return Err(CliError::failed(
            "no certificate is configured (tls.cert); `hearth tls self-signed` creates one",
        ));
    };
    let shown = CertificateSummary::of(path)?;
    if arguments.has("json") {
        return table::print_json(context, &json!(shown));
    }
    writeln!(context.output, "{}\n", shown.path.display())?;
    shown.print(context)
}

/// The parts of a certificate that are shown.
#[derive(Serialize)]
struct CertificateSummary {
    path: PathBuf,
    names: Vec<String>,
    /// When it expires.
    until: Timestamp,
    #[serde(rename = "sha256")]
    fingerprint: String,
}

impl CertificateSummary {
    /// Reads the first certificate of a file.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn of(path: &Path) -> Result<CertificateSummary, CliError> {
        let certificates = load_certificates(path).map_err(CliError::failed)?;
        let leaf = &certificates[0];
        let found = inspect(leaf).ok_or_else(|| {
            CliError::failed(format!(
                "{} does not contain an X.509 certificate",
                path.display()
            ))
        })?;
        Ok(CertificateSummary {
            path: path.to_owned(),
            names: found.names,
            until: found.until,
            fingerprint: fingerprint(leaf),
        })
    }

    fn print(&self, context: &mut CliContext) -> CliResult {
        writeln!(context.output, "  Names    {}", self.names.join(", "))?;
        writeln!(context.output, "  Expires  {}", table::time(self.until))?;
        context.print(format_args!("  SHA-256  {}", self.fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::Value;

    use super::*;
    use crate::cli::tests::DataDirectoryUnderTest;

    #[test]
    fn a_certificate_is_created_shown_and_replaced_only_with_force() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        fs::write(directory.config(), "{\"tls\": {\"ca_file\": \"ca.pem\"}}").unwrap();
        let none = root.run("tls show", "");
        assert!(none.errors.contains("hearth tls self-signed"), "{none:?}");

        let made = root.run("tls self-signed --name Pi.Example --name 192.0.2.7", "");
        assert_eq!(made.code, 0, "{made:?}");
        for part in [
            "pi.example, 192.0.2.7, ",
            "localhost",
            "127.0.0.1",
            "next start",
        ] {
            assert!(made.output.contains(part), "{part:?}: {}", made.output);
        }
        let key = directory.path().join(KEY);
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = fs::read_to_string(directory.config()).unwrap();
        for part in [
            "\"cert\": \"cert.pem\"",
            "\"key\": \"key.pem\"",
            "\"ca.pem\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let print = |output: &str| {
            let line = output
                .lines()
                .find(|line| line.contains("SHA-256"))
                .unwrap();
            line.rsplit(' ').next().unwrap().to_owned()
        };
        let shown = root.run("tls show", "");
        assert_eq!(print(&shown.output), print(&made.output));
        assert_eq!(print(&shown.output).len(), 32 * 3 - 1);
        let json = root.run("tls show --json", "");
        let json: Value = serde_json::from_str(&json.output).unwrap();
        assert_eq!(json["sha256"], print(&made.output));

        let before = fs::read(&key).unwrap();
        let refused = root.run("tls self-signed", "");
        assert_eq!(refused.code, 1);
        assert!(refused.errors.contains("--force"), "{refused:?}");
        assert_eq!(fs::read(&key).unwrap(), before);
        let forced = root.run("tls self-signed --force --days 10", "");
        assert_eq!(forced.code, 0, "{forced:?}");
        assert_ne!(fs::read(&key).unwrap(), before);
    }

    #[test]
    fn invalid_names_and_days_are_refused() {
        let root = DataDirectoryUnderTest::default();
        fs::write(root.data_directory().config(), "{}").unwrap();
        for (command, says) in [
            ("tls self-signed --name a/b", "--name"),
            ("tls self-signed --name pi_", "--name"),
            ("tls self-signed --days 900", "--days"),
        ] {
            let refused = root.run(command, "");
            assert_eq!(refused.code, 2, "{command}: {refused:?}");
            assert!(refused.errors.contains(says), "{refused:?}");
        }
    }
}
