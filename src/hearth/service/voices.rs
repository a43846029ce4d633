//! Requests to servers of speech, each on a thread of its own: the connection goes on
//! meanwhile.

use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use agent::provider::voice::Patience;
use base::error::{Error, Result};
use base::sync::lock;
use base::threads;
use net::cancel::Cancel;

/// How long such a server may take: a small computer understands slowly.
const TIME: Duration = Duration::from_secs(60);
/// Most requests at a time.
const AT_ONCE: usize = 4;

/// The requests under way.
#[derive(Default)]
pub(super) struct Voices {
    cancel: Cancel,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Voices {
    /// Ends the requests under way; later ones are refused.
    pub fn stop(&self) {
        self.cancel.cancel();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            if thread.join().is_err() {
                log::error!("thread voice ended in a panic");
            }
        }
    }

    /// Runs `work` on a thread of its own.
    ///
    /// # Errors
    /// 503 while as many run as may, without a thread, and when the server stops.
    pub fn run(&self, work: impl FnOnce(&Patience<'_>) + Send + 'static) -> Result<()> {
        let mut threads = lock(&self.threads);
        for ended in threads.extract_if(.., |thread| thread.is_finished()) {
            if ended.join().is_err() {
                log::error!("thread voice ended in a panic");
            }
        }
        if threads.len() >= AT_ONCE || self.cancel.is_cancelled() {
            return Err(Error::overloaded("too many are speaking at once", 5));
        }
        let cancel = self.cancel.clone();
        let run = move || {
            work(&Patience {
                deadline: Instant::now() + TIME,
                cancel: &cancel,
            });
        };
        let thread = threads::spawn(Builder::new().name("voice".to_owned()), run);
        threads.push(thread.map_err(|error| {
            log::warn!("no thread for speech: {error}");
            Error::overloaded("the server has no thread left", 5)
        })?);
        Ok(())
    }
}
