//! Work on a thread of its own, which its owner cancels and joins.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use crate::cancel::Cancel;
use base::sync::spawn;

/// How long work may go on after it was cancelled, before its thread is abandoned.
const LIMIT: Duration = Duration::from_secs(20);

/// Work on a thread of its own. Dropping it joins the thread, and cancels work that still runs.
pub struct Task<T = ()> {
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
    result: Receiver<T>,
}

impl<T: Send + 'static> Task<T> {
    /// Starts `work`, which is to end soon once `cancel` is cancelled.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start(
        name: impl Into<String>,
        cancel: &Cancel,
        work: impl FnOnce(&Cancel) -> T + Send + 'static,
    ) -> io::Result<Task<T>> {
        let (sender, result) = sync_channel(1);
        let cancelled = cancel.clone();
        let run = move || {
            // Nobody waits for it if the thread was abandoned.
            let _ = sender.try_send(work(&cancelled));
        };
        Ok(Task {
            cancel: cancel.clone(),
            thread: Some(spawn(Builder::new().name(name.into()), run)?),
            result,
        })
    }
}

impl<T> Task<T> {
    /// Whether the work has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Cancels the work and joins the thread. Returns the result, unless the work panicked
    /// or does not end.
    pub fn stop(mut self) -> Option<T> {
        self.join()
    }

    fn join(&mut self) -> Option<T> {
        let thread = self.thread.take()?;
        // Others may share it.
        if !thread.is_finished() {
            self.cancel.cancel();
        }
        // It drops itself where it held the last reference to its owner.
        if thread.thread().id() == thread::current().id() {
            return None;
        }
        let result = self.result.recv_timeout(LIMIT);
        let name = thread.thread().name().unwrap_or_default().to_owned();
        if let Err(RecvTimeoutError::Timeout) = result {
            log::error!("thread {name} does not end");
        } else if thread.join().is_err() {
            log::error!("thread {name} ended in a panic");
        }
        result.ok()
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_cancelled_and_its_result_returned() {
        let cancel = Cancel::default();
        let wait = |cancel: &Cancel| cancel.wait(Duration::from_secs(60));
        let task = Task::start("waits", &cancel, wait).unwrap();
        assert!(!task.is_over());
        assert_eq!(task.stop(), Some(true));
        drop(Task::start("waits too", &Cancel::default(), wait).unwrap());
    }

    #[test]
    fn work_that_panics_has_no_result() {
        let fail = |_: &Cancel| -> () { panic!("on purpose") };
        let task: Task = Task::start("panics", &Cancel::default(), fail).unwrap();
        assert_eq!(task.stop(), None);
    }

    #[test]
    fn work_may_drop_its_own_task() {
        let (sender, receiver) = sync_channel::<Task>(1);
        let (done, ended) = sync_channel(1);
        let drop_it = move |_: &Cancel| {
            drop(receiver.recv());
            done.send(()).unwrap();
        };
        sender
            .send(Task::start("own", &Cancel::default(), drop_it).unwrap())
            .unwrap();
        ended.recv_timeout(LIMIT).unwrap();
    }
}
