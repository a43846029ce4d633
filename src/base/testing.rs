//! What the tests of all members share.

use std::fs;
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::secret::reference;

/// Runs a scenario of several threads in many interleavings, and prints in how many:
/// as many as the environment variable `SCHEDULES` says, by each of two schedulers.
/// One chooses a random thread at every step; the other (PCT) gives threads
/// priorities and changes them at a few random steps, which finds other bugs.
///
/// # Panics
/// In one of them the scenario panics, nothing can continue, or nothing comes to an
/// end. The panic says how to repeat it.
#[cfg(feature = "shuttle")]
pub fn explore(name: &str, scenario: impl Fn() + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};

    /// Priority changes of PCT: most races need two.
    const DEPTH: usize = 3;
    /// SQLite, without optimisation, in each thread.
    const STACK_BYTES: usize = 512 * 1024;
    /// A scenario that takes more steps does not end.
    const STEPS: usize = 200_000;

    let count = std::env::var("SCHEDULES")
        .map_or(1_000, |count| count.parse().expect("SCHEDULES is a number"));
    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS);
    let scenario = std::sync::Arc::new(scenario);
    let again = std::sync::Arc::clone(&scenario);
    let random = RandomScheduler::new(count);
    let random = shuttle::Runner::new(random, config.clone()).run(move || scenario());
    let pct = PctScheduler::new(DEPTH, count);
    let pct = shuttle::Runner::new(pct, config).run(move || again());
    println!("{name}: {random} random schedules and {pct} of PCT");
}

/// Says that the rest of a test is skipped, past the test harness, which shows
/// what a test prints only when it fails.
pub fn skipped(why: impl std::fmt::Display) {
    let test = std::thread::current();
    let _ = writeln!(
        std::io::stderr(),
        "skipped: {why} ({})",
        test.name().unwrap_or_default()
    );
}

/// A directory of one test. Dropping it removes it with everything in it, also
/// when the test panics.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// An empty directory in the system's place for temporary files.
    pub fn new() -> TemporaryDirectory {
        TemporaryDirectory::within(&std::env::temp_dir())
    }

    /// An empty directory in `parent`, which is made where it is missing.
    pub fn within(parent: &Path) -> TemporaryDirectory {
        // Random: a process that was killed may have left a directory behind,
        // and its id come again.
        let path = parent.join(format!("hearth-test-{}", reference()));
        fs::create_dir_all(&path).expect("a test can make a temporary directory");
        TemporaryDirectory(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for TemporaryDirectory {
    fn default() -> TemporaryDirectory {
        TemporaryDirectory::new()
    }
}

impl Deref for TemporaryDirectory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.0).is_err() {
            // A test may have taken away the right to change it.
            use std::os::unix::fs::PermissionsExt;
            let _ = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The rows of a table in a text: one on each line, cells between ` | `. Empty lines
/// are left out, and spaces around a cell.
///
/// # Panics
///
/// A row has another number of cells.
pub fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    let cells = |line| -> Vec<&str> { str::split(line, " | ").map(str::trim).collect() };
    let row = |line| <[&str; N]>::try_from(cells(line)).expect(line);
    lines.map(row).collect()
}
