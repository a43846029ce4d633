//! The model names under which the assistant answers.

use base::error::{Error, Result};
use config::Config;

/// The assistant, whichever model it uses.
pub const ASSISTANT: &str = "hearth";
/// Its model alone, without tools, memory and the past.
const PLAIN: &str = "hearth-plain";
/// What Ollama's clients add to a name that has no tag.
const TAG: &str = ":latest";

/// Every name, without tag. All but [`PLAIN`] mean the same: the assistant as the household
/// has configured it.
pub fn names(config: &Config) -> Vec<&str> {
    let mut names = vec![ASSISTANT, PLAIN];
    if config.model != ASSISTANT {
        names.push(&config.model);
    }
    names
}

/// The names that programs look for before they send speech, or have it made.
pub fn voices(config: &Config) -> impl Iterator<Item = &str> {
    let voice = &config.voice;
    let hears = voice.transcription.is_some().then_some("whisper-1");
    let speaks = voice.speech.is_some().then_some("tts-1");
    hears.into_iter().chain(speaks)
}

/// Whether this is the model alone.
pub fn is_plain(name: &str) -> bool {
    name.strip_suffix(TAG).unwrap_or(name) == PLAIN
}

/// Checks the name in a request.
///
/// # Errors
/// `not_found` naming those that there are.
pub fn check(config: &Config, name: &str) -> Result<()> {
    let plain = name.strip_suffix(TAG).unwrap_or(name);
    let names = names(config);
    if names.contains(&name) || names.contains(&plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(100).collect();
    let (last, others) = names.split_last().unwrap_or((&ASSISTANT, &[]));
    Err(Error::not_found(format!(
        "there is no model {shown:?} here; there are {} and {last}",
        others.join(", ")
    )))
}

/// A name as Ollama lists it: with a tag.
pub fn tagged(name: &str) -> String {
    if name.contains(':') {
        name.to_owned()
    } else {
        format!("{name}{TAG}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assistant_has_its_name_and_its_models() {
        let config = Config {
            model: "qwen3:8b".to_owned(),
            ..Config::default()
        };
        for (name, good) in [
            ("hearth", true),
            ("hearth:latest", true),
            ("hearth-plain:latest", true),
            ("qwen3:8b", true),
            ("qwen3", false),
            ("gpt-5", false),
            ("", false),
        ] {
            assert_eq!(check(&config, name).is_ok(), good, "{name}");
        }
        let unknown = check(&config, "gpt-5").unwrap_err();
        assert_eq!(
            unknown.message(),
            "there is no model \"gpt-5\" here; there are hearth, hearth-plain and qwen3:8b"
        );
        assert_eq!(tagged("hearth"), "hearth:latest");
        assert_eq!(tagged("qwen3:8b"), "qwen3:8b");
    }
}
