//! A tool that is two functions.

use crate::tool::definition::{Arguments, Definition, Tool, ToolContext};
use base::error::Error;
use store::Store;

/// What [`Tool::run`] and [`Tool::intent`] call.
pub(super) struct FunctionTool {
    pub(super) definition: Definition,
    pub(super) intent: fn(&Arguments, &Store) -> Option<String>,
    pub(super) run: fn(&Arguments, &ToolContext<'_>) -> Result<String, String>,
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, store: &Store) -> Option<String> {
        (self.intent)(arguments, store)
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}

/// What the model reads of an error: the part that everybody may see.
pub(super) fn public(error: Error) -> String {
    error.message().to_owned()
}
