//! Real programs that nobody here wrote, from PyPI, npm and Debian: which ones, in which versions,
//! and where they are installed. They stay in target/peers from run to run.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::testing::skipped;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::MAX_WAIT;
use super::http::exchange;
use super::program::finish_within;

/// What programs depend on is installed as it was on this day: what is tested changes only
/// when somebody changes it here.
const AS_OF: &str = "2026-11-20";

/// Installs Python programs, and resolves in seconds.
const UV: &str = "uv==0.13.9";

/// Longest that an installation may take.
const INSTALLING: Duration = Duration::from_secs(900);

/// Longest that a program may take to listen: they are large.
const STARTING: Duration = Duration::from_secs(420);

/// Python programs with an environment of their own.
#[derive(Debug)]
pub struct Python {
    /// Of the environment.
    pub name: &'static str,
    /// As of when what they depend on is installed.
    pub as_of: &'static str,
    /// Of the language.
    pub versions: &'static str,
    /// Where the language comes from, if the machine need not have it.
    pub interpreter: Option<&'static Debian>,
    pub packages: &'static [&'static str],
    /// What they ask for and do not need here: gigabytes of machine learning.
    pub without: &'static [&'static str],
}

pub const LIBRARIES: Python = Python {
    name: "libraries",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &[
        "langchain==1.4.7",
        "langchain-openai==1.7.3",
        "langchain-ollama==1.1.0",
        "ollama==0.6.3",
        "openai==3.54.0",
        "prometheus-client==0.26.0",
    ],
    without: &[],
};

/// The services' own libraries, for what is sent to them.
pub const SERVICES: Python = Python {
    name: "services",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &[
        "anthropic==2.12.0",
        "mistralai==3.7.0",
        "ollama==0.6.3",
        "openai==3.54.0",
        "pydantic==2.14.3",
    ],
    without: &[],
};

/// What browsers do with messages of push services.
pub const WEB_PUSH: Python = Python {
    name: "web-push",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["http-ece==1.2.1", "py-vapid==1.9.6"],
    without: &[],
};

/// What sends messages to webhooks, and what checks the replies.
pub const WEBHOOKS: Python = Python {
    name: "webhooks",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["apprise==2.2.0", "standardwebhooks==1.1.0"],
    without: &[],
};

/// A server of calendars.
pub const RADICALE: Python = Python {
    name: "radicale",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["radicale==3.9.0"],
    without: &[],
};

/// Tasks for assistants with tools, and attacks on them.
pub const AGENTDOJO: Python = Python {
    name: "agentdojo",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["agentdojo==0.1.35"],
    without: &[],
};

/// Servers of the Model Context Protocol, and what they are made with.
pub const MCP_PYTHON: Python = Python {
    name: "mcp-python",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &[
        "mcp==2.3.0",
        "mcp-server-git==2026.10.19",
        "mcp-server-time==2026.10.19",
    ],
    without: &[],
};

/// A server on the old version of that.
pub const MCP_OLD_PYTHON: Python = Python {
    name: "mcp-old-python",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"],
    without: &[],
};

/// A client of the Model Context Protocol.
pub const FASTMCP: Python = Python {
    name: "fastmcp",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["fastmcp==4.2.3"],
    without: &[],
};

pub const LITELLM: Python = Python {
    name: "litellm",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &["litellm[proxy]==1.106.2"],
    without: &[],
};

/// Libraries that repeat requests.
pub const REPEATING: Python = Python {
    name: "repeating",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &[
        "litellm==1.106.2",
        "llama-index-core==0.14.25",
        "llama-index-llms-openai-like==0.8.1",
        "openai==2.54.0",
    ],
    without: &[],
};

/// Frameworks for agents and for search.
pub const FRAMEWORKS: Python = Python {
    name: "frameworks",
    as_of: AS_OF,
    versions: ">=3.11,<3.14",
    interpreter: None,
    packages: &[
        "langchain-ollama==1.1.0",
        "langchain-openai==1.7.3",
        "llama-index-core==0.14.25",
        "llama-index-embeddings-ollama==0.10.0",
        "llama-index-llms-ollama==0.11.0",
        "strands-agents[ollama,openai]==1.62.0",
    ],
    without: &[],
};

pub const AIDER: Python = Python {
    name: "aider",
    as_of: AS_OF,
    versions: ">=3.11,<3.13",
    interpreter: None,
    packages: &["aider-chat==0.86.2"],
    without: &[],
};

