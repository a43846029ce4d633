//! The lists by which a release is laid out keep pace with the code.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// How names of our own functions begin.
const OURS: &str = "_ZN6hearth";
/// How many of them may be gone, in percent. Each costs an idle server up to 64 KiB.
const MOST_GONE: usize = 20;

#[test]
fn the_lists_name_functions_that_there_are() {
    let known = names_in(env!("CARGO_BIN_EXE_hearth"));
    if known.is_empty() {
        eprintln!("left out: this compiler names functions in another way");
        return;
    }
    for list in ["start", "work"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/build/{list}.txt"));
        let text = fs::read_to_string(&path).unwrap();
        let listed: Vec<&str> = text.lines().filter(|line| line.starts_with(OURS)).collect();
        assert!(listed.len() > 50, "{list} holds {} names", listed.len());
        let gone: Vec<&&str> = listed
            .iter()
            .filter(|name| !known.iter().any(|known| known.starts_with(**name)))
            .collect();
        assert!(
            gone.len() * 100 <= listed.len() * MOST_GONE,
            "{} of {} functions in {} are gone: run `make layout`; {gone:?}",
            gone.len(),
            listed.len(),
            path.display()
        );
    }
}

/// The names of our functions that a program holds.
fn names_in(program: &str) -> HashSet<String> {
    let bytes = fs::read(program).unwrap();
    let first = OURS.as_bytes();
    let mut names = HashSet::new();
    let mut rest = &bytes[..];
    while let Some(place) = rest.iter().position(|byte| *byte == first[0]) {
        rest = &rest[place..];
        if rest.starts_with(first) {
            let end = rest
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(rest.len());
            names.extend(std::str::from_utf8(&rest[..end]).map(str::to_owned));
        }
        rest = &rest[1..];
    }
    names
}
