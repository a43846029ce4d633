//! How many tokens of a model's context window a request may use.

use crate::provider::OLLAMA_CONTEXT;
use base::url::{Host, Url};
use config::{Api, Config, Preset};

/// The window of an unknown model, and of models that people run at home: many
/// servers load them with no more.
const SMALL_WINDOW: usize = 8_192;
/// The window of the large providers' models: few have less.
const LARGE_WINDOW: usize = 128_000;

/// The hosts of the large providers, or the ends of their names.
const LARGE_HOSTS: [&str; 12] = [
    "anthropic.com",
    "azure.com",
    "deepseek.com",
    "googleapis.com",
    "groq.com",
    "mistral.ai",
    "ollama.com",
    "openai.com",
    "openrouter.ai",
    "together.ai",
    "together.xyz",
    "x.ai",
];
/// Models of the large providers with another window, by the beginning of their
/// names; the first match counts.
const MODELS: [(&str, usize); 8] = [
    ("claude", 200_000),
    ("gpt-3.5-turbo-instruct", 4_096),
    ("gpt-3.5", 16_385),
    ("gpt-4-0125", LARGE_WINDOW),
    ("gpt-4-1106", LARGE_WINDOW),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", LARGE_WINDOW),
    ("gpt-4-", 8_192),
];

/// Tokens that are left for a reply of unknown length.
const USUAL_REPLY: usize = 4_096;
/// Tokens that are always kept free besides the reply: estimates are not exact.
const LEAST_MARGIN: usize = 1_024;

/// The window of `model`, in tokens: `context_tokens` where it is set.
pub fn context_window(config: &Config, model: &str) -> usize {
    if let Some(tokens) = config.context_tokens {
        return tokens as usize;
    }
    let preset = Preset::of(&config.provider);
    match preset.map(|preset| preset.api) {
        Some(Api::Offline) => return LARGE_WINDOW,
        // Every request sets it.
        Some(Api::Ollama) => return OLLAMA_CONTEXT as usize,
        _ => {}
    }
    let is_large = match &config.base_url {
        Some(url) => Url::parse(url).is_ok_and(|url| is_large_host(&url.authority.host)),
        None => preset.is_some_and(|preset| preset.key_variable.is_some()),
    };
    if !is_large {
        return SMALL_WINDOW;
    }
    // OpenRouter and others put the vendor before the name.
    let name = model.rsplit('/').next().unwrap_or(model);
    let of_name = MODELS.iter().find(|(start, _)| name.starts_with(start));
    match of_name {
        Some((_, window)) => *window,
        None if name == "gpt-4" => SMALL_WINDOW,
        None => LARGE_WINDOW,
    }
}

fn is_large_host(host: &Host) -> bool {
    let Host::Name(name) = host else {
        return false;
    };
    let is_of = |domain: &str| {
        name.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    !host.is_local() && LARGE_HOSTS.iter().any(|domain| is_of(domain))
}

/// Most tokens of a request to `model`: its window without the reply
/// (`max_tokens`) and a margin.
pub fn request_tokens(config: &Config, model: &str) -> usize {
    let window = context_window(config, model);
    let reply = match config.max_tokens {
        Some(most) => (most as usize).min(window / 2),
        None => USUAL_REPLY.min(window / 4),
    };
    let margin = LEAST_MARGIN.max(window / 20).min(window / 8);
    window - reply - margin
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    fn config(provider: &str, base_url: Option<&str>) -> Config {
        Config {
            provider: provider.to_owned(),
            base_url: base_url.map(str::to_owned),
            ..Config::default()
        }
    }

    #[test]
    fn the_window_is_that_of_provider_and_model() {
        let table = "
            openai            | -                            | gpt-5              | 128000
            openai            | -                            | gpt-4              | 8192
            openai            | -                            | gpt-4-0613         | 8192
            openai            | -                            | gpt-4-turbo-2024   | 128000
            openai            | -                            | gpt-4.1-mini       | 128000
            openai            | -                            | gpt-3.5-turbo      | 16385
            anthropic         | -                            | claude-x           | 200000
            ollama            | -                            | llama              | 16384
            cerebras          | -                            | llama              | 128000
            llamacpp          | -                            | llama              | 8192
            offline           | -                            | offline            | 128000
            openai-compatible | http://127.0.0.1:8080/v1     | gpt-5              | 8192
            openai-compatible | http://nas.local/v1          | llama              | 8192
            openai-compatible | https://llm.example/v1       | llama              | 8192
            openai-compatible | https://notx.ai/v1           | llama              | 8192
            openai-compatible | https://openrouter.ai/api/v1 | anthropic/claude-x | 200000
            openai-compatible | https://api.mistral.ai/v1    | large              | 128000
        ";
        for [provider, base_url, model, expected] in rows(table) {
            let base_url = (base_url != "-").then_some(base_url);
            let config = config(provider, base_url);
            let window = context_window(&config, model).to_string();
            assert_eq!(window, expected, "{provider} {base_url:?} {model}");
        }
        let set = Config {
            context_tokens: Some(32_000),
            ..config("openai", None)
        };
        assert_eq!(context_window(&set, "gpt-4"), 32_000);
    }

    #[test]
    fn the_reply_and_a_margin_are_kept_free() {
        for (window, max_tokens, expected) in [
            (8_192, None, 8_192 - 2_048 - 1_024),
            (128_000, None, 128_000 - 4_096 - 6_400),
            (128_000, Some(16_000), 128_000 - 16_000 - 6_400),
            (8_192, Some(8_192), 4_096 - 1_024),
            (2_048, None, 2_048 - 512 - 256),
            (2_048, Some(1_000_000), 1_024 - 256),
        ] {
            let config = Config {
                context_tokens: Some(window),
                max_tokens,
                ..Config::default()
            };
            assert_eq!(
                request_tokens(&config, "m"),
                expected,
                "{window} {max_tokens:?}"
            );
        }
    }
}
