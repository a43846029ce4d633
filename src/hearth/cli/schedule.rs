//! `hearth schedule`: reminders and routines. Works on the database directly,
//! which a running server checks every second.

use super::arguments::Arguments;
use super::command::Command;
use super::context::{CliContext, CliResult};
use super::data_directory::{DataDirectory, open_store};
use super::table::{ListView, truncated};
use crate::service::views;
use base::calendar::{Timing, Zone};
use base::clock::Clock;
use base::ids::{ConversationId, ScheduleId};
use serde_json::json;
use store::{Audience, NewSchedule, SCHEDULE_CHANNEL, Schedule, Viewer};

pub const COMMAND: Command = Command::new(
    "\
schedule: Let the assistant do something later, once or repeatedly
Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
add PROMPT [PROMPT...]: Add a prompt that runs at a time, and print its ID
Times are in the setting time_zone. What was due while the server was stopped runs once at its
next start, marked as late.
--at TIME          Once: 18:30, 2026-11-22T18:30, or +20m (s, m, h, d)
--cron FIELDS      Repeatedly: minute, hour, day, month, weekday,
                   such as \"30 7 * * mon-fri\"
--conversation ID  Where it runs (default: its own conversation)
--webhook NAME     The webhook account that also gets the replies
--data-dir",
    )
    .run(add),
    Command::new("list: List the schedules, the next one first\n--json\n--data-dir").run(list),
    Command::new(
        "\
pause ID: Pause a schedule until it is resumed
`hearth schedule list` shows the ID.
--data-dir",
    )
    .run(pause),
    Command::new("resume ID: Resume a paused schedule\n--data-dir").run(resume),
    Command::new("remove ID: Remove a schedule\n--data-dir").run(remove),
]);

/// Longest prompt in the table; `--json` shows all of it.
const PROMPT_CHARACTERS: usize = 60;

/// `hearth schedule add PROMPT...`
fn add(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let (at, cron) = (arguments.text("at")?, arguments.text("cron")?);
    if at.is_some() == cron.is_some() {
        return Err(arguments.usage("give either --at, for a single run, or --cron"));
    }
    let conversation_id: Option<ConversationId> = arguments
        .text("conversation")?
        .map(str::parse)
        .transpose()?;
    let account = arguments.text("webhook")?;
    let directory = DataDirectory::of(arguments, context)?;
    let config = directory.settings()?.current();
    if let Some(name) = account {
        config.existing_account(name)?;
    }
    let (clock, zone) = (Clock::system(), config.zone());
    let timing = Timing::new(at, cron, &zone, clock.now())?;
    let store = directory.open_store()?;
    let schedule = store.add_schedule(
        &Viewer::server(),
        NewSchedule {
            is_outside: false,
            prompt: arguments.joined().unwrap_or_default(),
            owner: None,
            owner_id: None,
            conversation_id,
            audience: Audience::Household,
            channel: SCHEDULE_CHANNEL.to_owned(),
            account: account.map(str::to_owned),
            timing,
        },
    )?;
    store.close();
    let next = zone.readable(schedule.timing.next_at);
    writeln!(context.output, "{}", schedule.id)?;
    context.note(format_args!("Next run: {next}"))
}

/// `hearth schedule list`
fn list(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let directory = DataDirectory::of(arguments, context)?;
    let store = directory.open_store()?;
    let schedules = store.schedules(&Viewer::server())?;
    store.close();
    // JSON needs no time zone, and so no valid configuration.
    let zone = match arguments.has("json") {
        true => Zone::system(),
        false => directory.settings()?.current().zone(),
    };
    let list = ListView {
        columns: &["id", "next", "repeats", "webhook", "prompt"],
        row: &|schedule| row(schedule, &zone),
        json: &|schedule| json!(views::schedule(schedule)),
        empty: "Nothing is scheduled; add something with `hearth schedule add`.",
    };
    list.print(&schedules, arguments, context)
}

/// `hearth schedule remove ID`
fn remove(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: ScheduleId = arguments.required(0).parse()?;
    open_store(arguments, context)?.delete_schedule(&Viewer::server(), id)?;
    context.note(format_args!("Removed {id}."))
}

