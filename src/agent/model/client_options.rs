//! What the program that asks wants of a reply, beyond the household's settings.

use serde_json::{Map, Value};

/// What a program wants of one reply. What a service cannot be told is refused, and not
/// left out: the program relies on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// Where the reply ends, without these words.
    pub stop: Vec<String>,
    /// The form of the reply.
    pub format: Option<Format>,
    /// That the reply is a call.
    pub must_call: Option<MustCall>,
    /// Tools whose arguments must fit their schema.
    pub strict: Vec<String>,
    /// That it is words, and no call.
    pub may_not_call: bool,
    /// Most tokens of the reply, if that is less than the household allows.
    pub max_tokens: Option<u32>,
    /// Instead of the household's.
    pub temperature: Option<f64>,
    /// How tokens are chosen, in the words of OpenAI's and Ollama's interfaces, such as
    /// `top_p` and `seed`.
    pub sampling: Map<String, Value>,
}

/// The form of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema {
        /// What the program calls it.
        name: String,
        /// What it is for, in words for the model.
        description: Option<String>,
        /// JSON Schema.
        schema: Value,
        /// Whether the reply must fit it, where a service does not see to that anyway.
        is_strict: bool,
    },
}

/// Which tool is called.
#[derive(Clone, Debug, PartialEq)]
pub enum MustCall {
    /// Any.
    Any,
    /// The one of this name.
    Tool(String),
}

impl ClientOptions {
    /// Whether something must fit its schema.
    pub(crate) fn is_strict(&self) -> bool {
        let of_format = |format: &Format| {
            matches!(
                format,
                Format::Schema {
                    is_strict: true,
                    ..
                }
            )
        };
        !self.strict.is_empty() || self.format.as_ref().is_some_and(of_format)
    }

    /// The first of these that a service cannot be told, which takes `sampling` alone.
    pub(crate) fn beyond(&self, supported: &SupportedOptions) -> Option<&str> {
        let refused = [
            (!supported.stop && !self.stop.is_empty(), "stop"),
            (
                !supported.any_json && self.format == Some(Format::Json),
                "a JSON object without a schema",
            ),
            (
                !supported.must_call && self.must_call.is_some(),
                "tool_choice",
            ),
        ];
        let sampling = self.sampling.keys().map(|name| {
            let is_known = supported.all_sampling || supported.sampling.contains(&name.as_str());
            (!is_known, name.as_str())
        });
        let mut wishes = refused.into_iter().chain(sampling);
        wishes.find_map(|(is_refused, what)| is_refused.then_some(what))
    }
}

/// What a kind of API can be told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SupportedOptions {
    /// Words that end the reply.
    pub stop: bool,
    /// That it is JSON of any form.
    pub any_json: bool,
    /// That it is a call.
    pub must_call: bool,
    /// Everything in [`ClientOptions::sampling`].
    pub all_sampling: bool,
    /// Only these.
    pub sampling: &'static [&'static str],
}
