//! What the build scripts compressed (RFC 1952).

use std::io::Read as _;

use flate2::bufread::GzDecoder;

/// A file as it was before a build script compressed it.
pub fn unpack(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(gzip)
        .read_to_end(&mut plain)
        .expect("a build script compressed it");
    plain
}

/// The same of a text.
pub fn unpack_text(gzip: &[u8]) -> String {
    String::from_utf8(unpack(gzip)).expect("a build script read it as text")
}
