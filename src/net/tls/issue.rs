//! Makes certificates (RFC 5280). By hand, on ring: a library would add several crates
//! for one certificate a year.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use super::certificate::pem;
use super::der::{
    BIT_STRING, BOOLEAN, GENERALIZED_TIME, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, SET, UTC_TIME,
    UTF8_STRING, context, element, plain_context,
};
use super::inspect::{NAME_CONSTRAINTS, SUBJECT_ALT_NAME};
use base::clock::Timestamp;
use base::secret::{Secret, random_bytes};

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

/// Forms of general names (RFC 5280, section 4.2.1.6).
const EMAIL: u8 = 1;
const DNS: u8 = 2;
const URI: u8 = 6;
const ADDRESS: u8 = 7;

/// A host that nobody has (RFC 2606): who permits this one permits none.
const NO_HOST: &[u8] = b"invalid";
/// Most characters of a common name (RFC 5280, appendix A.1).
const COMMON_NAME_LENGTH: usize = 64;
/// A clock that is this much behind ours still takes the certificate.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// A certificate and its key.
pub struct Issued {
    /// The certificate, DER.
    pub der: Vec<u8>,
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key (PKCS #8), PEM.
    pub key: Secret,
}

/// Who signs a certificate.
pub struct Issuer {
    /// Its distinguished name, encoded.
    pub name: Vec<u8>,
    pub pair: EcdsaKeyPair,
}

/// Makes an ECDSA P-256 key and a certificate of it with these extensions, good until
/// `until`; signed with its own key where there is no issuer.
///
/// # Errors
/// The system gives no random numbers.
pub fn issue(
    common: &str,
    extensions: &[u8],
    now: Timestamp,
    until: Timestamp,
    issuer: Option<&Issuer>,
) -> io::Result<Issued> {
    let random = SystemRandom::new();
    let failed = |_| io::Error::other("no key could be made: the system gives no random numbers");
    let pkcs8 =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(failed)?;
    let pair = pair(pkcs8.as_ref())?;
    let common: String = common.chars().take(COMMON_NAME_LENGTH).collect();
    let subject = distinguished_name(&common);
    let (issuer, signing) = match issuer {
        Some(issuer) => (&issuer.name, &issuer.pair),
        None => (&subject, &pair),
    };
    let algorithm = element(SEQUENCE, &[&element(OBJECT, &[ECDSA_WITH_SHA256])]);
    let public = pair.public_key().as_ref();
    let own_key = element(OCTET_STRING, &[&key_identifier(public)]);
    let signing_key = plain_context(0);
    let signing_key = element(
        signing_key,
        &[&key_identifier(signing.public_key().as_ref())],
    );
    let extensions = element(
        SEQUENCE,
        &[
            extensions,
            &extension(SUBJECT_KEY_IDENTIFIER, false, &own_key),
            &extension(
                AUTHORITY_KEY_IDENTIFIER,
                false,
                &element(SEQUENCE, &[&signing_key]),
            ),
        ],
    );
    let signed = element(
        SEQUENCE,
        &[
            &element(context(0), &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&serial()]),
            &algorithm,
            issuer,
            &element(SEQUENCE, &[&time(now.minus(BACKDATED)), &time(until)]),
            &subject,
            &public_key(public),
            &element(context(3), &[&extensions]),
        ],
    );
    let signature = signing
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
    Ok(Issued {
        certificate: pem("CERTIFICATE", &der),
        key: Secret::new(pem("PRIVATE KEY", pkcs8.as_ref())),
        der,
    })
}

/// The key of a PKCS #8 document.
///
/// # Errors
/// It is none of this curve.
pub fn pair(pkcs8: &[u8]) -> io::Result<EcdsaKeyPair> {
    let random = SystemRandom::new();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8, &random)
        .map_err(|error| io::Error::other(error.to_string()))
}

/// The extensions of a server with these names.
pub fn of_server(names: &[String]) -> Vec<u8> {
    let names: Vec<u8> = names
        .iter()
        .flat_map(|name| match name.parse::<IpAddr>() {
            Ok(address) => element(plain_context(ADDRESS), &[&octets(address)]),
            Err(_) => element(plain_context(DNS), &[name.as_bytes()]),
        })
        .collect();
    [
        extension(SUBJECT_ALT_NAME, false, &element(SEQUENCE, &[&names])),
        // An empty sequence: no authority.
        extension(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &[])),
        // digitalSignature, which is all that TLS needs of such a key.
        extension(KEY_USAGE, true, &element(BIT_STRING, &[&[7, 0x80]])),
        server_auth(),
    ]
    .concat()
}

/// The extensions of an authority for servers with these names and no others.
///
/// A form of names that has a permitted one is limited to it, so email addresses and URIs
/// are limited to a host that nobody has. Directory names are not: rustls and Go refuse
/// every authority that limits them, and no TLS client takes a host from one. RFC 5280
/// gives the other forms no limits. What else such a certificate could be for, the extended
/// key usage rules out.
pub fn of_authority(names: &[String]) -> Vec<u8> {
    let permit = |form, name: &[u8]| element(SEQUENCE, &[&element(plain_context(form), &[name])]);
    let mut permitted: Vec<u8> = names
        .iter()
        .flat_map(|name| match name.parse::<IpAddr>() {
            Ok(address) => {
                let mut network = octets(address);
                network.resize(network.len() * 2, 0xff);
                permit(ADDRESS, &network)
            }
            Err(_) => permit(DNS, name.as_bytes()),
        })
        .collect();
    permitted.extend(permit(EMAIL, NO_HOST));
    permitted.extend(permit(URI, NO_HOST));
    let constraints = element(SEQUENCE, &[&element(context(0), &[&permitted])]);
    let authority = [
        &element(BOOLEAN, &[&[0xff]])[..],
        // No authority below it.
        &element(INTEGER, &[&[0]]),
    ];
    [
        extension(NAME_CONSTRAINTS, true, &constraints),
        extension(BASIC_CONSTRAINTS, true, &element(SEQUENCE, &authority)),
        // keyCertSign.
        extension(KEY_USAGE, true, &element(BIT_STRING, &[&[2, 0x04]])),
        server_auth(),
    ]
    .concat()
}

fn server_auth() -> Vec<u8> {
    let usage = element(SEQUENCE, &[&element(OBJECT, &[SERVER_AUTH])]);
    extension(EXTENDED_KEY_USAGE, false, &usage)
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

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
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

fn key_identifier(point: &[u8]) -> Vec<u8> {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, point);
    digest.as_ref().to_vec()
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
