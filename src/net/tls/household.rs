//! The authority of one household, and the server's certificate that it vouches for: files
//! in the data directory. Phones and computers trust the authority once; the certificate is
//! renewed by the server.

use std::io;
use std::path::Path;
use std::time::Duration;

use ring::signature::KeyPair;

use super::certificate::{CertificateError, load_certificates, load_key};
use super::der::{SEQUENCE, element};
use super::inspect::{Inspected, inspect};
use super::issue::{Issued, Issuer, issue, of_authority, of_server, pair};
use base::clock::Timestamp;
use base::files;
use base::secret::random_bytes;
use config::{AUTHORITY, AUTHORITY_KEY, HOUSEHOLD_CERTIFICATE, HOUSEHOLD_KEY};

/// Every client gets the certificates anyway, so everybody may read them.
pub const CERTIFICATE_MODE: u32 = 0o644;
/// Keys are for the server alone.
pub const KEY_MODE: u32 = 0o600;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Nobody wants to go round all devices again soon.
const AUTHORITY_DAYS: u32 = 3_650;
/// With the hour that it is backdated, less than the 397 days that clients take.
const DAYS: u32 = 396;
/// How long before its end the certificate is renewed.
const RENEWAL: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Makes an authority that may vouch for these DNS names and addresses and for no others,
/// and writes it to the data directory. `host` tells a person which home it is of.
///
/// # Errors
/// A file cannot be written.
pub fn make(
    folder: &Path,
    host: &str,
    names: &[String],
    now: Timestamp,
) -> Result<(), CertificateError> {
    // Clients take two authorities with one name for one.
    let number = u32::from_be_bytes(random_bytes());
    let host: String = host.chars().take(32).collect();
    let name = format!("Hearth at {host} ({number:08X})");
    let until = now.plus(DAY * AUTHORITY_DAYS);
    let made = issue(&name, &of_authority(names), now, until, None);
    save(folder, (AUTHORITY, AUTHORITY_KEY), made)
}

/// Makes a new certificate of the server if the one that is there ends soon or is not from
/// this household's authority. Returns whether it did. The authority's key may be elsewhere
/// as long as there is nothing to do.
///
/// # Errors
/// The authority cannot be used, or a file cannot be written.
pub fn renew(folder: &Path, now: Timestamp) -> Result<bool, CertificateError> {
    let authority = read(&folder.join(AUTHORITY))?;
    let current = read(&folder.join(HOUSEHOLD_CERTIFICATE)).ok();
    let current = current.filter(|found| {
        found.issuer == authority.subject
            && found.from <= now
            && folder.join(HOUSEHOLD_KEY).exists()
    });
    let until = now.plus(DAY * DAYS).min(authority.until);
    // One that ends with its authority cannot be renewed.
    let is_due = |found: &Inspected| found.until.since(now) < RENEWAL && found.until < until;
    if current.is_some_and(|found| !is_due(&found)) {
        return Ok(false);
    }
    let issuer = issuer(folder, &authority)?;
    let first = authority.names.first().map_or("", String::as_str);
    let extensions = of_server(&authority.names);
    let made = issue(first, &extensions, now, until, Some(&issuer));
    save(folder, (HOUSEHOLD_CERTIFICATE, HOUSEHOLD_KEY), made)?;
    Ok(true)
}

/// Checks that the authority and its key can be used, and returns what its certificate says.
///
/// # Errors
/// They cannot.
pub fn check(folder: &Path) -> Result<Inspected, CertificateError> {
    let authority = read(&folder.join(AUTHORITY))?;
    issuer(folder, &authority)?;
    Ok(authority)
}

fn read(path: &Path) -> Result<Inspected, CertificateError> {
    let certificates = load_certificates(path)?;
    inspect(&certificates[0])
        .ok_or_else(|| CertificateError::malformed(path, "it is no X.509 certificate"))
}

fn issuer(folder: &Path, authority: &Inspected) -> Result<Issuer, CertificateError> {
    let path = folder.join(AUTHORITY_KEY);
    let key = load_key(&path)?;
    let pair = pair(key.secret_der()).map_err(|error| CertificateError::malformed(&path, error))?;
    match authority.key.ends_with(pair.public_key().as_ref()) {
        true => Ok(Issuer {
            name: element(SEQUENCE, &[&authority.subject]),
            pair,
        }),
        false => Err(CertificateError::of(
            &path,
            format_args!("is not the key of {AUTHORITY}: restore both from one backup"),
        )),
    }
}

/// Writes the key first: a server that reads in between finds a pair that does not match, and
/// keeps its old one.
fn save(
    folder: &Path,
    (certificate, key): (&str, &str),
    made: io::Result<Issued>,
) -> Result<(), CertificateError> {
    let certificate = folder.join(certificate);
    let made = made.map_err(|error| CertificateError::of(&certificate, error))?;
    write(&folder.join(key), made.key.expose(), KEY_MODE)?;
    write(&certificate, &made.certificate, CERTIFICATE_MODE)
}

/// Writes a file in place of one that may be there.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificateError> {
    files::replace(path, text, mode)
        .map_err(|error| CertificateError::of(path, format_args!("cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use base::clock::Clock;
    use base::testing::TemporaryDirectory;

    #[test]
    fn a_certificate_is_renewed_before_it_ends_and_never_outlives_its_authority() {
        let folder = TemporaryDirectory::new();
        let names = ["pi.local", "192.168.1.7", "fd00::7"].map(str::to_owned);
        let now = Clock::system().now();
        make(folder.path(), "pi", &names, now).unwrap();
        assert_eq!(check(folder.path()).unwrap().names, names);
        let leaf = || read(&folder.path().join(HOUSEHOLD_CERTIFICATE)).unwrap();
        let renewed = |days: u32| renew(folder.path(), now.plus(DAY * days)).unwrap();
        assert!(renewed(0));
        assert_eq!(leaf().names, names);
        assert!(leaf().until.since(leaf().from) <= DAY * 397);
        // (day, whether it is renewed)
        for (day, is_renewed) in [(0, false), (365, false), (366, true), (400, false)] {
            assert_eq!(renewed(day), is_renewed, "day {day}");
        }
        // In the last weeks of the authority there is nothing to win.
        assert!(renewed(AUTHORITY_DAYS - 20));
        let end = check(folder.path()).unwrap().until;
        assert_eq!(leaf().until, end);
        assert!(!renewed(AUTHORITY_DAYS - 10));

        // The clock was wrong, and is right again; a file has gone.
        assert!(renewed(0) && !renewed(0));
        fs::remove_file(folder.path().join(HOUSEHOLD_KEY)).unwrap();
        assert!(renewed(0));
        // Without the authority's key it goes on until there is something to do.
        fs::rename(folder.path().join(AUTHORITY_KEY), folder.path().join("usb")).unwrap();
        assert!(!renewed(0));
        let error = renew(folder.path(), now.plus(DAY * 380)).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("authority.key.pem cannot be read")
        );
        // Another authority takes nothing over.
        make(folder.path(), "pi", &names, now).unwrap();
        assert!(renewed(0));
        fs::rename(folder.path().join("usb"), folder.path().join(AUTHORITY_KEY)).unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is not the key of authority.pem"), "{error}");
    }
}
