//! Tables of times.

use jiff::tz::TimeZone;

use super::zone::read;
use super::{Cron, Recurrence, Timing, Zone, spoken_stamp};
use crate::clock::Timestamp;
use crate::language::Words;
use crate::testing::rows;

/// Central European rules, without the system's database.
fn berlin() -> Zone {
    Zone(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
}

fn utc() -> Zone {
    Zone(TimeZone::UTC)
}

fn time(text: &str) -> Timestamp {
    let time: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_millis(time.as_millisecond())
}

/// The next times, as `11-22 08:00Z`-like texts.
fn next(cron: &str, after: &str, zone: &Zone, count: usize) -> Vec<String> {
    let cron: Cron = cron.parse().unwrap();
    let mut after = time(after);
    (0..count)
        .map_while(|_| {
            after = cron.next(after, zone)?;
            Some(after.to_string()[..16].to_owned())
        })
        .collect()
}

#[test]
fn cron_means_what_crontab_says() {
    // A Saturday.
    let after = "2026-11-21T09:30:00Z";
    for (cron, expected) in [
        ("* * * * *", ["2026-11-21T09:31", "2026-11-21T09:32"]),
        ("*/15 * * * *", ["2026-11-21T09:45", "2026-11-21T10:00"]),
        ("5/20 9 * * *", ["2026-11-21T09:45", "2026-11-22T09:05"]),
        ("30 9 * * *", ["2026-11-22T09:30", "2026-11-23T09:30"]),
        ("0 8,20 * * *", ["2026-11-21T20:00", "2026-11-22T08:00"]),
        ("0 8-10/2 * * *", ["2026-11-21T10:00", "2026-11-22T08:00"]),
        ("30 7 * * mon-fri", ["2026-11-23T07:30", "2026-11-24T07:30"]),
        ("0 12 * * 0", ["2026-11-22T12:00", "2026-11-29T12:00"]),
        ("0 12 * * 7", ["2026-11-22T12:00", "2026-11-29T12:00"]),
        ("0 12 * * SAT-sun", ["2026-11-21T12:00", "2026-11-22T12:00"]),
        ("0 0 1 * *", ["2026-12-01T00:00", "2027-01-01T00:00"]),
        ("0 0 31 * *", ["2026-12-31T00:00", "2027-01-31T00:00"]),
        ("0 0 29 feb *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 1 jan,JUL *", ["2027-01-01T00:00", "2027-07-01T00:00"]),
        // Both days are restricted: either will do.
        ("0 0 24 12 mon", ["2026-12-07T00:00", "2026-12-14T00:00"]),
        ("0 0 23 * mon", ["2026-11-23T00:00", "2026-11-30T00:00"]),
        // One of them begins with a star: both must hold.
        ("0 0 */2 * mon", ["2026-11-23T00:00", "2026-12-07T00:00"]),
        ("0 0 13 * */5", ["2026-12-13T00:00", "2027-06-13T00:00"]),
    ] {
        assert_eq!(next(cron, after, &utc(), 2), expected, "{cron}");
    }
    for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        assert!(next(never, after, &utc(), 1).is_empty(), "{never}");
    }
}

#[test]
fn a_wrong_field_is_named() {
    for (cron, says) in [
        ("", "five fields"),
        ("* * * *", "not 4"),
        ("* * * * * *", "not 6"),
        (
            "60 * * * *",
            "the minute of \"cron\" cannot be \"60\": values are 0 to 59",
        ),
        ("* 24 * * *", "the hour"),
        ("* * 0 * *", "the day of the month"),
        ("* * * 13 *", "values are 1 to 12 or jan to dec"),
        ("* * * * 8", "values are 0 to 7 or sun to sat"),
        ("* * * * monday", "the weekday"),
        ("*/0 * * * *", "a step is a number of at least 1"),
        ("*/ * * * *", "a step"),
        ("30-10 * * * *", "its range begins after its end"),
        ("1,,2 * * * *", "cannot be \"\""),
        ("+5 * * * *", "cannot be \"+5\""),
        ("-5 * * * *", "cannot be \"-5\""),
        ("1-2-3 * * * *", "cannot be \"1-2-3\""),
        ("99999999999999999999 * * * *", "values are 0 to 59"),
    ] {
        let error = cron.parse::<Cron>().unwrap_err();
        assert!(error.message().contains(says), "{cron}: {error}");
    }
    let long = format!("{} * * * *", "1,".repeat(200) + "1");
    assert!(long.parse::<Cron>().is_err());
}

