//! Noise_NK_25519_AESGCM_SHA256 (the Noise Protocol Framework, revision 34):
//! secrecy between a client and a machine whose public key the client knows,
//! and the proof of that key to a relay.
//!
//! After the handshake a text travels in pieces, because a Noise message has
//! at most 65,535 bytes. A piece's plaintext begins with one byte of flags:
//!
//! | bit | means |
//! |---|---|
//! | 0 | more pieces of the same text follow |
//! | 1 | the sender changes its sending key after this message (Noise section 11.3) |
//!
//! The nonces count, so a message that is dropped, repeated, reordered or
//! changed makes this or the next one fail to open: the connection then closes.

use std::fmt;
use std::time::{Duration, Instant};

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState, TransportState};

use base::ids::MachineId;
use base::secret::random_bytes;
use protocol::public_key::{self, PublicKey};

const PROTOCOL: &str = "Noise_NK_25519_AESGCM_SHA256";
/// Largest Noise message (Noise section 3).
const MESSAGE_BYTES: usize = 65_535;
/// Bytes that encryption adds to each message.
const TAG_BYTES: usize = 16;
/// Most bytes of a text in one message; leaves room for the flags and the tag.
pub const PIECE_BYTES: usize = 65_000;
/// Largest text, joined again from its pieces.
pub const TEXT_BYTES: usize = 8 * 1024 * 1024;
/// A sending key is replaced after so many messages or so much time (protocol
/// section 6).
const KEY_MESSAGES: u64 = 1 << 20;
const KEY_TIME: Duration = Duration::from_secs(60 * 60);
/// The other side may use its key for a few messages more, because the last one
/// announces the change.
const KEY_GRACE: u64 = 16;

const MORE: u8 = 1;
const REKEY: u8 = 2;

/// What a handshake is for. Each purpose has its own prologue, so that an
/// answer to one is useless for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A client talks to the machine.
    Client,
    /// A relay has the machine prove its key.
    Link,
}

impl Purpose {
    fn prologue(self, machine: &MachineId) -> Vec<u8> {
        let version = match self {
            Purpose::Client => "hearth-1",
            Purpose::Link => "hearth-link-1",
        };
        format!("{version}{machine}").into_bytes()
    }
}

/// Why a handshake or a message failed. An accident and an attack look the same, so
/// each error ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseError {
    /// A handshake message is malformed, or made for another key or purpose.
    Handshake,
    /// A message was changed, dropped, repeated or reordered on its way.
    Message,
    /// A text is larger than [`TEXT_BYTES`].
    TooLarge,
    /// A piece's flags are unknown, or the joined pieces are not UTF-8.
    Malformed,
    /// The other side uses one key for too long.
    StaleKey,
}

impl fmt::Display for NoiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoiseError::Handshake => "the encrypted handshake failed",
            NoiseError::Message => "an encrypted message was changed on its way",
            NoiseError::TooLarge => "an encrypted message is too large",
            NoiseError::Malformed => "an encrypted message is malformed",
            NoiseError::StaleKey => "the other side does not renew its key",
        })
    }
}

impl std::error::Error for NoiseError {}

/// A machine's private key. It cannot be printed.
#[derive(Clone)]
pub struct PrivateKey([u8; public_key::BYTES]);

impl PrivateKey {
    /// A fresh key.
    pub fn generate() -> PrivateKey {
        PrivateKey(random_bytes())
    }

    /// A key that was saved.
    pub fn from_bytes(bytes: [u8; public_key::BYTES]) -> PrivateKey {
        PrivateKey(bytes)
    }

    /// The bytes to save.
    pub fn expose(&self) -> &[u8; public_key::BYTES] {
        &self.0
    }

