//! A tool that is two functions.

use crate::tools::definition::{Arguments, Definition, Tool, ToolContext};
use crate::tools::wording::{Intent, Judge};

/// What [`Tool::run`] and [`Tool::intent`] call.
pub struct FunctionTool {
    pub definition: Definition,
    pub intent: fn(&Arguments, &Judge<'_>) -> Option<Intent>,
    pub run: fn(&Arguments, &ToolContext<'_>) -> Result<String, String>,
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, judge: &Judge<'_>) -> Option<Intent> {
        (self.intent)(arguments, judge)
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}
