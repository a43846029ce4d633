//! Finds models that can be used right away: servers on this machine, and API keys in
//! the environment. They are suggested, never used silently.

use agent::model::nearby;
use config::{PRESETS, quoted};
use protocol::record::ModelServer;

/// A model that could be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The value of the setting `provider`.
    pub provider: &'static str,
    /// Why it is suggested.
    pub reason: String,
    /// A model that it has.
    pub model: Option<String>,
}

/// Searches this machine and the environment.
pub fn search(variable: impl Fn(&str) -> Option<String>) -> Vec<Suggestion> {
    let mut suggestions = of_servers(nearby::on_this_machine());
    suggestions.extend(PRESETS.iter().filter_map(|preset| {
        let name = preset.key_variable?;
        variable(name)?;
        Some(Suggestion {
            provider: preset.name,
            reason: format!("{name} is set"),
            model: None,
        })
    }));
    suggestions
}

fn of_servers(servers: Vec<ModelServer>) -> Vec<Suggestion> {
    let suggestion = |server: ModelServer| Suggestion {
        provider: server.provider,
        reason: format!("{} runs at {}", server.title, server.base_url),
        model: server.models.into_iter().next(),
    };
    servers.into_iter().map(suggestion).collect()
}

/// The suggestions for people; `command` is the one that sets a setting.
pub fn text(suggestions: &[Suggestion], command: &str) -> String {
    if suggestions.is_empty() {
        return String::new();
    }
    let mut text = "No model is connected yet. Available:\n".to_owned();
    for suggestion in suggestions {
        let model = suggestion.model.as_deref().unwrap_or("NAME");
        text.push_str(&format!(
            "\n  {}:\n    {command} model {}\n    {command} provider {}\n",
            suggestion.reason,
            quoted(model),
            suggestion.provider
        ));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_suggested_with_the_commands_that_take_it() {
        let suggestions = of_servers(vec![ModelServer {
            provider: "ollama",
            title: "Ollama",
            base_url: "http://127.0.0.1:11434".to_owned(),
            is_usual: true,
            models: vec!["qwen3:8b".to_owned()],
        }]);
        let text = text(&suggestions, "hearth config set --data-dir /d");
        for part in [
            "Ollama runs at http://127.0.0.1:11434:\n",
            "hearth config set --data-dir /d provider ollama\n",
            "model qwen3:8b\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(super::text(&[], ""), "");
    }

    #[test]
    fn a_key_in_the_environment_is_suggested_but_not_shown() {
        let variable = |name: &str| (name == "GROQ_API_KEY").then(|| "gsk-secret".to_owned());
        let suggestions = search(variable);
        let text = text(&suggestions, "");
        assert!(text.contains("GROQ_API_KEY is set") && text.contains("provider groq"));
        assert!(!text.contains("gsk-secret"));
    }

    #[test]
    fn names_from_a_server_cannot_break_out_of_their_quotes() {
        assert_eq!(quoted("a; rm -rf ~"), "'a; rm -rf ~'");
        assert_eq!(quoted("it's\n"), "'it'\\''s'");
        assert_eq!(quoted("org/model:7b"), "org/model:7b");
    }
}
