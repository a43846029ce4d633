//! `hearth memory`, `list`, `schedule` and `search`: the household's things.

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::command::Command;
use super::context::CliError;
use super::row::{Shown, audience, text, time};
use super::table::truncated;
use super::token::names;
use protocol::command::{LIST_DEFAULT, LIST_LIMIT};

pub const MEMORY: Command = Command::new(
    "\
memory: See and delete what the assistant remembers
Works whether or not the server runs, and also shows what is private to people.",
)
.members(&[
    Command::new("list: List everything that is remembered, newest first").row(
        |_| Ok(json!({ "type": "list_memories" })),
        memories("Nothing is remembered yet. Tell the assistant: remember that ..."),
    ),
    Command::new(
        "\
search WORD [WORD...]: Search what is remembered, best match first
Any of the words may match, also as the start of a longer word.
--limit N  Show at most N (default: 50)",
    )
    .row(
        |arguments| {
            Ok(json!({
                "type": "list_memories",
                "query": arguments.joined(),
                "limit": limit(arguments, LIST_DEFAULT)?,
            }))
        },
        memories("No memory matches."),
    ),
    Command::new(
        "\
add TEXT [TEXT...]: Have the assistant remember a fact, and print its ID
Everybody in the household sees it.
--audience NAME,...  Who sees it (default: household)",
    )
    .row(
        |arguments| {
            let audience = named_audience(arguments)?;
            let content = arguments.joined();
            Ok(json!({ "type": "add_memory", "content": content, "audience": audience }))
        },
        Shown::Line(|memory| text(&memory["memory_id"])),
    ),
    Command::new(
        "\
change ID [TEXT...]: Change a memory or who sees it, and print its new ID
--audience NAME,...  Who sees it: household, private, or names",
    )
    .row(
        |arguments| {
            let words: Vec<&str> = arguments.operands_after(1).collect();
            let content = (!words.is_empty()).then(|| words.join(" "));
            let audience = named_audience(arguments)?;
            if content.is_none() && audience.is_none() {
                return Err(arguments.usage("give its new text, or --audience"));
            }
            Ok(json!({
                "type": "update_memory",
                "memory_id": arguments.required(0),
                "content": content,
                "audience": audience,
            }))
        },
        Shown::Line(|memory| text(&memory["memory_id"])),
    ),
    Command::new(
        "\
remove ID: Remove a memory
`hearth memory list` shows the ID.",
    )
    .row(
        |arguments| Ok(json!({ "type": "delete_memory", "memory_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Removed {}.", text(&data["memory_id"]))),
    ),
]);

/// `--audience`, as a request has it.
fn named_audience(arguments: &Arguments) -> Result<Option<Value>, CliError> {
    let audience = arguments.text("audience")?;
    Ok(audience.map(|audience| match audience {
        "household" | "private" => json!(audience),
        list => json!(names(list)),
    }))
}

const fn memories(empty: &'static str) -> Shown {
    Shown::List {
        member: "memories",
        columns: &[
            ("id", |memory| text(&memory["id"])),
            ("since", |memory| time(&memory["created_at"])),
            ("said by", |memory| text(&memory["speaker"])),
            ("seen by", |memory| audience(&memory["audience"])),
            ("what", |memory| truncated(&text(&memory["content"]), 100)),
        ],
        empty,
    }
}

pub const LIST: Command = Command::new(
    "\
list: See and change the household's lists: shopping, to-do
Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
show [LIST]: Show what is on a list, or which lists there are
--json",
    )
    .ask(|door, arguments, context| {
        let (request, shown) = match arguments.operand(0) {
            Some(list) => (json!({ "type": "get_list", "list": list }), ITEMS),
            None => (json!({ "type": "list_lists" }), LISTS),
        };
        shown.print(&door.ask(&request)?, arguments, context)
    }),
    Command::new(
        "\
add LIST ITEM [ITEM...]: Add items to a list
Quote an item of several words. A list that does not exist is made.",
    )
    .row(|arguments| Ok(change(arguments, "add")), ITEMS),
    Command::new("check LIST ITEM [ITEM...]: Tick off items")
        .row(|arguments| Ok(change(arguments, "check")), ITEMS),
    Command::new("uncheck LIST ITEM [ITEM...]: Undo the ticking off of items")
        .row(|arguments| Ok(change(arguments, "uncheck")), ITEMS),
    Command::new("remove LIST ITEM [ITEM...]: Remove items")
        .row(|arguments| Ok(change(arguments, "remove")), ITEMS),
    Command::new("delete LIST: Delete a list with all that is on it").row(
        |arguments| Ok(json!({ "type": "delete_list", "list": arguments.required(0) })),
        Shown::Sentence(|data| format!("Deleted the list {}.", text(&data["list"]))),
    ),
]);

