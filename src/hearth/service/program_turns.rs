//! Turns that a program's HTTP request begins and follows: of clients that speak OpenAI's or
//! Ollama's interface, or the Model Context Protocol.

use std::sync::Arc;
use std::time::Duration;

use super::hub::Person;
use super::programs::{ProgramOptions, ProgramTurn, Results};
use super::reply_stream::{Line, ReplyStream};
use super::{Service, attachments};
use base::error::{Error, Result};
use base::ids::{TurnId, UserId};
use base::language::Words;
use base::secret::hex;
use net::wait::Waker;
use store::{
    Begun, Credential, Exchange, IdempotencyKey, Identity, IncludedFile, NewAttachments, NewTurn,
    ReplayedHistory, Step, Target, TokenScope, Usage, UserRole, Viewer,
};

/// How long after a hang-up its connection's thread may take to notice. Programs that give up
/// on a request and repeat it come sooner.
const HANG_UP: Duration = Duration::from_millis(200);

/// On whose behalf a program asks.
#[derive(Clone, Debug)]
pub struct ProgramCaller {
    /// The owner of the conversations that the message may continue.
    pub user_id: UserId,
    /// The speaker's name for the model.
    pub user: String,
    /// The token that was shown; none where the owner lets a user's programs in
    /// without one.
    pub identity: Option<Identity>,
}

/// A message from a client that sends the whole conversation with it.
#[derive(Debug, Default)]
pub struct Question {
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The client's own name for the chat, if it has one.
    pub chat: Option<String>,
    /// The message to answer.
    pub message: String,
    /// The calls of the client's own tools since, and their results.
    pub steps: Vec<Step>,
    /// The results that follow it: a turn may wait for them.
    pub results: Option<Results>,
    /// The message before, and the results with which its client has ended.
    pub left: Option<(String, Results)>,
    /// Its files.
    pub files: Vec<IncludedFile>,
    /// The client's instructions to the model for this turn.
    pub instructions: Option<String>,
    /// The caller's key.
    pub idempotency: Option<String>,
    /// A fingerprint of the request, if it is known by it when it comes again.
    pub fingerprint: Option<[u8; 32]>,
    /// Whether the program says that it asks again, because it has given up on its first try.
    pub is_retry: bool,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    /// What the client wants beyond the household's settings, and its own tools.
    pub program: Option<ProgramOptions>,
    /// Whether the pieces of the reply are wanted as they come.
    pub stream: bool,
    /// The client's own name for the request, by which it may cancel the turn.
    pub request: Option<String>,
}

impl ProgramCaller {
    /// What alone continues what it begins.
    fn credential(&self) -> Credential {
        Credential {
            user_id: self.user_id,
            token_id: self.identity.as_ref().map(|identity| identity.token_id),
        }
    }
}

