use super::*;
use base::secret::random_bytes;

fn view() -> View {
    View {
        zone: Zone::named("Europe/Berlin").unwrap(),
        now: "2026-03-20T12:00:00Z".parse().unwrap(),
        addresses: vec!["ann@example.org".to_owned()],
        is_outside: false,
    }
}

fn read(text: &str) -> (Vec<EventTime>, Option<String>) {
    let mut reading = Reading::new(view());
    reading.add(text.as_bytes(), Some("/a.ics"));
    let (times, problem) = reading.finish();
    (times, problem.map(|problem| problem.to_string()))
}

fn event(lines: &str) -> String {
    let lines = lines.replace(" / ", "\r\n");
    format!(
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a\r\n{lines}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

/// Each time as `2026-03-20 09:00-10:00`, on the clocks of Berlin, or as a day.
fn times(text: &str, most: usize) -> String {
    let zone = view().zone;
    let found = read(text).0;
    let shown = found
        .iter()
        .take(most)
        .map(|one| match (&one.first_day, &one.last_day) {
            (Some(first), Some(last)) if first == last => first.clone(),
            (Some(first), Some(last)) => format!("{first}..{last}"),
            _ => format!(
                "{}-{}",
                zone.minute(one.starts_at),
                &zone.minute(one.ends_at)[11..]
            ),
        });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_time_is_where_its_zone_says_over_changes_of_the_clocks() {
    for (lines, expected) in [
        (
            "DTSTART:20260321T080000Z / DTEND:20260321T093000Z",
            "2026-03-21 09:00-10:30",
        ),
        (
            "DTSTART:20260321T090000 / DURATION:PT1H",
            "2026-03-21 09:00-10:00",
        ),
        (
            "DTSTART;TZID=America/New_York:20260321T090000",
            "2026-03-21 14:00-14:00",
        ),
        ("DTSTART;VALUE=DATE:20260321", "2026-03-21"),
        (
            "DTSTART;VALUE=DATE:20260321 / DTEND;VALUE=DATE:20260324",
            "2026-03-21..2026-03-23",
        ),
        (
            "DTSTART;VALUE=DATE:20260321 / DURATION:P2D",
            "2026-03-21..2026-03-22",
        ),
        // Clocks go forward on the 29th.
        (
            "DTSTART;TZID=Europe/Berlin:20260327T090000 / DURATION:PT30M / RRULE:FREQ=DAILY;COUNT=4",
            "2026-03-27 09:00-09:30, 2026-03-28 09:00-09:30, 2026-03-29 09:00-09:30, \
             2026-03-30 09:00-09:30",
        ),
        (
            "DTSTART:20260328T080000Z / RRULE:FREQ=DAILY;COUNT=2",
            "2026-03-28 09:00-09:00, 2026-03-29 10:00-10:00",
        ),
        // 2:30 is skipped on that day.
        (
            "DTSTART;TZID=Europe/Berlin:20260328T023000 / RRULE:FREQ=DAILY;COUNT=3",
            "2026-03-28 02:30-02:30, 2026-03-29 03:30-03:30, 2026-03-30 02:30-02:30",
        ),
        (
            "DTSTART;VALUE=DATE:20260325 / RRULE:FREQ=WEEKLY;UNTIL=20260408",
            "2026-03-25, 2026-04-01, 2026-04-08",
        ),
        // It goes on from before what is kept.
        (
            "DTSTART;VALUE=DATE:20100101 / RRULE:FREQ=YEARLY",
            "2026-01-01, 2027-01-01, 2028-01-01",
        ),
        ("DTSTART:20100101T000000Z", ""),
        ("DTSTART:20300101T000000Z", ""),
        ("DTSTART:20260321T080000Z / STATUS:CANCELLED", ""),
        ("SUMMARY:without a time", ""),
        ("DTSTART:nonsense", ""),
    ] {
        assert_eq!(times(&event(lines), 9), expected, "{lines}");
    }
}

#[test]
fn single_times_of_an_event_are_left_out_added_and_changed() {
    let base = "DTSTART;TZID=Europe/Berlin:20260323T090000 / DTEND;TZID=Europe/Berlin:20260323T100000 / \
        RRULE:FREQ=DAILY;COUNT=4";
    let excluded = format!("{base} / EXDATE;TZID=Europe/Berlin:20260324T090000,20260325T090000");
    assert_eq!(
        times(&event(&excluded), 9),
        "2026-03-23 09:00-10:00, 2026-03-26 09:00-10:00"
    );
    let by_utc = format!("{base} / EXDATE:20260324T080000Z / EXDATE;VALUE=DATE:20260325");
    assert_eq!(times(&event(&by_utc), 9), times(&event(&excluded), 9));
    let added = format!(
        "{base} / EXDATE;VALUE=DATE:20260324,20260325,20260326 / \
        RDATE;TZID=Europe/Berlin:20260401T120000 / RDATE;VALUE=PERIOD:20260402T100000Z/PT1H"
    );
    assert_eq!(
        times(&event(&added), 9),
        "2026-03-23 09:00-10:00, 2026-04-01 12:00-13:00, 2026-04-02 12:00-13:00"
    );
    let moved = "BEGIN:VEVENT\r\nUID:a\r\nRECURRENCE-ID:20260324T080000Z\r\nDTSTART:20260324T150000Z\r\n\
        SUMMARY:later\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:a\r\n\
        RECURRENCE-ID;TZID=Europe/Berlin:20260325T090000\r\nDTSTART:20260325T080000Z\r\n\
        STATUS:CANCELLED\r\nEND:VEVENT\r\n";
    let whole = event(base);
    for text in [
        whole.replace("END:VCALENDAR", &format!("{moved}END:VCALENDAR")),
        whole.replace(
            "BEGIN:VEVENT\r\nUID:a\r\nDTSTART;",
            &format!("{moved}BEGIN:VEVENT\r\nUID:a\r\nDTSTART;"),
        ),
    ] {
        assert_eq!(
            times(&text, 9),
            "2026-03-23 09:00-10:00, 2026-03-24 16:00-16:00, 2026-03-26 09:00-10:00"
        );
        assert_eq!(read(&text).0[1].occurrence, "20260324T080000Z");
        assert_eq!(read(&text).0[1].title, "later");
    }
}

#[test]
fn who_wrote_it_is_known() {
    let start = "DTSTART:20260321T080000Z / SUMMARY:Dentist\\, 2nd\\nfloor / LOCATION:Main St";
    for (more, organizer, is_outside) in [
        ("X-A:1", None, false),
        (
            "ORGANIZER:mailto:ANN@example.org / ATTENDEE:mailto:bob@example.org",
            None,
            false,
        ),
        (
            "ORGANIZER;CN=\"Bob, B\":mailto:bob@example.org",
            Some("Bob, B"),
            true,
        ),
        (
            "ORGANIZER:mailto:eve@example.org",
            Some("eve@example.org"),
            true,
        ),
        ("X-HEARTH-OUTSIDE:1", None, true),
    ] {
        let (found, problem) = read(&event(&format!("{start} / {more}")));
        let one = &found[0];
        assert_eq!(
            (one.organizer.as_deref(), one.is_outside),
            (organizer, is_outside),
            "{more}"
        );
        assert_eq!(one.has_guests, more.contains("ATTENDEE"));
        assert_eq!(
            (one.title.as_str(), one.location.as_str()),
            ("Dentist, 2nd floor", "Main St")
        );
        assert_eq!((one.href.as_deref(), problem), (Some("/a.ics"), None));
    }
}

#[test]
fn too_much_is_left_out_and_said() {
    let every_hour = event("DTSTART:20260321T080000Z / RRULE:FREQ=HOURLY");
    let (found, problem) = read(&every_hour);
    assert_eq!(found.len(), 1);
    assert!(problem.unwrap().contains("unknown rule (FREQ=HOURLY)"));
    // Three thousand that come each day: two million times.
    let daily = "BEGIN:VEVENT\r\nDTSTART:20200101T080000Z\r\nSUMMARY:X\r\nRRULE:FREQ=DAILY\r\nUID:";
    let many: String = (0..3_000)
        .map(|number| format!("{daily}{number}\r\nEND:VEVENT\r\n"))
        .collect();
    let (found, problem) = read(&format!("BEGIN:VCALENDAR\r\n{many}END:VCALENDAR\r\n"));
    assert_eq!(found.len(), MOST_TIMES);
    let problem = problem.unwrap();
    assert!(
        problem.contains("more than 10000") && problem.contains("too often"),
        "{problem}"
    );
    let day = 86_400_000 * 9;
    let near = found
        .iter()
        .filter(|one| one.starts_at.as_millis().abs_diff(view().now.as_millis()) < day);
    assert_eq!(
        near.count(),
        MOST_TIMES,
        "those nearest to the present are kept"
    );
}

/// Whatever a server sends: no panic, and an end.
#[test]
fn broken_calendars_are_read_as_far_as_they_go() {
    let good = format!(
        "{}{}",
        event(
            "DTSTART;TZID=Europe/Berlin:20260323T090000 / DURATION:P1DT2H / RRULE:FREQ=MONTHLY;BYDAY=-1FR,2MO;BYSETPOS=1 / EXDATE:20260324T080000Z / ORGANIZER;CN=\"x\":mailto:a@b / SUMMARY:ü\\n"
        ),
        "BEGIN:VTIMEZONE\r\nTZID:W\r\nBEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\n\
         TZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    );
    let spare = [
        b':', b';', b'\n', b'"', b'=', b'9', b'-', b'T', b'Z', 0xC3, b' ', b'\\',
    ];
    for _ in 0..4_000 {
        let mut bytes = good.clone().into_bytes();
        let random = random_bytes::<16>();
        for change in random.chunks(4) {
            let place = usize::from(change[0]) * 256 + usize::from(change[1]);
            let place = place % bytes.len();
            match change[2] % 3 {
                0 => bytes[place] = spare[usize::from(change[3]) % spare.len()],
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, spare[usize::from(change[3]) % spare.len()]),
            }
        }
        let mut reading = Reading::new(view());
        reading.add(&bytes, None);
        assert!(reading.finish().0.len() <= MOST_TIMES);
    }
    for text in [
        "DURATION:P99999999999999999999D",
        "DURATION:P9999999999999W",
        "DURATION:-P1D",
        "DTEND:00010101T000000Z",
        "RRULE:FREQ=DAILY;INTERVAL=10000",
        "RDATE:,,,",
    ] {
        let (found, _) = read(&event(&format!("DTSTART:20260323T090000Z / {text}")));
        assert!(!found.is_empty(), "{text}");
        let _ = read(&event(&format!("DTSTART:99991231T235959Z / {text}")));
        let _ = read(&event(&format!("DTSTART;VALUE=DATE:00010101 / {text}")));
    }
}
