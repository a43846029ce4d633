//! A real CalDAV server, Radicale from PyPI: `make test-peers`. Without Python or a network the
//! test says so and is skipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::calendars::{add_account_at, caller, day, events, result};
use support::home::{Home, TemporaryDirectory};
use support::peers;
use support::programs::worked;

#[test]
#[ignore = "installs Radicale from PyPI: make test-peers"]
fn radicale_is_found_by_its_address_read_and_changed() {
    let Some(programs) = peers::RADICALE.installed() else {
        return;
    };
    let folder = TemporaryDirectory::new();
    let address = peers::free_address();
    fs::write(folder.path().join("users"), "ann@example.org:hidden-word\n").unwrap();
    let mut command = Command::new(programs.join("python"));
    command.args(["-m", "radicale", "--hosts", &address.to_string()]);
    command.args([
        "--auth-type",
        "htpasswd",
        "--auth-htpasswd-encryption",
        "plain",
    ]);
    command
        .arg("--auth-htpasswd-filename")
        .arg(folder.path().join("users"));
    command
        .arg("--storage-filesystem-folder")
        .arg(folder.path().join("collections"));
    let _radicale = peers::Running::start("radicale", &mut command, address, "/");
    let model = caller();
    let home = Home::start(model.config_with(json!({ "time_zone": "Europe/Berlin" })));
    let url = format!("http://{address}");
    let python = |arguments: &[&str]| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/peers/radicale.py");
        let mut command = Command::new(programs.join("python"));
        peers::script(command.arg(source).arg(&url).args(arguments))
    };
    let first = day(&home, 3);
    python(&["make", &first]);
    let mut admin = home.admin();
    add_account_at(&mut admin, &url, "ann@example.org");
    let found = events(&mut admin);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["title"], "Choir & <tea>");
    let mut ask = |text: String| {
        admin.chat(&text);
        result(&model)
    };
    let date = format!("{}-{}-{}", &first[..4], &first[4..6], &first[6..]);
    let id = |place: usize| found[place]["event_id"].as_str().unwrap();
    let added = ask(format!(
        r#"edit_events {{"action": "add", "title": "Rent", "start": "{date}T09:30", "repeat": "FREQ=MONTHLY"}}"#
    ));
    assert!(added.contains("09:30-10:30: Rent"), "{added}");
    let changed = ask(format!(
        r#"edit_events {{"action": "change", "event_id": "{}", "title": "Big choir"}}"#,
        id(1)
    ));
    assert!(changed.contains("Big choir"), "{changed}");
    let deleted = ask(format!(
        r#"edit_events {{"action": "delete", "event_id": "{}"}}"#,
        id(2)
    ));
    assert!(deleted.contains("Deleted"), "{deleted}");
    let kept = python(&["show"]);
    for part in [
        "SUMMARY:Rent",
        "RRULE:FREQ=MONTHLY",
        "TZID:Europe/Berlin",
        "SUMMARY:Big choir",
        "EXDATE",
    ] {
        assert!(kept.contains(part), "{part}: {kept}");
    }
    let gone = ask(format!(
        r#"edit_events {{"action": "delete", "series": true, "event_id": "{}"}}"#,
        id(0)
    ));
    assert!(gone.contains("Deleted"), "{gone}");
    let kept = python(&["show"]);
    assert!(!kept.contains("hoir") && kept.contains("Rent"), "{kept}");
    worked();
}
