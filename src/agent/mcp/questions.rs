//! What a server asks the person of a turn during one call (MCP specification, elicitation).
//!
//! Whichever thread reads the server's messages hands a question on; the thread `mcp-ask-NAME`,
//! which begins with the first question of a call and ends with the call, waits for the person
//! and sends the answer. So no question holds up what else the server says.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::{Value, json};

use super::message;
use crate::tool::{Answer, Respondent, ToolQuestion};
use base::ids::UserId;
use base::sync::lock;
use base::threads;
use net::cancel::Cancel;
use protocol::question::Question;

/// The request that asks.
pub(super) const METHOD: &str = "elicitation/create";
/// Most questions of one call, and how many of them may wait for the one that is asked.
const MOST: usize = 16;
const MOST_WAITING: usize = 4;

/// The questions of one call.
pub(super) struct Questions {
    call: AskingCall,
    state: Mutex<State>,
}

/// The call that may ask.
pub(super) struct AskingCall {
    /// The server, as the configuration names it.
    pub(super) server: String,
    /// The tool, as the model called it.
    pub(super) tool: String,
    /// What it was called with, as JSON.
    pub(super) arguments: String,
    /// Nobody where nobody is there to answer.
    pub(super) respondent: Option<Arc<dyn Respondent>>,
    /// Sends an answer to the server.
    pub(super) send: Box<dyn Fn(Vec<u8>) + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// What was taken and has no answer yet, by the server's id.
    open: Vec<(Value, Cancel)>,
    count: usize,
    to_thread: Option<Sender<Asked>>,
    thread: Option<JoinHandle<()>>,
    /// When the last answer was sent.
    answered_at: Option<Instant>,
    /// Why a question reached nobody, if one did not.
    unasked: Option<&'static str>,
    is_over: bool,
}

/// The time that a person has, and had, for questions of a call.
pub(super) struct PersonTime {
    /// How long answers were waited for, in this call and before it.
    pub(super) waited: Duration,
    /// How much longer one may be waited for, while one is.
    pub(super) open_for: Option<Duration>,
    /// When the last one was sent.
    pub(super) answered_at: Option<Instant>,
}

/// One question on its way to the person.
struct Asked {
    id: Value,
    question: Question,
    withdrawn: Cancel,
}

