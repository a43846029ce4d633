//! Messages of the Model Context Protocol: JSON-RPC 2.0 objects in UTF-8.

use std::fmt;

use serde_json::{Map, Value};

use crate::tools::output::shorten;
use serde_json::json;

/// Longest message that a server may send, in bytes.
pub(super) const MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// A request names a method that the other side does not have (JSON-RPC 2.0,
/// section 5.1).
const METHOD_NOT_FOUND: i64 = -32601;

/// A message that came from a server.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    /// The answer to one of our requests.
    Answer {
        id: u64,
        result: Result<Value, RpcError>,
    },
    /// A request of the server.
    Request { id: Value, method: String },
    /// A notification from the server.
    Notification { method: String, params: Value },
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.trim() {
            "" => write!(f, "error {}", self.code),
            message => write!(f, "{} (error {})", shorten(message, 2_000), self.code),
        }
    }
}

/// Reads one line or body: a message, or several in an array, as in revision
/// 2025-03-26. None when it is not JSON-RPC.
pub(super) fn read(text: &[u8]) -> Option<Vec<Incoming>> {
    match serde_json::from_slice(text).ok()? {
        Value::Array(items) => items.into_iter().map(message).collect(),
        value => Some(vec![message(value)?]),
    }
}

fn message(value: Value) -> Option<Incoming> {
    let Value::Object(mut members) = value else {
        return None;
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return None;
    }
    let id = members.remove("id").filter(|id| !id.is_null());
    match (members.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Some(Incoming::Request { id, method }),
        (Some(Value::String(method)), None) => Some(Incoming::Notification {
            method,
            params: members.remove("params").unwrap_or_default(),
        }),
        (None, Some(id)) => Some(Incoming::Answer {
            id: own_id(&id)?,
            result: result(members)?,
        }),
        _ => None,
    }
}

/// An id of ours. Some servers give the number back as text.
pub(super) fn own_id(id: &Value) -> Option<u64> {
    match id {
        Value::String(text) => text.parse().ok(),
        id => id.as_u64(),
    }
}

fn result(mut members: Map<String, Value>) -> Option<Result<Value, RpcError>> {
    if let Some(error) = members.remove("error").filter(|error| !error.is_null()) {
        return Some(Err(RpcError {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }));
    }
    members.remove("result").map(Ok)
}

/// The error in a body, whatever request it names: a request that the server
/// could not read has no id.
pub(super) fn refusal(body: &[u8]) -> Option<RpcError> {
    let Value::Object(members) = serde_json::from_slice(body).ok()? else {
        return None;
    };
    let is_own = members.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    result(members).filter(|_| is_own)?.err()
}

/// A request to the server.
pub(super) fn request(id: u64, method: &str, params: Value) -> Vec<u8> {
    text(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// A notification to the server.
pub(super) fn notification(method: &str, params: Option<Value>) -> Vec<u8> {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    text(message)
}

/// The notification that cancels a request.
pub(super) fn cancelled(id: u64, reason: &str) -> Vec<u8> {
    notification(
        "notifications/cancelled",
        Some(json!({"requestId": id, "reason": reason})),
    )
}

/// Our answer to a server's request: only `ping` is served, since the handshake
/// declares no other capability.
pub(super) fn answer(id: &Value, method: &str) -> Vec<u8> {
    text(match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": METHOD_NOT_FOUND,
            "message": format!("this client does not serve {}", shorten(method, 100)),
        }}),
    })
}

/// JSON on one line: line breaks in strings are escaped.
fn text(message: Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    /// A message as the table below writes it.
    fn written(message: &Incoming) -> String {
        match message {
            Incoming::Answer { id, result } => match result {
                Ok(result) => format!("answer {id}: {result}"),
                Err(error) => format!("answer {id}: error {} {:?}", error.code, error.message),
            },
            Incoming::Request { id, method } => format!("request {id} {method}"),
            Incoming::Notification { method, params } => format!("notification {method} {params}"),
        }
    }

    #[test]
    fn messages_are_told_apart() {
        let table = r#"
            {"jsonrpc":"2.0","id":3,"result":{"a":1}}                          | answer 3: {"a":1}
            {"jsonrpc":"2.0","id":"3","result":null}                           | answer 3: null
            {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no"}}    | answer 3: error -32602 "no"
            {"jsonrpc":"2.0","id":3,"error":{}}                                | answer 3: error 0 ""
            {"jsonrpc":"2.0","id":"a","method":"ping"}                         | request "a" ping
            {"jsonrpc":"2.0","method":"m","params":{"x":1}}                    | notification m {"x":1}
            [{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","id":"a","method":"ping"}] | answer 1: 1, request "a" ping
        "#;
        for [text, expected] in rows(table) {
            let found: Vec<String> = read(text.as_bytes()).unwrap().iter().map(written).collect();
            assert_eq!(found.join(", "), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_message_is_none() {
        for text in [
            "",
            "Starting server on stdio",
            "42",
            "{}",
            r#"{"level":"info","msg":"listening"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":"someone else's","result":1}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\u{fffd}",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read(b"\xff\xfe{}"), None);
        assert_eq!(read("[".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn a_message_is_one_line() {
        let line = request(1, "tools/call", json!({"text": "a\nb\u{2028}"}));
        assert!(!line.contains(&b'\n'));
        assert_eq!(
            String::from_utf8(answer(&json!("7"), "ping")).unwrap(),
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#
        );
        let refused = answer(&json!(7), "sampling/createMessage");
        assert!(String::from_utf8(refused).unwrap().contains("-32601"));
    }
}
