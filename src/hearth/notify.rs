//! Tells phones what waits, through ntfy, Gotify or a browser's push service: from the
//! database to the service and back. [`service`](crate::service) says who is told what.

mod encryption;
mod push_key;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::service::Notify;
use crate::webhook::post::{CurrentPoster, Post, Poster};
use crate::webhook::schedule::{self, Outcome};
use base::clock::{Clock, Timestamp};
use base::error::Result;
use base::ids::NotificationId;
use base::secret::{Secret, random_fraction};
use base::sync::lock;
use base::url::Url;
use config::{Config, Notifications, PushService, Settings};
use serde_json::{Value, json};
use store::{Attempt, Durable, Notification, NotificationCause, PUSH, PushSubscription, Store};

use encryption::{encrypt, is_public_key};
use push_key::PushKey;

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
    data_dir: PathBuf,
    /// Absent until somebody asks for it.
    push_key: Mutex<Option<Arc<PushKey>>>,
}

impl Notifier {
    /// A notifier over the settings in force and the database.
    pub fn new(settings: Arc<Settings>, store: Store, clock: Clock, data_dir: PathBuf) -> Notifier {
        Notifier {
            data_dir,
            push_key: Mutex::default(),
            settings,
            store,
            clock,
            poster: CurrentPoster::default(),
        }
    }

    /// The server's key pair, made when it is first asked for.
    fn key(&self) -> Result<Arc<PushKey>, String> {
        let mut kept = lock(&self.push_key);
        if let Some(key) = &*kept {
            return Ok(Arc::clone(key));
        }
        let key = PushKey::load_or_make(&self.data_dir).map_err(|error| error.to_string())?;
        Ok(Arc::clone(kept.insert(Arc::new(key))))
    }

    /// One attempt, or why none is made any more.
    fn attempt(
        &self,
        due: &Durable<Notification>,
        settings: Option<&Notifications>,
        config: &Config,
    ) -> Result<Outcome, String> {
        let now = self.clock.now();
        let content = due.content.as_deref();
        let content = content.ok_or("there is nothing to tell any more")?;
        if due.expires_at <= now {
            return Err("it has expired".to_owned());
        }
        let id = due.id.to_string();
        let request = if due.service == PUSH {
            let (_, browser) = due.browser.as_ref().ok_or("its session has ended")?;
            let push = Push::new(id, due.cause, Some(content));
            let key = self.key()?;
            self.to_browser(&push, due, browser, &key, config)?
        } else {
            let settings = settings.ok_or("the person has no notifications any more")?;
            let content = settings.content.then_some(content);
            let push = Push::new(id, due.cause, content);
            let mut services = settings.services();
            let service = services.find(|service| service.as_str() == due.service);
            let request = service.and_then(|service| request(settings, service, &push));
            request.ok_or("its service is not set up any more")?
        };
        let limit = Duration::from_secs(config.limits.callback_seconds);
        Ok(request.post(&self.poster.of(config), limit, now))
    }

    /// The request that tells a browser something (RFC 8030 section 5).
    fn to_browser(
        &self,
        push: &Push,
        due: &Notification,
        browser: &PushSubscription,
        key: &PushKey,
        config: &Config,
    ) -> Result<Request, String> {
        let now = self.clock.now();
        let settings = &config.notifications;
        let endpoint = Url::parse(browser.endpoint.expose())
            .ok()
            .filter(|url| settings.allows(url))
            .ok_or("its push service is not one of notifications.push_hosts any more")?;
        let text = json!({
            "title": push.title,
            "body": push.text,
            "tag": push.id,
            "conversation_id": due.conversation_id,
        })
        .to_string();
        let bytes = |text: &str| protocol::push::decode(text).unwrap_or_default();
        let public_key = bytes(&browser.public_key);
        let body = encrypt(
            &public_key,
            &bytes(browser.secret.expose()),
            text.as_bytes(),
        );
        let contact = &settings.push_contact;
        let authorization = key.authorization(&endpoint.origin(), contact, now);
        let (Some(body), Some(authorization)) = (body, authorization) else {
            return Err("the message to its browser cannot be encrypted".to_owned());
        };
        let urgency = if push.is_urgent { "high" } else { "normal" };
        Ok(Request {
            url: endpoint.text(),
            media_type: "application/octet-stream",
            headers: vec![
                ("content-encoding", "aes128gcm".to_owned()),
                ("ttl", due.expires_at.since(now).as_secs().to_string()),
                ("urgency", urgency.to_owned()),
                ("topic", push.id.clone()),
                ("authorization", authorization),
            ],
            body,
        })
    }
}

