//! `hearth notify`: whether notifications reach a person's phone.

use std::time::Duration;

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::data_directory::DataDirectory;
use crate::outgoing::notification::{self, Push};
use crate::outgoing::post::Poster;
use crate::outgoing::schedule::Outcome;
use base::clock::Clock;
use net::tls::Trust;

pub const COMMAND: Command = Command::new(
    "\
notify: Send notifications to phones
`hearth help reminders` says how to set them up.",
)
.members(&[Command::new(
    "\
test NAME: Send one to a person's phone and show what the service answers
Sends it at once, also in quiet hours, and without a running server.
--data-dir",
)
.run(test)]);

/// `hearth notify test NAME`
fn test(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let settings = DataDirectory::of(arguments, context)?.settings()?;
    let config = settings.current();
    let person = config.person(name);
    let services = person.and_then(|person| person.notifications.as_ref());
    let Some(services) = services.filter(|one| one.services().next().is_some()) else {
        return Err(CliError::failed(format!(
            "{name} has no notifications set up: set people.{name}.notifications.ntfy or \
             people.{name}.notifications.gotify. Browsers are told by the switch on the page Account"
        )));
    };
    let poster = Poster::new(Trust::new(config.tls.ca_file.as_deref()));
    let limit = Duration::from_secs(config.limits.callback_seconds);
    let now = Clock::system().now();
    let mut has_failed = false;
    for service in services.services() {
        let outcome = notification::post(&poster, services, service, &Push::test(), limit, now);
        let (is_sent, said) = match outcome {
            Outcome::Answered { status, .. } => match status {
                200..300 => (true, format!("sent (status {status})")),
                401 | 403 => (false, format!("status {status}: the token is refused")),
                404 => (false, "status 404: correct the url".to_owned()),
                _ => (false, format!("status {status}")),
            },
            Outcome::Unanswered(reason) => (false, reason),
        };
        has_failed |= !is_sent;
        context.print(format_args!("{}: {said}", service.as_str()))?;
    }
    match has_failed {
        true => Err(CliError::Reported),
        false => Ok(()),
    }
}
