//! Finds models that can be used right away: servers on this machine, and API keys in
//! the environment. They are suggested, never used silently.

use std::thread;
use std::time::Duration;

use agent::model::probe::models_at;
use config::{PRESETS, Preset, quoted};

/// Time limit of the whole search.
pub const LIMIT: Duration = Duration::from_millis(300);
/// The local providers that are searched for at their usual addresses.
const LOCAL_PROVIDERS: [&str; 2] = ["ollama", "llamacpp"];

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
    let places: Vec<(&'static Preset, &str)> = LOCAL_PROVIDERS
        .iter()
        .filter_map(|name| {
            let preset = Preset::of(name)?;
            Some((preset, preset.base_url?))
        })
        .collect();
    let mut suggestions = ask_servers(&places, LIMIT);
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

/// Asks these servers for their models, all at the same time. Servers that do not
/// answer in time are skipped.
fn ask_servers(places: &[(&'static Preset, &str)], limit: Duration) -> Vec<Suggestion> {
    thread::scope(|scope| {
        let asked: Vec<_> = places
            .iter()
            .filter_map(|(preset, url)| {
                let asking = thread::Builder::new().name(format!("models-{}", preset.name));
                asking
                    .spawn_scoped(scope, || models_at(preset.name, url, limit))
                    .map(|thread| (*preset, *url, thread))
                    .ok()
            })
            .collect();
        let suggestions = asked.into_iter().filter_map(|(preset, url, thread)| {
            let models = thread.join().ok()??;
            Some(Suggestion {
                provider: preset.name,
                reason: format!("{} runs at {url}", preset.title),
                model: models.into_iter().next(),
            })
        });
        suggestions.collect()
    })
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
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with this body; with none, never.
    fn server(body: Option<&'static str>) -> (String, thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            match body {
                // Nobody reads it if the time was up.
                Some(body) => drop(write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )),
                // Until the other side disconnects.
                None => drop(stream.read(&mut head)),
            }
        });
        (url, thread)
    }

    #[test]
    fn a_server_that_answers_in_time_is_suggested() {
        let (ollama, llamacpp) = (
            Preset::of("ollama").unwrap(),
            Preset::of("llamacpp").unwrap(),
        );
        let ask = |limit| {
            let (url, first) = server(Some("{\"models\":[{\"name\":\"qwen3:8b\"}]}"));
            let (silent, second) = server(None);
            let suggestions = ask_servers(&[(llamacpp, &silent), (ollama, &url)], limit);
            first.join().unwrap();
            second.join().unwrap();
            text(&suggestions, "hearth config set --data-dir /d")
        };
        // A busy machine may need longer than a person is made to wait.
        let mut tries = [LIMIT, LIMIT * 10, LIMIT * 100].into_iter().map(ask);
        let text = tries
            .find(|text| text.contains("ollama"))
            .unwrap_or_default();
        assert!(
            text.contains("hearth config set --data-dir /d provider ollama\n")
                && text.contains("model qwen3:8b\n")
                && !text.contains("llamacpp"),
            "{text}"
        );
    }

    #[test]
    fn without_servers_nothing_is_suggested() {
        let url = "http://127.0.0.1:1";
        let suggestions = ask_servers(&[(Preset::of("ollama").unwrap(), url)], LIMIT);
        assert_eq!(text(&suggestions, ""), "");
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
