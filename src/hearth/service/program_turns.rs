//! Turns that a program's HTTP request begins and follows: of clients that speak OpenAI's or
//! Ollama's interface, or the Model Context Protocol.

use std::sync::Arc;

use super::hub::Person;
use super::programs::{ProgramOptions, ProgramTurn, Results};
use super::reply_stream::{Line, ReplyStream};
use super::{Service, attachments};
use base::error::{Error, Result};
use base::ids::{TurnId, UserId};
use net::wait::Waker;
use store::{
    Begun, Exchange, IdempotencyKey, Identity, IncludedFile, NewAttachments, NewTurn,
    ReplayedHistory, Target, TokenScope, Usage, UserRole, Viewer,
};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Asker {
    /// The owner of the conversations that the message may continue.
    pub user_id: UserId,
    /// The speaker's name for the model.
    pub user: String,
    /// The token that was shown; none where the owner lets a user's programs in
    /// without one.
    pub identity: Option<Identity>,
}

/// A message from a client that sends the whole conversation with it.
#[derive(Debug)]
pub struct Question {
    /// What was said before, oldest first.
    pub history: Vec<Exchange>,
    /// The client's own name for the chat, if it has one.
    pub chat: Option<String>,
    /// The message to answer.
    pub message: String,
    /// Its files.
    pub files: Vec<IncludedFile>,
    /// The client's instructions to the model for this turn.
    pub instructions: Option<String>,
    /// The caller's key and a fingerprint of its request.
    pub idempotency: Option<(String, [u8; 32])>,
    /// Where it comes from, as in `Conversation::channel`.
    pub channel: &'static str,
    /// What the client wants beyond the household's settings, and its own tools.
    pub program: Option<ProgramOptions>,
    /// Whether the pieces of the reply are wanted as they come.
    pub stream: bool,
    /// The client's own name for the request, by which it may cancel the turn.
    pub request: Option<String>,
}

impl Service {
    /// Stores a message and starts its turn, which runs like any other. The waker is woken
    /// whenever [`ReplyStream::take`] may find news.
    ///
    /// # Errors
    /// `server_error` 503 (queue full), `invalid_request` (422: the
    /// idempotency key was used for another request).
    pub fn follow(
        self: &Arc<Service>,
        asker: &Asker,
        question: Question,
        waker: &Arc<Waker>,
    ) -> Result<ReplyStream> {
        let (viewer, scope, person) = rights(asker);
        let message = question.message.clone();
        let new = NewTurn {
            viewer,
            owner: Some(asker.user_id),
            audience: self.usual_audience(),
            target: Target::ReplayedHistory(ReplayedHistory {
                user_id: asker.user_id,
                history: question.history,
                chat: question.chat,
                instructions: question.instructions,
            }),
            channel: question.channel.to_owned(),
            account: None,
            message: question.message,
            speaker: Some(asker.user.clone()),
            // The client says so in its own instructions, if it wants anything.
            surface: None,
            attachments: if question.files.is_empty() {
                NewAttachments::None
            } else {
                let limits = attachments::limits(&self.settings.current().limits);
                NewAttachments::Included(question.files, limits)
            },
            idempotency: question.idempotency.map(|(key, request)| IdempotencyKey {
                scope: format!("{}:{}", scope.key_scope(asker.user_id), question.channel),
                key,
                request,
            }),
            replaces: None,
            model: None,
            tools: scope.tools,
        };
        let credential = asker.identity.as_ref().map(|identity| identity.token_id);
        let _place = self.reserve_place(&new, credential)?;
        let begun = self.store.begin_turn_deferred(new)?.uncommitted();
        let turn = begun.turn().id;
        // It is read from the database as soon as the turn runs.
        if let Begun::New {
            has_history: true, ..
        } = begun
        {
            self.store.flush()?;
        }
        let line = Line::open(self, asker.identity.as_ref(), waker);
        let watch = line.watch(turn, person, question.stream);
        match (self.programs.get(turn), question.program) {
            // The request came before: its program goes on, perhaps with calls that it has.
            (Some(program), _) => program.follow(line.response()),
            (None, Some(options)) => {
                let program = ProgramTurn::new(asker.user_id, message, options, line.response());
                self.programs.add(turn, program);
            }
            (None, None) => {}
        }
        if let (Some(name), Some(identity)) = (question.request, &asker.identity) {
            self.programs.name(identity.token_id, name, turn);
        }
        self.start(begun, credential, Some(watch));
        Ok(line.follow(turn, watch, Usage::default()))
    }

    /// Follows the turn that waits for these results of the client's own tools, after
    /// this message of its person, or that has taken them before; `None` if there is none.
    pub fn follow_on(
        self: &Arc<Service>,
        asker: &Asker,
        message: &str,
        results: &Results,
        stream: bool,
        waker: &Arc<Waker>,
    ) -> Option<ReplyStream> {
        let (viewer, _, person) = rights(asker);
        let line = Line::open(self, asker.identity.as_ref(), waker);
        let waiting = self.programs.waiting(asker.user_id, message, results);
        if let Some((turn, used, program)) = waiting {
            let watch = line.watch(turn, person, stream);
            program.go_on(&results.returned, line.response());
            return Some(line.follow(turn, watch, used));
        }
        let (turn, used) = self.programs.has_taken(asker.user_id, results)?;
        let known = self.find_turn(&viewer, turn).ok()?;
        // What was streamed before is not there any more: the end brings all of it.
        let watch = line.watch(turn, person, false);
        if let Some(program) = self.programs.get(turn) {
            program.follow(line.response());
        }
        self.start(Begun::Repeat(known.into_inner()), None, Some(watch));
        Some(line.follow(turn, watch, used))
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
        if let Err(error) = self.cancel(&Viewer::server(), turn, by) {
            log::warn!("{turn}: it could not be stopped: {error}");
        }
    }

    /// The user of this name, for programs that the owner lets in without a
    /// token.
    ///
    /// # Errors
    /// `unauthorized` when there is none, or it may not chat.
    pub fn asker_without_token(&self, name: &str) -> Result<Asker> {
        match self.store.user(name)? {
            Some(user) if user.role >= UserRole::User => Ok(Asker {
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
fn rights(asker: &Asker) -> (Viewer, TokenScope, Person) {
    match &asker.identity {
        Some(identity) => (
            identity.viewer(),
            identity.scope.clone(),
            Person::from(identity),
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
            },
        ),
    }
}
