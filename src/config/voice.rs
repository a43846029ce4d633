//! `voice`: the servers that turn speech into text, and text into speech.

use serde::Serialize;

use super::collections::object;
use super::declaration::{Rule, default_is_absent, section};
use super::readable::{is_set, masked_url};
use super::rules::{SecretText, Text, UrlText};
use base::secret::Secret;

section! {
    /// The section `voice`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Voice {
        /// Turns what is said into text: a server in OpenAI's form, such as whisper.cpp or speaches.
        /// People can then talk to the assistant in the page.
        pub transcription: Option<Transcription> = object::<Transcription>().optional("none"), writable;
        /// Turns replies into speech: a server in OpenAI's form.
        pub speech: Option<Speech> = object::<Speech>().optional("none"), writable;
    }
}

section! {
    /// A server with `/v1/audio/transcriptions`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Transcription {
        /// Its address: as it is or, where it ends in `/v1`, with `/audio/transcriptions` behind it.
        #[serde(serialize_with = "masked_url")]
        pub url: String = UrlText(&["https", "http"]).required(), writable;
        /// The server's API key.
        #[serde(rename = "api_key_set", serialize_with = "is_set")]
        pub api_key: Option<Secret> = SecretText.optional("none"), writable;
        /// The model's name there.
        pub model: String = Text(1..=200).or("whisper-1".to_owned()), writable;
        /// The language that is spoken, such as "de".
        pub language: Option<String> = Text(2..=16).optional("the server detects it"), writable;
    }
}

section! {
    /// A server with `/v1/audio/speech`.
    #[derive(Clone, Debug, Serialize)]
    pub struct Speech {
        /// Its address: as it is or, where it ends in `/v1`, with `/audio/speech` behind it.
        #[serde(serialize_with = "masked_url")]
        pub url: String = UrlText(&["https", "http"]).required(), writable;
        /// The server's API key.
        #[serde(rename = "api_key_set", serialize_with = "is_set")]
        pub api_key: Option<Secret> = SecretText.optional("none"), writable;
        /// The model's name there.
        pub model: String = Text(1..=200).or("tts-1".to_owned()), writable;
        /// The voice that speaks.
        pub voice: String = Text(1..=200).or("alloy".to_owned()), writable;
    }
}

default_is_absent!(Voice);
