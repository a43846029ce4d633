//! The programs that are driven against Hearth: what the handbook says works with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::peers;

/// A program, and what its test does with it.
pub struct Program {
    pub name: &'static str,
    /// The environment that it is installed in, and its package there.
    packages: &'static [&'static str],
    package: &'static str,
    pub driven: &'static str,
    /// The test that drives it.
    pub test: &'static str,
}

impl Program {
    /// The version that is installed.
    ///
    /// # Panics
    /// When the environment has no such package in a certain version.
    pub fn version(&self) -> &'static str {
        let pinned = self.packages.iter().find_map(|pin| {
            let rest = pin.strip_prefix(self.package)?;
            // With extras, in brackets.
            let rest = rest.split_once(']').map_or(rest, |(_, rest)| rest);
            rest.strip_prefix("==").or(rest.strip_prefix('@'))
        });
        pinned.unwrap_or_else(|| panic!("{} is not pinned", self.package))
    }
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/driven.json")
}

/// The version of each program with which its test has passed.
pub fn driven() -> BTreeMap<String, String> {
    serde_json::from_str(&fs::read_to_string(results()).unwrap()).unwrap()
}

/// Notes that the test of this thread has driven its programs.
///
/// # Panics
/// When other versions are noted, and `UPDATE_HANDBOOK` does not ask to write them.
pub fn worked() {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default().rsplit("::").next();
    let mut driven = driven();
    for one in PROGRAMS.iter().filter(|one| Some(one.test) == test) {
        let version = one.version();
        if driven.get(one.name).is_some_and(|noted| noted == version) {
            continue;
        }
        let (name, wants) = (
            one.name,
            "run this again with UPDATE_HANDBOOK=1, which notes it",
        );
        let is_asked = std::env::var_os("UPDATE_HANDBOOK").is_some();
        assert!(
            is_asked,
            "{name} {version} works, and {:?} is noted: {wants}",
            driven.get(name)
        );
        driven.insert(name.to_owned(), version.to_owned());
        let text = serde_json::to_string_pretty(&driven).unwrap();
        fs::write(results(), text + "\n").unwrap();
    }
}

const fn program(
    name: &'static str,
    packages: &'static [&'static str],
    package: &'static str,
    test: &'static str,
    driven: &'static str,
) -> Program {
    Program {
        name,
        packages,
        package,
        driven,
        test,
    }
}

