//! One configured server, supervised by a thread: started, restarted when it
//! dies, stopped. Turns use its current session.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::call::{CallError, seconds};
use super::exchange::Shared;
use super::http_sse::SseTransport;
use super::peer::Peer;
use super::pins::Pins;
use super::remote_tool::RemoteTool;
use super::session::{Session, Transport};
use super::stdio::StdioTransport;
use super::streamable_http::HttpTransport;
use super::token::token_of;
use super::{Keep, Known};
use crate::tools::Workspace;
use base::error::Result;
use base::language::Said;
use base::sync::lock;
use config::{McpServer, McpWay};
use net::cancel::Cancel;
use net::task::Task;
use net::tls::Trust;

/// First and longest pause before a restart; each is twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// After running for this long, a server restarts with the first pause again.
const STEADY: Duration = Duration::from_secs(60);
/// First and longest pause between two lists of tools. They grow while a server
/// keeps saying that its tools changed when they did not.
const LIST_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It is being started for the first time.
    Starting,
    /// Its tools can be called.
    Ready,
    /// It has ended, and will be restarted after a pause.
    Down,
    /// The configuration disables it.
    Disabled,
}

base::words! { ServerState {
    Starting: "starting",
    Ready: "ready",
    Down: "down",
    Disabled: "disabled",
} }

/// A server and the thread that supervises it.
pub(super) struct Server {
    pub(super) shared: Arc<SharedServer>,
    task: Option<Task>,
}

/// What the thread and the users of a server share.
pub(super) struct SharedServer {
    pub(super) config: McpServer,
    /// Which certificates are accepted where the server is reached by https.
    trust: Trust,
    /// What its program may write to within a sandbox, and where it runs by default.
    workspace: Workspace,
    present: Mutex<Present>,
    /// Its tools as its owner chose them; none until they are known.
    pins: Mutex<Option<Pins>>,
    changed: Condvar,
    /// Counts the changes of all servers.
    version: Arc<AtomicU64>,
    stop: Cancel,
    at_once: AtomicBool,
}

/// What a server is doing and offers at the moment.
struct Present {
    status: Status,
    session: Option<Arc<Session>>,
    /// Whether a call waits for a session.
    is_wanted: bool,
}

/// What others see of it.
#[derive(Clone)]
pub(super) struct Status {
    pub(super) state: ServerState,
    /// Those of a server that has died are still offered: the next call starts it again.
    pub(super) tools: Arc<[RemoteTool]>,
    /// What it says of the use of its tools; empty if nothing.
    pub(super) instructions: Arc<str>,
    pub(super) problem: Option<Said>,
}

impl Server {
    /// Starts a server in the background, unless it is disabled.
    pub(super) fn start(
        config: &McpServer,
        trust: Trust,
        workspace: Workspace,
        version: Arc<AtomicU64>,
    ) -> Server {
        let status = Status {
            state: if config.disabled {
                ServerState::Disabled
            } else {
                ServerState::Starting
            },
            tools: Arc::new([]),
            instructions: Arc::default(),
            problem: None,
        };
        let shared = Arc::new(SharedServer {
            config: config.clone(),
            trust,
            workspace,
            present: Mutex::new(Present {
                status,
                session: None,
                is_wanted: false,
            }),
            pins: Mutex::default(),
            changed: Condvar::new(),
            version,
            stop: Cancel::default(),
            at_once: AtomicBool::new(false),
        });
        if config.disabled {
            return Server { shared, task: None };
        }
        let supervised = Arc::clone(&shared);
        let supervise = move |_: &Cancel| supervised.supervise();
        let task = match Task::start(format!("mcp-{}", config.name), &shared.stop, supervise) {
            Ok(task) => Some(task),
            Err(error) => {
                let problem = format!("no thread can be started: {error}");
                log::error!("mcp {}: {problem}", config.name);
                shared.set_down(problem.into());
                None
            }
        };
        Server { shared, task }
    }

    /// Begins to stop the server. Dropping it waits until its program and thread have ended.
    pub(super) fn stop(&self, at_once: bool) {
        if at_once {
            self.shared.at_once.store(true, Ordering::SeqCst);
        }
        self.shared.stop.cancel();
        if let Some(session) = self.shared.present().session.clone() {
            session.interrupt(Said::of("mcp.stopping", &[]));
        }
    }

    /// Whether its thread has ended.
    pub(super) fn is_over(&self) -> bool {
        self.task.as_ref().is_none_or(Task::is_over)
    }
}

