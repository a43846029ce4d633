//! The chat client as a state machine without I/O: messages of the server, lines of
//! the person and signals go in, [`Action`]s come out.

mod waiting;

use serde_json::Value;

use super::action::Action;
use super::approval::Approval;
use super::approvals::Approvals;
use super::listing::{conversations, short};
use crate::cli::row::rename;
use agent::turn::cut_by;
use base::reply::FinishReason;
use serde_json::json;
use waiting::{ALL, CHECK, COUNT, OPENED, list_approvals};

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
    /// Whether the token is that of `HEARTH_TOKEN`, which a refusal then names.
    pub is_from_environment: bool,
    /// Files for the first message: ids of attachments.
    pub attachments: Vec<String>,
    /// Their names: the message, if there is no other.
    pub file_names: String,
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
        sent: SentMessage,
        cancelling: bool,
    },
}

/// A message that has no response yet.
#[derive(Debug, Default, PartialEq, Eq)]
struct SentMessage {
    /// The id of the request.
    request: String,
    /// Known from the first event on.
    turn: Option<String>,
    message: String,
}

/// The state of one session.
#[derive(Debug)]
pub struct ChatClient {
    mode: ChatMode,
    state: ClientState,
    conversation: Option<String>,
    approvals: Approvals,
    /// Requests that this person may not be the one to answer.
    unchecked: Vec<Approval>,
    /// Messages whose approvals were left for later: their replies come late.
    left: Vec<SentMessage>,
    /// Of the person who signed in.
    role: String,
    /// What people are called, of the data of `list_people`.
    people: Vec<Value>,
    succeeded: bool,
    /// Seconds of silence after which the connection counts as lost.
    silence: u64,
}

