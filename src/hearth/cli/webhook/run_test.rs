//! `hearth webhook test`: follows one message through an account, step by step.
//!
//! The message is posted to the account's path, as the other system would. Its
//! progress is read from the database, as by `hearth deliveries`.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::account::{find, server_address};
use super::{advice, sample};
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::data_directory::DataDirectory;
use crate::cli::http;
use crate::cli::running_server::RunningServer;
use crate::cli::table;
use crate::cli::terminal::visible;
use ::config::{Config, WebhookAccount};
use agent::tool::output::shorten;
use base::ids::TurnId;
use store::{Delivery, DeliveryState, Store, Turn, TurnState, Viewer};

/// Default of `--wait`, in seconds.
const WAIT: u64 = 60;
/// Time limit for the server to accept the message.
const ACCEPT: Duration = Duration::from_secs(10);
/// How often the database is read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Largest body, in bytes.
const BODY_BYTES: u64 = 1 << 20;
/// How many of the newest deliveries are searched.
const NEWEST: usize = 200;
/// Maximum characters of the reply to show.
const SHOWN: usize = 200;

/// `hearth webhook test NAME`
pub fn run(arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let wait = arguments.number("wait", 1..=3600)?.unwrap_or(WAIT);
    let directory = DataDirectory::of(arguments, context)?;
    let settings = directory.settings()?;
    let config = settings.current();
    let account = find(&config, name)?;
    if !account.enabled {
        return Err(CliError::failed(format!(
            "account {name:?} is disabled: its \"enabled\" is false"
        )));
    }
    let body = body(arguments, account, context)?;
    let Some(server) = RunningServer::find(&directory) else {
        return Err(CliError::failed(format!(
            "no server is running on {}; start one with `hearth serve`",
            directory.path().display()
        )));
    };
    let Some(address) = server_address(&server, &config, name) else {
        return Err(CliError::failed(format!(
            "the server (process {}) is not listening yet",
            server.process()
        )));
    };
    let store = directory.open_store()?;
    let mut test = WebhookTest {
        account,
        server: &server,
        config: &config,
        store: &store,
        context,
        deadline: Instant::now() + Duration::from_secs(wait),
    };
    let url = format!("{}://{address}{}", server.scheme(), account.incoming_path);
    let outcome = test.post(&url, &body).and_then(|turn| test.follow(turn));
    store.close();
    outcome
}

/// The body to post: a file, standard input, or a sample message.
fn body(
    arguments: &Arguments,
    account: &WebhookAccount,
    context: &mut CliContext,
) -> Result<String, CliError> {
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
    read.map_err(|error| CliError::failed(format!("{file} cannot be read: {error}")))
}

struct WebhookTest<'a, 'c> {
    account: &'a WebhookAccount,
    server: &'a RunningServer,
    config: &'a Config,
    store: &'a Store,
    context: &'a mut CliContext<'c>,
    deadline: Instant,
}

