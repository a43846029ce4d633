//! Speech turned into text, and text into speech, by servers in OpenAI's form
//! (<https://platform.openai.com/docs/api-reference/audio>).

use std::time::Instant;

use serde_json::json;

use super::classify::RequestKind;
use super::endpoint::{Endpoint, model_error};
use super::send::{ServerRequest, read_json};
use base::error::{Code, Error, Result};
use base::secret::Secret;
use config::{Config, Speech};
use net::cancel::Cancel;
use net::http_client::BODY_LIMIT;
use net::http_client::form::{FormFile, form};
use net::tls::Trust;

/// Most bytes of speech, either way: base64 of it fits into a message with the limits that
/// are usual.
pub const AUDIO_BYTES: usize = 512 * 1024;
/// Most bytes of a text that is spoken at once.
pub const SPOKEN_BYTES: usize = 2_000;

/// The kinds of recordings that browsers make, and the names of such files: servers go by them.
const RECORDINGS: [(&str, &str); 6] = [
    ("audio/webm", "speech.webm"),
    ("audio/ogg", "speech.ogg"),
    ("audio/mp4", "speech.mp4"),
    ("audio/mpeg", "speech.mp3"),
    ("audio/wav", "speech.wav"),
    ("audio/aac", "speech.aac"),
];

/// How long a request may take, and what stops it.
pub struct Patience<'a> {
    /// When the time is up.
    pub deadline: Instant,
    /// Stops it.
    pub cancel: &'a Cancel,
}

/// A recording as a file.
pub struct Recording<'a> {
    /// What is in it.
    pub bytes: &'a [u8],
    /// What kind of file it is.
    pub media_type: &'a str,
    /// Its name, of plain letters: servers go by the ending.
    pub file: &'a str,
    /// The language that is spoken, instead of the one that is set.
    pub language: Option<&'a str>,
}

impl<'a> Recording<'a> {
    /// One that a browser has made. `media_type` may have parameters.
    ///
    /// # Errors
    /// `invalid_request` for a kind that browsers do not make.
    pub fn of_browser(bytes: &'a [u8], media_type: &str) -> Result<Recording<'a>> {
        let kind = media_type.split(';').next().unwrap_or_default().trim();
        let known = RECORDINGS.iter().find(|(known, _)| *known == kind);
        let (media_type, file) = known.ok_or_else(|| {
            let kinds = RECORDINGS.map(|(kind, _)| kind).join(", ");
            Error::invalid_request(format!("\"media_type\" must be one of {kinds}"))
        })?;
        Ok(Recording {
            bytes,
            media_type,
            file,
            language: None,
        })
    }
}

/// What is said in a recording.
///
/// # Errors
/// `invalid_request`: no server is configured, or it refuses the recording; `server_error`:
/// it gave no answer.
pub fn transcribe(
    config: &Config,
    recording: &Recording<'_>,
    patience: &Patience<'_>,
) -> Result<String> {
    let settings = config.voice.transcription.as_ref();
    let settings = settings
        .ok_or_else(|| Error::worded(Code::InvalidRequest, "error.no_transcription", &[]))?;
    let mut fields = vec![("model", &*settings.model), ("response_format", "json")];
    let language = recording.language.or(settings.language.as_deref());
    fields.extend(language.map(|code| ("language", code)));
    let file = FormFile {
        field: "file",
        name: recording.file,
        media_type: recording.media_type,
        bytes: recording.bytes,
    };
    let (media_type, body) = form(&fields, &file);
    let (url, key) = (&settings.url, &settings.api_key);
    let endpoint = &server(config, "The transcription server", url, key);
    let request = ServerRequest {
        media_type: &media_type,
        ..request(endpoint, url, "/audio/transcriptions", &body, patience)
    };
    let answer = endpoint.ask(&request, RequestKind::Speech, |answer| {
        read_json(answer, BODY_LIMIT)
    });
    let answer = answer.map_err(|(failure, verdict)| failure.into_refusal(verdict, endpoint))?;
    let text = answer["text"].as_str().map(|text| text.trim().to_owned());
    text.ok_or_else(|| Error::server(endpoint.sentence(model_error("no_text", &[])), "speech"))
}

/// A text as speech in this format: its media type, and at most so many bytes of it.
///
/// # Errors
/// `invalid_request`: no server is configured, or it refuses the text; `server_error`: it
/// gave no answer, or more than that.
pub fn speak(
    config: &Config,
    text: &str,
    format: &str,
    most: usize,
    patience: &Patience<'_>,
) -> Result<(String, Vec<u8>)> {
    let settings = config.voice.speech.as_ref();
    let settings =
        settings.ok_or_else(|| Error::worded(Code::InvalidRequest, "error.no_speech", &[]))?;
    let Speech { model, voice, .. } = settings;
    let body = json!({
        "model": model, "voice": voice, "input": text, "response_format": format,
    });
    let (url, key) = (&settings.url, &settings.api_key);
    let endpoint = &server(config, "The speech server", url, key);
    let body = body.to_string();
    let request = ServerRequest {
        accept: "*/*",
        ..request(endpoint, url, "/audio/speech", body.as_bytes(), patience)
    };
    let spoken = endpoint.ask(&request, RequestKind::Speech, |answer| {
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        Ok((kind, answer.read_all(most)?))
    });
    spoken.map_err(|(failure, verdict)| failure.into_refusal(verdict, endpoint))
}

/// A server of speech.
fn server(config: &Config, title: &str, url: &str, key: &Option<Secret>) -> Endpoint {
    let trust = Trust::new(config.tls.ca_file.as_deref());
    Endpoint::below(title, url, &[], key.clone()).trusting(trust)
}

/// A request to `path`, or to the very address that is set.
fn request<'a>(
    endpoint: &Endpoint,
    set: &str,
    path: &str,
    body: &'a [u8],
    patience: &Patience<'a>,
) -> ServerRequest<'a> {
    let mut request = endpoint.request(path, Some(body), patience.deadline, patience.cancel);
    if !endpoint.base_url.ends_with("/v1") {
        set.clone_into(&mut request.url);
    }
    request
}