impl Service {
    /// Stores a message and starts its turn, which runs like any other; or goes on with the
    /// turn that waits for the client's results, or that the same request began before. The
    /// waker is woken whenever [`ReplyStream::take`] may find news.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `invalid_request` (422: the idempotency key was used
    /// for another request), `not_found` for results of calls that nobody made.
    pub fn follow(
        self: &Arc<Service>,
        asker: &ProgramCaller,
        mut question: Question,
        waker: &Arc<Waker>,
    ) -> Result<ReplyStream> {
        let (viewer, scope, person) = rights(asker);
        let credential = asker.credential();
        let request = question.fingerprint.map(|fingerprint| IdempotencyKey {
            scope: format!("request:{}", credential.key_scope()),
            key: hex(&fingerprint),
            request: fingerprint,
            earlier_request: None,
        });
        let line = Line::open(self, asker.identity.as_ref(), waker);
        let results = question.results.take();
        let known = match &request {
            Some(request) => self.store.snapshot(&viewer)?.turn_of_request(request)?,
            None => None,
        };
        let (mut begun, mut used, mut is_streamed) = (None, Usage::default(), question.stream);
        if let Some(results) = &results {
            let print = question.fingerprint.unwrap_or_default();
            let (programs, message) = (&self.programs, &question.message);
            let waiting = programs.waiting(credential, message, results, print, known);
            if let Some((turn, used, program)) = waiting {
                let watch = line.watch(turn, person, question.stream);
                request.iter().for_each(|request| {
                    self.store.note_request(request.clone(), turn);
                });
                program.go_on(&results.returned, Some(line.response()));
                return Ok(line.follow(turn, watch, used, request, false));
            }
            let taken = programs.has_taken(credential, results, print);
            if let Some((_, before)) = taken {
                // What was streamed before is not there any more: the end brings all of it.
                (used, is_streamed) = (before, false);
            }
            if let Some(turn) = known.or(taken.map(|(turn, _)| turn)) {
                begun = self.repeat(&viewer, turn, None)?;
            }
            if begun.is_none() && question.steps.is_empty() {
                return Err(Error::not_found(
                    "no call of this program waits for these results: send the calls with them",
                ));
            }
        } else if let Some(turn) = known
            && (question.is_retry || self.hub.is_left(turn, HANG_UP))
        {
            // Nobody else waits for it, or whoever does has given up.
            begun = self.repeat(&viewer, turn, request.as_ref())?;
        }
        if let (None, Some((message, results))) = (&begun, question.left.take()) {
            let waiting = self
                .programs
                .waiting(credential, &message, &results, [0; 32], None);
            if let Some((_, _, program)) = waiting {
                program.go_on(&results.returned, None);
            }
        }
        let message = question.message.clone();
        let mut place = None;
        let begun = match begun {
            Some(begun) => begun,
            None => {
                let target = Target::ReplayedHistory(ReplayedHistory {
                    credential,
                    request: request.clone(),
                    history: question.history,
                    steps: question.steps,
                    chat: question.chat,
                    instructions: question.instructions,
                });
                let (audience, channel) = (self.usual_audience(), question.channel);
                let limits = attachments::limits(&self.settings.current().limits);
                // Where replies are read, the client says in its own instructions, if at all.
                let new = NewTurn {
                    owner: Some(asker.user_id),
                    speaker: Some(asker.user.clone()),
                    attachments: NewAttachments::Included(question.files, limits),
                    idempotency: question.idempotency.map(|key| IdempotencyKey {
                        scope: format!("{}:{}", credential.key_scope(), question.channel),
                        key,
                        request: question.fingerprint.unwrap_or_default(),
                        earlier_request: None,
                    }),
                    tools: scope.tools,
                    ..NewTurn::new(viewer.clone(), target, audience, channel, question.message)
                };
                place = self.reserve_place(&new, credential.token_id)?;
                match self.store.begin_turn_deferred(new)?.uncommitted() {
                    Begun::Repeat(turn) => {
                        let goes_on = self.store.go_on(&viewer, turn.id, None)?;
                        goes_on.unwrap_or(Begun::Repeat(turn))
                    }
                    begun => begun,
                }
            }
        };
        let turn = begun.turn().id;
        // It is read from the database as soon as the turn runs.
        if !matches!(
            begun,
            Begun::Repeat(_)
                | Begun::New {
                    has_history: false,
                    ..
                }
        ) {
            self.store.flush()?;
        }
        let watch = line.watch(turn, person, is_streamed);
        match (self.programs.get(turn), question.program) {
            // The request came before: its program goes on, perhaps with calls that it has.
            (Some(program), _) => program.follow(line.response()),
            (None, Some(options)) => {
                let program = ProgramTurn::new(credential, message, options, line.response());
                self.programs.add(turn, program);
            }
            (None, None) => {}
        }
        if let (Some(name), Some(identity)) = (question.request, &asker.identity) {
            self.programs.name(identity.token_id, name, turn);
        }
        self.start(begun, credential.token_id, Some(watch));
        drop(place);
        Ok(line.follow(turn, watch, used, request, results.is_none()))
    }

    /// Goes on with the turn of a request that came before.
    fn repeat(
        &self,
        viewer: &Viewer,
        turn: TurnId,
        request: Option<&IdempotencyKey>,
    ) -> Result<Option<Begun>> {
        // Its client hung up. It goes on with the turn once that has ended.
        if self.queue.is_cancelled(turn) {
            return Err(Error::overloaded(
                "the turn of this request is being stopped",
                1,
            ));
        }
        self.store.go_on(viewer, turn, request)
    }

    /// Stops the turn of a request of this token. None where several have the name: two
    /// programs with one token and no sessions cannot be told apart.
    pub fn cancel_request(&self, by: &Identity, name: &str) {
        let turns = self.programs.named(by.token_id, name);
        if let [turn] = turns[..] {
            self.stop_turn(turn, "the assistant that asked");
        }
    }

    pub(super) fn stop_turn(&self, turn: TurnId, by: &str) {
        if let Err(error) = self.stop(turn, by) {
            log::warn!("{turn}: it could not be stopped: {error}");
        }
    }

    /// The user of this name, for programs that the owner lets in without a
    /// token.
    ///
    /// # Errors
    /// `unauthorized` when there is none, or it may not chat.
    pub fn asker_without_token(&self, name: &str) -> Result<ProgramCaller> {
        match self.store.user(name)? {
            Some(user) if user.role >= UserRole::User => Ok(ProgramCaller {
                user_id: user.id,
                user: user.name,
                identity: None,
            }),
            _ => {
                log::warn!("openai_api.ollama_user: no user {name:?} who may chat");
                Err(Error::unauthorized(
                    "the server's setting openai_api.ollama_user names nobody who may chat",
                ))
            }
        }
    }
}

/// What an asker sees and may do.
fn rights(asker: &ProgramCaller) -> (Viewer, TokenScope, Person) {
    match &asker.identity {
        Some(identity) => (
            identity.viewer(),
            identity.scope.clone(),
            Person::reading(identity, None),
        ),
        // Nobody has shown to be this person: what it asks and begins is the
        // household's.
        None => (
            Viewer::person(asker.user_id, UserRole::User).household_only(),
            TokenScope {
                tools: None,
                household_only: true,
            },
            Person {
                id: asker.user_id,
                role: UserRole::User,
                household_only: true,
                words: Words::ENGLISH,
                is_program: true,
            },
        ),
    }
}
