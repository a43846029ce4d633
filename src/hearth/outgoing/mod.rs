//! What goes out of the house: callbacks to webhook accounts, notifications through ntfy
//! and Gotify, pushes to browsers, and messages to chats of Telegram. From the database to the receiver and back.
//! [`service`](crate::service) decides who gets what.

pub mod callback;
mod encryption;
pub mod notification;
pub mod post;
mod push_key;
pub mod schedule;
pub mod telegram;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base::clock::{Clock, Timestamp};
use base::error;
use base::ids::{AttachmentId, DeliveryId, NotificationId};
use base::language::{Said, Words};
use base::secret::random_fraction;
use base::sync::lock;
use base::url::Url;
use config::{Config, PushService, Settings};
use protocol::record::{Attachment, NotificationResult};
use store::{
    Attempt, Callback, Delivery, Destination, Durable, NotificationCause, Outgoing, PUSH, Store,
    TELEGRAM, Viewer,
};

pub use encryption::is_public_key;
use notification::Push;
use post::{CurrentPoster, Request};
use push_key::PushKey;
use schedule::Outcome;
pub use schedule::Reach;

/// Sends what goes out. Shared by all workers; each attempt blocks its worker for at most
/// `limits.callback_seconds` of network and one commit.
pub struct Sender {
    settings: Arc<Settings>,
    store: Store,
    clock: Clock,
    poster: CurrentPoster,
    data_dir: PathBuf,
    /// Absent until somebody asks for it.
    push_key: Mutex<Option<Arc<PushKey>>>,
}

/// Who gets an attempt, and how many there may be.
struct Receiver {
    name: String,
    /// Attempts made so far.
    attempts: u32,
    max_attempts: u32,
    /// When it is given up.
    expires_at: Option<Timestamp>,
    /// Whether it is a chat of Telegram, which says when it is no use to try again.
    is_chat: bool,
}

impl Sender {
    /// A sender over the settings in force and the database.
    pub fn new(settings: Arc<Settings>, store: Store, clock: Clock, data_dir: PathBuf) -> Sender {
        Sender {
            settings,
            store,
            clock,
            poster: CurrentPoster::default(),
            data_dir,
            push_key: Mutex::default(),
        }
    }

    /// Makes the next attempt and stores its outcome with the time of the following one.
    /// Returns the delivery after it, if it was one, and how it met its receiver, if anything
    /// was sent. What is not due is left as it is: it may have been found due just before
    /// another attempt was stored.
    ///
    /// Addresses, secrets and quiet hours come from the configuration in force, so that a
    /// correction also helps what waits.
    ///
    /// # Errors
    /// Those of the store. A receiver that fails is not an error here.
    pub fn attempt(&self, outgoing: Outgoing) -> error::Result<(Option<Delivery>, Option<Reach>)> {
        match outgoing {
            Outgoing::Callback(id) => self.call_back(id),
            Outgoing::Notification(id) => self.notify(id).map(|reach| (None, reach)),
        }
    }

    /// The origin of the address of a destination. Empty where it has none any more: then
    /// nothing is sent.
    pub fn receiver(&self, to: &Destination) -> String {
        let config = self.settings.current();
        let url = match to {
            Destination::Account(name) if telegram::chat_of(name).is_some() => return name.clone(),
            Destination::Service { user, service } if service == TELEGRAM => {
                return telegram::account_of(user);
            }
            Destination::Account(name) => {
                let account = config.webhook_account(name);
                account.map(|account| account.outgoing_url.as_str())
            }
            Destination::Service { user, service } => {
                let person = config.person(user);
                let settings = person.and_then(|person| person.notifications.as_ref());
                settings.and_then(|settings| settings.url_of(service))
            }
            Destination::Browser(endpoint) => Some(endpoint.expose()),
        };
        let url = url.and_then(|url| Url::parse(url).ok());
        url.map(|url| url.origin()).unwrap_or_default()
    }

