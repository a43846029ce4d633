//! `hearth webhook test`: follows one message through an account, step by step.
//!
//! The message is posted to the account's path, as the other system would. Its
//! progress is asked of the service, as by `hearth deliveries`.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sample::{SECRET_VARIABLE, SampleRequest};
use super::{base_url, test_of};
use crate::cli::arguments::Arguments;
use crate::cli::context::{CliContext, CliError, CliResult};
use crate::cli::door::Door;
use crate::cli::http;
use crate::cli::row::time;
use crate::cli::running_server::reachable_here;
use crate::cli::terminal::visible;
use agent::tools::output::shorten;
use net::tls::Trust;
use protocol::command::LIST_LIMIT;

/// Default of `--wait`, in seconds.
const WAIT: u64 = 60;
/// Time limit for the server to accept the message.
const ACCEPT: Duration = Duration::from_secs(10);
/// How often the service is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Largest body, in bytes.
const BODY_BYTES: u64 = 1 << 20;
/// Maximum characters of the reply to show.
const SHOWN: usize = 200;

/// `hearth webhook test NAME`
pub fn run(door: &mut Door, arguments: &Arguments, context: &mut CliContext) -> CliResult {
    let name = arguments.required(0);
    let wait = arguments.number("wait", 1..=3600)?.unwrap_or(WAIT);
    let Some(server) = door.server()? else {
        return Err(CliError::failed(format!(
            "no server is running on {}; start one with `hearth serve`",
            door.directory()?.path().display()
        )));
    };
    let trust = server.trust();
    let account = test_of(door, name, arguments.text("message")?)?;
    if account["enabled"] == false {
        return Err(CliError::failed(format!(
            "account {name:?} is disabled: its \"enabled\" is false"
        )));
    }
    let base = base_url(door, &account, reachable_here)?;
    let mut request = SampleRequest::of(&account, &base);
    if let Some(given) = given_body(arguments, context)? {
        request.body = given;
    }
    show(&request, &account, arguments, context)?;
    let mut test = WebhookTest {
        account,
        door,
        context,
        deadline: Instant::now() + Duration::from_secs(wait),
    };
    let turn = test.send(&request, &trust)?;
    test.follow(&turn)
}

/// Prints the request, for whoever sets up the other system.
fn show(
    request: &SampleRequest,
    account: &Value,
    arguments: &Arguments,
    context: &mut CliContext,
) -> CliResult {
    let (secret, says) = match account["secret"].as_str() {
        None => (None, ""),
        Some(secret) if arguments.has("show-secret") => (Some(secret), ""),
        Some(_) => (
            Some(SECRET_VARIABLE),
            ", with the account's secret in SECRET (--show-secret shows it)",
        ),
    };
    let line = request.curl(secret, arguments.text("body")?);
    context.print(format_args!("The request{says}:\n\n{line}\n"))
}