    /// The public key that belongs to it.
    pub fn public_key(&self) -> PublicKey {
        let mut agreement = Primitives
            .resolve_dh(&DHChoice::Curve25519)
            .expect("X25519 is built in");
        agreement.set(&self.0);
        let bytes = agreement
            .pubkey()
            .try_into()
            .expect("an X25519 public key has 32 bytes");
        PublicKey::new("public_key", bytes).expect("a clamped multiple of the base point is usable")
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The side that begins: a client, or a relay that wants a proof.
pub struct Initiator(HandshakeState);

impl Initiator {
    /// Begins a handshake with the machine that holds `key`; returns the first
    /// message for it.
    ///
    /// # Errors
    /// [`NoiseError::Handshake`]: the key cannot be used.
    pub fn begin(purpose: Purpose, key: &PublicKey) -> Result<(Initiator, Vec<u8>), NoiseError> {
        let prologue = purpose.prologue(&key.machine_id());
        let handshake = builder()
            .prologue(&prologue)
            .and_then(|builder| builder.remote_public_key(key.as_bytes()))
            .and_then(Builder::build_initiator);
        Initiator::start(handshake)
    }

    fn start(
        handshake: Result<HandshakeState, snow::Error>,
    ) -> Result<(Initiator, Vec<u8>), NoiseError> {
        let mut handshake = handshake.map_err(|_| NoiseError::Handshake)?;
        let message = write(&mut handshake)?;
        Ok((Initiator(handshake), message))
    }

    /// Takes the machine's answer, which only the holder of the key can give.
    ///
    /// # Errors
    /// [`NoiseError::Handshake`]: the answer is from another key, or malformed.
    pub fn finish(mut self, answer: &[u8]) -> Result<Secured, NoiseError> {
        read(&mut self.0, answer)?;
        Secured::new(self.0)
    }
}

/// Answers a handshake for the machine that holds `key`; returns the answer and
/// the encrypted connection.
///
/// # Errors
/// [`NoiseError::Handshake`]: the message is malformed, or meant for another key
/// or purpose.
pub fn respond(
    purpose: Purpose,
    key: &PrivateKey,
    message: &[u8],
) -> Result<(Vec<u8>, Secured), NoiseError> {
    let prologue = purpose.prologue(&key.public_key().machine_id());
    let handshake = builder()
        .prologue(&prologue)
        .and_then(|builder| builder.local_private_key(key.expose()))
        .and_then(Builder::build_responder);
    answer(handshake, message)
}

fn answer(
    handshake: Result<HandshakeState, snow::Error>,
    message: &[u8],
) -> Result<(Vec<u8>, Secured), NoiseError> {
    let mut handshake = handshake.map_err(|_| NoiseError::Handshake)?;
    // An agreement with a key of low order has no secret in it.
    let ephemeral: [u8; public_key::BYTES] = message
        .get(..public_key::BYTES)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(NoiseError::Handshake)?;
    PublicKey::new("noise", ephemeral).map_err(|_| NoiseError::Handshake)?;
    read(&mut handshake, message)?;
    let answer = write(&mut handshake)?;
    Ok((answer, Secured::new(handshake)?))
}

fn write(handshake: &mut HandshakeState) -> Result<Vec<u8>, NoiseError> {
    let mut message = vec![0; public_key::BYTES + TAG_BYTES];
    let length = handshake
        .write_message(&[], &mut message)
        .map_err(|_| NoiseError::Handshake)?;
    message.truncate(length);
    Ok(message)
}

/// Our handshakes carry no payload: one with a payload is malformed.
fn read(handshake: &mut HandshakeState, message: &[u8]) -> Result<(), NoiseError> {
    match handshake.read_message(message, &mut []) {
        Ok(0) => Ok(()),
        _ => Err(NoiseError::Handshake),
    }
}

/// A connection after its handshake.
pub struct Secured {
    transport: TransportState,
    /// Messages since our sending key last changed, and when that was.
    sent: u64,
    key_made: Instant,
    /// Messages since the other side's key last changed.
    received: u64,
    /// Pieces of a text that is not complete.
    joined: Vec<u8>,
}

impl Secured {
    fn new(handshake: HandshakeState) -> Result<Secured, NoiseError> {
        Ok(Secured {
            transport: handshake
                .into_transport_mode()
                .map_err(|_| NoiseError::Handshake)?,
            sent: 0,
            key_made: Instant::now(),
            received: 0,
            joined: Vec::new(),
        })
    }

    /// Encrypts a text: calls `send` with each message, in order.
    ///
    /// # Errors
    /// [`NoiseError::TooLarge`].
    pub fn seal(&mut self, text: &str, send: &mut dyn FnMut(Vec<u8>)) -> Result<(), NoiseError> {
        self.seal_behind(&[], text, send)
    }

    /// The same, with `header` before each message.
    ///
    /// # Errors
    /// [`NoiseError::TooLarge`].
    pub fn seal_behind(
        &mut self,
        header: &[u8],
        text: &str,
        send: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), NoiseError> {
        if text.len() > TEXT_BYTES {
            return Err(NoiseError::TooLarge);
        }
        let mut rest = text.as_bytes();
        loop {
            let (piece, after) = rest.split_at(rest.len().min(PIECE_BYTES));
            let is_last = after.is_empty();
            send(self.seal_piece(header, piece, is_last)?);
            if is_last {
                return Ok(());
            }
            rest = after;
        }
    }

    fn seal_piece(
        &mut self,
        header: &[u8],
        piece: &[u8],
        is_last: bool,
    ) -> Result<Vec<u8>, NoiseError> {
        self.sent += 1;
        let renews = self.sent >= KEY_MESSAGES || self.key_made.elapsed() >= KEY_TIME;
        let flags = if is_last { 0 } else { MORE } | if renews { REKEY } else { 0 };
        let mut plaintext = Vec::with_capacity(1 + piece.len());
        plaintext.push(flags);
        plaintext.extend_from_slice(piece);
        let mut message = vec![0; header.len() + plaintext.len() + TAG_BYTES];
        let (start, sealed) = message.split_at_mut(header.len());
        start.copy_from_slice(header);
        self.transport
            .write_message(&plaintext, sealed)
            .map_err(|_| NoiseError::Message)?;
        if renews {
            self.transport.rekey_outgoing();
            self.sent = 0;
            self.key_made = Instant::now();
        }
        Ok(message)
    }

    /// Bytes that have arrived of a text that is not complete yet.
    pub fn joined_bytes(&self) -> usize {
        self.joined.len()
    }

    /// Decrypts one message; returns the text that it completes, if it does.
    ///
    /// # Errors
    /// Why the connection must be closed: any error but [`NoiseError::Handshake`].
    pub fn open(&mut self, message: &[u8]) -> Result<Option<String>, NoiseError> {
        self.received += 1;
        if self.received > KEY_MESSAGES + KEY_GRACE {
            return Err(NoiseError::StaleKey);
        }
        if message.len() > MESSAGE_BYTES {
            return Err(NoiseError::TooLarge);
        }
        let mut plaintext = vec![0; message.len()];
        let length = self
            .transport
            .read_message(message, &mut plaintext)
            .map_err(|_| NoiseError::Message)?;
        let (&flags, piece) = plaintext[..length]
            .split_first()
            .ok_or(NoiseError::Malformed)?;
        if flags & !(MORE | REKEY) != 0 {
            return Err(NoiseError::Malformed);
        }
        if flags & REKEY != 0 {
            self.transport.rekey_incoming();
            self.received = 0;
        }
        if self.joined.len() + piece.len() > TEXT_BYTES {
            return Err(NoiseError::TooLarge);
        }
        self.joined.extend_from_slice(piece);
        if flags & MORE != 0 {
            return Ok(None);
        }
        let text = String::from_utf8(std::mem::take(&mut self.joined));
        text.map(Some).map_err(|_| NoiseError::Malformed)
    }
}

fn builder<'a>() -> Builder<'a> {
    let params: NoiseParams = PROTOCOL.parse().expect("a protocol name that snow knows");
    Builder::with_resolver(params, Box::new(Primitives))
}

/// The primitives of the handshake: those of ring, except X25519, because ring
/// exports no private keys. None of snow's others is linked in.
struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        RingResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

#[cfg(test)]
mod tests;
