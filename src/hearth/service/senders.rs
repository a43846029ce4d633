//! Linked senders: whoever sends a message through a webhook account or Telegram is a person
//! of the household where that person has linked the sender. Signed in, they get a code, and
//! send `/link CODE` from there.
//!
//! A linked sender asks as its person, in conversations that are the person's own, with the
//! lesser of what the person and the account may do, and never with the rights of an admin.

use serde_json::{Value, json};

use super::guesser::Guesser;
use super::{Service, attachments, views};
use agent::model::fence::{is_of_sender, sender_channel};
use agent::model::voice::{self, Patience, Recording};
use base::error::{Error, Result};
use base::ids::{ApprovalId, ConversationId, TurnId, UserId};
use base::language::{self, Words};
use base::reply::Surface;
use base::secret::{base32_lower, fingerprint, random_bytes};
use config::WebhookAccount;
use protocol::command::{LinkSender, Remember, UnlinkSender};
use store::{
    Audience, Begun, IdempotencyKey, Identity, IncludedFile, NewAttachments, NewTurn, TELEGRAM,
    Target, Turn, TurnEnd, User, UserRole, Viewer,
};

/// Wrong codes that one sender may send before it must wait.
const FREE_TRIES: u32 = 5;
/// Characters of a code: 50 bits.
const CODE_CHARACTERS: usize = 10;

/// The code of a message that is `/link CODE`, as it was made.
pub(super) fn link_code(message: &str) -> Option<String> {
    let (command, code) = message.trim().split_once(char::is_whitespace)?;
    let is_link = command.eq_ignore_ascii_case("/link");
    let code: String = (code.chars())
        .filter(|letter| !letter.is_whitespace() && *letter != '-')
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let fits =
        code.len() == CODE_CHARACTERS && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_link && fits).then_some(code)
}

impl Service {
    /// The code by which the caller links a sender of this account.
    pub(super) fn link_sender(&self, by: &Identity, wanted: &LinkSender) -> Result<Value> {
        let account = &wanted.account;
        let config = self.settings.current();
        let is_bot = account == TELEGRAM && config.telegram().is_some();
        // Admins know all accounts.
        let person = by.person().filter(|_| by.role < UserRole::Admin);
        if !is_bot && config.account_seen_by(account, person)?.secret.is_none() {
            let fields = [("account", &**account)];
            return Err(Error::refused("error.account_open", &fields));
        }
        let text = base32_lower(&random_bytes::<7>());
        let code = &text[..CODE_CHARACTERS];
        let expires_at = (self.store).add_link_code(by.user_id, account, fingerprint(code))?;
        log::info!("{} is going to link a sender of {account:?}", by.user);
        let (first, second) = code.split_at(CODE_CHARACTERS / 2);
        let code = format!("{first}-{second}");
        Ok(json!({ "account": account, "code": code, "expires_at": expires_at }))
    }

    /// The linked senders of the caller, or as an admin of everybody.
    pub(super) fn list_senders(&self, by: &Identity, all: bool) -> Result<Value> {
        if all && by.role < UserRole::Admin {
            return Err(Error::unauthorized(
                "only an admin lists the senders of everybody",
            ));
        }
        let senders = self.store.senders((!all).then_some(by.user_id))?;
        Ok(views::records("senders", senders))
    }

    /// Ends a link: the caller's own, or as an admin anybody's.
    pub(super) fn unlink_sender(&self, by: &Identity, gone: &UnlinkSender) -> Result<Value> {
        let of = (by.role < UserRole::Admin).then_some(by.user_id);
        let (account, sender) = (&gone.account, &gone.sender);
        if !self.store.unlink_sender(account, sender, of)? {
            let fields = [("sender", &**sender), ("account", account)];
            return Err(Error::not_found(language::Said::of(
                "error.no_sender",
                &fields,
            )));
        }
        log::info!("{} has unlinked a sender of {account:?}", by.user);
        self.end_lost_questions();
        Ok(json!({ "account": account, "sender": sender }))
    }