pub const PROGRAMS: &[Program] = &[
    program(
        "Open WebUI",
        peers::OPEN_WEBUI.packages,
        "open-webui",
        "open_webui_chats",
        "its page in a browser, with both kinds of connection: users by their addresses, chats, \
         titles, tags and follow-ups, files and pictures, stopping, a question for permission",
    ),
    program(
        "Home Assistant",
        peers::HOME_ASSISTANT.packages,
        "homeassistant",
        "home_assistant_talks_and_listens",
        "conversations that switch a light, by Ollama (with a key), LiteLLM and llama.cpp; AI tasks; \
         speech to text; tools of Hearth by MCP, and its own for Hearth; webhooks both ways",
    ),
    program(
        "Claude Code",
        peers::CLAUDE_CODE.packages,
        "@anthropic-ai/claude-code",
        "claude_code_reads_a_file_for_the_model",
        "a task with its own tools",
    ),
    program(
        "Codex CLI",
        peers::CODEX.packages,
        "@openai/codex",
        "codex_gets_its_answer",
        "a task, its own tools offered",
    ),
    program(
        "aider",
        peers::AIDER.packages,
        "aider-chat",
        "aider_changes_a_file",
        "a change to a file",
    ),
    program(
        "OpenAI's library for Python",
        peers::LIBRARIES.packages,
        "openai",
        "openais_own_library_talks_to_the_assistant",
        "models, chat, completions, speech both ways, streams, errors",
    ),
    program(
        "OpenAI's library for JavaScript",
        peers::NODE_LIBRARIES.packages,
        "openai",
        "openais_library_for_javascript_talks_to_the_assistant",
        "models, chat, streams, tools",
    ),
    program(
        "Anthropic's library for Python",
        peers::SERVICES.packages,
        "anthropic",
        "anthropics_library_talks_to_the_assistant",
        "messages, streams, pictures, thoughts, tools, `count_tokens`, errors",
    ),
    program(
        "Anthropic's library for JavaScript",
        peers::NODE_LIBRARIES.packages,
        "@anthropic-ai/sdk",
        "anthropics_library_for_javascript_talks_to_the_assistant",
        "messages, streams, pictures, thoughts, tools, `count_tokens`, errors",
    ),
    program(
        "Ollama's library for Python",
        peers::LIBRARIES.packages,
        "ollama",
        "ollamas_own_library_talks_to_the_assistant",
        "models, chat, generate, streams, errors",
    ),
    program(
        "Ollama's library for JavaScript",
        peers::NODE_LIBRARIES.packages,
        "ollama",
        "ollamas_library_for_javascript_talks_to_the_assistant",
        "models, chat, generate, streams, several tools at once, embeddings",
    ),
    program(
        "LangChain",
        peers::LIBRARIES.packages,
        "langchain",
        "langchain_talks_to_the_assistant",
        "chat, streams, structured output and an agent, by Chat Completions, Responses and Ollama; \
         embeddings",
    ),
    program(
        "LlamaIndex",
        peers::FRAMEWORKS.packages,
        "llama-index-core",
        "llama_index_and_strands_talk_to_the_assistant",
        "chat, streams, an agent and embeddings by Ollama",
    ),
    program(
        "Strands Agents",
        peers::FRAMEWORKS.packages,
        "strands-agents",
        "llama_index_and_strands_talk_to_the_assistant",
        "an agent with several tools at once, by OpenAI and Ollama",
    ),
    program(
        "Vercel's AI SDK",
        peers::NODE_LIBRARIES.packages,
        "ai",
        "vercels_library_talks_to_the_assistant",
        "text, streams, objects and tools",
    ),
    program(
        "LiteLLM",
        peers::LITELLM.packages,
        "litellm",
        "litellms_proxy_passes_requests_on",
        "its library and its proxy, by OpenAI and Ollama",
    ),
    program(
        "Node-RED",
        peers::NODE_RED.packages,
        "node-red",
        "a_flow_of_node_red_asks_and_hears_the_reply",
        "a flow that posts to a webhook and takes the callback, and one that hears events",
    ),
    program(
        "Servers of the Model Context Protocol, in JavaScript",
        peers::MCP_NODE.packages,
        "@modelcontextprotocol/server-everything",
        "node_servers_answer",
        "files, memory and one of everything, as programs and over HTTP",
    ),
    program(
        "Servers of the Model Context Protocol, in Python",
        peers::MCP_PYTHON.packages,
        "mcp-server-git",
        "python_servers_answer",
        "time and git; a database by the old library",
    ),
    program(
        "The Model Context Protocol's library for Python",
        peers::MCP_PYTHON.packages,
        "mcp",
        "a_python_server_answers_over_http",
        "a server over HTTP",
    ),
    program(
        "The Model Context Protocol's library for TypeScript",
        peers::MCP_NODE.packages,
        "@modelcontextprotocol/client",
        "the_official_sdk_uses_hearth",
        "tools of Hearth with their progress, in the newest revision and the one before",
    ),
    program(
        "FastMCP",
        peers::FASTMCP.packages,
        "fastmcp",
        "fastmcp_uses_hearth",
        "tools of Hearth with their progress and errors",
    ),
    program(
        "The Model Context Protocol's conformance suite",
        peers::CONFORMANCE.packages,
        "@modelcontextprotocol/conformance",
        "hearth_is_a_server_as_the_suite_has_it",
        "what it asks of clients and servers, without OAuth, elicitation and what Hearth does not have",
    ),
    program(
        "Apprise",
        peers::WEBHOOKS.packages,
        "apprise",
        "apprise_sends_messages_and_files",
        "messages to a webhook by form, JSON and address, and files",
    ),
    program(
        "Standard Webhooks' library for Python",
        peers::WEBHOOKS.packages,
        "standardwebhooks",
        "the_libraries_of_standard_webhooks_verify_callbacks",
        "callbacks with one secret and with two, and forgeries",
    ),
    program(
        "Standard Webhooks' library for JavaScript",
        peers::STANDARD_WEBHOOKS.packages,
        "standardwebhooks",
        "the_libraries_of_standard_webhooks_verify_callbacks",
        "callbacks with one secret and with two, and forgeries",
    ),
    program(
        "Radicale",
        peers::RADICALE.packages,
        "radicale",
        "radicale_is_found_by_its_address_read_and_changed",
        "a calendar found, read and changed",
    ),
    program(
        "Prometheus's parser",
        peers::LIBRARIES.packages,
        "prometheus-client",
        "prometheuss_own_parser_reads_the_metrics",
        "the metrics",
    ),
];

/// Programs of Debian's stable release, in the version that it has.
pub const PROXIES: [(&str, &str); 2] = [
    ("nginx", "nginx_strips_the_path"),
    ("Caddy", "caddy_strips_the_path"),
];
