//! The bot of Telegram (<https://core.telegram.org/bots/api>): a thread asks for its updates by
//! long poll, so that no port is open for it. What is sent goes through
//! [`outgoing`](crate::outgoing).
//!
//! An update is acknowledged by the next request, which names the one after it. Until then it is
//! on disk, and stays there until it was handled by one of a few threads: each chat has its
//! updates handled in order, and none waits for another chat. The key of its turn makes a repeat
//! harmless.

mod api;
mod problem;
mod work;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::service::{Said, Service};
use agent::model::voice::Patience;
use api::{Api, CALL};
use base::error::{Code, Error};
use base::ids::TurnId;
use base::language::Words;
use base::secret::sha256;
use base::sync::lock;
use config::{Config, TelegramChannel};
use net::cancel::Cancel;
use net::http_client::HttpClient;
use net::task::Task;
use net::tls::Trust;
use problem::{FIRST_PAUSE, Problem};
use store::{IdempotencyKey, IncludedFile, TELEGRAM, User};
use work::{Stored, Work, take_next};

/// How long Telegram keeps a request open while there is nothing.
const POLL: Duration = Duration::from_secs(25);
/// How much longer a request may take.
const GRACE: Duration = Duration::from_secs(10);
/// For the server of speech.
const SPEECH: Duration = Duration::from_secs(30);
/// Most updates of one answer.
const UPDATES: usize = 50;
/// Updates that wait, from which on no more are asked for.
const WAITING: usize = 200;
/// After such a time without an update, Telegram chooses the next number at random.
const NUMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A chat shows for five seconds that somebody writes.
const WRITING_SHOWN: Duration = Duration::from_secs(4);
/// Chats that are shown that somebody writes.
const WRITING: usize = 32;
/// Strangers who are told how to link; any more get no answer.
const STRANGERS: usize = 1_000;

/// The bot that the settings name, if they name one.
pub struct Telegram {
    service: Arc<Service>,
    running: Mutex<Option<(TelegramChannel, Trust, Task)>>,
}

impl Telegram {
    /// No bot yet.
    pub fn new(service: Arc<Service>) -> Telegram {
        Telegram {
            service,
            running: Mutex::default(),
        }
    }

    /// Runs the bot of this configuration, and no other.
    pub fn apply(&self, config: &Config) {
        let wanted = config.telegram();
        let trust = Trust::new(config.tls.ca_file.as_deref());
        let mut running = lock(&self.running);
        let is_same = |(channel, known, _): &(TelegramChannel, Trust, Task)| {
            Some(channel) == wanted && *known == trust
        };
        if running.as_ref().is_some_and(is_same) {
            return;
        }
        *running = None;
        let Some(channel) = wanted else { return };
        let service = Arc::clone(&self.service);
        let (own, client) = (channel.clone(), HttpClient::new().trusting(trust.clone()));
        let task = Task::start("telegram", &Cancel::default(), move |cancel| {
            let api = Api {
                channel: own,
                client,
                cancel: cancel.clone(),
            };
            let bot = Arc::new(Bot::new(service, api));
            bot.run();
            // Joined before this thread ends.
            let tasks = std::mem::take(&mut lock(&bot.work).tasks);
            drop(tasks);
        });
        match task {
            Ok(task) => *running = Some((channel.clone(), trust, task)),
            Err(error) => log::error!("no thread for Telegram: {error}"),
        }
    }

    /// Ends it.
    pub fn stop(&self) {
        lock(&self.running).take();
    }
}

struct Bot {
    service: Arc<Service>,
    api: Api,
    /// The bot's number, the part of its token that is no secret.
    number: String,
    work: Mutex<Work>,
}

impl Bot {
    fn new(service: Arc<Service>, api: Api) -> Bot {
        let number = api.channel.bot_token.expose().split(':').next();
        let digits = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.filter(digits).unwrap_or_default().to_owned();
        Bot {
            service,
            api,
            number,
            work: Mutex::default(),
        }
    }

    fn run(self: &Arc<Bot>) {
        let mut failures = 0;
        let mut is_loaded = false;
        while !self.api.cancel.is_cancelled() {
            let round = match is_loaded {
                true => self.round(),
                false => self.load(),
            };
            let Err(problem) = round else {
                is_loaded = true;
                if failures > 0 {
                    log::info!("Telegram answers again");
                }
                failures = 0;
                continue;
            };
            if self.api.cancel.is_cancelled() {
                return;
            }
            match failures {
                0 => log::error!("{problem}"),
                _ => log::debug!("{problem}"),
            }
            self.api.cancel.wait(problem.pause(failures));
            failures += 1;
        }
    }

    fn key(&self) -> String {
        format!("telegram {}", self.number)
    }

