//! The tools of one configuration.

use std::sync::Arc;

use super::builtin;
use super::custom::CustomTool;
use super::definition::{Source, Tool};
use super::files;
use super::run_command::RunCommand;
use super::web_fetch::WebFetch;
use config::Config;
use net::http_client::HttpClient;
use net::tls::Trust;

/// Tools with distinct names, in a stable order.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
}

impl Toolbox {
    /// The built-in tools that `config` enables and its custom ones, in the
    /// order of the file.
    pub fn from_config(config: &Config) -> Toolbox {
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let tools = &config.tools;
        let directory = tools.files.directory.as_deref();
        let mut toolbox = Toolbox::builtin();
        if tools.web_fetch.enabled {
            toolbox.add(Arc::new(WebFetch::new(&tools.web_fetch, trust.clone())));
        }
        if tools.files.enabled {
            files::all(directory)
                .into_iter()
                .for_each(|tool| toolbox.add(tool));
        }
        if tools.run_command.enabled {
            toolbox.add(Arc::new(RunCommand::new(&tools.run_command, directory)));
        }
        toolbox.add_custom(&tools.custom, trust);
        toolbox
    }

    /// The built-in tools alone that need no setting.
    pub fn builtin() -> Toolbox {
        Toolbox {
            tools: builtin::all(),
        }
    }

    fn add_custom(&mut self, custom: &[config::CustomTool], trust: Trust) {
        let http_client = Arc::new(HttpClient::new().trusting(trust));
        for tool in custom {
            self.add(Arc::new(CustomTool::new(tool, &http_client)));
        }
    }

    /// Adds a tool unless there is one of its name: a model API refuses a
    /// request that offers two.
    fn add(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.spec().name;
        if self.get(name).is_some() {
            log::warn!("the tool {name:?} is left out: another tool has that name");
        } else {
            self.tools.push(tool);
        }
    }

    /// The same tools, with `mcp` in place of any tools of MCP servers.
    pub fn with_mcp(&self, mcp: Vec<Arc<dyn Tool>>) -> Toolbox {
        let is_own = |tool: &&Arc<dyn Tool>| !matches!(tool.definition().source, Source::Mcp(_));
        let mut toolbox = Toolbox {
            tools: self.tools.iter().filter(is_own).cloned().collect(),
        };
        mcp.into_iter().for_each(|tool| toolbox.add(tool));
        toolbox
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use config::{CustomHttp, CustomRun};

    fn custom(name: &str) -> config::CustomTool {
        config::CustomTool {
            name: name.to_owned(),
            description: "A test.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
            run: CustomRun::Http(CustomHttp {
                method: "GET",
                url: "http://127.0.0.1/".to_owned(),
                headers: Vec::new(),
                body: None,
            }),
            read_only: true,
            timeout_seconds: 5,
            output_bytes: 1024,
        }
    }

    #[test]
    fn the_order_is_stable_and_no_name_comes_twice() {
        let mut toolbox = Toolbox::builtin();
        toolbox.add_custom(&["b", "a", "recall", "b"].map(custom), Trust::default());
        let names: Vec<&str> = toolbox
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "current_time",
                "remember",
                "recall",
                "forget",
                "search_conversations",
                "schedule",
                "b",
                "a"
            ]
        );
        let source = |name: &str| {
            toolbox
                .get(name)
                .map(|tool| tool.definition().source.clone())
        };
        assert_eq!(source("recall"), Some(Source::Builtin));
        assert_eq!(source("b"), Some(Source::Custom));
        assert_eq!(source("c"), None);
    }
}
