//! The programs that are driven against Hearth: what the handbook says works with it.

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
        "models, chat, completions, streams, errors",
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
        "messages, streams, tools, `count_tokens`, errors",
    ),
    program(
        "Anthropic's library for JavaScript",
        peers::NODE_LIBRARIES.packages,
        "@anthropic-ai/sdk",
        "anthropics_library_for_javascript_talks_to_the_assistant",
        "messages, streams, tools, `count_tokens`, errors",
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
        "a flow that posts to a webhook and takes the callback",
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
