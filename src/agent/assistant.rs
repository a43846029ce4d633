//! The provider and the tools of one configuration.

use std::sync::Arc;

use crate::context::estimate::TokenCalibration;
use crate::mcp::Mcp;
use crate::meter::ModelMeter;
use crate::model::Provider;
use crate::provider;
use crate::tool::Toolbox;
use base::clock::Clock;
use config::Config;

/// The provider and the tools of one configuration. A new configuration makes a new
/// one; a turn keeps the one that it began with.
pub struct Assistant {
    /// The settings that it was made from.
    pub config: Arc<Config>,
    /// Asks the model that `provider` and `base_url` of the settings name.
    pub provider: Arc<dyn Provider>,
    /// Every tool that may be offered; which ones are is decided for each turn,
    /// by its permissions.
    pub toolbox: Toolbox,
    /// The version of the MCP servers' tools that the toolbox holds.
    pub mcp_version: u64,
    /// Corrects estimates of a request's length.
    pub calibration: Arc<TokenCalibration>,
    /// Counts requests to models.
    pub meter: Arc<ModelMeter>,
}

impl Assistant {
    /// The assistant that a configuration describes, with the tools that MCP
    /// servers have at the moment.
    pub fn from_config(config: Arc<Config>, mcp: &Mcp, clock: &Clock) -> Assistant {
        // Read first, so that the next turn notices a change in the meantime.
        let mcp_version = mcp.version();
        Assistant {
            provider: provider::from_config(&config, clock),
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