/// What follows an attempt, or why none was made.
fn after(due: &Notification, made: Result<Outcome, String>, now: Timestamp) -> Attempt {
    let outcome = match made {
        Ok(outcome) => outcome,
        Err(error) => return Attempt::Dead { error },
    };
    let number = due.attempts.saturating_add(1);
    match schedule::after(number, MOST_ATTEMPTS, &outcome, now, random_fraction()) {
        Attempt::Retry { error, next_at } if next_at >= due.expires_at => Attempt::Dead { error },
        attempt => attempt,
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
        let made = self.attempt(&due, settings, &config);
        let is_gone = matches!(
            made,
            Ok(Outcome::Answered {
                status: 404 | 410,
                ..
            })
        );
        if let Some((browser, _)) = due.browser.as_ref().filter(|_| is_gone) {
            log::info!(
                "{browser}: a browser of {} is told nothing any more",
                due.user
            );
            // With what it was to be told, this notification too.
            return self.store.push_subscription_gone(*browser);
        }
        let attempt = after(&due, made, now);
        self.store.record_notification(id, attempt.clone())?;
        report(&due, &attempt);
        Ok(())
    }

    fn push_key(&self) -> Option<String> {
        match self.key() {
            Ok(key) => Some(key.public_key.clone()),
            Err(error) => {
                log::warn!("no browser can be told anything: {error}");
                None
            }
        }
    }

    fn is_public_key(&self, key: &[u8]) -> bool {
        is_public_key(key)
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
    match request(settings, service, push) {
        Some(request) => request.post(poster, limit, now),
        None => Outcome::Unanswered(format!("{} is not set up", service.as_str())),
    }
}

/// What is posted to a service.
struct Request {
    url: String,
    media_type: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Request {
    fn json(url: String, body: &Value, token: Option<(&'static str, String)>) -> Request {
        Request {
            url,
            media_type: "application/json",
            headers: token.into_iter().collect(),
            body: body.to_string().into_bytes(),
        }
    }

    fn post(&self, poster: &Poster, limit: Duration, now: Timestamp) -> Outcome {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let is_control = |byte: u8| byte.is_ascii_control();
        if headers
            .iter()
            .any(|(_, value)| value.bytes().any(is_control))
        {
            let error = "the token holds characters that a header cannot";
            return Outcome::Unanswered(error.to_owned());
        }
        let post = Post {
            setting: "the url",
            url: &self.url,
            media_type: self.media_type,
            headers: &headers,
            body: &self.body,
        };
        poster.post(&post, limit, now)
    }
}

/// The request to a service, if it is set up.
fn request(settings: &Notifications, service: PushService, push: &Push) -> Option<Request> {
    let expose = |token: &Secret| token.expose().to_owned();
    Some(match service {
        // <https://docs.ntfy.sh/publish/#publish-as-json>
        PushService::Ntfy => {
            let ntfy = settings.ntfy.as_ref()?;
            let token = ntfy.token.as_ref();
            let token = token.map(|token| ("authorization", format!("Bearer {}", token.expose())));
            let body = json!({
                "topic": ntfy.topic.expose(),
                "title": push.title,
                "message": push.text,
                "priority": if push.is_urgent { 4 } else { 3 },
                "sequence_id": push.id,
            });
            Request::json(ntfy.url.clone(), &body, token)
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
            Request::json(url, &body, Some(("x-gotify-key", expose(&gotify.token))))
        }
    })
}
