//! The time of day. It is a tool and no part of the system prompt, so that the
//! prompt stays the same from turn to turn and can be cached.

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::{Builtin, text};
use crate::agent::tool::ToolContext;
use crate::clock::Timestamp;

pub(super) fn current_time() -> Builtin {
    Builtin::new(
        "current_time",
        "The present date, weekday and time.",
        json!({"time_zone": {
            "type": "string",
            "description": "IANA name, e.g. Europe/Berlin; the household's zone if absent",
        }}),
        &[],
        run,
    )
    .read_only()
}

fn run(arguments: &Map<String, Value>, context: &ToolContext<'_>) -> Result<String, String> {
    let zone = zone(text(arguments, "time_zone"))?;
    describe(context.clock.now(), zone)
}

/// The zone of this IANA name, or the one that the system is set to (`TZ`,
/// else /etc/localtime, else UTC).
fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name).map_err(|_| {
            format!("there is no time zone {name:?}: give an IANA name such as Europe/Berlin")
        }),
    }
}

fn describe(now: Timestamp, zone: TimeZone) -> Result<String, String> {
    let name = match zone.iana_name() {
        Some(name) => format!("{name}, "),
        None => String::new(),
    };
    let time = jiff::Timestamp::from_millisecond(now.as_millis())
        .map_err(|_| "the clock of this computer is set to no possible time".to_owned())?
        .to_zoned(zone);
    Ok(format!(
        "{} ({name}UTC{}), ISO 8601: {}",
        time.strftime("%A, %-d %B %Y, %H:%M:%S"),
        time.strftime("%:z"),
        time.strftime("%Y-%m-%dT%H:%M:%S%:z"),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::household::Household;
    use super::*;

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
    fn a_zone_is_found_by_its_name() {
        assert_eq!(zone(Some("UTC")).unwrap(), TimeZone::UTC);
        for name in ["Mars/Olympus", "../../etc/passwd", "10"] {
            let problem = zone(Some(name)).unwrap_err();
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
