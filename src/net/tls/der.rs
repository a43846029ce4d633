//! As much of DER (ITU-T X.690) as certificates need.

/// Tags of the universal class.
pub const BOOLEAN: u8 = 0x01;
#[cfg(feature = "tls")]
pub const INTEGER: u8 = 0x02;
#[cfg(feature = "tls")]
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT: u8 = 0x06;
#[cfg(feature = "tls")]
pub const UTF8_STRING: u8 = 0x0c;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// The tag of a context-specific element that is made of others.
pub const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of a context-specific element that is not.
pub const fn plain_context(number: u8) -> u8 {
    0x80 | number
}

/// An element with this tag, whose content is `parts` one after the other.
#[cfg(feature = "tls")]
pub fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let digits = length.to_be_bytes();
        let leading = digits.iter().take_while(|digit| **digit == 0).count();
        bytes.push(0x80 | (digits.len() - leading) as u8);
        bytes.extend_from_slice(&digits[leading..]);
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    bytes
}

/// Reads elements one after the other.
#[derive(Clone, Copy)]
pub struct Elements<'a>(pub &'a [u8]);

impl<'a> Elements<'a> {
    /// The next element: its tag and its content. None at the end, and where
    /// the bytes are no DER.
    pub fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], mut rest) = self.0.split_first_chunk()?;
        let length = match first {
            ..=0x7f => usize::from(first),
            0x81..=0x84 => {
                let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = after;
                digits
                    .iter()
                    .fold(0, |length, digit| length << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some((tag, content))
    }

    /// The content of the next element, which must have this tag.
    pub fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// The content of the next element if it has this tag; else it stays.
    pub fn take_if(&mut self, tag: u8) -> Option<&'a [u8]> {
        match self.0.first() {
            Some(found) if *found == tag => self.expect(tag),
            _ => None,
        }
    }
}

#[cfg(feature = "tls")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let content = vec![7; length];
            let bytes = element(OCTET_STRING, &[&content]);
            let mut elements = Elements(&bytes);
            assert_eq!(
                elements.expect(OCTET_STRING),
                Some(&content[..]),
                "{length}"
            );
            assert!(elements.next().is_none());
            // Nothing is read beyond what is there.
            let mut cut = Elements(&bytes[..bytes.len() - 1]);
            assert_eq!(cut.next(), None, "{length}");
        }
        assert_eq!(Elements(&[0x30, 0x80]).next(), None, "not DER");
        assert_eq!(Elements(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).next(), None);
    }
}
