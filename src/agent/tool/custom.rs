//! Tools of the configuration: programs and HTTP requests.

use std::sync::Arc;

use super::definition::{Arguments, Definition, Tool, ToolContext};
use super::files::Workspace;
use super::{custom_command, custom_http};
use config::CustomRun;
use net::http_client::HttpClient;

/// A tool of the configuration.
pub(super) struct CustomTool {
    definition: Definition,
    settings: config::CustomTool,
    http_client: Arc<HttpClient>,
}

impl CustomTool {
    /// The tool with these settings; requests are sent by `http_client`.
    pub(super) fn new(settings: &config::CustomTool, http_client: &Arc<HttpClient>) -> CustomTool {
        CustomTool {
            definition: Definition::custom(settings),
            settings: settings.clone(),
            http_client: Arc::clone(http_client),
        }
    }
}

impl Tool for CustomTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn run(&self, arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
        let (deadline, cancel) = (context.deadline, context.cancel);
        match &self.settings.run {
            CustomRun::Command(command) => {
                let directory = context.config.tools.files.directory.as_deref();
                let workspace = Workspace::new(directory, context.data_dir);
                custom_command::run(
                    &self.settings,
                    command,
                    arguments,
                    &workspace,
                    deadline,
                    cancel,
                )
            }
            CustomRun::Http(http) => {
                let request = custom_http::Request {
                    is_trial: false,
                    tool: &self.settings,
                    http,
                    arguments,
                };
                request.send(&self.http_client, deadline, cancel)
            }
        }
    }
}
