//! Headless Chromium, driven over its DevTools protocol
//! (https://chromedevtools.github.io/devtools-protocol/).

use std::fs;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::firefox;
use support::home::TemporaryDirectory;

/// The longest that anything may take: a browser on a busy machine is slow.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take to end.
const CLOSING: Duration = Duration::from_secs(10);

/// A browser process with a profile of its own.
pub struct Chromium {
    process: Child,
    address: String,
    _profile: TemporaryDirectory,
}

/// One tab, alone in its storage.
pub struct Page {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    /// In Firefox, which speaks another protocol.
    pub tab: Option<String>,
    next_id: u64,
    /// Errors in the console, and exceptions.
    pub errors: Vec<String>,
    /// Addresses that were asked for.
    pub requests: Vec<String>,
    /// How often a document was loaded whole.
    loads: u32,
    /// What keeps its storage apart.
    context: String,
    /// The service worker that it has installed.
    pub worker: Option<String>,
}

impl Chromium {
    pub fn start() -> Chromium {
        Chromium::start_with(&[])
    }

    /// The same with more options.
    pub fn start_with(options: &[&str]) -> Chromium {
        Chromium::launch(TemporaryDirectory::new(), options)
    }

    /// One whose user has imported this authority, where Chromium keeps those.
    pub fn trusting(authority: &Path) -> Chromium {
        let profile = TemporaryDirectory::new();
        let folder = profile.path().join("Default");
        fs::create_dir(&folder).unwrap();
        let database = rusqlite::Connection::open(folder.join("ServerCertificate")).unwrap();
        let tables = "
            CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);
            INSERT INTO meta VALUES ('version', '1'), ('last_compatible_version', '1');
            CREATE TABLE certificates(sha256hash_hex TEXT PRIMARY KEY, der_cert BLOB NOT NULL,
                trust_settings BLOB NOT NULL);";
        database.execute_batch(tables).unwrap();
        let certificate = &net::tls::load_certificates(authority).unwrap()[0];
        let digest = net::tls::fingerprint(certificate);
        let digest = digest.replace(':', "").to_lowercase();
        // CertificateMetadata { trust { trust_type: TRUSTED } } as a protocol buffer.
        let trusted = [0x0a, 2, 8, 3];
        let row = "INSERT INTO certificates VALUES (?, ?, ?)";
        let values = (digest, certificate.as_ref(), trusted);
        database.execute(row, values).unwrap();
        drop(database);
        Chromium::launch(profile, &[])
    }

    fn launch(profile: TemporaryDirectory, options: &[&str]) -> Chromium {
        let program = std::env::var("BROWSER").unwrap_or_default();
        let program = if program.is_empty() {
            "chromium"
        } else {
            &program
        };
        let process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-port=0",
                // A name that is this machine, and to the browser any other.
                "--host-resolver-rules=MAP hearth.lan 127.0.0.1",
            ])
            .args(options)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            // Where else it leaves files.
            .env("TMPDIR", profile.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}; install Chromium, or set BROWSER"));
        let mut chromium = Chromium {
            process,
            address: String::new(),
            _profile: profile,
        };
        chromium.address = chromium.wait_for_port();
        chromium
    }

    fn wait_for_port(&mut self) -> String {
        let file = self._profile.path().join("DevToolsActivePort");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n')
                && !path.is_empty()
            {
                return format!("ws://127.0.0.1:{port}{}", path.trim_end());
            }
            assert!(
                Instant::now() < deadline && self.process.try_wait().unwrap().is_none(),
                "the browser did not start"
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// A new tab with no cookies or storage of another.
    pub fn page(&self) -> Page {
        let mut page = Page::new(self.connect().expect("the browser answers"));
        let context = page.call("Target.createBrowserContext", json!({}));
        let target = page.call(
            "Target.createTarget",
            json!({ "url": "about:blank", "browserContextId": context["browserContextId"] }),
        );
        let attached = page.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        page.context = context["browserContextId"].as_str().unwrap().to_owned();
        page.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.size(1280, 800);
        page
    }
}

impl Chromium {
    fn connect(&self) -> Option<WebSocket<TcpStream>> {
        let host = self.address.trim_start_matches("ws://").split('/').next()?;
        let stream = TcpStream::connect(host).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let (socket, _) = tungstenite::client(self.address.as_str(), stream).ok()?;
        Some(socket)
    }

    /// Asks it to end, for then its helpers end first and write no more; returns
    /// whether it did.
    fn close(&mut self) -> bool {
        let Some(mut socket) = self.connect() else {
            return false;
        };
        let close = json!({ "id": 1, "method": "Browser.close" });
        let deadline = Instant::now() + CLOSING;
        if socket.send(Message::text(close.to_string())).is_err() {
            return false;
        }
        while Instant::now() < deadline {
            if let Ok(Some(_)) = self.process.try_wait() {
                return true;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if !self.close() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

impl Page {
    /// Over a connection to a browser.
    pub fn new(socket: WebSocket<TcpStream>) -> Page {
        Page {
            socket,
            session: None,
            tab: None,
            next_id: 0,
            errors: Vec::new(),
            requests: Vec::new(),
            loads: 0,
            context: String::new(),
            worker: None,
        }
    }

    /// A DevTools command and its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        match self.tab.clone() {
            Some(tab) => firefox::call(self, &tab, method, &params),
            None => self.send(method, params),
        }
    }

    /// A command of the browser's own protocol, and its result or the browser's error.
    pub fn send(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket
            .send(Message::text(message.to_string()))
            .unwrap();
        loop {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(_) => continue,
                // A process that the tests stop and continue interrupts this one.
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::Interrupted => {
                    continue;
                }
                Err(error) => panic!("{method}: {error}"),
            };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == id {
                return match message["result"].is_null() {
                    true => Err(message),
                    false => Ok(message["result"].clone()),
                };
            }
            self.hear(&message);
        }
    }

    fn hear(&mut self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(params.to_string()),
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.errors.push(params["args"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string());
            }
            Some("log.entryAdded") if params["level"] == "error" => {
                self.errors.push(params.to_string());
            }
            Some("Network.requestWillBeSent" | "network.beforeRequestSent") => {
                let url = params["request"]["url"].as_str().unwrap();
                self.requests.push(url.to_owned());
            }
            Some("Network.webSocketCreated") => {
                self.requests
                    .push(params["url"].as_str().unwrap().to_owned());
            }
            Some("ServiceWorker.workerRegistrationUpdated") => {
                let registrations = params["registrations"].as_array().unwrap();
                let known = registrations.iter().find(|one| one["isDeleted"] == false);
                let id = known.map(|one| one["registrationId"].as_str().unwrap().to_owned());
                self.worker = id.or(self.worker.take());
            }
            Some("Page.loadEventFired" | "browsingContext.load") => self.loads += 1,
            _ => {}
        }
    }

    /// Lets the pages of an origin do something that a person would be asked for.
    pub fn allow(&mut self, origin: &str, permissions: &[&str]) {
        let context = self.context.clone();
        let session = self.session.take();
        self.call(
            "Browser.grantPermissions",
            json!({ "origin": origin, "browserContextId": context, "permissions": permissions }),
        );
        self.session = session;
    }

    /// Loads the document again, and waits until it is another one.
    pub fn reload(&mut self) {
        self.reloaded(|page| drop(page.call("Page.reload", json!({}))));
    }

    /// Waits until the document that this has loaded again is another one: what is asked
    /// before that, the old one would answer.
    pub fn reloaded(&mut self, by: impl FnOnce(&mut Page)) {
        self.evaluate("window.isOld = true");
        let loads = self.loads;
        by(self);
        while self.loads == loads {
            let Message::Text(text) = self.socket.read().unwrap() else {
                continue;
            };
            self.hear(&serde_json::from_str(&text).unwrap());
        }
        self.until("!window.isOld");
    }

    /// The value of an expression; a promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.try_evaluate(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn try_evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let result = self.try_call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        )?;
        match &result["exceptionDetails"] {
            Value::Null => Ok(result["result"]["value"].clone()),
            thrown => Err(thrown.clone()),
        }
    }

    /// Waits until an expression holds. One that throws does not: it may ask something of
    /// an element that is not there yet. Nor does one that the browser refuses: the document
    /// may be on its way to another one.
    pub fn until(&mut self, expression: &str) {
        let deadline = Instant::now() + TIMEOUT;
        let held = format!(
            "(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"
        );
        while self.try_evaluate(&held) != Ok(json!(true)) {
            if Instant::now() >= deadline {
                self.evaluate(&format!("Boolean({expression})"));
                let text = self.evaluate("document.body.innerText");
                self.screenshot("failed");
                panic!("never: {expression}\n{text}\n{:?}", self.errors);
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// Waits for an element and clicks it.
    pub fn click(&mut self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{found} && !{found}.disabled"));
        self.evaluate(&format!("{found}.click()"));
    }

    /// Replaces what stands in a field, as if it were typed.
    pub fn fill(&mut self, selector: &str, text: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{found} && !{found}.disabled"));
        self.evaluate(&format!("{found}.focus(); {found}.select()"));
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key; `modifiers`: 2 is Ctrl, 8 is Shift.
    pub fn press(&mut self, key: &str, modifiers: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        // The browser itself, such as an open dialog, goes by the number.
        let number = if key == "Escape" { 27 } else { 0 };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "modifiers": modifiers, "text": text, "windowsVirtualKeyCode": number }),
            );
        }
    }

    pub fn size(&mut self, width: u32, height: u32) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 }),
        );
        // What listens to the width hears of it with the next frame, and may undo what a test
        // has clicked before.
        self.evaluate(
            "new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); setTimeout(resolve, 1000); })",
        );
    }

    /// Light or dark.
    pub fn scheme(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Saves what is seen to target/browser/NAME.png.
    pub fn screenshot(&mut self, name: &str) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../browser");
        fs::create_dir_all(&folder).unwrap();
        let browser = if self.tab.is_some() { "firefox-" } else { "" };
        fs::write(folder.join(format!("{browser}{name}.png")), bytes).unwrap();
    }
}
