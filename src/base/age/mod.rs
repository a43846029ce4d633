//! Files in the format age v1 (<https://age-encryption.org/v1>), encrypted to a public key or
//! with a passphrase. They are read and written piece by piece, whatever their size.

mod header;
mod keys;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use crate::secret::{Secret, random_bytes};
use header::Header;
pub use keys::{PublicKey, SecretKey};

/// The first line of each such file.
pub const FIRST_LINE: &[u8] = b"age-encryption.org/v1\n";

/// Bytes of content that are encrypted as one.
const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
const FILE_KEY: usize = 16;
const PAYLOAD_NONCE: usize = 16;

/// Who can decrypt a file that is written.
#[derive(Clone)]
pub enum Recipient {
    /// Whoever has the secret key.
    Key(PublicKey),
    /// Whoever knows the passphrase.
    Passphrase(Secret),
}

/// What a file is decrypted with.
pub enum Identity {
    /// A secret key.
    Key(SecretKey),
    /// A passphrase.
    Passphrase(Secret),
}

/// Why a file cannot be encrypted or decrypted.
#[derive(Debug)]
pub enum AgeError {
    /// The source cannot be read.
    Read(io::Error),
    /// The target cannot be written.
    Write(io::Error),
    /// It is not in this format.
    Foreign,
    /// Its first lines do not follow the format.
    Header(&'static str),
    /// It was encrypted to keys, and a passphrase was given.
    NeedsKey,
    /// It was encrypted with a passphrase, and a key was given.
    NeedsPassphrase,
    /// It was encrypted to other keys.
    WrongKey,
    /// It was encrypted with another passphrase.
    WrongPassphrase,
    /// The passphrase costs more work than is done for a file.
    TooMuchWork(u8),
    /// It was changed or cut off.
    Damaged,
    /// The watcher stopped it.
    Stopped,
}

impl fmt::Display for AgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgeError::Read(error) => write!(f, "cannot be read: {error}"),
            AgeError::Write(error) => write!(f, "its content cannot be written: {error}"),
            AgeError::Foreign => f.write_str("is not encrypted in the format age v1"),
            AgeError::Header(what) => write!(f, "is damaged: {what}"),
            AgeError::NeedsKey => f.write_str(
                "is encrypted to a key: name the file of its secret key with --identity",
            ),
            AgeError::NeedsPassphrase => {
                f.write_str("is encrypted with a passphrase: leave --identity out")
            }
            AgeError::WrongKey => f.write_str("is encrypted to another key"),
            AgeError::WrongPassphrase => {
                f.write_str("cannot be decrypted: the passphrase is wrong")
            }
            AgeError::TooMuchWork(work) => write!(
                f,
                "has a passphrase of work factor {work}; at most {} is accepted: decrypt it with \
                 the program `age`",
                header::MOST_WORK
            ),
            AgeError::Damaged => f.write_str("is damaged or was cut off: use another copy"),
            AgeError::Stopped => f.write_str("was not read to its end: stopped"),
        }
    }
}

impl std::error::Error for AgeError {}

