//! `hearth calendar` and `hearth today`: calendars that are kept elsewhere, and what a day brings.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliError, CliResult};
use super::door::Door;
use super::password;
use super::row::{Column, Shown, audience, text, time};
use super::table::truncated;

pub const COMMAND: Command = Command::new(
    "\
calendar: List and add people's calendars
A calendar stays where it is: an account of a CalDAV server (Nextcloud, Radicale, Baikal, iCloud,
Fastmail) or the address of an .ics file. Works whether or not the server runs; the server reads
them.",
)
.members(&[
    Command::new("list: List the calendars, and how reading them went").row(
        |_| Ok(json!({ "type": "list_calendars" })),
        Shown::List {
            member: "calendars",
            columns: &[
                ("id", |one| text(&one["calendar_id"])),
                ("name", |one| text(&one["name"])),
                ("owner", |one| text(&one["owner"])),
                ("seen by", |one| audience(&one["audience"])),
                ("state", |one| text(&one["state"])),
                ("read", |one| time(&one["read_at"])),
                ("events", |one| text(&one["events"])),
                ("problem", |one| truncated(&text(&one["problem"]), 200)),
            ],
            empty: "There is no calendar yet; add one with `hearth calendar add`.",
        },
    ),
    Command::new(
        "\
add NAME URL: Add a calendar of a user
URL is the address of the calendar or of its server, or of an .ics file. If an account has several
calendars, the one called NAME is taken. With --login, asks for the password in a terminal, or else
reads it as a line of standard input. Many services need a password made for this (an app password).
--owner USER      Whose calendar it is
--login NAME      The user name at the calendar's server
--household       Everybody in the household sees it (default: its owner alone)
--read-only       Never change anything in it
--refresh MINUTES  How often it is read (default: 15, and 60 without --login)",
    )
    .ask(add),
    Command::new(
        "\
update ID: Change a calendar, and read it now
`hearth calendar list` shows the ID. Without options, it is only read.
--name NAME       Another name
--url URL         Another address
--login NAME      Another user name at its server
--password        Asks for another password, or reads it as a line of standard input
--refresh MINUTES  How often it is read",
    )
    .ask(update),
    Command::new(
        "\
remove ID: Remove a calendar here
The calendar itself stays where it is kept.",
    )
    .row(
        |arguments| Ok(json!({ "type": "remove_calendar", "calendar_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Removed the calendar {}.", text(&data["name"]))),
    ),
    Command::new("events: List the events of the next 14 days").row(
        |_| Ok(json!({ "type": "list_events" })),
        Shown::List {
            member: "events",
            columns: EVENTS,
            empty: "There is no event in the next 14 days.",
        },
    ),
]);

const EVENTS: &[Column] = &[
    ("when", |event| text(&event["when"])),
    ("what", |event| truncated(&text(&event["title"]), 60)),
    ("where", |event| truncated(&text(&event["location"]), 40)),
    ("calendar", |event| text(&event["calendar"])),
    ("of", |event| text(&event["owner"])),
];

pub const TODAY: Command = Command::new(
    "\
today: Show what the day brings
Events, reminders, lists with open items, and questions that wait; with --user also the replies
that they have not read.
--user NAME  For this user (default: everybody)
--json",
)
.ask(today);

fn refresh(arguments: &Arguments) -> Result<Option<u64>, CliError> {
    arguments.number("refresh", 5..=24 * 60)
}

fn add(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let Some(owner) = arguments.text("owner")? else {
        return Err(arguments.usage("say whose calendar it is: --owner USER"));
    };
    let login = arguments.text("login")?;
    let mut request = json!({
        "type": "add_calendar",
        "owner": owner,
        "name": arguments.required(0),
        "url": arguments.required(1),
        "username": login,
        "audience": if arguments.has("household") { "household" } else { "private" },
        "read_only": arguments.has("read-only"),
        "refresh_minutes": refresh(arguments)?,
    });
    if login.is_some() {
        request["password"] = asked(context)?;
    }
    read_soon(door, &request, "Added", context)
}

fn update(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let mut request = json!({
        "type": "update_calendar",
        "calendar_id": arguments.required(0),
        "name": arguments.text("name")?,
        "url": arguments.text("url")?,
        "username": arguments.text("login")?,
        "refresh_minutes": refresh(arguments)?,
    });
    if arguments.has("password") {
        request["password"] = asked(context)?;
    }
    read_soon(door, &request, "Changed", context)
}

fn asked(context: &mut CliContext) -> Result<Value, CliError> {
    let password = password::read_secret(context, "Password at the calendar's server: ")?;
    Ok(json!(password.expose()))
}

fn read_soon(door: &mut Door, request: &Value, done: &str, context: &mut CliContext) -> CliResult {
    let data = door.ask(request)?;
    let name = text(&data["name"]);
    let when = match door.server()? {
        Some(_) => "It is being read",
        None => "It is read once the server runs",
    };
    context.print(text(&data["calendar_id"]))?;
    context.note(format!(
        "{done} {name}. {when}; `hearth calendar list` shows the result."
    ))
}

fn today(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let request = json!({ "type": "today", "user": arguments.text("user")? });
    let data = door.ask(&request)?;
    if arguments.has("json") {
        return super::table::print_json(context, &data);
    }
    let mut lines = vec![text(&data["date"])];
    let mut part = |title: &str, member: &str, line: &dyn Fn(&Value) -> String| {
        let all = data[member].as_array().map_or(&[][..], Vec::as_slice);
        if !all.is_empty() {
            lines.push(format!("\n{title}"));
            lines.extend(
                all.iter()
                    .map(|one| format!("  {}", base::visible::one_line(&line(one)))),
            );
        }
    };
    part("Events", "events", &|one| {
        let place = match one["location"].as_str() {
            Some("") | None => String::new(),
            Some(place) => format!(", {place}"),
        };
        format!(
            "{}  {}{place} ({})",
            text(&one["when"]),
            text(&one["title"]),
            text(&one["calendar"])
        )
    });
    part("Reminders", "schedules", &|one| {
        let when = one["next"].as_str().unwrap_or("told, not done yet");
        let what = one["say"].as_str().or(one["prompt"].as_str());
        format!("{when}  {}", truncated(what.unwrap_or_default(), 80))
    });
    part("Lists", "lists", &|one| {
        format!("{}: {} open", text(&one["list"]), text(&one["unchecked"]))
    });
    part("Questions", "approvals", &|one| text(&one["reason"]));
    part("Unread replies", "unread", &|one| text(&one["title"]));
    if lines.len() == 1 {
        lines.push("Nothing today.".to_owned());
    }
    context.print(lines.join("\n"))
}
