//! `identity.key`: the machine's private key, which is its name on every relay.
//!
//! It is created once and never replaced: another key would be another machine,
//! whose address no client knows.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::noise::PrivateKey;
use base::ids::MachineId;
use base::key_file;

/// The file's name in the data directory.
pub const IDENTITY_FILE: &str = "identity.key";

/// A machine's key, and the machine_id derived from it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Proves the machine_id.
    pub key: PrivateKey,
    /// The machine_id.
    pub machine_id: MachineId,
}

impl Identity {
    fn of(path: &Path, key: &[u8]) -> Result<Identity, String> {
        let key = PrivateKey::from_bytes(key.try_into().map_err(|_| broken(path))?);
        Ok(Identity {
            machine_id: key.public_key().machine_id(),
            key,
        })
    }

    /// The identity in a data directory, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or contains no key: a sentence that names it and says what to do.
    pub fn load(data_dir: &Path) -> Result<Option<Identity>, String> {
        let path = data_dir.join(IDENTITY_FILE);
        match key_file::load(&path) {
            Ok(key) => Identity::of(&path, &key).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        }
    }

    /// The identity in a data directory, created if there is none.
    ///
    /// # Errors
    /// As [`Identity::load`], or the file cannot be created.
    pub fn load_or_make(data_dir: &Path) -> Result<Identity, String> {
        let path = data_dir.join(IDENTITY_FILE);
        let fresh = || Ok(PrivateKey::generate().expose().to_vec());
        let key = key_file::load_or_make(data_dir, IDENTITY_FILE, fresh)
            .map_err(|error| unusable(&path, &error))?;
        Identity::of(&path, &key)
    }
}

fn unusable(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!("the machine's key {path} cannot be read or created: {error}")
}

fn broken(path: &Path) -> String {
    format!(
        "{} does not contain the machine's key: restore it from a backup. Without one, move the \
         file away; this machine then gets a new machine_id, and its clients need the new address",
        path.display()
    )
}

/// A warning about the file's permissions, if they are too wide.
pub fn warning(data_dir: &Path) -> Option<String> {
    let path = data_dir.join(IDENTITY_FILE);
    let mode = fs::metadata(&path).ok()?.mode();
    (mode & 0o077 != 0).then(|| {
        format!(
            "{}: others can read the machine's key; run: chmod 600 {0}",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use base::testing::TemporaryDirectory;

    use super::*;

    #[test]
    fn it_is_made_once_and_for_its_owner_only() {
        let folder = TemporaryDirectory::new();
        assert!(Identity::load(&folder).unwrap().is_none());
        let made = Identity::load_or_make(&folder).unwrap();
        for _ in 0..2 {
            let again = Identity::load_or_make(&folder).unwrap();
            assert_eq!(again.machine_id, made.machine_id);
        }
        let path = folder.join(IDENTITY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(warning(&folder), None);
        assert_eq!(
            fs::read_dir(&*folder).unwrap().count(),
            1,
            "nothing is left behind"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(warning(&folder).unwrap().contains("chmod 600"));
    }

    #[test]
    fn what_is_no_key_is_never_replaced() {
        let folder = TemporaryDirectory::new();
        let path = folder.join(IDENTITY_FILE);
        for broken in [
            "",
            "nonsense",
            "AAAA",
            &STANDARD.encode([1; 33]),
            "\u{fffd}",
        ] {
            fs::write(&path, broken).unwrap();
            let error = Identity::load_or_make(&folder).unwrap_err();
            assert!(error.to_string().contains("identity.key"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        }
    }

    #[test]
    fn of_many_that_make_it_at_once_all_get_the_same() {
        let folder = TemporaryDirectory::new();
        let ids: Vec<MachineId> = std::thread::scope(|scope| {
            let made: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| Identity::load_or_make(&folder).unwrap().machine_id))
                .collect();
            made.into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
    }
}