    /// Tells a person's phone something at once, also in quiet hours, to see whether it
    /// arrives.
    ///
    /// # Errors
    /// `not_found` without a service for this person; `invalid_request` where only the
    /// server's environment has what is needed.
    pub fn test_notification(&self, person: &str) -> error::Result<Vec<NotificationResult>> {
        self.settings.check_person_is_set(person)?;
        self.settings.check_is_set("tls.ca_file")?;
        let config = self.settings.current();
        let settings = config
            .person(person)
            .and_then(|one| one.notifications.as_ref());
        let mut services = settings
            .into_iter()
            .flat_map(|one| one.services())
            .peekable();
        let (Some(settings), Some(_)) = (settings, services.peek()) else {
            return Err(error::Error::not_found(format!(
                "{person} has no notifications set up: set people.{person}.notifications.ntfy or \
                 people.{person}.notifications.gotify. Browsers have a switch on the page \
                 Account"
            )));
        };
        let poster = self.poster.of(&config);
        let limit = Duration::from_secs(config.limits.callback_seconds);
        let now = self.clock.now();
        let user = self.store.user(person)?;
        let words = user.map_or(Words::ENGLISH, |user| user.words());
        let send = |service: PushService| {
            let request = notification::request(settings, service, &Push::test(words))?;
            let (is_sent, message) = match poster.post(&request, limit, now) {
                Outcome::Answered { status, .. } => match status {
                    200..300 => (true, format!("sent (status {status})")),
                    401 | 403 => (false, format!("status {status}: the token is refused")),
                    404 => (false, "status 404: correct the url".to_owned()),
                    _ => (false, format!("status {status}")),
                },
                Outcome::Unanswered(reason) => (false, reason.in_words(words)),
            };
            Some(NotificationResult {
                service: service.as_str(),
                is_sent,
                message,
            })
        };
        Ok(services.filter_map(send).collect())
    }

    fn call_back(&self, id: DeliveryId) -> error::Result<(Option<Delivery>, Option<Reach>)> {
        let now = self.clock.now();
        let Some(due) = self.store.callback_to_send(id, now)? else {
            return Ok((None, None));
        };
        let config = self.settings.current();
        let name = &due.delivery.account;
        let outgoing = Outgoing::Callback(id);
        let record = |attempt, _| {
            // If the commit of a success fails, the callback is sent again, with the same id.
            let recorded = self.store.record_attempt(id, attempt)?;
            Ok(Some(recorded.uncommitted()))
        };
        if let Some(chat) = telegram::chat_of(name) {
            let receiver = Receiver {
                name: "a chat of Telegram".to_owned(),
                attempts: due.delivery.attempts,
                max_attempts: notification::MAX_ATTEMPTS,
                expires_at: None,
                is_chat: true,
            };
            let request = self.to_chat(&config, chat, &due)?;
            return self.make(&config, outgoing, &receiver, request, record);
        }
        let account = config
            .webhook_account(name)
            .ok_or_else(|| Said::of("delivery.no_account", &[("account", name)]));
        let receiver = Receiver {
            name: format!("{name:?}"),
            attempts: due.delivery.attempts,
            max_attempts: account.as_ref().map_or(0, |account| account.max_attempts),
            expires_at: None,
            is_chat: false,
        };
        let request = account.map(|account| callback::request(account, &due, now));
        self.make(&config, outgoing, &receiver, request, record)
    }

    /// The request that sends a part of a reply to a chat, while the chat is that of somebody
    /// who reads the conversation.
    fn to_chat(
        &self,
        config: &Config,
        chat: &str,
        due: &Durable<Callback>,
    ) -> error::Result<Result<Request, Said>> {
        let person = self.store.person_of_sender(TELEGRAM, chat)?;
        let readers = &due.delivery.readers;
        let reads = person.is_some_and(|person| readers.include(person.id, person.role));
        Ok(match config.telegram() {
            _ if !reads => Err(Said::of("delivery.unlinked", &[])),
            None => Err(Said::of("delivery.no_channel", &[])),
            Some(channel) => match telegram::file_in(&due.body) {
                None => Ok(telegram::request(channel, &due.body)),
                Some(id) => self
                    .file(&due.delivery, id)
                    .map(|(file, bytes)| telegram::file_request(channel, chat, (&file, &bytes))),
            },
        })
    }

    /// A file of a conversation, with its bytes.
    fn file(&self, of: &Delivery, id: AttachmentId) -> Result<(Attachment, Vec<u8>), Said> {
        let seen = self.store.snapshot(&Viewer::server());
        let found = seen.and_then(|seen| seen.attachment_in(of.conversation_id, id, usize::MAX));
        found.map_err(|error| error.said().clone())
    }