const LISTS: Shown = Shown::List {
    member: "lists",
    columns: &[
        ("list", |list| text(&list["list"])),
        ("open", |list| text(&list["unchecked"])),
        ("items", |list| text(&list["items"])),
    ],
    empty: "There are no lists yet. Begin one: hearth list add shopping milk",
};

const ITEMS: Shown = Shown::Record {
    member: "items",
    columns: &[
        ("done", |item| {
            if item["checked"] == true { "x" } else { "-" }.to_owned()
        }),
        ("item", |item| text(&item["text"])),
    ],
    empty: "There is nothing on this list.",
};

fn change(arguments: &Arguments, how: &str) -> Value {
    let items: Vec<&str> = arguments.operands_after(1).collect();
    json!({ "type": "update_list", "list": arguments.required(0), how: items })
}

pub const SCHEDULE: Command = Command::new(
    "\
schedule: Let the assistant do something later, once or repeatedly
Works whether or not the server runs.",
)
.members(&[
    Command::new(
        "\
add TEXT [TEXT...]: Add a prompt that runs at a time, or a reminder, and print its ID
If a prompt finds nothing to tell, nobody is notified. Times are in the
setting time_zone. What was due while the server was stopped runs once at its
next start, marked as late.
--at TIME          \"6pm\", \"in 20 minutes\", \"tomorrow at 18:00\", 2026-11-22T18:30,
                   or repeatedly: \"every weekday at 7\", \"every other Friday\"
--say              A reminder: tell TEXT as it is, without a model
--people NAMES     Remind all of these, separated by commas; with --say
--on CHANGE        In place of a time: \"list NAME\", \"webhook ACCOUNT\", or so many
                   minutes before an event: \"event 30\", \"event 30 CALENDAR\"
--if-changed JSON  An array of calls {\"tool\", \"arguments\"}: they run first, and without a
                   change of their results no model is asked
--cron FIELDS      Repeatedly: minute, hour, day, month, weekday,
                   such as \"30 7 * * mon-fri\", or @daily
--conversation ID  Where it runs (default: its own conversation)
--webhook NAME     The webhook account that also gets the replies",
    )
    .row(
        |arguments| {
            let (at, cron, on) = (
                arguments.text("at")?,
                arguments.text("cron")?,
                arguments.text("on")?,
            );
            if [&at, &cron, &on].iter().filter(|one| one.is_some()).count() != 1 {
                return Err(arguments
                    .usage("give either --at, such as \"tomorrow at 18:00\", --cron or --on"));
            }
            let watched = arguments.text("if-changed")?;
            let watched: Option<Value> = watched
                .map(serde_json::from_str)
                .transpose()
                .map_err(|_| arguments.usage("--if-changed must be a JSON array"))?;
            let people = arguments.text("people")?.unwrap_or_default();
            let people = names(people);
            let kind = if arguments.has("say") {
                "say"
            } else {
                "prompt"
            };
            Ok(json!({
                "type": "create_schedule",
                kind: arguments.joined(),
                "at": at,
                "cron": cron,
                "on": on,
                "people": people,
                "only_if_changed": watched,
                "conversation_id": arguments.text("conversation")?,
                "webhook": arguments.text("webhook")?,
            }))
        },
        Shown::Result(
            |data| text(&data["schedule_id"]),
            |data| match data["on"].as_str() {
                _ if data["asks"] == true => {
                    "Whoever is reminded is asked first whether you may.".to_owned()
                }
                Some(_) => format!("Next run: {}", text(&data["when"])),
                None => format!("Next run: {}", text(&data["next"])),
            },
        ),
    ),
    Command::new("list: List the schedules, the next one first").row(
        |_| Ok(json!({ "type": "list_schedules" })),
        Shown::List {
            member: "schedules",
            columns: &[
                ("id", |schedule| text(&schedule["schedule_id"])),
                ("next", |schedule| {
                    if schedule["asks"] == true {
                        "asks you".to_owned()
                    } else if schedule["paused"] == true {
                        "paused".to_owned()
                    } else if schedule["next"].is_null() && schedule["told_at"].is_string() {
                        "told".to_owned()
                    } else {
                        text(&schedule["next"])
                    }
                }),
                ("repeats", |schedule| {
                    let comes_again = !schedule["cron"].is_null() || !schedule["on"].is_null();
                    text(&schedule[if comes_again { "when" } else { "cron" }])
                }),
                ("last", |schedule| text(&schedule["last_run"]["outcome"])),
                ("webhook", |schedule| text(&schedule["webhook"])),
                ("prompt", |schedule| {
                    let say = schedule["say"].as_str().map(|say| format!("say: {say}"));
                    truncated(&say.unwrap_or_else(|| text(&schedule["prompt"])), 60)
                }),
            ],
            empty: "Nothing is scheduled; add something with `hearth schedule add`.",
        },
    ),
    Command::new(
        "\
pause ID: Pause a schedule until it is resumed
`hearth schedule list` shows the ID.",
    )
    .row(
        |arguments| Ok(json!({ "type": "pause_schedule", "schedule_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Paused {}.", text(&data["schedule_id"]))),
    ),
    Command::new("resume ID: Resume a paused schedule").row(
        |arguments| {
            let id = arguments.required(0);
            Ok(json!({ "type": "pause_schedule", "schedule_id": id, "paused": false }))
        },
        Shown::Sentence(|data| {
            let (id, next) = (text(&data["schedule_id"]), text(&data["next"]));
            format!("Resumed {id}; next run: {next}")
        }),
    ),
    Command::new(
        "\
runs ID: Show the latest runs of a schedule and what they cost
--json",
    )
    .row(
        |arguments| {
            Ok(json!({ "type": "list_schedule_runs", "schedule_id": arguments.required(0) }))
        },
        Shown::List {
            member: "runs",
            columns: &[
                ("when", |run| time(&run["at"])),
                ("outcome", |run| text(&run["outcome"])),
                ("tokens in", |run| text(&run["input_tokens"])),
                ("tokens out", |run| text(&run["output_tokens"])),
            ],
            empty: "It has not run yet.",
        },
    ),
    Command::new("done ID: Finish a reminder that has come").row(
        |arguments| Ok(json!({ "type": "finish_reminder", "schedule_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Finished {}.", text(&data["schedule_id"]))),
    ),
    Command::new(
        "\
snooze ID: Have a reminder come again later
--minutes N  How long until then (default: 10)",
    )
    .row(
        |arguments| {
            Ok(json!({
                "type": "snooze_reminder",
                "schedule_id": arguments.required(0),
                "minutes": arguments.number("minutes", 1..=10_080)?,
            }))
        },
        Shown::Sentence(|data| {
            let (id, next) = (text(&data["schedule_id"]), text(&data["next"]));
            format!("Again as {id}: {next}")
        }),
    ),
    Command::new("remove ID: Remove a schedule").row(
        |arguments| Ok(json!({ "type": "delete_schedule", "schedule_id": arguments.required(0) })),
        Shown::Sentence(|data| format!("Removed {}.", text(&data["schedule_id"]))),
    ),
]);

pub const SEARCH: Command = Command::new(
    "\
search WORD [WORD...]: Search the messages of all conversations
Shows the messages that match these words or this question, best match first.
Private conversations are included: whoever owns the data directory can read them.
--limit N  Show at most N (default: 20)",
)
.row(
    |arguments| {
        Ok(json!({
            "type": "search_messages",
            "query": arguments.joined(),
            "limit": limit(arguments, 20)?,
        }))
    },
    Shown::List {
        member: "messages",
        columns: &[
            ("conversation", |message| text(&message["conversation_id"])),
            ("when", |message| time(&message["timestamp"])),
            ("who", |message| {
                if message["role"] == "assistant" {
                    "assistant".to_owned()
                } else {
                    text(&message["speaker"])
                }
            }),
            ("what", |message| truncated(&text(&message["snippet"]), 100)),
        ],
        empty: "No message contains all these words.",
    },
);

/// `--limit`.
pub fn limit(arguments: &Arguments, default: u64) -> Result<u64, CliError> {
    Ok(arguments
        .number("limit", 1..=LIST_LIMIT)?
        .unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use crate::cli::tests::{DataDirectoryUnderTest, run_with};
    use base::clock::Clock;
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
            row.ends_with(" 08:00  every weekday at 8:00  -     -        Water the plants"),
            "{listed}"
        );
        let paused = root.run(&format!("schedule pause {id}"), "");
        assert_eq!(paused.errors, format!("Paused {id}.\n"));
        assert!(root.run("schedule list", "").output.contains("  paused  "));
        let resumed = root.run(&format!("schedule resume {id}"), "");
        let told = resumed
            .errors
            .strip_prefix(&format!("Resumed {id}; next run: "));
        assert!(told.unwrap().contains(", 08:00"), "{}", resumed.errors);
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
                2 | schedule add --at +1m                        | TEXT is missing
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
