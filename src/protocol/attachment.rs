//! Attachments inside JSON: base64, in parts.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::fields::Fields;
use base::error::{Error, Result};

/// Most attachments of one message.
pub const MOST_ATTACHMENTS: usize = 16;
/// Most bytes of a part, before base64.
pub const PART_BYTES: usize = 256 * 1024;

/// Standard base64 whose padding may be left out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The base64 of a part.
pub fn encode(data: &[u8]) -> String {
    STANDARD.encode(data)
}

/// Adds the base64 of a file to a text.
pub fn encode_to(data: &[u8], text: &mut String) {
    text.reserve_exact(data.len().div_ceil(3) * 4);
    STANDARD.encode_string(data, text);
}

/// Reads a member that is base64.
///
/// # Errors
/// `invalid_request` when it is absent or something else.
pub fn data(fields: &mut Fields, name: &str) -> Result<Vec<u8>> {
    let text = fields.string(name)?;
    decode(&text).ok_or_else(|| Error::invalid_request(format!("\"{name}\" must be base64")))
}

/// The bytes of a text in base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    LENIENT.decode(text).ok()
}

/// Refuses more attachments than one message may have.
///
/// # Errors
/// `invalid_request`.
pub fn check_count(count: usize) -> Result<()> {
    match count {
        0..=MOST_ATTACHMENTS => Ok(()),
        _ => Err(Error::invalid_request(format!(
            "a message may have at most {MOST_ATTACHMENTS} attachments, not {count}"
        ))),
    }
}
