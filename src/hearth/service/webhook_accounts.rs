//! Webhook accounts, as admins manage them.

use serde_json::{Value, json};

use super::tools::refuse_variables;
use super::webhooks::WebhookRequest;
use super::{Service, views, webhook_sample};
use base::error::{Error, Result};
use base::ids::TurnId;
use config::{Limits, WebhookAccount};
use protocol::command::{AddWebhookAccount, CHAT_MESSAGE_BYTES, TestWebhookAccount, check_message};
use protocol::record;
use store::{DeliveryState, Identity, UserRole};

/// The message of a test without one.
const MESSAGE: &str = "This is a test of the webhook. Answer with one short sentence.";

/// What widens the rights of an account: the owner sets it.
const RIGHTS: [&str; 3] = ["tools", "tool_permissions", "trusted"];

impl Service {
    pub(super) fn list_webhook_accounts(&self) -> Result<Value> {
        self.settings.check_is_whole("channels")?;
        let config = self.settings.current();
        Ok(views::records("accounts", config.webhook_accounts()))
    }

    pub(super) fn add_webhook_account(
        &self,
        new: AddWebhookAccount,
        by: &Identity,
    ) -> Result<Value> {
        let name = &new.name;
        refuse_variables(&new.account, by.role)?;
        let is_given =
            |right: &&&str| by.role < UserRole::Owner && new.account.contains_key(**right);
        if let Some(right) = RIGHTS.iter().find(is_given) {
            return Err(Error::unauthorized(format!(
                "the owner of the machine sets {right:?} of an account: `hearth config set channels.webhook.accounts.{name}.{right} VALUE`"
            )));
        }
        if self.settings.account_path(name).is_some() {
            return Err(Error::invalid_request(format!(
                "account {name:?} exists already; change its settings, or remove it first"
            )));
        }
        let account = new.account.into();
        let (_, change) = self.edit(|service| service.settings.add_account(name, account))?;
        Ok(json!(change))
    }

    pub(super) fn remove_webhook_account(&self, name: &str) -> Result<Value> {
        let path = self
            .settings
            .account_path(name)
            .ok_or_else(|| self.no_account(name))?;
        let (_, change) = self.edit(|service| service.settings.set(&path, Value::Null))?;
        let mut undelivered = 0;
        for state in [DeliveryState::Pending, DeliveryState::Held] {
            let all = self
                .server_snapshot()?
                .deliveries(Some(state), usize::MAX)?;
            undelivered += all.iter().filter(|one| one.account == name).count();
        }
        let mut removed = json!(change);
        removed["undelivered"] = json!(undelivered);
        Ok(removed)
    }

    pub(super) fn test_webhook_account(
        &self,
        test: &TestWebhookAccount,
        by: &Identity,
    ) -> Result<Value> {
        let config = self.settings.current();
        let account = config.webhook_account(&test.name);
        let account = account.ok_or_else(|| self.no_account(&test.name))?;
        let listener = config.port_of_account(&account.name);
        let message = test.message.as_deref().unwrap_or(MESSAGE);
        let body = webhook_sample::body(account, message);
        let turn_id = match test.send {
            true => Some(self.send_test(account, &config.limits, &body)?),
            false => None,
        };
        Ok(json!(record::WebhookTest {
            incoming_path: account.incoming_path.clone(),
            listener: listener as u64,
            port: config
                .ports()
                .get(listener)
                .map(|(_, port)| u64::from(*port)),
            enabled: account.enabled,
            accept: json!(account.accept),
            secret: (account.secret.as_ref())
                .filter(|_| by.role == UserRole::Owner)
                .map(|secret| secret.expose().to_owned()),
            body,
            mapped: account.map.is_some(),
            outgoing_url: account.outgoing_url.clone(),
            callback_seconds: config.limits.callback_seconds,
            turn_id,
        }))
    }

    /// Has an account get this body, as if its system had posted it.
    fn send_test(&self, account: &WebhookAccount, limits: &Limits, body: &Value) -> Result<TurnId> {
        if !account.enabled {
            let name = &account.name;
            return Err(Error::invalid_request(format!(
                "the webhook account {name:?} is not enabled, so it gets no messages"
            )));
        }
        let message = match &account.map {
            Some(map) => map.message.fill(body, CHAT_MESSAGE_BYTES),
            None => body["message"].as_str().unwrap_or_default().to_owned(),
        };
        check_message(&message)?;
        let request = WebhookRequest {
            message,
            user_id: None,
            sender: None,
            // One of its own: no earlier reply holds up this one.
            conversation_id: None,
            attachments: Vec::new(),
            idempotency_key: None,
            body: Vec::new(),
        };
        let accepted = self.accept_webhook(account, limits, request, false)?;
        Ok(accepted.turn.id)
    }

    fn no_account(&self, name: &str) -> Error {
        let config = self.settings.current();
        let known = config.webhook_accounts().map(|one| one.name.as_str());
        let known = match known.collect::<Vec<_>>().as_slice() {
            [] => "there are none; `hearth webhook add` adds one".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Error::not_found(format!("there is no webhook account {name:?}; {known}"))
    }
}
