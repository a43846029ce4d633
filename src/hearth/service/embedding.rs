//! Makes vectors of the memories and messages that have none, behind everything else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::Service;
use agent::model::embedding::Embedder;
use base::error;
use base::ids::MemoryId;
use net::cancel::Cancel;
use net::task::Task;
use store::Vector;

/// Texts of one request.
const AT_A_TIME: usize = 32;
/// Longest that a request may take: a server may have to load the model first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How soon it is tried again after a failure, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));

/// Starts a thread when there are memories or messages without vectors, which ends when there
/// are none, or with the timekeeper.
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
        let store = &service.store;
        let found = store.newest_memory().and_then(|newest| {
            Ok((
                newest.uncommitted(),
                store.has_messages_without_vector(&key)?,
            ))
        });
        let (newest, has_messages) = match found {
            Ok(found) => found,
            Err(error) => return log::warn!("vectors: {error}"),
        };
        let done = (key, newest);
        let has_memories = newest.is_some() && self.done.as_ref() != Some(&done);
        if !has_memories && !has_messages {
            self.done = Some(done);
            return;
        }
        let service = Arc::clone(service);
        let work = move |cancel: &Cancel| match service.embed(&embedder, cancel) {
            Ok(()) => Some(done),
            Err(problem) => {
                if !cancel.is_cancelled() {
                    log::warn!("memories and messages wait for their vectors: {problem}");
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
    /// The vector of what somebody looks for, if there is a model for that and it makes it at
    /// once.
    pub(super) fn vector_of(&self, text: &str) -> Option<Vector> {
        let embedder = self.assistant().embedder.clone()?;
        embedder.of_message(text, Instant::now() + PATIENCE, &Cancel::default())
    }

    /// Makes all vectors that are missing.
    fn embed(&self, embedder: &Embedder, cancel: &Cancel) -> Result<(), String> {
        let (store, key) = (&self.store, embedder.key());
        embed_all(
            embedder,
            cancel,
            || store.memories_without_vector(&key, AT_A_TIME),
            |made| store.keep_vectors(&key, made),
        )?;
        embed_all(
            embedder,
            cancel,
            || store.messages_without_vector(&key, AT_A_TIME),
            |made| store.keep_message_vectors(&key, made),
        )
    }
}

/// Has vectors made of what waits for them, until nothing does.
fn embed_all<Id>(
    embedder: &Embedder,
    cancel: &Cancel,
    waiting: impl Fn() -> error::Result<Vec<(Id, String)>>,
    keep: impl Fn(Vec<(Id, Vector)>) -> error::Result<()>,
) -> Result<(), String> {
    loop {
        let waiting = waiting().map_err(|error| error.to_string())?;
        if waiting.is_empty() {
            return Ok(());
        }
        let (ids, texts): (Vec<Id>, Vec<String>) = waiting.into_iter().unzip();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let made = embedder.of(&texts, Instant::now() + PATIENCE, cancel)?;
        let made = made.into_iter().map(Option::unwrap_or_default);
        keep(ids.into_iter().zip(made).collect()).map_err(|error| error.to_string())?;
    }
}
