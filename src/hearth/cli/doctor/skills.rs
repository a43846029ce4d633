//! Whether the installed skills can be used.

use super::diagnosis::{Diagnosis, Installation};
use agent::skills::{FOLDER, Skills};
use config::Settings;

/// Names those that are left out, and why.
pub fn check(installation: &Installation<'_>, _: &Settings) -> Vec<Diagnosis> {
    let skills = Skills::load(installation.directory.path());
    let option = &installation.option;
    let broken = skills.problems().iter().map(|problem| {
        Diagnosis::problem(format!("a skill is left out: {problem}"))
            .advise(format!(
                "hearth skill add{option} DIR   (with a corrected one)"
            ))
            .advise(format!(
                "hearth skill remove{option} NAME   (or delete its folder below {})",
                installation.directory.path().join(FOLDER).display()
            ))
    });
    let mut found: Vec<Diagnosis> = match skills.all() {
        [] => Vec::new(),
        all => {
            let names: Vec<&str> = all.iter().map(|skill| &*skill.name).collect();
            vec![Diagnosis::ok(format!("skills: {}", names.join(", ")))]
        }
    };
    found.extend(broken);
    found
}
