//! The header of a file in the format age v1: the file's key, encrypted for each recipient.

use std::io::BufRead;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, NONCE_LEN, Nonce};
use ring::hmac;
use scrypt::{Params, scrypt};

use super::{AgeError, FILE_KEY, FIRST_LINE, Identity, Recipient, SecretKey, TAG, cipher, derived};
use crate::secret::random_bytes;

/// The work that a passphrase costs, as a power of two: 64 MiB of memory, and 0.55 s of processor
/// time where it was measured (AMD EPYC).
const WORK: u8 = 16;
/// The most that is done to read a file: 256 MiB. It is what the program `age` asks for.
pub(super) const MOST_WORK: u8 = 18;
/// Most bytes of a header.
const MOST_BYTES: usize = 64 * 1024;
/// Characters of a full line of base64.
const COLUMNS: usize = 64;
const SALT: usize = 16;
const X25519: &str = "X25519";
const X25519_INFO: &[u8] = b"age-encryption.org/v1/X25519";
const SCRYPT: &str = "scrypt";
const SCRYPT_SALT: &[u8] = b"age-encryption.org/v1/scrypt";

/// The header, with the file's key encrypted to the recipient.
pub(super) fn write(file_key: &[u8; FILE_KEY], recipient: &Recipient) -> Vec<u8> {
    let (kind, argument, wrapping_key) = match recipient {
        Recipient::Key(key) => {
            let once = SecretKey::generate();
            let share = once.public().0;
            let shared = once
                .shared(&key.0)
                .expect("a public key is checked when it is read");
            let salt = [share, key.0].concat();
            let wrapping_key = derived(&shared, &salt, X25519_INFO);
            (X25519, STANDARD_NO_PAD.encode(share), wrapping_key)
        }
        Recipient::Passphrase(passphrase) => {
            let salt = random_bytes::<SALT>();
            let wrapping_key = stretched(passphrase.expose(), &salt, WORK);
            let argument = format!("{} {WORK}", STANDARD_NO_PAD.encode(salt));
            (SCRYPT, argument, wrapping_key)
        }
    };
    let mut wrapped = file_key.to_vec();
    let sealed = cipher(&wrapping_key).seal_in_place_append_tag(zero(), Aad::empty(), &mut wrapped);
    sealed.expect("a key is shorter than 256 GiB");
    let wrapped = STANDARD_NO_PAD.encode(wrapped);
    let mut header = FIRST_LINE.to_vec();
    header.extend(format!("-> {kind} {argument}\n{wrapped}\n---").bytes());
    let mac = hmac::sign(&mac_key(file_key), &header);
    header.extend(format!(" {}\n", STANDARD_NO_PAD.encode(mac)).bytes());
    header
}

/// A header that was read.
pub(super) struct Header {
    stanzas: Vec<Stanza>,
    /// What the code is of: all up to it.
    authenticated: Vec<u8>,
    mac: [u8; 32],
}

/// The file's key for one recipient.
struct Stanza {
    /// The first names the kind.
    arguments: Vec<String>,
    body: Vec<u8>,
}

impl Header {
    pub fn read(source: &mut impl BufRead) -> Result<Header, AgeError> {
        let mut lines = Lines {
            source,
            read: Vec::new(),
        };
        if lines.next()? != FIRST_LINE.trim_ascii_end() {
            return Err(AgeError::Foreign);
        }
        let mut stanzas = Vec::new();
        loop {
            let before = lines.read.len();
            let line = lines.next()?;
            if let Some(arguments) = line.strip_prefix(b"-> ") {
                stanzas.push(Stanza::read(arguments, &mut lines)?);
                continue;
            }
            let mac = line.strip_prefix(b"--- ");
            let mac = mac.ok_or(AgeError::Header(
                "a line is neither a recipient nor the last",
            ))?;
            let mac = exactly(&decoded(mac)?)?;
            let mut authenticated = lines.read;
            authenticated.truncate(before + "---".len());
            let is_one = |stanza: &Stanza| stanza.arguments[0] == SCRYPT;
            if stanzas.is_empty() {
                return Err(AgeError::Header("it has no recipient"));
            }
            if stanzas.len() > 1 && stanzas.iter().any(is_one) {
                return Err(AgeError::Header("a passphrase is not the only recipient"));
            }
            return Ok(Header {
                stanzas,
                authenticated,
                mac,
            });
        }
    }

    pub fn needs_passphrase(&self) -> bool {
        self.stanzas[0].arguments[0] == SCRYPT
    }

    /// The file's key.
    pub fn file_key(&self, identity: &Identity) -> Result<[u8; FILE_KEY], AgeError> {
        let file_key = match (identity, self.needs_passphrase()) {
            (Identity::Key(_), true) => return Err(AgeError::NeedsPassphrase),
            (Identity::Passphrase(_), false) => return Err(AgeError::NeedsKey),
            (Identity::Passphrase(passphrase), true) => self.stanzas[0]
                .open_with(passphrase.expose())?
                .ok_or(AgeError::WrongPassphrase)?,
            (Identity::Key(key), false) => {
                let mut found = None;
                let ours = |stanza: &&Stanza| stanza.arguments[0] == X25519;
                for stanza in self.stanzas.iter().filter(ours) {
                    found = found.or(stanza.open_to(key)?);
                }
                found.ok_or(AgeError::WrongKey)?
            }
        };
        hmac::verify(&mac_key(&file_key), &self.authenticated, &self.mac)
            .map_err(|_| AgeError::Damaged)?;
        Ok(file_key)
    }
}

