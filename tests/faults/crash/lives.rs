//! The lives of a running server: each goes on from what was acknowledged,
//! whatever happened to the server in between.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::{Posted, Poster, check_integrity, count, look_into, within};
use super::attachments::Attachments;
use super::household::{ASIDE, ASIDE_REPLY, Household, REPLY, Template};
use super::lines::Lines;
use super::settings::Settings;
use support::MAX_WAIT;
use support::program::Program;

/// One life in a data directory of its own.
pub trait Life {
    fn folder(&self) -> PathBuf;
    /// Opens the connections to a server that was just started.
    fn connect(&mut self, address: SocketAddr) -> Result<(), String>;
    /// Does the next thing; `Ok` once all is done, else what is missing.
    fn advance(&mut self) -> Result<(), String>;
    /// The server was killed, and another one runs.
    fn restarted(&mut self);
    /// Everything that was acknowledged is there, once.
    fn check(&mut self);
    /// Whether its turn ended in an error, of which the caller was told.
    fn has_failed(&self) -> bool {
        false
    }
}

pub type Begin = fn(&Template) -> Box<dyn Life>;

pub const LIVES: [(&str, Begin); 5] = [
    ("webhook", |template| Box::new(Webhook::begin(template))),
    ("chat", |template| Box::new(Chat::begin(template))),
    ("attachments", |template| {
        Box::new(Attachments::begin(template))
    }),
    ("schedule", |template| Box::new(Scheduled::begin(template))),
    ("settings", |template| Box::new(Settings::begin(template))),
];

/// The webhook's turn, cut off while its second tool ran: the start goes on from
/// there.
pub fn interrupted(template: &Template) -> Box<dyn Life> {
    let mut life = Webhook::begin(template);
    life.household.stick(true);
    let program = Program::serve(&life.folder());
    life.connect(program.address).unwrap();
    within(MAX_WAIT, "the first tool has run", || {
        let _ = life.advance();
        life.household.has_rung().then_some(())
    });
    program.kill();
    life.household.stick(false);
    life.restarted();
    Box::new(life)
}

/// POST, 202, two tools, reply, a callback that is refused and comes again.
struct Webhook {
    household: Household,
    poster: Option<Poster>,
    /// The turn of the 202, and whether this server has confirmed it.
    accepted: Option<String>,
    is_confirmed: bool,
}

impl Webhook {
    fn begin(template: &Template) -> Webhook {
        Webhook {
            household: Household::new(template, json!({}), true),
            poster: None,
            accepted: None,
            is_confirmed: false,
        }
    }

    /// Posts until it is accepted, always with the same key.
    fn post(&mut self) -> Result<(), String> {
        let body = json!({ "message": "Ring and switch.", "conversation_id": "c" });
        let poster = self.poster.as_ref().expect("it is connected");
        match poster.post(&[("idempotency-key", "once")], &body) {
            Posted::Answered(202, answer) => {
                let turn = answer["data"]["turn_id"].as_str().unwrap().to_owned();
                if let Some(earlier) = &self.accepted {
                    assert_eq!(*earlier, turn, "the same key is another turn");
                }
                self.accepted = Some(turn);
                self.is_confirmed = true;
                Ok(())
            }
            Posted::Answered(status, answer) => {
                assert!(status >= 500 || status == 429, "{status}: {answer}");
                check_refusal(&answer);
                Err(format!("{status}: {answer}"))
            }
            Posted::Unknown => Err("no answer to the POST".to_owned()),
        }
    }
}

impl Life for Webhook {
    fn folder(&self) -> PathBuf {
        self.household.path()
    }

    fn has_failed(&self) -> bool {
        self.household.has_failed()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        let poster = Poster::new(address);
        // The connection is kept, and with it its thread.
        poster.warm_up()?;
        self.poster = Some(poster);
        Ok(())
    }

    fn advance(&mut self) -> Result<(), String> {
        if !self.is_confirmed {
            self.post()?;
        }
        if self.household.receiver.callbacks().is_empty() {
            return Err("no callback came".to_owned());
        }
        self.household.is_delivered()
    }

    fn restarted(&mut self) {
        self.is_confirmed = false;
        self.household.relent();
    }

    fn check(&mut self) {
        self.household.check_one_turn(self.accepted.as_deref());
        self.household.check_callbacks();
        self.household.check_effects();
    }
}

