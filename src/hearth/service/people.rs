//! Who may sign in, and with which tokens. The command line applies the same
//! rules to the database itself.

use serde_json::Value;

use super::{Service, password};
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::ids::TokenId;
use base::secret::{Secret, fingerprint};
use protocol::command::{AddUser, CreateToken, SetPassword};
use serde_json::json;
use store::{NewToken, SESSION, Token, TokenScope, User, UserRole};

/// Most characters of a user's or a token's name.
pub const NAME_CHARACTERS: usize = 64;

/// Checks the name of a new user.
///
/// # Errors
/// `invalid_request`.
pub fn check_user_name(name: &str) -> Result<()> {
    let fits = (1..=NAME_CHARACTERS).contains(&name.chars().count());
    let strange = |letter: char| letter.is_control() || letter.is_whitespace();
    if !fits || name.contains(strange) {
        return Err(Error::invalid_request(format!(
            "a user's name must have 1 to {NAME_CHARACTERS} characters and no spaces"
        )));
    }
    Ok(())
}

/// A new API token of `owner`, as it is shown once and as it is stored.
///
/// # Errors
/// `invalid_request` for its name, or a role above the owner's.
pub fn new_token(
    owner: &User,
    name: &str,
    role: Option<UserRole>,
    expires_at: Option<Timestamp>,
) -> Result<(Secret, NewToken)> {
    let fits = (1..=NAME_CHARACTERS).contains(&name.chars().count());
    if !fits || name.trim().is_empty() || name.contains(char::is_control) || name == SESSION {
        return Err(Error::invalid_request(format!(
            "a token's name must have 1 to {NAME_CHARACTERS} characters, and must not be {SESSION:?}"
        )));
    }
    let role = role.unwrap_or(owner.role);
    if role > owner.role {
        return Err(Error::invalid_request(format!(
            "{} is {} and cannot have a token that is {}",
            owner.name,
            owner.role.as_str(),
            role.as_str()
        )));
    }
    let secret = Secret::random_token();
    let token = NewToken {
        user_id: owner.id,
        name: name.to_owned(),
        fingerprint: fingerprint(secret.expose()),
        role,
        expires_at,
        scope: TokenScope::default(),
        speaks_for: Vec::new(),
    };
    Ok((secret, token))
}

/// The commands of the admin `by`. Passwords and tokens are not logged.
impl Service {
    pub(super) fn list_users(&self) -> Result<Value> {
        let users: Vec<Value> = self.store.users()?.iter().map(user).collect();
        Ok(json!({ "users": users }))
    }

    pub(super) fn add_user(&self, new: AddUser, by: &str) -> Result<Value> {
        check_user_name(&new.name)?;
        let role = parse_role(new.role)?.unwrap_or(UserRole::User);
        let hash = self.hash_password(&new.password)?;
        let added = self.store.add_user(&new.name, role, &hash)?;
        log::info!("user {}: added as {} by {by}", added.name, role.as_str());
        Ok(user(&added))
    }

    pub(super) fn set_password(&self, new: SetPassword, by: &str) -> Result<Value> {
        let known = self.find_user(&new.name)?;
        let hash = self.hash_password(&new.password)?;
        self.store.set_password(known.id, &hash, None)?;
        log::info!("user {}: password set by {by}", known.name);
        self.close_revoked();
        Ok(user(&known))
    }

    pub(super) fn remove_user(&self, name: &str, by: &str) -> Result<Value> {
        let known = self.find_user(name)?;
        self.store.remove_user(known.id)?;
        log::info!("user {}: removed by {by}", known.name);
        self.close_revoked();
        Ok(json!({ "name": known.name }))
    }

    pub(super) fn list_tokens(&self, with_sessions: bool) -> Result<Value> {
        let tokens = self.store.tokens(with_sessions)?;
        let tokens: Vec<Value> = tokens.iter().map(token).collect();
        Ok(json!({ "tokens": tokens }))
    }

    pub(super) fn create_token(&self, new: CreateToken, by: &str) -> Result<Value> {
        let owner = self.find_user(new.user.as_deref().unwrap_or(by))?;
        let expires_at = new.expires_in.map(|time| self.clock.now().plus(time));
        let (secret, stored) = new_token(&owner, &new.name, parse_role(new.role)?, expires_at)?;
        let made = self.store.add_token(stored)?;
        log::info!("{} of {}: made by {by}", made.id, owner.name);
        let mut shown = token(&made);
        shown["token"] = json!(secret.expose());
        Ok(shown)
    }

    pub(super) fn revoke_token(&self, id: TokenId, by: &str) -> Result<Value> {
        self.store.revoke_token(id)?;
        log::info!("{id}: revoked by {by}");
        self.connections.revoke(id);
        Ok(json!({ "token_id": id }))
    }

    fn find_user(&self, name: &str) -> Result<User> {
        self.store.user(name)?.ok_or_else(|| {
            let shown: String = name.chars().take(NAME_CHARACTERS).collect();
            Error::not_found(format!("there is no user {shown:?}"))
        })
    }

    fn hash_password(&self, password: &Secret) -> Result<String> {
        password::check(password)?;
        self.verifier.hash(password)
    }

    /// Closes the connections whose tokens are no longer valid, or grant another
    /// role than when they signed in.
    pub(super) fn close_revoked(&self) {
        for (token, role) in self.connections.tokens() {
            if matches!(self.store.token_role(token), Ok(granted) if granted != Some(role)) {
                self.connections.revoke(token);
            }
        }
    }
}

fn parse_role(word: Option<String>) -> Result<Option<UserRole>> {
    word.map(|word| {
        UserRole::parse(&word)
            .ok_or_else(|| Error::invalid_request("\"role\" must be viewer, user or admin"))
    })
    .transpose()
}

/// A user, without the password.
pub fn user(user: &User) -> Value {
    json!({ "name": user.name, "role": user.role.as_str(), "created_at": user.created_at })
}

fn token(token: &Token) -> Value {
    json!({
        "token_id": token.id,
        "name": token.name,
        "user": token.user,
        "role": token.role.as_str(),
        "created_at": token.created_at,
        "expires_at": token.expires_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_name_is_one_short_word() {
        for (name, good) in [
            ("ada", true),
            ("ada@example.org", true),
            ("J\u{fc}rgen", true),
            ("", false),
            ("ada lovelace", false),
            ("ada\n", false),
            ("\u{1b}[2J", false),
        ] {
            assert_eq!(check_user_name(name).is_ok(), good, "{name:?}");
        }
        assert!(check_user_name(&"x".repeat(65)).is_err());
    }

    #[test]
    fn a_token_has_a_name_and_no_more_than_its_owner_s_role() {
        let owner = User {
            id: 1.into(),
            name: "bob".to_owned(),
            role: UserRole::User,
            password_hash: String::new(),
            created_at: Timestamp::from_millis(0),
        };
        let made = |name: &str, role| new_token(&owner, name, role, None);
        for (name, role, good) in [
            ("phone", None, true),
            ("phone", Some(UserRole::Viewer), true),
            ("phone", Some(UserRole::Admin), false),
            ("", None, false),
            (" ", None, false),
            ("a\nb", None, false),
            // Those are ended with the password.
            ("session", None, false),
        ] {
            assert_eq!(made(name, role).is_ok(), good, "{name:?} {role:?}");
        }
        let (secret, token) = made("phone", None).unwrap();
        assert_eq!(token.role, UserRole::User);
        assert_eq!(token.fingerprint, fingerprint(secret.expose()));
    }
}
