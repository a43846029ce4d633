//! How `get_config` shows settings that hold a secret, or that the file has by name.

use serde::{Serialize, Serializer};

use base::url::{host_only, masked};

/// What is too long to show, or a secret: whether it is there.
pub(super) fn is_set<T, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(value.is_some())
}

/// A secret that must be there.
pub(super) fn is_there<T, S: Serializer>(_: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(true)
}

/// An address that may hold a password.
pub(super) fn url<S: Serializer>(url: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(masked).serialize(to)
}

/// An address that may hold a password, and must be there.
pub(super) fn masked_url<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    masked(url).serialize(to)
}

/// An address whose path may be a secret, too.
pub(super) fn host<S: Serializer>(url: &str, to: S) -> Result<S::Ok, S::Error> {
    host_only(url).serialize(to)
}

/// What the file has by name.
pub(super) fn by_name<T: Serialize + Named, S: Serializer>(
    named: &[T],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(named.iter().map(|one| (one.name(), one)))
}

/// What the file has by name.
pub(super) trait Named {
    fn name(&self) -> &str;
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::Config;
    use crate::config::documentation;
    use crate::declaration::Declared;
    use crate::key_path::KeyPath;

    #[test]
    fn every_setting_is_readable() {
        let shown = Value::Object(Config::absent().readable());
        let is_shown = |key: &str| key.parse::<KeyPath>().unwrap().find(&shown).is_some();
        for doc in documentation() {
            // What has a name of the owner's choice is not there, nor what is in a section that
            // is absent.
            let is_inside = doc.key.contains("NAME") || doc.key.contains('[');
            let sections = ["channels.", "voice.", "memory.embeddings."];
            if is_inside || sections.iter().any(|section| doc.key.starts_with(section)) {
                continue;
            }
            assert!(
                is_shown(&doc.key) || is_shown(&format!("{}_set", doc.key)),
                "{}",
                doc.key
            );
        }
    }
}