#[test]
fn a_text_is_kept_in_its_plain_form() {
    let cron: Cron = "  0 8\t* * MON ".parse().unwrap();
    assert_eq!(cron.to_string(), "0 8 * * MON");
    assert_eq!(cron, cron.to_string().parse().unwrap());
}

#[test]
fn clocks_that_change_neither_lose_nor_double_a_time() {
    let table = "
        before, in and after the hour that is skipped | 30 2 * * *    | 2027-03-27T00:00:00Z | 2027-03-27T01:30 2027-03-28T01:00 2027-03-29T00:30
        several times that are skipped come as one    | */20 2 28 3 * | 2027-03-28T00:00:00Z | 2027-03-28T01:00 2028-03-28T00:00
        every half hour over the hour that is skipped | */30 * * * *  | 2027-03-28T00:00:00Z | 2027-03-28T00:30 2027-03-28T01:00 2027-03-28T01:30
        an hour that comes twice counts once          | 30 2 * * *    | 2026-10-24T00:00:00Z | 2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30
        also from within its repetition               | 30 2 * * *    | 2026-10-25T01:10:00Z | 2026-10-26T01:30
        local noon stays noon                         | 0 12 * * *    | 2026-10-24T00:00:00Z | 2026-10-24T10:00 2026-10-25T11:00
    ";
    for [what, cron, after, expected] in rows(table) {
        let expected: Vec<&str> = expected.split(' ').collect();
        assert_eq!(
            next(cron, after, &berlin(), expected.len()),
            expected,
            "{what}"
        );
    }
}

#[test]
fn a_single_time_is_local_unless_it_says_otherwise() {
    let now = time("2026-11-21T09:30:00Z");
    for (at, expected) in [
        ("2026-11-22T18:30", "2026-11-22T17:30:00.000Z"),
        (" 2026-11-22 18:30 ", "2026-11-22T17:30:00.000Z"),
        ("2026-11-22T18:30:15", "2026-11-22T17:30:15.000Z"),
        ("2026-11-22T18:30Z", "2026-11-22T18:30:00.000Z"),
        ("2026-11-22T18:30:00-05:00", "2026-11-22T23:30:00.000Z"),
        ("18:30", "2026-11-21T17:30:00.000Z"),
        ("07:00", "2026-11-22T06:00:00.000Z"),
        ("10:30", "2026-11-22T09:30:00.000Z"),
        ("+90s", "2026-11-21T09:31:30.000Z"),
        ("+20m", "2026-11-21T09:50:00.000Z"),
        ("+2h", "2026-11-21T11:30:00.000Z"),
        ("+3d", "2026-11-24T09:30:00.000Z"),
        // Skipped by the clocks.
        ("2027-03-28T02:30", "2027-03-28T01:00:00.000Z"),
    ] {
        let timing = Timing::new(Some(at), None, &berlin(), now).unwrap();
        assert_eq!(timing.next_at.to_string(), expected, "{at}");
    }
    for (at, says) in [
        (
            "2026-11-21T10:30",
            "is in the past: 2026-11-21 10:30. It is now 2026-11-21 10:30",
        ),
        ("2020-01-01T00:00:00Z", "is in the past"),
        ("+0m", "is in the past"),
        ("soon", "must be a time such as"),
        ("20", "must be a time such as"),
        ("today at 9", "is in the past"),
        ("tomorrow at 6 or 7", "must be a time such as"),
        ("tomorrow on Friday", "must be a time such as"),
        ("13pm", "must be a time such as"),
        ("on 31 February", "must be a time such as"),
        ("every 7 minutes", "must be a time such as"),
        ("every", "must be a time such as"),
        ("every first Monday", "must be a time such as"),
        ("in 200 years", "must be a time such as"),
        ("25:00", "must be a time such as"),
        ("+20", "must be a time such as"),
        ("+1.5h", "must be a time such as"),
        ("+99999999999999999999d", "must be a time such as"),
        ("+ä", "must be a time such as"),
        ("", "must be a time such as"),
        ("5 o'clock or so", "not \"5 o'clock or so\""),
    ] {
        let error = Timing::new(Some(at), None, &berlin(), now).unwrap_err();
        assert!(error.message().contains(says), "{at}: {error}");
    }
}

