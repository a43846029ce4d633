//! What the server does with its data by itself: nightly backups, retention.

use std::fs;
use std::net::TcpStream;

use rusqlite::Connection;
use serde_json::json;

use super::{DAY, eventually, good, nightly, sample};
use support::home::Home;

#[test]
fn nights_have_backups_and_old_ones_go() {
    let mut home = Home::start(json!({"backup": {"keep": 2, "at": "00:00"}}));
    let backups = home.folder.path().join("backups");
    let mut client = home.admin();
    client.chat("hello");
    assert!(
        nightly(&backups).is_empty(),
        "the first day has no night before it"
    );
    fs::create_dir(&backups).unwrap();
    fs::write(backups.join("hearth-before-update.db"), "mine").unwrap();
    fs::write(backups.join("hearth-nightly-2020-01-01.db.partial"), "half").unwrap();
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..3 {
        home.server().advance_clock(DAY);
        let newest = eventually("the night's backup", || {
            let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
            let newest = status["newest"].as_str()?.to_owned();
            (!seen.contains(&newest)).then_some(newest)
        });
        seen.push(newest);
    }
    let expected: Vec<String> = ["hearth-before-update.db".to_owned()]
        .into_iter()
        .chain(
            seen[1..]
                .iter()
                .map(|night| format!("hearth-nightly-{night}.db")),
        )
        .collect();
    eventually("the oldest to go", || {
        (nightly(&backups) == expected).then_some(())
    });

    // A night that was missed is made up for; what goes wrong is told.
    home.stop();
    home.clock.advance(5 * DAY);
    home.restart();
    let mut client = home.admin();
    eventually("the missed night", || {
        let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
        (status["newest"] != json!(seen[2])).then_some(())
    });
    eventually("its end", || (nightly(&backups).len() == 3).then_some(()));
    fs::remove_dir_all(&backups).unwrap();
    fs::write(&backups, "in the way").unwrap();
    home.server().advance_clock(DAY);
    let problem = eventually("the problem", || {
        let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
        status["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("backups"), "{problem}");
}

#[test]
fn a_database_of_which_no_backup_is_kept_is_checked_at_night() {
    let mut home = Home::start(json!({"backup": {"keep": 0, "at": "00:00"}}));
    home.stop();
    let database = Connection::open(home.folder.path().join("hearth.db")).unwrap();
    // A table of which nothing is left but its pages.
    let damage = "CREATE TABLE lost (x); INSERT INTO lost VALUES (1);
        PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'lost';";
    database.execute_batch(damage).unwrap();
    drop(database);
    home.restart();
    let mut client = home.admin();
    let mut problem = || client.ask(json!({"type": "server_info"}))["backup"]["problem"].take();
    let begun = home.server().last_tick();
    eventually("the night before to be over", || {
        (home.server().last_tick() > begun).then_some(())
    });
    assert!(problem().is_null());
    home.server().advance_clock(DAY);
    let problem = eventually("the problem", || problem().as_str().map(str::to_owned));
    assert!(problem.contains("the database is damaged"), "{problem}");
    assert!(!home.folder.path().join("backups").exists());
}

#[test]
fn a_data_directory_that_is_gone_is_not_made_again() {
    let home = Home::start(json!({"backup": {"at": "00:00"}}));
    let mut client = home.admin();
    // The server may write a file into it meanwhile.
    eventually("the directory is gone", || {
        fs::remove_dir_all(home.folder.path()).ok()
    });
    home.server().advance_clock(DAY);
    let problem = eventually("the problem", || {
        let status = client.ask(json!({"type": "server_info"}))["backup"].clone();
        status["problem"].as_str().map(str::to_owned)
    });
    assert!(problem.contains("backups cannot be created"), "{problem}");
    assert!(!home.folder.path().exists());
}

#[test]
fn a_dropped_home_has_stopped_before_its_folder_is_removed() {
    let home = Home::start(json!({"backup": {"at": "00:00"}}));
    let (address, folder) = (home.address(), home.folder.path().to_owned());
    home.server().advance_clock(DAY);
    drop(home);
    assert!(TcpStream::connect(address).is_err(), "it still listens");
    assert!(!folder.exists());
}

#[test]
fn old_conversations_go_where_the_owner_wants_it() {
    let home = Home::start(json!({"retention": {"conversations_days": 30}, "backup": {"keep": 0}}));
    let [mut client, mut listener] = [(); 2].map(|()| home.admin());
    let subscribe = json!({"type": "subscribe", "events": ["conversation.deleted"]});
    let since = listener.ask(subscribe)["seq"].clone();
    let old = client.chat("soon forgotten")["conversation_id"].clone();
    home.server().advance_clock(20 * DAY);
    client.chat("still fresh");
    let imported = good(home.folder.path(), &["import", &sample("claude.json")]);
    assert!(imported.contains("2 conversations"), "{imported}");
    home.server().advance_clock(20 * DAY);
    let titles = eventually("the old conversation to go", || {
        let list = client.ask(json!({"type": "list_conversations"}))["conversations"].clone();
        let titles: Vec<String> = list
            .as_array()?
            .iter()
            .map(|one| one["title"].as_str().unwrap().to_owned())
            .collect();
        (!titles.contains(&"soon forgotten".to_owned())).then_some(titles)
    });
    assert!(titles.contains(&"still fresh".to_owned()), "{titles:?}");
    // As when a person deletes it.
    while listener.event("conversation.deleted")["conversation_id"] != old {}
    let mut late = home.admin();
    late.ask(json!({"type": "subscribe", "since": since}));
    late.send(&json!({"type": "ping"}));
    loop {
        let message = late.receive();
        if message["type"] != "event" {
            break;
        }
        let is_about_it = message["conversation_id"] == old;
        assert!(
            !is_about_it || message["event"] == "conversation.deleted",
            "{message}"
        );
    }
}
