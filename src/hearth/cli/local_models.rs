//! Finds models that a new household may use at once: servers on this machine,
//! and keys in the environment. They are offered, never silently used.

use std::thread;
use std::time::Duration;

use agent::provider::probe::models_at;
use config::{PRESETS, Preset};

/// How long the search may take in all.
pub const LIMIT: Duration = Duration::from_millis(300);
/// The providers that are looked for, at their usual addresses.
const LOOKED_FOR: [&str; 2] = ["ollama", "llamacpp"];

/// A model that could be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// As `provider` names it.
    pub provider: &'static str,
    /// Why it is offered.
    pub reason: String,
    /// A model that it has.
    pub model: Option<String>,
}

/// Looks on this machine and in the environment.
pub fn look(variable: impl Fn(&str) -> Option<String>) -> Vec<Offer> {
    let places: Vec<(&'static Preset, &str)> = LOOKED_FOR
        .iter()
        .filter_map(|name| {
            let preset = Preset::of(name)?;
            Some((preset, preset.base_url?))
        })
        .collect();
    let mut offers = look_at(&places, LIMIT);
    offers.extend(PRESETS.iter().filter_map(|preset| {
        let name = preset.key_variable?;
        variable(name)?;
        Some(Offer {
            provider: preset.name,
            reason: format!("{name} is set"),
            model: None,
        })
    }));
    offers
}

/// Asks these servers at once for their models; who has not answered in time is
/// left out.
fn look_at(places: &[(&'static Preset, &str)], limit: Duration) -> Vec<Offer> {
    thread::scope(|scope| {
        let asked: Vec<_> = places
            .iter()
            .filter_map(|(preset, url)| {
                let asking = thread::Builder::new().name(format!("look-{}", preset.name));
                asking
                    .spawn_scoped(scope, || models_at(preset.name, url, limit))
                    .map(|thread| (*preset, *url, thread))
                    .ok()
            })
            .collect();
        let offers = asked.into_iter().filter_map(|(preset, url, thread)| {
            let models = thread.join().ok()??;
            Some(Offer {
                provider: preset.name,
                reason: format!("{} runs at {url}", preset.title),
                model: models.into_iter().next(),
            })
        });
        offers.collect()
    })
}

/// What a person is told of the offers; `command` sets a setting.
pub fn text(offers: &[Offer], command: &str) -> String {
    if offers.is_empty() {
        return String::new();
    }
    let mut text = "No model is connected yet. What could be used:\n".to_owned();
    for offer in offers {
        let model = offer.model.as_deref().unwrap_or("NAME");
        text.push_str(&format!(
            "\n  {}:\n    {command} model {}\n    {command} provider {}\n",
            offer.reason,
            quoted(model),
            offer.provider
        ));
    }
    text.push('\n');
    text
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/@+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        let word: String = word.chars().filter(|letter| !letter.is_control()).collect();
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Instant;

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
                Some(body) => write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
                .unwrap(),
                // Until the other side has had enough.
                None => drop(stream.read(&mut head)),
            }
        });
        (url, thread)
    }

    #[test]
    fn who_answers_in_time_is_offered_and_who_does_not_is_not_waited_for() {
        let (ollama, llamacpp) = (
            Preset::of("ollama").unwrap(),
            Preset::of("llamacpp").unwrap(),
        );
        let (url, first) = server(Some("{\"models\":[{\"name\":\"qwen3:8b\"}]}"));
        let (silent, second) = server(None);
        let began = Instant::now();
        let offers = look_at(&[(llamacpp, &silent), (ollama, &url)], LIMIT);
        assert!(began.elapsed() < LIMIT * 3);
        first.join().unwrap();
        second.join().unwrap();
        let text = text(&offers, "hearth config set --data-dir /d");
        assert!(
            text.contains("hearth config set --data-dir /d provider ollama\n")
                && text.contains("model qwen3:8b\n")
                && !text.contains("llamacpp"),
            "{text}"
        );
    }

    #[test]
    fn nobody_there_takes_no_time_and_says_nothing() {
        let url = "http://127.0.0.1:1";
        let offers = look_at(&[(Preset::of("ollama").unwrap(), url)], LIMIT);
        assert_eq!(text(&offers, ""), "");
    }

    #[test]
    fn a_key_in_the_environment_is_offered_without_being_shown() {
        let variable = |name: &str| (name == "GROQ_API_KEY").then(|| "gsk-secret".to_owned());
        let offers = look(variable);
        let text = text(&offers, "");
        assert!(text.contains("GROQ_API_KEY is set") && text.contains("provider groq"));
        assert!(!text.contains("gsk-secret"));
    }

    #[test]
    fn names_from_a_server_cannot_leave_their_word() {
        assert_eq!(quoted("a; rm -rf ~"), "'a; rm -rf ~'");
        assert_eq!(quoted("it's\n"), "'it'\\''s'");
        assert_eq!(quoted("org/model:7b"), "org/model:7b");
    }
}