pub const OPEN_WEBUI: Python = Python {
    name: "open-webui",
    as_of: AS_OF,
    versions: ">=3.11,<3.13",
    interpreter: None,
    packages: &["open-webui==0.12.4"],
    without: &[
        "accelerate",
        "faster-whisper",
        "opencv-python-headless",
        "rapidocr",
        "sentence-transformers",
        "torch",
        "transformers",
    ],
};

pub const HOME_ASSISTANT: Python = Python {
    name: "home-assistant",
    as_of: AS_OF,
    versions: "3.14",
    interpreter: Some(&PYTHON),
    packages: &[
        "homeassistant==2026.11.0",
        // What its integrations ask for. It would install that by itself, at its first start.
        "PyTurboJPEG==1.8.3",
        "aiohttp_sse==2.2.0",
        "gazetteer-matcher==1.1.0",
        "ha-ffmpeg==3.2.2",
        "hassil==3.12.1",
        "home-assistant-frontend==20261028.4",
        "home-assistant-intents==2026.10.27",
        "mcp==2.3.0",
        "mutagen==1.48.1",
        "ollama==0.6.2",
        "openai==3.26.0",
        "pymicro-vad==1.0.1",
        "pyspeex-noise==1.0.2",
    ],
    without: &[],
};

/// JavaScript programs with a folder of their own.
#[derive(Debug)]
pub struct Node {
    pub name: &'static str,
    pub packages: &'static [&'static str],
}

pub const NODE_LIBRARIES: Node = Node {
    name: "node-libraries",
    packages: &[
        "ai@6.0.326",
        "@ai-sdk/openai@3.0.141",
        "@anthropic-ai/sdk@1.11.0",
        "ollama@0.6.4",
        "openai@6.49.0",
        "zod@4",
    ],
};

pub const CLAUDE_CODE: Node = Node {
    name: "claude-code",
    packages: &["@anthropic-ai/claude-code@2.1.197"],
};

pub const CODEX: Node = Node {
    name: "codex",
    packages: &["@openai/codex@0.169.0"],
};

pub const NODE_RED: Node = Node {
    name: "node-red",
    packages: &["node-red@4.1.15"],
};

/// Programs of Debian, in a folder of their own with all that they need.
#[derive(Debug)]
pub struct Debian {
    pub name: &'static str,
    pub suite: &'static str,
    pub packages: &'static [&'static str],
}

/// Debian's stable release.
pub const PROXIES: Debian = Debian {
    name: "proxies",
    suite: "stable",
    packages: &["caddy", "nginx-light"],
};

/// The language in a version that no stable release of Debian has.
pub const PYTHON: Debian = Debian {
    name: "python3.14",
    suite: "sid",
    packages: &["libpython3.14-dev", "python3.14"],
};

/// Checks the accessibility of pages.
pub const AXE: Node = Node {
    name: "axe-core",
    packages: &["axe-core@4.14.1"],
};

impl Debian {
    /// The folder; none where it cannot be installed, which it says.
    pub fn installed(&self) -> Option<PathBuf> {
        let root = place().join(self.name);
        let is_there = install_once(self.name, &format!("{self:?}"), |log| {
            run(
                log,
                Command::new("mmdebstrap")
                    .args(["--quiet", "--variant=extract"])
                    // A mirror may be an older copy.
                    .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
                    .arg(format!("--include={}", self.packages.join(",")))
                    .arg(self.suite)
                    .arg(&root),
            )
        });
        is_there.then_some(root)
    }

    /// A program of it, which runs with its own libraries; none where it cannot be installed.
    pub fn command(&self, program: &str) -> Option<Command> {
        let root = self.installed()?;
        let [loader, libraries] = loader(&root);
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries);
        command.arg(root.join(program));
        Some(command)
    }

    /// Its Python of the same name, by a path at which it can be started like any other.
    fn python(&self) -> Option<PathBuf> {
        let root = self.installed()?;
        let [loader, libraries] = loader(&root).map(|path| path.display().to_string());
        let programs = root.join("usr/bin");
        let (real, python) = (programs.join(self.name), programs.join("python"));
        let script = format!(
            "#!/bin/sh\nexec '{loader}' --library-path '{libraries}' --argv0 \"$0\" '{}' \"$@\"\n",
            real.display()
        );
        fs::write(&python, script).unwrap();
        fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
        Some(python)
    }
}

