//! `memory`: how memories are found.

use serde::Serialize;

use super::collections::object;
use super::declaration::{Rule, default_is_absent, section};
use super::rules::{Text, integer};

section! {
    /// The section `memory`.
    #[derive(Clone, Debug, Serialize)]
    pub struct MemorySettings {
        /// A second way to find memories and messages: by what they mean. Hearth then sends each
        /// memory and each message once, and the text of each search, to the server of `provider`.
        pub embeddings: Option<Embeddings> = object::<Embeddings>()
            .optional("none: memories and messages are found by their words");
    }
}

section! {
    /// A model that makes vectors of texts.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct Embeddings {
        /// The name of an embedding model at the same server as `model`, such as
        /// "text-embedding-3-small", "mistral-embed" or, for Ollama, "embeddinggemma". After a
        /// change, all vectors are made again.
        pub model: String = Text(1..=200).required();
        /// How many numbers of each vector are kept. More find a little better, and take longer.
        pub dimensions: usize = integer(32..=512).or(384);
    }
}

default_is_absent!(MemorySettings);