/// A chat whose tools wait for the owner, and another message in its conversation,
/// which is answered meanwhile.
struct Chat {
    household: Household,
    tokens: [String; 2],
    address: Option<SocketAddr>,
    user: Option<Lines>,
    admin: Option<Lines>,
    first: Exchange,
    /// It is sent when the first one waits, and answered before that is allowed.
    aside: Exchange,
    conversation: Option<Value>,
    /// Approvals that were acknowledged.
    approved: Vec<Value>,
}

/// A message that is sent, always with the same key, until it is answered.
struct Exchange {
    message: &'static str,
    /// The number of the request that waits for its response.
    asked: Option<i64>,
    response: Option<Value>,
    is_confirmed: bool,
}

impl Exchange {
    fn of(message: &'static str) -> Exchange {
        Exchange {
            message,
            asked: None,
            response: None,
            is_confirmed: false,
        }
    }

    fn ask(&mut self, user: &mut Lines, conversation: Option<&Value>) -> Result<(), String> {
        if self.asked.is_some() || self.is_confirmed {
            return Ok(());
        }
        let mut request = json!({
            "type": "chat", "message": self.message, "idempotency_key": self.message,
        });
        if let Some(conversation) = conversation {
            request["conversation_id"] = conversation.clone();
        }
        self.asked = Some(user.send(request)?);
        Ok(())
    }

    fn look_for_response(&mut self, user: &mut Lines, household: &Household) -> Result<(), String> {
        let Some(asked) = self.asked else {
            return Ok(());
        };
        let Some(response) = user.response(asked)? else {
            return Err(format!("no response to {:?}", self.message));
        };
        self.asked = None;
        if response["status"] != "ok" {
            check_refusal(&response);
            self.is_confirmed = household.has_failed();
            return Err(response.to_string());
        }
        let mut data = response["data"].clone();
        data.as_object_mut().unwrap().remove("id");
        if let Some(earlier) = &self.response {
            assert_eq!(*earlier, data, "the same key has another answer");
        }
        self.response = Some(data);
        self.is_confirmed = true;
        Ok(())
    }
}

impl Chat {
    fn begin(template: &Template) -> Chat {
        let more = json!({ "permission_mode": "ask" });
        Chat {
            household: Household::new(template, more, false),
            tokens: [template.tokens.user.clone(), template.tokens.admin.clone()],
            address: None,
            user: None,
            admin: None,
            first: Exchange::of("Ring and switch."),
            aside: Exchange::of(ASIDE),
            conversation: None,
            approved: Vec::new(),
        }
    }

    fn talk(&mut self) -> Result<(), String> {
        let user = self.user.as_mut().expect("it is connected");
        let admin = self.admin.as_mut().expect("it is connected");
        self.first.ask(user, None)?;
        let list = admin.ask(json!({ "type": "list_approvals" }))?;
        let waiting = list["approvals"].as_array().unwrap();
        if let Some(approval) = waiting.first() {
            self.conversation = Some(approval["conversation_id"].clone());
        }
        if self.conversation.is_some() {
            self.aside.ask(user, self.conversation.as_ref())?;
            self.aside.look_for_response(user, &self.household)?;
            for approval in waiting {
                let id = &approval["approval_id"];
                assert!(!self.approved.contains(id), "{id} is open again: {list}");
                admin.ask(json!({ "type": "approve", "approval_id": id, "remember": "once" }))?;
                self.approved.push(id.clone());
            }
        }
        self.first.look_for_response(user, &self.household)
    }
}

impl Life for Chat {
    fn folder(&self) -> PathBuf {
        self.household.path()
    }

    fn has_failed(&self) -> bool {
        self.household.has_failed()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        self.address = Some(address);
        self.user = Some(Lines::open(address, &self.tokens[0])?);
        self.admin = Some(Lines::open(address, &self.tokens[1])?);
        self.first.asked = None;
        self.aside.asked = None;
        Ok(())
    }

    fn advance(&mut self) -> Result<(), String> {
        if self.first.is_confirmed {
            return Ok(());
        }
        let done = self.talk();
        if done.is_err() && self.user.as_ref().is_some_and(|user| user.is_over) {
            self.connect(self.address.expect("it was connected"))?;
        }
        done
    }

    fn restarted(&mut self) {
        self.first.is_confirmed = false;
        self.aside.is_confirmed = false;
    }