    /// What a sender is answered who sends a code; none for any other message. The right one
    /// links it.
    ///
    /// # Errors
    /// `server_error` when the database cannot be read or written.
    pub fn try_code(&self, account: &str, sender: &str, message: &str) -> Result<Option<String>> {
        let Some(code) = link_code(message) else {
            return Ok(None);
        };
        let guesser = Guesser::Sender(account.to_owned(), sender.to_owned());
        let attempt = match self.sign_ins.begin(guesser, FREE_TRIES) {
            Ok(attempt) => attempt,
            Err(error) => {
                let wait = error.retry_after().unwrap_or_default();
                return Ok(Some(Words::ENGLISH.count("sender.too_many", wait)));
            }
        };
        let linked = (self.store).link_sender(account, sender, fingerprint(&code))?;
        let Some(person) = linked else {
            attempt.failed();
            log::warn!("a sender of {account:?} has sent a code that does not work");
            return Ok(Some(Words::ENGLISH.word("sender.wrong_code")));
        };
        attempt.succeeded();
        log::info!("a sender of {account:?} is linked to {}", person.name);
        // It may have been somebody else's.
        self.end_lost_questions();
        let since = self.clock.now().as_millis();
        let source = format!("notice:sender:{}:{since}", person.id);
        let fields = [("sender", sender), ("account", account)];
        let words = person.words();
        let notice = words.say("sender.notice", &fields);
        self.tell(&person, &words.word("sender.title"), &notice, &source)?;
        Ok(Some(
            words.say("sender.linked", &[("name", person.called())]),
        ))
    }

    /// The person that a sender of this account is linked to.
    ///
    /// # Errors
    /// `unauthorized` where that person is a guest now.
    pub fn person_behind(&self, account: &str, sender: &str) -> Result<Option<User>> {
        let person = self.store.person_of_sender(account, sender)?;
        match person {
            Some(person) if person.role < UserRole::User => {
                let guest =
                    language::Said::of("error.sender_of_guest", &[("name", person.called())]);
                Err(Error::unauthorized(guest))
            }
            person => Ok(person),
        }
    }

    /// Whether a turn came through a sender that was linked to its person and is not any more.
    pub(super) fn is_severed(&self, turn: &Turn) -> bool {
        let account = turn.account.as_deref();
        is_of_sender(&turn.channel) && !self.is_linked(account, turn.user_id, turn.conversation_id)
    }

    /// Whether the sender who spoke last in a conversation of this person is linked to them.
    pub(super) fn is_linked(
        &self,
        account: Option<&str>,
        person: Option<UserId>,
        conversation: ConversationId,
    ) -> bool {
        let seen = self.server_snapshot();
        let linked = seen.and_then(|seen| seen.is_linked(account, person, conversation));
        linked.unwrap_or_else(|error| {
            log::warn!("{conversation}: counts as of no linked sender: {error}");
            false
        })
    }
}

/// A message that a person has sent to the bot of Telegram.
pub struct Said {
    /// Who.
    pub person: User,
    /// Whether the words are their own.
    pub is_own: bool,
    /// What its conversation is called: the chat, and what else tells them apart.
    pub name: String,
    /// The text.
    pub text: String,
    /// Its files.
    pub files: Vec<IncludedFile>,
    /// What it is answered, where no model is to be asked.
    pub answer: Option<String>,
    /// The same for a repeat of the same update, and no other.
    pub key: IdempotencyKey,
}

