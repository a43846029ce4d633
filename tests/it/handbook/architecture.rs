//! What cargo does not hold by itself: no circle of imports between the files of
//! a member, no habits that panic, and SQL in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The members of the workspace, lowest first: each depends on those before it alone.
const MEMBERS: [&str; 8] = [
    "base", "config", "protocol", "store", "net", "agent", "relay", "hearth",
];

/// A module by its path from the root of the sources: `store/turns`.
type Module = String;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// All Rust files below `folder` but those of tests, by their paths, without tests and comments.
fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name == "tests" || name == "testing" || name.starts_with("test_") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let lines = code.lines().map(|line| line.split("//").next().unwrap());
            found.insert(path, lines.collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

/// The paths that `use` takes into a file: `use a::{b, c::D};` names `a::b` and `a::c::D`.
fn used(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let statements = code.split(';').filter_map(|statement| {
        let (before, tree) = statement.rsplit_once("use ")?;
        before.ends_with(['\n', ' ', ')']).then_some(tree)
    });
    for tree in statements {
        let (mut prefixes, mut path) = (vec![String::new()], String::new());
        for letter in tree
            .chars()
            .chain([','])
            .filter(|letter| !letter.is_whitespace())
        {
            let prefix = prefixes.last().cloned().unwrap_or_default();
            match letter {
                '{' => prefixes.push(prefix + &std::mem::take(&mut path)),
                ',' | '}' => {
                    found.push(prefix + &std::mem::take(&mut path));
                    if letter == '}' {
                        prefixes.pop();
                    }
                }
                _ => path.push(letter),
            }
        }
    }
    found
}

/// The module of `modules` that a path in `module` leads to.
fn resolve(modules: &BTreeSet<Module>, module: &str, path: &str) -> Option<Module> {
    let mut current: Vec<&str> = module.split('/').collect();
    for (place, segment) in path.split("::").enumerate() {
        match segment {
            "crate" => current.truncate(1),
            "self" => {}
            "super" => drop(current.pop()),
            _ => {
                current.push(segment);
                if !modules.contains(&current.join("/")) {
                    current.pop();
                    // Another crate, or something of this file.
                    return (place > 0).then(|| current.join("/"));
                }
            }
        }
    }
    Some(current.join("/"))
}

/// The modules of a member, and which others each takes something from; but its parents and
/// children, since a parent passes on what its children have.
fn imports(member: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let of = |path: PathBuf| {
        let path = path.strip_prefix(root()).unwrap().with_extension("");
        let is_parent = path.ends_with("mod") || path.ends_with("lib");
        let path = if is_parent {
            path.parent().unwrap()
        } else {
            &path
        };
        path.to_str().unwrap().to_owned()
    };
    let sources: BTreeMap<Module, String> = sources(&root().join(member))
        .into_iter()
        .map(|(path, code)| (of(path), code))
        .collect();
    let modules: BTreeSet<Module> = sources.keys().cloned().collect();
    let is_above = |one: &str, other: &str| other.starts_with(&format!("{one}/"));
    let taken = |module: &Module, code: &str| {
        let others = used(code).into_iter();
        let others = others.filter_map(|path| resolve(&modules, module, &path));
        others
            .filter(|other| other != module && !is_above(module, other) && !is_above(other, module))
            .collect()
    };
    sources
        .iter()
        .map(|(module, code)| (module.clone(), taken(module, code)))
        .collect()
}

#[test]
fn no_files_import_each_other_in_a_circle_but_a_parent_and_its_child() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for member in MEMBERS {
        let graph = imports(member);
        seen += graph.values().map(BTreeSet::len).sum::<usize>();
        for module in graph.keys() {
            let mut reached = BTreeSet::new();
            let mut open: Vec<&Module> = graph[module].iter().collect();
            while let Some(next) = open.pop() {
                if reached.insert(next) {
                    open.extend(graph.get(next).into_iter().flatten());
                }
            }
            if reached.contains(module) {
                wrong.push(module.clone());
            }
        }
    }
    assert!(seen > 500, "only {seen} imports were found");
    assert!(wrong.is_empty(), "in circles of imports: {wrong:#?}");
}

