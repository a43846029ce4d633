//! What cargo does not hold by itself: no circle of imports between the files of
//! a member, no habits that panic, SQL in one place, and short files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The members of the workspace, lowest first. Cargo holds their direction.
const MEMBERS: [&str; 8] = [
    "base", "config", "protocol", "store", "net", "agent", "relay", "hearth",
];

/// Most lines of a file, its tests and comments among them.
const MOST_LINES: usize = 450;

/// A module by its path from the crate's root, which is empty.
type Module = Vec<String>;

/// The module that a file holds, and its text without tests and comments.
struct Source {
    path: PathBuf,
    code: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| {
        let part = part.to_str().unwrap().trim_end_matches(".rs");
        part == "tests" || part == "testing" || part.starts_with("test_")
    })
}

/// All Rust files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// All Rust files below `folder` but those of tests.
fn sources(folder: &Path) -> Vec<Source> {
    let mut found = files(folder);
    found.retain(|path| !is_test(path.strip_prefix(root()).unwrap()));
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().map(|line| line.split("//").next().unwrap());
        let code = lines.collect::<Vec<_>>().join("\n");
        Source { path, code }
    };
    found.into_iter().map(source).collect()
}

fn modules(member: &str) -> BTreeMap<Module, Source> {
    let folder = root().join(member);
    let of_crate = |path: &Path| {
        let mut module: Module = path
            .with_extension("")
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
            module.pop();
        }
        module
    };
    sources(&folder)
        .into_iter()
        .map(|source| {
            let module = of_crate(source.path.strip_prefix(&folder).unwrap());
            (module, source)
        })
        // What cargo runs or starts is a crate of its own.
        .filter(|(module, _)| !matches!(module.first().map(String::as_str), Some("build" | "main")))
        .collect()
}

/// A path in the code: its segments, and the name by which it is known here.
struct Mention {
    path: Vec<String>,
    name: String,
}

fn mention(path: Vec<String>, alias: Option<&str>) -> Mention {
    let name = alias.or(path.last().map(String::as_str));
    Mention {
        name: name.unwrap_or_default().to_owned(),
        path,
    }
}

/// Takes a `use` tree apart.
fn flatten(prefix: &[String], tree: &str, found: &mut Vec<Mention>) {
    let tree = tree.trim();
    let segments = |text: &str| -> Vec<String> {
        prefix
            .iter()
            .cloned()
            .chain(
                text.split("::")
                    .map(|segment| segment.trim().to_owned())
                    .filter(|segment| !segment.is_empty()),
            )
            .collect()
    };
    if let Some(open) = tree.find('{') {
        let prefix = segments(&tree[..open]);
        let inner = tree[open + 1..].trim_end().trim_end_matches('}');
        let (mut depth, mut start) = (0, 0);
        for (place, letter) in tree[open + 1..].char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    flatten_some(&prefix, &tree[open + 1 + start..open + 1 + place], found);
                    return;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    flatten_some(&prefix, &tree[open + 1 + start..open + 1 + place], found);
                    start = place + 1;
                }
                _ => {}
            }
        }
        panic!("a use tree without an end: {inner}");
    }
    match tree.split_once(" as ") {
        Some((path, alias)) => found.push(mention(segments(path), Some(alias.trim()))),
        None => found.push(mention(segments(tree), None)),
    }
}

fn flatten_some(prefix: &[String], tree: &str, found: &mut Vec<Mention>) {
    if !tree.trim().is_empty() {
        flatten(prefix, tree, found);
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Every `use`, and every path inside expressions and types.
fn mentions(code: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        let after = trimmed.strip_prefix("pub ").or_else(|| {
            let (visibility, after) = trimmed.split_once(") ")?;
            visibility.starts_with("pub(").then_some(after)
        });
        let Some(tree) = after.unwrap_or(trimmed).strip_prefix("use ") else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            tree.push_str(lines.next().expect("a use ends with a semicolon"));
        }
        flatten(&[], tree.split(';').next().unwrap(), &mut found);
    }
    for word in rest.split(|letter: char| !is_word(letter) && letter != ':') {
        let path = word.trim_matches(':');
        if path.contains("::") {
            let segments = path.split("::").map(str::to_owned).collect();
            found.push(mention(segments, None));
        }
    }
    found
}