#[test]
fn a_time_is_understood_as_people_say_it() {
    // A Saturday, 10:30 in Berlin.
    let now = time("2026-11-21T09:30:00Z");
    let table = "
        6pm                          | 2026-11-21T17:00 | -
        6 p.m.                       | 2026-11-21T17:00 | -
        at 7                         | 2026-11-22T06:00 | -
        at 7 in the evening          | 2026-11-21T18:00 | -
        6.30pm                       | 2026-11-21T17:30 | -
        12am                         | 2026-11-21T23:00 | -
        tonight                      | 2026-11-21T20:00 | -
        this evening                 | 2026-11-21T17:00 | -
        in 20 minutes                | 2026-11-21T09:50 | -
        in an hour                   | 2026-11-21T10:30 | -
        in half an hour              | 2026-11-21T10:00 | -
        in 2 hours and 5 minutes     | 2026-11-21T11:35 | -
        in two hours                 | 2026-11-21T11:30 | -
        in 20m                       | 2026-11-21T09:50 | -
        20 minutes from now          | 2026-11-21T09:50 | -
        in 3 days at 8am             | 2026-11-24T07:00 | -
        next week                    | 2026-11-28T08:00 | -
        tomorrow at 18:00            | 2026-11-22T17:00 | -
        Tomorrow, 6pm                | 2026-11-22T17:00 | -
        tomorrow                     | 2026-11-22T08:00 | -
        tomorrow morning             | 2026-11-22T07:00 | -
        the day after tomorrow at noon | 2026-11-23T11:00 | -
        2026-11-22                   | 2026-11-22T08:00 | -
        2026-11-22 6pm               | 2026-11-22T17:00 | -
        on Thursday at 18:00         | 2026-11-26T17:00 | -
        next Saturday at 10:00       | 2026-11-28T09:00 | -
        Saturday 11:00               | 2026-11-21T10:00 | -
        26 November, 18:00           | 2026-11-26T17:00 | -
        on the 3rd of January at 9   | 2027-01-03T08:00 | -
        December 24th 2027 at 5pm    | 2027-12-24T16:00 | -
        on the 5th at 10:00          | 2026-12-05T09:00 | -
        @daily                       | 2026-11-21T23:00 | 0 0 * * *
        @weekly                      | 2026-11-21T23:00 | 0 0 * * 0
        @hourly                      | 2026-11-21T10:00 | 0 */1 * * *
        daily at 7:15                | 2026-11-22T06:15 | 15 7 * * *
        every day at 7               | 2026-11-22T06:00 | 0 7 * * *
        every weekday at 7           | 2026-11-23T06:00 | 0 7 * * 1,2,3,4,5
        weekends at 10               | 2026-11-22T09:00 | 0 10 * * 0,6
        every evening at 8           | 2026-11-21T19:00 | 0 20 * * *
        every morning                | 2026-11-22T07:00 | 0 8 * * *
        every day at 8 and 20:00     | 2026-11-21T19:00 | 0 8,20 * * *
        every Monday and Thursday at 6pm | 2026-11-23T17:00 | 0 18 * * 1,4
        fridays                      | 2026-11-27T08:00 | 0 9 * * 5
        every other Friday           | 2026-11-27T08:00 | 0 9 * * 5 2026-11-27/2w
        every second Friday at 18:00 | 2026-11-27T17:00 | 0 18 * * 5 2026-11-27/2w
        every two weeks on Friday    | 2026-11-27T08:00 | 0 9 * * 5 2026-11-27/2w
        every other Friday from 2026-12-04 | 2026-12-04T08:00 | 0 9 * * 5 2026-12-04/2w
        every 3 days at 8am          | 2026-11-22T07:00 | 0 8 * * * 2026-11-22/3d
        every 15 minutes             | 2026-11-21T09:45 | */15 * * * *
        every 2 hours                | 2026-11-21T11:00 | 0 */2 * * *
        every month on the 1st at 9  | 2026-12-01T08:00 | 0 9 1 * *
        every 2nd of the month       | 2026-12-02T08:00 | 0 9 2 * *
        every year on 24 December at 5pm | 2026-12-24T16:00 | 0 17 24 12 *
    ";
    for [said, expected, cron] in rows(table) {
        let timing = Timing::new(Some(said), None, &berlin(), now);
        let timing = timing.unwrap_or_else(|error| panic!("{said}: {error}"));
        assert_eq!(&timing.next_at.to_string()[..16], expected, "{said}");
        let found = timing.cron.as_ref().map(ToString::to_string);
        assert_eq!(found.as_deref().unwrap_or("-"), cron, "{said}");
        assert_eq!(
            timing.is_wait,
            ["in ", "20 "].iter().any(|begin| said.starts_with(begin)) && !said.ends_with("am"),
            "{said}"
        );
        if timing.cron.is_some() {
            assert_eq!(
                Timing::new(None, Some(said), &berlin(), now),
                Ok(timing.clone())
            );
            assert_eq!(
                Timing::new(None, Some(cron), &berlin(), now),
                Ok(timing),
                "{said}"
            );
        }
    }
}

