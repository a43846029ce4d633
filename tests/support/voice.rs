//! A scripted server of speech in OpenAI's form.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::served::Served;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub head: String,
    pub body: Vec<u8>,
}

pub struct VoiceServer {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _served: Served,
}

impl VoiceServer {
    /// Hears this text in every recording, and says everything as a tone.
    pub fn hearing(text: &str) -> VoiceServer {
        let heard = json!({ "text": format!(" {text}\n") }).to_string();
        VoiceServer::answering(move |request| {
            let is_recording = request.head.contains("/audio/transcriptions");
            match is_recording {
                true => response("200 OK", "application/json", heard.as_bytes()),
                false => response("200 OK", "audio/wav", &tone()),
            }
        })
    }

    /// Answers each request with a whole response.
    pub fn answering(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> VoiceServer {
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = Arc::clone(&asked);
        let served = Served::answering(move |head, body| {
            let request = Asked {
                head: head.to_owned(),
                body: body.to_owned(),
            };
            kept.lock().unwrap().push(request.clone());
            Some(answer(&request).into())
        });
        VoiceServer {
            address: served.address,
            asked,
            _served: served,
        }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

/// A whole response.
pub fn response(status: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A tenth of a second of a square wave: 8 bits, 8 kHz.
pub fn tone() -> Vec<u8> {
    let samples: Vec<u8> = (0..800u32)
        .map(|at| if at / 10 % 2 == 0 { 96 } else { 160 })
        .collect();
    let length = samples.len() as u32;
    [
        b"RIFF",
        &(36 + length).to_le_bytes()[..],
        b"WAVEfmt ",
        &16u32.to_le_bytes(),
        &1u16.to_le_bytes(),
        &1u16.to_le_bytes(),
        &8_000u32.to_le_bytes(),
        &8_000u32.to_le_bytes(),
        &1u16.to_le_bytes(),
        &8u16.to_le_bytes(),
        b"data",
        &length.to_le_bytes(),
        &samples,
    ]
    .concat()
}
