//! Makes vectors of the memories that have none, behind everything else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::Service;
use agent::model::embedding::Embedder;
use base::ids::MemoryId;
use net::cancel::Cancel;
use net::task::Task;
use store::Vector;

/// Memories of one request.
const AT_A_TIME: usize = 32;
/// Longest that a request may take: a server may have to load the model first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How soon it is tried again after a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));

/// Starts a thread when there are memories without vectors, which ends when there are
/// none, or with the timekeeper.
#[derive(Default)]
pub(super) struct Embedding {
    /// Of which model all memories up to which one have vectors.
    done: Option<Done>,
    running: Option<Task<Option<Done>>>,
    retry_at: Option<Instant>,
    failures: u32,
}

type Done = (String, Option<MemoryId>);

impl Embedding {
    /// Starts the thread if it has something to do and does not run. Asks only where
    /// something has changed, in the database or here.
    pub fn tick(&mut self, service: &Arc<Service>, has_changed: bool) {
        if let Some(task) = self.running.take_if(|task| task.is_over()) {
            self.done = task.stop().flatten();
            self.failures = match self.done {
                Some(_) => 0,
                None => self.failures + 1,
            };
            let longer = RETRY.0 * 2u32.saturating_pow(self.failures.saturating_sub(1).min(16));
            self.retry_at = (self.failures > 0).then(|| Instant::now() + longer.min(RETRY.1));
        }
        let is_early = self.retry_at.is_some_and(|at| Instant::now() < at);
        if self.running.is_some() || is_early {
            return;
        }
        if service.settings.current().memory.embeddings.is_none() {
            return;
        }
        let Some(embedder) = service.assistant().embedder.clone() else {
            return;
        };
        let key = embedder.key();
        let is_known = |(known, _): &Done| *known == key;
        if !has_changed && self.done.as_ref().is_some_and(is_known) {
            return;
        }
        let newest = match service.store.newest_memory() {
            Ok(newest) => newest.uncommitted(),
            Err(error) => return log::warn!("memories: {error}"),
        };
        let done = (key, newest);
        if newest.is_none() || self.done.as_ref() == Some(&done) {
            self.done = Some(done);
            return;
        }
        let service = Arc::clone(service);
        let work = move |cancel: &Cancel| match service.embed_memories(&embedder, cancel) {
            Ok(()) => Some(done),
            Err(problem) => {
                if !cancel.is_cancelled() {
                    log::warn!("memories wait for their vectors: {problem}");
                }
                None
            }
        };
        match Task::start("embeddings", &Cancel::default(), work) {
            Ok(task) => self.running = Some(task),
            Err(error) => log::warn!("thread embeddings cannot be started: {error}"),
        }
    }

    /// Stops the thread, if it runs, and joins it.
    pub fn stop(&mut self) {
        self.running = None;
    }
}

impl Service {
    /// Makes all vectors that are missing.
    fn embed_memories(&self, embedder: &Embedder, cancel: &Cancel) -> Result<(), String> {
        let key = embedder.key();
        loop {
            let waiting = self.store.memories_without_vector(&key, AT_A_TIME);
            let waiting = waiting.map_err(|error| error.to_string())?;
            if waiting.is_empty() {
                return Ok(());
            }
            let texts: Vec<&str> = waiting.iter().map(|(_, text)| text.as_str()).collect();
            let made = embedder.of(&texts, Instant::now() + PATIENCE, cancel)?;
            let made = waiting.iter().zip(made);
            let made: Vec<(MemoryId, Vector)> = made
                .map(|((id, _), vector)| (*id, vector.unwrap_or_default()))
                .collect();
            let kept = self.store.keep_vectors(&key, made);
            kept.map_err(|error| error.to_string())?;
        }
    }
}
