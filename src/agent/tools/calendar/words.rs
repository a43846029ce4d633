//! What a person and the model read of calendars, in one place.

use base::people::Audience;
use store::Calendar;

/// Ends "The assistant wants to ...".
pub(super) const FIND: &str = "look at the calendars";

/// The same for a new event.
pub(super) fn add(what: &str, calendar: &Calendar) -> String {
    format!("add to {}: {what}", seen(calendar))
}

/// The same for one that becomes another.
pub(super) fn change(event: &str, is_all: bool, what: &str, calendar: &Calendar) -> String {
    format!(
        "change {}{event} in {}: {what}",
        all(is_all),
        seen(calendar)
    )
}

/// The same for one that goes.
pub(super) fn delete(event: &str, is_all: bool, calendar: &Calendar) -> String {
    format!("delete {}{event} from {}", all(is_all), seen(calendar))
}

fn all(is_all: bool) -> &'static str {
    if is_all { "all times of " } else { "" }
}

/// A calendar with its owner.
pub(super) fn named(calendar: &Calendar) -> String {
    format!("the calendar {} of {}", calendar.name, calendar.owner)
}

/// The same, and who sees it.
fn seen(calendar: &Calendar) -> String {
    let by = match &calendar.audience {
        Audience::Private => "nobody else".to_owned(),
        Audience::Household => "the whole household".to_owned(),
        Audience::People(names) => names.join(", "),
    };
    format!("{}, which {by} can see", named(calendar))
}

/// A line about a calendar, for the model.
pub(super) fn calendar(calendar: &Calendar) -> String {
    let may = match calendar.can_write && !calendar.is_read_only {
        true => "",
        false => "; it can be read alone",
    };
    let problem = match &calendar.problem {
        Some(problem) => format!("; {problem}"),
        None => String::new(),
    };
    format!("[{}{may}{problem}]", seen(calendar))
}