#[test]
fn a_time_in_other_words_is_the_one_that_people_mean() {
    let table = "
        half past seven              | Sun 2026-11-22 07:30
        at half past seven pm        | Sat 2026-11-21 19:30
        half past 7 in the evening   | Sat 2026-11-21 19:30
        a quarter to 6 pm            | Sat 2026-11-21 17:45
        ten past six                 | Sun 2026-11-22 06:10
        20 minutes to 8              | Sun 2026-11-22 07:40
        at six                       | Sun 2026-11-22 06:00
        7 o'clock                    | Sun 2026-11-22 07:00
        seven o’clock in the evening | Sat 2026-11-21 19:00
        6 in the evening             | Sat 2026-11-21 18:00
        8 tonight                    | Sat 2026-11-21 20:00
        12 noon                      | Sat 2026-11-21 12:00
        in twenty minutes            | Sat 2026-11-21 10:50
        tonight at midnight          | Sun 2026-11-22 00:00
        tonight at 12                | Sun 2026-11-22 00:00
        tonight at 2am               | Sun 2026-11-22 02:00
        tomorrow night at 12         | Mon 2026-11-23 00:00
        Friday night at 1            | Sat 2026-11-28 01:00
        at 12 at night               | Sun 2026-11-22 00:00
        Friday 27 November at 6pm    | Fri 2026-11-27 18:00
        Mon 30 Nov                   | Mon 2026-11-30 09:00
        the 5th of next month        | Sat 2026-12-05 09:00
        next month on the 24th       | Thu 2026-12-24 09:00
        on the 31st                  | Thu 2026-12-31 09:00
        Monday to Friday at 7        | 0 7 * * 1,2,3,4,5
        mon-fri at half past seven   | 30 7 * * 1,2,3,4,5
        Sunday evenings at 7         | 0 19 * * 0
        at 7 on Mondays and Fridays  | 0 7 * * 1,5
        every night at 12            | 0 0 * * *
        every half hour              | */30 * * * *
        @midnight                    | 0 0 * * *
    ";
    let now = time("2026-11-21T09:30:00Z");
    for [said, expected] in rows(table) {
        let timing = Timing::new(Some(said), None, &berlin(), now);
        let timing = timing.unwrap_or_else(|error| panic!("{said}: {error}"));
        let once = berlin().day_and_minute(timing.next_at);
        let found = timing.cron.as_ref().map_or(once, ToString::to_string);
        assert_eq!(found, expected, "{said}");
    }
}

