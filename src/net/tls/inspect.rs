//! Reads a certificate's fingerprint, names and validity.

use std::net::IpAddr;

use jiff::civil;
use jiff::tz::TimeZone;

use super::der::{
    Elements, GENERALIZED_TIME, OBJECT, OCTET_STRING, SEQUENCE, SET, UTC_TIME, context,
    plain_context,
};
use base::clock::Timestamp;

/// The object identifier of `subjectAltName` (RFC 5280, section 4.2.1.6).
pub(super) const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// That of `nameConstraints` (section 4.2.1.10).
pub(super) const NAME_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x1e];

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// DNS names and addresses that it is for, or may vouch for, in its order.
    pub names: Vec<String>,
    /// Start of its validity.
    pub from: Timestamp,
    /// End of its validity.
    pub until: Timestamp,
    /// Whose it is, and who signed it: the contents of their distinguished names.
    pub(super) subject: Vec<u8>,
    pub(super) issuer: Vec<u8>,
    /// Its public key: the content of a SubjectPublicKeyInfo.
    pub(super) key: Vec<u8>,
}

impl Inspected {
    /// Whose it is: the first attribute of its name, by which devices list it.
    pub fn common_name(&self) -> String {
        let mut attribute = Elements(&self.subject)
            .expect(SET)
            .and_then(|set| Elements(set).expect(SEQUENCE))
            .map(Elements);
        let value = attribute.as_mut().and_then(|attribute| {
            attribute.expect(OBJECT)?;
            attribute.next()
        });
        let value = value.map_or(&[][..], |(_, value)| value);
        String::from_utf8_lossy(value).escape_default().to_string()
    }
}

/// The SHA-256 of a certificate, as browsers show it: `AB:CD:...`.
pub fn fingerprint(certificate: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let pairs: Vec<String> = digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    pairs.join(":")
}

/// Reads a certificate (DER). None when it is no X.509 certificate.
pub fn inspect(certificate: &[u8]) -> Option<Inspected> {
    let signed = Elements(certificate).expect(SEQUENCE)?;
    // TBSCertificate (RFC 5280, section 4.1).
    let mut fields = Elements(Elements(signed).expect(SEQUENCE)?);
    let _version = fields.take_if(context(0));
    let _serial = fields.next()?;
    let _algorithm = fields.expect(SEQUENCE)?;
    let issuer = fields.expect(SEQUENCE)?.to_owned();
    let mut validity = Elements(fields.expect(SEQUENCE)?);
    let from = time(validity.next()?)?;
    let until = time(validity.next()?)?;
    let subject = fields.expect(SEQUENCE)?.to_owned();
    let key = fields.expect(SEQUENCE)?.to_owned();
    let mut names = Vec::new();
    while let Some((tag, content)) = fields.next() {
        if tag == context(3) {
            names = names_in_extensions(content).unwrap_or_default();
        }
    }
    Some(Inspected {
        names,
        from,
        until,
        subject,
        issuer,
        key,
    })
}

/// The names in the extensions: its own, or those that an authority may vouch for.
fn names_in_extensions(content: &[u8]) -> Option<Vec<String>> {
    let mut extensions = Elements(Elements(content).expect(SEQUENCE)?);
    while let Some((SEQUENCE, extension)) = extensions.next() {
        let mut extension = Elements(extension);
        let object = extension.expect(OBJECT)?;
        if object != SUBJECT_ALT_NAME && object != NAME_CONSTRAINTS {
            continue;
        }
        let _critical = extension.take_if(super::der::BOOLEAN);
        let mut value = Elements(Elements(extension.expect(OCTET_STRING)?).expect(SEQUENCE)?);
        let mut names = Vec::new();
        if object == NAME_CONSTRAINTS {
            let mut permitted = Elements(value.expect(context(0))?);
            while let Some(subtree) = permitted.expect(SEQUENCE) {
                names.extend(Elements(subtree).next().and_then(name));
            }
        }
        while let Some(found) = value.next() {
            names.extend(name(found));
        }
        return Some(names);
    }
    None
}

/// A DNS name or an address, which has a mask behind it where it is a network.
fn name((tag, name): (u8, &[u8])) -> Option<String> {
    if tag == plain_context(2) {
        // Whatever stands there goes to a terminal.
        let text = String::from_utf8_lossy(name);
        return Some(text.escape_default().to_string());
    }
    let bytes = match name.len() {
        _ if tag != plain_context(7) => return None,
        8 | 32 => &name[..name.len() / 2],
        _ => name,
    };
    let address = <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
    address.ok().map(|address| address.to_string())
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280, section 4.1.2.5).
fn time((tag, content): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (tag, text.len()) {
        (UTC_TIME, 12) => {
            let year: i16 = text[..2].parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, &text[2..])
        }
        (GENERALIZED_TIME, 14) => (text[..4].parse().ok()?, &text[4..]),
        _ => return None,
    };
    let pair = |place: usize| rest[place..place + 2].parse::<i8>().ok();
    let moment = civil::DateTime::new(year, pair(0)?, pair(2)?, pair(4)?, pair(6)?, pair(8)?, 0);
    let zoned = moment.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp::from_millis(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_read() {
        for (tag, text, shown) in [
            (UTC_TIME, "270115080000Z", Some("2027-01-15T08:00:00.000Z")),
            (UTC_TIME, "700101000000Z", Some("1970-01-01T00:00:00.000Z")),
            (
                GENERALIZED_TIME,
                "20500615235959Z",
                Some("2050-06-15T23:59:59.000Z"),
            ),
            (UTC_TIME, "20500615235959Z", None),
            (UTC_TIME, "270199080000Z", None),
            (UTC_TIME, "2701150800+0Z", None),
            (GENERALIZED_TIME, "27Z", None),
        ] {
            let read = time((tag, text.as_bytes())).map(|time| time.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_not_read() {
        for bytes in [&b""[..], b"\x30\x00", b"hello", b"\x30\x82\xff\xff"] {
            assert_eq!(inspect(bytes), None);
        }
    }
}