/// The body to send instead of a sample message: a file, or standard input.
fn given_body(arguments: &Arguments, context: &mut CliContext) -> Result<Option<String>, CliError> {
    let Some(file) = arguments.text("body")? else {
        return Ok(None);
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
    let read = read.map_err(|error| CliError::failed(format!("{file} cannot be read: {error}")));
    read.map(Some)
}

struct WebhookTest<'a, 'c> {
    account: Value,
    door: &'a mut Door,
    context: &'a mut CliContext<'c>,
    deadline: Instant,
}

impl WebhookTest<'_, '_> {
    /// Sends the message and returns its turn.
    fn send(&mut self, request: &SampleRequest, trust: &Trust) -> Result<String, CliError> {
        let began = Instant::now();
        let (secret, url) = (self.account["secret"].as_str(), &request.url);
        let (method, target) = request.target(secret);
        let mut headers: Vec<_> = secret
            .map(|secret| ("x-service-secret", secret))
            .into_iter()
            .collect();
        headers.extend(request.media_type.map(|kind| ("content-type", kind)));
        let body = request.media_type.map(|_| request.body.as_str());
        let answered = http::send(trust, method, &target, &headers, body, ACCEPT);
        let (status, text) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                let what = format!("{method} {url}: {error}");
                return Err(self.failed(&what, "Is the server listening there? See its log."));
            }
        };
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match answer["data"]["turn_id"].as_str() {
            Some(turn) if status == 202 => {
                let took = began.elapsed().as_millis();
                self.passed(&format!("{method} {url}: accepted in {took} ms as {turn}"))?;
                Ok(turn.to_owned())
            }
            _ if answer["data"]["ignored"] == true => {
                let pointer = answer["data"]["pointer"].as_str().unwrap_or_default();
                let what = format!("{method} {url}: ignored");
                let advice = format!("The body has at {pointer} nothing that \"when\" takes.");
                Err(self.failed(&what, &advice))
            }
            _ => {
                let said = answer["error"].as_str().unwrap_or("no reason given");
                let what = format!("{method} {url}: status {status}: {said}");
                Err(self.failed(&what, advice_on(status, self.account["mapped"] == true)))
            }
        }
    }

    /// Follows a turn to the first attempt of its callback.
    fn follow(&mut self, id: &str) -> CliResult {
        let began = Instant::now();
        let turn = self.until(|test| {
            let turn = test.turn(id)?;
            let is_open = ["queued", "running"]
                .iter()
                .any(|state| turn["state"] == *state);
            Ok((!is_open).then_some(turn))
        })?;
        let turn = match turn {
            Some(turn) if turn["state"] != "waiting_approval" => turn,
            _ => return Err(self.unfinished(id)?),
        };
        let took = began.elapsed().as_secs_f64();
        match (turn["error"].as_str(), turn["message_id"].is_null()) {
            (None, false) => {
                let reply = turn["response"].as_str().unwrap_or_default();
                let line = reply.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown = shorten(&line, SHOWN);
                self.passed(&format!("the assistant answered in {took:.1} s: {shown}"))?;
            }
            (Some(error), _) => {
                let what = visible(&format!("the turn failed after {took:.1} s: {error}"));
                self.context.print(format_args!(
                    "  FAIL  {what}\n        The callback reports this to the caller."
                ))?;
            }
            (None, true) => self.passed("somebody stopped the turn")?,
        }
        let request = json!({ "type": "list_deliveries", "limit": LIST_LIMIT });
        let delivery = self.until(|test| {
            let mut data = test.door.ask(&request)?;
            let all = data["deliveries"].as_array_mut().into_iter().flatten();
            let mut own = all.filter(|delivery| delivery["turn_id"] == id);
            Ok(own
                .next()
                .filter(|one| one["attempts"] != 0 || one["state"] == "held")
                .map(Value::take))
        })?;
        match delivery {
            Some(delivery) => self.report(&delivery, turn["error"].is_string()),
            None => Err(self.failed(
                "the callback has not been attempted yet",
                "`hearth deliveries list` shows its state; a longer --wait may help.",
            )),
        }
    }

    fn turn(&mut self, id: &str) -> Result<Value, CliError> {
        self.door.ask(&json!({ "type": "get_turn", "turn_id": id }))
    }

    /// Reports why a turn is not over.
    fn unfinished(&mut self, id: &str) -> Result<CliError, CliError> {
        let state = self.turn(id)?["state"].take();
        if state == "waiting_approval" {
            let waiting = self.door.ask(&json!({ "type": "list_approvals" }))?;
            let waiting = waiting["approvals"].as_array().into_iter().flatten();
            let asked = waiting.filter(|one| one["turn_id"] == id);
            let asked: Vec<&str> = asked.filter_map(|one| one["reason"].as_str()).collect();
            let what = format!("the turn is waiting for approval: {}", asked.join("; "));
            return Ok(self.failed(
                &what,
                "Decide on the web page, or set permission_mode or tools of the account so that \
                 nothing is asked.",
            ));
        }
        let what = format!("the turn is still {}", state.as_str().unwrap_or_default());
        Ok(self.failed(
            &what,
            "The model is slow, or other turns come first; a longer --wait may help.",
        ))
    }

    fn report(&mut self, delivery: &Value, turn_failed: bool) -> CliResult {
        let id = delivery["delivery_id"].as_str().unwrap_or_default();
        let state = delivery["state"].as_str().unwrap_or_default();
        if state == "delivered" {
            self.passed(&format!(
                "the receiver accepted the callback (webhook-id {id})"
            ))?;
            return match turn_failed {
                true => Err(CliError::Reported),
                false => Ok(()),
            };
        }
        if state == "held" {
            return Err(self.failed(
                &format!("the callback {id} is waiting for an earlier one of its conversation"),
                "`hearth deliveries list` shows which one fails, and why.",
            ));
        }
        let error = delivery["last_error"].as_str().unwrap_or("unknown reason");
        let next = match state {
            "dead" => {
                format!("It will not be retried; `hearth deliveries retry {id}` sends it again.")
            }
            _ => format!("It will be retried at {}.", time(&delivery["next_at"])),
        };
        let what = format!("the callback {id}: {error}");
        Err(self.failed(&what, &next))
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

/// What to do when the server answers a message with this status.
fn advice_on(status: u16, is_mapped: bool) -> &'static str {
    match status {
        400 | 422 if is_mapped => {
            "The account has a \"map\": give a real body of the other system with --body FILE."
        }
        403 => "This machine's address is not in allow_from of the tcp channel.",
        429 => "Wait a moment: the account has reached its limit (limits.webhook_per_second).",
        503 => "The server is overloaded or its disk is full; see its log.",
        _ => "See the server's log.",
    }
}
