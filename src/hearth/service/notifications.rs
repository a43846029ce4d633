//! Notifications: of questions, reminders and replies. The settings of a person
//! say by which services; [`Sender`](crate::outgoing::Sender) sends it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Service;
use agent::model::fence::is_of_sender;
use base::error::{Error, Result};
use base::ids::{ConversationId, UserId};
use base::language::{LANGUAGES, code_of};
use base::url::host_only;
use config::{Config, PushService, QuietHours};
use serde_json::{Value, json};
use store::{
    Approval, Identity, NewNotification, NotificationCause, PUSH, SCHEDULE_CHANNEL, TELEGRAM, Turn,
    TurnEnd, User, UserRole,
};

/// How long a question waits before phones are notified: whoever sits in front of it has
/// answered by then.
const QUESTION_DELAY: Duration = Duration::from_secs(10);
/// How long a turn takes after which its reply is news to somebody who has gone.
const LONG: Duration = Duration::from_secs(10);

/// The services of one person, and that for each of their browsers.
fn services<'a>(
    config: &'a Config,
    user: &User,
    has_chat: bool,
) -> impl Iterator<Item = &'static str> + use<'a> {
    let person = config.person(&user.name);
    let settings = person.and_then(|person| person.notifications.as_ref());
    let services = settings
        .into_iter()
        .flat_map(|settings| settings.services())
        .map(PushService::as_str);
    services.chain([PUSH]).chain(has_chat.then_some(TELEGRAM))
}

/// A notification for one person, sent by each of their services and to each of their browsers.
fn told<'a>(
    config: &'a Config,
    user: &'a User,
    conversation_id: ConversationId,
    cause: NotificationCause,
    about: i64,
    has_chat: bool,
) -> impl Iterator<Item = NewNotification> + use<'a> {
    services(config, user, has_chat).map(move |service| NewNotification {
        user_id: user.id,
        service,
        conversation_id,
        cause,
        about: Some(about),
        content: None,
        delay: Duration::ZERO,
    })
}

impl Service {
    /// Whether anybody is notified of anything.
    fn notifies(&self, config: &Config) -> bool {
        let mut people = config.people.values();
        self.tells_browsers.load(Ordering::Relaxed)
            || config.telegram().is_some()
            || people.any(|person| person.notifications.is_some())
    }

