//! The request by which another system sends a message through an account.

use serde_json::Value;

use base::url::{MASK, percent_encode};
use config::quoted;

/// Stands for the secret in a line that does not show it: a variable of the shell.
pub const SECRET_VARIABLE: &str = "$SECRET";

/// A request that an account takes.
pub struct SampleRequest {
    /// Where it is sent, without a query.
    pub url: String,
    /// The type of its body; none for one that is all query.
    pub media_type: Option<&'static str>,
    /// The body or the query.
    pub body: String,
}

impl SampleRequest {
    /// That of the account that `test_webhook_account` describes, in the first format that it
    /// accepts, at the server's `base`.
    pub fn of(account: &Value, base: &str) -> SampleRequest {
        let body = &account["body"];
        let (media_type, body) = match account["accept"][0].as_str().unwrap_or_default() {
            "form" => (Some("application/x-www-form-urlencoded"), fields(body)),
            "text" => (Some("text/plain"), text(&body["message"])),
            "get" => (None, fields(body)),
            _ => (Some("application/json"), body.to_string()),
        };
        let path = account["incoming_path"].as_str().unwrap_or_default();
        SampleRequest {
            url: format!("{base}{path}"),
            media_type,
            body,
        }
    }

    /// The method, and the address as it is sent: with the query of a request that has no
    /// body, and there the secret.
    pub fn target(&self, secret: Option<&str>) -> (&'static str, String) {
        if self.media_type.is_some() {
            return ("POST", self.url.clone());
        }
        let secret = secret.map(|secret| match secret {
            SECRET_VARIABLE | MASK => format!("secret={secret}&"),
            secret => format!("secret={}&", encoded(secret)),
        });
        let (url, secret, body) = (&self.url, secret.unwrap_or_default(), &self.body);
        ("GET", format!("{url}?{secret}{body}"))
    }

    /// A line for a shell that sends it, with the body of this file if it is given.
    pub fn curl(&self, secret: Option<&str>, file: Option<&str>) -> String {
        let word = |text: &str| match text.contains(SECRET_VARIABLE) {
            true => format!("\"{text}\""),
            false => quoted(text),
        };
        let (_, address) = self.target(secret);
        let mut line = format!("curl {}", word(&address));
        let Some(media_type) = self.media_type else {
            return line;
        };
        line += &format!(" -H 'Content-Type: {media_type}'");
        if let Some(secret) = secret {
            let header = word(&format!("X-Service-Secret: {secret}"));
            line += &format!(" \\\n     -H {header}");
        }
        line + &match file {
            Some(file) => format!(" \\\n     --data-binary {}", quoted(&format!("@{file}"))),
            None => format!(" \\\n     --data-raw {}", quoted(&self.body)),
        }
    }
}

/// The members of a body as the fields of a form.
fn fields(body: &Value) -> String {
    let members = body.as_object().into_iter().flatten();
    let fields =
        members.map(|(name, value)| format!("{}={}", encoded(name), encoded(&text(value))));
    fields.collect::<Vec<_>>().join("&")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn encoded(text: &str) -> String {
    percent_encode(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
    })
}
