//! The agent: from a person's message to a reply, through model and tools.

mod budget;
pub mod context;
pub mod mcp;
pub mod meter;
pub mod model;
pub mod permission;
pub mod provider;
pub mod repetition;
pub mod side_by_side;
pub mod tool;
pub mod turn;

use std::sync::Arc;

use config::Config;
use context::estimate::TokenCalibration;
use mcp::Mcp;
use meter::ModelMeter;
use model::Provider;
use tool::Toolbox;

/// What answers under one configuration: a provider and the tools. Made anew
/// when the configuration changes; a turn keeps the one it began with.
pub struct Assistant {
    /// The settings that it was made from.
    pub config: Arc<Config>,
    /// Asks the model that `provider` and `base_url` of the settings name.
    pub provider: Arc<dyn Provider>,
    /// Every tool that may be offered; which ones are is decided for each turn,
    /// by its permissions.
    pub toolbox: Toolbox,
    /// What the tools of MCP servers in the toolbox are as of.
    pub mcp_version: u64,
    /// How long requests turned out to be.
    pub calibration: Arc<TokenCalibration>,
    /// What asking models has come to.
    pub meter: Arc<ModelMeter>,
}

impl Assistant {
    /// The assistant that a configuration describes, with the tools that MCP
    /// servers have at the moment.
    pub fn from_config(config: Arc<Config>, mcp: &Mcp) -> Assistant {
        // Asked first: what changes meanwhile is noticed by the next turn.
        let mcp_version = mcp.version();
        Assistant {
            provider: provider::from_config(&config),
            toolbox: Toolbox::from_config(&config).with_mcp(mcp.tools()),
            config,
            calibration: Arc::default(),
            meter: Arc::default(),
            mcp_version,
        }
    }

    /// The same assistant with the tools that MCP servers have now.
    pub fn with_mcp(&self, mcp: &Mcp) -> Assistant {
        let mcp_version = mcp.version();
        Assistant {
            config: Arc::clone(&self.config),
            provider: Arc::clone(&self.provider),
            toolbox: self.toolbox.with_mcp(mcp.tools()),
            mcp_version,
            calibration: Arc::clone(&self.calibration),
            meter: Arc::clone(&self.meter),
        }
    }
}
