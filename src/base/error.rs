//! The one error type that crosses modules, and the closed set of codes that clients
//! see (contract section 7, with `rate_limited` as an extension).

use std::fmt;

use serde::{Serialize, Serializer};

use crate::language::{Said, Words};
use crate::words;

/// What went wrong, as a client may act on it. Closed: adding a code is a
/// protocol change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No, wrong, expired or revoked credential.
    InvalidToken,
    /// The credential is valid but its role, address or origin is not permitted.
    Unauthorized,
    /// No such conversation, message, approval, delivery, machine or path.
    NotFound,
    /// The request is malformed, incomplete, mistyped or too large.
    InvalidRequest,
    /// A fault of the server or the model provider.
    ServerError,
    /// Too many requests; try again later.
    RateLimited,
}

impl Code {
    /// The HTTP status of this code where nothing more exact is known.
    pub fn http_status(self) -> u16 {
        match self {
            Code::InvalidToken => 401,
            Code::Unauthorized => 403,
            Code::NotFound => 404,
            Code::InvalidRequest => 400,
            Code::ServerError => 500,
            Code::RateLimited => 429,
        }
    }
}

words! { Code {
    InvalidToken: "invalid_token",
    Unauthorized: "unauthorized",
    NotFound: "not_found",
    InvalidRequest: "invalid_request",
    ServerError: "server_error",
    RateLimited: "rate_limited",
} }

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An error that may be shown to a client: a [`Code`], one sentence for a
/// person, and where known the exact HTTP status and when to try again.
///
/// Nothing private belongs in `message`: what only the owner may see goes to
/// the log through [`Error::server`].
///
/// It is one pointer, because nearly every function returns one.
#[derive(Clone, Debug)]
pub struct Error(Box<Fields>);

#[derive(Clone, Debug)]
struct Fields {
    code: Code,
    /// In English, or in the words of whoever reads it.
    message: String,
    said: Said,
    /// What those read who run the server.
    in_full: Option<Said>,
    status: u16,
    retry_after: Option<u32>,
    is_of_storage: bool,
}