#[test]
fn members_depend_only_on_what_stands_below_them() {
    for (place, member) in MEMBERS.iter().enumerate() {
        let manifest = match *member {
            "hearth" => root().join("../Cargo.toml"),
            member => root().join(member).join("Cargo.toml"),
        };
        let manifest = fs::read_to_string(manifest).unwrap();
        let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        for line in dependencies.lines() {
            let name = line.split(['.', ' ', '=']).next().unwrap();
            if let Some(other) = MEMBERS.iter().position(|known| *known == name) {
                assert!(other < place, "{member} must not depend on {name}");
            }
        }
    }
}

/// What of the terminal's commands takes something of the store, and for what. Every other
/// sends a command to the service.
const TAKERS: [(&str, &str, &str); 9] = [
    (
        "backup",
        "BackupEncryption BackupWriter",
        "the file of a backup, which is elsewhere",
    ),
    ("data_directory", "Store", "opens it for the door"),
    (
        "door",
        "Store is_of_older_version",
        "the service of a command while no server runs",
    ),
    ("doctor/data", "Examination examine", "a broken database"),
    (
        "doctor/exposure",
        "UserRole look_up_role",
        "beside a server that may not answer",
    ),
    (
        "doctor/household",
        "Actors Token UserRole look_up_actors",
        "beside a server that may not answer",
    ),
    (
        "first_run",
        "Store UserRole",
        "the first start makes the database",
    ),
    (
        "progress",
        "Progress ProgressWatcher",
        "the progress of what takes long",
    ),
    (
        "restore",
        "BackupContents inspect unpack",
        "replaces the database while no server runs",
    ),
];
/// What opens the database by [`DataDirectory::open_store`].
const OPENERS: [&str; 1] = ["door"];

#[test]
fn no_command_of_the_terminal_opens_the_database() {
    let cli = root().join("hearth/cli");
    let (mut takers, mut openers) = (BTreeMap::new(), BTreeSet::new());
    for (path, code) in sources(&cli) {
        let path = path.strip_prefix(&cli).unwrap().with_extension("");
        let module = path.to_str().unwrap().trim_end_matches("/mod").to_owned();
        let mut taken: BTreeSet<String> = used(&code)
            .iter()
            .filter_map(|path| path.strip_prefix("store::").map(str::to_owned))
            .collect();
        // Or named where it is used.
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        for (at, crate_name) in code.match_indices("store::") {
            let name = code[at + crate_name.len()..].split(|letter| !is_letter(letter));
            let name = name.take(1).find(|name| !name.is_empty());
            if !code[..at].ends_with(|letter| is_letter(letter) || letter == ':') {
                taken.extend(name.map(str::to_owned));
            }
        }
        if !taken.is_empty() {
            takers.insert(module.clone(), taken);
        }
        if code.contains(".open_store(") {
            openers.insert(module);
        }
    }
    let names = |names: &str| names.split(' ').map(str::to_owned).collect();
    let known: BTreeMap<String, BTreeSet<String>> = TAKERS
        .iter()
        .map(|(module, taken, _)| ((*module).to_owned(), names(taken)))
        .collect();
    assert_eq!(takers, known);
    assert_eq!(openers, OPENERS.map(str::to_owned).into());
}

#[test]
fn nothing_panics_by_habit_and_nothing_is_unsafe() {
    let mut wrong = Vec::new();
    for (path, code) in sources(&root()) {
        for (number, line) in code.lines().enumerate() {
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
    let allowed = [root().join("store"), root().join("base/columns.rs")];
    let is_allowed = |path: &PathBuf| allowed.iter().any(|allowed| path.starts_with(allowed));
    let wrong: Vec<PathBuf> = sources(&root())
        .into_iter()
        .filter(|(path, code)| !is_allowed(path) && code.contains("rusqlite"))
        .map(|(path, _)| path)
        .collect();
    assert!(
        wrong.is_empty(),
        "rusqlite is used outside store/: {wrong:#?}"
    );
}
