//! `relay`: being a relay for other machines too.

use serde_json::Value;

use super::declaration::{Declared, Rule, section};
use super::key_path::KeyPath;
use super::reader::Reader;
use super::rules::{Flag, SecretText};
use base::secret::Secret;

/// Shortest token that a relay accepts (protocol section 6), in characters.
pub(super) const TOKEN_CHARACTERS: usize = 32;

section! {
    /// The section `relay`.
    #[derive(Clone, Debug)]
    pub struct RelaySettings {
        /// Whether this server is also a relay: other machines link to it, and it connects clients
        /// to them.
        pub enabled: bool = Flag.or(false);
        /// The token that machines and clients must send to use the relay: at least 32 characters.
        pub auth_token: Option<Secret> = RelayToken.optional("the environment variable AUTH_TOKEN");
    }
}

/// A token that cannot be guessed.
struct RelayToken;

impl Rule for RelayToken {
    type Output = Secret;

    fn expected(&self) -> String {
        SecretText.expected()
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<Secret> {
        let token = SecretText.read(reader, path, value)?;
        let length = token.expose().chars().count();
        if length < TOKEN_CHARACTERS {
            reader.problem(
                path,
                format!(
                    "\"{path}\" has {length} characters, and must have {TOKEN_CHARACTERS} or more, \
                     because whoever guesses it may use the relay; `hearth relay --show-token` \
                     makes a good one"
                ),
            );
            return None;
        }
        Some(token)
    }
}

impl Default for RelaySettings {
    fn default() -> RelaySettings {
        RelaySettings::absent()
    }
}

impl RelaySettings {
    /// The token: the setting, else what the environment has.
    pub fn token(&self) -> Option<Secret> {
        self.auth_token.clone().or_else(|| {
            std::env::var("AUTH_TOKEN")
                .ok()
                .filter(|token| !token.is_empty())
                .map(Secret::new)
        })
    }
}