impl SharedServer {
    /// Whether it was started from these parts of the configuration.
    pub(super) fn is_for(&self, config: &McpServer, trust: &Trust, workspace: &Workspace) -> bool {
        self.config == *config && self.trust == *trust && self.workspace == *workspace
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        lock(&self.present)
    }

    /// What it is doing, its tools, and what is wrong with it.
    pub(super) fn status(&self) -> Status {
        self.present().status.clone()
    }

    /// Its tools as its owner chose them, if they are known.
    pub(super) fn pins(&self) -> Option<Pins> {
        lock(&self.pins).clone()
    }

    /// Takes its tools for those that its owner chose, unless others are known from an
    /// earlier start with these settings.
    pub(super) fn pin(&self, known: &Known, keep: &Keep) -> Result<()> {
        let status = self.status();
        let mut pins = lock(&self.pins);
        if pins.is_some() || status.state != ServerState::Ready || status.tools.is_empty() {
            return Ok(());
        }
        let kept = known(self.name())?;
        let kept = kept.and_then(|text| Pins::read(&text, &self.config));
        if kept.is_none() {
            let new = Pins::new(&self.config, &status.tools, &status.instructions);
            keep(
                self.name(),
                &serde_json::to_string(&new).unwrap_or_default(),
            )?;
            *pins = Some(new);
        } else {
            *pins = kept;
        }
        Ok(())
    }

    /// Waits until it is no longer being started for the first time.
    pub(super) fn wait_until_settled(self: &Arc<Self>, deadline: Instant, cancel: &Cancel) {
        self.wait_for(deadline, cancel, |present| {
            (present.status.state != ServerState::Starting).then_some(())
        });
    }

    /// The open session. One that has ended is opened again at once; this waits for that
    /// until `deadline`.
    ///
    /// # Errors
    /// Why there is none in time.
    pub(super) fn session(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &Cancel,
    ) -> Result<Arc<Session>, CallError> {
        let mut has_asked = false;
        let found = self.wait_for(deadline, cancel, |present| {
            if self.stop.is_cancelled() {
                return Some(None);
            }
            let session = present.session.as_ref();
            let session = session.filter(|session| session.closed().is_none());
            if session.is_none() && !std::mem::replace(&mut has_asked, true) {
                present.is_wanted = true;
                self.changed.notify_all();
            }
            session.map(|session| Some(Arc::clone(session)))
        });
        match found.flatten() {
            Some(session) => Ok(session),
            None if cancel.is_cancelled() => Err(CallError::Cancelled),
            None => {
                let problem = self.present().status.problem.clone();
                let problem = problem.unwrap_or_else(|| Said::of("mcp.starting", &[]));
                Err(CallError::Closed(problem))
            }
        }
    }