    fn check(&mut self) {
        self.household.check_effects();
        let database = look_into(self.household.folder.path());
        check_integrity(&database);
        if self.has_failed() {
            return;
        }
        let approved = "SELECT count(*) FROM approvals WHERE verdict LIKE 'approved%'";
        assert_eq!(count(&database, approved), 2, "approvals");
        assert_eq!(count(&database, "SELECT count(*) FROM turns"), 2, "turns");
        // Every message, and how far before a reply the question is that it names.
        let messages = "SELECT group_concat(content || '/' || ifnull(before, ''), ' ') FROM (
                SELECT content, (SELECT count(*) FROM messages AS other
                    WHERE other.id >= m.in_reply_to AND other.id < m.id
                    AND m.in_reply_to IS NOT NULL) AS before
                FROM messages AS m ORDER BY id)";
        let found: String = database.query_row(messages, [], |row| row.get(0)).unwrap();
        assert_eq!(
            found,
            format!("Ring and switch./0 {ASIDE}/0 {ASIDE_REPLY}/0 {REPLY}/3")
        );
        let first = self.first.response.as_ref().expect("it is answered");
        let turn: base::ids::TurnId = first["turn_id"].as_str().unwrap().parse().unwrap();
        let oldest = count(&database, "SELECT min(id) FROM turns");
        assert_eq!(oldest, turn.as_i64(), "the acknowledged turn");
        assert!(first["in_reply_to"].is_string(), "{first}");
    }
}

/// A reminder that is set, falls due, runs and is called back.
struct Scheduled {
    household: Household,
    token: String,
    client: Option<Lines>,
    address: Option<SocketAddr>,
    is_set: bool,
}

impl Scheduled {
    fn begin(template: &Template) -> Scheduled {
        Scheduled {
            household: Household::new(template, json!({}), false),
            token: template.tokens.user.clone(),
            client: None,
            address: None,
            is_set: false,
        }
    }

    fn set(&mut self) -> Result<(), String> {
        let client = self.client.as_mut().expect("it is connected");
        // What got no answer may have been stored, and even have run.
        let listed = client.ask(json!({ "type": "list_schedules" }))?;
        let database = look_into(self.household.folder.path());
        let is_there = !listed["schedules"].as_array().unwrap().is_empty()
            || count(&database, "SELECT count(*) FROM turns") > 0;
        if !is_there {
            client.ask(json!({
                "type": "create_schedule", "prompt": "Ring and switch.", "at": "+1s",
                "webhook": "ci",
            }))?;
        }
        self.is_set = true;
        Ok(())
    }
}

impl Life for Scheduled {
    fn folder(&self) -> PathBuf {
        self.household.path()
    }

    fn has_failed(&self) -> bool {
        self.household.has_failed()
    }

    fn connect(&mut self, address: SocketAddr) -> Result<(), String> {
        self.address = Some(address);
        self.client = Some(Lines::open(address, &self.token)?);
        Ok(())
    }

    fn advance(&mut self) -> Result<(), String> {
        if !self.is_set
            && let Err(why) = self.set()
        {
            if self.client.as_ref().is_some_and(|client| client.is_over) {
                self.connect(self.address.expect("it was connected"))?;
            }
            return Err(why);
        }
        if self.household.receiver.callbacks().is_empty() {
            return Err("no callback came".to_owned());
        }
        self.household.is_delivered()
    }

    fn restarted(&mut self) {}

    fn check(&mut self) {
        self.household.check_one_turn(None);
        self.household.check_callbacks();
        self.household.check_effects();
        let database = look_into(self.household.folder.path());
        let left = count(
            &database,
            "SELECT count(*) FROM schedules WHERE next_at IS NOT NULL",
        );
        assert_eq!(left, 0, "schedules");
    }
}

/// A refusal has a code and says something to a person.
pub fn check_refusal(answer: &Value) {
    assert!(answer["code"].is_string(), "{answer}");
    assert!(
        answer["error"].as_str().is_some_and(|text| text.len() > 10),
        "{answer}"
    );
}

/// Advances a life until it is complete or `goes_on` says no.
pub fn live(life: &mut dyn Life, limit: Duration, mut goes_on: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let missing = match life.advance() {
            Ok(()) => return true,
            Err(missing) => missing,
        };
        if !goes_on() {
            return false;
        }
        assert!(Instant::now() < deadline, "{missing}: not within {limit:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