/// What `/help` says.
const HELP: &str = "\
/new            start a new conversation
/conversations  list the latest conversations
/open ID        continue one of them
/approvals      decide what waits for approval
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
            unchecked: Vec::new(),
            left: Vec::new(),
            role: String::new(),
            people: Vec::new(),
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
                // Files alone say what is asked; at a terminal, this is how one leaves.
                ClientState::Idle
                    if !self.mode.interactive && !self.mode.attachments.is_empty() =>
                {
                    vec![self.ask(&self.mode.file_names.clone())]
                }
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
            ClientState::Turn { sent, cancelling } if !*cancelling => {
                *cancelling = true;
                let note = "stopping; press Ctrl-C again to exit".to_owned();
                let mut actions = vec![Action::Break, Action::Note(note)];
                // Without the turn's id the cancel waits for the turn's first event.
                actions.extend(sent.turn.as_deref().map(cancel));
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
                self.role = data["role"].as_str().unwrap_or_default().to_owned();
                // A viewer asks for nothing that would run.
                if self.role != "viewer" {
                    let events = ["approval.requested", "approval.resolved"];
                    let subscribe =
                        json!({"type": "subscribe", "id": "subscribe", "events": events});
                    actions.push(Action::Send(subscribe));
                }
                let lists = self.role != "viewer" && self.mode.interactive;
                match (self.mode.question.clone(), &self.conversation) {
                    (Some(question), _) => actions.push(self.ask(&question)),
                    (None, Some(_)) if lists => {
                        actions.push(list_approvals(OPENED));
                        self.state = ClientState::Idle;
                    }
                    (None, _) => {
                        actions.extend(lists.then(|| list_approvals(COUNT)));
                        actions.push(self.idle());
                    }
                }
                actions
            }
            Some(request) if request.starts_with("chat") => self.reply(request, data),
            Some("decide") if self.state == ClientState::Idle && self.approvals.is_empty() => {
                vec![Action::Ready]
            }
            Some("people") => {
                self.people = data["people"].as_array().cloned().unwrap_or_default();
                Vec::new()
            }
            Some("list") => {
                let mut data = data.clone();
                rename(&mut data, &self.people);
                let mut actions = conversations(&data);
                actions.push(Action::Ready);
                actions
            }
            Some(id @ (COUNT | CHECK | OPENED | ALL)) => self.listed(id, Approval::list(data)),
            _ => Vec::new(),
        }
    }

    /// Handles the reply to a message: the one that is waited for, or one whose approval
    /// was left for later.
    fn reply(&mut self, request: &str, data: &Value) -> Vec<Action> {
        let late = self.take_left(request);
        if let (None, Some(conversation)) = (&late, data["conversation_id"].as_str()) {
            self.conversation = Some(conversation.to_owned());
        }
        let response = data["response"].as_str().unwrap_or_default().to_owned();
        let mut actions = self.late_note(late.as_ref());
        let is_cancelled = data["state"] == "cancelled";
        if !is_cancelled || !response.is_empty() {
            actions.push(Action::Answer(response));
        }
        if is_cancelled {
            self.failed_in_script();
            actions.push(Action::Note("stopped".to_owned()));
        } else if let Some(reason) = data["finish_reason"].as_str().and_then(FinishReason::parse) {
            actions.push(Action::Note(format!(
                "cut off: {}; say \"continue\" to go on",
                cut_by(reason)
            )));
        }
        actions.extend(self.end(late));
        actions
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
        let is_of_token = matches!(
            message["code"].as_str(),
            Some("invalid_token" | "unauthorized")
        );
        let problem = if self.mode.is_from_environment && is_of_token {
            format!("{problem} (signed in with HEARTH_TOKEN)")
        } else {
            problem
        };
        match (message["id"].as_str(), &self.state) {
            (Some(request), _) if request.starts_with("chat") => {
                self.failed_in_script();
                let late = self.take_left(request);
                let mut actions = self.late_note(late.as_ref());
                actions.push(Action::Problem(problem));
                actions.extend(self.end(late));
                actions
            }
            (Some("subscribe"), _) => Vec::new(),
            (Some("decide"), ClientState::Idle) if self.approvals.is_empty() => {
                vec![Action::Problem(problem), Action::Ready]
            }
            // An older server: only admins may ask.
            (Some(id @ (COUNT | CHECK | OPENED)), _) => self.listed(id, Vec::new()),
            (_, ClientState::SigningIn) => {
                self.succeeded = false;
                vec![Action::Problem(problem), self.exit()]
            }
            (Some("list" | ALL), _) => vec![Action::Problem(problem), Action::Ready],
            _ => vec![Action::Problem(problem)],
        }
    }

    /// A person sees that there is no reply; a script needs the exit code.
    fn failed_in_script(&mut self) {
        self.succeeded &= self.mode.interactive && self.mode.question.is_none();
    }

    fn event(&mut self, event: &Value) -> Vec<Action> {
        match event["event"].as_str() {
            Some("approval.requested") => return self.requested(event),
            Some("approval.resolved") => return self.approvals.resolved(event),
            _ => {}
        }
        let ClientState::Turn { sent, cancelling } = &mut self.state else {
            return Vec::new();
        };
        let of = |name: &str| event[name].as_str();
        let name = of("event").unwrap_or_default();
        let is_left = |left: &SentMessage| left.turn.as_deref() == of("turn_id");
        if self.left.iter().any(is_left) {
            return Vec::new();
        }
        let mut actions = Vec::new();
        // These come only for our own turns.
        if name.starts_with("chat.") && sent.turn.is_none() {
            sent.turn = of("turn_id").map(str::to_owned);
            if *cancelling {
                actions.extend(sent.turn.as_deref().map(cancel));
            }
        }
        match name {
            "chat.delta" => {
                actions.extend(of("text").map(|text| Action::Piece(text.to_owned())));
            }
            "chat.tool_call" => {
                let sentence = of("sentence").unwrap_or("A tool runs");
                actions.push(Action::Note(format!("{sentence} …")));
            }
            "chat.waiting" => {
                let seconds = &event["seconds"];
                let note = format!("the model is busy, next try in {seconds} s");
                actions.push(Action::Note(note));
            }
            "chat.tool_result" if event["ok"] == false => {
                let summary = of("summary").unwrap_or("it failed");
                actions.push(Action::Note(format!("failed: {}", short(summary, 200))));
            }
            _ => {}
        }
        actions
    }

    fn line(&mut self, line: &str) -> Vec<Action> {
        let line = line.trim();
        match self.state {
            ClientState::SigningIn => Vec::new(),
            ClientState::Idle | ClientState::Turn { .. } if !self.approvals.is_empty() => {
                self.decide(line)
            }
            ClientState::Turn { .. } => Vec::new(),
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
                let list = json!({"type": "list_conversations", "id": "list", "limit": 20});
                let people = json!({"type": "list_people", "id": "people"});
                vec![Action::Send(people), Action::Send(list)]
            }
            ("/open", id) if !id.is_empty() => {
                self.conversation = Some(id.to_owned());
                let note = Action::Note(format!("continuing {id}"));
                match self.role.as_str() {
                    "viewer" => vec![note, Action::Ready],
                    _ => vec![note, list_approvals(OPENED)],
                }
            }
            ("/approvals", _) => vec![list_approvals(ALL)],
            ("/help", _) => vec![Action::Note(HELP.to_owned()), Action::Ready],
            _ => vec![
                Action::Problem(format!("unknown command {command}; see /help")),
                Action::Ready,
            ],
        }
    }

    /// Sends a message.
    fn ask(&mut self, message: &str) -> Action {
        // Replies that come late keep their request's id.
        let mut request = "chat".to_owned();
        while self.left.iter().any(|left| left.request == request) {
            request.push('+');
        }
        let mut chat = json!({
            "type": "chat", "id": request, "message": message, "stream": true,
            "surface": "terminal",
        });
        self.state = ClientState::Turn {
            sent: SentMessage {
                request,
                turn: None,
                message: message.to_owned(),
            },
            cancelling: false,
        };
        if let Some(conversation) = &self.conversation {
            chat["conversation_id"] = Value::from(conversation.as_str());
        }
        let attachments = std::mem::take(&mut self.mode.attachments);
        if !attachments.is_empty() {
            chat["attachments"] = Value::from(attachments);
        }
        Action::Send(chat)
    }

    fn end_turn(&mut self) -> Action {
        if let ClientState::Turn { sent, .. } = &self.state {
            let _ = self.approvals.end_turn(sent.turn.as_deref());
        }
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
