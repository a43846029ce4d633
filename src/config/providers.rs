//! The model providers: a table with a row for each value of `provider`, and the
//! rules for the settings that name one.

use serde::Serialize;
use serde_json::{Value, json};

use super::declaration::{Rule, section};
use super::key_path::KeyPath;
use super::readable::{is_set, url};
use super::reader::Reader;
use super::rules::{Number, Parsed, SecretText, Text, UrlText, choose, integer};
use base::language::Said;
use base::secret::Secret;

/// The kind of API that a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// None: answers come from rules.
    Offline,
    /// OpenAI's Chat Completions, and its Responses for models that need them.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own.
    Ollama,
}

impl Api {
    /// Whether it has a method that makes vectors of texts. A server may still have no
    /// model for it.
    pub fn has_embeddings(self) -> bool {
        matches!(self, Api::OpenAi | Api::Ollama)
    }
}

/// One row: what is known of a provider before it is asked.
#[derive(Debug)]
pub struct Preset {
    /// The word in the configuration.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it speaks.
    pub api: Api,
    /// Its usual address; a `base_url` is required where there is none.
    pub base_url: Option<&'static str>,
    /// The environment variable in which people keep its key.
    pub key_variable: Option<&'static str>,
    /// How it differs.
    pub quirks: Quirks,
}

/// How a provider differs from others for people who set it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// It answers with the model it has, whatever the request names.
    pub serves_any_model: bool,
    /// Its list of models needs no key; a request to this path checks one.
    pub key_path: Option<&'static str>,
    /// How its owner starts it, for when it does not run.
    pub start: Option<&'static str>,
}

/// A provider without quirks.
const PLAIN: Quirks = Quirks {
    serves_any_model: false,
    key_path: None,
    start: None,
};

/// The provider that needs no key and no network.
pub const OFFLINE: &str = "offline";
/// The provider that is any host with OpenAI's API; it needs a `base_url`.
pub const OPENAI_COMPATIBLE: &str = "openai-compatible";

const fn hosted(
    name: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
) -> Preset {
    Preset {
        name,
        title,
        api: Api::OpenAi,
        base_url: Some(base_url),
        key_variable: Some(key_variable),
        quirks: PLAIN,
    }
}

const fn at_home(name: &'static str, title: &'static str, base_url: &'static str) -> Preset {
    Preset {
        name,
        title,
        api: Api::OpenAi,
        base_url: Some(base_url),
        key_variable: None,
        quirks: PLAIN,
    }
}

