//! The tools of one configuration.

use std::sync::Arc;

use super::builtin;
use super::calendar::{edit_events, find_events};
use super::custom::CustomTool;
use super::definition::{Source, Tool};
use super::files;
use super::read_skill::{READ_SKILL, ReadSkill};
use super::run_command::run_command;
use super::web_fetch::WebFetch;
use crate::skills::Skills;
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
    /// order of the file. The configuration has made sure that no two have one name.
    pub fn from_config(config: &Config) -> Toolbox {
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let settings = &config.tools;
        let Toolbox { mut tools } = Toolbox::builtin();
        let mut people = config.people.values();
        if people.any(|person| person.notifications.is_some()) {
            tools.push(builtin::notify());
        }
        if settings.web_fetch.enabled {
            tools.push(Arc::new(WebFetch::new(&settings.web_fetch, trust.clone())));
        }
        if settings.files.enabled {
            let all = files::all().map(|tool| Arc::new(tool) as Arc<dyn Tool>);
            tools.extend(all);
        }
        if settings.run_command.enabled {
            tools.push(Arc::new(run_command()));
        }
        let http_client = Arc::new(HttpClient::new().trusting(trust));
        for tool in &settings.custom {
            tools.push(Arc::new(CustomTool::new(tool, &http_client)));
        }
        Toolbox { tools }
    }

    /// The same tools with the one that tells phones something, in its place, if that is
    /// wanted and it is not among them.
    #[must_use]
    pub fn with_notify(mut self, is_wanted: bool) -> Toolbox {
        if is_wanted && self.get("notify").is_none() {
            let before = |tool: &Arc<dyn Tool>| {
                ["lists", "edit_events"].contains(&tool.spec().name.as_str())
            };
            let place = self.tools.iter().rposition(before);
            let place = place.map_or(0, |place| place + 1);
            self.tools.insert(place, builtin::notify());
        }
        self
    }

    /// The same tools with those for calendars behind the one for lists, if there are calendars
    /// and they are not among them.
    #[must_use]
    pub fn with_calendars(mut self, is_wanted: bool) -> Toolbox {
        if is_wanted && self.get("find_events").is_none() {
            let place = self.iter().position(|tool| tool.spec().name == "lists");
            let place = place.map_or(0, |place| place + 1);
            let tools: [Arc<dyn Tool>; 2] = [Arc::new(find_events()), Arc::new(edit_events())];
            self.tools.splice(place..place, tools);
        }
        self
    }

    /// The built-in tools alone that need no setting.
    pub fn builtin() -> Toolbox {
        Toolbox {
            tools: builtin::all(),
        }
    }

    /// The same tools, with the one that reads these skills behind the built-in ones, if
    /// there are any, in place of one for other skills.
    #[must_use]
    pub fn with_skills(mut self, skills: &Arc<Skills>) -> Toolbox {
        self.tools.retain(|tool| tool.spec().name != READ_SKILL);
        if !skills.all().is_empty() {
            let is_builtin = |tool: &Arc<dyn Tool>| tool.definition().source == Source::Builtin;
            let place = self.tools.iter().rposition(is_builtin);
            let tool = Arc::new(ReadSkill::new(Arc::clone(skills)));
            self.tools.insert(place.map_or(0, |place| place + 1), tool);
        }
        self
    }

    /// The same tools, with `mcp` in place of any tools of MCP servers, except those
    /// whose name another tool has: a model API refuses a request that offers two.
    pub fn with_mcp(&self, mcp: Vec<Arc<dyn Tool>>) -> Toolbox {
        let mut toolbox = self.clone();
        let is_own = |tool: &Arc<dyn Tool>| !matches!(tool.definition().source, Source::Mcp(_));
        toolbox.tools.retain(is_own);
        for tool in mcp {
            let name = &tool.spec().name;
            if toolbox.get(name).is_some() {
                log::warn!("the tool {name:?} is left out: another tool has that name");
            } else {
                toolbox.tools.push(tool);
            }
        }
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

    /// Whether there is a tool of this name that may change something.
    pub fn may_change(&self, name: &str) -> bool {
        let tool = self.get(name);
        tool.is_some_and(|tool| !tool.definition().is_read_only)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use config::{BUILTIN_TOOLS, CustomHttp, CustomRun, Notifications, Person};

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
                show: Vec::new(),
            }),
            read_only: true,
            timeout_seconds: 5,
            output_bytes: 1024,
            trusted: false,
            household: false,
        }
    }

    fn names(toolbox: &Toolbox) -> Vec<&str> {
        toolbox
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect()
    }

    /// The configuration reserves the names of all built-in tools, and so keeps
    /// others from taking them.
    #[test]
    fn the_order_is_stable_and_the_built_in_names_are_reserved() {
        let mut config = Config::default();
        config.tools.run_command.enabled = true;
        let ada = Person {
            notifications: Some(Notifications::default()),
            ..Default::default()
        };
        config.people = [("ada".to_owned(), ada)].into();
        let of_all = [&BUILTIN_TOOLS[..BUILTIN_TOOLS.len() - 1], &[]].concat();
        let calendars = |config: &Config| Toolbox::from_config(config).with_calendars(true);
        assert_eq!(names(&calendars(&config)), of_all);
        config.people.clear();
        let told = calendars(&config).with_notify(true);
        assert_eq!(names(&told), of_all);
        assert_eq!(names(&told.clone().with_notify(true)), of_all);
        let untold = Toolbox::from_config(&config).with_notify(false);
        assert!(untold.get("notify").is_none());
        let (_folder, skills) = crate::skills::testing::installed("tea");
        let with_skills = told.with_skills(&skills);
        assert_eq!(names(&with_skills), BUILTIN_TOOLS);
        assert_eq!(
            names(&with_skills.clone().with_skills(&skills)),
            BUILTIN_TOOLS
        );
        assert_eq!(names(&with_skills.with_skills(&Arc::default())), of_all);
        config.tools.custom = vec![custom("b"), custom("a")];
        let toolbox = calendars(&config).with_notify(true);
        assert_eq!(names(&toolbox), [&of_all[..], &["b", "a"]].concat());
        assert_eq!(
            names(&toolbox.clone().with_skills(&skills)),
            [&BUILTIN_TOOLS[..], &["b", "a"]].concat()
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

    /// They go with every request to a model: a limit in bytes, as OpenAI's interface has
    /// them, which is the longest form.
    #[test]
    fn the_default_tools_are_described_in_four_kilobytes() {
        let toolbox = Toolbox::from_config(&Config::default());
        let sent: Vec<String> = toolbox
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                json!({"type": "function", "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": *spec.parameters,
                }})
                .to_string()
            })
            .collect();
        let size = format!("[{}]", sent.join(",")).len();
        assert!(size <= 4_096, "{size} bytes of tools in every request");
    }

    #[test]
    fn no_name_comes_twice() {
        let http_client = Arc::default();
        let tool = |name| Arc::new(CustomTool::new(&custom(name), &http_client)) as Arc<dyn Tool>;
        let mut config = Config::default();
        config.tools.custom = vec![custom("b")];
        let toolbox = Toolbox::from_config(&config);
        let more = toolbox.with_mcp(["c", "b", "recall", "a", "c"].map(tool).into());
        assert_eq!(names(&more), [&names(&toolbox)[..], &["c", "a"]].concat());
    }
}