    /// The services by which this person is notified.
    pub(super) fn services_of(&self, person: UserId) -> Result<Vec<&'static str>> {
        let config = self.settings.current();
        if !self.notifies(&config) {
            return Ok(Vec::new());
        }
        let seen = self.server_snapshot()?;
        let user = seen.user_by_id(person)?;
        Ok(user.map_or(Vec::new(), |user| {
            let has_chat = self.has_chat(&config, user.id);
            services(&config, &user, has_chat).collect()
        }))
    }

    /// Sets when the caller wants quiet.
    pub(super) fn set_quiet_hours(&self, by: &Identity, hours: Option<String>) -> Result<Value> {
        let hours = match hours.as_deref().map(QuietHours::parse) {
            Some(None) => {
                return Err(Error::invalid_request(
                    "\"quiet_hours\" must be two times of day, such as 22:00-07:00",
                ));
            }
            hours => hours.flatten(),
        };
        let hours = hours.map(|hours| hours.to_string());
        self.store.set_quiet_hours(by.user_id, hours)?;
        self.look_for_due();
        self.get_quiet_hours(by)
    }

    /// When the caller has quiet, by their own choice or else by the configuration.
    pub(super) fn get_quiet_hours(&self, by: &Identity) -> Result<Value> {
        let config = self.settings.current();
        let of_config = config.person(&by.user);
        let of_config = of_config.and_then(|person| person.notifications.as_ref()?.quiet_hours);
        let own = self.store.quiet_hours(by.user_id)?;
        let hours = own.or_else(|| Some(of_config?.to_string()));
        Ok(json!({ "quiet_hours": hours }))
    }

    /// Chooses the language of what is written to the caller.
    pub(super) fn set_language(&self, by: &Identity, language: Option<&str>) -> Result<Value> {
        let code = language.map(|language| {
            code_of(language).ok_or_else(|| {
                let known = LANGUAGES.join(", ");
                Error::invalid_request(format!("\"language\" must be one of {known}, or null"))
            })
        });
        let code = code.transpose()?;
        self.store.set_language(by.user_id, code)?;
        Ok(json!({ "language": code }))
    }

    /// The notification for whoever asked, when a turn ends: that a reminder has come,
    /// or that a reply is there for which they did not wait.
    pub(super) fn notifications_of(&self, turn: &Turn, end: &TurnEnd) -> Vec<NewNotification> {
        let config = self.settings.current();
        let Some(user) = turn.user_id.filter(|_| self.notifies(&config)) else {
            return Vec::new();
        };
        let cause = match end {
            TurnEnd::Cancelled { .. } => return Vec::new(),
            _ if turn.channel == SCHEDULE_CHANNEL => NotificationCause::Reminder,
            TurnEnd::Done { .. } if self.is_away(turn, user) => NotificationCause::Reply,
            _ => return Vec::new(),
        };
        let user = match self
            .server_snapshot()
            .and_then(|seen| seen.user_by_id(user))
        {
            Ok(Some(user)) => user,
            Ok(None) => return Vec::new(),
            Err(error) => {
                log::warn!("{}: nobody is notified: {error}", turn.id);
                return Vec::new();
            }
        };
        let (conversation, about) = (turn.conversation_id, turn.id.as_i64());
        let has_chat = self.has_chat(&config, user.id);
        told(&config, &user, conversation, cause, about, has_chat).collect()
    }

    /// Whether this person has linked a chat of Telegram.
    fn has_chat(&self, config: &Config, user: UserId) -> bool {
        let senders = || self.store.senders(Some(user)).unwrap_or_default();
        config.telegram().is_some() && senders().iter().any(|one| one.account == TELEGRAM)
    }

    /// Whether this person has gone during a turn that took long. A program over HTTP
    /// has no connection that stays, and waits for its replies itself.
    fn is_away(&self, turn: &Turn, user: UserId) -> bool {
        !turn.channel.ends_with("_api")
            && !is_of_sender(&turn.channel)
            && self.clock.now().since(turn.created_at) >= LONG
            && self.connections.count(Some(user)) == 0
    }

    /// Tells those who may answer that tool calls wait: whoever asked where they may
    /// themselves, else the admins. Nobody is notified of the same call twice.
    pub(super) fn notify_of_requests(&self, approvals: &[Approval]) {
        let config = self.settings.current();
        if approvals.is_empty() || !self.notifies(&config) {
            return;
        }
        let stored = self.store.users().and_then(|users| {
            let mut new = Vec::new();
            for approval in approvals {
                let asker = users.iter().find(|user| approval.user_id == Some(user.id));
                let asker = asker.filter(|user| self.may_answer(approval, &user.identity()));
                let is_asked = |user: &&User| match asker {
                    Some(asker) => user.id == asker.id,
                    None => user.role >= UserRole::Admin,
                };
                let (conversation, about) = (approval.conversation_id, approval.id.as_i64());
                for user in users.iter().filter(is_asked) {
                    let cause = NotificationCause::Approval;
                    // Who asked from a chat has no page before them.
                    let delay = match is_of_sender(&approval.channel) {
                        true => Duration::ZERO,
                        false => QUESTION_DELAY,
                    };
                    let has_chat = self.has_chat(&config, user.id);
                    let told = told(&config, user, conversation, cause, about, has_chat);
                    let is_own = approval.user_id == Some(user.id);
                    // A chat shows all that the page does.
                    new.extend(told.map(|one| {
                        NewNotification {
                            content: (one.service == TELEGRAM)
                                .then(|| self.question_in_chat(approval, is_own, user.words())),
                            delay,
                            ..one
                        }
                    }));
                }
            }
            self.store.add_notifications(new)
        });
        if let Err(error) = stored {
            log::warn!("nobody is notified of a question: {error}");
        }
    }

    /// Tells those whose notifications somebody else has sent elsewhere since `before`: nobody is
    /// read in secret. That is set already, whether they can be told or not.
    pub(super) fn tell_of_phones(&self, before: &Config, by: &Identity) {
        self.logged("notice of a phone", self.try_tell_of_phones(before, by));
    }

    fn try_tell_of_phones(&self, before: &Config, by: &Identity) -> Result<()> {
        let after = self.settings.current();
        let users = self.store.users()?;
        let maker = users.iter().find(|user| user.id == by.user_id);
        let maker = maker.map_or(by.user.as_str(), User::called);
        for user in users.iter().filter(|user| user.id != by.user_id) {
            let [before, after] =
                [before, &*after].map(|config| config.person(&user.name)?.notifications.as_ref());
            let Some(now) = after.filter(|now| {
                let goes_out = now.services().next().is_some();
                goes_out && !before.is_some_and(|before| now.has_readers_of(before))
            }) else {
                continue;
            };
            let places: Vec<String> = now.addresses().map(host_only).collect();
            let words = user.words();
            let places = words.list(&places);
            let text = words.say("phone.moved.text", &[("name", maker), ("places", &places)]);
            let source = format!("notice:phone:{}:{}", user.id, self.clock.now().as_millis());
            self.tell(user, &words.word("phone.moved"), &text, &source)?;
        }
        Ok(())
    }

    /// Tells a person on their phones what a conversation of theirs says.
    pub(super) fn notify(
        &self,
        user: &User,
        conversation: ConversationId,
        text: &str,
    ) -> Result<()> {
        let config = self.settings.current();
        let (cause, about) = (NotificationCause::Message, conversation.as_i64());
        // Not in a chat: that may be what they are told of.
        let told = told(&config, user, conversation, cause, about, false);
        let told = told.map(|one| NewNotification {
            content: Some(text.to_owned()),
            ..one
        });
        self.store.add_notifications(told.collect()).map(drop)
    }

    /// The same at the start, for what waits: the server may have stopped before it was
    /// stored who is notified.
    pub(super) fn notify_of_waiting(&self) -> Result<()> {
        if self.notifies(&self.settings.current()) && self.queue.has_suspended() {
            let seen = self.server_snapshot()?;
            let waiting = seen.waiting_approvals()?;
            drop(seen);
            self.notify_of_requests(&waiting);
        }
        Ok(())
    }
}
