//! The models that the configuration names, in the order in which they are asked. What is
//! asked is written for the server that gets it: if that does not answer, it is written anew
//! for the next. Requests are counted.

mod breaker;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::learned::Learned;
use crate::model::{
    Cause, Heard, ModelHealth, ModelReply, ModelRequest, Provider, ProviderError, Takes,
};
use base::measure::{Counter, Histogram, MILLISECOND, SECOND};
use base::reply::FinishReason;
use base::sync::lock;
use breaker::Breaker;

/// A server that gave no answer in less time, because the turn was over, need not be slow.
const FAIR_TIME: Duration = Duration::from_secs(30);

/// All of them.
pub struct Servers(Vec<Server>);

/// One of them.
pub struct Server {
    /// As the configuration names its provider.
    pub(super) name: String,
    /// The model there; that of the request at the first.
    pub(super) model: Option<String>,
    pub(super) provider: Box<dyn Provider>,
    pub(super) learned: Arc<Learned>,
    pub(super) breaker: Mutex<Breaker>,
}

/// A server that may be asked, and the model there.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    server: &'a Server,
    /// The model's name there.
    pub model: &'a str,
    /// Whether another one can be asked instead.
    pub has_next: bool,
}

impl Server {
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        lock(&self.breaker)
    }

    fn is_ready(&self, now: Instant) -> bool {
        self.breaker().cooldown_left(now).is_none()
    }

    /// Notes what came of a request that was sent at this time. Returns for how long it is
    /// not asked again.
    fn note(&self, answer: &Result<ModelReply, ProviderError>, began: Instant) -> Duration {
        let now = Instant::now();
        let mut breaker = self.breaker();
        match answer {
            // What goes on with the reply does not come from this one.
            Ok(reply) if reply.finish_reason == Some(FinishReason::Interrupted) => {
                breaker.failed(now)
            }
            // A person did not wait for it, or the turn had left it little time.
            Err(ProviderError::Cancelled) => Duration::ZERO,
            Err(ProviderError::TimedOut) if now - began < FAIR_TIME => Duration::ZERO,
            Err(
                ProviderError::TimedOut
                | ProviderError::Failed {
                    cause: Cause::Server,
                    ..
                },
            ) => breaker.failed(now),
            Err(ProviderError::Failed {
                cause: Cause::Busy(wait),
                ..
            }) => breaker.busy(now, *wait),
            // At most the request is to blame: the server works.
            Ok(_) | Err(_) => breaker.worked(),
        }
    }
}

impl<'a> Candidate<'a> {
    /// Whether it is the first one of the configuration.
    pub fn is_first(&self) -> bool {
        self.server.model.is_none()
    }

    /// Whether both are the same model.
    pub fn is(&self, other: &Candidate<'_>) -> bool {
        std::ptr::eq(self.server, other.server) && self.model == other.model
    }

    /// What is known of its models.
    pub fn learned(&self) -> &'a Learned {
        &self.server.learned
    }

    /// See [`Provider::window`].
    pub fn window(&self) -> usize {
        self.server.provider.window(self.model)
    }

    /// See [`Provider::guesses_window`].
    pub fn guesses_window(&self) -> bool {
        self.server.provider.guesses_window(self.model)
    }

    /// See [`Provider::takes`].
    pub fn takes(&self) -> Takes {
        self.server.provider.takes(self.model)
    }

    /// Asks this one alone. The name of the model in the request does not matter.
    ///
    /// # Errors
    /// As [`Provider::complete`].
    pub fn complete(
        &self,
        request: &ModelRequest<'_>,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        let request = ModelRequest {
            model: self.model,
            has_next: self.has_next,
            ..*request
        };
        self.server.provider.complete(&request, on)
    }
}

impl Servers {
    /// These, of which the first gets a request first.
    pub fn new(servers: Vec<Server>) -> Servers {
        Servers(servers)
    }

    /// The first one of the configuration, for this model.
    pub fn first<'a>(&'a self, model: &'a str) -> Candidate<'a> {
        self.candidate(&self.0[0], model, &[])
    }

    /// The one that would be asked now.
    pub fn preferred<'a>(&'a self, model: &'a str) -> Candidate<'a> {
        let now = Instant::now();
        self.candidate(self.order(now)[0], model, &[])
    }

