//! A tool that is two functions.

use crate::tools::definition::{Arguments, Definition, Tool, ToolContext};
use base::error::Error;
use store::{Store, Viewer};

/// What [`Tool::run`] and [`Tool::intent`] call.
pub(super) struct FunctionTool {
    pub(super) definition: Definition,
    pub(super) intent: fn(&Arguments, &Store, &Viewer) -> Option<String>,
    pub(super) run: fn(&Arguments, &ToolContext<'_>) -> Result<String, String>,
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, store: &Store, viewer: &Viewer) -> Option<String> {
        (self.intent)(arguments, store, viewer)
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}

/// What the model reads of an error: the part that everybody may see.
pub(super) fn public(error: Error) -> String {
    error.message().to_owned()
}
