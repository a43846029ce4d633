//! What a person and the model read of calendars, in one place.

use base::language::Words;
use base::people::Audience;
use store::{Calendar, DisplayNames};

/// A calendar with its owner.
pub(super) fn named(calendar: &Calendar) -> String {
    format!("the calendar {} of {}", calendar.name, calendar.owner)
}

/// The same, and who else sees it.
pub(super) fn seen(words: Words, calendar: &Calendar, called: &DisplayNames) -> String {
    let called = |name: &String| called.get(name).unwrap_or(name).clone();
    let owner = called(&calendar.owner);
    let fields = [("calendar", calendar.name.as_str()), ("owner", &owner)];
    let key = match &calendar.audience {
        Audience::Private => "calendar.private",
        Audience::Household => "calendar.household",
        Audience::People(names) => {
            let people = words.list(&names.iter().map(called).collect::<Vec<_>>());
            let [calendar, owner] = fields;
            return words.say("calendar.people", &[calendar, owner, ("people", &people)]);
        }
    };
    words.say(key, &fields)
}

/// A line about a calendar, for the model.
pub(super) fn calendar(calendar: &Calendar, called: &DisplayNames) -> String {
    let may = match calendar.can_write && !calendar.is_read_only {
        true => "",
        false => "; it can be read alone",
    };
    let problem = match &calendar.problem {
        Some(problem) => format!("; {problem}"),
        None => String::new(),
    };
    format!("[{}{may}{problem}]", seen(Words::ENGLISH, calendar, called))
}
