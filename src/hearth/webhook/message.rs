//! Reads the message from a request's body.

use serde_json::Value;

use crate::service::WebhookRequest;
use base::error::{Error, Result};
use base::secret::{hex, sha256};
use config::{Template, WebhookMap};
use net::http::Request;
use protocol::attachment;
use protocol::command::{CHAT_MESSAGE_BYTES, check_idempotency_key, check_message};
use protocol::fields::Fields;
use store::IncludedFile;

/// Most characters of `conversation_id` and `user_id`.
const NAME_CHARACTERS: usize = 128;
/// Most bytes of a name that are read before it is shortened or refused.
const NAME_BYTES: usize = 4 * NAME_CHARACTERS;

/// The headers in which other systems number what they send; a repeat has the same
/// number. Gitea sends its own and GitHub's.
const DELIVERIES: [&str; 3] = [
    "x-github-delivery",
    "x-gitea-delivery",
    "x-gitlab-event-uuid",
];

/// Reads the body, which is this document, in the account's own form if it has a `map`, and
/// the idempotency key.
///
/// # Errors
/// `invalid_request` that names what is wrong.
pub fn parse(
    request: &Request,
    document: Value,
    map: Option<&WebhookMap>,
) -> Result<WebhookRequest> {
    let idempotency_key = request.head.header("idempotency-key").map(str::to_owned);
    if let Some(key) = &idempotency_key {
        check_idempotency_key("the header \"Idempotency-Key\"", key)?;
    }
    let mut parsed = match map {
        None => as_it_is(request, document)?,
        Some(map) => mapped(request, &document, map)?,
    };
    parsed.idempotency_key = idempotency_key.or_else(|| delivery_key(request));
    Ok(parsed)
}

/// The number that the sender gave to this delivery, and what was delivered: GitLab
/// gives one number to all events that follow from one.
fn delivery_key(request: &Request) -> Option<String> {
    let number = DELIVERIES
        .iter()
        .find_map(|name| request.head.header(name))?;
    let key = format!("{number} {}", hex(&sha256(&request.body)[..16]));
    check_idempotency_key("", &key).ok().map(|()| key)
}

/// The contract's own form (section 4.3).
fn as_it_is(request: &Request, document: Value) -> Result<WebhookRequest> {
    let mut fields = Fields::of_value("the body", document)?;
    let message = fields.string("message").map_err(|error| {
        Error::invalid_request(format!(
            "{}; for a body of another form the account needs a \"map\", which \
             `hearth webhook add --from` writes for some systems",
            error.message()
        ))
    })?;
    check_message(&message)?;
    let user_id = fields.optional_string("user_id")?;
    let conversation_id = fields.optional_string("conversation_id")?;
    for (name, value) in [("user_id", &user_id), ("conversation_id", &conversation_id)] {
        if let Some(value) = value {
            check_name(name, value)?;
        }
    }
    Ok(WebhookRequest {
        message,
        sender: user_id.clone(),
        user_id,
        conversation_id,
        attachments: attachments(&mut fields)?,
        idempotency_key: None,
        body: request.body.clone(),
    })
}

/// `attachments`: `[{name, type, data}]`, with the data in base64; Apprise has other names.
fn attachments(fields: &mut Fields) -> Result<Vec<IncludedFile>> {
    let files = fields.optional_objects("attachments")?.unwrap_or_default();
    let included = |mut file: Fields| {
        let names = match file.get("base64") {
            Some(_) => ["filename", "mimetype", "base64"],
            None => ["name", "type", "data"],
        };
        Ok(IncludedFile {
            name: file.string(names[0])?,
            declared_type: file.optional_string(names[1])?,
            data: attachment::data(&mut file, names[2])?,
        })
    };
    files.into_iter().map(included).collect()
}

/// Another system's form. That system cannot change its names, so they are
/// adapted where that is safe: a speaker's name is shortened. A conversation's is
/// not, because two that differ only at the end would become one.
fn mapped(request: &Request, document: &Value, map: &WebhookMap) -> Result<WebhookRequest> {
    let message = map.message.fill(document, CHAT_MESSAGE_BYTES);
    if message.trim().is_empty() {
        return Err(Error::invalid_request(
            "the body has nothing where the account's \"map\" looks for the message",
        ));
    }
    check_message(&message)?;
    let filled = |template: &Option<Template>| Some(template.as_ref()?.fill(document, NAME_BYTES));
    let name = |template: &Option<Template>| {
        let filled = filled(template)?;
        let printable = filled.replace(|character| !is_printable(character), " ");
        let trimmed = printable.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    };
    let user_id = name(&map.user_id).map(|name| name.chars().take(NAME_CHARACTERS).collect());
    let sender = user_id
        .clone()
        .filter(|name| filled(&map.user_id).as_ref() == Some(name));
    let conversation_id = name(&map.conversation_id);
    if let Some(name) = &conversation_id {
        check_name("conversation_id", name)?;
    }
    Ok(WebhookRequest {
        message,
        user_id,
        sender,
        conversation_id,
        attachments: Vec::new(),
        idempotency_key: None,
        body: request.body.clone(),
    })
}

fn check_name(field: &str, value: &str) -> Result<()> {
    let length = value.chars().count();
    if (1..=NAME_CHARACTERS).contains(&length) && value.chars().all(is_printable) {
        Ok(())
    } else {
        Err(Error::invalid_request(format!(
            "\"{field}\" must have 1 to {NAME_CHARACTERS} printable characters"
        )))
    }
}

