//! Whether the configured MCP servers start and have tools, and whether the installed skills
//! can be used. The running server is asked about its MCP servers, because its environment may
//! find other programs than this shell. Without one they are started here.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::diagnosis::{Diagnosis, Installation};
use crate::cli::context::CliError;
use crate::cli::door::Door;
use crate::cli::row::text;
use crate::cli::running_server::RunningServer;
use crate::service::views;
use agent::Assistant;
use agent::mcp::Mcp;
use agent::skills::{FOLDER, Skills};
use agent::tools::Offer;
use agent::tools::permission::Actor;
use base::clock::Clock;
use base::measure::count;
use config::{Config, ReadOnly, Settings};
use net::cancel::Cancel;
use serde_json::{Value, json};

/// Time limit of their start; npx and uvx download a program first.
const LIMIT: Duration = Duration::from_secs(30);

/// Pause between two questions to a server whose MCP servers are starting.
const PAUSE: Duration = Duration::from_millis(200);

/// Asks the running server, else starts them all as the server would, lists their tools,
/// and stops them.
pub fn check(installation: &Installation<'_>, settings: &Settings) -> Vec<Diagnosis> {
    let config = settings.current();
    if config.mcp_servers.is_empty() {
        return Vec::new();
    }
    let is_running = RunningServer::find(installation.directory)
        .is_some_and(|server| !server.addresses.is_empty());
    let found = if is_running {
        ask_running(installation, &config)
    } else {
        Ok(start(installation, &config))
    };
    match found {
        Ok((found, left_out)) => {
            let found = found.iter();
            let found = found.flat_map(|one| {
                let judged = std::iter::once(judge(one, settings, is_running));
                judged
                    .chain(judge_readers(one))
                    .chain(judge_open_readers(one))
                    .chain(judge_changed(one, &config))
            });
            found.chain(judge_left_out(&left_out)).collect()
        }
        Err(error) => {
            let why = error.message();
            let text = format!("the running server does not say how its MCP servers do: {why}");
            vec![Diagnosis::problem(text).advise(installation.see_log())]
        }
    }
}

/// What there is to say of each, and the tools that are not shown to the model at first.
type Found = (Vec<Value>, Vec<String>);

/// What the running server says of them, once each of them has started or failed.
fn ask_running(installation: &Installation<'_>, config: &Config) -> Result<Found, CliError> {
    let deadline = Instant::now() + LIMIT;
    let mut door = Door::at(installation.directory.clone());
    loop {
        let info = door.ask(&json!({"type": "server_info"}))?;
        let of = |name: &str| {
            let servers = info["mcp_servers"].as_array()?;
            servers.iter().find(|server| server["name"] == name)
        };
        let is_starting = |name: &str| of(name).is_some_and(|one| one["state"] == "starting");
        let names = || config.mcp_servers.iter().map(|server| server.name.as_str());
        if Instant::now() < deadline && names().any(is_starting) {
            thread::sleep(PAUSE);
            continue;
        }
        let finding = |name: &str| {
            let why = "the running server has not reloaded the configuration";
            of(name).map_or_else(|| json!({ "name": name, "problem": why }), Value::clone)
        };
        let listed = door.ask(&json!({"type": "list_tools"}))?;
        let tools = listed["tools"].as_array().into_iter().flatten();
        let left_out = tools.filter(|tool| tool["is_left_out"] == true);
        let left_out = left_out.map(|tool| text(&tool["name"])).collect();
        return Ok((names().map(finding).collect(), left_out));
    }
}

fn start(installation: &Installation<'_>, config: &Arc<Config>) -> Found {
    let mcp = Mcp::new(installation.directory.path().to_owned());
    mcp.apply(config);
    mcp.wait_until_settled(LIMIT, &Cancel::default());
    // As they are at a first start.
    let _ = mcp.pin(&|_| Ok(None), &|_, _| Ok(()));
    let statuses = mcp.statuses();
    let (clock, directory) = (Clock::system(), installation.directory.path());
    let assistant = Assistant::from_config(
        Arc::clone(config),
        &mcp,
        &clock,
        directory,
        agent::Around::default(),
    );
    let offered = Actor::of_turn(config, None, None).offered(&assistant.toolbox);
    let window = assistant.servers.first(&config.model).window();
    let unused = || Ok(Vec::new());
    let offer = Offer::new(offered, &[], &assistant.toolbox, window, unused).unwrap_or_default();
    let left_out = offer.left_out().map(str::to_owned).collect();
    mcp.stop(true);
    let statuses = statuses
        .into_iter()
        .map(|status| views::mcp_server(status, None));
    (statuses.map(|status| json!(status)).collect(), left_out)
}

