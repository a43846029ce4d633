//! Links by which a person chooses a password, once: those who are invited, and those
//! who forgot theirs.

use std::time::Duration;

use serde_json::Value;

use super::people::{check_user_name, child_limits, parse_role};
use super::{Service, password, views};
use crate::qr;
use base::clock::Timestamp;
use base::error::{Code, Error, Result};
use base::secret::{Secret, fingerprint};
use base::url::Url;
use net::peer::Peer;
use protocol::command::{InviteUser, ResetPassword};
use serde_json::json;
use store::{Invitation, NewInvitation, User, UserRole};

use super::accounts::Login;

/// How long a link works.
pub const VALID: Duration = Duration::from_secs(24 * 60 * 60);

/// A new link to the page at `url`, as it is shown once, and as it is stored. The secret
/// is in the fragment, which browsers send to no server and into no log.
///
/// # Errors
/// `invalid_request` when `url` is not the address of a page.
pub fn new_link(url: &str, created_by: &str, now: Timestamp) -> Result<(Secret, NewInvitation)> {
    let page = url.split('#').next().unwrap_or_default();
    let parsed = Url::parse(page).ok();
    let is_page = |url: &Url| matches!(url.scheme.as_str(), "http" | "https") && url.user.is_none();
    if !parsed.as_ref().is_some_and(is_page) {
        return Err(Error::invalid_request(
            "the address of the page must be one such as http://192.168.1.5:5000/",
        ));
    }
    let secret = Secret::random_token();
    let slash = if page.matches('/').count() < 3 {
        "/"
    } else {
        ""
    };
    let link = Secret::new(format!("{page}{slash}#invite={}", secret.expose()));
    let stored = NewInvitation {
        fingerprint: fingerprint(secret.expose()),
        created_by: created_by.to_owned(),
        expires_at: now.plus(VALID),
    };
    Ok((link, stored))
}

/// The commands of the admin `by`. Links are not logged.
impl Service {
    pub(super) fn invite_user(&self, new: InviteUser, by: &str) -> Result<Value> {
        check_user_name(&new.name)?;
        let display_name = new.display_name.as_deref();
        self.check_new_display_name(display_name)?;
        let role = parse_role(new.role)?.unwrap_or(UserRole::User);
        let (link, stored) = new_link(&new.url, by, self.clock.now())?;
        self.finish_removals();
        if new.child {
            self.narrow_child(&new.name)?;
        }
        let made = self.store.invite(&new.name, role, stored)?;
        self.call(made.user_id, display_name)?;
        log::info!("user {}: invited as {} by {by}", made.name, role.as_str());
        self.hub.publish_people();
        shown(&made, &link)
    }

    pub(super) fn reset_password(&self, reset: &ResetPassword, by: &str) -> Result<Value> {
        let known = self.find_person(&reset.name)?;
        let (link, stored) = new_link(&reset.url, by, self.clock.now())?;
        let made = self.store.add_invitation(known.id, stored)?;
        log::info!("user {}: link for a new password made by {by}", made.name);
        self.hub.publish_people();
        shown(&made, &link)
    }

    pub(super) fn list_invitations(&self) -> Result<Value> {
        let invitations = self.store.invitations()?;
        let invitations = invitations.iter().map(views::invitation);
        Ok(views::records("invitations", invitations))
    }

    pub(super) fn revoke_invitation(&self, name: &str, by: &str) -> Result<Value> {
        let known = self.find_user(name)?;
        if !self.store.revoke_invitation(known.id)? && !known.is_invited() {
            let none = format!("there is no link for {}", known.name);
            return Err(Error::not_found(none));
        }
        log::info!("user {}: link revoked by {by}", known.name);
        if known.is_invited() {
            let removed = self.store.remove_user(known.id, None)?;
            self.person_gone(removed.unseen);
        } else {
            self.hub.publish_people();
        }
        Ok(json!({ "name": known.name, "is_removed": known.is_invited() }))
    }

    /// Writes the limits of a child who is about to be added, so that the child is never
    /// without them.
    pub(super) fn narrow_child(&self, name: &str) -> Result<()> {
        self.store.check_is_free(name, false)?;
        self.settings.narrow_person(name, child_limits())?;
        self.config_changed(&["people".to_owned()]);
        Ok(())
    }
}

fn shown(made: &Invitation, link: &Secret) -> Result<Value> {
    let mut shown = views::invitation(made);
    shown.link = Some(link.expose().to_owned());
    shown.qr = Some(qr::rows(link.expose())?);
    Ok(json!(shown))
}

/// What the person with the link does.
impl Service {
    /// Whose link this is. As with tokens, wrong ones are not counted: the secret is too
    /// long to guess, and a link that works must not be refused because others do not.
    ///
    /// # Errors
    /// `invalid_token` when it does not work.
    pub fn invited(&self, peer: &Peer, secret: &Secret) -> Result<Invitation> {
        match self.store.invitation(&fingerprint(secret.expose()))? {
            Some(invitation) => Ok(invitation),
            None => {
                log::warn!(peer:% = peer.place(); "a link that does not work was tried from {peer}");
                Err(Error::worded(Code::InvalidToken, "error.link_over", &[]))
            }
        }
    }

    /// Sets the password that the person with the link chose, and signs them in.
    ///
    /// # Errors
    /// `invalid_request` for the password; `invalid_token` when the link does not work.
    pub fn accept_invitation(
        &self,
        peer: &Peer,
        secret: &Secret,
        new: &Secret,
    ) -> Result<(User, Login)> {
        password::check(new)?;
        // Before the password is hashed, which takes long.
        self.invited(peer, secret)?;
        let hash = self.verifier.hash(new)?;
        let accepted = self
            .store
            .accept_invitation(fingerprint(secret.expose()), &hash)?;
        log::info!(peer:% = peer.place(); "{} chose a password by a link, from {peer}", accepted.name);
        self.close_revoked();
        self.hub.publish_people();
        let login = self.begin_session(peer, &accepted)?;
        Ok((accepted, login))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::clock::Clock;

    #[test]
    fn a_link_leads_to_the_page_and_holds_its_secret_in_the_fragment() {
        for (url, link) in [
            (
                "http://192.168.1.5:5000",
                Some("http://192.168.1.5:5000/#invite=hearth_"),
            ),
            (
                "https://hearth.local/",
                Some("https://hearth.local/#invite=hearth_"),
            ),
            (
                "http://pi.lan:81/sub/#/people",
                Some("http://pi.lan:81/sub/#invite=hearth_"),
            ),
            (
                "http://[::1]:5000/",
                Some("http://[::1]:5000/#invite=hearth_"),
            ),
            ("javascript:alert(1)", None),
            ("ftp://pi.lan/", None),
            ("http://ada@pi.lan/", None),
            ("", None),
        ] {
            let made = new_link(url, "ada", Clock::system().now());
            assert_eq!(made.is_ok(), link.is_some(), "{url}");
            if let (Ok((made, stored)), Some(link)) = (made, link) {
                let text = made.expose();
                assert!(text.starts_with(link), "{text}");
                let (_, secret) = text.split_once('=').unwrap();
                assert_eq!(stored.fingerprint, fingerprint(secret));
            }
        }
    }
}
