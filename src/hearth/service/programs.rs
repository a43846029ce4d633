//! Programs that speak the model interfaces and run tools of their own. The model's calls
//! go out with one response, and the results come with the next request: meanwhile the turn
//! waits for them like for any tool.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::hub::ConnectionId;
use agent::model::ToolSpec;
use agent::model::client_options::ClientOptions;
use agent::turn::{HandedBack, HandedCalls, Program};
use base::ids::{TokenId, TurnId};
use base::sync::lock;
use net::cancel::Cancel;
use store::{Credential, ToolCall, Usage};

/// Longest that a program may take for its calls.
const PATIENCE: Duration = Duration::from_secs(120);

/// Most results of programs that are recognised when they come again: the newest.
const MOST_TAKEN: usize = 256;

/// What a program wants of a turn, and the tools that it brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramOptions {
    /// Of the reply.
    pub reply: ClientOptions,
    /// It runs these itself.
    pub tools: Vec<ToolSpec>,
}

/// The result of one of a program's own calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientResult {
    /// The [`ToolCall::id`], if the interface has ids.
    pub id: Option<String>,
    /// The tool, as far as the program says.
    pub tool: Option<String>,
    /// The result.
    pub content: String,
}

/// What a program sends instead of a new message: the results of its calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Those of the model's last calls.
    pub returned: Vec<ClientResult>,
    /// How often the model had called since the person's message.
    pub rounds: usize,
}

/// Gets the calls that a program is to run.
pub type OnCalls = Box<dyn FnOnce(&HandedCalls) + Send>;

/// A program's turn.
pub struct ProgramTurn {
    credential: Credential,
    message: String,
    first: ClientOptions,
    later: ClientOptions,
    tools: Vec<ToolSpec>,
    handover: Arc<(Mutex<Handover>, Condvar)>,
}

#[derive(Default)]
struct Handover {
    /// The response that can carry calls; none while the program runs them.
    response: Option<(ConnectionId, OnCalls)>,
    /// What the program runs.
    handed: HandedCalls,
    /// How often it was given calls.
    rounds: usize,
    /// What came back.
    returned: Option<HandedBack>,
}

/// The turns of programs, until they end.
#[derive(Default)]
pub struct Programs {
    turns: Mutex<HashMap<TurnId, Arc<ProgramTurn>>>,
    taken: Mutex<VecDeque<ConsumedResults>>,
    /// The turns whose clients have named their requests, with the token of each.
    named: Mutex<Vec<(TokenId, String, TurnId)>>,
    /// The tokens of [`Programs::names_nobody`].
    nameless: Mutex<BTreeSet<TokenId>>,
}

/// Results that a turn has taken. The response may be lost, and a program then sends them
/// again.
struct ConsumedResults {
    credential: Credential,
    turn: TurnId,
    ids: Vec<String>,
    request: [u8; 32],
    /// What the turn had used before.
    used: Usage,
}

impl Programs {
    /// Notes that Open WebUI asks with this token and names nobody.
    pub fn note_nameless(&self, token: TokenId) {
        lock(&self.nameless).insert(token);
    }

    /// Whether it has done so since the server started.
    pub fn names_nobody(&self, token: TokenId) -> bool {
        lock(&self.nameless).contains(&token)
    }

    /// Notes what a program wants of a turn that begins.
    pub fn add(&self, turn: TurnId, program: ProgramTurn) {
        lock(&self.turns).insert(turn, Arc::new(program));
    }

    /// The program of a turn.
    pub fn get(&self, turn: TurnId) -> Option<Arc<ProgramTurn>> {
        lock(&self.turns).get(&turn).cloned()
    }

    /// Notes that a response of a turn has ended. Unless the program runs calls of its own
    /// now, or another response follows the turn, it takes no more.
    pub fn leave(&self, turn: TurnId, response: ConnectionId) {
        lock(&self.named).retain(|(.., named)| *named != turn);
        let mut programs = lock(&self.turns);
        if let Some(program) = programs.get(&turn) {
            let mut handover = lock(&program.handover.0);
            let is_its = (handover.response.as_ref()).is_none_or(|(its, _)| *its == response);
            if !handover.handed.calls.is_empty() || !is_its {
                return;
            }
            handover.response = None;
            // One that has sent results may send them again, and then follows the turn.
            let has_returned = handover.rounds > 0;
            drop(handover);
            if !has_returned {
                programs.remove(&turn);
            }
        }
    }

    /// Notes the name by which a client may cancel its request.
    pub fn name(&self, token: TokenId, name: String, turn: TurnId) {
        lock(&self.named).push((token, name, turn));
    }

    /// The turns of the requests of this name.
    pub fn named(&self, token: TokenId, name: &str) -> Vec<TurnId> {
        let named = lock(&self.named);
        let fits = |one: &&(TokenId, String, TurnId)| one.0 == token && one.1 == name;
        named.iter().filter(fits).map(|(.., turn)| *turn).collect()
    }

    /// Forgets the program of a turn that has ended.
    pub fn remove(&self, turn: TurnId) {
        lock(&self.turns).remove(&turn);
    }

