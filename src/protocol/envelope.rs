//! The response envelope (contract section 2) and request ids.

use serde::Serialize;
use serde_json::Value;

use crate::record::{Callback, FailedCallback};
use base::error::{Code, Error, Result};
use base::ids::{MessageId, TurnId};
use base::reply::FinishReason;

/// Longest request id, in bytes.
const ID_BYTES: usize = 64;

/// A client's own name for a request, returned with its response: a string of
/// 1 to 64 bytes or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RequestId {
    /// A string of 1 to 64 bytes.
    Text(String),
    /// An integer from -2^63 to 2^64-1.
    Number(serde_json::Number),
}

impl RequestId {
    /// Takes the `id` member of a request, if it has one.
    ///
    /// # Errors
    /// `invalid_request` when it is neither a short string nor an integer.
    pub fn from_member(member: Option<&Value>) -> Result<Option<RequestId>> {
        match member {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if (1..=ID_BYTES).contains(&text.len()) => {
                Ok(Some(RequestId::Text(text.clone())))
            }
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(Some(RequestId::Number(number.clone())))
            }
            Some(_) => Err(Error::invalid_request(
                "\"id\" must be a string of 1 to 64 bytes or an integer from -2^63 to 2^64-1",
            )),
        }
    }
}

#[derive(Serialize)]
struct Success<'a, T> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    data: T,
}

#[derive(Serialize)]
struct Failure<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    error: &'a str,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
}

/// `{"status":"ok","data":...}` as text.
pub fn success(id: Option<&RequestId>, data: impl Serialize) -> String {
    to_text(&Success {
        status: "ok",
        id,
        data,
    })
}

/// `{"status":"error","error":...,"code":...}` as text.
pub fn failure(id: Option<&RequestId>, error: &Error) -> String {
    to_text(&Failure {
        status: "error",
        id,
        error: error.message(),
        code: error.code(),
        key: error.key(),
        retry_after: error.retry_after(),
    })
}

/// Names the message that a callback answers, where other messages of the
/// conversation came after it.
#[derive(Clone, Copy, Debug)]
pub struct Overtaken {
    /// The message, as in `get_messages`.
    pub in_reply_to: MessageId,
    /// Its turn, as in the answer to the request that brought it.
    pub turn_id: TurnId,
}

/// The body of a webhook callback (contract section 4.3, outgoing):
/// `{"message":...,"conversation_id":...}`, why the reply is not whole if it is not, and what
/// was `overtaken`. The `status` is `cancelled` where somebody stopped the turn, and the
/// message then what was said so far.
pub fn callback(
    status: Option<&'static str>,
    message: &str,
    conversation_id: &str,
    finish_reason: Option<FinishReason>,
    overtaken: Option<Overtaken>,
) -> String {
    to_text(&Callback {
        status,
        message: message.to_owned(),
        conversation_id: conversation_id.to_owned(),
        finish_reason,
        in_reply_to: overtaken.map(|message| message.in_reply_to),
        turn_id: overtaken.map(|message| message.turn_id),
    })
}

/// The body of a webhook callback whose turn failed: the error envelope with
/// `conversation_id`, so that the caller knows which message failed.
pub fn failed_callback(
    error: &Error,
    conversation_id: &str,
    overtaken: Option<Overtaken>,
) -> String {
    to_text(&FailedCallback {
        status: "error",
        error: error.message().to_owned(),
        code: error.code(),
        retry_after: error.retry_after(),
        conversation_id: conversation_id.to_owned(),
        in_reply_to: overtaken.map(|message| message.in_reply_to),
        turn_id: overtaken.map(|message| message.turn_id),
    })
}

/// The JSON text of a wire type. Wire types hold only strings, numbers, lists and
/// maps with string keys, which always have one.
pub fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a wire type always has a JSON text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn envelopes_are_those_of_the_contract() {
        let id = RequestId::Text("a".into());
        assert_eq!(
            success(None, json!({"x": 1})),
            r#"{"status":"ok","data":{"x":1}}"#
        );
        assert_eq!(
            success(Some(&id), json!({})),
            r#"{"status":"ok","id":"a","data":{}}"#
        );
        assert_eq!(
            failure(
                Some(&RequestId::Number(7.into())),
                &Error::rate_limited("slow down", 2)
            ),
            r#"{"status":"error","id":7,"error":"slow down","code":"rate_limited","retry_after":2}"#,
        );
        // What has words in every language names them.
        assert_eq!(
            failure(
                None,
                &Error::worded(Code::RateLimited, "error.sign_ins", &[])
            ),
            r#"{"status":"error","error":"too many people sign in at once; try again","code":"rate_limited","key":"error.sign_ins"}"#,
        );
    }

    #[test]
    fn callbacks_name_their_conversation() {
        assert_eq!(
            callback(None, "It is \"on\".", "kitchen", None, None),
            r#"{"message":"It is \"on\".","conversation_id":"kitchen"}"#
        );
        assert_eq!(
            callback(None, "It is", "kitchen", Some(FinishReason::Length), None),
            r#"{"message":"It is","conversation_id":"kitchen","finish_reason":"length"}"#
        );
        assert_eq!(
            callback(Some("cancelled"), "It i", "kitchen", None, None),
            r#"{"status":"cancelled","message":"It i","conversation_id":"kitchen"}"#
        );
        assert_eq!(
            failed_callback(&Error::not_found("gone"), "kitchen", None),
            r#"{"status":"error","error":"gone","code":"not_found","conversation_id":"kitchen"}"#
        );
        let overtaken = Overtaken {
            in_reply_to: MessageId::from(1),
            turn_id: TurnId::from(2),
        };
        for text in [
            callback(None, "It is on.", "kitchen", None, Some(overtaken)),
            callback(Some("cancelled"), "It i", "kitchen", None, Some(overtaken)),
            failed_callback(&Error::not_found("gone"), "kitchen", Some(overtaken)),
        ] {
            let end = r#""conversation_id":"kitchen","in_reply_to":"msg_0000000000001","turn_id":"turn_0000000000002"}"#;
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn ids_are_short_strings_or_integers() {
        for (member, good) in [
            (json!("a"), true),
            (json!("x".repeat(64)), true),
            (json!(-3), true),
            (json!(i64::MIN), true),
            (json!(1u64 << 63), true),
            (json!(u64::MAX), true),
            (json!(2f64.powi(64)), false),
            (json!(""), false),
            (json!("x".repeat(65)), false),
            (json!(1.5), false),
            (json!([1]), false),
        ] {
            assert_eq!(
                RequestId::from_member(Some(&member)).is_ok(),
                good,
                "{member}"
            );
        }
    }
}
