//! A data directory, and the release binary serving it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::home::{TemporaryDirectory, make_people, write_config};
use support::process;
use support::program::{Program, hearth, unit_environment};

use crate::clients::{Http, WebSocket};

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
    /// With this configuration, and without limits in the way.
    pub fn new(mut config: Value) -> Home {
        let limits = [
            "connections",
            "connections_per_address",
            "unauthenticated_per_address",
            "commands_per_second",
            "commands_burst",
            "waiting_turns",
            "waiting_turns_per_conversation",
            "webhook_per_second",
            "webhook_burst",
        ];
        for limit in limits {
            config["limits"][limit] = json!(UNLIMITED);
        }
        let folder = directory_on_disk();
        write_config(folder.path(), config);
        let token = make_people(folder.path()).admin;
        Home { folder, token }
    }

    /// With a model that this process serves.
    pub fn with_model(model: SocketAddr, more: Value) -> Home {
        let mut config = json!({
            "provider": "openai-compatible",
            "base_url": format!("http://{model}/v1"),
            "model": "scripted",
            // The model is not asked for its window.
            "context_tokens": 8_192,
        });
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Home::new(config)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn database(&self) -> PathBuf {
        self.folder().join("hearth.db")
    }

    /// Starts the binary and returns once it answers.
    pub fn start(&self) -> Server {
        let mut command = hearth(self.folder());
        command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
        command.envs(unit_environment());
        let began = Instant::now();
        let program = Program::launch_looking(command, self.folder(), LOOK);
        let address = program.address;
        assert!(Http::is_healthy(address), "{}", program.said);
        Server {
            program,
            address,
            started_in: began.elapsed(),
            token: self.token.clone(),
        }
    }
}

/// The running binary; ended when dropped.
pub struct Server {
    program: Program,
    pub address: SocketAddr,
    /// From starting the process to its first answer.
    pub started_in: Duration,
    token: String,
}

impl Server {
    /// A client that has signed in as the admin.
    pub fn client(&self) -> WebSocket {
        WebSocket::signed_in(self.address, &self.token)
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> f64 {
        process::status(self.program.id(), "VmRSS").expect("the server runs") as f64
    }

    /// What of it the system cannot take back, in KiB, which only root may know.
    pub fn private_kib(&self) -> Option<f64> {
        process::private_kib(self.program.id()).map(|kib| kib as f64)
    }

    /// Bytes written to the disk so far, which only root may know.
    pub fn written_bytes(&self) -> Option<f64> {
        process::written_bytes(self.program.id())
    }

    /// Microseconds of processor time so far.
    pub fn processor_us(&self) -> f64 {
        process::cpu_seconds(self.program.id()) * 1e6
    }

    /// Stops it as its owner would, and waits for the end.
    pub fn stop(self) {
        assert_eq!(self.program.signal("TERM"), Some(0));
    }
}
