//! The time of day. It is a tool rather than part of the system prompt, so that
//! the prompt stays the same from turn to turn and can be cached.

use jiff::tz::TimeZone;
use serde_json::json;

use crate::tools::definition::{Arguments, Definition, ToolContext, text};
use crate::tools::function::FunctionTool;
use base::calendar::{Zone, month};
use base::clock::Timestamp;

pub(super) fn current_time() -> FunctionTool {
    FunctionTool {
        definition: Definition::builtin(
            "current_time",
            "Day, date and time.",
            json!({"time_zone": {
                "type": "string",
                "description": "IANA; else here",
            }}),
            &[],
        )
        .read_only(),
        intent: |_, approver| approver.intent("action.current_time", &[]),
        run,
    }
}

fn run(arguments: &Arguments, context: &ToolContext<'_>) -> Result<String, String> {
    let zone = match text(arguments, "time_zone") {
        None => context.config.zone(),
        Some(name) => Zone::named(name)?,
    };
    describe(context.clock.now(), zone.rules().clone())
}

fn describe(now: Timestamp, zone: TimeZone) -> Result<String, String> {
    let name = match zone.iana_name() {
        Some(name) => format!("{name}, "),
        None => String::new(),
    };
    let time = jiff::Timestamp::from_millisecond(now.as_millis())
        .map_err(|_| "the clock of this computer is set to no possible time".to_owned())?
        .to_zoned(zone);
    // As in 2026-11-21T10:30:00+01:00.
    let iso = format!("{:.0}", time.timestamp().display_with_offset(time.offset()));
    let (clock, offset) = iso.split_at(iso.len() - "+00:00".len());
    Ok(format!(
        "{:?}, {} {} {}, {} ({name}UTC{offset}), ISO 8601: {iso}",
        time.weekday(),
        time.day(),
        month(time.date()),
        time.year(),
        &clock[clock.len() - "00:00:00".len()..],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::Household;

    #[test]
    fn the_time_is_told_in_words_and_in_iso_8601() {
        let now = Timestamp::from_millis(1_795_253_400_125);
        for (zone, text) in [
            (
                TimeZone::UTC,
                "Saturday, 21 November 2026, 09:30:00 (UTC, UTC+00:00), ISO 8601: 2026-11-21T09:30:00+00:00",
            ),
            (
                TimeZone::posix("EST5").unwrap(),
                "Saturday, 21 November 2026, 04:30:00 (UTC-05:00), ISO 8601: 2026-11-21T04:30:00-05:00",
            ),
            (
                TimeZone::posix("<+0545>-5:45").unwrap(),
                "Saturday, 21 November 2026, 15:15:00 (UTC+05:45), ISO 8601: 2026-11-21T15:15:00+05:45",
            ),
        ] {
            assert_eq!(describe(now, zone).unwrap(), text);
        }
    }

    #[test]
    fn an_unknown_zone_is_named() {
        let household = Household::new();
        for name in ["Mars/Olympus", "../../etc/passwd", "10"] {
            let problem = household
                .run("current_time", json!({ "time_zone": name }))
                .unwrap_err();
            assert!(
                problem.contains(name) && problem.contains("IANA"),
                "{problem}"
            );
        }
    }

    #[test]
    fn the_tool_answers_in_the_household_s_zone_or_another() {
        let household = Household::new();
        for arguments in [
            json!({}),
            json!({"time_zone": ""}),
            json!({"time_zone": "UTC"}),
        ] {
            let answer = household.run("current_time", arguments).unwrap();
            assert!(answer.contains("ISO 8601: 2"), "{answer}");
        }
    }
}
