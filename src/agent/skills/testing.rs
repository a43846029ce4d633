//! A skill for tests.

use std::fs;
use std::sync::Arc;

use super::{FOLDER, MANIFEST, Skills};
use base::testing::TemporaryDirectory;

/// A data directory with one skill of this name.
pub fn installed(name: &str) -> (TemporaryDirectory, Arc<Skills>) {
    let folder = TemporaryDirectory::new();
    let place = folder.path().join(FOLDER).join(name);
    fs::create_dir_all(&place).unwrap();
    let text = format!("---\nname: {name}\ndescription: Makes {name}.\n---\nBoil.\n");
    fs::write(place.join(MANIFEST), text).unwrap();
    let skills = Arc::new(Skills::load(folder.path()));
    assert_eq!(skills.problems(), [""; 0]);
    (folder, skills)
}
