//! Tools that a person's program calls itself, as it would send commands: no turn has the
//! call, and what it stores is that person's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Service;
use agent::model::fence::MCP_CHANNEL;
use agent::tools::permission::{self, Actor, Circumstances, Reach};
use agent::tools::{Arguments, ResultDetails, Start, Tool, ToolContext, check_arguments};
use config::Permission;
use net::cancel::Cancel;
use store::Identity;

/// The tools for what the household keeps, in the order in which programs see them.
const OFFERED: [&str; 6] = [
    "recall",
    "remember",
    "forget",
    "search_conversations",
    "lists",
    "schedule",
];
/// Longest that one call may take.
const LIMIT: Duration = Duration::from_secs(30);

impl Service {
    /// The tools that programs of this person may call.
    pub fn tools_for_program(&self, by: &Identity) -> Vec<Arc<dyn Tool>> {
        let assistant = self.assistant();
        let actor = actor(&assistant.config, by);
        let tools = OFFERED
            .iter()
            .filter_map(|name| assistant.toolbox.get(name));
        tools
            .filter(|tool| {
                let verdict = actor.decide(tool.definition(), Circumstances::default());
                verdict != Permission::Deny
            })
            .cloned()
            .collect()
    }

    /// Calls one of these tools. Whoever sends the call decides on it, too: what would be
    /// asked for runs where this person may answer that for themselves, and is refused
    /// otherwise.
    ///
    /// # Errors
    /// What went wrong, for the program's model.
    pub fn call_for_program(
        &self,
        by: &Identity,
        tool: &dyn Tool,
        arguments: &str,
    ) -> Result<String, String> {
        let assistant = self.assistant();
        let config = &assistant.config;
        let arguments = check_arguments(tool.spec(), arguments)?;
        let actor = actor(config, by);
        self.check_permission(by, &actor, tool, &arguments)?;
        let is_narrowed = actor.is_narrowed_person() || by.scope.is_narrow();
        let cancel = Cancel::default();
        let context = ToolContext {
            start: Start::by_program(),
            store: &self.store,
            config,
            embedder: assistant.embedder.as_deref(),
            clock: &self.clock,
            viewer: by.viewer(),
            conversation_id: None,
            turn_id: None,
            channel: MCP_CHANNEL,
            account: None,
            user_id: Some(by.user_id),
            speaker: Some(&by.user),
            is_narrowed,
            // As with the command.
            reminds_alone: is_narrowed,
            is_outside: !config.mcp_api.trusted,
            stays_on_host: true,
            details: ResultDetails::of(tool.definition()),
            deadline: Instant::now() + LIMIT,
            cancel: &cancel,
            data_dir: &self.data_dir,
            pdfs: &assistant.pdfs,
        };
        let result = tool.run(&arguments, &context);
        for change in context.into_details().changes {
            self.hub.publish_change_of_tool(&change);
        }
        if !tool.definition().is_read_only && result.is_ok() {
            log::info!("{}: called by a program of {}", tool.spec().name, by.user);
        }
        result
    }

    fn check_permission(
        &self,
        by: &Identity,
        actor: &Actor<'_>,
        tool: &dyn Tool,
        arguments: &Arguments,
    ) -> Result<(), String> {
        let assistant = self.assistant();
        let needed = permission::needed(&tool.spec().name, arguments);
        let circumstances = Circumstances {
            is_outside: !assistant.config.mcp_api.trusted,
            reach: Reach::of(&tool.spec().name, arguments),
            ..Circumstances::default()
        };
        let tools = needed.iter().filter_map(|name| assistant.toolbox.get(name));
        let verdicts = tools.map(|tool| actor.decide(tool.definition(), circumstances));
        match permission::least(verdicts) {
            Permission::Allow => Ok(()),
            Permission::Ask | Permission::AllowOwn
                if self.may_permit_own(&needed, arguments, by) =>
            {
                Ok(())
            }
            Permission::Ask | Permission::AllowOwn => Err(
                "somebody has to permit this: use \"ask\", so that the household's assistant does \
                 it and asks for permission in Hearth"
                    .to_owned(),
            ),
            Permission::Deny => Err("this tool is not permitted here".to_owned()),
        }
    }
}

fn actor<'a>(config: &'a config::Config, by: &'a Identity) -> Actor<'a> {
    Actor::of_turn(config, None, Some(&by.user)).with_tools(by.scope.tools.as_deref())
}
