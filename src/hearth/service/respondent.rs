//! What a running tool asks the person of its turn. It is stored as an approval without its
//! answer, which goes from `approve` to the tool's thread ([`Questions`](super::questions)) and
//! nowhere else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Service;
use super::approvals::BY_TIME;
use agent::message_text::{MCP_CHANNEL, is_untrusted};
use agent::tool::{Answer, Respondent, ToolQuestion};
use base::error::Code;
use base::ids::UserId;
use base::sync::{Mutex, lock};
use base::visible::one_line;
use net::cancel::Cancel;
use store::{Approval, Decision, NewApproval, SCHEDULE_CHANNEL, Turn, Verdict};

/// Longest that answers are waited for in one turn; less where `limits.approval_seconds` is.
const LIMIT: Duration = Duration::from_secs(600);
/// How long a decision may take until it is passed on.
const PASSED_ON: Duration = Duration::from_secs(5);

/// The person of a turn, who may be asked.
struct TurnRespondent {
    service: Arc<Service>,
    turn: Turn,
    person: UserId,
    waited: Mutex<Waited>,
}

/// How long answers were waited for.
#[derive(Default)]
struct Waited {
    before: Duration,
    since: Option<Instant>,
}

impl Service {
    /// Whom the tools of a turn may ask: the person who began it. Nobody where that was a
    /// program or a clock, behind which nobody may be.
    pub(super) fn respondent(self: &Arc<Service>, turn: &Turn) -> Option<Arc<dyn Respondent>> {
        let channel = turn.channel.as_str();
        let is_unattended = is_untrusted(channel)
            || [SCHEDULE_CHANNEL, MCP_CHANNEL].contains(&channel)
            || channel.ends_with("_api");
        let person = turn.user_id.filter(|_| !is_unattended)?;
        Some(Arc::new(TurnRespondent {
            service: Arc::clone(self),
            turn: turn.clone(),
            person,
            waited: Mutex::default(),
        }))
    }
}

impl TurnRespondent {
    /// Stores the question, tells of it, and waits.
    fn ask_once(&self, asked: ToolQuestion<'_>, withdrawn: &Cancel) -> Answer {
        let (service, turn) = (&self.service, &self.turn);
        let left = self.left();
        let deadline = Instant::now() + left + PASSED_ON;
        let question = NewApproval {
            call_id: String::new(),
            tool: asked.tool.to_owned(),
            arguments: asked.arguments.to_owned(),
            reason: format!(
                "The MCP server {} asks: {}",
                asked.question.server,
                one_line(&asked.question.message)
            ),
            is_outside: false,
            question: Some(asked.question.view().to_string()),
        };
        let expires_at = service.clock.now().plus(left);
        let stored = service.store.add_question(turn.id, question, expires_at);
        let approval = match stored {
            Ok(stored) => stored.map(|one: Approval| vec![one]),
            Err(error) => {
                log::warn!(
                    "{}: a question of {} is cancelled: {error}",
                    turn.id,
                    asked.tool
                );
                return Answer::Dismissed;
            }
        };
        let id = approval[0].id;
        service.questions.open(id);
        log::info!("{}: {} asks a question, {id}", turn.id, asked.tool);
        service.publish_requests(turn, &approval);
        service.notify_of_requests(&approval);
        let waker = Arc::clone(service);
        let hook = move || waker.questions.answer(id, Answer::Dismissed);
        let answer = withdrawn.guard(hook, || service.questions.wait(id, deadline));
        let answer = self.settle(&approval[0], answer, withdrawn);
        service.questions.close(id);
        answer
    }

    /// The answer that counts, which is the one on disk.
    fn settle(&self, asked: &Approval, answer: Option<Answer>, withdrawn: &Cancel) -> Answer {
        let id = asked.id;
        let questions = &self.service.questions;
        let answer = match answer {
            Some(answer) if answer != Answer::Dismissed => return answer,
            answer => answer,
        };
        let by = match (&answer, withdrawn.is_cancelled()) {
            (_, true) => "its tool",
            (None, false) => BY_TIME,
            (Some(_), false) => "the server",
        };
        let closed = (self.service).decide(id, Verdict::Expired, by, Answer::Dismissed);
        match closed {
            // Decided at this moment: the answer follows its commit.
            Err(error) if error.code() == Code::InvalidRequest && answer.is_none() => {
                let deadline = Instant::now() + PASSED_ON;
                let late = questions.wait(id, deadline);
                late.filter(|_| !withdrawn.is_cancelled())
                    .unwrap_or(Answer::Dismissed)
            }
            // It went with its conversation, or its person.
            Err(error) if error.code() == Code::NotFound => {
                let decision = Decision {
                    verdict: Verdict::Expired,
                    by: by.to_owned(),
                };
                self.service.publish_decision(asked, &decision);
                Answer::Dismissed
            }
            Err(error) if error.code() != Code::InvalidRequest => {
                log::warn!("{}: the question {id} is not closed: {error}", self.turn.id);
                Answer::Dismissed
            }
            _ => Answer::Dismissed,
        }
    }
}

impl Respondent for TurnRespondent {
    fn person(&self) -> UserId {
        self.person
    }

    fn ask(&self, asked: ToolQuestion<'_>, withdrawn: &Cancel) -> Answer {
        let questions = &self.service.questions;
        let most = (self.service.settings.current().workers / 2).max(1);
        let is_late = self.left().is_zero();
        if is_late || !questions.reserve(self.person, most) {
            let why = match is_late {
                true => "the time for questions of this turn is up",
                false => "too many others wait",
            };
            log::info!(
                "{}: a question of {} is cancelled: {why}",
                self.turn.id,
                asked.tool
            );
            return Answer::Unasked(why);
        }
        lock(&self.waited).since = Some(Instant::now());
        let answer = self.ask_once(asked, withdrawn);
        let mut waited = lock(&self.waited);
        let since = waited.since.take();
        waited.before += since.map_or(Duration::ZERO, |since| since.elapsed());
        drop(waited);
        questions.release(self.person);
        answer
    }

    fn waited(&self) -> Duration {
        let waited = lock(&self.waited);
        waited.before + waited.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn left(&self) -> Duration {
        let limits = &self.service.settings.current().limits;
        let limit = LIMIT.min(Duration::from_secs(limits.approval_seconds));
        limit.saturating_sub(self.waited())
    }
}
