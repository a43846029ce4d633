//! What a request must be like before its body is read and once it is there:
//! method, media type, JSON.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::gate::exchange::{Head, Response};
use crate::protocol::fields::Fields;

/// Demands one of the methods in `allowed`, which is the value of `Allow`
/// (RFC 9110 section 10.2.1): methods in capitals, separated by `, `.
///
/// Errors: `invalid_request` with HTTP 405 and `Allow`.
pub fn method(head: &Head, allowed: &'static str) -> Result<(), Response> {
    method_or(head, allowed, Response::error)
}

/// [`method`] with errors in another form than the envelope's.
///
/// Errors: `invalid_request` with HTTP 405 and `Allow`, as `refusal` makes it.
pub fn method_or(
    head: &Head,
    allowed: &'static str,
    refusal: impl FnOnce(&Error) -> Response,
) -> Result<(), Response> {
    if allowed.split(", ").any(|method| method == head.method) {
        return Ok(());
    }
    let shown: String = head.method.chars().take(32).collect();
    let error = Error::invalid_request(format!("{} takes {allowed}, not {shown:?}", head.path))
        .with_status(405);
    let mut response = refusal(&error);
    response.headers.push(("Allow", Cow::Borrowed(allowed)));
    Err(response)
}

/// Demands `Content-Type: application/json`, with any parameters.
///
/// Errors: `invalid_request` with HTTP 415.
pub fn json(head: &Head) -> Result<()> {
    let media_type = head.header("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(
            Error::invalid_request("the request must have \"Content-Type: application/json\"")
                .with_status(415),
        )
    }
}

/// Reads a body that must be one JSON object.
///
/// Errors: `invalid_request`.
pub fn object(body: &[u8]) -> Result<Fields> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Error::invalid_request("the body is not valid JSON: it is not UTF-8"))?;
    Fields::parse_as("the body", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::head;

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert!(method(&head("HEAD", "/health", &[]), "GET, HEAD").is_ok());
        for wrong in ["POST", "get", "GET, HEAD", ""] {
            let response = method(&head(wrong, "/health", &[]), "GET, HEAD").unwrap_err();
            assert_eq!(response.status, 405, "{wrong:?}");
            assert!(
                response
                    .headers
                    .contains(&("Allow", Cow::Borrowed("GET, HEAD")))
            );
        }
    }

    #[test]
    fn json_may_have_parameters() {
        for (media_type, good) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json ;charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
            ("text/plain, application/json", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            let head = head("POST", "/auth", &[("content-type", media_type)]);
            assert_eq!(json(&head).is_ok(), good, "{media_type:?}");
        }
        assert_eq!(json(&head("POST", "/auth", &[])).unwrap_err().status(), 415);
    }

    #[test]
    fn a_body_is_one_json_object() {
        for (body, says) in [
            (&b"[]"[..], "the body must be a JSON object, not an array"),
            (b"", "the body is not valid JSON: EOF"),
            (b"{\"a\":\"\xff\"}", "not UTF-8"),
            (b"{} {}", "the body is not valid JSON: trailing"),
        ] {
            let error = object(body).unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(error.message().contains(says), "{error}");
        }
        assert!(object(b" {} \n").is_ok());
    }
}
