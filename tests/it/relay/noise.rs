//! The vectors of the encryption through a relay, held against `snow`; the
//! page's own implementation is held against the same files in a browser.
//!
//! `UPDATE_NOISE=1 cargo test --test it noise` writes our transcript anew.

use std::fs;
use std::path::{Path, PathBuf};

use base::ids::MachineId;
use serde_json::{Value, json};
use snow::{Builder, HandshakeState, TransportState};

const PROTOCOL: &str = "Noise_NK_25519_AESGCM_SHA256";
const MORE: u8 = 1;
const REKEY: u8 = 2;
/// Few, so that a short transcript has pieces and several keys.
const PIECE_BYTES: usize = 16;
const REKEY_EVERY: usize = 4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/noise")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&text[place..place + 2], 16).unwrap())
        .collect()
}

/// Both sides of a vector's handshake, before its first message.
fn sides(vector: &Value) -> [HandshakeState; 2] {
    let field = |name: &str| bytes_of(&vector[name]);
    let prologue = field("prologue");
    let (public, private) = (
        field("responder_static_public"),
        field("responder_static_private"),
    );
    let ephemerals = [
        field("initiator_ephemeral_private"),
        field("responder_ephemeral_private"),
    ];
    let builder = || Builder::new(PROTOCOL.parse().unwrap());
    [
        builder()
            .prologue(&prologue)
            .unwrap()
            .remote_public_key(&public)
            .unwrap()
            .fixed_ephemeral_key_for_testing_only(&ephemerals[0])
            .build_initiator()
            .unwrap(),
        builder()
            .prologue(&prologue)
            .unwrap()
            .local_private_key(&private)
            .unwrap()
            .fixed_ephemeral_key_for_testing_only(&ephemerals[1])
            .build_responder()
            .unwrap(),
    ]
}

/// Plays the handshake; returns both sides and what each message was.
fn shake(vector: &Value, payloads: [&[u8]; 2]) -> ([TransportState; 2], [Vec<u8>; 2]) {
    let [mut initiator, mut responder] = sides(vector);
    let mut sent = [vec![0; 1024], vec![0; 1024]];
    let mut read = vec![0; 1024];
    let length = initiator.write_message(payloads[0], &mut sent[0]).unwrap();
    sent[0].truncate(length);
    let length = responder.read_message(&sent[0], &mut read).unwrap();
    assert_eq!(&read[..length], payloads[0]);
    let length = responder.write_message(payloads[1], &mut sent[1]).unwrap();
    sent[1].truncate(length);
    let length = initiator.read_message(&sent[1], &mut read).unwrap();
    assert_eq!(&read[..length], payloads[1]);
    let sides = [initiator, responder].map(|side| side.into_transport_mode().unwrap());
    (sides, sent)
}

/// Sends one message from one side to the other, which must understand it.
fn pass(sides: &mut [TransportState; 2], from: usize, payload: &[u8]) -> Vec<u8> {
    let mut sent = vec![0; payload.len() + 16];
    let length = sides[from].write_message(payload, &mut sent).unwrap();
    assert_eq!(length, sent.len());
    let mut read = vec![0; sent.len()];
    let length = sides[1 - from].read_message(&sent, &mut read).unwrap();
    assert_eq!(&read[..length], payload);
    sent
}

