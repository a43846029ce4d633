//! What a person or a model asks for as a reminder or routine, checked and read.

use serde_json::Value;

use base::calendar::Timing;
use base::clock::Timestamp;
use base::error::{Error, Result};
use base::people::{Audience, UserRole, folded};
use config::Config;
use store::{NewSchedule, Store, Trigger, User, WatchedCall};

/// Longest that a reminder is put off.
pub const MOST_SNOOZE_MINUTES: u64 = 7 * 24 * 60;
/// Most calls that a routine watches.
const MOST_WATCHED: usize = 8;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleRequest<'a> {
    /// A reminder's text, sent as it is.
    pub say: Option<&'a str>,
    /// What the assistant is asked.
    pub prompt: Option<&'a str>,
    /// A time.
    pub at: Option<&'a str>,
    /// Repeated times.
    pub cron: Option<&'a str>,
    /// A change that it waits for.
    pub on: Option<&'a str>,
    /// Who is reminded, if not only who asks.
    pub people: &'a [String],
    /// The calls that run first.
    pub only_if_changed: Option<&'a Value>,
}

impl ScheduleRequest<'_> {
    /// The schedules to store: those of the maker, and of each other person who is to be
    /// reminded. `maker` says everything else.
    ///
    /// # Errors
    /// `invalid_request`; `not_found` for a person or an account.
    pub fn schedules(
        &self,
        maker: NewSchedule,
        config: &Config,
        store: &Store,
        now: Timestamp,
    ) -> Result<Vec<NewSchedule>> {
        let (text, is_said) = match (self.say, self.prompt) {
            (Some(say), None) => (say, true),
            (None, Some(prompt)) => (prompt, false),
            _ => {
                return Err(Error::invalid_request(
                    "give either \"say\", a reminder that is told as it is, or \"prompt\", what \
                     the assistant is to do",
                ));
            }
        };
        let trigger = self.on.map(str::parse::<Trigger>).transpose()?;
        let timing = match &trigger {
            Some(_) if self.at.is_some() || self.cron.is_some() => {
                return Err(Error::invalid_request(
                    "give one of \"at\", \"cron\" and \"on\"",
                ));
            }
            Some(Trigger::Webhook(account)) => {
                // It would never run for somebody who does not see what comes there.
                let person = maker.owner_id.and(maker.owner.as_deref());
                config.account_seen_by(account, person)?;
                None
            }
            Some(Trigger::List(_) | Trigger::Event { .. }) => None,
            None => Some(Timing::new(self.at, self.cron, &config.zone(), now)?),
        };
        let made = NewSchedule {
            text: text.to_owned(),
            is_said,
            timing,
            trigger,
            only_if_changed: self.watched(is_said)?,
            ..maker
        };
        match self.people {
            [] => Ok(vec![made]),
            people if is_said => reminders(made, people, store),
            _ => Err(Error::invalid_request(
                "\"people\" go with \"say\": a routine runs for its maker alone",
            )),
        }
    }

    fn watched(&self, is_said: bool) -> Result<Vec<WatchedCall>> {
        let Some(given) = self.only_if_changed else {
            return Ok(Vec::new());
        };
        let calls: Vec<WatchedCall> = serde_json::from_value(given.clone()).map_err(|_| {
            Error::invalid_request(
                "\"only_if_changed\" must be an array of {\"tool\": NAME, \"arguments\": {...}}",
            )
        })?;
        if is_said && !calls.is_empty() {
            return Err(Error::invalid_request(
                "\"only_if_changed\" goes with \"prompt\"",
            ));
        }
        if calls.len() > MOST_WATCHED {
            return Err(Error::invalid_request(format!(
                "\"only_if_changed\" may have {MOST_WATCHED} calls"
            )));
        }
        Ok(calls)
    }
}

/// The same reminder for each of these people, in a conversation of their own unless they are
/// who makes it. Others read whose it is.
fn reminders(maker: NewSchedule, people: &[String], store: &Store) -> Result<Vec<NewSchedule>> {
    let is_maker = |name: &String| {
        let own = maker.owner.as_ref();
        own.is_some_and(|own| folded(own) == folded(name))
    };
    let known = match (&maker.owner, maker.owner_id) {
        (Some(name), Some(_)) => store.user(name)?,
        _ => None,
    };
    let called = known.as_ref().map(User::called).or(maker.owner.as_deref());
    let for_others = called.map(|name| [("name", name), ("text", maker.text.as_str())]);
    let mut all = Vec::new();
    let mut named: Vec<&String> = people.iter().collect();
    named.sort_by_key(|name| folded(name));
    named.dedup_by_key(|name| folded(name));
    if named.iter().any(|name| is_maker(name)) {
        all.push(maker.clone());
    }
    for name in named.into_iter().filter(|name| !is_maker(name)) {
        let user = store.user(name)?.filter(|user| user.role >= UserRole::User);
        let user =
            user.ok_or_else(|| Error::not_found(format!("there is nobody called {name:?}")))?;
        all.push(NewSchedule {
            text: match &for_others {
                Some(fields) => user.words().say("reminder.from", fields),
                None => maker.text.clone(),
            },
            owner_id: Some(user.id),
            conversation_id: None,
            audience: Audience::Private,
            account: None,
            ..maker.clone()
        });
    }
    Ok(all)
}
