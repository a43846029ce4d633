//! The bot of Telegram (<https://core.telegram.org/bots/api>): a thread asks for its updates by
//! long poll, so that no port is open for it. What is sent goes through
//! [`outgoing`](crate::outgoing).
//!
//! An update is acknowledged by the next request, which names the one after it. Until then it is
//! on disk: its turn, under a key that makes a repeat harmless, and that it was handled.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::outgoing::post::reason;
use crate::outgoing::schedule::seconds_to_wait;
use crate::outgoing::telegram::{BUTTONS, method_url};
use crate::service::{Said, Service};
use agent::model::voice::Patience;
use base::error::{Code, Error};
use base::ids::TurnId;
use base::secret::sha256;
use base::sync::lock;
use base::visible::one_line;
use config::{Config, TelegramChannel};
use net::cancel::Cancel;
use net::http_client::{BODY_LIMIT, ClientError, ClientRequest, HttpClient};
use net::task::Task;
use net::tls::Trust;
use store::{IdempotencyKey, IncludedFile, TELEGRAM, User, Viewer};

/// How long Telegram keeps a request open while there is nothing.
const POLL: Duration = Duration::from_secs(25);
/// The same while turns run: a chat shows for five seconds that somebody writes.
const POLL_WHILE_WRITING: Duration = Duration::from_secs(4);
/// How much longer a request may take.
const GRACE: Duration = Duration::from_secs(10);
/// For other requests, and for a file.
const CALL: Duration = Duration::from_secs(10);
const FILE: Duration = Duration::from_secs(30);
/// For the server of speech.
const SPEECH: Duration = Duration::from_secs(30);
/// Most updates of one answer.
const UPDATES: usize = 50;
/// Most bytes of a file that bots can get.
const FILE_BYTES: usize = 20 * 1024 * 1024;
/// Chats that are shown that somebody writes.
const WRITING: usize = 32;
/// Strangers who are told how to link; any more get no answer.
const STRANGERS: usize = 1_000;
/// The pauses after failures: the first, doubled up to the longest; with a second poller; and
/// with a token that is refused, until the settings change.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const SECOND_POLLER_PAUSE: Duration = Duration::from_secs(30);
const REFUSED_PAUSE: Duration = Duration::from_secs(300);

/// What people read in a chat.
mod words {
    pub const HOW_TO_LINK: &str = "I do not know you yet. If you belong to the household: sign in \
        to Hearth, get a code with `hearth account link telegram`, and send /link CODE here.";
    pub const PRIVATE_ONLY: &str = "I answer in private chats only.";
    pub const EDITED: &str = "I do not read changes of a message: send it anew.";
    pub const NO_VOICE: &str = "Voice messages are not understood here: an admin has to set \
        voice.transcription.";
    pub const NO_FILE: &str = "I could not get that file: send it again, at most 20 MB.";
    pub const NEW: &str = "What you write from now on is a new conversation.";
    pub const ALLOWED: &str = "Allowed";
    pub const DENIED: &str = "Denied";
}

/// Why nothing came of a request.
#[derive(Debug)]
enum Problem {
    /// Telegram said so.
    Refused {
        status: u64,
        says: String,
        wait: Option<u64>,
    },
    /// It did not answer.
    Unanswered(String),
    /// The server could not take the update now: it is asked for again.
    Later(Error),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Refused {
                status: 401 | 404, ..
            } => f.write_str(
                "Telegram refuses the bot's token: make a new one with @BotFather, and set it as \
                 bot_token of the telegram channel",
            ),
            Problem::Refused {
                status: 409, says, ..
            } => write!(
                f,
                "something else gets the bot's messages, another server or a webhook: end it, or \
                 make a bot of its own ({says})"
            ),
            Problem::Refused { status, says, .. } => {
                write!(f, "Telegram answered {status}: {says}")
            }
            Problem::Unanswered(reason) => write!(f, "Telegram cannot be reached: {reason}"),
            Problem::Later(error) => write!(f, "a message has to wait: {error}"),
        }
    }
}