/// Every provider, in the order in which they are listed to people.
#[rustfmt::skip]
pub const PRESETS: &[Preset] = &[
    Preset { name: OFFLINE, title: "The offline stand-in", api: Api::Offline, base_url: None, key_variable: None, quirks: PLAIN },
    hosted("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    Preset { api: Api::Anthropic, ..hosted("anthropic", "Anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY") },
    Preset { api: Api::Ollama, quirks: Quirks { start: Some("ollama serve"), ..PLAIN }, ..at_home("ollama", "Ollama", "http://127.0.0.1:11434") },
    Preset { name: OPENAI_COMPATIBLE, title: "The model server", api: Api::OpenAi, base_url: None, key_variable: None, quirks: PLAIN },
    Preset { quirks: Quirks { key_path: Some("/key"), ..PLAIN }, ..hosted("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY") },
    hosted("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    hosted("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    hosted("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    hosted("gemini", "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    hosted("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY"),
    hosted("together", "Together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    hosted("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    Preset { quirks: Quirks { start: Some("lms server start"), ..PLAIN }, ..at_home("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1") },
    Preset { quirks: Quirks { serves_any_model: true, start: Some("llama-server -m MODEL.gguf"), ..PLAIN }, ..at_home("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1") },
    Preset { quirks: Quirks { start: Some("vllm serve MODEL"), ..PLAIN }, ..at_home("vllm", "vLLM", "http://127.0.0.1:8000/v1") },
    Preset { quirks: Quirks { start: Some("litellm"), ..PLAIN }, ..at_home("litellm", "LiteLLM", "http://127.0.0.1:4000/v1") },
];

impl Preset {
    /// The provider of this name.
    pub fn of(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

/// The rule for the name of a provider.
pub(super) struct ProviderName;

impl Rule for ProviderName {
    type Output = String;

    fn expected(&self) -> Said {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        Said::of("config.one_of", &[("names", &names.join(", "))])
    }

    fn schema(&self) -> Value {
        json!({ "enum": PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>() })
    }

    fn read(&self, reader: &mut Reader<'_>, path: &KeyPath, value: &Value) -> Option<String> {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let place = choose(&names, &self.expected(), reader, path, value)?;
        Some(PRESETS[place].name.to_owned())
    }
}

section! {
    /// A model at a provider: one entry of `fallback`.
    #[derive(Clone, Debug, Serialize)]
    pub struct ModelChoice {
        /// Model provider, as `provider`.
        pub provider: String = ProviderName.required();
        /// The model's name at this provider.
        pub model: String = Text(1..=200).required();
        /// This provider's API key. If it is missing, Hearth reads the provider's usual environment
        /// variable.
        #[serde(rename = "api_key_set", serialize_with = "is_set")]
        pub api_key: Option<Secret> = SecretText.optional("the usual environment variable");
        /// This provider's address, if it is not the usual one.
        #[serde(serialize_with = "url")]
        pub base_url: Option<String> = UrlText(&["https", "http"])
            .optional("the provider's usual address");
        /// Context window of this model, in tokens, as `context_tokens`.
        pub context_tokens: Option<u32> = integer(2_048..=10_000_000)
            .optional("as for `context_tokens`");
        /// How long this model's first word may take, as `first_token_seconds`.
        pub first_token_seconds: Option<u32> = integer(1..=3_600)
            .optional("as for `first_token_seconds`");
    }
}

impl ModelChoice {
    /// Takes the key from the provider's usual environment variable where none
    /// is set. Not for an address of one's own: a key goes to nobody but the
    /// provider that gave it.
    pub(super) fn find_key(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        if self.api_key.is_some() || self.base_url.is_some() {
            return;
        }
        self.api_key = Preset::of(&self.provider)
            .and_then(|preset| preset.key_variable)
            .and_then(environment)
            .map(|key| key.trim().to_owned())
            .filter(|key| !key.is_empty())
            .map(Secret::new);
    }
}

/// The name of a model that has a price.
pub(super) const MODEL_NAME: Parsed<String> = Parsed {
    expected: "the name of a model: 1 to 200 characters",
    parse: |text| ((1..=200).contains(&text.chars().count())).then(|| text.to_owned()),
};

section! {
    /// `prices.MODEL`: what a million tokens of a model cost, in the household's currency.
    #[derive(Clone, Debug, Serialize)]
    pub struct Price {
        /// What is sent.
        pub input: f64 = Number(0.0..=100_000.0).required();
        /// What is sent and was in the provider's cache.
        pub cached: Option<f64> = Number(0.0..=100_000.0).optional("`input`");
        /// What the model writes.
        pub output: f64 = Number(0.0..=100_000.0).required();
    }
}

impl Price {
    /// What so many tokens cost, of which as many as `cached` of the input were cached.
    pub fn of(&self, input: u64, cached: u64, output: u64) -> f64 {
        let fresh = input.saturating_sub(cached);
        let of_cache = self.cached.unwrap_or(self.input);
        let sum =
            fresh as f64 * self.input + cached as f64 * of_cache + output as f64 * self.output;
        sum / 1_000_000.0
    }
}

section! {
    /// What models may cost: the section `budget`.
    #[derive(Clone, Debug, Default, Serialize)]
    pub struct Budget {
        /// Tokens per calendar month (UTC), input and output together. When they are used up, turns
        /// end with an error until the next month or until you raise the budget.
        pub monthly_tokens: Option<u64> = integer(1..=1_000_000_000_000_000)
            .optional("no limit");
    }
}
