//! The functions of a program, by the names that its linker knew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// How much of what a module holds must have run for the list to name the module.
/// It keeps the list short, and true for longer.
const MOST: f64 = 0.5;

/// Every function and its size in bytes, by the parts of its name.
pub struct Functions(BTreeMap<Vec<String>, u64>);

impl Functions {
    /// Reads them from a program that was not stripped.
    pub fn of(program: &Path) -> Functions {
        let output = Command::new("nm")
            .arg("--print-size")
            .arg(program)
            .output()
            .unwrap();
        let mut functions: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            if let [_, size, "t" | "T" | "w" | "W", name] = fields[..] {
                *functions.entry(parts(name)).or_default() +=
                    u64::from_str_radix(size, 16).unwrap();
            }
        }
        assert!(functions.len() > 1000, "{} has no names", program.display());
        Functions(functions)
    }

    /// The names that stand for what ran, and for nothing that `known` covers.
    pub fn list(&self, ran: &BTreeSet<String>, known: &BTreeSet<String>) -> BTreeSet<String> {
        let ran: BTreeSet<Vec<String>> = ran
            .iter()
            .map(|name| parts(name))
            .filter(|name| self.0.contains_key(name))
            .filter(|name| (1..=name.len()).all(|end| !known.contains(&name[..end].concat())))
            .collect();
        let mut list = BTreeSet::new();
        for name in &ran {
            // A crate as a whole is too much.
            let end = (2..name.len())
                .find(|end| {
                    let begin = &name[..*end];
                    let shared = known.iter().any(|name| name.starts_with(&begin.concat()));
                    !shared && self.share(begin, &ran) >= MOST
                })
                .unwrap_or(name.len());
            list.insert(name[..end].concat());
        }
        list
    }

    /// How much ran of what begins like this, by bytes.
    fn share(&self, begin: &[String], ran: &BTreeSet<Vec<String>>) -> f64 {
        let all = self
            .0
            .range(begin.to_vec()..)
            .take_while(|(name, _)| name.starts_with(begin));
        let (mut total, mut found) = (0, 0);
        for (name, size) in all {
            total += size;
            if ran.contains(name) {
                found += size;
            }
        }
        found as f64 / total as f64
    }
}

/// A name without what changes from one build to the next. That of a Rust function
/// falls into the modules it lies in, each with its length: `_ZN6hearth4mainE`.
fn parts(name: &str) -> Vec<String> {
    if let Some(mut rest) = name.strip_prefix("_ZN") {
        let mut parts = vec!["_ZN".to_owned()];
        loop {
            let digits = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(0);
            let Ok(length) = rest[..digits].parse::<usize>() else {
                return parts;
            };
            let (part, more) = rest.split_at(digits + length);
            // The hash.
            if more.starts_with('E') {
                parts.push("17h".to_owned());
                return parts;
            }
            parts.push(part.to_owned());
            rest = more;
        }
    }
    if name.starts_with("_R") {
        return vec![without_crate_hashes(name)];
    }
    // What the compiler made of a function of C, and the parts it split off.
    vec![name.split('.').next().unwrap().to_owned()]
}

/// The standard library comes compiled, its names in a form with the hash of each
/// crate before its name: `_RNvNtCsgEmfK2I1SDS_4core3str`.
fn without_crate_hashes(name: &str) -> String {
    let mut pieces = name.split("Cs");
    let mut text = pieces.next().unwrap().to_owned();
    for piece in pieces {
        match piece.split_once('_') {
            Some((hash, rest))
                if hash.len() > 6 && rest.starts_with(|l: char| l.is_ascii_digit()) =>
            {
                text += "Cs*_";
                text += rest;
            }
            _ => {
                text += "Cs";
                text += piece;
            }
        }
    }
    text
}