impl WebhookTest<'_, '_> {
    /// Posts the message and returns its turn.
    fn post(&mut self, url: &str, body: &str) -> Result<TurnId, CliError> {
        let began = Instant::now();
        let secret = self.account.secret.as_ref();
        let headers = secret.map(|secret| ("x-service-secret", secret.expose()));
        let headers = headers.as_slice();
        let trust = self.server.trust();
        let answered = http::send(&trust, "POST", url, headers, Some(body), ACCEPT);
        let (status, text) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                let what = format!("POST {url}: {error}");
                return Err(self.failed(&what, "Is the server listening there? See its log."));
            }
        };
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match answer["data"]["turn_id"].as_str().map(str::parse) {
            Some(Ok(turn)) if status == 202 => {
                let took = began.elapsed().as_millis();
                self.passed(&format!("POST {url}: accepted in {took} ms as {turn}"))?;
                Ok(turn)
            }
            _ if answer["data"]["ignored"] == true => {
                let pointer = answer["data"]["pointer"].as_str().unwrap_or_default();
                let what = format!("POST {url}: ignored");
                let advice = format!("The body has at {pointer} nothing that \"when\" takes.");
                Err(self.failed(&what, &advice))
            }
            _ => {
                let said = answer["error"].as_str().unwrap_or("no reason given");
                let what = format!("POST {url}: status {status}: {said}");
                Err(self.failed(&what, advice::on_refusal(status, self.account)))
            }
        }
    }

    /// Follows a turn to the first attempt of its callback.
    fn follow(&mut self, id: TurnId) -> CliResult {
        let began = Instant::now();
        let settled = self.until(|test| test.settled_turn(id))?;
        let Some(turn) = settled.filter(|turn| turn.state.is_final()) else {
            return Err(self.unfinished(id)?);
        };
        let took = began.elapsed().as_secs_f64();
        match (&turn.error, turn.reply_id) {
            (None, Some(reply)) => {
                let reply = self
                    .store
                    .message(&Viewer::server(), reply)?
                    .into_inner()
                    .content;
                let line = reply.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown = shorten(&line, SHOWN);
                self.passed(&format!("the assistant answered in {took:.1} s: {shown}"))?;
            }
            (Some(error), _) => {
                let what = format!("the turn failed after {took:.1} s: {error}");
                self.context.output.write_all(
                    format!("  FAIL  {what}\n        The callback reports this to the caller.\n")
                        .as_bytes(),
                )?;
            }
            (None, None) => self.passed("somebody stopped the turn")?,
        }
        let delivery = self.until(|test| {
            let newest = test.store.deliveries(&Viewer::server(), None, NEWEST)?;
            Ok(newest
                .into_iter()
                .find(|delivery| delivery.turn_id == id)
                .filter(|delivery| delivery.attempts > 0 || delivery.state == DeliveryState::Held))
        })?;
        match delivery {
            Some(delivery) => self.report(&delivery, turn.error.is_some()),
            None => Err(self.failed(
                "the callback has not been attempted yet",
                "`hearth deliveries list` shows its state; a longer --wait may help.",
            )),
        }
    }

    /// The turn once it is over or waiting for approval.
    fn settled_turn(&mut self, id: TurnId) -> Result<Option<Turn>, CliError> {
        let turn = self.store.turn(&Viewer::server(), id)?;
        let is_settled = turn.state.is_final() || turn.state == TurnState::WaitingApproval;
        Ok(is_settled.then(|| turn.into_inner()))
    }

    /// Reports why a turn is not over.
    fn unfinished(&mut self, id: TurnId) -> Result<CliError, CliError> {
        let turn = self.store.turn(&Viewer::server(), id)?;
        if turn.state == TurnState::WaitingApproval {
            let waiting = self.store.approvals_of(id)?;
            let asked: Vec<&str> = waiting.iter().map(|one| one.reason.as_str()).collect();
            let what = format!("the turn is waiting for approval: {}", asked.join("; "));
            return Ok(self.failed(
                &what,
                "Decide on the web page, or set permission_mode or tools of the account so that \
                 nothing is asked.",
            ));
        }
        let what = format!("the turn is still {}", turn.state.as_str());
        Ok(self.failed(
            &what,
            "The model is slow, or other turns come first; a longer --wait may help.",
        ))
    }

    fn report(&mut self, delivery: &Delivery, turn_failed: bool) -> CliResult {
        let id = delivery.id;
        match (delivery.state, &delivery.last_error) {
            (DeliveryState::Delivered, _) => {
                self.passed(&format!(
                    "the receiver accepted the callback (webhook-id {id})"
                ))?;
                match turn_failed {
                    true => Err(CliError::Reported),
                    false => Ok(()),
                }
            }
            (DeliveryState::Held, _) => Err(self.failed(
                &format!("the callback {id} is waiting for an earlier one of its conversation"),
                "`hearth deliveries list` shows which one fails, and why.",
            )),
            (state, error) => {
                let error = error.as_deref().unwrap_or("unknown reason");
                let seconds = self.config.limits.callback_seconds;
                let what = format!("the callback {id}: {error}");
                let advice = advice::on_callback(error, self.account, seconds);
                let next = match state {
                    DeliveryState::Dead => {
                        format!(
                            "It will not be retried; `hearth deliveries retry {id}` sends it again."
                        )
                    }
                    _ => format!("It will be retried at {}.", table::time(delivery.next_at)),
                };
                Err(self.failed(&what, &format!("{advice}\n        {next}")))
            }
        }
    }

    /// Polls until there is a result or the time is over.
    fn until<T>(
        &mut self,
        mut poll: impl FnMut(&mut Self) -> Result<Option<T>, CliError>,
    ) -> Result<Option<T>, CliError> {
        loop {
            if let Some(found) = poll(self)? {
                return Ok(Some(found));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(POLL_INTERVAL.min(left));
        }
    }

    fn passed(&mut self, what: &str) -> CliResult {
        writeln!(self.context.output, "  ok    {}", visible(what))?;
        Ok(self.context.output.flush()?)
    }

    /// Reports what failed and what to do, and ends the command with code 1.
    fn failed(&mut self, what: &str, advice: &str) -> CliError {
        match writeln!(self.context.output, "  FAIL  {what}\n        {advice}") {
            Ok(()) => CliError::Reported,
            Err(error) => error.into(),
        }
    }
}