/// Our transcript: both sides send texts in pieces and change their keys.
fn transcript() -> Value {
    let private: Vec<u8> = (1..=32).collect();
    let public = curve_public(&private);
    let machine_id = MachineId::of_public_key(&public).to_string();
    let mut vector = json!({
        "description": "A conversation through a relay by protocol section 6, with fixed keys. \
            Everything but texts and ids is hex. messages: the first two are the handshake's; \
            the payload of each later one is a flag byte (1: more pieces of the same text follow, \
            2: the sender changes its key after this message) and a piece of a text. \
            texts: what the pieces make, in the same order. They were sealed with pieces of \
            piece_bytes and a new key after each rekey_every messages.",
        "machine_id": machine_id,
        "prologue": hex(format!("hearth-1{machine_id}").as_bytes()),
        "responder_static_private": hex(&private),
        "responder_static_public": hex(&public),
        "initiator_ephemeral_private": hex(&(33..=64).collect::<Vec<u8>>()),
        "responder_ephemeral_private": hex(&(65..=96).collect::<Vec<u8>>()),
        "piece_bytes": PIECE_BYTES,
        "rekey_every": REKEY_EVERY,
    });
    let (mut sides, handshake) = shake(&vector, [b"", b""]);
    let mut messages = vec![
        json!({ "from": "initiator", "payload": "", "ciphertext": hex(&handshake[0]) }),
        json!({ "from": "responder", "payload": "", "ciphertext": hex(&handshake[1]) }),
    ];
    let texts = [
        (0, r#"{"type":"auth","token":"not a real one"}"#),
        (1, r#"{"status":"ok","data":{}}"#),
        (0, r#"{"type":"chat","message":"Käsespätzle für 4 🍲"}"#),
        (1, "{}"),
        (1, r#"{"type":"event","event":"chat.delta","text":"…"}"#),
        (0, "{}"),
        (1, r#"{"status":"ok","data":{"response":"gern"}}"#),
    ];
    let mut sent = [0; 2];
    for (from, text) in texts {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(PIECE_BYTES).collect();
        for (place, piece) in pieces.iter().enumerate() {
            sent[from] += 1;
            let rekeys = sent[from] % REKEY_EVERY == 0;
            let more = if place + 1 < pieces.len() { MORE } else { 0 };
            let mut payload = vec![more | if rekeys { REKEY } else { 0 }];
            payload.extend_from_slice(piece);
            let ciphertext = pass(&mut sides, from, &payload);
            messages.push(json!({
                "from": name(from), "payload": hex(&payload), "ciphertext": hex(&ciphertext),
            }));
            if rekeys {
                sides[from].rekey_outgoing();
                sides[1 - from].rekey_incoming();
            }
        }
    }
    vector["messages"] = Value::Array(messages);
    vector["texts"] = texts
        .iter()
        .map(|(from, text)| json!({ "from": name(*from), "text": text }))
        .collect();
    vector
}

fn name(side: usize) -> &'static str {
    ["initiator", "responder"][side]
}

/// The public key of a private one.
fn curve_public(private: &[u8]) -> [u8; 32] {
    use snow::resolvers::{CryptoResolver, DefaultResolver};
    let mut curve = DefaultResolver
        .resolve_dh(&snow::params::DHChoice::Curve25519)
        .unwrap();
    curve.set(private);
    curve.pubkey().try_into().unwrap()
}

#[test]
fn our_transcript_is_what_snow_makes() {
    let file = folder().join("hearth.json");
    let made = serde_json::to_string_pretty(&transcript()).unwrap() + "\n";
    if std::env::var_os("UPDATE_NOISE").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), made);
}

#[test]
fn the_public_vectors_hold() {
    for file in ["cacophony.json", "snow.json"] {
        let text = fs::read_to_string(folder().join(file)).unwrap();
        let vector: Value = serde_json::from_str(&text).unwrap();
        let messages = vector["messages"].as_array().unwrap();
        let payload = |place: usize| bytes_of(&messages[place]["payload"]);
        let (mut sides, handshake) = shake(&vector, [&payload(0), &payload(1)]);
        for (place, message) in messages.iter().enumerate() {
            assert_eq!(message["from"], name(place % 2), "{file}");
            let sent = match place {
                0 | 1 => handshake[place].clone(),
                _ => pass(&mut sides, place % 2, &payload(place)),
            };
            assert_eq!(
                hex(&sent),
                message["ciphertext"].as_str().unwrap(),
                "{file}: {place}"
            );
        }
    }
}