/// The result of most functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `code` that says `message`.
    pub fn new(code: Code, message: impl Into<Said>) -> Error {
        Error::of(code, message.into())
    }

    fn of(code: Code, said: Said) -> Error {
        Error(Box::new(Fields {
            code,
            message: said.to_string(),
            said,
            in_full: None,
            status: code.http_status(),
            retry_after: None,
            is_of_storage: false,
        }))
    }

    /// An error of `code` that says what the file of words has for `key`, with these values in
    /// its fields.
    pub fn worded(code: Code, key: &'static str, fields: &[(&'static str, &str)]) -> Error {
        Error::of(code, Said::of(key, fields))
    }

    /// The same error as somebody reads it whose words these are, without ids; a program has
    /// none.
    #[must_use]
    pub fn in_words(mut self, words: impl Into<Option<Words>>) -> Error {
        if let Some(words) = words.into() {
            self.0.message = self.0.said.in_words(words);
        }
        self
    }

    /// [`Code::InvalidToken`].
    pub fn invalid_token(message: impl Into<Said>) -> Error {
        Error::new(Code::InvalidToken, message)
    }

    /// [`Code::Unauthorized`].
    pub fn unauthorized(message: impl Into<Said>) -> Error {
        Error::new(Code::Unauthorized, message)
    }

    /// [`Code::NotFound`].
    pub fn not_found(message: impl Into<Said>) -> Error {
        Error::new(Code::NotFound, message)
    }

    /// `invalid_request` in the words of a key.
    pub fn refused(key: &'static str, fields: &[(&'static str, &str)]) -> Error {
        Error::worded(Code::InvalidRequest, key, fields)
    }

    /// [`Code::InvalidRequest`].
    pub fn invalid_request(message: impl Into<Said>) -> Error {
        Error::new(Code::InvalidRequest, message)
    }

    /// [`Code::InvalidRequest`] with HTTP 413: something is over a size limit.
    pub fn too_large(message: impl Into<Said>) -> Error {
        Error::new(Code::InvalidRequest, message).with_status(413)
    }

    /// [`Code::RateLimited`], to be tried again after `retry_after` seconds.
    pub fn rate_limited(message: impl Into<Said>, retry_after: u32) -> Error {
        Error::new(Code::RateLimited, message).with_retry_after(retry_after)
    }

    /// [`Code::ServerError`] with HTTP 503: too much to do right now.
    pub fn overloaded(message: impl Into<Said>, retry_after: u32) -> Error {
        Error::new(Code::ServerError, message)
            .with_status(503)
            .with_retry_after(retry_after)
    }

    /// [`Code::ServerError`]. `public` is what the client reads, followed by a
    /// short reference; `detail` goes to the log under the same reference, so
    /// that the owner can find it and the client learns nothing private.
    pub fn server(public: impl Into<Said>, detail: impl fmt::Display) -> Error {
        Error::with_detail(public.into(), &detail)
    }

    fn with_detail(public: Said, detail: &dyn fmt::Display) -> Error {
        let reference = crate::secret::reference();
        log::error!("reference {reference}: {public}: {detail}");
        let around = |key: &'static str| Said::of(key, &[]).with("said", public.clone());
        let shown = around("error.reference").with("reference", reference);
        let mut error = Error::of(Code::ServerError, shown);
        error.0.in_full = Some(around("error.detail").with("detail", detail.to_string()));
        error
    }

    /// The same error in other words, for everybody who reads it.
    pub fn rephrased(mut self, phrase: impl Fn(&str) -> String) -> Error {
        let said = |old: &Said| Said::from(phrase(&old.to_string()));
        self.0.in_full = self.0.in_full.as_ref().map(said);
        let said = said(&self.0.said);
        self.saying(said)
    }

    fn saying(mut self, said: Said) -> Error {
        self.0.message = said.to_string();
        self.0.said = said;
        self
    }

    /// The same error with a more exact HTTP status than its code implies.
    pub fn with_status(mut self, status: u16) -> Error {
        self.0.status = status;
        self
    }

    /// The same error with the number of seconds after which to try again.
    pub fn with_retry_after(mut self, seconds: u32) -> Error {
        self.0.retry_after = Some(seconds);
        self
    }

    /// The same error, caused by the disk or the file and not by what was asked.
    pub fn of_storage(mut self) -> Error {
        self.0.is_of_storage = true;
        self
    }

    /// Whether it says so: what was accepted before can go on later.
    pub fn is_of_storage(&self) -> bool {
        self.0.is_of_storage
    }

    /// What a client may act on.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence for a person.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What it says, for another language.
    pub fn said(&self) -> &Said {
        &self.0.said
    }

    /// The key of its sentence in the file of words, where it has one: the same in every
    /// language.
    pub fn key(&self) -> Option<&str> {
        self.0.said.key()
    }

    /// The same error with the detail that [`Error::server`] hides from clients: for those who
    /// run the server, and for commands, which write no log.
    #[must_use]
    pub fn in_full(mut self) -> Error {
        match self.0.in_full.take() {
            Some(said) => self.saying(said),
            None => self,
        }
    }

    /// The HTTP status that carries this error.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Seconds after which trying again may help.
    pub fn retry_after(&self) -> Option<u32> {
        self.0.retry_after
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

/// What anybody may read of it, as a model does in a tool's result.
impl From<Error> for String {
    fn from(error: Error) -> String {
        error.0.message
    }
}

/// Two errors are equal when a client sees the same: the detail is not stored with a
/// failed turn.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        let seen = |error: &Error| (error.code(), error.status(), error.retry_after());
        seen(self) == seen(other) && self.message() == other.message()
    }
}

impl Eq for Error {}

/// `text` without the numbers after the operating system's error messages:
/// "Connection refused (os error 111)".
pub fn without_numbers(text: &str) -> String {
    const MARK: &str = " (os error ";
    let mut pieces = text.split(MARK);
    let mut words = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                words.push_str(rest);
            }
            _ => {
                words.push_str(MARK);
                words.push_str(piece);
            }
        }
    }
    words
}

