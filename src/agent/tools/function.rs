//! A tool that is two functions.

use crate::tools::definition::{Arguments, Definition, Tool, ToolContext};
use crate::tools::wording::Intent;
use base::language::Words;
use store::{Store, Viewer};

/// What [`Tool::run`] and [`Tool::intent`] call.
pub struct FunctionTool {
    pub definition: Definition,
    pub intent: fn(Words, &Arguments, &Store, &Viewer) -> Option<Intent>,
    pub run: fn(&Arguments, &ToolContext<'_>) -> Result<String, String>,
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(
        &self,
        words: Words,
        arguments: &Arguments,
        store: &Store,
        viewer: &Viewer,
    ) -> Option<Intent> {
        (self.intent)(words, arguments, store, viewer)
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}
