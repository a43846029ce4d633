//! `relay`: being a relay for other machines too.

use super::declaration::{Declared, Rule, section};
use super::rules::{Flag, SecretText};
use crate::secret::Secret;

section! {
    /// The section `relay`.
    #[derive(Clone, Debug)]
    pub struct RelaySettings {
        /// Whether this server is also a relay, to which other machines link and which leads
        /// clients to them.
        pub enabled: bool = Flag.or(false);
        /// What machines and clients must show to use the relay: at least 32 characters.
        pub auth_token: Option<Secret> = SecretText.optional("the environment variable AUTH_TOKEN");
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
