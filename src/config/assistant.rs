//! `assistant`: who the assistant is.

use serde::Serialize;

use super::declaration::{Rule, default_is_absent, section};
use super::rules::{Parsed, Text};

section! {
    /// The section `assistant`: who the assistant is, as the system prompt says it.
    #[derive(Clone, Debug, Serialize)]
    pub struct Identity {
        /// Its name.
        pub name: Option<String> = SHORT.optional("Hearth; none where `system_prompt` is your own");
        /// Where the household is, such as "Bergen, Norway".
        pub place: Option<String> = LINE.optional("not said");
        /// The language in which it answers, such as "Norwegian".
        pub language: Option<String> = SHORT.optional("the one in which it is addressed");
        /// Its manner, and what else it should keep to, such as "dry humour, metric units".
        pub persona: Option<String> = Text(1..=4_000).optional("none");
    }
}

default_is_absent!(Identity);

const SHORT: Parsed<String> = Parsed {
    expected: "a line of 1 to 64 characters",
    parse: |text| line(text, 64),
};

const LINE: Parsed<String> = Parsed {
    expected: "a line of 1 to 200 characters",
    parse: |text| line(text, 200),
};

/// A text that is one line, without the white space around it.
fn line(text: &str, most: usize) -> Option<String> {
    let text = text.trim();
    let fits = (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
}