    fn notify(&self, id: NotificationId) -> error::Result<Option<Reach>> {
        let now = self.clock.now();
        let Some(due) = self.store.notification_to_send(id, now)? else {
            return Ok(None);
        };
        if due.content.is_none() {
            log::debug!("{id}: there is nothing to tell any more");
            let error = "".into();
            self.store
                .record_notification(id, Attempt::Dead { error })?;
            return Ok(None);
        }
        let config = self.settings.current();
        let person = config.person(&due.user);
        let settings = person.and_then(|person| person.notifications.as_ref());
        let own = due.quiet_hours.as_deref();
        let quiet = config::quiet_until(own, settings, now, &config.zone());
        // Somebody has chosen the time of a reminder: it comes, without a sound.
        let is_told = due.cause == NotificationCause::Told;
        if let Some(until) = quiet.filter(|_| !is_told) {
            self.store.put_off_notification(id, until)?;
            return Ok(None);
        }
        let mut rest = None;
        let request = if due.expires_at <= now {
            Err("it has expired".to_owned())
        } else if due.service == PUSH {
            self.key()
                .and_then(|key| notification::to_browser(&due, &key, &config, quiet.is_some(), now))
        } else if due.service == TELEGRAM {
            let made = telegram::notification(&due, config.telegram(), quiet.is_some());
            made.map(|(request, more)| {
                rest = more;
                request
            })
        } else {
            notification::to_service(&due, settings, quiet.is_some())
        };
        let receiver = Receiver {
            name: format!("{} by {}", due.user, due.service),
            attempts: due.attempts,
            max_attempts: notification::MAX_ATTEMPTS,
            expires_at: Some(due.expires_at),
            is_chat: due.service == TELEGRAM,
        };
        let outgoing = Outgoing::Notification(id);
        let (goes_on, reach) = self.make(
            &config,
            outgoing,
            &receiver,
            request.map_err(Said::from),
            |attempt, status| {
                match (&due.browser, status, &attempt, rest) {
                    // It is gone, and with it what it was to be told, this notification too.
                    (Some((browser, _)), Some(404 | 410), ..) => {
                        self.store.push_subscription_gone(*browser)?;
                    }
                    (_, _, Attempt::Delivered, Some(rest)) => {
                        self.store.continue_notification(id, rest)?;
                        return Ok(true);
                    }
                    _ => self.store.record_notification(id, attempt)?,
                }
                Ok(false)
            },
        )?;
        match goes_on {
            true => self.notify(id),
            false => Ok(reach),
        }
    }

    /// Makes one attempt, unless there is a reason to make none any more. `record` stores what
    /// follows; it also gets the status of the answer. Logs it, but never the body or a secret.
    /// Returns how it met the receiver, too.
    fn make<T>(
        &self,
        config: &Config,
        outgoing: Outgoing,
        receiver: &Receiver,
        request: Result<Request, Said>,
        record: impl FnOnce(Attempt, Option<u16>) -> error::Result<T>,
    ) -> error::Result<(T, Option<Reach>)> {
        let began = Instant::now();
        let number = receiver.attempts.saturating_add(1);
        let limit = Duration::from_secs(config.limits.callback_seconds);
        let poster = self.poster.of(config);
        let made = request.map(|request| poster.post(&request, limit, self.clock.now()));
        let reach = made.as_ref().ok();
        let reach = reach.map(|outcome| Reach::of(outcome, began.elapsed()));
        let (met, status) = match &made {
            Ok(Outcome::Answered { status, .. }) => (format!("status {status}"), Some(*status)),
            Ok(Outcome::Unanswered(reason)) | Err(reason) => (reason.to_string(), None),
        };
        let attempt = match made {
            Ok(Outcome::Answered {
                status: status @ (400 | 403),
                ..
            }) if receiver.is_chat => Attempt::Dead {
                error: Said::of("delivery.blocked", &[("status", &status.to_string())]),
            },
            Ok(outcome) => {
                let (now, jitter) = (self.clock.now(), random_fraction());
                schedule::after(number, receiver.max_attempts, &outcome, now, jitter)
            }
            Err(error) => Attempt::Dead { error },
        };
        let attempt = match (attempt, receiver.expires_at) {
            (Attempt::Retry { error, next_at }, Some(end)) if next_at >= end => {
                Attempt::Dead { error }
            }
            (attempt, _) => attempt,
        };
        let (level, next) = match &attempt {
            Attempt::Delivered => (log::Level::Info, "delivered".to_owned()),
            Attempt::Retry { next_at, .. } => (log::Level::Info, format!("next at {next_at}")),
            Attempt::Dead { .. } => (log::Level::Warn, "dead".to_owned()),
        };
        let (name, took) = (&receiver.name, began.elapsed().as_millis());
        let recorded = record(attempt, status);
        log::log!(
            level,
            "{outgoing} to {name}: attempt {number}: {met} in {took} ms: {next}"
        );
        Ok((recorded?, reach))
    }

    /// The public key by which push services know this server, in base64url; none when it
    /// cannot be read.
    pub fn push_key(&self) -> Option<String> {
        match self.key() {
            Ok(key) => Some(key.public_key.clone()),
            Err(error) => {
                log::warn!("no browser can be told anything: {error}");
                None
            }
        }
    }

    /// The server's key pair, made when it is first asked for.
    fn key(&self) -> Result<Arc<PushKey>, String> {
        let mut kept = lock(&self.push_key);
        if let Some(key) = &*kept {
            return Ok(Arc::clone(key));
        }
        let key = PushKey::load_or_make(&self.data_dir)?;
        Ok(Arc::clone(kept.insert(Arc::new(key))))
    }
}