/// `hearth schedule pause ID`
fn pause(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: ScheduleId = arguments.required(0).parse()?;
    let store = open_store(arguments, context)?;
    let schedule = store.schedule(&Viewer::server(), id)?;
    store.pause_schedule(&Viewer::server(), id, true, schedule.timing.next_at)?;
    store.close();
    context.note(format_args!("Paused {id}."))
}

/// `hearth schedule resume ID`
fn resume(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let id: ScheduleId = arguments.required(0).parse()?;
    let directory = DataDirectory::of(arguments, context)?;
    let zone = directory.settings()?.current().zone();
    let clock = Clock::system();
    let store = directory.open_store()?;
    let next_at = store
        .schedule(&Viewer::server(), id)?
        .timing
        .after(clock.now(), &zone);
    store.pause_schedule(&Viewer::server(), id, false, next_at)?;
    store.close();
    context.note(format_args!(
        "Resumed {id}; next run: {}",
        zone.readable(next_at)
    ))
}

fn row(schedule: &Schedule, zone: &Zone) -> Vec<String> {
    let cron = schedule.timing.cron.as_ref().map(ToString::to_string);
    vec![
        schedule.id.to_string(),
        match schedule.is_paused {
            true => "paused".to_owned(),
            false => zone.readable(schedule.timing.next_at),
        },
        cron.unwrap_or_else(|| "-".to_owned()),
        schedule.account.clone().unwrap_or_else(|| "-".to_owned()),
        truncated(&schedule.prompt, PROMPT_CHARACTERS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{DataDirectoryUnderTest, run_with};
    use serde_json::Value;
    use store::Store;

    fn home() -> DataDirectoryUnderTest {
        let root = DataDirectoryUnderTest::default();
        let directory = root.data_directory();
        Store::open(&directory.database(), Clock::system())
            .unwrap()
            .close();
        std::fs::write(directory.config(), r#"{"time_zone": "UTC"}"#).unwrap();
        root
    }

    #[test]
    fn schedules_are_added_paused_and_removed() {
        let root = home();
        let nothing = root.run("schedule list", "");
        assert!(nothing.errors.contains("Nothing is scheduled"));
        let path = root.path().to_str().unwrap();
        let words = [
            "schedule",
            "add",
            "--cron",
            "0 8 * * mon-fri",
            "--data-dir",
            path,
            "Water",
            "the plants",
        ];
        let added = run_with(&words, "", &[]);
        assert_eq!(added.code, 0, "{}", added.errors);
        assert!(added.errors.ends_with(" 08:00\n"), "{}", added.errors);
        let id = added.output.trim();
        let listed = root.run("schedule list", "").output;
        let row = listed.lines().nth(1).unwrap();
        assert!(row.starts_with(id), "{listed}");
        assert!(
            row.ends_with(" 08:00  0 8 * * mon-fri  -        Water the plants"),
            "{listed}"
        );
        let paused = root.run(&format!("schedule pause {id}"), "");
        assert_eq!(paused.errors, format!("Paused {id}.\n"));
        assert!(root.run("schedule list", "").output.contains("  paused  "));
        let resumed = root.run(&format!("schedule resume {id}"), "");
        assert!(
            resumed
                .errors
                .starts_with(&format!("Resumed {id}; next run: 2"))
        );
        let listed = root.run("schedule list --json", "").output;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["schedule_id"], id);
        assert_eq!(listed[0]["cron"], "0 8 * * mon-fri");
        assert_eq!(listed[0]["paused"], false);
        let removed = root.run(&format!("schedule remove {id}"), "");
        assert_eq!(removed.errors, format!("Removed {id}.\n"));
        assert_eq!(root.run(&format!("schedule remove {id}"), "").code, 1);
    }

    #[test]
    fn mistakes_are_explained() {
        let root = home();
        root.check(
            "
                2 | schedule add Bins                            | give either --at
                2 | schedule add --at +1m                        | PROMPT is missing
                1 | schedule add --at 2020-01-01T00:00 Bins      | is in the past
                1 | schedule add --at soon Bins                  | must be a time such as
                1 | schedule add --cron 1 Bins                   | five fields
                1 | schedule add --at +1m --webhook ci Bins      | no webhook account
                1 | schedule add --at +1m --conversation x Bins  | no conversation
                1 | schedule add --at +1m --conversation conv_0000000000001 Bins | there is no conversation
                1 | schedule pause sched_0000000000001           | there is no schedule
                1 | schedule resume x                            | there is no schedule
            ",
        );
    }
}
