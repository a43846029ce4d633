//! The real binary as a process.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::MAX_WAIT;
pub use base::testing::skipped;

/// How long after its start the program's own line is the only word for its address.
const SAYS_WITHIN: Duration = Duration::from_secs(2);

/// The program under test, which cargo puts one folder above the tests' own.
pub fn binary() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let binary = tests.parent().unwrap().with_file_name("hearth");
    assert!(binary.exists(), "{} is missing", binary.display());
    binary
}

/// `hearth` with a clean environment; the caller adds arguments.
pub fn hearth(folder: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", folder)
        .env("HEARTH_DATA_DIR", folder);
    command
}

/// Runs to its end and returns what it printed.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    finish(hearth(folder).args(arguments))
}

/// Runs a command to its end, without input, and returns what it printed.
pub fn finish(command: &mut Command) -> Output {
    finish_within(command, MAX_WAIT)
}

/// The same with a limit of its own.
pub fn finish_within(command: &mut Command, limit: Duration) -> Output {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn();
    output_within(
        child.unwrap_or_else(|error| panic!("{command:?}: {error}")),
        limit,
    )
}

/// Waits for the end of a process, and returns what it printed.
pub fn output_of(child: Child) -> Output {
    output_within(child, MAX_WAIT)
}

/// Unlike `wait_with_output`, it waits for no process, nor for one that has inherited its
/// output, without a limit.
fn output_within(child: Child, limit: Duration) -> Output {
    let process = Pid::from_child(&child);
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    ended.recv_timeout(limit).map_or_else(
        |_| {
            let _ = kill_process(process, Signal::KILL);
            panic!("process {process:?} or its children do not end within {limit:?}")
        },
        Result::unwrap,
    )
}

/// Everything that was printed, for messages and searches.
pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// `hearth serve`, killed when dropped.
pub struct Program {
    pub address: SocketAddr,
    /// What it printed until it listened.
    pub said: String,
    child: Child,
}

/// What the unit file sets in the environment, such as for the C library.
pub fn unit_environment() -> Vec<(&'static str, &'static str)> {
    let unit = include_str!("../../examples/hearth.service");
    let set = |line: &'static str| line.strip_prefix("Environment=")?.split_once('=');
    unit.lines().filter_map(set).collect()
}

impl Program {
    /// Starts on a free port and waits until it listens.
    pub fn serve(folder: &Path) -> Program {
        Program::start(folder, &["serve", "--bind", "127.0.0.1", "--port", "0"])
    }

    pub fn start(folder: &Path, arguments: &[&str]) -> Program {
        Program::start_in(folder, arguments, &[])
    }

    /// The same with these environment variables.
    pub fn start_in(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Program {
        let mut command = hearth(folder);
        command.args(arguments).envs(environment.iter().copied());
        Program::launch(command, folder)
    }

    /// Starts a command line that ends in `hearth serve`, and waits until it
    /// listens. What it prints goes to a file in `folder`.
    pub fn launch(command: Command, folder: &Path) -> Program {
        Program::launch_looking(command, folder, Duration::from_millis(5))
    }

    /// The same, looking so often whether it listens.
    pub fn launch_looking(command: Command, folder: &Path, every: Duration) -> Program {
        Program::try_launch(command, folder, every).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same; what it said when it ends before it listens.
    ///
    /// # Errors
    /// It has ended.
    pub fn try_launch(
        mut command: Command,
        folder: &Path,
        every: Duration,
    ) -> Result<Program, String> {
        let log = folder.join("stderr.txt");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let launched = Instant::now();
        loop {
            let said = fs::read_to_string(&log).unwrap();
            let lines: Vec<&str> = whole_lines(&said).collect();
            let address = lines.iter().find_map(|line| {
                let url = line.strip_prefix("hearth listening on ")?;
                url.split_once("://")?.1.parse().ok()
            });
            // The write of this line may be the one that a test lets fail.
            let address = address.or_else(|| match launched.elapsed() > SAYS_WITHIN {
                true => locked_address(folder, child.id()),
                false => None,
            });
            if let Some(address) = address {
                return Ok(Program {
                    address,
                    said: lines.join("\n"),
                    child,
                });
            }
            if let Some(status) = child.try_wait().unwrap() {
                let said = fs::read_to_string(&log).unwrap();
                return Err(format!("it ended ({status}): {said}"));
            }
            assert!(
                launched.elapsed() < MAX_WAIT,
                "it does not listen: {}",
                lines.join("\n")
            );
            std::thread::park_timeout(every);
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is there.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        ended(&mut self.child).expect("a tracer lets go of it");
    }

    /// Sends a signal by name and waits for the end; returns the exit code.
    pub fn signal(mut self, name: &str) -> Option<i32> {
        send_signal(self.id(), name);
        let status = ended(&mut self.child);
        status
            .unwrap_or_else(|| panic!("it does not end on {name}"))
            .code()
    }
}

/// The first address that a server has written into the lock of its data directory.
fn locked_address(folder: &Path, process: u32) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join("hearth.lock")).ok()?;
    let mut lines = text.lines();
    let is_its_own = lines.next()? == process.to_string();
    is_its_own.then(|| lines.next()?.parse().ok()).flatten()
}

/// Waits for the end of a process; none when it goes on for longer than [`MAX_WAIT`]. One that
/// is traced has ended, even after kill -9, once its tracer says so.
pub fn ended(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let status = child.try_wait().unwrap();
        if status.is_some() || Instant::now() > deadline {
            return status;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Sends a signal by name to a process, by the shell's own `kill`: a small Debian has no other.
pub fn send_signal(process: u32, name: &str) {
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("kill -{name} {process}")])
        .status();
    assert!(status.unwrap().success());
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        ended(&mut self.child);
    }
}

/// A program of examples/, which cargo puts beside the main one. `cargo test`
/// has built it; `cargo test --test it` alone has not.
pub fn example(name: &str) -> PathBuf {
    let binary = binary();
    let folder = binary.parent().unwrap();
    let path = folder.join("examples").join(name);
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "--quiet", "--example", name]);
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").arg(folder.parent().unwrap());
        assert!(cargo.status().unwrap().success(), "{name} does not build");
    }
    path
}

/// A port on loopback that stays free while nobody listens on it: no test gets
/// it twice, and it is not one of those that the system gives to outgoing
/// connections and to listeners that take any port.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    // Test programs that run beside each other begin far apart.
    let begin = (std::process::id() % u32::from(COUNT) * 997 % u32::from(COUNT)) as u16;
    (0..COUNT)
        .map(|_| FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("one of so many ports is free")
}

/// The lines of a text that are at their end: of a file that another process
/// writes, the last line may be there by half.
pub fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
}

/// Whether this program is installed; says that the test is skipped otherwise.
pub fn is_there(program: &str) -> bool {
    // HAProxy knows only the second.
    let there = ["--version", "-v"].into_iter().any(|version| {
        let mut command = Command::new(program);
        command.arg(version).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        child.is_ok_and(|child| output_of(child).status.success())
    });
    if !there {
        skipped(format_args!("{program} is not installed"));
    }
    there
}