/// What is wrong with a text that is no valid JSON, as a person says it: after "the
/// message is not valid JSON: ". The parser's own words speak of its parts.
pub fn json_problem(error: &serde_json::Error) -> String {
    const HALF_A_PAIR: &str = "a \\u escape in a string is half of a surrogate pair";
    const WORDS: [(&str, &str); 14] = [
        ("EOF", "it ends too early"),
        ("trailing characters", "something follows after its end"),
        ("trailing comma", "there is a comma too many"),
        ("expected `:`", "a colon is missing"),
        ("expected `,`", "a comma or a closing bracket is missing"),
        ("key must be a string", "a name must be in double quotes"),
        (
            "control character",
            "a line break or another control character is inside a string",
        ),
        (
            "invalid escape",
            "a backslash in a string begins no known escape",
        ),
        ("invalid number", "a number is malformed"),
        ("number out of range", "a number is too large"),
        ("recursion limit", "it is nested more than 128 levels deep"),
        ("invalid unicode", "a string is not valid Unicode"),
        ("lone leading surrogate", HALF_A_PAIR),
        ("unexpected end of hex escape", HALF_A_PAIR),
    ];
    let text = error.to_string();
    let known = WORDS.iter().find(|(theirs, _)| text.starts_with(theirs));
    let problem = known.map_or("a value is malformed", |(_, ours)| ours);
    match error.line() {
        0 => problem.to_owned(),
        line => format!("{problem} (line {line}, column {})", error.column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_its_word() {
        for word in Code::WORDS {
            assert_eq!(Code::parse(word).map(Code::as_str), Some(*word));
        }
        assert_eq!(Code::parse("teapot"), None);
    }

    #[test]
    fn an_error_is_said_in_other_words_unless_it_was_rephrased() {
        let words = Words::from_lines(
            "error.none\tgibt es nicht: {what} {id}\nerror.role\t{own} < {needed}\nerror.stopping\tIch höre gerade auf\nthing.list\tListe",
        );
        let role = [("needed", "admin"), ("own", "user")];
        let refused = Error::worded(Code::Unauthorized, "error.role", &role);
        assert_eq!(
            refused.message(),
            "this needs the role admin; yours is user"
        );
        assert_eq!(refused.clone().in_words(words).message(), "user < admin");
        let said = refused.rephrased(|text| format!("ben: {text}"));
        assert_eq!(said.clone().in_words(words), said);
        let fields = [("what", "list"), ("id", "list_1")];
        let missing = Error::worded(Code::NotFound, "error.none", &fields);
        assert_eq!(missing.message(), "there is no list list_1");
        let said = missing.in_words(words);
        assert_eq!(said.message(), "gibt es nicht: Liste");
        let plain = Error::not_found("there is no such thing");
        assert_eq!(plain.clone().in_words(words), plain);
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        for (text, expected) in [
            ("refused (os error 111)", "refused"),
            ("a (os error 2); b (os error 13), c", "a; b, c"),
            ("a (os error x) b", "a (os error x) b"),
            ("a (os error ", "a (os error "),
            ("plain", "plain"),
        ] {
            assert_eq!(without_numbers(text), expected);
        }
    }

    #[test]
    fn a_server_error_hides_its_detail_and_quotes_a_reference() {
        let error = Error::server("the reply could not be stored", "disk full at /secret/path");
        assert!(
            error
                .message()
                .starts_with("the reply could not be stored (reference ")
        );
        assert!(!error.message().contains("/secret/path"));
        assert_eq!(
            error.clone().in_full().message(),
            "the reply could not be stored: disk full at /secret/path"
        );
    }

    #[test]
    fn json_that_is_malformed_is_described_in_plain_words() {
        for (text, words) in [
            ("", "it ends too early"),
            ("{\"a\":1", "it ends too early (line 1, column 6)"),
            ("hello", "a value is malformed (line 1, column 1)"),
            ("nul", "it ends too early"),
            ("no", "a value is malformed"),
            ("{\"a\":\n nope}", "a value is malformed (line 2, column 3)"),
            (
                "{} {}",
                "something follows after its end (line 1, column 4)",
            ),
            ("{\"a\":1,}", "there is a comma too many"),
            ("{\"a\" 1}", "a colon is missing"),
            (
                "\"\\ud800\"",
                "a \\u escape in a string is half of a surrogate pair (line 1, column 8)",
            ),
            (
                "\"\\ude00 alone\"",
                "a \\u escape in a string is half of a surrogate pair (line 1, column 7)",
            ),
            (
                "{\"a\":1 \"b\":2}",
                "a comma or a closing bracket is missing",
            ),
            ("[1 2]", "a comma or a closing bracket is missing"),
            ("{a:1}", "a name must be in double quotes"),
            ("\"a\nb\"", "a line break or another control character"),
            ("\"\\x\"", "a backslash in a string"),
            ("01", "a number is malformed"),
            ("1e999", "a number is too large"),
            (&"[".repeat(200), "it is nested more than 128 levels deep"),
        ] {
            let error = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            let said = json_problem(&error);
            assert!(said.starts_with(words), "{text}: {said} ({error})");
        }
    }
}
