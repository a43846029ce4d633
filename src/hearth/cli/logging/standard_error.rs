//! Standard error, behind a thread of its own: a stopped terminal (Ctrl-S) or a pipe that
//! nobody reads blocks that thread alone.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use base::sync::spawn;

/// Writes that wait while nobody reads. What comes then is lost, and counted.
const MOST_WAITING: usize = 1_024;
/// How long the end of the process waits for what is not written yet.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// A writer that never blocks. Each write is one line or more.
#[derive(Clone)]
pub struct StandardError {
    waiting: Sender<Entry>,
    lost: Arc<AtomicU64>,
}

enum Entry {
    Text(Vec<u8>),
    /// Answered once all before it is written.
    Flush(Sender<()>),
}

impl StandardError {
    /// Starts the thread that writes to `target`. It ends with the last clone, or with the
    /// process: a blocked write cannot be cancelled.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start(target: impl Write + Send + 'static) -> io::Result<StandardError> {
        let (waiting, entries) = bounded(MOST_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let builder = Builder::new().name("standard error".to_owned());
        spawn(builder, move || write_all(&entries, &counted, target))?;
        Ok(StandardError { waiting, lost })
    }

    /// Waits until everything is written, but no longer than a second.
    pub fn finish(&self) {
        let (sender, written) = bounded(1);
        let flush = Entry::Flush(sender);
        if self.waiting.send_timeout(flush, FINISH_TIMEOUT).is_ok() {
            // Nothing is left to do for what is still not written then.
            let _ = written.recv_timeout(FINISH_TIMEOUT);
        }
    }
}

impl Write for StandardError {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.waiting.try_send(Entry::Text(text.to_owned())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(entries: &Receiver<Entry>, lost: &AtomicU64, mut target: impl Write) {
    for entry in entries {
        // A terminal that is gone is no reason to end: another may never come, but the
        // queue must not fill.
        let _ = match entry {
            Entry::Text(text) => target.write_all(&text),
            Entry::Flush(done) => {
                let _ = done.try_send(());
                Ok(())
            }
        };
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(
                target,
                "WARN  {lost} lines are missing here: standard error was not read"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, pipe};

    #[test]
    fn a_reader_that_sleeps_blocks_nobody_and_learns_what_it_missed() {
        let (reader, writer) = pipe().unwrap();
        let mut errors = StandardError::start(writer).unwrap();
        // More than the pipe and the queue hold.
        let line = format!("{}\n", "x".repeat(1_023));
        for _ in 0..4 * MOST_WAITING {
            errors.write_all(line.as_bytes()).unwrap();
        }
        errors.finish();
        drop(errors);
        // To the end of the pipe: the thread is gone.
        let lines = BufReader::new(reader).lines().map(Result::unwrap);
        let (whole, notices): (Vec<_>, Vec<_>) = lines.partition(|read| read.starts_with('x'));
        assert!(whole.iter().all(|read| read.len() == line.len() - 1));
        // One for each time at which the queue was full.
        let missing = notices.iter().map(|notice| {
            let (count, _) = (notice.strip_prefix("WARN  ").unwrap())
                .split_once(" lines are missing here: standard error was not read")
                .unwrap();
            count.parse::<usize>().unwrap()
        });
        let missing: usize = missing.sum();
        assert!(missing > 0);
        assert_eq!(whole.len() + missing, 4 * MOST_WAITING);
    }
}
