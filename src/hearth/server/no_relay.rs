//! Replaces relays and the links to them in a build without them.

use std::path::PathBuf;
use std::sync::Arc;

use super::StartError;
use crate::http::{OwnMachine, Relay};
use crate::service::Service;
use config::Config;

/// No links.
pub struct Links;

impl Links {
    pub fn new(_: Arc<Service>, _: PathBuf, _: &Config) -> Result<Links, StartError> {
        Ok(Links)
    }

    /// Warns of the relay channels, which have no effect.
    pub fn apply(&self, config: &Config) {
        for relay in config.relays() {
            log::warn!(
                "channel {}: this hearth was built without relays (the feature \"relay\")",
                relay.name
            );
        }
    }

    pub fn own_machine(&self) -> Option<Arc<dyn OwnMachine>> {
        None
    }

    pub fn stop(&self) {}
}

/// Refuses to be a relay.
pub fn open(config: &Config) -> Result<Option<Arc<dyn Relay>>, StartError> {
    if config.relay.enabled {
        Err(StartError::new(
            "\"relay.enabled\" is set, but this program was built without the feature relay",
        ))
    } else {
        Ok(None)
    }
}
