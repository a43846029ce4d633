use serde_json::Value;

use super::*;

fn pair() -> (Secured, Secured) {
    let key = PrivateKey::generate();
    let (initiator, first) = Initiator::begin(Purpose::Client, &key.public_key()).unwrap();
    let (second, machine) = respond(Purpose::Client, &key, &first).unwrap();
    (initiator.finish(&second).unwrap(), machine)
}

fn sealed(secured: &mut Secured, text: &str) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    secured
        .seal(text, &mut |message| messages.push(message))
        .unwrap();
    messages
}

#[test]
fn the_public_key_is_that_of_rfc_7748_section_6_1() {
    let hex = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    let bytes = std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
    let public = PrivateKey::from_bytes(bytes).public_key();
    assert_eq!(public.as_bytes()[..4], [0xde, 0x9e, 0xdb, 0x7d]);
    assert_eq!(format!("{:?}", PrivateKey::generate()), "[secret]");
}

#[test]
fn texts_of_every_length_arrive_in_both_directions() {
    let (mut client, mut machine) = pair();
    for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 7] {
        let text = "ä".repeat(length / 2) + &"x".repeat(length % 2);
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut client, &mut machine];
            let [first, second] = ends;
            let (sender, receiver) = if from < to {
                (first, second)
            } else {
                (second, first)
            };
            let messages = sealed(sender, &text);
            assert_eq!(messages.len(), length.div_ceil(PIECE_BYTES).max(1));
            let (last, before) = messages.split_last().unwrap();
            for message in before {
                assert_eq!(receiver.open(message), Ok(None));
            }
            assert_eq!(receiver.open(last), Ok(Some(text.clone())));
        }
    }
}

#[test]
fn what_was_changed_repeated_reordered_or_dropped_does_not_open() {
    let (mut client, mut machine) = pair();
    let message = sealed(&mut client, "hello").remove(0);
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 1;
        assert_eq!(machine.open(&changed), Err(NoiseError::Message), "{at}");
    }
    assert!(machine.open(&message).is_ok());
    assert_eq!(machine.open(&message), Err(NoiseError::Message), "repeated");
    let (dropped, next) = (sealed(&mut client, "a"), sealed(&mut client, "b"));
    assert_eq!(machine.open(&next[0]), Err(NoiseError::Message));
    drop(dropped);
    assert_eq!(client.open(b""), Err(NoiseError::Message));
}

#[test]
fn keys_change_by_count_and_by_time_and_must() {
    let (mut client, mut machine) = pair();
    for aged in [false, true] {
        if aged {
            client.key_made = Instant::now().checked_sub(KEY_TIME).unwrap();
        } else {
            client.sent = KEY_MESSAGES - 1;
            machine.received = KEY_MESSAGES - 1;
        }
        for text in ["the last under this key", "the first under the next"] {
            let message = sealed(&mut client, text).remove(0);
            assert_eq!(machine.open(&message), Ok(Some(text.to_owned())));
        }
        assert_eq!((client.sent, machine.received), (1, 1));
    }
    machine.received = KEY_MESSAGES + KEY_GRACE;
    let message = sealed(&mut client, "late").remove(0);
    assert_eq!(machine.open(&message), Err(NoiseError::StaleKey));
}

#[test]
fn only_the_holder_of_the_key_can_answer_and_only_for_one_purpose() {
    let (key, other) = (PrivateKey::generate(), PrivateKey::generate());
    let begin = || Initiator::begin(Purpose::Client, &key.public_key()).unwrap();
    let (_, first) = begin();
    assert_eq!(
        respond(Purpose::Client, &other, &first).err(),
        Some(NoiseError::Handshake)
    );
    assert_eq!(
        respond(Purpose::Link, &key, &first).err(),
        Some(NoiseError::Handshake)
    );
    let (initiator, first) = begin();
    let (mut second, _) = respond(Purpose::Client, &key, &first).unwrap();
    *second.last_mut().unwrap() ^= 1;
    assert!(initiator.finish(&second).is_err());
    for malformed in [&b""[..], &first[..31], &[0; 48]] {
        assert!(respond(Purpose::Client, &key, malformed).is_err());
    }
}

