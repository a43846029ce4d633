//! Speech: passed on to the servers that understand it and make it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::Service;
use super::caller::Responder;
use agent::model::voice::{self, AUDIO_BYTES, Patience, Recording, SPOKEN_BYTES};
use base::error::{Error, Result};
use base::language::Said;
use base::sync::lock;
use config::Config;
use protocol::attachment::encode;
use protocol::command::{Speak, Transcribe};

impl Service {
    /// Answers with what is said in a recording.
    pub(super) fn transcribe(&self, asked: Transcribe, responder: Responder) {
        let bytes = asked.audio.len();
        let check = match bytes {
            1..=AUDIO_BYTES => Ok(()),
            0 => Err(Error::refused("error.recording_empty", &[])),
            _ => Err(too_large("error.recording_large", bytes, AUDIO_BYTES)),
        };
        self.voice(check, responder, move |config, patience| {
            let recording = Recording::of_browser(&asked.audio, &asked.media_type)?;
            let text = voice::transcribe(config, &recording, patience)?;
            Ok(json!({ "text": text }))
        });
    }

    /// Answers with a text as speech.
    pub(super) fn speak(&self, asked: Speak, responder: Responder) {
        let bytes = asked.text.len();
        let check = match asked.text.trim().is_empty() {
            true => Err(Error::invalid_request("\"text\" must not be empty")),
            false if bytes > SPOKEN_BYTES => {
                Err(too_large("error.spoken_long", bytes, SPOKEN_BYTES))
            }
            false => Ok(()),
        };
        self.voice(check, responder, move |config, patience| {
            // MP3 plays everywhere.
            let spoken = voice::speak(config, &asked.text, "mp3", AUDIO_BYTES, patience);
            let (media_type, audio) = spoken?;
            Ok(json!({ "audio": encode(&audio), "media_type": media_type }))
        });
    }

    fn voice(
        &self,
        check: Result<()>,
        responder: Responder,
        ask: impl FnOnce(&Config, &Patience<'_>) -> Result<Value> + Send + 'static,
    ) {
        let config: Arc<Config> = self.settings.current();
        // Where no thread could be started, the caller learns so.
        let waiting = Arc::new(Mutex::new(Some(responder)));
        let asking = Arc::clone(&waiting);
        let begun = check.and_then(|()| {
            self.voices.run(move |patience| {
                let answer = ask(&config, patience);
                if let Some(responder) = lock(&asking).take() {
                    responder.send(answer);
                }
            })
        });
        if let Err(error) = begun
            && let Some(responder) = lock(&waiting).take()
        {
            responder.refuse(error);
        }
    }
}

fn too_large(key: &'static str, bytes: usize, most: usize) -> Error {
    let (bytes, most) = (bytes.to_string(), most.to_string());
    Error::too_large(Said::of(key, &[("bytes", &bytes), ("most", &most)]))
}
