//! The house keeps its shape: imports run one way, and the top level holds what
//! it should.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms, lowest first, as lib.rs describes them. A room may import only what
/// stands before it.
const ROOMS: [&str; 24] = [
    "error",
    "ids",
    "clock",
    "secret",
    "measure",
    "json",
    "threads",
    "calendar",
    "config",
    "tls",
    "protocol",
    "store",
    "agent",
    "service",
    "gate",
    "dial",
    "http",
    "webhook",
    "metrics",
    "model_api",
    "relay",
    "web",
    "server",
    "cli",
];
/// Rooms that know each other: errors make references, ids are made of random
/// bytes and time, secrets are written in base32.
const FOUNDATION: usize = 4;

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    files
}

fn room_of(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

fn imported_rooms(text: &str) -> Vec<String> {
    text.match_indices("crate::")
        .filter(|(place, _)| {
            !text[..*place].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
        })
        .map(|(place, found)| {
            let rest = &text[place + found.len()..];
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .filter(|room| !room.is_empty())
        .collect()
}

#[test]
fn imports_run_one_way() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in sources() {
        let room = room_of(&path);
        if ["lib", "main", "build"].contains(&room.as_str()) {
            continue;
        }
        let place = ROOMS.iter().position(|known| *known == room);
        let Some(place) = place else {
            wrong.push(format!(
                "{}: {room} is not in the list of rooms",
                path.display()
            ));
            continue;
        };
        for imported in imported_rooms(&text) {
            seen += 1;
            let other = ROOMS.iter().position(|known| *known == imported);
            if other.is_none_or(|other| other > place.max(FOUNDATION - 1)) {
                wrong.push(format!(
                    "{}: {room} must not import {imported}",
                    path.display()
                ));
            }
        }
    }
    assert!(seen > 100, "the imports were not found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_panics_by_habit_and_nothing_is_unsafe() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let is_test_file = path.iter().any(|part| {
            let part = part.to_str().unwrap().trim_end_matches(".rs");
            part == "tests" || part == "testing" || part.starts_with("test_")
        });
        if is_test_file {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let line = line.trim();
            if line.starts_with("//") {
                continue;
            }
            for habit in [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "unsafe "] {
                if line.contains(habit) {
                    wrong.push(format!("{}:{}: {habit}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sql_lives_in_the_store_alone() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if room_of(&path) != "store" && text.contains("rusqlite") {
            wrong.push(path.display().to_string());
        }
    }
    assert!(
        wrong.is_empty(),
        "rusqlite is used outside store/: {}",
        wrong.join(", ")
    );
}
