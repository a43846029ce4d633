//! The progress line of long work, shown only on a terminal and only if the work
//! takes a while.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

use base::sync::lock;
use store::{Progress, ProgressWatcher};

/// How long work may take without a progress line.
const QUIET: Duration = Duration::from_millis(400);
/// How often the line is updated.
const EVERY: Duration = Duration::from_millis(100);

/// The progress line of one task.
pub struct ProgressLine {
    shared: Arc<LineState>,
    signals: Vec<SigId>,
}

struct LineState {
    is_terminal: bool,
    began: Instant,
    is_stopped: Arc<AtomicBool>,
    drawn: Mutex<Drawn>,
}

struct Drawn {
    next: Instant,
    is_there: bool,
}

impl ProgressLine {
    /// A line on standard error, if that is a terminal. The task cleans up after itself: SIGINT
    /// and SIGTERM ask it to stop instead of ending the process.
    pub fn new() -> ProgressLine {
        let (began, is_stopped) = (Instant::now(), Arc::<AtomicBool>::default());
        let stop = |signal| signal_hook::flag::register(signal, Arc::clone(&is_stopped));
        ProgressLine {
            signals: [SIGINT, SIGTERM].into_iter().flat_map(stop).collect(),
            shared: Arc::new(LineState {
                is_terminal: io::stderr().is_terminal(),
                began,
                is_stopped,
                drawn: Mutex::new(Drawn {
                    next: began + QUIET,
                    is_there: false,
                }),
            }),
        }
    }

    /// A callback for a task that reports its own progress.
    pub fn watch(&self) -> ProgressWatcher {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |progress| shared.note(progress))
    }

    /// Shows the progress. Returns whether to continue.
    pub fn note(&self, stage: &'static str, done: u64, total: Option<u64>) -> bool {
        self.shared.note(Progress { stage, done, total })
    }
}

impl LineState {
    fn note(&self, progress: Progress) -> bool {
        if self.is_terminal {
            let now = Instant::now();
            let mut drawn = lock(&self.drawn);
            if now >= drawn.next {
                drawn.next = now + EVERY;
                drawn.is_there = true;
                let text = text(progress, now - self.began);
                // A progress line that cannot be written is not important.
                let _ = write!(io::stderr(), "\r\x1b[K{text}");
            }
        }
        !self.is_stopped.load(Ordering::Relaxed)
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
        if lock(&self.shared.drawn).is_there {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Such as `copying  43 %  12 s`.
fn text(progress: Progress, elapsed: Duration) -> String {
    let part = match progress.total {
        Some(total) if total > 0 => {
            format!("{:3} %  ", progress.done.min(total) * 100 / total)
        }
        _ => String::new(),
    };
    format!("{}  {part}{} s", progress.stage, elapsed.as_secs())
}

/// A size for people, such as `12.3 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_stage_share_and_time() {
        let progress = |done, total| Progress {
            stage: "copying",
            done,
            total,
        };
        for (progress, expected) in [
            (progress(1, Some(2)), "copying   50 %  3 s"),
            (progress(9, Some(2)), "copying  100 %  3 s"),
            (progress(9, Some(0)), "copying  3 s"),
            (progress(9, None), "copying  3 s"),
        ] {
            assert_eq!(text(progress, Duration::from_secs(3)), expected);
        }
    }

    #[test]
    fn sizes_have_readable_units() {
        for (bytes, expected) in [
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (12_345_678, "12.3 MB"),
            (5_000_000_000_000_000, "5000.0 TB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