impl Stanza {
    fn read(arguments: &[u8], lines: &mut Lines<'_, impl BufRead>) -> Result<Stanza, AgeError> {
        let mut texts = Vec::new();
        for argument in arguments.split(|&byte| byte == b' ') {
            if argument.is_empty() || !argument.iter().all(u8::is_ascii_graphic) {
                return Err(AgeError::Header("a recipient has an invalid argument"));
            }
            texts.push(String::from_utf8_lossy(argument).into_owned());
        }
        let mut body = Vec::new();
        loop {
            let line = lines.next()?;
            body.extend_from_slice(&line);
            match line.len() {
                COLUMNS => {}
                0..COLUMNS => break,
                _ => return Err(AgeError::Header("a line is too long")),
            }
        }
        Ok(Stanza {
            arguments: texts,
            body: decoded(&body)?,
        })
    }

    fn open_to(&self, key: &SecretKey) -> Result<Option<[u8; FILE_KEY]>, AgeError> {
        let [_, share] = &self.arguments[..] else {
            return Err(AgeError::Header(
                "a recipient has too few or too many arguments",
            ));
        };
        let share: [u8; 32] = exactly(&decoded(share.as_bytes())?)?;
        let shared = key
            .shared(&share)
            .ok_or(AgeError::Header("a recipient is no key"))?;
        let salt = [share, key.public().0].concat();
        self.unwrap(&derived(&shared, &salt, X25519_INFO))
    }

    fn open_with(&self, passphrase: &str) -> Result<Option<[u8; FILE_KEY]>, AgeError> {
        let [_, salt, work] = &self.arguments[..] else {
            return Err(AgeError::Header(
                "a recipient has too few or too many arguments",
            ));
        };
        let salt: [u8; SALT] = exactly(&decoded(salt.as_bytes())?)?;
        let is_number = work.bytes().all(|byte| byte.is_ascii_digit()) && !work.starts_with('0');
        let work = work.parse().ok().filter(|_| is_number);
        let work: u8 = work.ok_or(AgeError::Header("the work of its passphrase is no number"))?;
        if work > MOST_WORK {
            return Err(AgeError::TooMuchWork(work));
        }
        // Before the work is done for nothing.
        exactly::<{ FILE_KEY + TAG }>(&self.body)?;
        self.unwrap(&stretched(passphrase, &salt, work))
    }

    /// The file's key; none if this is not the key that it was encrypted with.
    fn unwrap(&self, wrapping_key: &[u8; 32]) -> Result<Option<[u8; FILE_KEY]>, AgeError> {
        let mut wrapped: [u8; FILE_KEY + TAG] = exactly(&self.body)?;
        let opened = cipher(wrapping_key).open_in_place(zero(), Aad::empty(), &mut wrapped);
        opened.ok().map(|key| exactly(key)).transpose()
    }
}

/// The lines of a header, and all that was read.
struct Lines<'s, R> {
    source: &'s mut R,
    read: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line, without its end.
    fn next(&mut self) -> Result<Vec<u8>, AgeError> {
        let begin = self.read.len();
        let room = (MOST_BYTES - begin) as u64;
        let mut source = std::io::Read::take(&mut *self.source, room);
        source
            .read_until(b'\n', &mut self.read)
            .map_err(AgeError::Read)?;
        let line = self.read[begin..].strip_suffix(b"\n");
        let is_whole = line.map(<[u8]>::to_vec);
        let unwhole = match begin {
            0 => AgeError::Foreign,
            _ => AgeError::Header("its first lines are cut off or too long"),
        };
        is_whole.ok_or(unwhole)
    }
}

fn mac_key(file_key: &[u8; FILE_KEY]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &derived(file_key, b"", b"header"))
}

fn stretched(passphrase: &str, salt: &[u8; SALT], work: u8) -> [u8; 32] {
    let params = Params::new(work, 8, 1, 32).expect("a work factor from 1 to 18");
    let mut key = [0; 32];
    let salt = [SCRYPT_SALT, salt].concat();
    scrypt(passphrase.as_bytes(), &salt, &params, &mut key).expect("32 bytes can be derived");
    key
}

/// Each key encrypts once.
fn zero() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

fn decoded(text: &[u8]) -> Result<Vec<u8>, AgeError> {
    let bytes = STANDARD_NO_PAD.decode(text);
    bytes.map_err(|_| AgeError::Header("it has text that is no base64"))
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], AgeError> {
    let exact = bytes.try_into();
    exact.map_err(|_| AgeError::Header("a part has the wrong length"))
}
