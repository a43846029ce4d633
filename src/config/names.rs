//! What names look like: of accounts, tools, headers, hosts. A name that could
//! be taken for a comment (`_x`, `$x`, `//`) is none, except that of an
//! environment variable.

use super::declaration::is_comment;
use super::rules::Parsed;
use base::calendar::Zone;
use base::url::Url;

/// A name of the owner's choice, as accounts have.
pub(super) const NAME: Parsed<String> = Parsed {
    expected: "a name of 1 to 64 characters",
    parse: |text| {
        let printable = text.chars().all(|letter| !letter.is_control());
        let fitting = !text.trim().is_empty() && text.chars().count() <= 64;
        (printable && fitting && !is_comment(text)).then(|| text.to_owned())
    },
};

/// A tool's name.
pub(super) const TOOL_NAME: Parsed<String> = Parsed {
    expected: "a tool name (1 to 64 of A-Z a-z 0-9 _ -, not beginning with _)",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let fits = (1..=64).contains(&text.len()) && text.bytes().all(letter);
        (fits && !is_comment(text)).then(|| text.to_owned())
    },
};

/// A web origin, as browsers send it (RFC 6454, section 6.2).
pub(super) const ORIGIN: Parsed<String> = Parsed {
    expected: "an origin such as https://home.example, in lower case and without a path",
    parse: |text| {
        let url = Url::parse(text).ok()?;
        let is_web = matches!(url.scheme.as_str(), "http" | "https");
        (is_web && url.origin() == text).then(|| text.to_owned())
    },
};

/// A host name without scheme or port.
pub(super) const HOST: Parsed<String> = Parsed {
    expected: "a host name such as home.example, in lower case, without scheme and port",
    parse: |text| {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
        let fits = (1..=253).contains(&text.len()) && text.bytes().all(letter);
        (fits && text.split('.').all(|label| !label.is_empty())).then(|| text.to_owned())
    },
};

/// A time zone.
pub(super) const TIME_ZONE: Parsed<String> = Parsed {
    expected: "the IANA name of a time zone that this system knows, such as Europe/Berlin",
    parse: |text| Zone::named(text).ok().map(|_| text.to_owned()),
};

/// The name of an environment variable.
pub(super) const VARIABLE: Parsed<String> = Parsed {
    expected: "the name of an environment variable (A-Z a-z 0-9 _)",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let fits = !text.is_empty() && text.bytes().all(letter);
        (fits && !text.as_bytes()[0].is_ascii_digit()).then(|| text.to_owned())
    },
};

/// The name of an HTTP header (RFC 9110, section 5.1).
pub(super) const HEADER: Parsed<String> = Parsed {
    expected: "the name of a header",
    parse: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let fits = !text.is_empty() && text.bytes().all(letter);
        (fits && !is_comment(text)).then(|| text.to_owned())
    },
};