#[test]
fn a_text_has_an_end() {
    let (mut client, mut machine) = pair();
    assert_eq!(
        client.seal(&"x".repeat(TEXT_BYTES + 1), &mut |_| ()),
        Err(NoiseError::TooLarge)
    );
    let piece = vec![b'x'; PIECE_BYTES];
    let mut result = Ok(None);
    for _ in 0..=TEXT_BYTES / PIECE_BYTES {
        let message = client.seal_piece(&[], &piece, false).unwrap();
        result = machine.open(&message);
    }
    assert_eq!(result, Err(NoiseError::TooLarge));
}

/// The vectors that the browser's implementation is held against too.
const PUBLIC: [&str; 2] = [
    include_str!("../../../tests/data/noise/cacophony.json"),
    include_str!("../../../tests/data/noise/snow.json"),
];
const OURS: &str = include_str!("../../../tests/data/noise/hearth.json");

fn bytes_of(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Both sides of a vector's handshake, made with our primitives.
fn sides(vector: &Value) -> (HandshakeState, HandshakeState) {
    let field = |name: &str| bytes_of(&vector[name]);
    let (prologue, public) = (field("prologue"), field("responder_static_public"));
    let (private, first) = (
        field("responder_static_private"),
        field("initiator_ephemeral_private"),
    );
    let second = field("responder_ephemeral_private");
    let initiator = builder()
        .prologue(&prologue)
        .and_then(|builder| builder.remote_public_key(&public))
        .and_then(|builder| {
            builder
                .fixed_ephemeral_key_for_testing_only(&first)
                .build_initiator()
        });
    let responder = builder()
        .prologue(&prologue)
        .and_then(|builder| builder.local_private_key(&private))
        .and_then(|builder| {
            builder
                .fixed_ephemeral_key_for_testing_only(&second)
                .build_responder()
        });
    (initiator.unwrap(), responder.unwrap())
}

#[test]
fn our_primitives_make_the_public_vectors() {
    for text in PUBLIC {
        let vector: Value = serde_json::from_str(text).unwrap();
        let (mut initiator, mut responder) = sides(&vector);
        let messages = vector["messages"].as_array().unwrap();
        let mut sent = vec![0; 1024];
        let mut read = vec![0; 1024];
        for (place, message) in messages[..2].iter().enumerate() {
            let payload = bytes_of(&message["payload"]);
            let (from, to) = match place {
                0 => (&mut initiator, &mut responder),
                _ => (&mut responder, &mut initiator),
            };
            let length = from.write_message(&payload, &mut sent).unwrap();
            assert_eq!(sent[..length], bytes_of(&message["ciphertext"]));
            let length = to.read_message(&sent[..length], &mut read).unwrap();
            assert_eq!(read[..length], payload);
        }
        let mut initiator = initiator.into_transport_mode().unwrap();
        let mut responder = responder.into_transport_mode().unwrap();
        for message in &messages[2..] {
            let payload = bytes_of(&message["payload"]);
            let from = match message["from"].as_str() {
                Some("initiator") => &mut initiator,
                _ => &mut responder,
            };
            let length = from.write_message(&payload, &mut sent).unwrap();
            assert_eq!(sent[..length], bytes_of(&message["ciphertext"]));
        }
    }
}

#[test]
fn our_transcript_is_sealed_and_opened_as_written() {
    let vector: Value = serde_json::from_str(OURS).unwrap();
    let (initiator, responder) = sides(&vector);
    let messages = vector["messages"].as_array().unwrap();
    let (initiator, first) = Initiator::start(Ok(initiator)).unwrap();
    assert_eq!(first, bytes_of(&messages[0]["ciphertext"]));
    let (second, machine) = answer(Ok(responder), &first).unwrap();
    assert_eq!(second, bytes_of(&messages[1]["ciphertext"]));
    let mut ends = [initiator.finish(&second).unwrap(), machine];
    let mut joined = Vec::new();
    for message in &messages[2..] {
        let from = usize::from(message["from"] == "responder");
        let payload = bytes_of(&message["payload"]);
        let (&flags, piece) = payload.split_first().unwrap();
        if flags & REKEY != 0 {
            ends[from].sent = KEY_MESSAGES - 1;
        }
        let sealed = ends[from]
            .seal_piece(&[], piece, flags & MORE == 0)
            .unwrap();
        assert_eq!(sealed, bytes_of(&message["ciphertext"]));
        joined.extend(ends[1 - from].open(&sealed).unwrap());
    }
    let texts = vector["texts"].as_array().unwrap();
    let texts: Vec<&str> = texts
        .iter()
        .map(|text| text["text"].as_str().unwrap())
        .collect();
    assert_eq!(joined, texts);
}