impl Questions {
    pub(super) fn new(call: AskingCall) -> Questions {
        Questions {
            call,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes a question, or returns the answer where nobody is asked.
    pub(super) fn take(self: &Arc<Self>, id: Value, params: &Value) -> Option<Vec<u8>> {
        let AskingCall { server, tool, .. } = &self.call;
        match params.get("mode").and_then(Value::as_str) {
            None | Some("form") => {}
            Some(_) => {
                let why = "this client shows forms only, and opens no addresses";
                return Some(message::invalid_params(&id, why));
            }
        }
        let question = match Question::read(server, params) {
            Ok(question) => question,
            Err(why) => {
                log::warn!("mcp {server}: {tool} asks what cannot be asked: {why}");
                return Some(message::invalid_params(&id, &why));
            }
        };
        let put_off = |why: &str| {
            log::info!("mcp {server}: {tool} asks a question, which is cancelled: {why}");
            Some(answer(&id, &Answer::Dismissed))
        };
        let too_many = |state: &mut State| {
            state.unasked = Some("too many were asked");
            put_off("too many were asked")
        };
        let Some(respondent) = &self.call.respondent else {
            return put_off("nobody is there to answer it");
        };
        let mut state = self.state();
        if state.is_over {
            return put_off("the call is over");
        }
        if state.count == MOST {
            return too_many(&mut state);
        }
        if state.to_thread.is_none() {
            let (sender, receiver) = bounded(MOST_WAITING);
            let (own, respondent) = (Arc::clone(self), Arc::clone(respondent));
            let thread = std::thread::Builder::new().name(format!("mcp-ask-{server}"));
            match threads::spawn(thread, move || own.run(&receiver, &*respondent)) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => return put_off(&format!("no thread can be started: {error}")),
            }
            state.to_thread = Some(sender);
        }
        let asked = Asked {
            id: id.clone(),
            question,
            withdrawn: Cancel::default(),
        };
        let withdrawn = asked.withdrawn.clone();
        let sender = state.to_thread.as_ref();
        if sender.is_none_or(|sender| sender.try_send(asked).is_err()) {
            return too_many(&mut state);
        }
        state.count += 1;
        state.open.push((id, withdrawn));
        None
    }

    /// Asks the person one question after the other, on the thread for it.
    fn run(&self, receiver: &Receiver<Asked>, respondent: &dyn Respondent) {
        while let Ok(asked) = receiver.recv() {
            let given = match asked.withdrawn.is_cancelled() {
                true => Answer::Dismissed,
                false => {
                    let question = ToolQuestion {
                        tool: &self.call.tool,
                        arguments: &self.call.arguments,
                        question: &asked.question,
                    };
                    respondent.ask(question, &asked.withdrawn)
                }
            };
            if let Answer::Unasked(why) = given {
                self.note_unasked(why);
            }
            // What the server has withdrawn itself gets no answer.
            if self.close(&asked.id).is_some() {
                (self.call.send)(answer(&asked.id, &given));
            }
        }
    }

    fn close(&self, id: &Value) -> Option<Cancel> {
        let mut state = self.state();
        let place = state.open.iter().position(|(open, _)| open == id)?;
        state.answered_at = Some(Instant::now());
        Some(state.open.swap_remove(place).1)
    }

    /// The server withdraws a question.
    pub(super) fn withdraw(&self, id: &Value) {
        // The lock is free again: the hooks may take their time.
        if let Some(withdrawn) = self.close(id) {
            withdrawn.cancel();
        }
    }

    /// Who is asked, where somebody can be.
    pub(super) fn person(&self) -> Option<UserId> {
        self.call.respondent.as_ref().map(|one| one.person())
    }

    /// A question that may be of this call reached nobody.
    pub(super) fn note_unasked(&self, why: &'static str) {
        self.state().unasked = Some(why);
    }

    /// For the model: that a question reached nobody, and why.
    pub(super) fn unasked(&self) -> Option<String> {
        let why = self.state().unasked?;
        Some(format!(
            "Hearth could not show a question of the MCP server {:?}: {why}. If the answer is \
             needed, try again later.",
            self.call.server
        ))
    }

    /// What of the time so far is not the call's.
    pub(super) fn time(&self) -> PersonTime {
        let state = self.state();
        PersonTime {
            waited: (self.call.respondent.as_ref()).map_or(Duration::ZERO, |one| one.waited()),
            open_for: (!state.open.is_empty()).then(|| self.more_time()),
            answered_at: state.answered_at,
        }
    }

    /// Whether an answer is waited for.
    pub(super) fn are_open(&self) -> bool {
        !self.state().open.is_empty()
    }

    /// How much longer the call may take for what the person is asked.
    pub(super) fn more_time(&self) -> Duration {
        let respondent = self.call.respondent.as_ref();
        respondent.map_or(Duration::ZERO, |one| one.left())
    }

    /// Ends with the call: withdraws what is open, and joins the thread.
    pub(super) fn end(&self) {
        let (open, thread) = {
            let mut state = self.state();
            state.is_over = true;
            state.to_thread = None;
            let open: Vec<Cancel> = state.open.iter().map(|(_, one)| one.clone()).collect();
            (open, state.thread.take())
        };
        open.iter().for_each(Cancel::cancel);
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            log::error!("mcp {}: the thread that asks panicked", self.call.server);
        }
    }
}

/// The answer for the server.
fn answer(id: &Value, answer: &Answer) -> Vec<u8> {
    message::result_of(
        id,
        match answer {
            Answer::Accepted(content) => json!({"action": "accept", "content": content}),
            Answer::Declined => json!({"action": "decline"}),
            Answer::Dismissed | Answer::Unasked(_) => dismissed(),
        },
    )
}

/// What a server gets where nobody was asked.
pub(super) fn dismissed() -> Value {
    json!({"action": "cancel"})
}

#[cfg(test)]
mod tests;
