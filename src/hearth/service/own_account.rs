//! What people do with their own account. Passwords and tokens are not logged.

use serde_json::Value;

use super::caller::Caller;
use super::{Service, password, views};
use base::error::{Error, Result};
use base::ids::TokenId;
use base::language::Said;
use base::secret::Secret;
use protocol::command::ChangePassword;
use protocol::record;
use serde_json::json;
use store::User;

impl Service {
    pub(super) fn change_password(
        &self,
        caller: &Caller<'_>,
        change: &ChangePassword,
    ) -> Result<Value> {
        password::check(&change.new_password)?;
        let user = self.check_own_password(caller, &change.old_password)?;
        let hash = self.verifier.hash(&change.new_password)?;
        let kept = Some(caller.identity.token_id);
        self.store.set_password(user.id, &hash, kept)?;
        log::info!("user {}: changed the password", user.name);
        Ok(json!({ "name": user.name }))
    }

    pub(super) fn delete_account(&self, caller: &Caller<'_>, password: &Secret) -> Result<Value> {
        let user = self.check_own_password(caller, password)?;
        let gone = self.store.delete_account(user.id)?;
        log::info!("user {}: deleted the account", user.name);
        self.person_gone(gone.unseen);
        Ok(json!({ "name": user.name }))
    }

    pub(super) fn list_own_tokens(&self, caller: &Caller<'_>) -> Result<Value> {
        let tokens = self.store.tokens_of(caller.identity.user_id)?;
        let shown = tokens.iter().map(|token| record::Token {
            is_current: Some(token.id == caller.identity.token_id),
            ..views::token(token)
        });
        Ok(views::records("tokens", shown))
    }

    pub(super) fn revoke_own_token(&self, caller: &Caller<'_>, id: TokenId) -> Result<Value> {
        self.store.revoke_token_of(caller.identity.user_id, id)?;
        log::info!("{id}: revoked by {}", caller.identity.user);
        self.hub.publish_people();
        Ok(json!({ "token_id": id }))
    }

    pub(super) fn sign_out_everywhere(&self, caller: &Caller<'_>, tokens: bool) -> Result<Value> {
        let identity = caller.identity;
        let revoked = self.store.sign_out_everywhere(identity.user_id, tokens)?;
        log::info!("{}: signed out everywhere", identity.user);
        self.hub.publish_people();
        Ok(json!({ "revoked": revoked }))
    }

    /// The caller, who has given their password again.
    fn check_own_password(&self, caller: &Caller<'_>, given: &Secret) -> Result<User> {
        let name = &caller.identity.user;
        let user = self.store.user(name)?;
        let user = user.filter(|user| user.id == caller.identity.user_id);
        if self.check_password(caller.peer, name, user.as_ref(), given)? {
            user.ok_or_else(|| Error::not_found(Said::of("error.account_removed", &[])))
        } else {
            Err(Error::unauthorized(Said::of(
                "error.not_your_password",
                &[],
            )))
        }
    }
}
