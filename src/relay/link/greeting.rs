//! The handshake of a link: the machine proves to the relay that it holds its key.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tungstenite::Message;

use super::carrier::End;
use crate::noise::{PrivateKey, Purpose, respond};
use net::dial::{OpenSocket, envelope_error};
use net::stream::ReadTimeout;
use protocol::relay::Greeting;

/// Message size that a relay must carry at least: a piece of an encrypted text with
/// its framing.
const LEAST_MESSAGE_BYTES: usize = 70_000;
/// Most that it may announce.
const MOST_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// What the relay grants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linked {
    /// Most clients at once.
    pub clients: usize,
    /// Most bytes of one message in either direction.
    pub message_bytes: usize,
    /// Whether the relay wants to know which clients sign in.
    pub wants_sign_ins: bool,
}

/// Completes the handshake with the relay; afterwards the link is open.
///
/// # Errors
/// Why the link was not opened.
pub(super) fn greet(
    socket: &mut OpenSocket,
    key: &PrivateKey,
    deadline: Instant,
) -> Result<Linked, End> {
    socket
        .get_mut()
        .set_read_timeout(ReadTimeout::Until(deadline));
    socket.get_mut().set_write_deadline(deadline);
    let public_key = key.public_key().to_base64();
    let reports_sign_ins = true;
    say(
        socket,
        &Greeting::Machine {
            public_key,
            reports_sign_ins,
        },
    )?;
    let Greeting::Prove { noise } = hear(socket)? else {
        return Err(End::lost("the relay did not ask for a proof of the key"));
    };
    let challenge = STANDARD
        .decode(noise)
        .map_err(|_| End::lost("the relay's challenge is not base64"))?;
    let (proof, _) = respond(Purpose::Link, key, &challenge).map_err(|_| {
        End::lost("the relay's challenge is malformed, or meant for another machine")
    })?;
    let noise = STANDARD.encode(proof);
    say(socket, &Greeting::Proof { noise })?;
    let Greeting::Linked {
        clients,
        message_bytes,
        wants_sign_ins,
        ..
    } = hear(socket)?
    else {
        return Err(End::lost("the relay did not confirm the link"));
    };
    if !(LEAST_MESSAGE_BYTES..=MOST_MESSAGE_BYTES).contains(&message_bytes) {
        return Err(End::lost(format!(
            "the relay carries messages of {message_bytes} bytes; it must be \
             {LEAST_MESSAGE_BYTES} to {MOST_MESSAGE_BYTES}"
        )));
    }
    socket.get_mut().set_read_timeout(ReadTimeout::Never);
    Ok(Linked {
        clients,
        message_bytes,
        wants_sign_ins,
    })
}

fn say(socket: &mut OpenSocket, greeting: &Greeting) -> Result<(), End> {
    let text = serde_json::to_string(greeting).expect("strings and numbers are JSON");
    socket.send(Message::text(text)).map_err(broken)
}

fn hear(socket: &mut OpenSocket) -> Result<Greeting, End> {
    loop {
        match socket.read().map_err(broken)? {
            Message::Text(text) => {
                return serde_json::from_str(&text).map_err(|_| {
                    match envelope_error(text.as_bytes()) {
                        Some(error) => End::Lost(format!("the relay refused the link: {error}")),
                        None => End::lost(
                            "the relay sent a message that this version does not understand",
                        ),
                    }
                });
            }
            Message::Close(frame) => return Err(End::closed(frame.as_ref())),
            Message::Binary(_) => {
                return Err(End::lost("the relay sent frames before the link was open"));
            }
            _ => {}
        }
    }
}

fn broken(error: tungstenite::Error) -> End {
    match error {
        tungstenite::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            End::lost("the relay did not answer in time")
        }
        error => End::Lost(format!("the link broke: {error}")),
    }
}