/// Encrypts all of `source`. `watch` learns how many bytes are done, and stops it with false.
///
/// # Errors
/// The source cannot be read or the target cannot be written, or it was stopped.
pub fn encrypt(
    mut source: impl Read,
    target: &mut impl Write,
    recipient: &Recipient,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<(), AgeError> {
    let file_key = random_bytes::<FILE_KEY>();
    let nonce = random_bytes::<PAYLOAD_NONCE>();
    let mut write = |bytes: &[u8]| target.write_all(bytes).map_err(AgeError::Write);
    write(&header::write(&file_key, recipient))?;
    write(&nonce)?;
    let mut cipher = ChunkCipher::new(&file_key, &nonce);
    let mut done = 0;
    each_chunk(&mut source, CHUNK, |chunk, is_last| {
        done += chunk.len() as u64;
        let nonce = cipher.next_nonce(is_last);
        let sealed = cipher
            .key
            .seal_in_place_append_tag(nonce, Aad::empty(), chunk);
        sealed.expect("a chunk is shorter than 256 GiB");
        write(chunk)?;
        if watch(done) {
            Ok(())
        } else {
            Err(AgeError::Stopped)
        }
    })
}

/// An encrypted file whose header was read.
pub struct EncryptedFile<R> {
    header: Header,
    source: R,
}

impl<R: BufRead> EncryptedFile<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It cannot be read, or does not follow the format.
    pub fn open(mut source: R) -> Result<EncryptedFile<R>, AgeError> {
        let header = Header::read(&mut source)?;
        Ok(EncryptedFile { header, source })
    }

    /// Whether it takes a passphrase and no key.
    pub fn needs_passphrase(&self) -> bool {
        self.header.needs_passphrase()
    }

    /// Writes what was encrypted. `watch` learns how many bytes are done, and stops it with
    /// false. What is in the target after an error is not whole.
    ///
    /// # Errors
    /// The identity is not the right one, the file was changed or cut off, cannot be read, or
    /// its content cannot be written; or it was stopped.
    pub fn decrypt(
        mut self,
        identity: &Identity,
        target: &mut impl Write,
        watch: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), AgeError> {
        let file_key = self.header.file_key(identity)?;
        let mut nonce = [0; PAYLOAD_NONCE];
        self.source
            .read_exact(&mut nonce)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => AgeError::Header("it is cut off"),
                _ => AgeError::Read(error),
            })?;
        let mut cipher = ChunkCipher::new(&file_key, &nonce);
        let mut done = 0;
        each_chunk(&mut self.source, CHUNK + TAG, |chunk, is_last| {
            let is_first = cipher.counter == 0;
            let nonce = cipher.next_nonce(is_last);
            let opened = cipher.key.open_in_place(nonce, Aad::empty(), chunk);
            let content = opened.map_err(|_| AgeError::Damaged)?;
            // Only a file without content ends with an empty chunk.
            if content.is_empty() && !is_first {
                return Err(AgeError::Damaged);
            }
            done += content.len() as u64;
            target.write_all(content).map_err(AgeError::Write)?;
            if watch(done) {
                Ok(())
            } else {
                Err(AgeError::Stopped)
            }
        })
    }
}

/// Calls `work` with each chunk of so many bytes, and whether it is the last: that may be
/// shorter, and empty if it is the only one.
fn each_chunk(
    source: &mut impl Read,
    bytes: usize,
    mut work: impl FnMut(&mut Vec<u8>, bool) -> Result<(), AgeError>,
) -> Result<(), AgeError> {
    let mut read = |chunk: &mut Vec<u8>| {
        chunk.clear();
        let taken = source.by_ref().take(bytes as u64).read_to_end(chunk);
        taken.map_err(AgeError::Read)
    };
    let (mut chunk, mut next) = (Vec::new(), Vec::new());
    read(&mut chunk)?;
    loop {
        let is_last = read(&mut next)? == 0;
        work(&mut chunk, is_last)?;
        if is_last {
            return Ok(());
        }
        std::mem::swap(&mut chunk, &mut next);
    }
}

/// The key of a file's chunks, and how many were begun: their number and whether one is the last
/// are part of how it is encrypted, so that none can be left out or moved.
struct ChunkCipher {
    key: LessSafeKey,
    counter: u64,
}

impl ChunkCipher {
    fn new(file_key: &[u8; FILE_KEY], nonce: &[u8]) -> ChunkCipher {
        let key = derived(file_key, nonce, b"payload");
        ChunkCipher {
            key: cipher(&key),
            counter: 0,
        }
    }

    fn next_nonce(&mut self, is_last: bool) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[3..11].copy_from_slice(&self.counter.to_be_bytes());
        nonce[11] = u8::from(is_last);
        self.counter += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key).expect("a key of 32 bytes");
    LessSafeKey::new(key)
}

/// 32 bytes by HKDF (RFC 5869) with SHA-256.
fn derived(secret: &[u8], salt: &[u8], info: &[u8]) -> [u8; 32] {
    struct Bytes32;
    impl KeyType for Bytes32 {
        fn len(&self) -> usize {
            32
        }
    }
    let mut key = [0; 32];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let filled = extracted
        .expand(&[info], Bytes32)
        .and_then(|material| material.fill(&mut key));
    filled.expect("32 bytes can be derived");
    key
}