fn named(server: &Value, member: &str) -> Option<String> {
    let names = server[member].as_array()?;
    let names: Vec<String> = names.iter().map(text).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Lists the tools that run unasked where they are allowed, whatever the model has read.
fn judge_readers(server: &Value) -> Option<Diagnosis> {
    let (name, tools) = (text(&server["name"]), named(server, "readers")?);
    Some(Diagnosis::ok(format!(
        "{name}: declared to change nothing (read_only): {tools}"
    )))
}

/// Warns of those among them that open any address: what they are called with can carry
/// there what the model knows.
fn judge_open_readers(server: &Value) -> Option<Diagnosis> {
    let (name, tools) = (text(&server["name"]), named(server, "open_readers")?);
    let found = Diagnosis::warning(format!(
        "{name}: declared to change nothing (read_only), but opens any address: {tools}"
    ));
    Some(found.advise(format!(
        "take it out of mcp_servers.{name}.read_only, so that it asks after text from outside"
    )))
}

/// Warns of tools that are others than when the server was set up.
fn judge_changed(server: &Value, config: &Config) -> Option<Diagnosis> {
    let (name, tools) = (text(&server["name"]), named(server, "changed")?);
    let mut servers = config.mcp_servers.iter();
    let known = servers.find(|one| one.name == name)?;
    let matters = !known.trusted || known.read_only != ReadOnly::Annotated(false);
    let found = Diagnosis::warning(format!(
        "{name}: tools have changed since it was set up, and count as unknown: {tools}"
    ));
    let found = found.advise(format!(
        "if they are as you want them: remove mcp_servers.{name} and add it again, or change \
         its read_only"
    ));
    matters.then_some(found)
}

/// Warns of tools for which the model's window has no room.
fn judge_left_out(left_out: &[String]) -> Option<Diagnosis> {
    let tools = count(left_out.len() as u64, "tool");
    let found = Diagnosis::warning(format!(
        "the model's window has no room for {tools}: it has to find them with find_tools: {}",
        left_out.join(", ")
    ));
    let found = found.advise(
        "deny the tools that nobody needs (tool_permissions), or disable a server of mcp_servers",
    );
    let found = found.advise("a model with a larger window, or a higher context_tokens, has room");
    (!left_out.is_empty()).then_some(found)
}

fn judge(server: &Value, settings: &Settings, is_running: bool) -> Diagnosis {
    let (name, tools) = (text(&server["name"]), text(&server["tools"]));
    let file = settings.path().display();
    match (server["state"].as_str(), server["problem"].as_str()) {
        (Some("ready"), _) => Diagnosis::ok(format!("{name} answers and has {tools} tools")),
        (Some("disabled"), None) => Diagnosis::ok(format!("{name} is disabled")),
        (_, problem) => {
            let why = problem.unwrap_or("does not answer in time");
            let found = Diagnosis::problem(format!("{name}: {why}")).advise(format!(
                "correct mcp_servers.{name} in {file}, or set its \"disabled\" to true"
            ));
            if !is_running {
                return found;
            }
            found.advise("the server looks for programs in its own PATH: give the whole path")
        }
    }
}

/// Lists the installed skills, and says which are left out, and why.
pub fn skills(installation: &Installation<'_>, _: &Settings) -> Vec<Diagnosis> {
    let skills = Skills::load(installation.directory.path());
    let option = &installation.option;
    let folder = installation.directory.path().join(FOLDER);
    let names: Vec<&str> = skills.all().iter().map(|skill| &*skill.name).collect();
    let listed =
        (!names.is_empty()).then(|| Diagnosis::ok(format!("skills: {}", names.join(", "))));
    let broken = skills.problems().iter().map(|problem| {
        Diagnosis::problem(format!("a skill is left out: {problem}"))
            .advise(format!(
                "hearth skill add{option} DIR   (with a corrected one)"
            ))
            .advise(format!(
                "hearth skill remove{option} NAME   (or delete its folder below {})",
                folder.display()
            ))
    });
    listed.into_iter().chain(broken).collect()
}