/// What starts the programs of a root, and where their libraries are.
fn loader(root: &Path) -> [PathBuf; 2] {
    let libraries = fs::read_dir(root.join("usr/lib")).unwrap();
    let libraries = libraries
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("-linux-gnu"))
        .expect("a folder for the machine's kind");
    let mut files = fs::read_dir(&libraries)
        .unwrap()
        .map(|one| one.unwrap().path());
    let loader = files
        .find(|path| path.to_string_lossy().contains("/ld-linux"))
        .expect("a loader");
    [loader, libraries]
}

/// The conformance suite of the Model Context Protocol, and the Node.js that it needs.
pub const CONFORMANCE: Node = Node {
    name: "conformance",
    packages: &["@modelcontextprotocol/conformance@0.1.16", "node@22"],
};

/// Servers and clients of the Model Context Protocol.
pub const MCP_NODE: Node = Node {
    name: "mcp-node",
    packages: &[
        "@modelcontextprotocol/client@2.4.0",
        "@modelcontextprotocol/sdk@1.32.2",
        "@modelcontextprotocol/server-everything@2026.8.31",
        "@modelcontextprotocol/server-filesystem@2026.8.31",
        "@modelcontextprotocol/server-memory@2026.8.31",
    ],
};

pub const STANDARD_WEBHOOKS: Node = Node {
    name: "standard-webhooks",
    packages: &["standardwebhooks@1.1.1"],
};

/// Where programs are installed: beside what was built.
pub fn place() -> PathBuf {
    let program = std::env::current_exe().expect("a test knows its program");
    let target = program.ancestors().nth(3).expect("target/debug/deps");
    let place = target.join("peers");
    fs::create_dir_all(&place).unwrap();
    place
}

impl Python {
    /// The folder with its programs; none where it cannot be installed, which it says.
    pub fn installed(&self) -> Option<PathBuf> {
        let interpreter = match self.interpreter {
            Some(debian) => Some(debian.python()?),
            None => None,
        };
        let environment = place().join(self.name);
        let is_there = install_once(self.name, &format!("{self:?}"), |log| {
            let uv = uv(log)?;
            let versions = match &interpreter {
                Some(python) => python.as_os_str(),
                None => self.versions.as_ref(),
            };
            let overrides = place().join(format!("{}.overrides", self.name));
            let without = |one: &&str| format!("{one} ; sys_platform == 'never'\n");
            fs::write(
                &overrides,
                self.without.iter().map(without).collect::<String>(),
            )
            .unwrap();
            let python = environment.join("bin/python");
            run(
                log,
                Command::new(&uv)
                    .args(["venv", "--quiet", "--python"])
                    .arg(versions)
                    .arg(&environment),
            )?;
            let mut install = Command::new(&uv);
            install.args(["pip", "install", "--quiet", "--exclude-newer", self.as_of]);
            install.arg("--python").arg(&python);
            install.arg("--overrides").arg(&overrides);
            if let Some(python) = &interpreter {
                // Of what is compiled, its headers are found, and the machine's own first.
                let headers = python.ancestors().nth(2).unwrap().join("include");
                let after = format!("-idirafter {}", headers.display());
                install.env("CFLAGS", &after).env("CXXFLAGS", after);
            }
            run(log, install.args(self.packages))
        });
        is_there.then(|| environment.join("bin"))
    }
}

impl Node {
    /// The folder in which its packages are found; none where it cannot be installed, which
    /// it says.
    pub fn installed(&self) -> Option<PathBuf> {
        let folder = place().join(self.name);
        let is_there = install_once(self.name, &format!("{AS_OF} {self:?}"), |log| {
            fs::create_dir_all(&folder).unwrap();
            run(
                log,
                Command::new("npm")
                    .args(["install", "--loglevel", "error", "--no-audit", "--no-fund"])
                    .args(["--prefix", ".", "--before", AS_OF])
                    .args(self.packages)
                    .current_dir(&folder),
            )
        });
        is_there.then_some(folder)
    }

    /// The folder with its programs, as [`Node::installed`].
    pub fn programs(&self) -> Option<PathBuf> {
        Some(self.installed()?.join("node_modules/.bin"))
    }
}

