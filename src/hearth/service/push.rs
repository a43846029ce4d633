//! Notifications of browsers, through their push services.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::Service;
use crate::outgoing::is_public_key;
use base::error::{Error, Result};
use base::secret::Secret;
use base::url::Url;
use protocol::push::{Subscription, encode};
use store::{Identity, PushSubscription};

impl Service {
    /// Names a browser of whoever has signed in, until their session ends.
    pub(super) fn push_subscribe(&self, identity: &Identity, new: Subscription) -> Result<Value> {
        let endpoint = &new.endpoint;
        if !self.settings.current().notifications.allows(endpoint) {
            return Err(Error::invalid_request(format!(
                "\"subscription.endpoint\" must be at one of notifications.push_hosts, over https; \
                 {} is not",
                endpoint.origin()
            )));
        }
        if !is_public_key(&new.public_key) {
            return Err(Error::invalid_request(
                "\"subscription.keys.p256dh\" is no public key of P-256",
            ));
        }
        let browser = PushSubscription {
            endpoint: Secret::new(endpoint.text()),
            public_key: encode(&new.public_key),
            secret: new.secret,
        };
        let (user, token) = (identity.user_id, identity.token_id);
        self.store.add_push_subscription(user, token, browser)?;
        self.tells_browsers.store(true, Ordering::Relaxed);
        log::info!("{}: a browser gets notifications", identity.user);
        Ok(json!({ "subscribed": true }))
    }

    /// Tells a browser of whoever has signed in nothing any more.
    pub(super) fn push_unsubscribe(&self, identity: &Identity, endpoint: &Secret) -> Result<Value> {
        let endpoint = Url::parse(endpoint.expose()).map(|url| Secret::new(url.text()));
        let was_known = match endpoint {
            Ok(endpoint) => self
                .store
                .remove_push_subscription(identity.user_id, &endpoint)?,
            Err(_) => false,
        };
        Ok(json!({ "unsubscribed": was_known }))
    }
}