impl Problem {
    /// How long to wait after so many of them in a row.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = FIRST_PAUSE * (1 << failures.min(6));
        match self {
            Problem::Refused {
                wait: Some(wait), ..
            } => Duration::from_secs(*wait),
            Problem::Refused {
                status: 401 | 404, ..
            } => REFUSED_PAUSE,
            Problem::Refused { status: 409, .. } => SECOND_POLLER_PAUSE,
            _ => doubled.min(LONGEST_PAUSE),
        }
    }
}

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
            Bot::new(&service, &own, &client, cancel).run();
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

struct Bot<'a> {
    service: &'a Service,
    channel: &'a TelegramChannel,
    client: &'a HttpClient,
    cancel: &'a Cancel,
    /// The bot's number, the part of its token that is no secret.
    number: String,
    /// Turns that run, and their chats.
    writing: Vec<(TurnId, String)>,
}

impl<'a> Bot<'a> {
    fn new(
        service: &'a Service,
        channel: &'a TelegramChannel,
        client: &'a HttpClient,
        cancel: &'a Cancel,
    ) -> Bot<'a> {
        let number = channel.bot_token.expose().split(':').next();
        let digits = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit());
        Bot {
            service,
            channel,
            client,
            cancel,
            number: number.filter(digits).unwrap_or_default().to_owned(),
            writing: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut failures = 0;
        while !self.cancel.is_cancelled() {
            let Err(problem) = self.round() else {
                if failures > 0 {
                    log::info!("Telegram answers again");
                }
                failures = 0;
                continue;
            };
            if self.cancel.is_cancelled() {
                return;
            }
            match failures {
                0 => log::error!("{problem}"),
                _ => log::debug!("{problem}"),
            }
            self.cancel.wait(problem.pause(failures));
            failures += 1;
        }
    }

    /// Gets what is new, and handles it.
    fn round(&mut self) -> Result<(), Problem> {
        self.show_writing();
        let poll = match self.writing.is_empty() {
            true => POLL,
            false => POLL_WHILE_WRITING,
        };
        let key = format!("telegram {}", self.number);
        let stored = self.service.store().meta(&key).map_err(Problem::Later)?;
        let before: i64 = stored
            .uncommitted()
            .and_then(|next| next.parse().ok())
            .unwrap_or(0);
        let asked = json!({
            "offset": before,
            "limit": UPDATES,
            "timeout": poll.as_secs(),
            "allowed_updates": ["message", "edited_message", "callback_query"],
        });
        let updates = self.call("getUpdates", &asked, poll + GRACE)?;
        let mut next = before;
        let mut handled = Ok(());
        for update in updates.as_array().into_iter().flatten() {
            let Some(id) = update["update_id"].as_i64() else {
                continue;
            };
            handled = self.handle(id, update);
            if handled.is_err() {
                break;
            }
            next = next.max(id + 1);
        }
        if next != before {
            (self.service.store().set_meta(&key, &next.to_string())).map_err(Problem::Later)?;
        }
        handled
    }

    fn handle(&mut self, id: i64, update: &Value) -> Result<(), Problem> {
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
        if message["chat"]["type"] != "private" {
            self.say_once(&chat, words::PRIVATE_ONLY)?;
            let leave = json!({ "chat_id": chat });
            // It may have been thrown out already.
            let _ = self.call("leaveChat", &leave, CALL);
            return Ok(());
        }
        let text = message["text"].as_str().or(message["caption"].as_str());
        let text = text.unwrap_or_default().trim();
        let given = text.replacen("/start ", "/link ", 1);
        let service = self.service;
        let answer = match is_edited {
            true => None,
            false => (service.try_code(TELEGRAM, &chat, &given)).map_err(Problem::Later)?,
        };
        let person = match service.person_behind(TELEGRAM, &chat) {
            Ok(Some(person)) => person,
            Ok(None) => {
                return match answer {
                    Some(answer) => self.say(&chat, &answer),
                    None => self.say_once(&chat, words::HOW_TO_LINK),
                };
            }
            Err(error) => return self.say_or_wait(&chat, error),
        };
        if is_edited {
            return self.say(&chat, words::EDITED);
        }
        self.take(id, &chat, &person, message, text, answer)
    }

    /// A message of a linked person.
    fn take(
        &mut self,
        id: i64,
        chat: &str,
        person: &User,
        message: &Value,
        text: &str,
        answer: Option<String>,
    ) -> Result<(), Problem> {
        let topic = format!("telegram {} {chat}", self.number);
        if text == "/new" {
            let number = message["message_id"].as_i64().unwrap_or(id);
            let name = format!("{chat}.{number}");
            (self.service.store().set_meta(&topic, &name)).map_err(Problem::Later)?;
            return self.say(chat, words::NEW);
        }
        let name = self.service.store().meta(&topic).map_err(Problem::Later)?;
        let name = name.uncommitted().unwrap_or_else(|| chat.to_owned());
        let mut text = match answer {
            // The code is of no use to anybody.
            Some(_) => "/link".to_owned(),
            None => text.to_owned(),
        };
        let mut files = Vec::new();
        if let Some(voice) = message["voice"]["file_id"].as_str() {
            let recording = self.file(voice)?;
            let media_type = message["voice"]["mime_type"]
                .as_str()
                .unwrap_or("audio/ogg");
            let patience = Patience {
                deadline: Instant::now() + SPEECH,
                cancel: self.cancel,
            };
            let said = match recording {
                None => return self.say(chat, words::NO_FILE),
                Some(recording) => self.service.understand(&recording, media_type, &patience),
            };
            match said {
                Ok(Some(said)) if !said.trim().is_empty() => text = said,
                Ok(Some(_)) => return self.say(chat, "…?"),
                Ok(None) => return self.say(chat, words::NO_VOICE),
                Err(error) => return self.say(chat, error.message()),
            }
        } else if let Some((file, name, media_type)) = file_of(message) {
            let Some(data) = self.file(file)? else {
                return self.say(chat, words::NO_FILE);
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
            is_own: self.channel.trusted && !is_forwarded(message),
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
                if self.writing.len() < WRITING {
                    self.writing.push((turn, chat.to_owned()));
                }
                Ok(())
            }
            Err(error) => self.say_or_wait(chat, error),
        }
    }

    /// A button under a question: it counts only from the person who was asked.
    fn press(&self, press: &Value) -> Result<(), Problem> {
        let chat = press["from"]["id"].as_i64().unwrap_or_default().to_string();
        let data = press["data"].as_str().unwrap_or_default();
        let [allow, deny] = BUTTONS.map(|(_, word)| data.strip_prefix(word));
        let id = allow.or(deny).and_then(|id| id.parse().ok());
        let person = self.service.person_behind(TELEGRAM, &chat);
        let says = match (person, id) {
            (Ok(Some(person)), Some(id)) => {
                match self.service.answer_in_chat(&person, id, allow.is_some()) {
                    Ok(()) if allow.is_some() => words::ALLOWED.to_owned(),
                    Ok(()) => words::DENIED.to_owned(),
                    Err(error) if is_for_later(&error) => return Err(Problem::Later(error)),
                    Err(error) => error.message().to_owned(),
                }
            }
            (Err(error), _) if is_for_later(&error) => return Err(Problem::Later(error)),
            _ => words::HOW_TO_LINK.to_owned(),
        };
        let shown: String = says.chars().take(200).collect();
        let answer = json!({ "callback_query_id": press["id"], "text": shown });
        // What was decided is on disk: the rest only shows it.
        let _ = self.call("answerCallbackQuery", &answer, CALL);
        let question = &press["message"];
        let asked = question["text"].as_str().unwrap_or_default();
        let edit = json!({
            "chat_id": question["chat"]["id"],
            "message_id": question["message_id"],
            "text": format!("{asked}\n\n{shown}").chars().take(4_000).collect::<String>(),
        });
        let _ = self.call("editMessageText", &edit, CALL);
        Ok(())
    }

    /// The bytes of a file; none where it cannot be had.
    fn file(&self, id: &str) -> Result<Option<Vec<u8>>, Problem> {
        let found = match self.call("getFile", &json!({ "file_id": id }), CALL) {
            Ok(found) => found,
            Err(Problem::Refused { wait: None, .. }) => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let Some(path) = found["file_path"]
            .as_str()
            .filter(|path| !path.contains(".."))
        else {
            return Ok(None);
        };
        let base = self.channel.base_url.trim_end_matches('/');
        let url = format!("{base}/file/bot{}/{path}", self.channel.bot_token.expose());
        let request = ClientRequest {
            method: "GET",
            url: &url,
            headers: &[],
            body: None,
            deadline: Instant::now() + FILE,
            cancel: self.cancel,
        };
        let got = self.client.exchange(&request, |response| {
            let data = response.read_all(FILE_BYTES)?;
            Ok::<_, ClientError>((response.status() == 200).then_some(data))
        });
        Ok(got.unwrap_or_else(|error| {
            log::info!(
                "a file of Telegram: {}",
                reason(&error, "its address", FILE)
            );
            None
        }))
    }

    /// Shows in the chats of turns that run that somebody writes.
    fn show_writing(&mut self) {
        let store = self.service.store();
        self.writing.retain(|(turn, _)| {
            let seen = store.snapshot(&Viewer::server());
            seen.and_then(|seen| seen.turn(*turn))
                .is_ok_and(|turn| !turn.state.is_final())
        });
        for (_, chat) in &self.writing {
            let action = json!({ "chat_id": chat, "action": "typing" });
            if self.call("sendChatAction", &action, CALL).is_err() {
                return;
            }
        }
    }

    /// Tells a chat something, if it can be told now.
    fn say(&self, chat: &str, text: &str) -> Result<(), Problem> {
        let message = json!({ "chat_id": chat, "text": text });
        match self.call("sendMessage", &message, CALL) {
            Err(problem @ Problem::Refused { wait: Some(_), .. }) => Err(problem),
            Err(problem @ Problem::Unanswered(_)) => {
                log::info!("{problem}");
                Ok(())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// The same to a stranger, or a group, once for all.
    fn say_once(&self, chat: &str, text: &str) -> Result<(), Problem> {
        let store = self.service.store();
        match store.refuse_chat(chat, STRANGERS).map_err(Problem::Later)? {
            true => self.say(chat, text),
            false => Ok(()),
        }
    }

    /// What a person is told of an error; what the server has to recover from waits.
    fn say_or_wait(&self, chat: &str, error: Error) -> Result<(), Problem> {
        match is_for_later(&error) {
            true => Err(Problem::Later(error)),
            false => self.say(chat, error.message()),
        }
    }

    /// Calls a method of the Bot API.
    fn call(&self, method: &str, body: &Value, limit: Duration) -> Result<Value, Problem> {
        let (url, body) = (method_url(self.channel, method), body.to_string());
        let request = ClientRequest {
            method: "POST",
            url: &url,
            headers: &[("content-type", "application/json")],
            body: Some(body.as_bytes()),
            deadline: Instant::now() + limit,
            cancel: self.cancel,
        };
        let got = self.client.exchange(&request, |response| {
            let body = response.read_all(BODY_LIMIT)?;
            Ok::<_, ClientError>((response.status(), body))
        });
        let unanswered = |error: ClientError| {
            Problem::Unanswered(reason(
                &error,
                "the base_url of the telegram channel",
                limit,
            ))
        };
        let (status, body) = got.map_err(unanswered)?;
        let mut answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if answer["ok"] == true {
            return Ok(answer["result"].take());
        }
        let says = one_line(answer["description"].as_str().unwrap_or("no reason given"));
        Err(Problem::Refused {
            status: answer["error_code"].as_u64().unwrap_or(status.into()),
            says: says.chars().take(200).collect(),
            wait: seconds_to_wait(&answer),
        })
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

/// Whether others wrote what a message says.
fn is_forwarded(message: &Value) -> bool {
    let marks = ["forward_origin", "forward_date", "via_bot"];
    marks.iter().any(|mark| !message[*mark].is_null())
}