/// Installs something unless just that is there, and says so where it cannot.
fn install_once(
    name: &str,
    contents: &str,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> bool {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let done = place().join(name).join("installed");
    if fs::read_to_string(&done).is_ok_and(|there| there == contents) {
        return true;
    }
    let _ = fs::remove_dir_all(place().join(name));
    let log = place().join(format!("{name}.log"));
    File::create(&log).unwrap();
    let began = Instant::now();
    match install(&log) {
        Ok(()) => {
            println!("{name}: installed in {} s", began.elapsed().as_secs());
            fs::write(done, contents).unwrap();
            true
        }
        Err(why) => {
            let log = log.display();
            skipped(format_args!(
                "{name} cannot be installed here: {why}; see {log}"
            ));
            false
        }
    }
}

/// The installer of Python programs.
fn uv(log: &Path) -> Result<PathBuf, String> {
    let environment = place().join(UV);
    let uv = environment.join("bin/uv");
    if !uv.exists() {
        run(
            log,
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        let pip = environment.join("bin/pip");
        run(log, Command::new(pip).args(["install", "--quiet", UV]))?;
    }
    Ok(uv)
}

/// Runs a step of an installation to its end.
fn run(log: &Path, command: &mut Command) -> Result<(), String> {
    let output = File::options().append(true).open(log).unwrap();
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .env("PATH", path_with_pyenv())
        // Pythons come from elsewhere.
        .env("UV_PYTHON_DOWNLOADS", "never")
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut child = Running(child);
    let deadline = Instant::now() + INSTALLING;
    loop {
        match child.0.try_wait().unwrap() {
            Some(status) if status.success() => return Ok(()),
            Some(_) => {
                let said = fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty());
                return Err(last.unwrap_or("it failed").trim().to_owned());
            }
            None if Instant::now() >= deadline => {
                return Err(format!("not done after {} s", INSTALLING.as_secs()));
            }
            None => std::thread::park_timeout(Duration::from_millis(50)),
        }
    }
}

/// Where programs are looked for: pyenv's versions of Python are not in PATH by name.
fn path_with_pyenv() -> String {
    let mut path = std::env::var("PATH").unwrap_or_default();
    let home = std::env::var("HOME").unwrap_or_default();
    let root = std::env::var("PYENV_ROOT").unwrap_or(format!("{home}/.pyenv"));
    for version in fs::read_dir(format!("{root}/versions"))
        .into_iter()
        .flatten()
    {
        path.push_str(&format!(":{}/bin", version.unwrap().path().display()));
    }
    path
}

/// A running program with those that it started; ended when dropped.
pub struct Running(Child);

impl Running {
    /// Starts a program, whose output goes to target/peers/NAME.out, and waits until
    /// `address` answers a request for `path`, in whatever way.
    pub fn start(name: &str, command: &mut Command, address: SocketAddr, path: &str) -> Running {
        let out = place().join(format!("{name}.out"));
        let output = File::create(&out).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut running = Running(child);
        let began = Instant::now();
        while !answers(address, path) {
            let has_ended = running.0.try_wait().unwrap().is_some();
            if has_ended || began.elapsed() > STARTING {
                let said = fs::read_to_string(&out).unwrap_or_default();
                panic!("{name} does not listen at {address}:\n{said}");
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        println!("{name}: listens after {} s", began.elapsed().as_secs());
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let runs = matches!(self.0.try_wait(), Ok(None));
        if let Some(group) = Pid::from_raw(self.0.id().cast_signed()).filter(|_| runs) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Whether a program answers, and not that it is still starting.
fn answers(address: SocketAddr, path: &str) -> bool {
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    let mut status = [0; 12];
    let asked = TcpStream::connect(address).and_then(|mut socket| {
        socket.set_read_timeout(Some(MAX_WAIT))?;
        socket.write_all(request.as_bytes())?;
        socket.read_exact(&mut status)
    });
    asked.is_ok() && status.starts_with(b"HTTP/1.") && status[9] < b'5'
}

/// An address on which nobody listens.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// Runs a script to its end; a failed assertion in it fails the test.
pub fn script(command: &mut Command) -> String {
    let output = finish_within(command, 5 * MAX_WAIT);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{failed}");
    print!("{printed}");
    printed
}

/// Calls a program's own interface, as whom the token says unless it is empty.
///
/// # Panics
/// When it is not done, or its answer is not JSON.
pub fn call(address: SocketAddr, token: &str, method: &str, path: &str, body: &str) -> Value {
    let authorization = format!("Bearer {token}");
    let mut headers = vec![("content-type", "application/json")];
    if !token.is_empty() {
        headers.push(("authorization", &authorization));
    }
    let answer = exchange(address, method, path, &headers, body.as_bytes());
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status < 300, "{path}: {} {text}", answer.status);
    serde_json::from_str(&text).unwrap()
}
