//! One attempt at a callback: from the database to the receiver and back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::post::CurrentPoster;
use super::schedule::{self, Outcome};
use super::send;
use crate::service::Deliver;
use base::clock::Clock;
use base::error::Result;
use base::ids::DeliveryId;
use base::secret::random_fraction;
use config::{Settings, WebhookAccount};
use store::{Attempt, Delivery, Durable, Store};

/// Sends callbacks. Shared by all workers; each call blocks its worker for at
/// most `limits.callback_seconds` of network and one commit.
pub struct Deliverer {
    settings: Arc<Settings>,
    store: Store,
    clock: Clock,
    poster: CurrentPoster,
}

impl Deliverer {
    /// A deliverer over the settings in force and the database.
    pub fn new(settings: Arc<Settings>, store: Store, clock: Clock) -> Deliverer {
        Deliverer {
            settings,
            store,
            clock,
            poster: CurrentPoster::default(),
        }
    }
}

impl Deliver for Deliverer {
    /// Makes the next attempt at a delivery and stores its outcome with the time
    /// of the following attempt. A delivery that is not due is left as it is: it may
    /// have been found due just before another attempt was stored.
    ///
    /// URL and secret come from the configuration in force, so that a correction
    /// also helps waiting callbacks. A delivery whose account was removed is dead.
    ///
    /// # Errors
    /// Those of the store. A receiver that fails is not an error here.
    fn deliver(&self, id: DeliveryId) -> Result<Option<Delivery>> {
        let Some(delivery) = self.store.delivery_to_send(id, self.clock.now())? else {
            return Ok(None);
        };
        let config = self.settings.current();
        let attempt = match config.webhook_account(&delivery.account) {
            Some(account) => self.attempt(account, &delivery),
            None => {
                let error = format!(
                    "the webhook account {:?} is no longer in the configuration",
                    delivery.account
                );
                log::warn!("{id}: dead: {error}");
                Attempt::Dead { error }
            }
        };
        // If the commit of a success fails, the callback is sent again, with the same
        // id.
        let recorded = self.store.record_attempt(id, attempt)?;
        Ok(Some(recorded.uncommitted()))
    }
}

impl Deliverer {
    fn attempt(&self, account: &WebhookAccount, delivery: &Durable<Delivery>) -> Attempt {
        let number = delivery.attempts.saturating_add(1);
        let started = Instant::now();
        let config = self.settings.current();
        let deadline = Duration::from_secs(config.limits.callback_seconds);
        let poster = self.poster.of(&config);
        let outcome = send::post(&poster, account, delivery, deadline, self.clock.now());
        let attempt = schedule::after(
            number,
            account.max_attempts,
            &outcome,
            self.clock.now(),
            random_fraction(),
        );
        report(delivery, number, &outcome, &attempt, started.elapsed());
        attempt
    }
}

/// One line per attempt. Never the body or the secret.
fn report(
    delivery: &Delivery,
    number: u32,
    outcome: &Outcome,
    attempt: &Attempt,
    elapsed: Duration,
) {
    let met = match outcome {
        Outcome::Answered { status, .. } => format!("status {status}"),
        Outcome::Unanswered(reason) => reason.clone(),
    };
    let (level, next) = match attempt {
        Attempt::Delivered => (log::Level::Info, "delivered".to_owned()),
        Attempt::Retry { next_at, .. } => (log::Level::Info, format!("next at {next_at}")),
        Attempt::Dead { .. } => (log::Level::Warn, "dead".to_owned()),
    };
    log::log!(
        level,
        "{} to {:?}: attempt {number}: {met} in {} ms: {next}",
        delivery.id,
        delivery.account,
        elapsed.as_millis(),
    );
}
