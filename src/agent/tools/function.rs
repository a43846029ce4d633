//! A tool that is two functions.

use crate::tools::definition::{Arguments, Definition, Tool, ToolContext};
use crate::tools::wording::{Approver, Intent};

/// What [`Tool::run`] and [`Tool::intent`] call.
pub struct FunctionTool {
    pub definition: Definition,
    pub intent: fn(&Arguments, &Approver<'_>) -> Option<Intent>,
    pub run: fn(&Arguments, &ToolContext<'_>) -> Result<String, String>,
}

impl Tool for FunctionTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn intent(&self, arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
        (self.intent)(arguments, approver)
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        (self.run)(arguments, context)
    }
}
