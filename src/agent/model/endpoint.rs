//! A model server: where it is, what people call it, its key, which is removed from every
//! text that leaves this module. How it is asked is in `send`.

use crate::model::{Cause, ProviderError, Refusal};
use base::language::Said;
use base::secret::Secret;
use base::url::{Host, Url, masked};
use config::{Api, ModelChoice, Preset};
use net::http_client::{ClientError, HttpClient};
use net::tls::Trust;

/// Most characters of a server's own words that a person is shown.
const QUOTED: usize = 200;
/// Shortest piece of a key that is recognised when a server quotes it.
const KEY_PIECE: usize = 6;

/// A model server.
pub struct Endpoint {
    /// What a person calls it: `OpenAI (api.openai.com)`.
    pub subject: Said,
    /// Scheme, host, port and path, without a slash at the end or a user name.
    pub base_url: String,
    /// Host name, without the port.
    pub host: String,
    /// Whether it is on this machine or a private network.
    pub is_local: bool,
    /// Whether addresses of such servers usually end so, as advice for a wrong one.
    ends_in_v1: bool,
    key: Option<Secret>,
    /// Asks it, and keeps connections to it.
    pub http_client: HttpClient,
}

impl Endpoint {
    /// The server of a choice. None if its provider is unknown or `offline`, or
    /// has no address.
    pub fn of_choice(choice: &ModelChoice, trust: &Trust) -> Option<Endpoint> {
        let preset = Preset::of(&choice.provider)?;
        let url = choice.base_url.as_deref().or(preset.base_url)?;
        let key = choice.api_key.clone();
        let endpoint = match preset.api {
            Api::Offline => return None,
            Api::OpenAi => Endpoint::new(preset.title, url, key),
            Api::Anthropic => Endpoint::below(preset.title, url, &["/messages", "/v1"], key),
            Api::Ollama => Endpoint::below(preset.title, url, &["/chat", "/api", "/v1"], key),
        };
        Some(endpoint.trusting(trust.clone()))
    }

    /// The server at `base_url`, without a slash at the end or the path of a
    /// method, which people paste.
    pub fn new(name: &str, base_url: &str, key: Option<Secret>) -> Endpoint {
        Endpoint::below(name, base_url, &["/chat/completions", "/responses"], key)
    }

    /// [`Endpoint::new`] with the `paths` to take off the end, one after the other.
    pub fn below(name: &str, base_url: &str, paths: &[&str], key: Option<Secret>) -> Endpoint {
        let mut trimmed = base_url.trim().trim_end_matches('/');
        for path in paths {
            trimmed = trimmed
                .strip_suffix(path)
                .unwrap_or(trimmed)
                .trim_end_matches('/');
        }
        let url = Url::parse(trimmed).ok();
        let base_url = match &url {
            // A user name would come back in error messages.
            Some(url) if url.user.is_some() => {
                let user = None;
                Url {
                    user,
                    ..url.clone()
                }
                .text()
            }
            _ => trimmed.to_owned(),
        };
        let authority = url.map(|url| url.authority);
        let address = match &authority {
            Some(authority) => authority.to_string(),
            None => masked(trimmed),
        };
        let at = |key| Said::of(key, &[("address", &address)]);
        let subject = match name {
            "The model server" => at("server.model"),
            "The speech server" => at("server.speech"),
            "The transcription server" => at("server.transcription"),
            name => format!("{name} ({address})").into(),
        };
        let host = authority.map(|authority| authority.host);
        Endpoint {
            subject,
            is_local: host.as_ref().is_some_and(Host::is_local),
            ends_in_v1: !paths.contains(&"/v1"),
            host: host.map(|host| host.to_string()).unwrap_or_default(),
            base_url,
            key: key.filter(|key| !key.is_empty()),
            http_client: HttpClient::new(),
        }
    }

    /// Trusts these servers instead of those of the public authorities.
    pub fn trusting(mut self, trust: Trust) -> Endpoint {
        self.http_client = self.http_client.trusting(trust);
        self
    }

    /// The key, for the one header that carries it.
    pub fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// `text` for the log: without the key, whole or in recognisable pieces
    /// (servers like to quote its beginning and end).
    pub fn scrub(&self, text: &str) -> String {
        let Some(key) = self.key.as_ref().map(Secret::expose) else {
            return text.to_owned();
        };
        let text = text.replace(key, "[key]");
        let is_word = |letter: char| letter.is_alphanumeric() || "_-.*…".contains(letter);
        let mut clean = String::with_capacity(text.len());
        for piece in text.split_inclusive(|letter| !is_word(letter)) {
            let word = piece.trim_end_matches(|letter| !is_word(letter));
            if quotes(word, key) {
                clean.push_str("[key]");
                clean.push_str(&piece[word.len()..]);
            } else {
                clean.push_str(piece);
            }
        }
        clean
    }