    /// Goes on with what waited at the last stop.
    fn load(self: &Arc<Bot>) -> Result<(), Problem> {
        let stored = self.service.store.meta(&self.key());
        let stored = stored.map_err(Problem::Later)?.uncommitted();
        let mut work = lock(&self.work);
        work.stored = Stored::parse(&stored.unwrap_or_default());
        self.start_handlers(&mut work);
        Ok(())
    }

    /// Gets what is new, stores it, and has it handled.
    fn round(self: &Arc<Bot>) -> Result<(), Problem> {
        let store = &self.service.store;
        let (next, newest_at, waiting) = {
            let stored = &lock(&self.work).stored;
            (stored.next, stored.newest_at, stored.waiting.len())
        };
        if waiting >= WAITING {
            self.api.cancel.wait(FIRST_PAUSE);
            return Ok(());
        }
        let is_numbered = self.service.clock.now().since(newest_at) < NUMBERED;
        let asked = json!({
            // All that are not acknowledged, where they may have any number.
            "offset": if is_numbered { next } else { 0 },
            "limit": UPDATES,
            "timeout": POLL.as_secs(),
            "allowed_updates": ["message", "edited_message", "callback_query"],
        });
        let updates = self.api.call("getUpdates", &asked, POLL + GRACE)?;
        let ids = updates.as_array().into_iter().flatten();
        let Some(last) = ids.filter_map(|one| one["update_id"].as_i64()).max() else {
            return Ok(());
        };
        let mut work = lock(&self.work);
        let mut stored = work.stored.clone();
        stored.next = last + 1;
        stored.newest_at = self.service.clock.now();
        let new = updates.as_array().into_iter().flatten();
        stored.waiting.extend(new.cloned());
        (store.set_meta(&self.key(), &stored.text())).map_err(Problem::Later)?;
        work.stored = stored;
        self.start_handlers(&mut work);
        Ok(())
    }

    /// Starts as many threads as there are chats to handle, up to the most.
    fn start_handlers(self: &Arc<Bot>, work: &mut Work) {
        work.tasks.retain(|task| !task.is_over());
        while let Some((chat, update)) = take_next(work) {
            let bot = Arc::clone(self);
            let handle = move |_: &Cancel| bot.handle_all(chat, update);
            match Task::start("telegram-chat", &self.api.cancel, handle) {
                Ok(task) => work.tasks.push(task),
                Err(error) => {
                    log::error!("no thread for a chat of Telegram: {error}");
                    work.handled.retain(|one| *one != chat);
                    return;
                }
            }
        }
    }

    /// Handles an update, and then what else no other thread handles.
    fn handle_all(self: &Arc<Bot>, mut chat: i64, mut update: Value) {
        loop {
            let mut failures = 0;
            while let Err(error) = self.handle(&update) {
                let problem = Problem::Later(error);
                log::error!("{problem}");
                self.api.cancel.wait(problem.pause(failures));
                failures += 1;
                if self.api.cancel.is_cancelled() {
                    break;
                }
            }
            // What was interrupted is handled at the next start.
            if self.api.cancel.is_cancelled() {
                return;
            }
            let mut work = lock(&self.work);
            let id = &update["update_id"];
            work.stored.waiting.retain(|one| one["update_id"] != *id);
            work.handled.retain(|one| *one != chat);
            if let Err(error) = (self.service.store).set_meta(&self.key(), &work.stored.text()) {
                // It is stored with the next one. Until then a restart would repeat it.
                log::error!("{error}");
            }
            match take_next(&mut work) {
                Some(next) => (chat, update) = next,
                None => return,
            }
        }
    }

    /// Handles an update.
    ///
    /// # Errors
    /// What the server has to recover from first.
    fn handle(self: &Arc<Bot>, update: &Value) -> Result<(), Error> {
        let id = update["update_id"].as_i64().unwrap_or_default();
        if let Value::Object(_) = &update["callback_query"] {
            return self.press(&update["callback_query"]);
        }
        let (message, is_edited) = match &update["edited_message"] {
            Value::Object(_) => (&update["edited_message"], true),
            _ => (&update["message"], false),
        };
        let Some(chat) = message["chat"]["id"].as_i64().map(|chat| chat.to_string()) else {
            return Ok(());
        };
        let strange = strange_words(message);
        if message["chat"]["type"] != "private" {
            self.say_once(&chat, &strange.word("telegram.private_only"))?;
            let leave = json!({ "chat_id": chat });
            // It may have been thrown out already.
            let _ = self.api.call("leaveChat", &leave, CALL);
            return Ok(());
        }
        let text = message["text"].as_str().or(message["caption"].as_str());
        let text = text.unwrap_or_default().trim();
        let given = text.replacen("/start ", "/link ", 1);
        let service = &self.service;
        let answer = match is_edited {
            true => None,
            false => service.try_code(TELEGRAM, &chat, &given)?,
        };
        let person = match service.person_behind(TELEGRAM, &chat) {
            Ok(Some(person)) => person,
            Ok(None) => {
                return match answer {
                    Some(answer) => {
                        self.say(&chat, &answer);
                        Ok(())
                    }
                    None => self.say_once(&chat, &strange.word("telegram.how_to_link")),
                };
            }
            Err(error) => return self.say_or_wait(&chat, strange, error),
        };
        let says = match text {
            _ if is_edited => Some("telegram.edited"),
            "/start" | "/help" => Some("telegram.help"),
            _ => None,
        };
        if let Some(says) = says {
            self.say(&chat, &person.words().word(says));
            return Ok(());
        }
        self.take(id, &chat, &person, message, text, answer)
    }

