//! Certificates and keys in PEM files (RFC 7468).

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Most bytes of a file. The bundle of a whole system's authorities has about
/// 250 KiB.
const MOST_BYTES: u64 = 2 * 1024 * 1024;
/// Most certificates of a file.
const MOST_CERTIFICATES: usize = 1_000;

/// Why certificates or a key cannot be used: a sentence that names the file and says
/// what to do.
#[derive(Debug)]
pub struct CertificateError(String);

impl CertificateError {
    /// What is wrong with a file, after its name.
    pub(super) fn of(path: &Path, wrong: impl fmt::Display) -> CertificateError {
        CertificateError(format!("{} {wrong}", path.display()))
    }

    /// A file whose contents are not usable.
    pub(super) fn malformed(path: &Path, reason: impl fmt::Display) -> CertificateError {
        CertificateError::of(path, format_args!("cannot be used: {reason}"))
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateError {}

/// Identifies the state of a file without reading it: its modification time,
/// length and inode (a file replaced by renaming may have the same time). A
/// missing file has a stamp too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(Option<[i64; 5]>);

impl Stamp {
    /// The stamp of no file.
    pub fn none() -> Stamp {
        Stamp(None)
    }

    /// The current stamp of the file at `path`, following links.
    pub fn of(path: &Path) -> Stamp {
        Stamp(fs::metadata(path).ok().map(|found| {
            [
                found.mtime(),
                found.mtime_nsec(),
                found.size().cast_signed(),
                found.dev().cast_signed(),
                found.ino().cast_signed(),
            ]
        }))
    }
}

/// The certificates of a file, in their order; at least one.
///
/// # Errors
/// The file cannot be read, holds none, or is malformed.
pub fn load_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let text = read(path)?;
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
        .take(MOST_CERTIFICATES)
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(path, &error))?;
    match certificates.is_empty() {
        true => Err(CertificateError::of(
            path,
            "holds no certificate: it must be a PEM file with a line \
             \"-----BEGIN CERTIFICATE-----\"",
        )),
        false => Ok(certificates),
    }
}

/// The first private key of a file: PKCS #8, PKCS #1 (RSA) or SEC 1 (EC).
///
/// # Errors
/// The file cannot be read, holds none, or is malformed.
pub fn load_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => CertificateError::of(
            path,
            "holds no private key that is not encrypted: it must be a PEM file with a line \
             \"-----BEGIN PRIVATE KEY-----\" (or EC or RSA PRIVATE KEY)",
        ),
        error => malformed(path, &error),
    })
}

/// A DER document as PEM.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        lines.extend(line.iter().map(|byte| char::from(*byte)));
        lines.push('\n');
    }
    lines + &format!("-----END {label}-----\n")
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text))
        .and_then(|_| match text.len() as u64 > MOST_BYTES {
            true => Err(io::Error::other(format!(
                "it is larger than {MOST_BYTES} bytes"
            ))),
            false => Ok(()),
        })
        .map_err(|error| {
            let advice = "check that it is there, and that this user may read it";
            CertificateError::of(path, format_args!("cannot be read: {error}; {advice}"))
        })?;
    Ok(text)
}

fn malformed(path: &Path, error: &pem::Error) -> CertificateError {
    CertificateError::malformed(path, format_args!("it is no good PEM file: {error}"))
}

#[cfg(feature = "tls")]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tls::testing::Certificates;

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let folder = Certificates::default();
        let made = folder.certificate("good", &["localhost"]);
        assert_eq!(load_certificates(&made.certificate).unwrap().len(), 1);
        assert!(load_key(&made.key).is_ok());

        let broken = folder.path().join("broken.pem");
        for (text, certificate, key) in [
            ("", "holds no certificate", "holds no private key"),
            ("{}", "holds no certificate", "holds no private key"),
            (
                "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n",
                "no good PEM",
                "no good PEM",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n",
                "no good PEM",
                "no good PEM",
            ),
        ] {
            fs::write(&broken, text).unwrap();
            let errors = [
                (load_certificates(&broken).unwrap_err(), certificate),
                (load_key(&broken).unwrap_err(), key),
            ];
            for (error, says) in errors {
                let error = error.to_string();
                assert!(error.contains(says), "{text:?}: {error}");
                assert!(error.contains("broken.pem"), "{error}");
            }
        }
        let absent = folder.path().join("absent.pem");
        let error = load_certificates(&absent).unwrap_err().to_string();
        assert!(error.contains("absent.pem cannot be read"), "{error}");
        // A file without end is not read without end.
        let error = load_key(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
    }
}
