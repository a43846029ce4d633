//! `hearth webhook test`: one message's way through an account, step by step.
//!
//! The message goes the way that the other system's would, over the account's
//! path. What becomes of it is read from the database, as `hearth deliveries`
//! does.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::account::{find, server_address};
use super::{advice, sample};
use crate::cli::arguments::Arguments;
use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::data_directory::DataDirectory;
use crate::cli::running_server::RunningServer;
use crate::cli::{config, http};
use ::config::{Config, WebhookAccount};
use base::clock::Clock;
use base::ids::TurnId;
use store::{Delivery, DeliveryState, Store, Turn, TurnState};

/// How long the reply is waited for, in seconds.
const WAIT: u64 = 60;
/// How long the server may take to accept the message.
const ACCEPT: Duration = Duration::from_secs(10);
/// How often the database is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Most of a body that is posted, in bytes.
const BODY_BYTES: u64 = 1 << 20;
/// The newest deliveries, among which the message's own is looked for.
const NEWEST: usize = 200;
/// Characters of the reply that are shown.
const SHOWN: usize = 200;

/// `hearth webhook test NAME`
pub fn run(arguments: &Arguments, context: &mut Context) -> Outcome {
    let name = arguments.required(0);
    let wait = arguments.number("wait", 1..=3600)?.unwrap_or(WAIT);
    let directory = DataDirectory::of(arguments, context)?;
    let settings = config::load(&directory)?;
    let config = settings.current();
    let account = find(&config, name)?;
    if !account.enabled {
        return Err(Failure::failed(format!(
            "the account {name:?} takes no messages: its \"enabled\" is false"
        )));
    }
    let body = body(arguments, account, context)?;
    let Some(server) = RunningServer::find(&directory) else {
        return Err(Failure::failed(format!(
            "no server runs on {}: start it with `hearth serve`",
            directory.path().display()
        )));
    };
    let Some(address) = server_address(&server, &config, name) else {
        return Err(Failure::failed(format!(
            "the running server (process {}) does not say where it listens; start it again",
            server.process()
        )));
    };
    let store = directory.open_store(&Clock::system())?;
    let mut trial = Trial {
        account,
        server: &server,
        config: &config,
        store: &store,
        context,
        deadline: Instant::now() + Duration::from_secs(wait),
    };
    let url = format!("{}://{address}{}", server.scheme(), account.incoming_path);
    let outcome = trial.post(&url, &body).and_then(|turn| trial.follow(turn));
    store.close();
    outcome
}

/// What is posted: a file, standard input, or a message of our own.
fn body(
    arguments: &Arguments,
    account: &WebhookAccount,
    context: &mut Context,
) -> Result<String, Failure> {
    let text = arguments.text("message")?;
    let Some(file) = arguments.text("body")? else {
        let own = "This is a test of the webhook. Answer with one short sentence.";
        return Ok(sample::body(account, text.unwrap_or(own)).to_string());
    };
    arguments.exclude("message", "body")?;
    let read = |reader: &mut dyn Read| {
        let mut body = String::new();
        reader
            .take(BODY_BYTES)
            .read_to_string(&mut body)
            .map(|_| body)
    };
    let read = match file {
        "-" => read(&mut context.input),
        path => fs::File::open(path).and_then(|mut file| read(&mut file)),
    };
    read.map_err(|error| Failure::failed(format!("{file} cannot be read: {error}")))
}

struct Trial<'a, 'c> {
    account: &'a WebhookAccount,
    server: &'a RunningServer,
    config: &'a Config,
    store: &'a Store,
    context: &'a mut Context<'c>,
    deadline: Instant,
}

