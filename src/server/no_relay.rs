//! What stands for the links to relays where they are not built in.

use std::path::PathBuf;
use std::sync::Arc;

use super::StartError;
use crate::config::{Channel, Config};
use crate::http::OwnMachine;
use crate::service::Service;

/// No links.
pub struct Links;

impl Links {
    pub fn new(_: Arc<Service>, _: PathBuf, _: &Config) -> Result<Links, StartError> {
        Ok(Links)
    }

    /// Says which channels nothing comes of.
    pub fn apply(&self, config: &Config) {
        for channel in &config.channels {
            if let Channel::Relay(relay) = channel {
                log::warn!(
                    "channel {}: this hearth was built without relays (the feature \"relay\")",
                    relay.name
                );
            }
        }
    }

    pub fn own_machine(&self) -> Option<Arc<dyn OwnMachine>> {
        None
    }

    pub fn stop(&self) {}
}