    /// A message of a linked person.
    fn take(
        self: &Arc<Bot>,
        id: i64,
        chat: &str,
        person: &User,
        message: &Value,
        text: &str,
        answer: Option<String>,
    ) -> Result<(), Error> {
        let topic = format!("telegram {} {chat}", self.number);
        if text == "/new" {
            let number = message["message_id"].as_i64().unwrap_or(id);
            let name = format!("{chat}.{number}");
            self.service.store.set_meta(&topic, &name)?;
            self.say(chat, &person.words().word("telegram.new"));
            return Ok(());
        }
        let name = self.service.store.meta(&topic)?;
        let name = name.uncommitted().unwrap_or_else(|| chat.to_owned());
        let mut text = match answer {
            // The code is of no use to anybody.
            Some(_) => "/link".to_owned(),
            None => text.to_owned(),
        };
        let mut files = Vec::new();
        if let Some(voice) = message["voice"]["file_id"].as_str() {
            match self.understand(voice, &message["voice"], person) {
                Ok(said) => text = said,
                Err(why) => {
                    self.say(chat, &why);
                    return Ok(());
                }
            }
        } else if let Some((file, name, media_type)) = file_of(message) {
            let Some(data) = self.api.file(file) else {
                self.say(chat, &person.words().word("telegram.no_file"));
                return Ok(());
            };
            if text.is_empty() {
                text.clone_from(&name);
            }
            files.push(IncludedFile {
                name,
                declared_type: media_type,
                data,
            });
        }
        if text.is_empty() {
            return Ok(());
        }
        let key = id.to_string();
        let said = Said {
            person: person.clone(),
            is_own: self.api.channel.trusted && !is_forwarded(message),
            name,
            text,
            files,
            answer,
            key: IdempotencyKey {
                scope: format!("telegram:{}", self.number),
                request: sha256(key.as_bytes()),
                key,
                earlier_request: None,
            },
        };
        match self.service.accept_from_chat(said) {
            Ok(turn) => {
                self.show_writing(turn, chat);
                Ok(())
            }
            Err(error) => self.say_or_wait(chat, person.words(), error),
        }
    }

    /// What a voice message says, or what to tell its person instead.
    fn understand(&self, file: &str, voice: &Value, person: &User) -> Result<String, String> {
        let words = person.words();
        let recording = self.api.file(file);
        let recording = recording.ok_or_else(|| words.word("telegram.no_file"))?;
        let media_type = voice["mime_type"].as_str().unwrap_or("audio/ogg");
        let patience = Patience {
            deadline: Instant::now() + SPEECH,
            cancel: &self.api.cancel,
        };
        match self.service.understand(&recording, media_type, &patience) {
            Ok(Some(said)) if !said.trim().is_empty() => Ok(said),
            Ok(Some(_)) => Err("…?".to_owned()),
            Ok(None) => Err(words.word("telegram.no_voice")),
            Err(error) => Err(error.in_words(words).message().to_owned()),
        }
    }

    /// A button under a question or a reminder: it counts only from the person who was asked
    /// or told.
    fn press(&self, press: &Value) -> Result<(), Error> {
        let chat = press["from"]["id"].as_i64().unwrap_or_default().to_string();
        let data = press["data"].as_str().unwrap_or_default();
        let person = self.service.person_behind(TELEGRAM, &chat);
        let words = match &person {
            Ok(Some(person)) => person.words(),
            _ => strange_words(press),
        };
        let answered = person.and_then(|person| match person {
            Some(person) => self.pressed(&person, data),
            None => Ok("telegram.how_to_link"),
        });
        let says = match answered {
            Ok(key) => words.word(key),
            Err(error) if is_for_later(&error) => return Err(error),
            Err(error) => match error.code() {
                Code::NotFound | Code::InvalidRequest => words.word("telegram.over"),
                _ => error.in_words(words).message().to_owned(),
            },
        };
        let shown: String = says.chars().take(200).collect();
        let answer = json!({ "callback_query_id": press["id"], "text": shown });
        // What was decided is on disk: the rest only shows it.
        let _ = self.api.call("answerCallbackQuery", &answer, CALL);
        let question = &press["message"];
        let asked = question["text"].as_str().unwrap_or_default();
        let edit = json!({
            "chat_id": question["chat"]["id"],
            "message_id": question["message_id"],
            "text": format!("{asked}\n\n{shown}").chars().take(4_000).collect::<String>(),
        });
        let _ = self.api.call("editMessageText", &edit, CALL);
        Ok(())
    }