    /// The turn of this credential that waits for these results of calls after this message, and
    /// what it has used; not the turn that had the same request before. It is known from now on
    /// that they were sent.
    pub fn waiting(
        &self,
        credential: Credential,
        message: &str,
        results: &Results,
        request: [u8; 32],
        earlier: Option<TurnId>,
    ) -> Option<(TurnId, Usage, Arc<ProgramTurn>)> {
        let programs = lock(&self.turns);
        let mut found: Vec<_> = programs
            .iter()
            .filter(|(turn, program)| {
                Some(**turn) != earlier
                    && program.credential == credential
                    && program.waits_for(message, results)
            })
            .collect();
        // The newest, if the same was asked twice.
        found.sort_by_key(|(turn, _)| **turn);
        let (turn, program) = found.pop()?;
        let ids = results.returned.iter().filter_map(|one| one.id.clone());
        let used = lock(&program.handover.0).handed.usage;
        let taken = ConsumedResults {
            credential,
            turn: *turn,
            ids: ids.collect(),
            request,
            used,
        };
        let mut all = lock(&self.taken);
        if all.len() == MOST_TAKEN {
            all.pop_front();
        }
        all.push_back(taken);
        Some((*turn, used, Arc::clone(program)))
    }

    /// The turn of this credential that has taken these results before, and what it had used then.
    pub fn has_taken(
        &self,
        credential: Credential,
        results: &Results,
        request: [u8; 32],
    ) -> Option<(TurnId, Usage)> {
        let is_among = |taken: &ConsumedResults| {
            let is_known =
                |one: &ClientResult| one.id.as_ref().is_some_and(|id| taken.ids.contains(id));
            taken.credential == credential
                && (taken.request == request || results.returned.iter().all(is_known))
        };
        let taken = lock(&self.taken);
        let newest = taken.iter().rev().find(|taken| is_among(taken));
        newest.map(|taken| (taken.turn, taken.used))
    }
}

impl ProgramTurn {
    /// A turn of this credential, begun with this message, whose calls `response` gets.
    pub fn new(
        credential: Credential,
        message: String,
        options: ProgramOptions,
        response: (ConnectionId, OnCalls),
    ) -> ProgramTurn {
        let mut later = options.reply.clone();
        // It would call for ever.
        later.must_call = None;
        let handover = Handover {
            response: Some(response),
            ..Handover::default()
        };
        ProgramTurn {
            credential,
            message,
            first: options.reply,
            later,
            tools: options.tools,
            handover: Arc::new((Mutex::new(handover), Condvar::new())),
        }
    }

    /// Goes on with these results; `response` gets the next calls. Without one, nobody wants
    /// more of the turn.
    pub fn go_on(&self, returned: &[ClientResult], response: Option<(ConnectionId, OnCalls)>) {
        let (handover, told) = &*self.handover;
        let mut handover = lock(handover);
        let result_of = |(place, call): (usize, &ToolCall)| {
            let is_its = |one: &&ClientResult| one.id.as_ref() == Some(&call.id);
            let result = returned.iter().find(is_its).or(returned.get(place));
            result.map(|one| one.content.clone())
        };
        let calls = handover.handed.calls.iter().enumerate();
        handover.returned = Some(HandedBack {
            results: calls.map(result_of).collect(),
            is_last: response.is_none(),
        });
        handover.response = response;
        told.notify_all();
    }

    /// Follows with another response: it gets the calls that the program is to run, or the
    /// next ones.
    pub fn follow(&self, response: (ConnectionId, OnCalls)) {
        let mut handover = lock(&self.handover.0);
        if handover.handed.calls.is_empty() || handover.returned.is_some() {
            handover.response = Some(response);
        } else {
            (response.1)(&handover.handed);
        }
    }

    fn waits_for(&self, message: &str, results: &Results) -> bool {
        let returned = &results.returned;
        let handover = lock(&self.handover.0);
        let calls = &handover.handed.calls;
        if calls.is_empty() || handover.returned.is_some() || calls.len() != returned.len() {
            return false;
        }
        let is_named = |one: &ClientResult| {
            let id = one.id.as_ref();
            id.is_some_and(|id| calls.iter().any(|call| call.id == *id))
        };
        let is_alike = |(one, call): (&ClientResult, &ToolCall)| {
            one.tool.as_ref().is_none_or(|tool| *tool == call.tool)
        };
        returned.iter().all(is_named)
            || self.message == message
                && handover.rounds == results.rounds
                && returned.iter().zip(calls).all(is_alike)
    }
}

impl Program for ProgramTurn {
    fn options(&self, was_called: bool) -> &ClientOptions {
        if was_called { &self.later } else { &self.first }
    }

    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn run(&self, handed: HandedCalls, deadline: Instant, cancel: &Cancel) -> HandedBack {
        let nothing = HandedBack {
            results: vec![None; handed.calls.len()],
            is_last: true,
        };
        let (state, told) = &*self.handover;
        let mut handover = lock(state);
        let Some((_, on_calls)) = handover.response.take() else {
            return nothing;
        };
        handover.rounds += 1;
        on_calls(&handed);
        handover.handed = handed;
        handover.returned = None;
        drop(handover);
        let for_hook = Arc::clone(&self.handover);
        let hook = move || {
            // Whoever waits has seen that it is not cancelled, or holds the lock no more.
            drop(lock(&for_hook.0));
            for_hook.1.notify_all();
        };
        let until = deadline.min(Instant::now() + PATIENCE);
        let returned = cancel.guard(hook, || {
            let mut handover = lock(state);
            while handover.returned.is_none() && !cancel.is_cancelled() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = told.wait_timeout(handover, left);
                handover = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            handover.handed = HandedCalls::default();
            handover.returned.take()
        });
        returned.unwrap_or(nothing)
    }
}