impl Trial<'_, '_> {
    /// Posts the message; returns its turn.
    fn post(&mut self, url: &str, body: &str) -> Result<TurnId, Failure> {
        let began = Instant::now();
        let mut request = http::agent(self.server.trust(), ACCEPT)
            .post(url)
            .config()
            .proxy(None)
            .build()
            .header("Content-Type", "application/json");
        if let Some(secret) = &self.account.secret {
            request = request.header("X-Service-Secret", secret.expose());
        }
        let answered = request.send(body).and_then(|answer| {
            let status = answer.status().as_u16();
            Ok((status, http::text(answer)?))
        });
        let (status, text) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                let what = format!("POST {url}: {error}");
                return Err(self.failed(&what, "Does the server listen there? Its log says more."));
            }
        };
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match answer["data"]["turn_id"].as_str().map(str::parse) {
            Some(Ok(turn)) if status == 202 => {
                let took = began.elapsed().as_millis();
                self.passed(&format!("POST {url}: accepted in {took} ms as {turn}"))?;
                Ok(turn)
            }
            _ => {
                let said = answer["error"].as_str().unwrap_or("no reason given");
                let what = format!("POST {url}: status {status}: {said}");
                Err(self.failed(&what, advice::on_refusal(status, self.account)))
            }
        }
    }

    /// Follows a turn to its callback's first attempt.
    fn follow(&mut self, id: TurnId) -> Outcome {
        let began = Instant::now();
        let settled = self.until(|trial| trial.step_of_turn(id))?;
        let Some(turn) = settled.filter(|turn| turn.state.is_final()) else {
            return Err(self.unfinished(id)?);
        };
        let took = began.elapsed().as_secs_f64();
        match (&turn.error, turn.reply_id) {
            (None, Some(reply)) => {
                let reply = self.store.message(reply)?.content;
                let line = reply.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown: String = line.chars().take(SHOWN).collect();
                self.passed(&format!("the assistant answered in {took:.1} s: {shown}"))?;
            }
            (Some(error), _) => {
                let what = format!("the turn failed after {took:.1} s: {error}");
                self.context.output.write_all(
                    format!("  FAIL  {what}\n        The callback tells the caller so.\n")
                        .as_bytes(),
                )?;
            }
            (None, None) => self.passed("somebody cancelled the turn")?,
        }
        let delivery = self.until(|trial| {
            let newest = trial.store.deliveries(None, NEWEST)?;
            Ok(newest
                .into_iter()
                .find(|delivery| delivery.turn_id == id)
                .filter(|delivery| delivery.attempts > 0 || delivery.state == DeliveryState::Held))
        })?;
        match delivery {
            Some(delivery) => self.report(&delivery, turn.error.is_some()),
            None => Err(self.failed(
                "the callback was not attempted yet",
                "`hearth deliveries list` shows what became of it; a longer --wait may help.",
            )),
        }
    }

    /// The turn once it is over, or waits for somebody.
    fn step_of_turn(&mut self, id: TurnId) -> Result<Option<Turn>, Failure> {
        let turn = self.store.turn(id)?;
        let is_settled = turn.state.is_final() || turn.state == TurnState::WaitingApproval;
        Ok(is_settled.then_some(turn))
    }

    /// Says why a turn is not over.
    fn unfinished(&mut self, id: TurnId) -> Result<Failure, Failure> {
        let turn = self.store.turn(id)?;
        if turn.state == TurnState::WaitingApproval {
            let waiting = self.store.approvals_of(id)?;
            let asked: Vec<&str> = waiting.iter().map(|one| one.reason.as_str()).collect();
            let what = format!("the turn waits for your permission: {}", asked.join("; "));
            return Ok(self.failed(
                &what,
                "Decide in `hearth chat`, or set permission_mode or tools of the account so that \
                 nothing is asked.",
            ));
        }
        let what = format!("the turn is still {}", turn.state.as_str());
        Ok(self.failed(
            &what,
            "The model takes long, or others wait before it; a longer --wait may help.",
        ))
    }

    fn report(&mut self, delivery: &Delivery, turn_failed: bool) -> Outcome {
        let id = delivery.id;
        match (delivery.state, &delivery.last_error) {
            (DeliveryState::Delivered, _) => {
                self.passed(&format!("the receiver took the callback (webhook-id {id})"))?;
                match turn_failed {
                    true => Err(Failure::Reported),
                    false => Ok(()),
                }
            }
            (DeliveryState::Held, _) => Err(self.failed(
                &format!("the callback {id} waits behind an earlier one of its conversation"),
                "`hearth deliveries list` shows which fails, and why.",
            )),
            (state, error) => {
                let error = error.as_deref().unwrap_or("no reason is known");
                let seconds = self.config.limits.callback_seconds;
                let what = format!("the callback {id}: {error}");
                let advice = advice::on_callback(error, self.account, seconds);
                let next = match state {
                    DeliveryState::Dead => {
                        format!("It is given up; `hearth deliveries retry {id}` sends it again.")
                    }
                    _ => format!("It is tried again at {}.", delivery.next_at),
                };
                Err(self.failed(&what, &format!("{advice}\n        {next}")))
            }
        }
    }

    /// Looks again and again until there is something, or the time is over.
    fn until<T>(
        &mut self,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        loop {
            if let Some(found) = look(self)? {
                return Ok(Some(found));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(LOOK.min(left));
        }
    }

    fn passed(&mut self, what: &str) -> Outcome {
        writeln!(self.context.output, "  ok    {what}")?;
        Ok(self.context.output.flush()?)
    }

    /// Tells what failed and what to do, and ends the command with code 1.
    fn failed(&mut self, what: &str, advice: &str) -> Failure {
        match writeln!(self.context.output, "  FAIL  {what}\n        {advice}") {
            Ok(()) => Failure::Reported,
            Err(error) => error.into(),
        }
    }
}
