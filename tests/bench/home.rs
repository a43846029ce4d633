//! A data directory, and the release binary serving it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base::clock::Clock;
use base::secret::{Secret, fingerprint};
use hearth::service::password;
use serde_json::{Value, json};
use store::{NewToken, Store, UserRole};

use crate::http::Http;
use crate::process;

/// The server under measurement.
pub const BINARY: &str = env!("CARGO_BIN_EXE_hearth");
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// So high that it never limits.
const UNLIMITED: u32 = 1_000_000;

/// A folder that is removed when it is dropped. It lies in the build directory:
/// the system's own folder for such files is often in memory, where a sync
/// costs nothing.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hearth-bench-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A prepared data directory.
pub struct Home {
    folder: Folder,
    /// An admin's token.
    pub token: String,
}

impl Home {
    /// As a first start leaves it: offline provider, one tcp channel.
    pub fn fresh() -> Home {
        Home::new(json!({ "permission_mode": "ask" }))
    }

    /// With this configuration; a tcp channel is added where none is named.
    pub fn new(mut config: Value) -> Home {
        let folder = Folder::new();
        if config.get("channels").is_none() {
            config["channels"] = json!([{ "name": "lan", "type": "tcp", "port": 0 }]);
        }
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        let token = make_admin(folder.path());
        Home { folder, token }
    }

    /// With a model that this process serves, and without limits in the way.
    pub fn with_model(model: SocketAddr, more: Value) -> Home {
        let mut config = json!({
            "provider": "openai-compatible",
            "base_url": format!("http://{model}/v1"),
            "model": "scripted",
            "limits": unlimited(),
        });
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Home::new(config)
    }

    pub fn database(&self) -> PathBuf {
        self.folder.path().join("hearth.db")
    }

    /// Starts the binary and returns once it answers.
    pub fn start(&self) -> Server {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let log = self.folder.path().join("stderr.log");
        let mut command = Command::new(BINARY);
        command
            .arg("serve")
            .arg("--data-dir")
            .arg(self.folder.path())
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap());
        let began = Instant::now();
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{BINARY}: {error}"));
        let mut server = Server {
            child,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            started_in: Duration::ZERO,
        };
        while !Http::is_healthy(server.address) {
            let ended = server.child.try_wait().unwrap().is_some();
            if ended || began.elapsed() > PATIENCE {
                panic!(
                    "the server did not start: {}",
                    fs::read_to_string(&log).unwrap()
                );
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        server.started_in = began.elapsed();
        server
    }
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

fn make_admin(folder: &Path) -> String {
    let store = Store::open(&folder.join("hearth.db"), Clock::system()).unwrap();
    let hash = password::hash(&Secret::new("correct horse battery")).unwrap();
    let user = store.add_user("admin", UserRole::Admin, &hash).unwrap();
    let token = Secret::random_token();
    store
        .add_token(NewToken {
            user_id: user.id,
            name: "bench".to_owned(),
            fingerprint: fingerprint(token.expose()),
            role: UserRole::Admin,
            expires_at: None,
        })
        .unwrap();
    store.close();
    token.expose().to_owned()
}

/// The running binary; ended when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// From starting the process to its first answer.
    pub started_in: Duration,
}

impl Server {
    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> f64 {
        process::status_kib(self.child.id(), "VmRSS").expect("the server runs")
    }

    /// What of it the system cannot take back, in KiB.
    pub fn private_dirty_kib(&self) -> f64 {
        process::private_dirty_kib(self.child.id()).expect("the server runs")
    }

    /// Bytes written to the disk so far.
    pub fn written_bytes(&self) -> f64 {
        process::written_bytes(self.child.id()).expect("the kernel counts written bytes")
    }

    /// Processor seconds so far.
    pub fn cpu_seconds(&self) -> f64 {
        process::cpu_seconds(self.child.id())
    }
}

impl Server {
    /// Stops it as its owner would, and waits for the end, which no event tells.
    pub fn stop(mut self) {
        let status = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        let began = Instant::now();
        loop {
            if let Some(ended) = self.child.try_wait().expect("the server is ours") {
                assert!(ended.success(), "it ended with {ended}");
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
