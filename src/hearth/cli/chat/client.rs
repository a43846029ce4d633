//! The chat client as a state machine without I/O: messages of the server, lines of
//! the person and signals go in, [`Action`]s come out.

use serde_json::Value;

use super::action::Action;
use super::approvals::{Approvals, short};
use serde_json::json;

/// How the client was started.
#[derive(Clone, Debug, Default)]
pub struct ChatMode {
    /// The one question to ask; without it, lines are read.
    pub question: Option<String>,
    /// Whether a person at a terminal can be asked for approval and may type commands
    /// such as `/new`.
    pub interactive: bool,
    /// The conversation to continue.
    pub conversation: Option<String>,
}

/// Something to react to.
#[derive(Debug)]
pub enum ClientEvent<'a> {
    /// The server sent a message.
    Received(&'a str),
    /// A line of standard input.
    Line(&'a str),
    /// The end of standard input.
    End,
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
}

#[derive(Debug, PartialEq, Eq)]
enum ClientState {
    SigningIn,
    Idle,
    /// A message was sent and has no response yet.
    Turn {
        /// Known from the first event on.
        turn: Option<String>,
        cancelling: bool,
    },
}

/// The state of one session.
#[derive(Debug)]
pub struct ChatClient {
    mode: ChatMode,
    state: ClientState,
    conversation: Option<String>,
    approvals: Approvals,
    succeeded: bool,
    /// Seconds of silence after which the connection counts as lost.
    silence: u64,
}

/// What `/help` says.
const HELP: &str = "\
/new            start a new conversation
/conversations  list the latest conversations
/open ID        continue one of them
/quit           exit (or Ctrl-D)
Ctrl-C stops an answer; a second Ctrl-C exits.";

impl ChatClient {
    /// A session that starts by signing in with the message `auth`.
    pub fn begin(mode: ChatMode, auth: Value) -> (ChatClient, Vec<Action>) {
        let client = ChatClient {
            conversation: mode.conversation.clone(),
            mode,
            state: ClientState::SigningIn,
            approvals: Approvals::default(),
            succeeded: true,
            silence: 90,
        };
        (client, vec![Action::Send(auth)])
    }

    /// Whether a line would be handled now; otherwise leave it in the input.
    pub fn wants_line(&self) -> bool {
        match self.state {
            ClientState::SigningIn => false,
            ClientState::Idle => true,
            ClientState::Turn { .. } => self.mode.interactive && !self.approvals.is_empty(),
        }
    }

    /// Seconds of silence after which the connection counts as lost.
    pub fn silence(&self) -> u64 {
        self.silence
    }

    /// Handles one event.
    pub fn take(&mut self, event: ClientEvent) -> Vec<Action> {
        match event {
            ClientEvent::Received(text) => self.receive(text),
            ClientEvent::Line(line) => self.line(line),
            ClientEvent::End => match self.state {
                ClientState::Idle => vec![Action::Break, self.exit()],
                _ => {
                    // Nobody can answer any more, but the turn continues.
                    self.mode.interactive = false;
                    self.approvals.give_up()
                }
            },
            ClientEvent::Interrupt => self.interrupt(),
            ClientEvent::Terminate => {
                self.succeeded = false;
                vec![self.exit()]
            }
        }
    }

    fn exit(&self) -> Action {
        Action::Exit {
            success: self.succeeded,
        }
    }

    fn interrupt(&mut self) -> Vec<Action> {
        match &mut self.state {
            ClientState::Turn { turn, cancelling } if !*cancelling => {
                *cancelling = true;
                let note = "stopping; press Ctrl-C again to exit".to_owned();
                let mut actions = vec![Action::Break, Action::Note(note)];
                // Without the turn's id the cancel waits for the turn's first event.
                actions.extend(turn.as_deref().map(cancel));
                actions
            }
            ClientState::Idle if self.mode.interactive => vec![Action::Break, self.exit()],
            _ => {
                self.succeeded = false;
                vec![self.exit()]
            }
        }
    }

    fn receive(&mut self, text: &str) -> Vec<Action> {
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            self.succeeded = false;
            let problem = "the server sent something that is not JSON; is this Hearth?";
            return vec![Action::Problem(problem.to_owned()), self.exit()];
        };
        match message["status"].as_str() {
            None => self.event(&message),
            Some("ok") => self.success(&message["id"], &message["data"]),
            Some(_) => self.failure(&message),
        }
    }

    fn success(&mut self, id: &Value, data: &Value) -> Vec<Action> {
        match id.as_str() {
            Some("auth") => {
                if let Some(ping) = data["limits"]["ping_seconds"].as_u64() {
                    self.silence = ping.clamp(1, 3600) * 3;
                }
                let mut actions = Vec::new();
                // Only an admin may subscribe to these events.
                if data["role"] == "admin" {
                    let events = ["approval.requested", "approval.resolved"];
                    let subscribe =
                        json!({"type": "subscribe", "id": "subscribe", "events": events});
                    actions.push(Action::Send(subscribe));
                }
                match self.mode.question.clone() {
                    Some(question) => actions.push(self.ask(&question)),
                    None => actions.push(self.idle()),
                }
                actions
            }
            Some("chat") => {
                if let Some(conversation) = data["conversation_id"].as_str() {
                    self.conversation = Some(conversation.to_owned());
                }
                let response = data["response"].as_str().unwrap_or_default().to_owned();
                let mut actions = Vec::new();
                let is_cancelled = data["state"] == "cancelled";
                if !is_cancelled || !response.is_empty() {
                    actions.push(Action::Answer(response));
                }
                if is_cancelled {
                    self.failed_in_script();
                    actions.push(Action::Note("stopped".to_owned()));
                }
                actions.push(self.end_turn());
                actions
            }
            Some("list") => {
                let mut actions = conversations(data);
                actions.push(Action::Ready);
                actions
            }
            _ => Vec::new(),
        }
    }

    fn failure(&mut self, message: &Value) -> Vec<Action> {
        let error = match message["error"].as_str() {
            Some(error) => error.to_owned(),
            None => "the server refused without a reason".to_owned(),
        };
        let problem = match message["retry_after"].as_u64() {
            Some(seconds) => format!("{error}; try again in {seconds} seconds"),
            None => error,
        };
        match (message["id"].as_str(), &self.state) {
            (Some("chat"), _) => {
                self.failed_in_script();
                vec![Action::Problem(problem), self.end_turn()]
            }
            (_, ClientState::SigningIn) => {
                self.succeeded = false;
                vec![Action::Problem(problem), self.exit()]
            }
            (Some("list"), _) => vec![Action::Problem(problem), Action::Ready],
            _ => vec![Action::Problem(problem)],
        }
    }

    /// A person sees that there is no reply; a script needs the exit code.
    fn failed_in_script(&mut self) {
        self.succeeded &= self.mode.interactive && self.mode.question.is_none();
    }

    fn event(&mut self, event: &Value) -> Vec<Action> {
        let ClientState::Turn { turn, cancelling } = &mut self.state else {
            return Vec::new();
        };
        let of = |name: &str| event[name].as_str();
        let name = of("event").unwrap_or_default();
        let mut actions = Vec::new();
        if name.starts_with("chat.") {
            // These come only for our own turn.
            if turn.is_none() {
                *turn = of("turn_id").map(str::to_owned);
                if *cancelling {
                    actions.extend(turn.as_deref().map(cancel));
                }
            }
        } else if turn.is_some() && of("turn_id") != turn.as_deref() {
            return Vec::new();
        }
        match name {
            "chat.delta" => {
                actions.extend(of("text").map(|text| Action::Piece(text.to_owned())));
            }
            "chat.tool_call" => {
                let tool = of("tool").unwrap_or("a tool");
                actions.push(Action::Note(format!("{tool} …")));
            }
            "chat.tool_result" if event["ok"] == false => {
                let summary = of("summary").unwrap_or("it failed");
                actions.push(Action::Note(format!("failed: {}", short(summary, 200))));
            }
            "approval.requested" => {
                let interactive = self.mode.interactive;
                actions.extend(self.approvals.requested(event, interactive));
            }
            "approval.resolved" => actions.extend(self.approvals.resolved(event)),
            _ => {}
        }
        actions
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let line = line.trim();
        match self.state {
            ClientState::SigningIn => Vec::new(),
            ClientState::Turn { .. } => self.approvals.decide(line),
            ClientState::Idle if line.is_empty() => vec![Action::Ready],
            ClientState::Idle if self.mode.interactive && line.starts_with('/') => {
                self.command(line)
            }
            ClientState::Idle => vec![self.ask(line)],
        }
    }

    fn command(&mut self, line: &str) -> Vec<Action> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (command, rest.trim()) {
            ("/quit" | "/exit", _) => vec![self.exit()],
            ("/new", _) => {
                self.conversation = None;
                vec![Action::Note("new conversation".to_owned()), Action::Ready]
            }
            ("/conversations", _) => {
                vec![Action::Send(
                    json!({"type": "list_conversations", "id": "list", "limit": 20}),
                )]
            }
            ("/open", id) if !id.is_empty() => {
                self.conversation = Some(id.to_owned());
                vec![Action::Note(format!("continuing {id}")), Action::Ready]
            }
            ("/help", _) => vec![Action::Note(HELP.to_owned()), Action::Ready],
            _ => vec![
                Action::Problem(format!("unknown command {command}; see /help")),
                Action::Ready,
            ],
        }
    }

    /// Sends a message.
    fn ask(&mut self, message: &str) -> Action {
        self.state = ClientState::Turn {
            turn: None,
            cancelling: false,
        };
        let mut chat = json!({"type": "chat", "id": "chat", "message": message, "stream": true});
        if let Some(conversation) = &self.conversation {
            chat["conversation_id"] = Value::from(conversation.as_str());
        }
        Action::Send(chat)
    }

    fn end_turn(&mut self) -> Action {
        self.approvals.clear();
        if self.mode.question.is_some() {
            self.exit()
        } else {
            self.idle()
        }
    }

    fn idle(&mut self) -> Action {
        self.state = ClientState::Idle;
        Action::Ready
    }
}

fn cancel(turn: &str) -> Action {
    Action::Send(json!({"type": "cancel", "id": "cancel", "turn_id": turn}))
}

fn conversations(data: &Value) -> Vec<Action> {
    let list = data["conversations"].as_array();
    let lines: Vec<String> = list
        .into_iter()
        .flatten()
        .map(|conversation| {
            let of = |name: &str| conversation[name].as_str().unwrap_or_default();
            let when = of("updated_at").get(..10).unwrap_or_default();
            let when = match when.parse::<jiff::civil::Date>() {
                Ok(date) => date.strftime("%d %b %Y").to_string(),
                Err(_) => when.to_owned(),
            };
            format!("{}  {when}  {}", of("id"), short(of("title"), 60))
        })
        .collect();
    let text = match lines.is_empty() {
        true => "there are no conversations yet".to_owned(),
        false => lines.join("\n"),
    };
    vec![Action::Note(text)]
}
