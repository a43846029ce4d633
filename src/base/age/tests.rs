//! The format, by the test vectors of its authors (<https://c2sp.org/CCTV/age>), by files that
//! the program `age` wrote, and by what is changed in our own.

use std::io::Read;
use std::path::Path;

use flate2::read::ZlibDecoder;
use ring::digest::{SHA256, digest};

use super::*;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/age");

fn decrypted(file: &[u8], identity: &Identity) -> Result<Vec<u8>, AgeError> {
    let mut content = Vec::new();
    EncryptedFile::open(file)?.decrypt(identity, &mut content, &mut |_| true)?;
    Ok(content)
}

fn encrypted(content: &[u8], recipient: &Recipient) -> Vec<u8> {
    let mut file = Vec::new();
    encrypt(content, &mut file, recipient, &mut |_| true).unwrap();
    file
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(DATA).join(name)).unwrap()
}

fn key() -> SecretKey {
    SecretKey::find(&String::from_utf8(data("key.txt")).unwrap()).unwrap()
}

#[test]
fn the_vectors_of_the_format_are_read_as_they_say() {
    let (mut read, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(Path::new(DATA).join("testkit")).unwrap() {
        let path = entry.unwrap().path();
        let vector = std::fs::read(&path).unwrap();
        let end = vector.windows(2).position(|two| two == b"\n\n").unwrap();
        let about = std::str::from_utf8(&vector[..end]).unwrap();
        let field = |name: &str| {
            let mut fields = about.lines().filter_map(|line| line.split_once(": "));
            fields
                .find(|(field, _)| *field == name)
                .map(|(_, value)| value)
        };
        let mut file = vector[end + 2..].to_vec();
        if field("compressed").is_some() {
            let mut whole = Vec::new();
            ZlibDecoder::new(&file[..]).read_to_end(&mut whole).unwrap();
            file = whole;
        }
        let identity = match (field("identity"), field("passphrase")) {
            (Some(key), None) => Identity::Key(SecretKey::find(key).unwrap()),
            (_, Some(passphrase)) => Identity::Passphrase(Secret::new(passphrase)),
            (None, None) => Identity::Key(key()),
        };
        let result = decrypted(&file, &identity);
        let is_as_expected = match (field("expect").unwrap(), &result) {
            ("success", Ok(content)) => {
                let hash = digest(&SHA256, content);
                let hash: Vec<String> = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
                Some(&*hash.concat()) == field("payload")
            }
            ("no match", Err(error)) => matches!(
                error,
                AgeError::WrongKey | AgeError::WrongPassphrase | AgeError::NeedsKey
            ),
            ("header failure", Err(error)) => matches!(
                error,
                AgeError::Header(_) | AgeError::Foreign | AgeError::TooMuchWork(_)
            ),
            ("HMAC failure" | "payload failure", Err(AgeError::Damaged)) => true,
            _ => false,
        };
        let result = result.map(|content| content.len());
        if !is_as_expected {
            wrong.push(format!("{}: {about}\n{result:?}", path.display()));
        }
        read += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(read > 80, "{read}");
}

#[test]
fn what_the_program_age_wrote_is_read() {
    let passphrase = Identity::Passphrase(Secret::new("the kettle sings at nine"));
    for (name, identity) in [
        ("to-key.age", Identity::Key(key())),
        ("passphrase.age", passphrase),
    ] {
        assert_eq!(
            decrypted(&data(name), &identity).unwrap(),
            b"Said at home.\n",
            "{name}"
        );
    }
    let text = String::from_utf8(data("key.txt")).unwrap();
    assert!(text.contains(&key().public().to_string()), "{text}");
    assert!(text.contains(key().text().expose()), "{text}");
}

#[test]
fn what_is_encrypted_comes_back_whatever_its_length() {
    let recipient = Recipient::Key(key().public());
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 7] {
        let content = vec![7; length];
        let file = encrypted(&content, &recipient);
        assert_eq!(
            decrypted(&file, &Identity::Key(key())).unwrap(),
            content,
            "{length}"
        );
    }
}

#[test]
fn another_key_or_passphrase_opens_nothing() {
    let to_key = encrypted(b"content", &Recipient::Key(key().public()));
    let with = |text: &str| Identity::Passphrase(Secret::new(text));
    let passphrase = encrypted(b"content", &Recipient::Passphrase(Secret::new("right")));
    assert_eq!(decrypted(&passphrase, &with("right")).unwrap(), b"content");
    let wrong = [
        (&to_key, Identity::Key(SecretKey::generate()), "another key"),
        (&to_key, with("right"), "--identity"),
        (&passphrase, with("wrong"), "passphrase is wrong"),
        (&passphrase, Identity::Key(key()), "leave --identity out"),
    ];
    for (file, identity, reason) in wrong {
        let error = decrypted(file, &identity).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn whatever_is_changed_or_cut_off_is_noticed() {
    let content = vec![7; CHUNK + 100];
    let file = encrypted(&content, &Recipient::Key(key().public()));
    let payload = file.len() - (content.len() + 2 * TAG + PAYLOAD_NONCE);
    let around = [
        payload + PAYLOAD_NONCE,
        payload + PAYLOAD_NONCE + CHUNK + TAG,
        file.len(),
    ];
    let places = (0..payload + 64).chain(around.iter().flat_map(|end| end - 2..*end));
    for place in places {
        let mut changed = file.clone();
        changed[place] ^= 1;
        assert!(
            decrypted(&changed, &Identity::Key(key())).is_err(),
            "changed at {place}"
        );
        let cut = &file[..place];
        assert!(
            decrypted(cut, &Identity::Key(key())).is_err(),
            "cut at {place}"
        );
    }
    // At the border of two chunks, each of which is whole.
    let cut = &file[..around[1]];
    let error = decrypted(cut, &Identity::Key(key())).unwrap_err();
    assert!(matches!(error, AgeError::Damaged), "{error}");
}

#[test]
fn only_a_whole_key_is_one() {
    let public = key().public().to_string();
    assert_eq!(public.parse::<PublicKey>().unwrap(), key().public());
    // The point zero, which has nothing in common with anybody.
    let zero = PublicKey([0; 32]).to_string();
    let changed = public.replace(
        &public[10..11],
        if &public[10..11] == "q" { "p" } else { "q" },
    );
    for text in [
        "",
        "age1",
        &public[..40],
        &changed,
        &zero,
        key().text().expose(),
    ] {
        assert!(text.parse::<PublicKey>().is_err(), "{text}");
    }
    assert!(SecretKey::find(&public).is_none());
    assert!(SecretKey::find("# only a comment\n").is_none());
}
