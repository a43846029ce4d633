//! Tells phones what waits, through ntfy or Gotify: from the database to the service and
//! back. [`service`](crate::service) says who is told what.

use std::sync::Arc;
use std::time::Duration;

use crate::service::Notify;
use crate::webhook::post::{CurrentPoster, Post, Poster};
use crate::webhook::schedule::{self, Outcome};
use base::clock::{Clock, Timestamp};
use base::error::Result;
use base::ids::NotificationId;
use base::secret::{Secret, random_fraction};
use config::{Notifications, PushService, Settings};
use serde_json::{Value, json};
use store::{Attempt, Durable, Notification, NotificationCause, Store};

/// Attempts before it is given up, if it does not expire before.
const MOST_ATTEMPTS: u32 = 10;
/// Most characters of what a notification is about.
const CONTENT_CHARACTERS: usize = 500;

/// Sends notifications. Shared by all workers; each call blocks its worker for at most
/// `limits.callback_seconds` of network and one commit.
pub struct Notifier {
    settings: Arc<Settings>,
    store: Store,
    clock: Clock,
    poster: CurrentPoster,
}

impl Notifier {
    /// A notifier over the settings in force and the database.
    pub fn new(settings: Arc<Settings>, store: Store, clock: Clock) -> Notifier {
        Notifier {
            settings,
            store,
            clock,
            poster: CurrentPoster::default(),
        }
    }

    /// One attempt, or why none is made any more.
    fn attempt(&self, due: &Durable<Notification>, settings: &Notifications) -> Attempt {
        let now = self.clock.now();
        let dead = |error: &str| Attempt::Dead {
            error: error.to_owned(),
        };
        let Some(content) = &due.content else {
            return dead("there is nothing to tell any more");
        };
        if due.expires_at <= now {
            return dead("it has expired");
        }
        let mut services = settings.services();
        let Some(service) = services.find(|service| service.as_str() == due.service) else {
            return dead("its service is not set up any more");
        };
        let config = self.settings.current();
        let poster = self.poster.of(&config);
        let limit = Duration::from_secs(config.limits.callback_seconds);
        let content = settings.content.then_some(content.as_str());
        let push = Push::new(due.id.to_string(), due.cause, content);
        let outcome = post(&poster, settings, service, &push, limit, now);
        let number = due.attempts.saturating_add(1);
        match schedule::after(number, MOST_ATTEMPTS, &outcome, now, random_fraction()) {
            Attempt::Retry { error, next_at } if next_at >= due.expires_at => {
                Attempt::Dead { error }
            }
            attempt => attempt,
        }
    }
}

impl Notify for Notifier {
    /// Makes the next attempt, unless the person wants quiet: then it waits until that
    /// ends. Addresses, tokens and quiet hours come from the configuration in force.
    ///
    /// # Errors
    /// Those of the store. A service that fails is not an error here.
    fn notify(&self, id: NotificationId) -> Result<()> {
        let now = self.clock.now();
        let Some(due) = self.store.notification_to_send(id, now)? else {
            return Ok(());
        };
        let config = self.settings.current();
        let person = config.person(&due.user);
        let settings = person.and_then(|person| person.notifications.as_ref());
        let quiet = settings.and_then(|settings| settings.quiet_until(now, &config.zone()));
        if let Some(until) = quiet
            && due.content.is_some()
        {
            return self.store.put_off_notification(id, until);
        }
        let attempt = match settings {
            Some(settings) => self.attempt(&due, settings),
            None => Attempt::Dead {
                error: "the person has no notifications any more".to_owned(),
            },
        };
        self.store.record_notification(id, attempt.clone())?;
        report(&due, &attempt);
        Ok(())
    }
}