impl Service {
    /// Accepts a message of a chat: when this returns, it is on disk and its turn will run.
    ///
    /// # Errors
    /// As [`Service::accept_webhook`].
    pub fn accept_from_chat(&self, said: Said) -> Result<TurnId> {
        let limits = &self.settings.current().limits;
        let sender = chat_of_name(&said.name).unwrap_or_default().to_owned();
        let name = Some(said.name);
        let new = NewTurn {
            surface: Some(Surface::Plain),
            attachments: NewAttachments::Included(said.files, attachments::limits(limits)),
            idempotency: Some(said.key),
            ..turn_of(
                &said.person,
                (TELEGRAM, sender),
                said.is_own,
                name,
                said.text,
            )
        };
        let _place = self.reserve_place(&new, None)?;
        let begun = self.store.begin_turn(new)?.into_inner();
        let turn = begun.turn().id;
        match (said.answer, &begun) {
            (Some(reply), Begun::New { .. }) => self.answer_at_once(&begun, reply),
            _ => self.start(begun, None, None),
        }
        Ok(turn)
    }

    /// The answer of a person in a chat to the question that they were asked there. They have
    /// no rights of an admin there.
    ///
    /// # Errors
    /// `not_found` where the question is not theirs; `unauthorized`.
    pub fn answer_in_chat(&self, person: &User, id: ApprovalId, allows: bool) -> Result<()> {
        let by = Identity {
            role: person.role.min(UserRole::User),
            ..person.identity()
        };
        match allows {
            true => self.approve(id, Remember::Once, &by),
            false => self.deny(id, &by),
        }
        .map(drop)
    }

    /// What is said in a voice message; none where no server for that is set.
    ///
    /// # Errors
    /// As [`voice::transcribe`].
    pub fn understand(
        &self,
        recording: &[u8],
        media_type: &str,
        patience: &Patience<'_>,
    ) -> Result<Option<String>> {
        let config = self.settings.current();
        match config.voice.transcription {
            Some(_) => {
                let recording = Recording::of_browser(recording, media_type)?;
                voice::transcribe(&config, &recording, patience).map(Some)
            }
            None => Ok(None),
        }
    }
}

/// The message of a person who speaks through this linked sender of `account`, and calls the
/// conversation by this name. The words are the person's own if `is_own`.
pub(super) fn turn_of(
    person: &User,
    (account, sender): (&str, String),
    is_own: bool,
    name: Option<String>,
    message: String,
) -> NewTurn {
    let target = Target::OfSender {
        account: account.to_owned(),
        sender,
        name,
    };
    let viewer = Viewer::person(person.id, person.role).without_admin();
    NewTurn {
        owner: Some(person.id),
        account: Some(account.to_owned()),
        speaker: Some(person.name.clone()),
        ..NewTurn::new(
            viewer,
            target,
            Audience::Private,
            sender_channel(account, is_own),
            message,
        )
    }
}

/// The chat of Telegram of which a conversation is called so: the chat, or the chat and the
/// message with which another conversation began there.
pub(super) fn chat_of_name(name: &str) -> Option<&str> {
    let chat = name.split('.').next()?;
    chat.parse::<i64>().is_ok().then_some(chat)
}

/// What a chat gets at the end of a turn.
pub(super) fn said_in_chat(words: Words, end: &TurnEnd) -> String {
    match end {
        TurnEnd::Done { reply, .. } => reply.clone(),
        TurnEnd::Failed { error, said } => {
            let error = error.clone().in_words(words);
            match said.is_empty() {
                true => error.message().to_owned(),
                false => format!("{said}\n\n{}", error.message()),
            }
        }
        TurnEnd::Cancelled { said } => said.clone(),
    }
}

/// Whether senders of this account are linked: anybody could pass for one of an account
/// without a secret.
pub(super) fn has_senders(account: &WebhookAccount) -> bool {
    account.secret.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_with_a_whole_code_links() {
        for (message, code) in [
            ("/link abcde-fghij", Some("abcdefghij")),
            (" /LINK ABCDE FGHIJ\n", Some("abcdefghij")),
            ("/link\tabcde23456", Some("abcde23456")),
            ("/link", None),
            ("/link abcde", None),
            ("/link abcde-fghij-k", None),
            ("/link the two documents", None),
            ("/linked abcde-fghij", None),
            ("please /link abcde-fghij", None),
        ] {
            assert_eq!(link_code(message).as_deref(), code, "{message:?}");
        }
    }
}
