//! A data directory, and the release binary serving it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::home::{TemporaryDirectory, make_people, write_config};
use support::process;
use support::program::{Program, hearth};

use crate::http::Http;

/// Between two looks whether a server has started.
const LOOK: Duration = Duration::from_micros(50);
/// So high that it never limits.
const UNLIMITED: u32 = 1_000_000;

/// A directory in the build directory: the system's own place for such files is
/// often in memory, where a sync costs nothing.
pub fn directory_on_disk() -> TemporaryDirectory {
    TemporaryDirectory::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// A prepared data directory.
pub struct Home {
    folder: TemporaryDirectory,
    /// An admin's token.
    pub token: String,
}

impl Home {
    /// As a first start leaves it: offline provider, one tcp channel.
    pub fn fresh() -> Home {
        Home::new(json!({ "permission_mode": "ask" }))
    }

    /// With this configuration; a tcp channel is added where none is named.
    pub fn new(config: Value) -> Home {
        let folder = directory_on_disk();
        write_config(folder.path(), config);
        let token = make_people(folder.path()).admin;
        Home { folder, token }
    }

    /// With a model that this process serves, and without limits in the way.
    pub fn with_model(model: SocketAddr, more: Value) -> Home {
        let mut config = json!({
            "provider": "openai-compatible",
            "base_url": format!("http://{model}/v1"),
            "model": "scripted",
            // The model is not asked for its window.
            "context_tokens": 8_192,
            "limits": unlimited(),
        });
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Home::new(config)
    }

    /// Another with the same data. No server may run in either meanwhile.
    pub fn copy(&self) -> Home {
        let folder = directory_on_disk();
        for file in fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        Home {
            folder,
            token: self.token.clone(),
        }
    }

    pub fn database(&self) -> PathBuf {
        self.folder.path().join("hearth.db")
    }

    /// Starts the binary and returns once it answers.
    pub fn start(&self) -> Server {
        let mut command = hearth(self.folder.path());
        command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
        command.env("GLIBC_TUNABLES", tunables());
        let began = Instant::now();
        let program = Program::launch_looking(command, self.folder.path(), LOOK);
        let address = program.address;
        assert!(Http::is_healthy(address), "{}", program.said);
        Server {
            program,
            address,
            started_in: began.elapsed(),
        }
    }
}

/// What the unit file sets for the C library.
fn tunables() -> &'static str {
    let unit = include_str!("../../examples/hearth.service");
    let value = |line: &'static str| line.strip_prefix("Environment=GLIBC_TUNABLES=");
    unit.lines()
        .find_map(value)
        .expect("hearth.service sets them")
}

/// Limits out of the way of those who measure.
pub fn unlimited() -> Value {
    json!({
        "connections": UNLIMITED,
        "connections_per_address": UNLIMITED,
        "unauthenticated_per_address": UNLIMITED,
        "commands_per_second": UNLIMITED,
        "commands_burst": UNLIMITED,
        "waiting_turns": UNLIMITED,
        "waiting_turns_per_conversation": UNLIMITED,
        "webhook_per_second": UNLIMITED,
        "webhook_burst": UNLIMITED,
    })
}

/// The running binary; ended when dropped.
pub struct Server {
    program: Program,
    pub address: SocketAddr,
    /// From starting the process to its first answer.
    pub started_in: Duration,
}

impl Server {
    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> f64 {
        process::status(self.program.id(), "VmRSS").expect("the server runs") as f64
    }

    /// What of it the system cannot take back, in KiB, if we may know it.
    pub fn private_kib(&self) -> Option<f64> {
        process::private_kib(self.program.id()).map(|kib| kib as f64)
    }

    /// Bytes written to the disk so far, if we may know it.
    pub fn written_bytes(&self) -> Option<f64> {
        process::written_bytes(self.program.id())
    }

    /// Processor seconds so far.
    pub fn cpu_seconds(&self) -> f64 {
        process::cpu_seconds(self.program.id())
    }

    /// Stops it as its owner would, and waits for the end.
    pub fn stop(self) {
        assert_eq!(self.program.signal("TERM"), Some(0));
    }
}