/// One line per attempt. Never the content, the topic or a token.
fn report(due: &Notification, attempt: &Attempt) {
    let (id, service, user) = (due.id, &due.service, &due.user);
    let cause = due.cause.as_str();
    match attempt {
        Attempt::Delivered => log::info!("{id}: {user} is notified by {service}: {cause}"),
        Attempt::Retry { error, next_at } => {
            log::info!("{id}: {service} for {user}: {error}; next at {next_at}");
        }
        Attempt::Dead { error } if due.content.is_none() => log::debug!("{id}: {error}"),
        Attempt::Dead { error } => log::warn!("{id}: {service} for {user}: {error}; given up"),
    }
}

/// What a phone shows.
pub struct Push {
    /// The same on every attempt: ntfy shows a repeated one in place of the first.
    id: String,
    title: String,
    text: String,
    is_urgent: bool,
}

impl Push {
    fn new(id: String, cause: NotificationCause, content: Option<&str>) -> Push {
        let what = match cause {
            NotificationCause::Approval => "A question waits for your answer",
            NotificationCause::Reminder => "A reminder is due",
            NotificationCause::Reply => "A reply is there",
            NotificationCause::Message => "A message for you",
        };
        let (title, text) = match content {
            Some(content) => (what, shortened(content)),
            None => ("Hearth", what.to_owned()),
        };
        Push {
            id,
            title: title.to_owned(),
            text,
            is_urgent: cause == NotificationCause::Approval,
        }
    }

    /// The one that a person sends to see whether they come.
    pub fn test() -> Push {
        Push {
            id: "test".to_owned(),
            title: "Hearth".to_owned(),
            text: "Notifications reach this phone".to_owned(),
            is_urgent: false,
        }
    }
}

fn shortened(content: &str) -> String {
    let content = content.trim();
    match content.char_indices().nth(CONTENT_CHARACTERS) {
        Some((end, _)) => format!("{}…", content[..end].trim_end()),
        None => content.to_owned(),
    }
}

/// Makes one attempt, which ends after `limit`.
pub fn post(
    poster: &Poster,
    settings: &Notifications,
    service: PushService,
    push: &Push,
    limit: Duration,
    now: Timestamp,
) -> Outcome {
    let Some((url, (header, token), body)) = request(settings, service, push) else {
        return Outcome::Unanswered(format!("{} is not set up", service.as_str()));
    };
    let token = token.as_deref();
    if token.is_some_and(|token| token.bytes().any(|byte| byte.is_ascii_control())) {
        let error = "the token holds characters that a header cannot";
        return Outcome::Unanswered(error.to_owned());
    }
    let headers: Vec<(&str, &str)> = token.map(|token| (header, token)).into_iter().collect();
    let post = Post {
        setting: "the url",
        url: &url,
        headers: &headers,
        body: &body.to_string(),
    };
    poster.post(&post, limit, now)
}

/// The URL, the header with the token, and the body for a service that is set up.
#[expect(clippy::type_complexity, reason = "used once, and taken apart at once")]
fn request(
    settings: &Notifications,
    service: PushService,
    push: &Push,
) -> Option<(String, (&'static str, Option<String>), Value)> {
    let expose = |token: &Secret| token.expose().to_owned();
    Some(match service {
        // <https://docs.ntfy.sh/publish/#publish-as-json>
        PushService::Ntfy => {
            let ntfy = settings.ntfy.as_ref()?;
            let token = ntfy.token.as_ref();
            let token = token.map(|token| format!("Bearer {}", token.expose()));
            let body = json!({
                "topic": ntfy.topic.expose(),
                "title": push.title,
                "message": push.text,
                "priority": if push.is_urgent { 4 } else { 3 },
                "sequence_id": push.id,
            });
            (ntfy.url.clone(), ("authorization", token), body)
        }
        // <https://gotify.net/docs/pushmsg>
        PushService::Gotify => {
            let gotify = settings.gotify.as_ref()?;
            let url = format!("{}/message", gotify.url.trim_end_matches('/'));
            let body = json!({
                "title": push.title,
                "message": push.text,
                "priority": if push.is_urgent { 8 } else { 5 },
            });
            (url, ("x-gotify-key", Some(expose(&gotify.token))), body)
        }
    })
}
