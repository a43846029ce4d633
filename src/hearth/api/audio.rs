//! OpenAI's interface for speech, passed on to the servers of `voice`
//! (<https://platform.openai.com/docs/api-reference/audio>).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::Exchange;
use super::{openai, plain, request};
use crate::service::reply_stream::Work;
use agent::model::voice::{self, Patience, Recording};
use base::error::{Error, Result};
use net::http::form::{self, Field};
use net::http::{Answer, Response};

/// Most bytes of a text that is spoken at once, as OpenAI takes them.
const SPOKEN_BYTES: usize = 4 * 4_096;
/// Most bytes of speech.
const AUDIO_BYTES: usize = 32 * 1024 * 1024;
/// The forms of speech.
const FORMATS: [&str; 6] = ["mp3", "opus", "aac", "flac", "wav", "pcm"];

/// What is read of a request to speak.
#[derive(Deserialize)]
struct CreateSpeech {
    input: String,
    response_format: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// POST /v1/audio/transcriptions.
///
/// # Errors
/// `invalid_request` for a body that is no form with a file, and where nothing understands
/// speech; those of [`plain::pass_on`].
pub fn transcribe(exchange: Exchange<'_>) -> Result<Answer> {
    let request = exchange.request;
    let fields = form::multipart(&request.head, &request.body).ok_or_else(|| {
        Error::invalid_request("the body must be a form (multipart/form-data) with a \"file\"")
    })?;
    let (mut file, mut language, mut is_text) = (None, None, false);
    let mut ignored = Vec::new();
    for field in fields {
        let name = field.parameter("name").unwrap_or_default();
        let text = std::str::from_utf8(field.content).unwrap_or_default();
        match name {
            "file" => file = Some(field),
            // The household says which.
            "model" => {}
            "language"
                if text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') =>
            {
                language = Some(text.to_owned()).filter(|text| !text.is_empty());
            }
            "response_format" => match text {
                "json" => {}
                "text" => is_text = true,
                _ => {
                    return Err(Error::invalid_request(
                        "\"response_format\" must be json or text",
                    ));
                }
            },
            name => ignored.push(name.to_owned()),
        }
    }
    let file = file.filter(|file| !file.content.is_empty());
    let file =
        file.ok_or_else(|| Error::invalid_request("the form must have a \"file\" with speech"))?;
    let (bytes, name) = (file.content.to_vec(), file_name(&file));
    let media_type = file.media_type().unwrap_or("application/octet-stream");
    let media_type = media_type.to_owned();
    let ask = move |work: Work<'_>| {
        let recording = Recording {
            bytes: &bytes,
            media_type: &media_type,
            file: &name,
            language: language.as_deref(),
        };
        let config = work.service.assistant().config.clone();
        let text = voice::transcribe(&config, &recording, &patience(&work))?;
        if !is_text {
            return Ok(Response::json(200, json!({ "text": text }).to_string()));
        }
        let mut response = Response::empty(200);
        response.add("Content-Type", "text/plain; charset=utf-8");
        response.body = Cow::Owned(text.into_bytes());
        Ok(response)
    };
    plain::pass_on_whole(&exchange, openai::refusal, ignored, ask)
}

/// POST /v1/audio/speech, with the household's model and voice.
///
/// # Errors
/// `invalid_request` for a text that cannot be spoken, and where nothing speaks; those of
/// [`plain::pass_on`].
pub fn speak(exchange: Exchange<'_>) -> Result<Answer> {
    let mut body: CreateSpeech = request::parse(&exchange.request.body)?;
    if body.input.trim().is_empty() {
        return Err(Error::invalid_request("\"input\" must not be empty"));
    }
    if body.input.len() > SPOKEN_BYTES {
        return Err(Error::too_large(format!(
            "\"input\" has {} bytes; at most {SPOKEN_BYTES} are spoken at once",
            body.input.len()
        )));
    }
    let format = body.response_format.unwrap_or_else(|| "mp3".to_owned());
    if !FORMATS.contains(&&*format) {
        let formats = FORMATS.join(", ");
        return Err(Error::invalid_request(format!(
            "\"response_format\" must be one of {formats}"
        )));
    }
    body.rest.remove("model");
    let left = body.rest.into_iter().filter(|(_, value)| !value.is_null());
    let ignored = left.map(|(name, _)| name).collect();
    let ask = move |work: Work<'_>| {
        let config = work.service.assistant().config.clone();
        let speech = voice::speak(&config, &body.input, &format, AUDIO_BYTES, &patience(&work))?;
        let mut response = Response::empty(200);
        response.add("Content-Type", speech.0);
        response.add("X-Content-Type-Options", "nosniff");
        response.body = Cow::Owned(speech.1);
        Ok(response)
    };
    plain::pass_on_whole(&exchange, openai::refusal, ignored, ask)
}

fn patience<'a>(work: &Work<'a>) -> Patience<'a> {
    Patience {
        deadline: work.deadline,
        cancel: work.cancel,
    }
}

/// The name of the recording, as far as it can be passed on: servers go by its ending.
fn file_name(field: &Field<'_>) -> String {
    let name = field.parameter("filename").unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let (_, ending) = name.rsplit_once('.').unwrap_or_default();
    match !ending.is_empty() && ending.len() <= 8 && ending.bytes().all(is_plain) {
        true => format!("speech.{ending}"),
        false => "speech.wav".to_owned(),
    }
}
