//! `openai_api`: the household's assistant behind the interfaces of model servers.

use serde::Serialize;

use super::declaration::{Rule, section};
use super::rules::{Flag, Text};

section! {
    /// The section `openai_api`.
    #[derive(Clone, Debug, Serialize)]
    pub struct OpenAiApi {
        /// Whether programs made for OpenAI (`/v1/...`) and Ollama (`/api/...`) may talk to the
        /// assistant, with an API token as their key.
        pub enabled: bool = Flag.or(false);
        /// The user for programs that send no token to `/api/...`, from loopback and private
        /// addresses only: for clients of Ollama that cannot send a key. Anybody in your network
        /// can then talk to the assistant as this user.
        pub ollama_user: Option<String> = Text(1..=64).optional("nobody: a token is needed");
    }
}
