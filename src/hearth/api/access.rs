//! A program's request, and who sends it: the holder of a token, or a program at home that
//! cannot send one.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::http::origin;
use crate::service::Service;
use crate::service::program_turns::ProgramCaller;
use base::error::{Error, Result};
use base::people::folded;
use base::secret::{Secret, reference};
use config::{AddressPatterns, Config};
use net::http::checks::{bearer, is_forwarded, percent_decoded};
use net::http::{Head, Request};
use store::{Identity, UserRole, not_spoken_for};

/// The header with the name of the person on whose behalf a program asks, whose token speaks
/// for several.
const ON_BEHALF_OF: &str = "x-hearth-user";
/// The same as Open WebUI sends it to all its connections, percent-encoded, if it is set to.
const OPEN_WEBUI_USER: &str = "x-openwebui-user-name";
/// The same by an address, which `openai_api.users` gives to a person.
const OPEN_WEBUI_EMAIL: &str = "x-openwebui-user-email";

/// The header in which Anthropic's clients send their key.
const API_KEY: &str = "x-api-key";

/// The header with the name of a request, by which its caller finds it in a log.
pub const REQUEST_ID: &str = "X-Request-Id";
/// Most bytes of one that is the caller's.
const REQUEST_ID_BYTES: usize = 128;

/// The name of a request: the caller's, else ours.
pub fn request_id(head: &Head) -> String {
    let is_plain = |id: &&str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        !id.is_empty() && id.len() <= REQUEST_ID_BYTES && id.bytes().all(is_plain)
    };
    let own = head.header("x-request-id").filter(is_plain);
    own.map_or_else(|| format!("req_{}", reference()), str::to_owned)
}

/// A request of a program that was admitted, and what it is answered with.
pub struct Exchange<'a> {
    pub service: &'a Arc<Service>,
    pub config: &'a Config,
    pub asker: ProgramCaller,
    pub request: &'a Request,
}

/// Who sends a request to Ollama's interface (`is_ollama`) or OpenAI's.
///
/// # Errors
/// `invalid_token`; `unauthorized` for a viewer, and for a person that the token does not
/// speak for.
pub fn asker(
    service: &Service,
    config: &Config,
    head: &Head,
    is_ollama: bool,
) -> Result<ProgramCaller> {
    let user = config.openai_api.ollama_user.as_ref();
    let without_token = user.filter(|_| is_ollama && needs_no_token(head));
    if let Some(user) = without_token {
        // A browser names the origin of every POST, and not that of what a page reads
        // from its own host.
        if head.method != "POST" {
            origin::check_host(head, &config.allowed_hosts)?;
        }
        let asker = service.asker_without_token(user)?;
        return match on_behalf_of(head, config)? {
            Some(name) if folded(&name) != folded(&asker.user) => Err(not_spoken_for()),
            _ => Ok(asker),
        };
    }
    let other = || password(head).or_else(|| api_key(head));
    let token = bearer(head).or_else(|error| other().ok_or(error))?;
    let mut identity = service.identify(&token)?;
    if let Some(name) = on_behalf_of(head, config)? {
        identity = service.store.speak_for(&identity, &name)?;
    }
    if identity.role < UserRole::User {
        return Err(Error::unauthorized(format!(
            "this needs the role user; yours is {}",
            identity.role.as_str()
        )));
    }
    Ok(ProgramCaller {
        user_id: identity.user_id,
        user: identity.user.clone(),
        identity: Some(identity),
    })
}

/// The holder of a token, where it speaks for nobody else.
///
/// # Errors
/// `invalid_request` if a header names another person.
pub fn holder(head: &Head, identity: Identity) -> Result<Identity> {
    match head.header(ON_BEHALF_OF) {
        Some(name) if folded(name) != folded(&identity.user) => Err(Error::invalid_request(
            "X-Hearth-User counts for the model API alone; here, use a token of that person",
        )),
        _ => Ok(identity),
    }
}

/// Whether a program says on whose behalf it asks.
pub fn names_somebody(head: &Head) -> bool {
    let names = [ON_BEHALF_OF, OPEN_WEBUI_USER, OPEN_WEBUI_EMAIL];
    names.iter().any(|name| head.header(name).is_some())
}

/// The person on whose behalf a program says it asks.
///
/// # Errors
/// `unauthorized` for an address that is nobody's.
fn on_behalf_of(head: &Head, config: &Config) -> Result<Option<String>> {
    if let Some(name) = head.header(ON_BEHALF_OF) {
        return Ok(Some(name.to_owned()));
    }
    let name = head.header(OPEN_WEBUI_USER).map(percent_decoded);
    let Some(email) = head.header(OPEN_WEBUI_EMAIL).map(percent_decoded) else {
        return Ok(name);
    };
    let users = &config.openai_api.users;
    match users.get(&email.to_lowercase()) {
        Some(user) => Ok(Some(user.clone())),
        None if users.is_empty() && name.is_some() => Ok(name),
        None => {
            let shown: String = email.chars().take(100).collect();
            Err(Error::unauthorized(format!(
                "the server's setting openai_api.users gives {shown:?} to nobody"
            )))
        }
    }
}

/// The password of `Authorization: Basic`, which may be a token: Home Assistant's client of the
/// Model Context Protocol sends one only as `http://hearth:TOKEN@host/`.
fn password(head: &Head) -> Option<Secret> {
    let (scheme, encoded) = head.header("authorization")?.split_once(' ')?;
    let encoded = Some(encoded).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (_, password) = decoded.split_once(':')?;
    Some(Secret::new(password)).filter(|_| !password.is_empty())
}

/// The token as Anthropic's clients send it.
fn api_key(head: &Head) -> Option<Secret> {
    let key = head.header(API_KEY)?.trim();
    Some(Secret::new(key)).filter(|_| !key.is_empty())
}

/// Whether a request without a token comes from a program at home. One with an
/// `Origin` comes from a web page and does not.
fn needs_no_token(head: &Head) -> bool {
    let has = |name| head.header(name).is_some();
    !has("authorization")
        && !has(API_KEY)
        && !has("origin")
        && !is_forwarded(head)
        && AddressPatterns::private().allows(head.peer.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    #[test]
    fn only_programs_at_home_need_no_token() {
        for (address, headers, expected) in [
            ("192.168.1.7", &[][..], true),
            ("127.0.0.1", &[], true),
            ("fd00::7", &[], true),
            ("198.51.100.7", &[], false),
            ("2001:db8::7", &[], false),
            ("192.168.1.7", &[("authorization", "Bearer x")], false),
            ("192.168.1.7", &[("x-api-key", "x")], false),
            ("192.168.1.7", &[("origin", "http://hearth.local")], false),
            ("127.0.0.1", &[("x-forwarded-for", "198.51.100.7")], false),
            ("127.0.0.1", &[("via", "1.1 proxy")], false),
        ] {
            let mut head = head("POST", "/api/chat", headers);
            head.peer.address = address.parse().unwrap();
            assert_eq!(needs_no_token(&head), expected, "{address} {headers:?}");
        }
    }
}