    /// The server's own words for a person: one short line without the key.
    pub fn quote(&self, text: &str) -> String {
        let text = self.scrub(text);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(QUOTED) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// How addresses of such servers usually end, as advice for a wrong one.
    pub fn path_hint(&self) -> Said {
        match self.ends_in_v1 {
            true => model_error("v1", &[]),
            false => "".into(),
        }
    }

    /// A sentence that `says` something about this server.
    pub fn sentence(&self, says: impl Into<Said>) -> Said {
        let sentence = Said::of("error.of_server", &[]).with("server", self.subject.clone());
        sentence.with("says", says)
    }

    /// A failure that `says` something about this server.
    pub fn failed(
        &self,
        says: Said,
        detail: impl std::fmt::Display,
        cause: Cause,
    ) -> ProviderError {
        ProviderError::Failed {
            cause,
            refusal: Refusal::for_cause(cause),
            public: self.sentence(says),
            detail: self.scrub(&format!("{detail}, at {}", masked(&self.base_url))),
        }
    }

    /// A failed exchange with this server. `answered` says whether the head of an
    /// answer had arrived.
    pub fn unanswered(&self, error: &ClientError, answered: bool) -> ProviderError {
        let cause = match error {
            ClientError::Cancelled => return ProviderError::Cancelled,
            ClientError::TimedOut => return ProviderError::TimedOut,
            ClientError::TooLarge(_) => Cause::Request,
            _ => Cause::Server,
        };
        self.failed(self.why_unanswered(error, answered), error, cause)
    }

    /// What it did instead of answering, as the end of a sentence.
    pub fn why_unanswered(&self, error: &ClientError, answered: bool) -> Said {
        let key = match error {
            ClientError::Encoded(coding) => return model_error("encoded", &[("coding", coding)]),
            ClientError::Exhausted => "no_descriptors",
            ClientError::Unreachable(_) | ClientError::Refused(_) if self.is_local => "not_running",
            ClientError::Unreachable(_) | ClientError::Refused(_) | ClientError::Forbidden(_) => {
                "unreachable"
            }
            ClientError::Address(_) => "address",
            ClientError::Untrusted(_) => "untrusted",
            ClientError::NotHttp(_) => "not_http",
            ClientError::Interrupted { .. } => "no_answer",
            ClientError::Silent(_) | ClientError::TimedOut | ClientError::Cancelled
                if !answered =>
            {
                "late"
            }
            ClientError::Silent(_) | ClientError::TimedOut | ClientError::Cancelled => "stopped",
            ClientError::TooLarge(_) => "answer_large",
        };
        model_error(key, &[])
    }
}

/// What went wrong at a model server, as the end of a sentence about it.
pub fn model_error(key: &str, fields: &[(&'static str, &str)]) -> Said {
    Said::of(format!("error.model.{key}"), fields)
}

/// Whether a word is the key with its middle hidden, or a long piece of it.
fn quotes(word: &str, key: &str) -> bool {
    word.split(['*', '.', '…'])
        .any(|part| part.len() >= KEY_PIECE && key.contains(part))
        || (word.contains("**")
            && word
                .chars()
                .next()
                .is_some_and(|first| key.starts_with(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_paste_them() {
        for (pasted, base_url, subject, is_local) in [
            (
                "http://127.0.0.1:8080/v1/",
                "http://127.0.0.1:8080/v1",
                "The model server at 127.0.0.1:8080",
                true,
            ),
            (
                " https://llm.example/v1/chat/completions/ ",
                "https://llm.example/v1",
                "The model server at llm.example",
                false,
            ),
            (
                "http://me:pass@nas:1234",
                "http://nas:1234",
                "The model server at nas:1234",
                true,
            ),
        ] {
            let endpoint = Endpoint::new("The model server", pasted, None);
            assert_eq!(endpoint.base_url, base_url);
            assert_eq!(endpoint.subject.to_string(), subject);
            assert_eq!(endpoint.is_local, is_local, "{pasted}");
        }
    }

    #[test]
    fn a_quoted_key_is_hidden_and_words_are_not() {
        let key = Secret::new("sk-proj-AbCdEf123456WxYz");
        let endpoint = Endpoint::new("OpenAI", "https://api.openai.com/v1", Some(key));
        for (said, clean) in [
            (
                "Incorrect API key provided: sk-proj-********WxYz. See the project page.",
                "Incorrect API key provided: [key] See the project page.",
            ),
            ("key=sk-proj-AbCdEf123456WxYz!", "key=[key]!"),
            ("bad key \"AbCdEf12\"", "bad key \"[key]\""),
            ("the model is not known", "the model is not known"),
        ] {
            assert_eq!(endpoint.scrub(said), clean);
        }
    }
}