/// Whether a character can neither break a line nor change the text's direction:
/// the value is shown to the model and to people as a name.
fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::super::format;
    use super::*;
    use base::testing::rows;
    use config::WebhookFormat;
    use net::testing::head;

    fn request(headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            head: head("POST", "/hook", headers),
            body: body.as_bytes().to_vec(),
            waker: None,
        }
    }

    fn map() -> WebhookMap {
        let template = |text| Template::parse(text).unwrap();
        WebhookMap {
            message: template("{/action} {/issue/title}"),
            user_id: Some(template("/sender/login")),
            conversation_id: Some(template("{/repository}#{/issue/number}")),
        }
    }

    fn parse(request: &Request, map: Option<&WebhookMap>) -> Result<WebhookRequest> {
        let (document, _) = format::read(WebhookFormat::Json, request)?;
        super::parse(request, document, map)
    }

    #[test]
    fn a_body_has_a_message_and_perhaps_names() {
        let long = "x".repeat(128);
        let parsed = parse(
            &request(
                &[("idempotency-key", "k1")],
                &format!(r#"{{"message":"hi","user_id":"Änne","conversation_id":"{long}","x":1}}"#),
            ),
            None,
        )
        .unwrap();
        assert_eq!(parsed.message, "hi");
        assert_eq!(parsed.user_id.as_deref(), Some("Änne"));
        assert_eq!(parsed.conversation_id, Some(long));
        assert_eq!(parsed.idempotency_key.as_deref(), Some("k1"));
        let bare = parse(&request(&[], r#"{"message":"hi","user_id":null}"#), None).unwrap();
        assert_eq!((bare.user_id, bare.conversation_id), (None, None));
    }

    #[test]
    fn what_is_wrong_with_a_body_is_named() {
        let table = r#"
                                                    | 400 | not valid JSON
            []                                      | 400 | the body must be a JSON object
            {}                                      | 400 | "message" is required
            {}                                      | 400 | the account needs a "map"
            {"message":7}                           | 400 | "message" must be a string
            {"message":" "}                         | 400 | "message" must not be empty
            {"message":"LARGE"}                     | 413 | "message" has 262145 bytes
            {"message":"hi","user_id":7}            | 400 | "user_id" must be a string
            {"message":"hi","user_id":""}           | 400 | "user_id" must have 1 to 128
            {"message":"hi","user_id":"LONG"}       | 400 | "user_id" must have 1 to 128
            {"message":"hi","conversation_id":"a\nb"} | 400 | "conversation_id" must have 1 to 128 printable
            {"message":"hi","user_id":"\u202egnp.exe"} | 400 | "user_id" must have 1 to 128 printable
        "#;
        for [body, status, says] in rows(table) {
            let body = body.replace("LARGE", &"x".repeat(256 * 1024 + 1));
            let body = &body.replace("LONG", &"x".repeat(129));
            let error = parse(&request(&[], body), None).map(|_| ()).unwrap_err();
            assert_eq!(error.status().to_string(), status, "{body:.80}");
            assert!(error.message().contains(says), "{error}");
        }
        for key in [String::new(), "k".repeat(256)] {
            let request = request(&[("idempotency-key", &key)], r#"{"message":"hi"}"#);
            let error = parse(&request, None).map(|_| ()).unwrap_err();
            assert!(error.message().contains("Idempotency-Key"), "{error}");
        }
    }

    #[test]
    fn the_senders_own_number_of_a_delivery_is_the_key() {
        let key = |headers: &[(&str, &str)], body: &str| {
            parse(&request(headers, body), None)
                .unwrap()
                .idempotency_key
        };
        let hi = r#"{"message":"hi"}"#;
        for name in DELIVERIES {
            let first = key(&[(name, "72d3162e")], hi);
            assert!(first.is_some(), "{name}");
            assert_eq!(key(&[(name, "72d3162e")], hi), first);
            assert_ne!(key(&[(name, "72d3162f")], hi), first);
            assert_ne!(key(&[(name, "72d3162e")], r#"{"message":"ho"}"#), first);
            let own = key(&[(name, "72d3162e"), ("idempotency-key", "k")], hi);
            assert_eq!(own.as_deref(), Some("k"));
            assert_eq!(key(&[(name, &"x".repeat(300))], hi), None);
        }
    }

    #[test]
    fn another_systems_form_is_mapped() {
        let body = r#"{"action":"opened","issue":{"title":"Leak","number":7},
            "sender":{"login":"gr\nace"},"repository":"home"}"#;
        let parsed = parse(&request(&[("idempotency-key", "k")], body), Some(&map())).unwrap();
        assert_eq!(parsed.message, "opened Leak");
        assert_eq!(parsed.user_id.as_deref(), Some("gr ace"));
        assert_eq!(parsed.conversation_id.as_deref(), Some("home#7"));
        assert_eq!(parsed.idempotency_key.as_deref(), Some("k"));

        let long = format!(
            r#"{{"action":"x","sender":{{"login":"{}"}}}}"#,
            "ü".repeat(500)
        );
        let parsed = parse(&request(&[], &long), Some(&map())).unwrap();
        assert_eq!(parsed.user_id.unwrap().chars().count(), 128);
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let long = format!(r#"{{"action":"x","repository":"{}"}}"#, "r".repeat(128));
        for (body, says) in [
            ("no JSON", "not valid JSON"),
            ("{}", "looks for the message"),
            (r#"{"action":null}"#, "looks for the message"),
            (long.as_str(), "\"conversation_id\" must have 1 to 128"),
        ] {
            let error = parse(&request(&[], body), Some(&map()))
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.status(), 400);
            assert!(error.message().contains(says), "{error}");
        }
    }
}
