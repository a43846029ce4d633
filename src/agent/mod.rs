//! The agent: from a person's message to a reply, through model and tools.

mod budget;
pub mod cancel;
pub mod context;
pub mod outbound;
pub mod permission;
pub mod provider;
pub mod tool;
pub mod turn;

use std::sync::Arc;

use crate::config::Config;
use provider::Provider;
use tool::Toolbox;

/// What answers under one configuration: a provider and the tools. Made anew
/// when the configuration changes; a turn keeps the one it began with.
pub struct Assistant {
    pub config: Arc<Config>,
    pub provider: Arc<dyn Provider>,
    pub toolbox: Toolbox,
}

impl Assistant {
    /// The assistant that a configuration describes.
    pub fn from_config(config: Arc<Config>) -> Assistant {
        Assistant {
            provider: provider::from_config(&config),
            toolbox: Toolbox::from_config(&config),
            config,
        }
    }
}
