//! `voice`: the servers that turn speech into text, and text into speech.

use serde::{Serialize, Serializer};
use serde_json::json;

use super::collections::object;
use super::declaration::{Rule, default_is_absent, section};
use super::rules::{SecretText, Text, UrlText};
use base::secret::Secret;

section! {
    /// The section `voice`.
    #[derive(Clone, Debug)]
    pub struct Voice {
        /// Turns what is said into text: a server in OpenAI's form, such as whisper.cpp or speaches.
        /// People can then talk to the assistant in the page.
        pub transcription: Option<Transcription> = object::<Transcription>().optional("none");
        /// Turns replies into speech: a server in OpenAI's form.
        pub speech: Option<Speech> = object::<Speech>().optional("none");
    }
}

section! {
    /// A server with `/v1/audio/transcriptions`.
    #[derive(Clone, Debug)]
    pub struct Transcription {
        /// Its address: as it is or, where it ends in `/v1`, with `/audio/transcriptions` behind it.
        pub url: String = UrlText(&["https", "http"]).required();
        /// The server's API key.
        pub api_key: Option<Secret> = SecretText.optional("none");
        /// The model's name there.
        pub model: String = Text(1..=200).or("whisper-1".to_owned());
        /// The language that is spoken, such as "de".
        pub language: Option<String> = Text(2..=16).optional("the server finds it out");
    }
}

section! {
    /// A server with `/v1/audio/speech`.
    #[derive(Clone, Debug)]
    pub struct Speech {
        /// Its address: as it is or, where it ends in `/v1`, with `/audio/speech` behind it.
        pub url: String = UrlText(&["https", "http"]).required();
        /// The server's API key.
        pub api_key: Option<Secret> = SecretText.optional("none");
        /// The model's name there.
        pub model: String = Text(1..=200).or("tts-1".to_owned());
        /// The voice that speaks.
        pub voice: String = Text(1..=200).or("alloy".to_owned());
    }
}

default_is_absent!(Voice);

/// As `get_config` shows it: what there is.
impl Serialize for Voice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({ "transcription": self.transcription.is_some(), "speech": self.speech.is_some() })
            .serialize(serializer)
    }
}