    /// What a press of this button does; returns the key of what it is answered.
    fn pressed(&self, person: &User, data: &str) -> Result<&'static str, Error> {
        let (choice, id) = data.split_once(' ').unwrap_or_default();
        let service = &self.service;
        let answer = |allows| service.answer_in_chat(person, id.parse()?, allows);
        let finish = |is_done| service.answer_reminder(person, id.parse()?, is_done);
        match choice {
            "allow" => answer(true).map(|()| "telegram.allowed"),
            "deny" => answer(false).map(|()| "telegram.denied"),
            "done" => finish(true).map(|()| "telegram.done"),
            "again" => finish(false).map(|()| "telegram.again"),
            _ => Ok("telegram.over"),
        }
    }

    /// Shows in a chat that somebody writes, while this turn runs.
    fn show_writing(self: &Arc<Bot>, turn: TurnId, chat: &str) {
        let mut work = lock(&self.work);
        if work.writing.len() == WRITING {
            return;
        }
        work.writing.push((turn, chat.to_owned()));
        if work.shows_writing {
            return;
        }
        let bot = Arc::clone(self);
        match Task::start("telegram-writing", &self.api.cancel, move |_| {
            bot.keep_showing()
        }) {
            Ok(task) => {
                work.shows_writing = true;
                work.tasks.push(task);
            }
            Err(error) => log::warn!("no chat shows that somebody writes: {error}"),
        }
    }

    fn keep_showing(&self) {
        let runs = |turn: TurnId| {
            let turn = (self.service.server_snapshot()).and_then(|seen| seen.turn(turn));
            turn.is_ok_and(|turn| !turn.state.is_final())
        };
        loop {
            let chats = {
                let mut work = lock(&self.work);
                work.writing.retain(|(turn, _)| runs(*turn));
                work.shows_writing = !work.writing.is_empty() && !self.api.cancel.is_cancelled();
                if !work.shows_writing {
                    return;
                }
                work.writing.clone()
            };
            for (_, chat) in &chats {
                let action = json!({ "chat_id": chat, "action": "typing" });
                if self.api.call("sendChatAction", &action, CALL).is_err() {
                    break;
                }
            }
            self.api.cancel.wait(WRITING_SHOWN);
        }
    }

    /// Tells a chat something, if it can be told now.
    fn say(&self, chat: &str, text: &str) {
        self.api
            .call_patiently("sendMessage", &json!({ "chat_id": chat, "text": text }));
    }

    /// Tells a stranger, or a group, something, once for all.
    fn say_once(&self, chat: &str, text: &str) -> Result<(), Error> {
        if self.service.store.refuse_chat(chat, STRANGERS)? {
            self.say(chat, text);
        }
        Ok(())
    }

    /// Tells a person about an error; one that the server has to recover from waits.
    fn say_or_wait(&self, chat: &str, words: Words, error: Error) -> Result<(), Error> {
        if is_for_later(&error) {
            return Err(error);
        }
        self.say(chat, error.in_words(words).message());
        Ok(())
    }
}

/// Whether the same may succeed later, without anybody's doing.
fn is_for_later(error: &Error) -> bool {
    error.code() == Code::ServerError
}

/// The file of a message: its id, name and type. Of a picture, which comes in several sizes, the
/// largest.
fn file_of(message: &Value) -> Option<(&str, String, Option<String>)> {
    let picture = message["photo"].as_array().and_then(|sizes| sizes.last());
    if let Some(id) = picture.and_then(|size| size["file_id"].as_str()) {
        return Some((id, "picture.jpg".to_owned(), Some("image/jpeg".to_owned())));
    }
    let file = ["document", "audio", "video"].map(|kind| &message[kind]);
    let file = file.into_iter().find(|file| file.is_object())?;
    let name = file["file_name"].as_str().unwrap_or("file").to_owned();
    let media_type = file["mime_type"].as_str().map(str::to_owned);
    Some((file["file_id"].as_str()?, name, media_type))
}

/// The words of a stranger, in the language that Telegram names.
fn strange_words(message: &Value) -> Words {
    Words::of(
        message["from"]["language_code"]
            .as_str()
            .unwrap_or_default(),
    )
}

/// Whether others wrote what a message says.
fn is_forwarded(message: &Value) -> bool {
    let marks = ["forward_origin", "forward_date", "via_bot"];
    marks.iter().any(|mark| !message[*mark].is_null())
}
