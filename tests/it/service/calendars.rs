//! Calendars: read where they are kept, seen by whom their owner says, changed there by the
//! model, and what a day brings.

use std::fs;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::calendar::spoken_stamp;
use base::clock::{Clock, Timestamp};
use base::language::Words;
use base::people::UserRole;
use serde_json::{Value, json};
use support::calendar_server::{CalendarServer, Request, calendar};
use support::client::Client;
use support::eventually;
use support::home::{Home, TemporaryDirectory, make_people, write_config};
use support::model::{Act, Model};
use support::process::status;
use support::program::{Program, output_of, printed, run};
use support::served::{Served, read_request};

/// A calendar of so many events that come each day from this one on.
fn every_day(events: usize, first: &str) -> String {
    let event = |number: usize| {
        format!(
            "BEGIN:VEVENT\r\nUID:{number}\r\nDTSTART:{first}T{:02}0000Z\r\nSUMMARY:X\r\n\
             RRULE:FREQ=DAILY\r\nEND:VEVENT\r\n",
            number % 24
        )
    };
    calendar(&(0..events).map(event).collect::<String>())
}

/// A model that calls the tool that the message names, with the arguments behind it.
pub fn caller() -> Model {
    Model::start(|request, _| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        let named = text
            .find("find_events")
            .or(text.find("edit_events"))
            .or(text.find("lists"))
            .or(text.find("schedule"));
        match (last["role"] == "user", named) {
            (true, Some(place)) => {
                let (tool, arguments) = text[place..].split_once(' ').unwrap();
                let end = arguments.rfind('}').unwrap() + 1;
                Act::call(tool, arguments[..end].parse().unwrap())
            }
            _ => Act::say("done"),
        }
    })
}

/// The result of the last tool that was called.
pub fn result(model: &Model) -> String {
    let request = model.requests().pop().unwrap();
    let mut messages = request["messages"].as_array().unwrap().iter();
    let last = messages.rfind(|one| one["role"] == "tool");
    last.unwrap()["content"].as_str().unwrap().to_owned()
}

fn home_with(model: &Model, more: Value) -> Home {
    let mut config = model.config_with(more);
    config["time_zone"] = json!("Europe/Berlin");
    Home::start(config)
}

/// So many days from now, as calendars write it.
pub fn day(home: &Home, ahead: u64) -> String {
    let time: Timestamp = home.clock.now().plus(Duration::from_secs(ahead * 86_400));
    time.to_string()[..10].replace('-', "")
}

fn add(client: &mut Client, request: Value) -> Value {
    let mut whole = json!({ "type": "add_calendar", "id": "add" });
    for (key, value) in request.as_object().unwrap() {
        whole[key] = value.clone();
    }
    client.ask(whole)
}

/// The account of the server, for the household.
fn add_account(client: &mut Client, server: &CalendarServer) -> Value {
    add_account_at(client, &server.url("/"), "ann")
}

/// An account, which is then read.
pub fn add_account_at(client: &mut Client, url: &str, login: &str) -> Value {
    let added = add(
        client,
        json!({
            "name": "Home", "url": url, "username": login, "password": "hidden-word",
            "audience": "household",
        }),
    );
    settled(client, "Home", "ok");
    added
}

/// Waits until a calendar is in this state.
fn settled(client: &mut Client, name: &str, state: &str) -> Value {
    eventually(&format!("{name} is {state}"), || {
        let listed = client.ask(json!({ "type": "list_calendars", "id": "list" }));
        let mut all = listed["calendars"].as_array().unwrap().iter();
        let one = all.find(|one| one["name"] == name)?;
        let problem = one["problem"].as_str().unwrap_or_default();
        assert!(
            state != "ok" || !problem.contains("cannot be reached"),
            "{one}"
        );
        (one["state"] == state).then(|| one.clone())
    })
}

pub fn events(client: &mut Client) -> Vec<Value> {
    let listed = client.ask(json!({ "type": "list_events", "id": "events" }));
    listed["events"].as_array().unwrap().clone()
}