    fn candidate<'a>(
        &self,
        server: &'a Server,
        model: &'a str,
        others: &[&Server],
    ) -> Candidate<'a> {
        let now = Instant::now();
        Candidate {
            server,
            model: server.model.as_deref().unwrap_or(model),
            has_next: others.iter().any(|other| other.is_ready(now)),
        }
    }

    /// First the servers that are not cooling down, then the others: asking them
    /// again is better than asking none.
    fn order(&self, now: Instant) -> Vec<&Server> {
        let (ready, resting): (Vec<&Server>, Vec<&Server>) =
            self.0.iter().partition(|server| server.is_ready(now));
        ready.into_iter().chain(resting).collect()
    }

    /// Asks one after the other, each with what `ask` writes for it, until one answers. The
    /// request is for this `model` of the first.
    ///
    /// # Errors
    /// Those of `ask`; inside, why no model gave an answer.
    pub fn ask<'a, E>(
        &'a self,
        model: &'a str,
        mut ask: impl FnMut(Candidate<'a>) -> Result<Result<ModelReply, ProviderError>, E>,
    ) -> Result<Result<ModelReply, ProviderError>, E> {
        let mut failures: Vec<ProviderError> = Vec::new();
        let now = Instant::now();
        let order = self.order(now);
        for (place, server) in order.iter().enumerate() {
            server.breaker().begin_trial(now);
            let candidate = self.candidate(server, model, &order[place + 1..]);
            let began = Instant::now();
            let answer = ask(candidate)?;
            let rest = server.note(&answer, began);
            match answer {
                Ok(reply) => {
                    if !failures.is_empty() || !candidate.is_first() {
                        log::info!("{} answers with {:?} instead", server.name, candidate.model);
                    }
                    return Ok(Ok(reply));
                }
                Err(error) if error.may_ask_next() => {
                    match rest.as_secs() {
                        // The only server is asked again at once.
                        seconds if seconds > 0 && order.len() > 1 => {
                            log::warn!("{error}; {} rests for {seconds} s", server.name);
                        }
                        _ => log::warn!("{error}"),
                    }
                    failures.push(error);
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Err(ProviderError::all(failures)))
    }

    /// Asks one after the other with the same request.
    ///
    /// # Errors
    /// As [`Servers::ask`].
    pub fn complete(
        &self,
        request: &ModelRequest<'_>,
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<ModelReply, ProviderError> {
        let ask = |candidate: Candidate<'_>| Ok(candidate.complete(request, on));
        self.ask::<std::convert::Infallible>(request.model, ask)
            .unwrap_or_else(|never| match never {})
    }

    /// The health of each model if there are several, in the order in which they are asked;
    /// `model` is the first one's name.
    pub fn health(&self, model: &str) -> Vec<ModelHealth> {
        let now = Instant::now();
        let standing = |server: &Server| ModelHealth {
            provider: server.name.clone(),
            model: server.model.as_deref().unwrap_or(model).to_owned(),
            cooldown_left: server.breaker().cooldown_left(now),
        };
        match self.0.len() {
            1 => Vec::new(),
            _ => self.0.iter().map(standing).collect(),
        }
    }
}

/// Buckets for the time that a model takes.
const TIMES: &[u64] = &[
    100 * MILLISECOND,
    250 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2_500 * MILLISECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
    300 * SECOND,
];

/// The counts. They outlive changes of the configuration.
#[derive(Debug)]
pub struct ModelMeter {
    /// How long answered requests took.
    pub answered: Histogram,
    /// Requests that failed, except those that were stopped.
    pub failed: Counter,
    /// Tokens of the requests, cached ones included.
    pub input: Counter,
    /// Tokens of the replies.
    pub output: Counter,
    /// Part of `input` that providers had cached.
    pub cached: Counter,
}

impl Default for ModelMeter {
    fn default() -> ModelMeter {
        ModelMeter {
            answered: Histogram::new(TIMES),
            failed: Counter::default(),
            input: Counter::default(),
            output: Counter::default(),
            cached: Counter::default(),
        }
    }
}

impl ModelMeter {
    /// Records the outcome of a request.
    pub fn note(&self, took: Duration, answer: &Result<ModelReply, ProviderError>) {
        match answer {
            Ok(reply) => {
                self.answered.note_time(took);
                self.input.add(reply.usage.input);
                self.output.add(reply.usage.output);
                self.cached.add(reply.usage.cached);
            }
            Err(ProviderError::Cancelled) => {}
            Err(_) => self.failed.count(),
        }
    }
}

#[cfg(test)]
mod tests;
