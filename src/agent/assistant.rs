//! The provider and the tools of one configuration.

use std::path::Path;
use std::sync::Arc;

use crate::mcp::Mcp;
use crate::model::embedding::Embedder;
use crate::model::servers::ModelMeter;
use crate::model::servers::Servers;
use crate::model::{self, Takes};
use crate::prompt::MessageForm;
use crate::skills::Skills;
use crate::tools::{PdfTexts, Toolbox};
use base::calendar::Zone;
use base::clock::Clock;
use config::Config;

/// What people have for which there are tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Browsers that are told what waits.
    pub tells_browsers: bool,
    /// Calendars.
    pub has_calendars: bool,
}

/// The provider and the tools of one configuration. A new configuration makes a new
/// one; a turn keeps the one that it began with.
#[derive(Clone)]
pub struct Assistant {
    /// The settings that it was made from.
    pub config: Arc<Config>,
    /// The household's clocks, as the system had them then.
    pub zone: Zone,
    /// The models that `provider` and `fallback` of the settings name.
    pub servers: Arc<Servers>,
    /// Asks for the vectors of memories and messages, if that is configured.
    pub embedder: Option<Arc<Embedder>>,
    /// Every tool that may be offered; which ones are is decided for each turn,
    /// by its permissions.
    pub toolbox: Toolbox,
    /// What is installed for the household to do.
    pub skills: Arc<Skills>,
    /// The version of the MCP servers' tools that the toolbox holds.
    pub mcp_version: u64,
    /// What people have.
    pub around: Around,
    /// Counts requests to models.
    pub meter: Arc<ModelMeter>,
    /// The attached PDFs that were read.
    pub pdfs: Arc<PdfTexts>,
}

impl Assistant {
    /// How messages are written out for a model.
    pub fn message_form(&self, takes: Takes) -> MessageForm<'_> {
        MessageForm {
            takes,
            zone: &self.zone,
            config: &self.config,
        }
    }

    /// The assistant that a configuration describes, with the tools that MCP
    /// servers have at the moment, and the skills of the data directory.
    pub fn from_config(
        config: Arc<Config>,
        mcp: &Mcp,
        clock: &Clock,
        data_dir: &Path,
        around: Around,
    ) -> Assistant {
        Assistant {
            zone: config.zone(),
            servers: Arc::new(model::from_config(&config, clock)),
            embedder: Embedder::from_config(&config).map(Arc::new),
            toolbox: Toolbox::from_config(&config),
            skills: load_skills(data_dir),
            config,
            around,
            meter: Arc::default(),
            pdfs: Arc::default(),
            mcp_version: 0,
        }
        .with_tools(mcp, around)
    }

    fn with_tools(mut self, mcp: &Mcp, around: Around) -> Assistant {
        // Read first, so that the next turn notices a change in the meantime.
        self.mcp_version = mcp.version();
        self.around = around;
        self.toolbox = self
            .toolbox
            .with_notify(around.tells_browsers)
            .with_calendars(around.has_calendars)
            .with_skills(&self.skills)
            .with_mcp(mcp.tools());
        self
    }

    /// Whether MCP servers and the data directory still have the same tools and skills, and
    /// people the same.
    pub fn is_current(&self, mcp: &Mcp, around: Around) -> bool {
        self.mcp_version == mcp.version() && self.skills.is_current() && self.around == around
    }

    /// The same assistant with the tools that MCP servers have now, and the skills that
    /// are installed.
    #[must_use]
    pub fn refreshed(&self, mcp: &Mcp, data_dir: &Path, around: Around) -> Assistant {
        let mut assistant = self.clone();
        if !self.skills.is_current() {
            assistant.skills = load_skills(data_dir);
        }
        assistant.with_tools(mcp, around)
    }
}

fn load_skills(data_dir: &Path) -> Arc<Skills> {
    let skills = Skills::load(data_dir);
    for problem in skills.problems() {
        log::warn!("a skill is left out: {problem}");
    }
    Arc::new(skills)
}
