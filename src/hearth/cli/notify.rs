//! `hearth notify`: whether notifications reach a person's phone.

use serde_json::json;

use super::command::Command;
use super::context::CliError;
use super::row::text;
use base::visible::one_line;

pub const COMMAND: Command = Command::new(
    "\
notify: Send notifications to phones
`hearth help reminders` says how to set them up.",
)
.members(&[Command::new(
    "\
test NAME: Send one to a person's phone and show what the service answers
Sends it at once, also in quiet hours, and without a running server.",
)
.ask(|door, arguments, context| {
    let name = arguments.required(0);
    let data = door.ask(&json!({ "type": "test_notification", "name": name }))?;
    let results = data["results"].as_array().map_or(&[][..], Vec::as_slice);
    for result in results {
        let (service, message) = (text(&result["service"]), text(&result["message"]));
        context.print(one_line(&format!("{service}: {message}")))?;
    }
    if results.iter().all(|result| result["is_sent"] == true) {
        Ok(())
    } else {
        Err(CliError::Reported)
    }
})]);