/// A wrong time is worse than none.
#[test]
fn what_could_be_misread_is_refused() {
    let now = time("2026-11-21T09:30:00Z");
    for said in [
        // What belongs to the first words alone must not be lost.
        "a week on Tuesday",
        "two weeks from Monday",
        "a week from tomorrow",
        "tomorrow in 2 hours",
        "today and tomorrow at 6",
        "every morning and evening",
        "every morning at 7:30 and evening at 7:30",
        "every weekday at 7 and every weekend at 9",
        // Crontab cannot say it.
        "every second Tuesday of the month",
        "every third Friday of the month",
        "the last day of every month",
        "every Monday in December",
        "every day of December",
        "every month starting tomorrow",
        "every Friday night at 1",
        // Other days, hours or spans for different people.
        "Monday in December",
        "next month on Monday",
        "next month on the 31st of May",
        "in May at 5",
        "Thursday 27 November",
        "18h",
        "at 18h",
        "at 5.3",
        "half seven",
        "5 to 8",
        "every day from nine to five",
        // No such hour.
        "at 12 in the morning",
        "in the evening at 12",
        "tomorrow morning at 6pm",
        "this afternoon at 11",
        // It is 10:30: next year or tomorrow is not meant.
        "21 November",
        "this morning at 9",
    ] {
        let error = Timing::new(Some(said), None, &berlin(), now).expect_err(said);
        let message = error.message();
        assert!(
            message.contains("must be a time such as") || message.contains("is in the past"),
            "{said}: {error}"
        );
    }
}

#[test]
fn a_time_in_words_keeps_to_the_calendar_and_the_clocks() {
    let table = "
        next Tuesday at 18:00 | 2026-11-24T09:30:00Z | Tue 2026-12-01 18:00
        Tuesday at 18:00      | 2026-11-24T09:30:00Z | Tue 2026-11-24 18:00
        tonight at 2          | 2026-11-21T23:30:00Z | Sun 2026-11-22 02:00
        the 31st of next month | 2027-01-30T09:30:00Z | -
        next month on the 5th | 2026-11-03T09:30:00Z | Sat 2026-12-05 09:00
        tomorrow              | 2026-12-31T09:30:00Z | Fri 2027-01-01 09:00
        in 2 days             | 2027-03-27T09:30:00Z | Mon 2027-03-29 10:30
        in 48 hours           | 2027-03-27T09:30:00Z | Mon 2027-03-29 11:30
        in a week             | 2026-10-24T08:30:00Z | Sat 2026-10-31 10:30
        tomorrow at half past two | 2027-03-27T09:30:00Z | Sun 2027-03-28 03:00
    ";
    for [said, now, expected] in rows(table) {
        let timing = Timing::new(Some(said), None, &berlin(), time(now));
        let found = timing.map_or("-".to_owned(), |timing| {
            berlin().day_and_minute(timing.next_at)
        });
        assert_eq!(found, expected, "{said} at {now}");
    }
}

#[test]
fn a_time_is_said_in_each_language() {
    let now = time("2026-11-21T23:30:00Z");
    for (language, at, said) in [
        ("en", "2026-11-26T18:00:00Z", "Thursday, 26 November, 18:00"),
        (
            "en",
            "2027-01-03T08:05:00Z",
            "Sunday, 3 January 2027, 08:05",
        ),
        ("en", "2026-11-21T23:45:00Z", "today at 23:45"),
        ("en", "2026-11-20T23:45:00Z", "Friday, 20 November, 23:45"),
        (
            "de",
            "2026-11-26T18:00:00Z",
            "Donnerstag, 26. November, 18:00",
        ),
        (
            "de",
            "2027-01-03T08:05:00Z",
            "Sonntag, 3. Januar 2027, 08:05",
        ),
        ("de", "2026-11-22T06:00:00Z", "morgen um 06:00"),
        (
            "es",
            "2027-01-03T08:05:00Z",
            "domingo, 3 de enero de 2027, 08:05",
        ),
        ("fr", "2026-11-26T18:00:00Z", "jeudi 26 novembre, 18:00"),
        ("it", "2026-11-22T06:00:00Z", "domani alle 06:00"),
        ("nl", "2026-11-21T23:45:00Z", "vandaag om 23:45"),
    ] {
        let words = Words::of(language);
        assert_eq!(utc().spoken_now(time(at), now, words), said);
    }
}