/// The module that defines what `path`, in `module`, names. Re-exports are
/// followed to where they lead.
fn resolve(
    members: &BTreeMap<Module, Vec<Mention>>,
    module: &Module,
    path: &[String],
    depth: u32,
) -> Option<Module> {
    let mut rest = path;
    let mut current = match rest.first()?.as_str() {
        "crate" => {
            rest = &rest[1..];
            Module::new()
        }
        "self" => {
            rest = &rest[1..];
            module.clone()
        }
        "super" => {
            let mut current = module.clone();
            while rest.first().is_some_and(|segment| segment == "super") {
                current.pop();
                rest = &rest[1..];
            }
            current
        }
        child => {
            let mut below = module.clone();
            below.push(child.to_owned());
            if !members.contains_key(&below) {
                return None;
            }
            module.clone()
        }
    };
    while let Some(segment) = rest.first() {
        let mut below = current.clone();
        below.push(segment.clone());
        if !members.contains_key(&below) {
            break;
        }
        current = below;
        rest = &rest[1..];
    }
    let Some(item) = rest.first().filter(|_| depth < 8) else {
        return Some(current);
    };
    let imported = members[&current]
        .iter()
        .find(|mention| mention.name == *item);
    match imported {
        Some(mention) if mention.path != path => {
            resolve(members, &current, &mention.path, depth + 1)
        }
        _ => Some(current),
    }
}

/// The modules that each module takes something from.
fn imports(member: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let members: BTreeMap<Module, Vec<Mention>> = modules(member)
        .into_iter()
        .map(|(module, source)| (module, mentions(&source.code)))
        .collect();
    members
        .iter()
        .map(|(module, mentioned)| {
            let taken = mentioned
                .iter()
                .filter_map(|mention| resolve(&members, module, &mention.path, 0))
                .filter(|other| other != module)
                .collect();
            (module.clone(), taken)
        })
        .collect()
}

/// All that can be reached from `start`.
fn reachable(graph: &BTreeMap<Module, BTreeSet<Module>>, start: &Module) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&Module> = graph[start].iter().collect();
    while let Some(module) = open.pop() {
        if found.insert(module.clone()) {
            open.extend(&graph[module]);
        }
    }
    found
}

#[test]
fn no_files_import_each_other_in_a_circle_but_a_parent_and_its_child() {
    let mut wrong = BTreeSet::new();
    let mut seen = 0;
    for member in MEMBERS {
        let graph = imports(member);
        seen += graph.values().map(BTreeSet::len).sum::<usize>();
        let reach: BTreeMap<&Module, BTreeSet<Module>> = graph
            .keys()
            .map(|module| (module, reachable(&graph, module)))
            .collect();
        for module in graph.keys() {
            let circle: BTreeSet<&Module> = reach[module]
                .iter()
                .filter(|other| reach[*other].contains(module))
                .collect();
            let pair: Vec<&&Module> = circle.iter().collect();
            let is_family = match pair[..] {
                [] => true,
                [one, other] => {
                    let (short, long) = (one.len().min(other.len()), one.len().max(other.len()));
                    long == short + 1 && one[..short] == other[..short]
                }
                _ => false,
            };
            if !is_family {
                let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
                wrong.insert(format!("{member}: {}", names.join(", ")));
            }
        }
    }
    assert!(seen > 1_000, "only {seen} imports were found");
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(
        wrong.is_empty(),
        "circles of imports:\n{}",
        wrong.join("\n")
    );
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

#[test]
fn nothing_panics_by_habit_and_nothing_is_unsafe() {
    let mut wrong = Vec::new();
    for source in sources(&root()) {
        for (number, line) in source.code.lines().enumerate() {
            for habit in [".unwrap()", "todo!(", "unimplemented!(", "dbg!(", "unsafe "] {
                if line.contains(habit) {
                    wrong.push(format!("{}:{}: {habit}", source.path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_can_be_read_in_one_sitting() {
    let mut wrong = Vec::new();
    for path in files(&root()) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        // One list, in which one looks a command up.
        let is_list = path.ends_with("protocol/command/mod.rs");
        if lines > MOST_LINES && !is_list {
            wrong.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "more than {MOST_LINES}:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn sql_lives_in_the_store_alone() {
    let allowed = [root().join("store"), root().join("base/columns.rs")];
    let wrong: Vec<String> = sources(&root())
        .iter()
        .filter(|source| {
            !allowed
                .iter()
                .any(|allowed| source.path.starts_with(allowed))
        })
        .filter(|source| source.code.contains("rusqlite"))
        .map(|source| source.path.display().to_string())
        .collect();
    assert!(
        wrong.is_empty(),
        "rusqlite is used outside store/: {}",
        wrong.join(", ")
    );
}
