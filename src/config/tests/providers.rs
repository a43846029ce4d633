//! Providers, their keys, and the models that stand in.

use super::*;
use crate::{OFFLINE, PRESETS, Preset};
use base::secret::Secret;
use base::testing::rows;

const KEYS: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "sk-environment"),
    ("GROQ_API_KEY", "  gsk-environment\n"),
    ("MISTRAL_API_KEY", ""),
];

fn settings(text: &str) -> Settings {
    let look = |name: &str| {
        let held = KEYS.iter().find(|(known, _)| *known == name);
        held.map(|(_, value)| (*value).to_owned())
    };
    Settings::from_text(Path::new("config.json"), text, look)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn keys_come_from_the_file_or_the_usual_variable_and_go_to_no_other_address() {
    let table = r#"
        {"provider":"openai","model":"m"}                            | sk-environment
        {"provider":"openai","model":"m","api_key":"mine"}           | mine
        {"provider":"groq","model":"m"}                              | gsk-environment
        {"provider":"mistral","model":"m"}                           | -
        {"provider":"anthropic","model":"m"}                         | -
        {"provider":"openai","model":"m","base_url":"http://10.0.0.1/v1"} | -
        {"provider":"ollama","model":"m"}                            | -
        {}                                                           | -
    "#;
    for [text, key] in rows(table) {
        let key = (key != "-").then_some(key);
        let config = settings(text).current();
        let found = config.api_key.as_ref().map(Secret::expose);
        assert_eq!(found, key, "{text}");
    }
}

#[test]
fn a_missing_key_is_warned_of_with_its_variable() {
    let text = r#"{"provider":"anthropic","model":"m",
        "fallback":[{"provider":"mistral","model":"n"},{"provider":"groq","model":"o"}]}"#;
    let warnings = settings(text).warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("ANTHROPIC_API_KEY"), "{warnings:?}");
    assert!(
        warnings[1].contains("MISTRAL_API_KEY") && warnings[1].contains("line 2"),
        "{warnings:?}"
    );
    for (warning, advice) in warnings.iter().zip([
        "hearth config set api_key -",
        "hearth config set 'fallback[0].api_key' -",
    ]) {
        assert!(warning.ends_with(advice), "{warning}");
    }
}

#[test]
fn what_stands_in_is_read_checked_and_shown_without_keys() {
    let text = r#"{"provider":"ollama","model":"m","context_tokens":8192,
        "reasoning_effort":"low","budget":{"monthly_tokens":1000},
        "fallback":[{"provider":"openai-compatible","model":"n","api_key":"hidden-key",
                     "base_url":"http://me:pass@nas/v1"}]}"#;
    let settings = settings(text);
    let config = settings.current();
    assert_eq!(
        config.fallback[0].api_key.as_ref().unwrap().expose(),
        "hidden-key"
    );
    assert_eq!(config.budget.monthly_tokens, Some(1000));
    let shown = serde_json::to_string(&settings.readable()).unwrap();
    assert!(
        shown.contains("\"api_key_set\":true") && shown.contains("\"monthly_tokens\":1000"),
        "{shown}"
    );
    assert!(
        !shown.contains("hidden-key") && !shown.contains("pass@"),
        "{shown}"
    );
    let masked = settings.get("fallback").unwrap().to_string();
    assert!(!masked.contains("hidden-key"), "{masked}");
    let table = r#"
        {"fallback":[{"provider":"openai-compatible","model":"m"}]} | "base_url" is required by provider
        {"fallback":[{"provider":"ollama"}]}                        | "fallback[0].model" is required
        {"fallback":[{"provider":"olama","model":"m"}]}             | did you mean "ollama"?
        {"reasoning_effort":"hard"}                                 | "reasoning_effort" must be
        {"budget":{"monthly_tokens":0}}                             | must be an integer from 1
        {"context_tokens":5}                                        | must be an integer from 2048
    "#;
    for [text, problem] in rows(table) {
        let read = Settings::from_text(Path::new("config.json"), text, |_| None);
        let Err(problems) = read else {
            panic!("{text} was read");
        };
        let problems = problems.to_string();
        assert!(problems.contains(problem), "{problems}");
    }
}

#[test]
fn the_table_of_providers_holds_together() {
    for preset in PRESETS {
        assert_eq!(Preset::of(preset.name).unwrap().title, preset.title);
        let same = PRESETS.iter().filter(|other| other.name == preset.name);
        assert_eq!(same.count(), 1, "{}", preset.name);
        if let Some(url) = preset.base_url {
            assert!(!url.ends_with('/') && url.starts_with("http"), "{url}");
            let is_hosted = preset.key_variable.is_some();
            assert_eq!(is_hosted, url.starts_with("https://"), "{url}");
        }
    }
    assert!(Preset::of(OFFLINE).is_some() && Preset::of("OpenAI").is_none());
}
