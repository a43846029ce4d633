//! `relay`: being a relay for other machines too.

use serde::Serialize;

use super::declaration::{Rule, section};
use super::readable::is_set;
use super::rules::{Flag, SecretText};
use base::secret::Secret;

/// Shortest token that a relay accepts (protocol section 6), in characters.
pub(super) const TOKEN_CHARACTERS: usize = 32;

section! {
    /// The section `relay`.
    #[derive(Clone, Debug, Serialize)]
    pub struct RelaySettings {
        /// Whether this server is also a relay: other machines link to it, and it connects clients
        /// to them.
        pub enabled: bool = Flag.or(false);
        /// The token that machines and clients must send to use the relay: at least 32 characters.
        #[serde(rename = "auth_token_set", serialize_with = "is_set")]
        pub auth_token: Option<Secret> = relay_token().optional("the environment variable AUTH_TOKEN");
    }
}

/// A token that cannot be guessed.
fn relay_token() -> impl Rule<Output = Secret> {
    SecretText.then(|reader, path, _, token| {
        let length = token.expose().chars().count();
        if length < TOKEN_CHARACTERS {
            reader.refuse(
                path,
                format_args!(
                    "has {length} characters, and must have {TOKEN_CHARACTERS} or more, \
                     because whoever guesses it may use the relay; `hearth relay --show-token` \
                     makes a good one"
                ),
            );
            return None;
        }
        Some(token)
    })
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
