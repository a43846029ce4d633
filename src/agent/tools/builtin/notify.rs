//! A message to the phone of somebody of the household.

use std::time::Duration;

use serde_json::json;

use crate::tools::definition::{Arguments, Definition, ToolContext, required_text, text};
use crate::tools::function::FunctionTool;
use crate::tools::wording::{Approver, Intent};
use base::error::Error;
use base::people::UserRole;
use config::PushService;
use store::{NewNotification, NotificationCause, PUSH, User, Viewer};

/// Longest message, in characters.
const MOST_CHARACTERS: usize = 500;

pub(super) fn notify() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "notify",
            "Push a message to the phone of the person who asks, or of another of the \
             household. Replies to reminders are pushed anyway.",
            json!({
                "message": {"type": "string"},
                "person": {"type": "string", "description": "default: who asks"},
            }),
            &["message"],
        ),
        intent,
        run,
    }
}

fn intent(arguments: &Arguments, approver: &Approver<'_>) -> Option<Intent> {
    let message = text(arguments, "message")?;
    let person = text(arguments, "person").unwrap_or_default();
    let key = match person {
        "" => "action.notify.asker",
        _ => "action.notify",
    };
    approver.intent(key, &[("person", person), ("message", message)])
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let message = required_text(arguments, "message")?;
    if message.chars().count() > MOST_CHARACTERS {
        return Err(format!(
            "the argument \"message\" may have {MOST_CHARACTERS} characters"
        ));
    }
    let user = addressee(arguments, context)?;
    let is_asker = context.user_id == Some(user.id);
    let person = context.config.person(&user.name);
    let settings = person.and_then(|person| person.notifications.as_ref());
    let told = context.store.is_told_by_push(user.id)?;
    if settings.is_none() && !told {
        return Err(format!("{} has no notifications set up", user.name));
    }
    // Browsers get it whole, encrypted.
    let has_text = told || settings.is_some_and(|settings| settings.content);
    if !has_text && !is_asker {
        return Err(format!(
            "the notifications of {} carry no text (people.{}.notifications.content), so the \
             message would not reach them",
            user.name, user.name
        ));
    }
    let conversation_id = context.conversation()?;
    let services = settings.into_iter().flat_map(|one| one.services());
    let services = services.map(PushService::as_str).chain([PUSH]);
    let new: Vec<NewNotification> = services
        .map(|service| NewNotification {
            user_id: user.id,
            service,
            conversation_id,
            cause: NotificationCause::Message,
            about: None,
            content: Some(message.to_owned()),
            delay: Duration::ZERO,
        })
        .collect();
    if context.store.add_notifications(new)? == 0 {
        return Err(format!(
            "nothing was sent: too many messages wait for {} already",
            user.name
        ));
    }
    let zone = context.config.zone();
    let now = context.clock.now();
    let own = context.store.quiet_hours(user.id)?;
    let quiet = config::quiet_until(own.as_deref(), settings, now, &zone);
    let when = match quiet {
        Some(until) => format!("is sent after the quiet hours, at {}", zone.minute(until)),
        None => "is being sent".to_owned(),
    };
    Ok(match has_text {
        true => format!("The message to {} {when}.", user.name),
        false => format!(
            "A notification without the text {when}: {} reads it in this conversation.",
            user.name
        ),
    })
}

/// Who gets it: a person of the household who is named, or else whoever asks.
fn addressee(arguments: &Arguments, context: &ToolContext<'_>) -> Result<User, String> {
    let Some(name) = text(arguments, "person") else {
        let nobody = || "no person has asked: name one as \"person\"".to_owned();
        let id = context.user_id.ok_or_else(nobody)?;
        let seen = context.store.snapshot(&Viewer::server())?;
        return seen.user_by_id(id)?.ok_or_else(nobody);
    };
    let by_name = context.store.user(name)?;
    let found = match by_name {
        Some(user) => Some(user),
        None => context.store.user_called(name)?,
    };
    found
        .filter(|user| user.role >= UserRole::User || context.user_id == Some(user.id))
        .ok_or_else(|| Error::not_found(format!("there is nobody called {name:?}")).into())
}
