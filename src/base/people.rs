//! People of the household: when two names are the same, and who sees a thing.

use serde::{Serialize, Serializer};

/// The form of a user's name that is compared: names that differ only in case are
/// the same name.
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// Who sees a thing, as people write it: `"private"`, `"household"`, or a list of
/// names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Its owner.
    Private,
    /// Everybody with role user or admin.
    Household,
    /// Its owner and these people, guests too. The owner is not among them.
    People(Vec<String>),
}

impl Serialize for Audience {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Audience::Private => serializer.serialize_str("private"),
            Audience::Household => serializer.serialize_str("household"),
            Audience::People(names) => serializer.collect_seq(names),
        }
    }
}