#[test]
fn what_crontab_cannot_say_stands_in_a_sixth_field() {
    for (cron, expected) in [
        (
            "0 9 * * 5 2026-11-27/2w",
            ["2026-11-27T09:00", "2026-12-11T09:00"],
        ),
        // The week counts, whatever its days.
        (
            "0 9 * * 1,5 2026-11-27/2w",
            ["2026-11-27T09:00", "2026-12-07T09:00"],
        ),
        (
            "0 9 * * * 2026-11-20/3d",
            ["2026-11-23T09:00", "2026-11-26T09:00"],
        ),
    ] {
        assert_eq!(
            next(cron, "2026-11-21T09:30:00Z", &utc(), 2),
            expected,
            "{cron}"
        );
    }
    for wrong in [
        "2026-11-27/0w",
        "2026-11-27/2",
        "2026-11-31/2w",
        "x/2w",
        "2026-11-27/999999999999w",
    ] {
        let error = format!("0 9 * * 5 {wrong}").parse::<Cron>().unwrap_err();
        assert!(error.message().contains("not 6"), "{error}");
    }
}

#[test]
fn one_of_the_two_is_given() {
    let now = time("2026-11-21T09:30:00Z");
    for (at, cron, says) in [
        (None, None, "give either"),
        (Some("18:30"), Some("* * * * *"), "give either"),
        (None, Some("0 0 30 2 *"), "0 0 30 2 * never comes"),
    ] {
        let error = Timing::new(at, cron, &utc(), now).unwrap_err();
        assert!(error.message().contains(says), "{error}");
    }
    let timing = Timing::new(None, Some("0 8 * * *"), &berlin(), now).unwrap();
    assert_eq!(timing.next_at.to_string(), "2026-11-22T07:00:00.000Z");
}

#[test]
fn the_household_s_zone_is_named_or_the_system_s() {
    assert_eq!(Zone::of_household(Some("UTC")), utc());
    assert_eq!(Zone::of_household(None), Zone::system());
    assert!(Zone::named("Mars/Olympus").is_err());
}

#[test]
fn a_zone_that_is_read_is_the_one_that_jiff_finds() {
    assert_eq!(Zone::system().0, TimeZone::system());
    for name in ["Europe/Berlin", "Etc/UTC"] {
        if let Ok(found) = TimeZone::get(name) {
            assert_eq!(read(name), Some(found), "{name}");
        }
    }
    let not_names = [
        "",
        "/etc/localtime",
        "../../../etc/localtime",
        "Etc/../../zone",
        "right/UTC",
    ];
    for name in not_names {
        assert_eq!(read(name), None, "{name}");
    }
}

#[test]
fn a_part_of_the_day_ends_when_clocks_show_its_end() {
    let table = "
        before a night               | 22:00-07:00 | 2026-11-21T20:59:00Z | -
        its first minute             | 22:00-07:00 | 2026-11-21T21:00:00Z | 2026-11-22T06:00:00.000Z
        after midnight               | 22:00-07:00 | 2026-11-21T23:30:00Z | 2026-11-22T06:00:00.000Z
        its last minute              | 22:00-07:00 | 2026-11-22T05:59:59Z | 2026-11-22T06:00:00.000Z
        its end                      | 22:00-07:00 | 2026-11-22T06:00:00Z | -
        an afternoon                 | 13:00-15:30 | 2026-11-22T12:00:00Z | 2026-11-22T14:30:00.000Z
        after it                     | 13:00-15:30 | 2026-11-22T14:30:00Z | -
        a night that is one hour less | 22:00-07:00 | 2027-03-27T22:00:00Z | 2027-03-28T05:00:00.000Z
        an end that is skipped       | 22:00-02:30 | 2027-03-27T22:00:00Z | 2027-03-28T01:00:00.000Z
        an end that is shown again   | 22:00-02:30 | 2026-10-25T01:10:00Z | -
    ";
    let minute = |text: &str| {
        let (hours, minutes) = text.split_once(':').unwrap();
        hours.parse::<u16>().unwrap() * 60 + minutes.parse::<u16>().unwrap()
    };
    for [what, hours, now, expected] in rows(table) {
        let (from, until) = hours.split_once('-').unwrap();
        let end = berlin().end_of_daily(time(now), minute(from), minute(until));
        let end = end.map_or("-".to_owned(), |end| end.to_string());
        assert_eq!(end, expected, "{what}");
    }
}

