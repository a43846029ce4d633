//! Requests to servers of speech, each on a thread of its own: the connection goes on
//! meanwhile.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use agent::model::voice::Patience;
use base::error::{Error, Result};
use base::sync::lock;
use net::cancel::Cancel;
use net::task::Task;

/// How long such a server may take: a small computer understands slowly.
const TIME: Duration = Duration::from_secs(60);
/// Most requests at a time.
const AT_ONCE: usize = 4;

/// The requests under way.
#[derive(Default)]
pub(super) struct Voices {
    cancel: Cancel,
    tasks: Mutex<Vec<Task>>,
}

impl Voices {
    /// Ends the requests under way; later ones are refused.
    pub fn stop(&self) {
        self.cancel.cancel();
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        drop(tasks);
    }

    /// Runs `work` on a thread of its own.
    ///
    /// # Errors
    /// 503 while as many run as may, without a thread, and when the server stops.
    pub fn run(&self, work: impl FnOnce(&Patience<'_>) + Send + 'static) -> Result<()> {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.is_over());
        if tasks.len() >= AT_ONCE || self.cancel.is_cancelled() {
            return Err(Error::overloaded("too many are speaking at once", 5));
        }
        let task = Task::start("voice", &self.cancel, move |cancel| {
            work(&Patience {
                deadline: Instant::now() + TIME,
                cancel,
            });
        });
        tasks.push(task.map_err(|error| {
            log::warn!("no thread for speech: {error}");
            Error::overloaded("the server has no thread left", 5)
        })?);
        Ok(())
    }
}
