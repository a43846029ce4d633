//! The section `tls`: the server's certificate, and the certificates it trusts.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::collections::object;
use super::declaration::{Declared, Rule, Setting, section};
use super::rules::{Flag, Parsed};

/// The files of the household's authority in the data directory.
pub const AUTHORITY: &str = "authority.pem";
/// Its key.
pub const AUTHORITY_KEY: &str = "authority.key.pem";
/// The server's certificate from it.
pub const HOUSEHOLD_CERTIFICATE: &str = "household.pem";
/// The key of that.
pub const HOUSEHOLD_KEY: &str = "household.key.pem";

section! {
    /// The section `tls`. Paths are absolute.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct Tls {
        /// Serves https with a certificate of the household's own authority, beside plain http. The
        /// server renews it. `hearth tls household` makes the authority and sets this.
        pub household: bool = Flag.or(false);
        /// With `household`, refuses whoever does not speak TLS. With `cert` that is always so.
        pub only: bool = Flag.or(false);
        /// File with the server's certificate and any intermediate certificates (PEM). With it,
        /// every port speaks TLS and nothing else. It is reloaded when it changes. A relative path
        /// is relative to the data directory; `hearth tls self-signed` creates such files.
        pub cert: Option<PathBuf> = FILE.optional("none: no TLS");
        /// File with the private key of `cert` (PEM).
        pub key: Option<PathBuf> = FILE.optional("none");
        /// File with certificates (PEM), such as that of your own certificate authority, which
        /// Hearth trusts in addition to the public ones when it calls others by https or wss.
        pub ca_file: Option<PathBuf> = FILE.optional("none");
    }
}

impl Tls {
    /// The files of the server's certificate and of its key, if it has them.
    pub fn identity(&self) -> Option<(&Path, &Path)> {
        Some((self.cert.as_deref()?, self.key.as_deref()?))
    }

    /// The certificate of the household's authority, if it has one.
    pub fn authority(&self) -> Option<PathBuf> {
        let certificate = self.cert.as_deref().filter(|_| self.household)?;
        Some(certificate.with_file_name(AUTHORITY))
    }

    /// Whether the ports speak TLS and nothing else.
    pub fn is_only(&self) -> bool {
        self.identity().is_some() && (self.only || !self.household)
    }

    /// What is wrong with files that `before` does not name: they are not there.
    pub(super) fn missing(&self, before: &Tls) -> Vec<String> {
        if self.household && self.authority() != before.authority() {
            let authority = self.authority().filter(|path| is_missing(path));
            return authority
                .map(|path| {
                    format!(
                        "\"tls.household\" needs {}, and there is no such file; \
                         `hearth tls household` creates it",
                        path.display()
                    )
                })
                .into_iter()
                .collect();
        }
        let files = [
            ("cert", &self.cert, &before.cert),
            ("key", &self.key, &before.key),
            ("ca_file", &self.ca_file, &before.ca_file),
        ];
        files
            .into_iter()
            .filter(|(_, path, before)| path != before)
            .filter_map(|(key, path, _)| Some((key, path.as_deref()?)))
            .filter(|(_, path)| is_missing(path))
            .map(|(key, path)| {
                format!(
                    "\"tls.{key}\" is {}, and there is no such file; create it first, or name \
                     another",
                    path.display()
                )
            })
            .collect()
    }

    /// Makes relative paths those of files in `folder`.
    pub(super) fn settle(&mut self, folder: &Path) {
        if self.household {
            self.cert = Some(HOUSEHOLD_CERTIFICATE.into());
            self.key = Some(HOUSEHOLD_KEY.into());
        }
        let paths = [&mut self.cert, &mut self.key, &mut self.ca_file];
        for path in paths.into_iter().flatten() {
            let joined = folder.join(&*path);
            // Child processes that get the path may work in another directory.
            *path = std::path::absolute(&joined).unwrap_or(joined);
        }
    }
}

fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The path of a file.
const FILE: Parsed<PathBuf> = Parsed {
    expected: "a path of a file",
    parse: |text| {
        let fits = !text.trim().is_empty() && !text.contains('\0') && text.len() <= 4_096;
        fits.then(|| text.into())
    },
};

/// The setting `tls`: a certificate and its key go together.
pub(super) fn tls() -> Setting<impl Rule<Output = Tls>, Tls> {
    object::<Tls>()
        .then(|reader, path, _, tls| {
            if tls.household && tls.cert.is_some() {
                let wrong = "and \"tls.cert\" are two certificates: remove one of them";
                reader.refuse(&path.key("household"), wrong);
                return None;
            }
            let (there, missing) = match (&tls.cert, &tls.key) {
                (Some(_), None) => ("cert", "key"),
                (None, Some(_)) => ("key", "cert"),
                _ => return Some(tls),
            };
            let missing = format_args!("needs \"{path}.{missing}\" as well");
            reader.refuse(&path.key(there), missing);
            None
        })
        .or_shown(Tls::absent(), "{}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use base::testing::rows;

    fn load(text: &str) -> Result<Tls, String> {
        let environment = |name: &str| (name == "PLACE").then(|| "/etc/tls/key.pem".to_owned());
        Settings::from_text(Path::new("/data/config.json"), text, environment)
            .map(|settings| settings.current().tls.clone())
            .map_err(|problems| problems.to_string())
    }

    #[test]
    fn paths_are_those_of_the_data_directory_unless_absolute() {
        let tls = load(r#"{"tls": {"cert": "cert.pem", "key": "${PLACE}"}}"#).unwrap();
        let (certificate, key) = tls.identity().unwrap();
        assert_eq!(certificate, Path::new("/data/cert.pem"));
        assert_eq!(key, Path::new("/etc/tls/key.pem"));
        assert_eq!(load("{}").unwrap(), Tls::default());
        assert!(tls.is_only() && tls.authority().is_none());
        let tls = load(r#"{"tls": {"household": true}}"#).unwrap();
        let (certificate, key) = tls.identity().unwrap();
        assert_eq!(certificate, Path::new("/data/household.pem"));
        assert_eq!(key, Path::new("/data/household.key.pem"));
        assert_eq!(tls.authority().unwrap(), Path::new("/data/authority.pem"));
        assert!(!tls.is_only());
        assert!(
            load(r#"{"tls": {"household": true, "only": true}}"#)
                .unwrap()
                .is_only()
        );
        let trusting = load(r#"{"tls": {"ca_file": "ca.pem"}}"#).unwrap();
        assert_eq!(trusting.identity(), None);
        assert_eq!(trusting.ca_file.as_deref(), Some(Path::new("/data/ca.pem")));
    }

    #[test]
    fn a_certificate_and_its_key_go_together() {
        let table = r#"
            {"tls": {"cert": "a.pem"}}    | "tls.cert" needs "tls.key" as well
            {"tls": {"key": "a.pem"}}     | "tls.key" needs "tls.cert" as well
            {"tls": {"household": true, "cert": "a", "key": "b"}} | "tls.household" and "tls.cert" are two
            {"tls": {"ca_file": ""}}      | must be a path of a file
            {"tls": {"certificate": "a"}} | unknown key
        "#;
        for [text, says] in rows(table) {
            let problems = load(text).unwrap_err();
            assert!(problems.contains(says), "{text}: {problems}");
        }
    }
}
