//! Skills: folders with instructions that the model reads when it needs them, in the open
//! format that other agents use (<https://agentskills.io>).
//!
//! An admin installs them for the household ([`add`], [`remove`]) below `skills/NAME/` of
//! the data directory. The system prompt names each in a line ([`Skills::overview`]);
//! the tool `read_skill` brings the instructions and the files beside them. Their text is
//! as trusted as the settings. Scripts among them run only through `run_command`.

mod install;
mod manifest;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::tools::output::shorten;

pub use install::{Installed, SkillError, add, files, remove, unpack};

/// Where they are in the data directory.
pub const FOLDER: &str = "skills";
/// The file that makes a folder a skill.
pub const MANIFEST: &str = "SKILL.md";

/// Most skills.
pub const MOST_SKILLS: usize = 64;
/// Most bytes of a `SKILL.md`: its instructions are read at once.
pub const MOST_MANIFEST_BYTES: u64 = 128 * 1024;
/// Most bytes of the lines in the system prompt, together.
const OVERVIEW_BYTES: usize = 8 * 1024;
/// Characters of a description that are shown in any case.
const LEAST_SHOWN: usize = 80;
/// A folder that changed less than this ago may change again without another time of
/// change: file systems count in ticks.
const TICK: Duration = Duration::from_secs(2);

const INTRODUCTION: &str = "Skills that are installed here. Where one fits, call read_skill with its \
    name before you answer, and do as it says:";

/// An installed skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is that of its folder.
    pub name: String,
    /// What it does and when to use it, on one line.
    pub description: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Its files by their path, without `SKILL.md`, sorted.
    pub files: Vec<String>,
}

/// The skills of a data directory.
#[derive(Debug, Default)]
pub struct Skills {
    folder: PathBuf,
    changed: Option<SystemTime>,
    is_settled: bool,
    skills: Vec<Skill>,
    problems: Vec<String>,
}

impl Skills {
    /// Reads the skills of a data directory. What cannot be used is left out, with a
    /// line for each in [`Skills::problems`].
    pub fn load(data_dir: &Path) -> Skills {
        let folder = data_dir.join(FOLDER);
        let changed = changed_at(&folder);
        let mut loaded = Skills {
            is_settled: is_settled(changed),
            changed,
            ..Skills::default()
        };
        match install::installed(&folder) {
            Ok(found) => {
                for skill in found {
                    match skill {
                        Ok(skill) => loaded.skills.push(skill),
                        Err(error) => loaded.problems.push(error.to_string()),
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let problem = format!("{} cannot be read: {error}", folder.display());
                loaded.problems.push(problem);
            }
        }
        loaded.folder = folder;
        loaded
    }

    /// Whether nothing was added or removed since they were read.
    pub fn is_current(&self) -> bool {
        self.is_settled && changed_at(&self.folder) == self.changed
    }

    /// All of them, by name.
    pub fn all(&self) -> &[Skill] {
        &self.skills
    }

    /// What is wrong with those that cannot be used.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The lines of the system prompt; none without skills.
    pub fn overview(&self) -> Option<String> {
        let count = self.skills.len();
        if count == 0 {
            return None;
        }
        let whole: usize = self
            .skills
            .iter()
            .map(|skill| skill.description.len())
            .sum();
        let most = match whole <= OVERVIEW_BYTES {
            true => usize::MAX,
            false => (OVERVIEW_BYTES / count / 2).max(LEAST_SHOWN),
        };
        let lines = self.skills.iter().map(|skill| {
            let description = shorten(&skill.description, most);
            format!("\n- {}: {description}", skill.name)
        });
        Some(INTRODUCTION.to_owned() + &lines.collect::<String>())
    }
}

/// The instructions in the text of a `SKILL.md`.
///
/// # Errors
/// What is wrong with the file.
pub(crate) fn instructions(text: &str) -> Result<&str, String> {
    match manifest::parse(text) {
        Ok(manifest) => Ok(manifest.body),
        Err(broken) => Err(format!("{MANIFEST}: {broken}")),
    }
}

fn changed_at(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}

fn is_settled(changed: Option<SystemTime>) -> bool {
    // A time in the future is no reason to read them again each time.
    let age = changed.map(|changed| changed.elapsed().unwrap_or(TICK));
    age.is_none_or(|age| age >= TICK)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn skill(name: &str, description: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            description: description.to_owned(),
            bytes: 1,
            files: Vec::new(),
        }
    }

    #[test]
    fn the_overview_has_a_line_for_each_and_a_bound() {
        assert_eq!(Skills::default().overview(), None);
        let two = Skills {
            skills: vec![skill("a", "Does a."), skill("b", "Does b.")],
            ..Skills::default()
        };
        let lines = two.overview().unwrap();
        assert!(
            lines.ends_with("as it says:\n- a: Does a.\n- b: Does b."),
            "{lines}"
        );
        let many = Skills {
            skills: (0..MOST_SKILLS)
                .map(|_| skill("a", &"ü".repeat(1_024)))
                .collect(),
            ..Skills::default()
        };
        let lines = many.overview().unwrap();
        assert!(lines.len() < 2 * OVERVIEW_BYTES, "{}", lines.len());
        assert_eq!(lines.lines().count(), 1 + MOST_SKILLS);
    }

    #[test]
    fn what_changes_right_after_it_was_read_is_read_again() {
        let (folder, first) = testing::installed("tea");
        // The folder may change once more in the same tick.
        assert!(!first.is_current());
        let place = folder.path().join(FOLDER);
        let long_ago = SystemTime::now() - 10 * TICK;
        fs::File::open(&place)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        let settled = Skills::load(folder.path());
        assert!(settled.is_current());
        remove(folder.path(), "tea").unwrap();
        assert!(!settled.is_current());
        assert!(Skills::load(folder.path()).all().is_empty());
    }

    #[test]
    fn a_skill_that_was_broken_by_hand_is_left_out_with_its_reason() {
        let (folder, _) = testing::installed("tea");
        let place = folder.path().join(FOLDER);
        for (name, text) in [
            ("coffee", "# Coffee"),
            ("cocoa", "---\nname: tea\ndescription: x\n---\n"),
        ] {
            fs::create_dir(place.join(name)).unwrap();
            fs::write(place.join(name).join(MANIFEST), text).unwrap();
        }
        let skills = Skills::load(folder.path());
        assert_eq!(skills.all().len(), 1);
        let [cocoa, coffee] = skills.problems() else {
            panic!("{:?}", skills.problems());
        };
        assert!(cocoa.contains("names the skill \"tea\""), "{cocoa}");
        assert!(coffee.contains("coffee/SKILL.md: line 1"), "{coffee}");
    }
}