#[test]
fn a_stamp_is_the_day_and_the_minute() {
    for zone in [utc(), berlin()] {
        for number in 0..2_000 {
            let time = Timestamp::from_millis(number * 86_399_999 * 7);
            let local = zone.local(time).unwrap();
            let expected = local.strftime("%a %Y-%m-%d %H:%M").to_string();
            assert_eq!(zone.day_and_minute(time), expected);
        }
    }
}

#[test]
fn what_repeats_is_said_in_words() {
    let table = "
        30 7 * * *              | every day at 7:30
        30 7 * * mon-fri        | every weekday at 7:30
        0 9,18 * * sat,sun      | on Saturdays and Sundays at 9:00 and 18:00
        0 8 * * sun,mon,thu     | every Monday, Thursday and Sunday at 8:00
        * * * * *               | every minute
        */15 * * * *            | every 15 minutes
        5 * * * *               | every hour at minute 5
        0 */2 * * *             | every 2 hours at minute 0
        */10 8-18 * * mon       | every Monday at minute 0, 10, 20, 30, 40 and 50 of the hours 8–18
        0 6 1,15 * *            | on day 1 and 15 of every month at 6:00
        0 6 24 12 *             | on day 24 of December at 6:00
        0 6 1 * mon             | on day 1 of every month and every Monday at 6:00
        0 6 * 6-8 fri           | every Friday in June, July and August at 6:00
        0 9 * * fri 2026-11-27/2w | every 2 weeks on Friday at 9:00
        0 9 * * * 2026-11-27/3d   | every 3 days at 9:00
    ";
    for [cron, said] in rows(table) {
        let cron: Cron = cron.parse().unwrap();
        assert_eq!(cron.say(Words::ENGLISH), said, "{cron}");
    }
}

#[test]
fn what_a_program_wrote_is_said_in_words() {
    for (language, text, said) in [
        ("en", "2026-12-03T17:00", "Thursday, 3 December 2026, 17:00"),
        (
            "en",
            "2026-12-03 17:00:00",
            "Thursday, 3 December 2026, 17:00",
        ),
        ("en", "2026-12-03", "Thursday, 3 December 2026"),
        ("de", "2026-12-03", "Donnerstag, 3. Dezember 2026"),
        ("fr", "2026-12-03T17:00", "jeudi 3 décembre 2026, 17:00"),
        (
            "en",
            "2026-12-03T17:00:00Z",
            "Thursday, 3 December 2026, 17:00 (UTC)",
        ),
        (
            "en",
            "2026-12-03T17:00-05:00",
            "Thursday, 3 December 2026, 17:00 (UTC-05:00)",
        ),
        ("en", "tomorrow at 18:00", "tomorrow at 18:00"),
        ("en", "+5m", "+5m"),
        ("en", "18:30", "18:30"),
        ("en", "2026-13-03", "2026-13-03"),
        ("en", "heute Abend ü+", "heute Abend ü+"),
    ] {
        assert_eq!(spoken_stamp(text, Words::of(language)), said);
    }
}

#[test]
fn a_rule_is_said_in_words_or_not_at_all() {
    let table = "
        FREQ=DAILY                     | every day
        FREQ=DAILY;INTERVAL=3          | every 3 days
        FREQ=WEEKLY                    | every Thursday
        FREQ=WEEKLY;BYDAY=FR,MO        | every Monday and Friday
        FREQ=WEEKLY;INTERVAL=2         | every 2 weeks on Thursday
        FREQ=MONTHLY                   | on day 3 of every month
        FREQ=YEARLY                    | on day 3 of December
        FREQ=MONTHLY;INTERVAL=2        | -
        FREQ=MONTHLY;BYDAY=1MO         | -
        FREQ=WEEKLY;COUNT=4            | -
        FREQ=DAILY;UNTIL=20270101      | -
    ";
    let first = "2026-12-03".parse().ok();
    for [rule, said] in rows(table) {
        let rule = Recurrence::parse(rule).unwrap();
        let found = rule.say(first, Words::ENGLISH);
        assert_eq!(found.as_deref().unwrap_or("-"), said, "{rule:?}");
    }
}
