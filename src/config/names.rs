//! What names look like: of accounts, tools, headers, hosts. A name that could
//! be taken for a comment (`_x`, `$x`, `//`) is none, except that of an
//! environment variable.

use super::declaration::is_comment;
use super::rules::Checked;
use base::calendar::Zone;
use base::url::Url;

/// A name of the owner's choice, as accounts have.
pub(super) const NAME: Checked = Checked {
    expected: "a name of 1 to 64 characters",
    check: |text| {
        let printable = text.chars().all(|letter| !letter.is_control());
        let fitting = !text.trim().is_empty() && text.chars().count() <= 64;
        printable && fitting && !is_comment(text)
    },
};

/// A tool's name.
pub(super) const TOOL_NAME: Checked = Checked {
    expected: "a tool name (1 to 64 of A-Z a-z 0-9 _ -, not beginning with _)",
    check: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=64).contains(&text.len()) && text.bytes().all(letter) && !is_comment(text)
    },
};

/// A web origin, as browsers send it (RFC 6454, section 6.2).
pub(super) const ORIGIN: Checked = Checked {
    expected: "an origin such as https://home.example, in lower case and without a path",
    check: |text| {
        Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme.as_str(), "http" | "https") && url.origin() == text
        })
    },
};

/// A host name without scheme or port.
pub(super) const HOST: Checked = Checked {
    expected: "a host name such as home.example, in lower case, without scheme and port",
    check: |text| {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
        (1..=253).contains(&text.len())
            && text.bytes().all(letter)
            && text.split('.').all(|label| !label.is_empty())
    },
};

/// A time zone.
pub(super) const TIME_ZONE: Checked = Checked {
    expected: "the IANA name of a time zone that this system knows, such as Europe/Berlin",
    check: |text| Zone::named(text).is_ok(),
};

/// The name of an environment variable.
pub(super) const VARIABLE: Checked = Checked {
    expected: "the name of an environment variable (A-Z a-z 0-9 _)",
    check: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !text.is_empty()
            && text.bytes().all(letter)
            && !text.starts_with(|first: char| first.is_ascii_digit())
    },
};

/// The name of an HTTP header (RFC 9110, section 5.1).
pub(super) const HEADER: Checked = Checked {
    expected: "the name of a header",
    check: |text| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(letter) && !is_comment(text)
    },
};
