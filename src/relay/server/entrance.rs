//! Who may use the relay: clients and machines that send its token.

use base::error::{Error, Result};
use base::secret::Secret;
use net::http::Head;
use net::http::checks::bearer;
use net::peer::Peer;

/// Shortest token that is accepted (protocol section 6), in characters.
pub const TOKEN_CHARACTERS: usize = 32;
/// Prefix of the WebSocket subprotocol in which a browser can send a token.
const SUBPROTOCOL: &str = "bearer.";

/// The relay's token, long enough. Guesses are not throttled: 32 characters cannot be
/// guessed, and no wrong token may keep out the right one.
#[derive(Clone, Debug)]
pub struct Token(Secret);

impl Token {
    /// Checks the length of a token.
    ///
    /// # Errors
    /// `invalid_request` when it is too short to be safe.
    pub fn new(secret: Secret) -> Result<Token> {
        let length = secret.expose().chars().count();
        if length < TOKEN_CHARACTERS {
            return Err(Error::invalid_request(format!(
                "AUTH_TOKEN has {length} characters, and a relay requires {TOKEN_CHARACTERS} or \
                 more, because anyone who guesses it can use the relay; `hearth relay --show-token` makes a \
                 good one"
            )));
        }
        Ok(Token(secret))
    }

    /// Whether the head of a request has the right token, as
    /// `Authorization: Bearer` or as WebSocket subprotocol; false when it has none.
    ///
    /// # Errors
    /// `invalid_token` when it has a wrong one.
    pub fn admits(&self, head: &Head) -> Result<bool> {
        match shown(head) {
            Some(token) => self.check(&token, &head.peer).map(|()| true),
            None => Ok(false),
        }
    }

    /// Checks a token that `peer` sent.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn check(&self, token: &Secret, peer: &Peer) -> Result<()> {
        if self.0.matches(token.expose()) {
            return Ok(());
        }
        log::info!(peer:% = peer.place(); "{peer}: wrong AUTH_TOKEN");
        Err(Error::invalid_token(
            "this is not the AUTH_TOKEN of this relay",
        ))
    }

    /// Whether a head, which may have another kind of credential instead, has the
    /// relay's token.
    pub fn recognises(&self, head: &Head) -> bool {
        shown(head).is_some_and(|token| self.0.matches(token.expose()))
    }
}

/// The token in a head.
fn shown(head: &Head) -> Option<Secret> {
    if head.header("authorization").is_some() {
        // Another scheme is a wrong token, not a missing one.
        return Some(bearer(head).unwrap_or_else(|_| Secret::new("")));
    }
    head.headers
        .iter()
        .filter(|(name, _)| name == "sec-websocket-protocol")
        .flat_map(|(_, value)| value.split(','))
        .find_map(|name| name.trim().strip_prefix(SUBPROTOCOL))
        .map(Secret::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::testing::head;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_token_is_sent_in_a_header_or_a_subprotocol() {
        let token = Token::new(Secret::new(TOKEN)).unwrap();
        let bearer = format!("Bearer {TOKEN}");
        let offered = format!("hearth.v1, bearer.{TOKEN}");
        let prefix = format!("Bearer {}", &TOKEN[1..]);
        for (name, value, admitted) in [
            ("authorization", bearer.as_str(), Some(true)),
            ("sec-websocket-protocol", &offered, Some(true)),
            ("sec-websocket-protocol", "hearth.v1", Some(false)),
            ("cookie", TOKEN, Some(false)),
            ("authorization", &prefix, None),
            ("authorization", "Bearer ", None),
            ("authorization", "Basic abc", None),
            ("sec-websocket-protocol", "hearth.v1, bearer.x", None),
        ] {
            let result = token.admits(&head("GET", "/ws", &[(name, value)]));
            match admitted {
                Some(admitted) => assert_eq!(result.unwrap(), admitted, "{name}: {value}"),
                None => assert_eq!(result.unwrap_err().status(), 401, "{name}: {value}"),
            }
        }
    }

    #[test]
    fn a_short_token_is_refused_with_a_way_out() {
        let error = Token::new(Secret::new(&TOKEN[1..])).unwrap_err();
        assert!(error.message().contains("31 characters"), "{error}");
        assert!(error.message().contains("--show-token"), "{error}");
    }
}
