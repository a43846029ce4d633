//! What the tests of all members share.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::secret::reference;

/// The longest that anything in a test may take: how long a failure takes to
/// show, and so long that a busy machine is not one.
pub const MAX_WAIT: Duration = Duration::from_secs(180);

/// What is broken off at once is over within this, on a busy machine too; what is not
/// takes minutes.
pub const AT_ONCE: Duration = Duration::from_secs(60);

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

    let scenario = std::sync::Arc::new(scenario);
    let again = std::sync::Arc::clone(&scenario);
    let random = run(RandomScheduler::new(schedules()), move || scenario());
    let pct = run(PctScheduler::new(DEPTH, schedules()), move || again());
    println!("{name}: {random} random schedules and {pct} of PCT");
}

/// Runs a small scenario in all its interleavings, one after the other, or in the
/// first ones if there are more than fifty times `SCHEDULES`. It must do the same
/// in the same one, and no wait of it may time out.
///
/// # Panics
/// As [`explore`].
#[cfg(feature = "shuttle")]
pub fn explore_all(name: &str, scenario: impl Fn() + Send + Sync + 'static) {
    let most = 50 * schedules();
    let scheduler = shuttle::scheduler::DfsScheduler::new(Some(most), false);
    let count = run(scheduler, scenario);
    let which = if count < most { "all" } else { "the first" };
    println!("{name}: {which} {count} schedules");
}

#[cfg(feature = "shuttle")]
fn schedules() -> usize {
    let set = std::env::var("SCHEDULES");
    set.map_or(500, |count| count.parse().expect("SCHEDULES is a number"))
}

#[cfg(feature = "shuttle")]
fn run(
    scheduler: impl shuttle::scheduler::Scheduler + 'static,
    scenario: impl Fn() + Send + Sync + 'static,
) -> usize {
    /// SQLite, without optimisation, in each thread.
    const STACK_BYTES: usize = 512 * 1024;
    /// A scenario that takes more steps does not end.
    const STEPS: usize = 200_000;

    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS);
    shuttle::Runner::new(scheduler, config).run(scenario)
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

/// A connection whose every wait ends, and that goes on after the process was
/// stopped and continued: on a socket with a timeout Linux then ends what waits
/// with `EINTR`, also where no signal has a handler (signal(7), "Interruption of
/// system calls and library functions by stop signals").
#[derive(Debug)]
pub struct Socket(TcpStream);

impl Socket {
    /// Bounds every wait of a connection.
    ///
    /// # Panics
    ///
    /// The system does not take a socket option.
    pub fn new(stream: TcpStream) -> Socket {
        stream
            .set_read_timeout(Some(MAX_WAIT))
            .expect("a socket takes this option");
        stream
            .set_write_timeout(Some(MAX_WAIT))
            .expect("a socket takes this option");
        stream
            .set_nodelay(true)
            .expect("a socket takes this option");
        Socket(stream)
    }
}

impl Deref for Socket {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = self.0.read_timeout()?.unwrap_or(MAX_WAIT);
        uninterrupted(limit, || self.0.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let limit = self.0.write_timeout()?.unwrap_or(MAX_WAIT);
        uninterrupted(limit, || self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Makes a call that has this timeout again where it was ended in this way.
///
/// # Errors
///
/// Those of the call; `TimedOut` when it was ended in this way for so long.
pub fn uninterrupted<T>(limit: Duration, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if began.elapsed() >= limit {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            result => return result,
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