fn titles(client: &mut Client) -> Vec<String> {
    let events = events(client);
    events
        .iter()
        .map(|one| one["title"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_file_is_read_again_when_it_has_changed_and_seen_by_whom_its_owner_says() {
    let server = CalendarServer::start();
    let home = Home::start(json!({ "time_zone": "Europe/Berlin" }));
    // Found out once: the clock goes on below, perhaps past midnight.
    let first = day(&home, 2);
    let event = |title: &str| {
        calendar(&format!(
            "BEGIN:VEVENT\r\nUID:bins\r\nSUMMARY:{title}\r\nDTSTART;VALUE=DATE:{first}\r\n\
             RRULE:FREQ=WEEKLY;COUNT=2\r\nEND:VEVENT\r\n"
        ))
    };
    server.file("/town/bins.ics?key=hidden", "1", &event("Bins"));
    let mut user = home.websocket(&home.tokens.user);
    let url = server.url("/town/bins.ics?key=hidden");
    // What only an admin knows to be right is given by admins.
    assert_eq!(
        user.refused(json!({ "type": "add_calendar", "name": "Bins", "url": url })),
        "unauthorized"
    );
    let mut admin = home.admin();
    let mut listener = home.websocket(&home.tokens.user);
    listener.ask(json!({ "type": "subscribe", "events": ["calendar.updated"] }));
    let added = add(
        &mut admin,
        json!({ "name": "Bins", "url": url, "audience": ["user"] }),
    );
    assert_eq!(
        (&added["refresh_minutes"], &added["url"]),
        (&json!(60), &json!(url))
    );
    let read = settled(&mut user, "Bins", "ok");
    assert_eq!(
        listener.event("calendar.updated")["calendar_id"],
        added["calendar_id"]
    );
    assert_eq!(read["events"], 2);
    assert_eq!(read["writable"], false);
    assert!(
        !read["url"].as_str().unwrap().contains("bins.ics"),
        "{read}"
    );
    let found = events(&mut user);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (
            &found[0]["title"],
            &found[0]["owner"],
            &found[0]["recurring"],
            &found[0]["outside"]
        ),
        (&json!("Bins"), &json!("admin"), &json!(true), &json!(true))
    );
    let mut guest = home.websocket(&home.tokens.viewer);
    assert!(events(&mut guest).is_empty());
    assert_eq!(
        guest.ask(json!({ "type": "list_calendars" }))["calendars"],
        json!([])
    );
    // Nothing is sent twice that has not changed.
    let id = &found[0]["event_id"];
    home.server().advance_clock(Duration::from_secs(61 * 60));
    // Until that is stored, the clock would go on past the next look.
    eventually("it is looked at again", || {
        let again = settled(&mut user, "Bins", "ok");
        (server.requests().len() == 2 && again["read_at"] != read["read_at"]).then_some(())
    });
    server.file("/town/bins.ics?key=hidden", "2", &event("Paper bins"));
    home.server().advance_clock(Duration::from_secs(61 * 60));
    eventually("it has changed", || {
        titles(&mut user)
            .contains(&"Paper bins".to_owned())
            .then_some(())
    });
    assert_eq!(
        &events(&mut user)[0]["event_id"],
        id,
        "it is the same event"
    );
    // Who does not own it does not change it.
    let id = &added["calendar_id"];
    assert_eq!(
        user.refused(json!({ "type": "remove_calendar", "calendar_id": id })),
        "unauthorized"
    );
    let renamed = json!({ "type": "update_calendar", "calendar_id": id, "name": "Town", "audience": "private", "id": 1 });
    assert_eq!(admin.ask(renamed)["name"], "Town");
    assert!(events(&mut user).is_empty());
    assert_eq!(
        user.refused(json!({ "type": "remove_calendar", "calendar_id": id })),
        "not_found"
    );
    let removed = json!({ "type": "remove_calendar", "calendar_id": id, "id": 2 });
    assert_eq!(admin.ask(removed)["name"], "Town");
    assert!(events(&mut admin).is_empty());
}

#[test]
fn the_model_finds_adds_changes_and_deletes_events_where_they_are_kept() {
    let (server, model) = (CalendarServer::start(), caller());
    let home = home_with(&model, json!({}));
    let first = day(&home, 3);
    server.put(
        "choir.ics",
        &format!(
            "UID:choir\r\nSUMMARY:Choir\r\nX-OWN:kept\r\nDTSTART;TZID=Europe/Berlin:{first}T190000\r\n\
             DTEND;TZID=Europe/Berlin:{first}T203000\r\nRRULE:FREQ=DAILY;COUNT=4"
        ),
    );
    server.put(
        "party.ics",
        &format!("UID:party\r\nSUMMARY:Party\r\nDTSTART:{first}T200000Z\r\nORGANIZER;CN=Eve:mailto:eve@example.org"),
    );
    let mut admin = home.admin();
    let added = add_account(&mut admin, &server);
    assert_eq!(added["password_set"], true);
    assert!(!added.to_string().contains("hidden-word"), "{added}");
    let mut ask = |text: &str| {
        let reply = admin.chat(text);
        assert_eq!(reply["response"], "done", "{reply}");
        result(&model)
    };
    let found = ask("find_events {}");
    assert_eq!(
        found.matches(": Choir [Home, admin, recurs]").count(),
        4,
        "{found}"
    );
    assert!(
        found.contains(": Party [Home, admin, invitation of Eve]"),
        "{found}"
    );
    assert!(
        found.contains("the calendar Home of admin, which the whole household can see"),
        "{found}"
    );
    let line = |found: &str, what: &str, place: usize| {
        let mut lines = found.lines().filter(|line| line.contains(what));
        let line = lines
            .nth(place)
            .unwrap_or_else(|| panic!("{what}: {found}"));
        line.split(' ')
            .find(|word| word.starts_with("event_"))
            .unwrap()
            .to_owned()
    };
    // One time of four.
    let second = day(&home, 4);
    let date = format!("{}-{}-{}", &second[..4], &second[4..6], &second[6..]);
    let one = line(&found, "Choir", 1);
    let moved = ask(&format!(
        r#"edit_events {{"action": "change", "event_id": "{one}", "start": "{date}T20:00"}}"#
    ));
    assert!(
        moved.contains("Changed in the calendar Home of admin"),
        "{moved}"
    );
    let text = server.event("/ann/home/choir.ics").unwrap();
    for part in [
        "X-OWN:kept",
        "RRULE:FREQ=DAILY;COUNT=4",
        &format!("RECURRENCE-ID;TZID=Europe/Berlin:{second}T190000"),
        &format!("DTSTART;TZID=Europe/Berlin:{second}T200000"),
        &format!("DTEND;TZID=Europe/Berlin:{second}T213000"),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found = ask(r#"find_events {"query": "choir"}"#);
    assert_eq!(found.matches("19:00-20:30").count(), 3, "{found}");
    assert_eq!(found.matches("20:00-21:30").count(), 1, "{found}");
    let third = line(&found, "Choir", 2);
    ask(&format!(
        r#"edit_events {{"action": "delete", "event_id": "{third}"}}"#
    ));
    let text = server.event("/ann/home/choir.ics").unwrap();
    assert!(
        text.contains(&format!(
            "EXDATE;TZID=Europe/Berlin:{}T190000",
            day(&home, 5)
        )),
        "{text}"
    );
    // All of them, an hour earlier.
    let found = ask("find_events {}");
    assert_eq!(found.matches("Choir").count(), 3, "{found}");
    let date = format!("{}-{}-{}", &first[..4], &first[4..6], &first[6..]);
    let first_one = line(&found, "Choir", 0);
    ask(&format!(
        r#"edit_events {{"action": "change", "event_id": "{first_one}", "series": true, "start": "{date}T18:00", "title": "Big choir"}}"#
    ));
    let found = ask(r#"find_events {"query": "big choir"}"#);
    assert_eq!(found.matches("18:00-19:30").count(), 2, "{found}");
    assert_eq!(
        found.matches("19:00-20:30").count(),
        1,
        "the one that was moved: {found}"
    );
    let last = line(&found, "choir", 0);
    ask(&format!(
        r#"edit_events {{"action": "delete", "event_id": "{last}", "series": true}}"#
    ));
    assert_eq!(server.event("/ann/home/choir.ics"), None);
    assert_eq!(
        ask(r#"find_events {"query": "choir"}"#)
            .lines()
            .next()
            .unwrap_or_default()
            .matches("event_")
            .count(),
        0
    );
    // Others' invitations are left alone.
    let party = line(&ask("find_events {}"), "Party", 0);
    let refused = ask(&format!(
        r#"edit_events {{"action": "delete", "event_id": "{party}"}}"#
    ));
    assert!(refused.contains("Eve invites to it"), "{refused}");
    let invited = server.event("/ann/home/party.ics");
    for change in [
        format!(r#"{{"action": "change", "event_id": "{party}", "title": "Mine"}}"#),
        format!(r#"{{"action": "change", "event_id": "{party}", "start": "{date}T09:00"}}"#),
        format!(r#"{{"action": "delete", "event_id": "{party}", "series": true}}"#),
    ] {
        let refused = ask(&format!("edit_events {change}"));
        assert!(refused.contains("Eve invites to it"), "{refused}");
    }
    assert_eq!(server.event("/ann/home/party.ics"), invited);
    let is_written = |(method, path, _): &Request| {
        path == "/ann/home/party.ics" && matches!(&**method, "PUT" | "DELETE")
    };
    assert!(
        !server.requests().iter().any(is_written),
        "it is left alone"
    );
    // New ones: a time, and days that come again.
    let new = ask(&format!(
        r#"edit_events {{"action": "add", "title": "Dentist; 2nd, floor", "start": "{date}T09:30", "end": "10:15", "location": "Main St"}}"#
    ));
    assert!(
        new.contains("09:30-10:15: Dentist; 2nd, floor, Main St"),
        "{new}"
    );
    let rent = ask(&format!(
        r#"edit_events {{"action": "add", "title": "Rent", "start": "{date}T08:00", "repeat": "FREQ=MONTHLY", "calendar": "home"}}"#
    ));
    assert!(rent.contains("recurs"), "{rent}");
    let texts: Vec<String> = server
        .paths()
        .iter()
        .filter_map(|path| server.event(path))
        .collect();
    let all = texts.join("\n");
    for part in [
        "SUMMARY:Dentist\\; 2nd\\, floor",
        "BEGIN:VTIMEZONE",
        "RRULE:FREQ=MONTHLY",
        "TZID=Europe/Berlin",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // What was changed elsewhere meanwhile is not overwritten; a new reading shows it.
    server.put(
        "x.ics",
        &format!("UID:x\r\nSUMMARY:Elsewhere\r\nDTSTART:{first}T100000Z"),
    );
    home.server().advance_clock(Duration::from_secs(16 * 60));
    let mut user = home.websocket(&home.tokens.user);
    eventually("the event of another program is seen", || {
        titles(&mut user)
            .contains(&"Elsewhere".to_owned())
            .then_some(())
    });
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|(_, _, authorization)| authorization.is_some())
    );
}

#[test]
fn a_change_asks_shows_whose_calendar_it_is_and_follows_outside_text() {
    let (server, model) = (CalendarServer::start(), caller());
    let home = home_with(
        &model,
        json!({
            "permission_mode": "ask",
            "tool_permissions": { "find_events": "allow", "lists": "allow" },
        }),
    );
    let first = day(&home, 3);
    server.put(
        "own.ics",
        &format!("UID:own\r\nSUMMARY:Own\r\nDTSTART:{first}T100000Z"),
    );
    let mut admin = home.admin();
    add_account(&mut admin, &server);
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    let date = format!("{}-{}-{}", &first[..4], &first[4..6], &first[6..]);
    user.send(&json!({
        "type": "chat", "audience": "household",
        "message": format!(r#"edit_events {{"action": "add", "title": "Walk", "start": "{date}"}}"#),
    }));
    let asked = user.event("approval.requested");
    let shown = spoken_stamp(&date, Words::ENGLISH);
    assert_eq!(
        asked["reason"],
        format!(
            "The assistant wants to add to the calendar Home of admin, which the whole household \
             can see: Walk, {shown}"
        )
    );
    // Who asked may answer, as for lists.
    user.ask(json!({ "type": "approve", "approval_id": asked["approval_id"], "remember": "once", "id": 1 }));
    eventually("it is there", || {
        titles(&mut admin)
            .contains(&"Walk".to_owned())
            .then_some(())
    });
    // To its owner it is their own text, to others text of somebody else.
    for (token, is_outside) in [(&home.tokens.admin, false), (&home.tokens.user, true)] {
        let mut client = home.websocket(token);
        let found = json!({ "type": "chat", "message": "find_events {}", "audience": "household" });
        let conversation = client.ask(found)["conversation_id"].clone();
        assert!(result(&model).contains("Own"));
        client.ask(json!({ "type": "subscribe", "events": ["approval.requested", "chat.done"] }));
        client.send(&json!({
            "type": "chat", "conversation_id": conversation,
            "message": r#"lists {"action": "remove", "list": "shop", "items": ["milk"]}"#,
        }));
        let next = eventually("it asks or is done", || {
            let message = client.receive();
            message["event"].as_str().map(str::to_owned)
        });
        assert_eq!(next == "approval.requested", is_outside);
    }
}

#[test]
fn what_cannot_be_read_is_said_loses_nothing_and_tells_no_password() {
    let (server, elsewhere) = (CalendarServer::start(), CalendarServer::start());
    let home = Home::start(json!({}));
    let mut admin = home.admin();
    server.put(
        "a.ics",
        &format!("UID:a\r\nSUMMARY:Swim\r\nDTSTART:{}T100000Z", day(&home, 1)),
    );
    let added = add_account(&mut admin, &server);
    assert_eq!(titles(&mut admin), ["Swim"]);
    server.refuse_password(true);
    let again = json!({ "type": "update_calendar", "calendar_id": added["calendar_id"], "id": 1 });
    admin.ask(again.clone());
    let failing = settled(&mut admin, "Home", "failing");
    assert_eq!(
        failing["problem"],
        "the user name or the password is wrong (status 401)"
    );
    let mut german = home.websocket(&home.tokens.user);
    german.ask(json!({ "type": "auth", "token": home.tokens.user, "language": "de" }));
    assert_eq!(
        settled(&mut german, "Home", "failing")["problem"],
        "der Benutzername oder das Passwort ist falsch (Status 401)"
    );
    assert_eq!(titles(&mut admin), ["Swim"], "nothing is lost");
    let large = "x".repeat(21 * 1024 * 1024);
    server.file("/large.ics", "1", &calendar(&large));
    server.file("/many.ics", "1", &every_day(400, "20200101"));
    server.file("/page.ics", "1", "<html>");
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
        elsewhere.url("/ann/home/")
    );
    server.answer("/away", redirect);
    let closed = format!("http://127.0.0.1:{}/x.ics", support::program::free_port());
    for (name, url, login, state, problem) in [
        (
            "Large",
            server.url("/large.ics"),
            false,
            "failing",
            "it is larger than 20 MB",
        ),
        (
            "Many",
            server.url("/many.ics"),
            false,
            "ok",
            "more than 10000 event dates",
        ),
        (
            "Page",
            server.url("/page.ics"),
            false,
            "failing",
            "there is no calendar at its address",
        ),
        (
            "None",
            server.url("/none.ics"),
            false,
            "failing",
            "status 401",
        ),
        (
            "Closed",
            closed,
            false,
            "failing",
            "its server cannot be reached",
        ),
        (
            "Away",
            server.url("/away"),
            true,
            "failing",
            "which gets no password",
        ),
    ] {
        let mut request = json!({ "name": name, "url": url });
        if login {
            (request["username"], request["password"]) = (json!("ann"), json!("hidden-word"));
        }
        add(&mut admin, request);
        let found = settled(&mut admin, name, state);
        let said = found["problem"].as_str().unwrap_or_default();
        assert!(said.contains(problem), "{name}: {found}");
        // It is there for 20 of them at most, and removed like any other.
        let id = &found["calendar_id"];
        if name == "Many" {
            assert_eq!(found["events"], 10_000);
            admin.ask(json!({ "type": "remove_calendar", "calendar_id": id }));
        }
    }
    let foreign = elsewhere.requests();
    assert!(
        !foreign.is_empty() && foreign.iter().all(|(_, _, one)| one.is_none()),
        "{foreign:?}"
    );
    // An address that is not the home network's is no way into it.
    let mut user = home.websocket(&home.tokens.user);
    let public = json!({ "type": "add_calendar", "name": "X", "url": "http://localtest.me.invalid/x.ics", "id": 3 });
    user.ask(public);
    settled(&mut user, "X", "failing");
    for (url, code) in [
        ("http://192.168.1.4/x.ics", "unauthorized"),
        ("http://nas.local/x.ics", "unauthorized"),
        ("https://ann:secret@example.org/", "invalid_request"),
        ("ftp://example.org/", "invalid_request"),
    ] {
        let request = json!({ "type": "add_calendar", "name": "Y", "url": url });
        assert_eq!(user.refused(request), code, "{url}");
    }
    let doctor = printed(&run(home.folder.path(), &["doctor"]));
    assert!(
        doctor.contains("the calendar Home of admin cannot be read: the user name or the password"),
        "{doctor}"
    );
    let listed = printed(&run(home.folder.path(), &["calendar", "list"]));
    assert!(
        listed.contains("Large") && listed.contains("larger than 20 MB"),
        "{listed}"
    );
    server.refuse_password(false);
    admin.ask(again);
    settled(&mut admin, "Home", "ok");
    assert_eq!(titles(&mut admin), ["Swim"]);
    // Nowhere but in its own encrypted place.
    let database = fs::read(home.folder.path().join("hearth.db")).unwrap();
    let journal = fs::read(home.folder.path().join("hearth.db-wal")).unwrap_or_default();
    for bytes in [database, journal] {
        assert!(
            !bytes.windows(11).any(|part| part == b"hidden-word"),
            "the password is encrypted"
        );
    }
}

#[test]
fn a_wrong_password_is_logged_without_the_password() {
    let (server, folder) = (CalendarServer::start(), TemporaryDirectory::new());
    server.refuse_password(true);
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut admin = Client::websocket(program.address);
    admin.authenticate(&tokens.admin);
    let account = json!({
        "name": "Home", "url": server.url("/"), "username": "ann", "password": "hidden-word",
    });
    add(&mut admin, account);
    settled(&mut admin, "Home", "failing");
    let log = eventually("it is logged", || {
        let log = fs::read_to_string(folder.path().join("hearth.log")).ok()?;
        log.contains("the user name or the password is wrong")
            .then_some(log)
    });
    assert!(
        !log.contains("hidden-word") && !log.contains("YW5uOmhpZGRl"),
        "{log}"
    );
}

#[test]
fn a_calendar_that_hangs_holds_up_nobody_elses() {
    let server = CalendarServer::start();
    let home = Home::offline();
    let held = server.hold("/hang");
    let mut admin = home.admin();
    for number in 0..4 {
        let url = server.url(&format!("/hang{number}.ics"));
        add(
            &mut admin,
            json!({ "name": format!("Hang {number}"), "url": url }),
        );
    }
    eventually("two of them are asked", || {
        (server.requests().len() >= 2).then_some(())
    });
    let text = calendar(&format!(
        "BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:Bystander\r\nDTSTART:{}T100000Z\r\nEND:VEVENT\r\n",
        day(&home, 1)
    ));
    server.file("/fine.ics", "1", &text);
    // Of another person, who is made an admin to reach the test's server.
    let mut other = home.websocket(&home.add_person("bob", store::UserRole::Admin));
    add(
        &mut other,
        json!({ "name": "Fine", "url": server.url("/fine.ics") }),
    );
    settled(&mut other, "Fine", "ok");
    assert_eq!(titles(&mut other), ["Bystander"]);
    let asked = server
        .requests()
        .iter()
        .filter(|(_, path, _)| path.starts_with("/hang"))
        .count();
    assert_eq!(asked, 2, "a person has two readings at a time");
    assert_eq!(
        settled(&mut admin, "Hang 0", "waiting")["problem"],
        Value::Null
    );
    drop(held);
}

#[test]
fn a_record_is_exported_without_its_password_and_goes_with_its_person() {
    let server = CalendarServer::start();
    let home = Home::offline();
    server.put(
        "a.ics",
        &format!("UID:a\r\nSUMMARY:Swim\r\nDTSTART:{}T100000Z", day(&home, 1)),
    );
    let folder = home.folder.path();
    let hidden = folder.join("password");
    fs::write(&hidden, "hidden-word\n").unwrap();
    let mut command = support::program::hearth(folder);
    command.args([
        "calendar",
        "add",
        "Home",
        &server.url("/"),
        "--owner",
        "user",
        "--login",
        "ann",
        "--household",
    ]);
    command.stdin(fs::File::open(&hidden).unwrap());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let added = output_of(command.spawn().unwrap());
    assert!(added.status.success(), "{}", printed(&added));
    let mut user = home.websocket(&home.tokens.user);
    settled(&mut user, "Home", "ok");
    assert_eq!(titles(&mut user), ["Swim"]);
    let shown = printed(&run(folder, &["calendar", "events"]));
    assert!(shown.contains("Swim"), "{shown}");
    let exported = printed(&run(folder, &["export", "--all"]));
    let line = exported
        .lines()
        .find(|line| line.contains("\"calendar\""))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        line,
        json!({
            "type": "calendar", "name": "Home", "url": server.url("/"), "username": "ann",
            "owner": "user", "audience": "household", "read_only": false, "refresh_minutes": 15,
        })
    );
    let file = folder.join("export.jsonl");
    fs::write(&file, &exported).unwrap();
    let other = Home::offline();
    for _ in 0..2 {
        let imported = run(other.folder.path(), &["import", file.to_str().unwrap()]);
        assert!(imported.status.success(), "{}", printed(&imported));
    }
    let mut owner = other.websocket(&other.tokens.user);
    let there = settled(&mut owner, "Home", "failing");
    assert_eq!(
        (&there["owner"], &there["password_set"]),
        (&json!("user"), &json!(false))
    );
    let given = json!({ "type": "update_calendar", "calendar_id": there["calendar_id"], "password": "hidden-word", "id": 1 });
    owner.ask(given);
    settled(&mut owner, "Home", "ok");
    assert_eq!(titles(&mut owner), ["Swim"]);

    let mut admin = home.admin();
    let counted = admin.ask(json!({ "type": "get_belongings", "name": "user", "id": 1 }));
    assert_eq!(counted["calendars"], 1);
    let routine = json!({ "type": "create_schedule", "prompt": "What?", "on": "event 30" });
    assert_ne!(admin.ask(routine)["next_at"], Value::Null);
    admin.ask(json!({ "type": "remove_user", "name": "user" }));
    let listed = admin.ask(json!({ "type": "list_schedules" }));
    assert_eq!(listed["schedules"][0]["next_at"], Value::Null, "{listed}");
    assert_eq!(
        admin.ask(json!({ "type": "list_calendars" }))["calendars"],
        json!([])
    );
    assert!(events(&mut admin).is_empty());
}

#[test]
fn a_day_is_shown_with_all_that_waits() {
    let (server, model) = (CalendarServer::start(), caller());
    let home = home_with(&model, json!({ "permission_mode": "ask" }));
    server.put(
        "a.ics",
        &format!(
            "UID:a\r\nSUMMARY:All day\r\nDTSTART;VALUE=DATE:{}\r\nDURATION:P3D",
            day(&home, 0)
        ),
    );
    server.put(
        "b.ics",
        &format!(
            "UID:b\r\nSUMMARY:Later\r\nDTSTART:{}T100000Z",
            day(&home, 9)
        ),
    );
    let mut admin = home.admin();
    add_account(&mut admin, &server);
    let mut user = home.websocket(&home.tokens.user);
    user.ask(json!({ "type": "update_list", "list": "Shopping", "add": ["milk"] }));
    user.ask(json!({ "type": "update_list", "list": "Done", "add": ["x"], "check": ["x"] }));
    // Due or told, it waits.
    user.ask(json!({ "type": "create_schedule", "say": "Call Bob", "at": "+1s" }));
    admin.ask(json!({ "type": "create_schedule", "say": "Not theirs", "at": "+1s" }));
    let reply = json!({ "type": "chat", "message": "hello", "audience": "household" });
    let unread = admin.ask(reply)["conversation_id"].clone();
    user.ask(json!({ "type": "subscribe", "events": ["approval.requested"] }));
    user.send(&json!({
        "type": "chat",
        "message": r#"lists {"action": "add", "list": "shop", "items": ["milk"]}"#,
    }));
    user.event("approval.requested");
    let today = user.ask(json!({ "type": "today", "id": "today" }));
    let all = |member: &str, field: &str| -> Vec<Value> {
        let all = today[member].as_array().unwrap().iter();
        all.map(|one| one[field].clone()).collect()
    };
    assert_eq!(all("events", "title"), ["All day"]);
    assert_eq!(all("lists", "list"), ["Shopping"]);
    assert_eq!(all("approvals", "tool"), ["lists"]);
    assert_eq!(all("schedules", "say"), ["Call Bob"]);
    assert!(
        all("unread", "conversation_id").contains(&unread),
        "{today}"
    );
    let refused = json!({ "type": "today", "user": "admin", "id": "other" });
    assert_eq!(user.refused(refused), "unauthorized");
    let shown = printed(&run(home.folder.path(), &["today", "--user", "user"]));
    for part in ["All day (Home)", "Shopping: 1 open", "Questions"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        !shown.contains("Done") && !shown.contains("Later"),
        "{shown}"
    );
}

#[test]
fn a_routine_waits_for_the_events_of_a_calendar() {
    let server = CalendarServer::start();
    let model = Model::start(|_, _| Act::say("done"));
    let home = home_with(&model, json!({}));
    let at = |hours: u64| {
        let time = home.clock.now().plus(Duration::from_secs(hours * 3_600));
        time.to_string()[..19].replace(['-', ':'], "")
    };
    let event = |uid: &str, title: &str, hours: u64| {
        format!(
            "BEGIN:VEVENT\r\nUID:{uid}\r\nSUMMARY:{title}\r\nDTSTART:{}Z\r\nEND:VEVENT\r\n",
            at(hours)
        )
    };
    let both = event("dentist", "Dentist", 3) + &event("choir", "Choir", 6);
    server.file("/family.ics", "1", &calendar(&both));
    let mut admin = home.admin();
    let mut user = home.websocket(&home.tokens.user);
    let routine = user.ask(json!({
        "type": "create_schedule", "prompt": "What do I need?", "on": "event 30 Family",
    }));
    assert_eq!(routine["next_at"], Value::Null, "{routine}");
    assert_eq!(
        routine["when"],
        "30 minutes before each event of the calendar family; no such event is known"
    );
    let secret = user.ask(json!({
        "type": "create_schedule", "say": "Leave", "on": "event 30 Private",
    }));
    user.ask(json!({ "type": "subscribe", "events": ["chat.done", "reminder.told"] }));
    for (name, audience) in [("Family", "household"), ("Private", "private")] {
        let url = server.url("/family.ics");
        let request = json!({ "name": name, "url": url, "audience": audience });
        add(&mut admin, request);
        settled(&mut admin, name, "ok");
    }
    let planned = |user: &mut Client, id: &Value| {
        let listed = user.ask(json!({ "type": "list_schedules" }));
        let mut all = listed["schedules"].as_array().unwrap().iter();
        let one = all.find(|one| one["schedule_id"] == *id).unwrap();
        one["next_at"].clone()
    };
    assert_ne!(planned(&mut user, &routine["schedule_id"]), Value::Null);
    // What its maker does not see causes nothing.
    assert_eq!(planned(&mut user, &secret["schedule_id"]), Value::Null);

    home.server().advance_clock(Duration::from_secs(151 * 60));
    let done = user.event("chat.done");
    let asked = user.ask(json!({
        "type": "get_messages", "conversation_id": done["conversation_id"],
    }));
    let asked = asked["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(asked.starts_with("What do I need?\n\n"), "{asked}");
    assert!(
        asked.contains("Dentist: ") && !asked.contains("Choir"),
        "{asked}"
    );
    home.server().advance_clock(Duration::from_secs(180 * 60));
    let done = user.event("chat.done");
    let asked = user.ask(json!({
        "type": "get_messages", "conversation_id": done["conversation_id"],
    }));
    let asked = asked["messages"].as_array().unwrap().iter();
    assert!(
        asked
            .filter(|one| one["content"].to_string().contains("Choir: "))
            .count()
            == 1
    );
    assert_eq!(planned(&mut user, &routine["schedule_id"]), Value::Null);
}

/// An admin who alone sees a calendar with an event in six hours.
fn with_private_event(home: &Home, server: &CalendarServer) -> Client {
    let later = home.clock.now().plus(Duration::from_secs(6 * 3_600));
    let later = later.to_string()[..19].replace(['-', ':'], "");
    let event = format!("BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:A\r\nDTSTART:{later}Z\r\nEND:VEVENT\r\n");
    server.file("/own.ics", "1", &calendar(&event));
    let mut admin = home.admin();
    let private = json!({ "name": "Own", "url": server.url("/own.ics"), "audience": "private" });
    add(&mut admin, private);
    settled(&mut admin, "Own", "ok");
    admin
}

#[test]
fn what_others_see_waits_for_no_private_event_and_the_terminal_s_for_the_household_s() {
    let server = CalendarServer::start();
    let model = Model::start(|_, _| Act::say("done"));
    let home = home_with(&model, json!({}));
    let mut admin = with_private_event(&home, &server);

    let of_household = home.token("admin", &json!({ "only": "household" }));
    let said = json!({ "type": "chat", "message": "hello", "audience": "household" });
    let shared = admin.ask(said)["conversation_id"].clone();
    let own = admin.chat("hello")["conversation_id"].clone();
    let routine = json!({ "type": "create_schedule", "prompt": "What?", "on": "event 30" });
    let there = |conversation: &Value| {
        let mut there = routine.clone();
        there["conversation_id"] = conversation.clone();
        there
    };
    let narrowed = home.websocket(&of_household).ask(routine.clone());
    let in_shared = admin.ask(there(&shared));
    let in_own = admin.ask(there(&own));
    let alone = admin.ask(routine);
    let terminal = ["schedule", "add", "--on", "event 30", "What?"];
    let terminal = output_of_terminal(home.folder.path(), &terminal);
    let next = |client: &mut Client, id: &Value| {
        let listed = client.ask(json!({ "type": "list_schedules" }));
        let mut all = listed["schedules"].as_array().unwrap().iter();
        let one = all.find(|one| one["schedule_id"] == *id).unwrap();
        one["next_at"].clone()
    };
    for planned in [&in_own, &alone] {
        assert_ne!(next(&mut admin, &planned["schedule_id"]), Value::Null);
    }
    for seen in [
        &narrowed["schedule_id"],
        &in_shared["schedule_id"],
        &terminal,
    ] {
        assert_eq!(next(&mut admin, seen), Value::Null, "{seen}");
    }
    // Whoever sees a conversation from now on knows nothing of what was planned.
    admin.ask(json!({
        "type": "share_conversation", "conversation_id": own, "audience": "household",
    }));
    assert_eq!(next(&mut admin, &in_own["schedule_id"]), Value::Null);
    let everybody =
        json!({ "name": "Ours", "url": server.url("/own.ics"), "audience": "household" });
    add(&mut admin, everybody);
    settled(&mut admin, "Ours", "ok");
    for seen in [&narrowed, &in_shared, &in_own] {
        assert_ne!(next(&mut admin, &seen["schedule_id"]), Value::Null);
    }
    assert_ne!(next(&mut admin, &terminal), Value::Null, "nobody owns it");
}

#[test]
fn who_reminds_somebody_of_their_events_learns_of_none() {
    let server = CalendarServer::start();
    let model = caller();
    let home = home_with(&model, json!({ "permission_mode": "allow" }));
    let mut admin = with_private_event(&home, &server);

    let mut user = home.websocket(&home.tokens.user);
    let remind = |event: &str| json!({ "type": "create_schedule", "say": "Leave", "on": event, "people": ["admin"] });
    let id = user.ask(remind("event 60"))["schedule_id"].clone();
    admin.ask(json!({ "type": "pause_schedule", "schedule_id": id, "paused": false }));
    let made = user.ask(remind("event 30"));
    assert_eq!(
        (&made["next_at"], &made["next"]),
        (&Value::Null, &Value::Null)
    );
    let call = json!({ "action": "create", "say": "Go", "on": "event 30", "people": ["admin"] });
    user.chat(&format!("schedule {call}"));
    let told = result(&model);
    assert!(told.contains("it comes on a change: event 30"), "{told}");
    let listed = admin.ask(json!({ "type": "list_schedules" }));
    let listed = listed["schedules"].as_array().unwrap();
    assert_eq!(listed.len(), 3);
    for one in listed {
        assert_ne!(one["next_at"], Value::Null, "{one}");
    }
}

/// The ID that a command prints.
fn output_of_terminal(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", printed(&output));
    let id = String::from_utf8_lossy(&output.stdout);
    Value::from(id.trim())
}

#[test]
fn a_password_goes_to_no_other_server_and_is_its_owner_s_alone() {
    let (server, elsewhere) = (CalendarServer::start(), CalendarServer::start());
    let home = Home::offline();
    let mut owner = home.admin();
    let id = add_account(&mut owner, &server)["calendar_id"].clone();
    let update = |more: Value| {
        let mut update = json!({ "type": "update_calendar", "calendar_id": id, "id": "update" });
        let fields = update.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        update
    };
    let mut eve = home.websocket(&home.add_person("eve", UserRole::Admin));
    for of_owner in [
        json!({ "url": elsewhere.url("/") }),
        json!({ "username": "eve" }),
        json!({ "password": "x" }),
    ] {
        assert_eq!(eve.refused(update(of_owner)), "unauthorized");
    }
    assert_eq!(eve.ask(update(json!({ "name": "House" })))["name"], "House");
    let kept = owner.ask(update(json!({ "url": server.url("/ann/") })));
    assert_eq!(
        (&kept["password_set"], &kept["username"]),
        (&json!(true), &json!("ann"))
    );
    // Nor by a mistake of its owner.
    let moved = owner.ask(update(json!({ "url": elsewhere.url("/") })));
    assert_eq!(
        (&moved["password_set"], &moved["username"]),
        (&json!(false), &Value::Null)
    );
}

#[test]
fn a_token_with_other_tools_reads_no_calendars() {
    let home = Home::offline();
    let url = "http://127.0.0.1:1/private-4711/basic.ics";
    add(&mut home.admin(), json!({ "name": "Clinic", "url": url }));
    for (tools, is_refused) in [(["recall"], true), (["find_events"], false)] {
        let token = home.token("admin", &json!({ "tools": tools }));
        let mut client = home.websocket(&token);
        for command in ["today", "list_calendars", "list_events"] {
            let request = json!({ "type": command, "id": command });
            match is_refused {
                true => assert_eq!(client.refused(request), "unauthorized", "{command}"),
                false => drop(client.ask(request)),
            }
        }
        let exported = client.ask(json!({ "type": "export" }));
        let exported = exported["text"].as_str().unwrap();
        assert_eq!(exported.contains("4711"), !is_refused, "{exported}");
    }
}

#[test]
fn the_address_of_a_file_is_in_its_owner_s_export_alone() {
    let server = CalendarServer::start();
    let home = Home::start(json!({}));
    server.file("/private-4711/basic.ics", "1", &calendar(""));
    let url = server.url("/private-4711/basic.ics");
    let mut admin = home.admin();
    add(&mut admin, json!({ "name": "Bins", "url": url }));
    settled(&mut admin, "Bins", "ok");
    let whole = printed(&run(home.folder.path(), &["export", "--all"]));
    assert!(whole.contains("Bins") && !whole.contains("4711"), "{whole}");
    let url = format!("ws://{}/ws", home.address());
    let export = [
        "account",
        "export",
        "--url",
        &url,
        "--token",
        &home.tokens.admin,
    ];
    let own = printed(&run(home.folder.path(), &export));
    assert!(own.contains("4711"), "{own}");
}

#[test]
fn a_calendar_without_end_and_one_of_a_million_times_take_no_memory_and_hold_up_nobody() {
    static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];
    const WHOLE: usize = 100 * 1024 * 1024;
    let sent = Arc::new(AtomicUsize::new(0));
    let endless = {
        let sent = Arc::clone(&sent);
        Served::start(move |socket| {
            let mut reader = BufReader::new(socket);
            if read_request(&mut reader).is_none() {
                return;
            }
            // Its length is not said.
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/calendar\r\nConnection: close\r\n\r\n";
            let begin = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n";
            let socket = reader.get_mut();
            let mut is_open = socket
                .write_all(format!("{head}{begin}").as_bytes())
                .is_ok();
            while is_open && sent.load(Ordering::SeqCst) < WHOLE {
                is_open = socket.write_all(&PIECE).is_ok();
                sent.fetch_add(PIECE.len(), Ordering::SeqCst);
            }
        })
    };
    let (server, folder) = (CalendarServer::start(), TemporaryDirectory::new());
    // Two years ahead of each: more than a million.
    server.file("/many.ics", "1", &every_day(1_400, "20260101"));
    let fine = |title: &str| {
        let day = Clock::system().now().plus(Duration::from_secs(86_400));
        let day = day.to_string()[..10].replace('-', "");
        calendar(&format!(
            "BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:{title}\r\nDTSTART:{day}T100000Z\r\nEND:VEVENT\r\n"
        ))
    };
    server.file("/fine.ics", "1", &fine("Bystander"));
    write_config(folder.path(), json!({}));
    let tokens = make_people(folder.path());
    let program = Program::serve(folder.path());
    let mut admin = Client::websocket(program.address);
    admin.authenticate(&tokens.admin);
    let before = status(program.id(), "VmHWM").unwrap();
    let url = format!("http://{}/endless.ics", endless.address);
    add(&mut admin, json!({ "name": "Endless", "url": url }));
    let failing = settled(&mut admin, "Endless", "failing");
    assert_eq!(failing["problem"], "it is larger than 20 MB");
    let sent = sent.load(Ordering::SeqCst);
    assert!(sent < WHOLE / 2, "it was read on to {sent} bytes");
    add(
        &mut admin,
        json!({ "name": "Many", "url": server.url("/many.ics") }),
    );
    let many = settled(&mut admin, "Many", "ok");
    assert_eq!(many["events"], 10_000);
    let said = many["problem"].as_str().unwrap();
    assert!(said.contains("more than 10000 event dates"), "{said}");
    let taken = status(program.id(), "VmHWM").unwrap() - before;
    assert!(taken < 96 * 1024, "it took {taken} KiB more");
    add(
        &mut admin,
        json!({ "name": "Fine", "url": server.url("/fine.ics") }),
    );
    settled(&mut admin, "Fine", "ok");
    assert!(titles(&mut admin).contains(&"Bystander".to_owned()));
    let doctor = printed(&run(folder.path(), &["doctor"]));
    assert!(
        doctor.contains("the calendar Endless of admin cannot be read: it is larger than 20 MB"),
        "{doctor}"
    );
    let listed = printed(&run(folder.path(), &["calendar", "list"]));
    let line = |name: &str| listed.lines().find(|line| line.contains(name)).unwrap();
    assert!(
        line("Endless").contains("it is larger than 20 MB"),
        "{listed}"
    );
    assert!(
        line("Many").contains("more than 10000 event dates"),
        "{listed}"
    );
    assert!(line("Fine").contains("ok"), "{listed}");
}

#[test]
fn an_event_that_comes_again_is_known_two_years_ahead() {
    let server = CalendarServer::start();
    let home = Home::offline();
    let event = format!(
        "BEGIN:VEVENT\r\nUID:rent\r\nSUMMARY:Rent\r\nDTSTART:{}T100000Z\r\nRRULE:FREQ=WEEKLY\r\n\
         END:VEVENT\r\n",
        day(&home, 1)
    );
    server.file("/rent.ics", "1", &calendar(&event));
    let mut admin = home.admin();
    add(
        &mut admin,
        json!({ "name": "Rent", "url": server.url("/rent.ics") }),
    );
    let read = settled(&mut admin, "Rent", "ok");
    let times = read["events"].as_u64().unwrap();
    assert!((104..=105).contains(&times), "{read}");
    assert_eq!(read["problem"], Value::Null);
}
