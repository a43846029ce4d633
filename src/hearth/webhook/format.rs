//! How a request says its message: as JSON, or as simpler senders do (protocol section 9).
//! Whatever the format, a JSON document comes of it, which `when` and `map` look at.

use serde_json::{Map, Value, json};

use super::guard::QUERY_SECRET;
use base::error::{Error, Result, json_problem};
use config::{WebhookAccount, WebhookFormat};
use net::http::{Head, Request, form};
use store::IncludedFile;

/// The media types of bodies, with the format that each is of.
const MEDIA_TYPES: [(&str, WebhookFormat); 4] = [
    ("application/json", WebhookFormat::Json),
    ("application/x-www-form-urlencoded", WebhookFormat::Form),
    (MULTIPART, WebhookFormat::Form),
    ("text/plain", WebhookFormat::Text),
];
const MULTIPART: &str = "multipart/form-data";

/// The methods that an account takes, as the value of `Allow`.
pub fn methods(account: &WebhookAccount) -> &'static str {
    match account.accept.as_slice() {
        [WebhookFormat::Get] => "GET",
        formats if formats.contains(&WebhookFormat::Get) => "GET, POST",
        _ => "POST",
    }
}

/// The format of a request.
///
/// # Errors
/// `invalid_request` with HTTP 415 for one that the account does not take; `unauthorized` for a
/// page of another site, which can send all formats but JSON without asking first.
pub fn of(account: &WebhookAccount, head: &Head) -> Result<WebhookFormat> {
    let format = match head.method.as_str() {
        "GET" => WebhookFormat::Get,
        _ => {
            let mut known = MEDIA_TYPES.into_iter();
            let known = known.find(|(media_type, _)| is_of_type(head, media_type));
            // A device that says nothing sends text.
            let unnamed = head.header("content-type").is_none();
            let unnamed = unnamed.then_some(WebhookFormat::Text);
            let format = known.map(|(_, format)| format).or(unnamed);
            let taken = format.filter(|format| account.accept.contains(format));
            taken.ok_or_else(|| unsupported(account))?
        }
    };
    if format != WebhookFormat::Json && head.header("sec-fetch-site") == Some("cross-site") {
        return Err(Error::unauthorized(
            "pages of other sites may not send messages to a webhook account",
        ));
    }
    Ok(format)
}

fn unsupported(account: &WebhookAccount) -> Error {
    let taken = MEDIA_TYPES.into_iter();
    let taken = taken.filter(|(_, format)| account.accept.contains(format));
    let taken: Vec<&str> = taken.map(|(media_type, _)| media_type).collect();
    let taken = taken.join(" or ");
    Error::invalid_request(format!("the request must have \"Content-Type: {taken}\""))
        .with_status(415)
}

fn is_of_type(head: &Head, wanted: &str) -> bool {
    let media_type = head.header("content-type").unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(wanted)
}

/// The document of a request of this format, and the files of a form.
///
/// # Errors
/// `invalid_request` for a body of another form.
pub fn read(format: WebhookFormat, request: &Request) -> Result<(Value, Vec<IncludedFile>)> {
    let mut document = Map::new();
    let mut files = Vec::new();
    let mut put = |name: String, text: String| document.insert(name, json!(text));
    match format {
        WebhookFormat::Json => {
            let document = serde_json::from_slice(&request.body).map_err(|error| {
                let problem = json_problem(&error);
                Error::invalid_request(format!("the body is not valid JSON: {problem}"))
            })?;
            return Ok((document, files));
        }
        WebhookFormat::Form if is_of_type(&request.head, MULTIPART) => {
            let fields = form::multipart(&request.head, &request.body);
            let fields = fields.ok_or_else(|| {
                Error::invalid_request("the body is not a form as its \"Content-Type\" says")
            })?;
            for field in fields {
                let name = field.parameter("name").unwrap_or_default();
                match field.parameter("filename") {
                    // A page sends an empty one where no file was chosen.
                    Some("") => {}
                    Some(file) => files.push(IncludedFile {
                        name: file.to_owned(),
                        declared_type: field.media_type().map(str::to_owned),
                        data: field.content.to_vec(),
                    }),
                    None => {
                        put(name.to_owned(), text(field.content)?.to_owned());
                    }
                }
            }
        }
        WebhookFormat::Form => {
            for (name, value) in form::urlencoded(text(&request.body)?) {
                put(name, value);
            }
        }
        WebhookFormat::Text => {
            put(
                "message".to_owned(),
                text(&request.body)?.trim_end().to_owned(),
            );
        }
        WebhookFormat::Get => {
            let query = request.head.query.as_deref().unwrap_or_default();
            for (name, value) in form::urlencoded(query) {
                if name != QUERY_SECRET {
                    put(name, value);
                }
            }
        }
    }
    Ok((Value::Object(document), files))
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::invalid_request("the body is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::callback;
    use base::testing::rows;
    use net::testing::head;

    fn account(accept: &str) -> WebhookAccount {
        let formats = [
            ("json", WebhookFormat::Json),
            ("form", WebhookFormat::Form),
            ("text", WebhookFormat::Text),
            ("get", WebhookFormat::Get),
        ];
        let named = |word: &str| formats.into_iter().find(|(name, _)| *name == word);
        WebhookAccount {
            accept: accept
                .split(',')
                .map(|word| named(word).unwrap().1)
                .collect(),
            ..callback::tests::account(None, "http://127.0.0.1:1/")
        }
    }

    #[test]
    fn an_account_takes_what_it_accepts() {
        let table = "
            json           | POST | application/json                    | -          | Json
            json           | POST | application/x-www-form-urlencoded   | -          | 415
            json           | POST | -                                   | -          | 415
            json           | POST | application/json                    | cross-site | Json
            form           | POST | application/json                    | -          | 415
            form           | POST | Application/x-www-form-urlencoded;a | -          | Form
            form           | POST | multipart/form-data; boundary=x     | same-site  | Form
            form           | POST | multipart/form-data; boundary=x     | cross-site | 403
            form,text      | POST | text/plain; charset=utf-8           | -          | Text
            text           | POST | -                                   | -          | Text
            text           | POST | text/plain                          | cross-site | 403
            get            | GET  | -                                   | none       | Get
            json,get       | GET  | -                                   | cross-site | 403
            json,get       | POST | application/json                    | -          | Json
        ";
        for [accept, method, media_type, site, expected] in rows(table) {
            let mut headers = vec![];
            headers.extend(Some(("content-type", media_type)).filter(|(_, value)| *value != "-"));
            headers.extend(Some(("sec-fetch-site", site)).filter(|(_, value)| *value != "-"));
            let found = match of(&account(accept), &head(method, "/hook", &headers)) {
                Ok(format) => format!("{format:?}"),
                Err(error) => error.status().to_string(),
            };
            assert_eq!(found, expected, "{accept} {method} {media_type} {site}");
        }
        for (accept, expected) in [("json", "POST"), ("get", "GET"), ("get,text", "GET, POST")] {
            assert_eq!(methods(&account(accept)), expected);
        }
    }
}
