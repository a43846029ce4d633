//! `hearth tls`: creates and shows the server's certificate.

pub mod names;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::arguments::Arguments;
use super::command::Command;
use super::config::{get_value, set_value};
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use super::door::{Configuration, Door, address_settings, settings};
use super::running_server::RunningServer;
use super::serve::reachable;
use super::table;
use crate::qr;
use base::clock::{Clock, Timestamp};
use config::{AUTHORITY, AUTHORITY_KEY, DEFAULT_PORT, HOUSEHOLD_CERTIFICATE};
use net::tls::household::{self, CERTIFICATE_MODE, KEY_MODE, write};
use net::tls::self_signed::{MOST_DAYS, make};
use net::tls::{fingerprint, inspect, load_certificates};
use serde_json::{Value, json};

pub const COMMAND: Command = Command::new("tls: Create and show the server's TLS certificate")
    .members(&[
        Command::new(
            "\
household: Set up https that the phones and computers of a home trust
Makes an authority that can vouch for this machine's names and private addresses and for nothing
else, and sets `tls.household`: https with a certificate from it, which the running server renews,
beside plain http. Each device trusts the authority once; the server's page /trust says how. An
existing authority is kept.
--name NAME...  Another name or private address of the server; may be
                given more than once
--force         Replace the authority: every device must trust the new one",
        )
        .ask_with(Configuration::Mended, household),
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
/// How the authority is shown, and given to devices.
const TRUST: &str = "/trust";
/// Default validity of a certificate. Scanners object to more than a year.
const DAYS: u64 = 365;

/// `hearth tls household`
fn household(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let mut names = given_names(arguments)?;
    if let Some(name) = names.iter().find(|name| !names::is_of_home(name)) {
        return Err(arguments.usage(format!(
            "--name {name}: an authority for that could vouch for servers of others too; give a \
             name with a dot, such as {name}.local, or a private address"
        )));
    }
    let directory = door.directory()?.clone();
    directory.check_is_configured()?;
    let folder = std::path::absolute(directory.path()).unwrap_or(directory.path().to_owned());
    let authority = folder.join(AUTHORITY);
    let is_there = authority.exists() || folder.join(AUTHORITY_KEY).exists();
    if is_there && !arguments.has("force") && !names.is_empty() {
        return Err(CliError::failed(format!(
            "{} exists already, and the names of an authority cannot be changed; --force replaces \
             it, and every device must then trust the new one",
            authority.display()
        )));
    }
    let now = Clock::system().now();
    if !is_there || arguments.has("force") {
        names.extend(names::of_this_machine());
        let allowed = get_value(door, "allowed_hosts")?;
        let allowed = allowed.as_array().into_iter().flatten();
        names.extend(allowed.filter_map(|name| names::normalised(name.as_str()?)));
        names.retain(|name| names::is_of_home(name));
        names::deduplicate(&mut names);
        household::make(&folder, &names::host(), &names, now).map_err(CliError::failed)?;
        writeln!(context.output, "Created {}\n", authority.display())?;
    }
    household::renew(&folder, now).map_err(CliError::failed)?;
    if get_value(door, "tls.household")? != json!(true) {
        let section = json!({"household": true});
        set_section(door, section, &["ca_file", "only"])?;
    }
    CertificateSummary::of(&authority)?.print(context)?;
    writeln!(context.output)?;
    advise_devices(&directory, &folder, context)
}

/// How the devices of the home come to trust the authority.
fn advise_devices(directory: &DataDirectory, folder: &Path, context: &mut CliContext) -> CliResult {
    let server = RunningServer::find(directory);
    let config = address_settings(directory)?.current();
    let in_use = folder.join(HOUSEHOLD_CERTIFICATE);
    let next = match &server {
        Some(server) if server.certificate.as_ref() == Some(&in_use) => "Then".to_owned(),
        Some(server) => format!(
            "Restart the server (process {}). It then speaks https too. Then",
            server.process()
        ),
        None => "From its next start the server speaks https too. Then".to_owned(),
    };
    let running = server.and_then(|server| server.addresses.first().copied());
    let configured = config.tcp_channels().next();
    let (bind, port) = configured.map_or((None, DEFAULT_PORT), |tcp| (tcp.bind, tcp.port));
    let configured = SocketAddr::new(bind.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), port);
    let address = reachable(running.unwrap_or(configured));
    let scheme = if config.tls.is_only() {
        "https"
    } else {
        "http"
    };
    let page = format!("{scheme}://{address}{TRUST}");
    writeln!(
        context.output,
        "{next} open this page on each phone and computer, compare the\n\
         SHA-256 above, and follow the steps there:\n  {page}"
    )?;
    if context.output_is_terminal
        && !address.ip().is_loopback()
        && let Ok(code) = qr::code(&page)
    {
        write!(context.output, "\n{code}")?;
    }
    Ok(())
}

/// The names of `--name`.
fn given_names(arguments: &Arguments) -> Result<Vec<String>, CliError> {
    let given = arguments.texts("name")?;
    let name = |name: &str| {
        names::normalised(name)
            .ok_or_else(|| arguments.usage(format!("--name {name:?} is not a name or address")))
    };
    given.into_iter().map(name).collect()
}

/// `hearth tls self-signed`
fn self_signed(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let days = arguments.number("days", 1..=MOST_DAYS)?.unwrap_or(DAYS);
    let mut names = given_names(arguments)?;
    let directory = door.directory()?.clone();
    directory.check_is_configured()?;
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
    write(&key, made.key.expose(), KEY_MODE).map_err(CliError::failed)?;
    write(&certificate, &made.certificate, CERTIFICATE_MODE).map_err(CliError::failed)?;
    let is_new = adopt(door)?;
    writeln!(context.output, "Created {}\n", certificate.display())?;
    CertificateSummary::of(&certificate)?.print(context)?;
    writeln!(context.output)?;
    advise(&directory, &certificate, is_new, context)
}

/// Sets `tls` in the configuration, unless a certificate is set there. Returns
/// whether it was set.
fn adopt(door: &mut Door) -> Result<bool, CliError> {
    let is_household = get_value(door, "tls.household")? == json!(true);
    if is_household || !get_value(door, "tls.cert")?.is_null() {
        return Ok(false);
    }
    let section = json!({"cert": CERTIFICATE, "key": KEY});
    set_section(door, section, &["ca_file"])?;
    Ok(true)
}

/// Sets `tls` at once, as a part of it alone may be wrong, and leaves these of its keys as they
/// are.
fn set_section(door: &mut Door, mut section: Value, kept: &[&str]) -> CliResult {
    for key in kept {
        let value = get_value(door, &format!("tls.{key}"))?;
        if !value.is_null() && value != json!(false) {
            section[*key] = value;
        }
    }
    set_value(door, "tls", section).map(drop)
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
            "no certificate is configured; `hearth tls household` makes one that phones can \
             trust, `hearth tls self-signed` one for programs",
        ));
    };
    let shown = CertificateSummary::of(path)?;
    let authority = config.tls.authority();
    let authority = authority.map(|path| CertificateSummary::of(&path));
    let authority = authority.transpose()?;
    if arguments.has("json") {
        let mut json = json!(shown);
        if let Some(authority) = authority {
            json["authority"] = json!(authority);
        }
        return table::print_json(context, &json);
    }
    writeln!(context.output, "{}\n", shown.path.display())?;
    shown.print(context)?;
    if let Some(authority) = authority {
        let path = authority.path.display();
        writeln!(context.output, "\n{path}, which devices trust ({TRUST})\n")?;
        authority.print(context)?;
    }
    Ok(())
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
    use std::fs;
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
    fn an_authority_is_made_once_and_for_names_of_the_home_alone() {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        let config = r#"{"tls": {"cert": "a.pem", "key": "b.pem", "ca_file": "ca.pem"},
            "allowed_hosts": ["home.example", "kitchen-nas"]}"#;
        fs::write(directory.config(), config).unwrap();
        fs::write(directory.path().join("ca.pem"), "").unwrap();
        let made = root.run("tls household --name pi.example --name 192.168.99.7", "");
        assert_eq!(made.code, 0, "{made:?}");
        for part in [
            "pi.example, 192.168.99.7, ",
            "localhost",
            "home.example",
            "/trust",
        ] {
            assert!(made.output.contains(part), "{part:?}: {}", made.output);
        }
        assert!(!made.output.contains("kitchen-nas"), "{}", made.output);
        for file in [AUTHORITY_KEY, "household.key.pem"] {
            let mode = fs::metadata(directory.path().join(file))
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o777, 0o600, "{file}");
        }
        let text = fs::read_to_string(directory.config()).unwrap();
        let text: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text["tls"], json!({"household": true, "ca_file": "ca.pem"}));

        let json: Value = serde_json::from_str(&root.run("tls show --json", "").output).unwrap();
        let print = json["authority"]["sha256"].as_str().unwrap();
        assert!(made.output.contains(print), "{json}");
        assert_eq!(json["names"], json["authority"]["names"]);
        assert!(root.run("tls show", "").output.contains(print));

        let before = fs::read(directory.path().join(AUTHORITY)).unwrap();
        let kept = || fs::read(directory.path().join(AUTHORITY)).unwrap() == before;
        assert_eq!(root.run("tls household", "").code, 0);
        let refused = root.run("tls household --name other.example", "");
        assert!(refused.errors.contains("--force") && kept(), "{refused:?}");
        for name in ["nas", "*.home.example", "192.0.2.7", "2001:db8::7"] {
            let refused = root.run(&format!("tls household --force --name {name}"), "");
            assert_eq!(refused.code, 2, "{name}: {refused:?}");
            assert!(refused.errors.contains("servers of others"), "{refused:?}");
        }
        assert!(kept());
        let set = root.run("config set tls.cert a.pem", "");
        assert!(set.errors.contains("tls.household"), "{set:?}");
        assert_eq!(root.run("tls household --force", "").code, 0);
        assert!(!kept());
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
