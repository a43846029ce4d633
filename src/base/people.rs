//! People of the household: when two names are the same, and who sees a thing.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Audience, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Names(Vec<String>),
        }
        match Written::deserialize(deserializer)? {
            Written::Word(word) if word == "private" => Ok(Audience::Private),
            Written::Word(word) if word == "household" => Ok(Audience::Household),
            Written::Word(_) => Err(D::Error::custom("neither \"private\" nor \"household\"")),
            // Its owner sees a thing in any case.
            Written::Names(names) if names.is_empty() => Ok(Audience::Private),
            Written::Names(names) => Ok(Audience::People(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_read_as_it_is_written() {
        for (written, expected) in [
            ("\"private\"", Some(Audience::Private)),
            ("\"household\"", Some(Audience::Household)),
            ("[\"ada\"]", Some(Audience::People(vec!["ada".to_owned()]))),
            ("\"ada\"", None),
            ("[1]", None),
            ("null", None),
        ] {
            let read = serde_json::from_str::<Audience>(written).ok();
            assert_eq!(read, expected, "{written}");
            if let Some(audience) = read {
                assert_eq!(serde_json::to_string(&audience).unwrap(), written);
            }
        }
        assert_eq!(
            serde_json::from_str::<Audience>("[]").unwrap(),
            Audience::Private
        );
    }
}
