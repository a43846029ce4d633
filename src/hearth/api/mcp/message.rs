//! JSON-RPC 2.0 as the Model Context Protocol uses it.

use serde_json::{Map, Value, json};

use base::error::json_problem;
use net::http::Response;

/// Codes of JSON-RPC 2.0, section 5.1.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
/// The server's own: the request was not admitted.
pub const REFUSED: i64 = -32000;

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// One of those that begin with `initialize`.
    Handshake(&'static str),
    /// The newest, without handshake and session.
    Stateless,
}

/// A message of a client.
pub enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// To a question that nobody asked.
    Answer,
}

/// A request of a client.
pub struct Request {
    /// A string or a whole number.
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Request {
    /// Whether it calls the tool of this name.
    pub fn is_call_of(&self, tool: &str) -> bool {
        let name = self.params.get("name").and_then(Value::as_str);
        self.method == "tools/call" && name == Some(tool)
    }

    /// The tool that it calls, and the arguments as JSON.
    ///
    /// # Errors
    /// `INVALID_PARAMS`.
    pub fn call(&self) -> Result<(&str, String), Fault> {
        let name = self.params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Fault::new(INVALID_PARAMS, "\"name\" must name a tool"))?;
        match self.params.get("arguments") {
            None | Some(Value::Null) => Ok((name, "{}".to_owned())),
            Some(arguments @ Value::Object(_)) => Ok((name, arguments.to_string())),
            Some(_) => Err(Fault::new(
                INVALID_PARAMS,
                "\"arguments\" must be an object",
            )),
        }
    }

    /// A member of its `_meta`.
    pub fn meta(&self, name: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(name)
    }
}

/// What a body holds: a message, or several in an array.
pub enum Body {
    One(Message),
    Several(Vec<Result<Message, Fault>>),
}

/// Reads a body.
///
/// # Errors
/// `PARSE_ERROR`, `INVALID_REQUEST`.
pub fn read(body: &[u8]) -> Result<Body, Fault> {
    let value = serde_json::from_slice(body).map_err(|error| {
        let why = format!("not valid JSON: {}", json_problem(&error));
        Fault::new(PARSE_ERROR, why)
    })?;
    match value {
        Value::Array(items) => Ok(Body::Several(items.into_iter().map(message).collect())),
        value => message(value).map(Body::One),
    }
}

fn message(value: Value) -> Result<Message, Fault> {
    let Value::Object(mut members) = value else {
        return Err(Fault::new(INVALID_REQUEST, "a message is a JSON object"));
    };
    let id = members.remove("id");
    let is_usable = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let known = id.as_ref().filter(|id| is_usable(id)).cloned();
    let invalid = |why: &str| Fault {
        id: known.clone().unwrap_or_default().into(),
        ..Fault::new(INVALID_REQUEST, why)
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("\"jsonrpc\" must be \"2.0\""));
    }
    let method = match members.remove("method") {
        Some(Value::String(method)) => method,
        None if members.contains_key("result") || members.contains_key("error") => {
            return Ok(Message::Answer);
        }
        _ => return Err(invalid("\"method\" must be a string")),
    };
    let params = match members.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid("\"params\" must be an object")),
    };
    match id {
        None => Ok(Message::Notification { method, params }),
        Some(id) if is_usable(&id) => Ok(Message::Request(Request { id, method, params })),
        Some(_) => Err(invalid("\"id\" must be a string or a whole number")),
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub struct Fault {
    /// The id of a message that is no request, where it could be read.
    pub id: Box<Value>,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Fault {
    pub fn new(code: i64, message: impl Into<String>) -> Fault {
        Fault {
            id: Box::default(),
            code,
            message: message.into(),
            data: None,
        }
    }

    pub fn with_data(mut self, data: Value) -> Fault {
        self.data = Some(data);
        self
    }

    /// The message, for the request with this id.
    pub fn value(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }

    /// The response to something that is no request of a revision.
    pub fn response(&self, id: &Value) -> Response {
        Response::json(400, self.value(id).to_string())
    }

    /// The response to a request. Only the newest revision has statuses for its errors.
    pub fn response_in(&self, id: &Value, revision: Revision) -> Response {
        let status = match (revision, self.code) {
            (_, REFUSED) => 200,
            (Revision::Stateless, METHOD_NOT_FOUND) => 404,
            (Revision::Stateless, _) => 400,
            (Revision::Handshake(_), _) => 200,
        };
        Response::json(status, self.value(id).to_string())
    }
}

/// The message with a result.
pub fn result(id: &Value, mut result: Value, revision: Revision) -> Value {
    if revision == Revision::Stateless {
        result["resultType"] = json!("complete");
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The response with a result.
pub fn result_of(id: &Value, value: Value, revision: Revision) -> Response {
    Response::json(200, result(id, value, revision).to_string())
}

/// The result of a call. Its failure is a result, too, so that a model reads it.
pub fn called(called: Result<String, String>) -> Value {
    let is_error = called.is_err();
    let text = called.unwrap_or_else(|why| why);
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::rows;

    #[test]
    fn messages_are_told_apart() {
        let table = r#"
            {"jsonrpc":"2.0","id":1,"method":"ping"}                   | request
            {"jsonrpc":"2.0","id":"a","method":"m","params":null}      | request
            {"jsonrpc":"2.0","method":"m","params":{}}                 | notification
            {"jsonrpc":"2.0","id":1,"result":{}}                       | answer
            {"jsonrpc":"2.0","id":1,"error":{}}                        | answer
            [{"jsonrpc":"2.0","id":1,"method":"ping"},7]               | several
            []                                                         | several
            {"jsonrpc":"2.0","id":null,"method":"m"}                   | "id" must be
            {"jsonrpc":"2.0","id":1.5,"method":"m"}                    | "id" must be
            {"jsonrpc":"2.0","id":1,"method":"m","params":[1]}         | "params" must be
            {"jsonrpc":"2.0","id":1,"method":7}                        | "method" must be
            {"jsonrpc":"2.0","id":1}                                   | "method" must be
            {"jsonrpc":"1.0","id":1,"method":"m"}                      | "jsonrpc" must be
            7                                                          | a JSON object
            {"jsonrpc":                                                | not valid JSON
        "#;
        for [text, expected] in rows(table) {
            let has_id = text.contains("\"id\":1,") || text.contains("\"id\":1}");
            let found = match read(text.as_bytes()) {
                Ok(Body::One(Message::Request(_))) => "request".to_owned(),
                Ok(Body::One(Message::Notification { .. })) => "notification".to_owned(),
                Ok(Body::One(Message::Answer)) => "answer".to_owned(),
                Ok(Body::Several(_)) => "several".to_owned(),
                Err(fault) => {
                    assert_eq!(*fault.id == 1, has_id, "{text}");
                    fault.message
                }
            };
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