    /// Waits until `look` finds something, the turn is stopped, or it is later
    /// than `deadline`.
    fn wait_for<T>(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &Cancel,
        mut look: impl FnMut(&mut Present) -> Option<T>,
    ) -> Option<T> {
        let waker = Arc::clone(self);
        // Under the lock, so that a thread that saw no cancellation is waiting by now.
        let hook = move || {
            drop(waker.present());
            waker.changed.notify_all();
        };
        cancel.guard(hook, || {
            let mut present = self.present();
            loop {
                if let Some(found) = look(&mut present) {
                    return Some(found);
                }
                let left = deadline.checked_duration_since(Instant::now())?;
                if cancel.is_cancelled() {
                    return None;
                }
                present = self
                    .changed
                    .wait_timeout(present, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        })
    }

    fn update(&self, change: impl FnOnce(&mut Present)) {
        let mut present = self.present();
        change(&mut present);
        // Before anybody sees the change, and would take the tools of before for these.
        self.version.fetch_add(1, Ordering::SeqCst);
        drop(present);
        self.changed.notify_all();
    }

    fn set_ready(&self, session: &Arc<Session>, tools: Vec<RemoteTool>) {
        self.update(|present| {
            present.session = Some(Arc::clone(session));
            present.is_wanted = false;
            present.status = Status {
                state: ServerState::Ready,
                tools: tools.into(),
                instructions: session.instructions.as_str().into(),
                problem: None,
            };
        });
    }

    /// Keeps the tools of a server that was ready until it fails to start again.
    fn set_down(&self, problem: Said) {
        self.update(|present| {
            present.session = None;
            let status = &mut present.status;
            if status.state != ServerState::Ready {
                status.tools = Arc::new([]);
            }
            status.state = ServerState::Down;
            status.problem = Some(problem);
        });
    }

    /// Keeps the server running until it is stopped.
    fn supervise(self: &Arc<Self>) {
        let (first, most) = PAUSES;
        let mut pause = first;
        let mut told = Said::from("");
        while !self.stop.is_cancelled() {
            let began = Instant::now();
            self.present().is_wanted = false;
            let problem = match self.open() {
                Ok(session) => {
                    let session = Arc::new(session);
                    let problem = self.serve(&session);
                    // No turn may start to use a session that is being closed.
                    self.set_down(problem.clone());
                    session.close(self.at_once.load(Ordering::SeqCst));
                    problem
                }
                Err(error) => {
                    self.set_down(error.said());
                    error.said()
                }
            };
            if self.stop.is_cancelled() {
                break;
            }
            if began.elapsed() >= STEADY {
                pause = first;
            }
            if told != problem || pause < most {
                log::warn!(
                    "mcp {}: {problem}; trying again in {}",
                    self.name(),
                    seconds(pause)
                );
            }
            // A server that never starts again must not fill the log.
            told = problem;
            let until = Instant::now() + pause;
            self.wait_for(until, &self.stop, |present| present.is_wanted.then_some(()));
            pause = (pause * 2).min(most);
        }
        self.set_down(Said::of("connection.stopped", &[]));
    }

    fn open(&self) -> Result<Session, CallError> {
        let peer = Arc::new(Peer::default());
        let transport: Box<dyn Transport> = match &self.config.way {
            McpWay::Stdio {
                command,
                args,
                environment,
                directory,
                sandbox,
            } => {
                let rest = args.iter().map(String::as_str);
                let words: Vec<&str> = [command.as_str()].into_iter().chain(rest).collect();
                let (directory, sandbox) =
                    self.workspace
                        .confine(&words, directory.as_deref(), *sandbox);
                let place = (directory.as_ref(), sandbox.as_ref());
                let program = (command.as_str(), args.as_slice());
                let started =
                    StdioTransport::start(self.name(), program, environment, place, &peer);
                Box::new(started.map_err(|why| CallError::Unusable(why.into()))?)
            }
            McpWay::Http {
                url,
                headers,
                token_command,
                is_older,
            } => {
                let token = match token_command.is_empty() {
                    true => None,
                    false => Some(token_of(token_command, &self.workspace, &self.stop)),
                };
                let token = token.transpose();
                let token = token.map_err(|why| CallError::Unusable(why.into()))?;
                let shared = Shared::new(self.name(), url, headers, token, self.trust.clone());
                let shared = Arc::new(shared);
                let open = |transport| Session::open(transport, Arc::clone(&peer), &self.stop);
                if !is_older {
                    match open(Box::new(HttpTransport::new(Arc::clone(&shared)))) {
                        Err(CallError::OlderTransport) => {}
                        opened => return opened,
                    }
                }
                Box::new(SseTransport::open(shared, &peer, &self.stop)?)
            }
        };
        Session::open(transport, peer, &self.stop)
    }

    /// Lets turns use a session until it ends; returns why it ended.
    fn serve(&self, session: &Arc<Session>) -> Said {
        let mut tools = match session.list_tools(&self.stop) {
            Ok(tools) => tools,
            Err(error) => return Said::of("mcp.no_tools", &[]).with("why", error.said()),
        };
        log::info!(
            "mcp {}: ready with {} ({})",
            self.name(),
            counted(tools.len()),
            session.description()
        );
        self.set_ready(session, tools.clone());
        let (first, most) = LIST_PAUSES;
        let mut pause = first;
        let mut listed_at = Instant::now();
        loop {
            // Stopped before there was a session to interrupt.
            if self.stop.is_cancelled() {
                return Said::of("mcp.stopping", &[]);
            }
            // Some servers say so after the handshake, and some after each list.
            let until = Some(listed_at + pause);
            let is_over = session.wait_for_event(true, None);
            if let Some(reason) = is_over.or_else(|| session.wait_for_event(false, until)) {
                return reason;
            }
            listed_at = Instant::now();
            match session.list_tools(&self.stop) {
                Ok(listed) if listed == tools => pause = (pause * 2).min(most),
                Ok(listed) => {
                    pause = first;
                    // As few lines as of a client: nothing else bounds how often they change.
                    let (name, tools_now) = (self.name(), counted(listed.len()));
                    log::info!(peer:% = name; "mcp {name}: has {tools_now} now");
                    tools = listed;
                    self.set_ready(session, tools.clone());
                }
                Err(error) => {
                    pause = (pause * 2).min(most);
                    log::warn!("mcp {}: its tools cannot be listed: {error}", self.name());
                }
            }
        }
    }
}

/// `1 tool`, `2 tools`.
fn counted(tools: usize) -> String {
    match tools {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    }
}
