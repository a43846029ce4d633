//! What the errors and replies of a server have shown of its models. It holds for a day:
//! servers learn, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::files::Guesses;
use super::server_capabilities::ServerCapabilities;
use base::ids::AttachmentId;
use base::sync::lock;

/// Models whose capabilities are remembered.
const MODELS: usize = 64;
/// How long it holds.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// Files that are remembered.
const FILES: usize = 1_000;

/// What the errors of one request have shown, and nothing follows from for others.
#[derive(Default)]
pub struct Found {
    /// What the request leaves out because of what its client asks for.
    pub own: Option<ServerCapabilities>,
    /// Who was accused for want of a better reason.
    pub guesses: Guesses,
    /// All files that were accused.
    pub accused: Vec<AttachmentId>,
}

/// What is remembered of one server.
#[derive(Default)]
pub struct Lessons {
    /// By model.
    capabilities: Mutex<BTreeMap<String, (Instant, ServerCapabilities)>>,
    /// Whether a model has taken a file of a message, or refused it.
    files: Mutex<BTreeMap<(String, AttachmentId), (Instant, bool)>>,
}

impl Lessons {
    /// What a model accepts, if that was learned.
    pub fn capabilities(&self, model: &str, now: Instant) -> Option<ServerCapabilities> {
        let mut known = lock(&self.capabilities);
        known.retain(|_, (at, _)| now.saturating_duration_since(*at) < MEMORY);
        known.get(model).map(|(_, capabilities)| *capabilities)
    }

    /// Remembers what a model accepts.
    pub fn learn(&self, model: &str, capabilities: ServerCapabilities, now: Instant) {
        let mut known = lock(&self.capabilities);
        if known.len() >= MODELS {
            known.clear();
        }
        known.insert(model.to_owned(), (now, capabilities));
    }

    /// The files that a model has taken, or those that it has refused.
    pub fn files(&self, model: &str, taken: bool, now: Instant) -> BTreeSet<AttachmentId> {
        let mut known = lock(&self.files);
        known.retain(|_, (at, _)| now.saturating_duration_since(*at) < MEMORY);
        let of_model = known
            .iter()
            .filter(|((by, _), (_, was_taken))| by == model && *was_taken == taken);
        of_model.map(|((_, id), _)| *id).collect()
    }

    /// Remembers that a model has taken files, or refused them.
    pub fn learn_files(
        &self,
        model: &str,
        ids: impl IntoIterator<Item = AttachmentId>,
        taken: bool,
        now: Instant,
    ) {
        let mut known = lock(&self.files);
        if known.len() >= FILES {
            // What was refused costs another request.
            known.retain(|_, (_, was_taken)| !*was_taken);
        }
        if known.len() >= FILES {
            known.clear();
        }
        let ids = ids.into_iter();
        known.extend(ids.map(|id| ((model.to_owned(), id), (now, taken))));
    }

    /// Forgets that a model has refused files.
    pub fn forget_files(&self, model: &str, ids: &[AttachmentId]) {
        lock(&self.files).retain(|(by, id), _| by != model || !ids.contains(id));
    }
}
