//! What the results of calls are made of.

use crate::tool::{Origin, Tool, ToolContext};
use base::ids::MemoryId;

/// What a result is made of.
pub(super) struct Found {
    /// Where it comes from.
    pub origin: Origin,
    /// Whether only the readers of the conversation may see it.
    pub is_private: bool,
    /// The memories among it.
    pub memories: Vec<MemoryId>,
}

/// Of a call that the program behind the turn has run.
pub(super) const BY_PROGRAM: Found = Found {
    origin: Origin::Outside,
    is_private: false,
    memories: Vec::new(),
};

/// Of a call that did not run.
pub(super) const NOTHING: Found = Found {
    origin: Origin::Tool,
    is_private: false,
    memories: Vec::new(),
};

impl Found {
    /// What a tool found in a run.
    pub fn by(tool: &dyn Tool, context: &ToolContext<'_>) -> Found {
        let definition = tool.definition();
        Found {
            origin: *context.found.get().unwrap_or(&definition.origin),
            is_private: definition.is_private,
            memories: context.told.get().cloned().unwrap_or_default(),
        }
    }
}
