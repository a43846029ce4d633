//! Makes a certificate that is signed with its own key: for a server in a home,
//! which no public authority can vouch for. By hand, on ring: a library would add
//! several crates for one certificate a year.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use super::der::{
    BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, SET, UTC_TIME,
    UTF8_STRING, context, element, plain_context,
};
use super::inspect::SUBJECT_ALT_NAME;
use base::clock::Timestamp;
use base::secret::{Secret, random_bytes};

/// Longest time that a certificate is made for. Apple's systems take none for
/// longer, even if its owner trusts it (support.apple.com/103769).
pub const MOST_DAYS: u64 = 825;

/// Object identifiers, encoded (RFC 5280, RFC 5480).
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x0e];
const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 0x23];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];

/// Most characters of a common name (RFC 5280, appendix A.1).
const COMMON_NAME_LENGTH: usize = 64;
/// A clock that is this much behind ours still takes the certificate.
const BACKDATED: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A certificate and its key.
pub struct SelfSigned {
    /// The certificate, DER.
    pub der: Vec<u8>,
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key (PKCS #8), PEM.
    pub key: Secret,
}

/// Makes an ECDSA P-256 certificate for these DNS names and addresses, good for
/// `days` days from `now` on. It is a server's and no authority's.
///
/// # Errors
/// There are no names, or the system gives no random numbers.
pub fn make(names: &[String], days: u64, now: Timestamp) -> io::Result<SelfSigned> {
    let Some(first) = names.first() else {
        return Err(io::Error::other("a certificate needs at least one name"));
    };
    let random = SystemRandom::new();
    let failed = |_| io::Error::other("no key could be made: the system gives no random numbers");
    let pkcs8 =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(failed)?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random)
        .map_err(|error| io::Error::other(error.to_string()))?;
    let common: String = first.chars().take(COMMON_NAME_LENGTH).collect();
    let name = distinguished_name(&common);
    let algorithm = element(SEQUENCE, &[&element(OBJECT, &[ECDSA_WITH_SHA256])]);
    let public = pair.public_key().as_ref();
    let signed = element(
        SEQUENCE,
        &[
            &element(context(0), &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&serial()]),
            &algorithm,
            &name,
            &element(
                SEQUENCE,
                &[
                    &time(now.minus(BACKDATED)),
                    &time(now.plus(DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)))),
                ],
            ),
            &name,
            &public_key(public),
            &element(context(3), &[&extensions(names, public)]),
        ],
    );
    let signature = pair
        .sign(&random, &signed)
        .map_err(|_| io::Error::other("the certificate could not be signed"))?;
    let der = element(
        SEQUENCE,
        &[
            &signed,
            &algorithm,
            &element(BIT_STRING, &[&[0], signature.as_ref()]),
        ],
    );
    Ok(SelfSigned {
        certificate: pem("CERTIFICATE", &der),
        key: Secret::new(pem("PRIVATE KEY", pkcs8.as_ref())),
        der,
    })
}

/// A positive number that no other certificate has.
fn serial() -> [u8; 16] {
    let mut number = random_bytes::<16>();
    number[0] = number[0] & 0x3f | 0x40;
    number
}

fn distinguished_name(common: &str) -> Vec<u8> {
    let attribute = element(
        SEQUENCE,
        &[
            &element(OBJECT, &[COMMON_NAME]),
            &element(UTF8_STRING, &[common.as_bytes()]),
        ],
    );
    element(SEQUENCE, &[&element(SET, &[&attribute])])
}

fn public_key(point: &[u8]) -> Vec<u8> {
    let algorithm = element(
        SEQUENCE,
        &[
            &element(OBJECT, &[EC_PUBLIC_KEY]),
            &element(OBJECT, &[PRIME256V1]),
        ],
    );
    element(
        SEQUENCE,
        &[&algorithm, &element(BIT_STRING, &[&[0], point])],
    )
}

fn extensions(names: &[String], point: &[u8]) -> Vec<u8> {
    let names: Vec<u8> = names
        .iter()
        .flat_map(|name| match name.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => element(plain_context(7), &[&address.octets()]),
            Ok(IpAddr::V6(address)) => element(plain_context(7), &[&address.octets()]),
            Err(_) => element(plain_context(2), &[name.as_bytes()]),
        })
        .collect();
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, point);
    element(
        SEQUENCE,
        &[
            &extension(SUBJECT_ALT_NAME, false, &element(SEQUENCE, &[&names])),
            // An empty sequence: no authority.
            &extension(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &[])),
            // digitalSignature, which is all that TLS needs of such a key.
            &extension(KEY_USAGE, true, &element(BIT_STRING, &[&[7, 0x80]])),
            &extension(
                EXTENDED_KEY_USAGE,
                false,
                &element(SEQUENCE, &[&element(OBJECT, &[SERVER_AUTH])]),
            ),
            &extension(
                SUBJECT_KEY_IDENTIFIER,
                false,
                &element(OCTET_STRING, &[digest.as_ref()]),
            ),
            &extension(
                AUTHORITY_KEY_IDENTIFIER,
                false,
                &element(SEQUENCE, &[&element(plain_context(0), &[digest.as_ref()])]),
            ),
        ],
    )
}

fn extension(object: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = match critical {
        true => element(BOOLEAN, &[&[0xff]]),
        false => Vec::new(),
    };
    element(
        SEQUENCE,
        &[
            &element(OBJECT, &[object]),
            &critical,
            &element(OCTET_STRING, &[value]),
        ],
    )
}

/// With two digits of the year until 2049 (RFC 5280, section 4.1.2.5).
fn time(moment: Timestamp) -> Vec<u8> {
    let moment =
        jiff::Timestamp::from_millisecond(moment.as_millis()).unwrap_or(jiff::Timestamp::MAX);
    let moment = jiff::tz::TimeZone::UTC.to_datetime(moment);
    let digits = format!("{moment:.0}Z").replace(['-', 'T', ':'], "");
    match moment.year() {
        1950..2050 => element(UTC_TIME, &[&digits.as_bytes()["20".len()..]]),
        _ => element(GENERALIZED_TIME, &[digits.as_bytes()]),
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        lines.extend(line.iter().map(|byte| char::from(*byte)));
        lines.push('\n');
    }
    lines + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::inspect;
    use base::testing::rows;

    #[test]
    fn a_certificate_says_what_it_was_made_for() {
        let names: Vec<String> = ["pi.local", "localhost", "192.0.2.7", "2001:db8::7"]
            .map(str::to_owned)
            .to_vec();
        let table = "
            2026-11-21 | 2026-11-20T23:00:00.000Z | 2026-12-01T00:00:00.000Z
            2049-12-30 | 2049-12-29T23:00:00.000Z | 2050-01-09T00:00:00.000Z
        ";
        for [now, from, until] in rows(table) {
            let date: jiff::civil::Date = now.parse().unwrap();
            let moment = date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
            let now = Timestamp::from_millis(moment.as_millisecond());
            let made = make(&names, 10, now).unwrap();
            let found = inspect(&made.der).unwrap();
            assert_eq!(found.names, names);
            assert_eq!(found.from.to_string(), from);
            assert_eq!(found.until.to_string(), until);
        }
        assert!(make(&[], 10, Timestamp::from_millis(0)).is_err());
    }
}
