//! Starting threads.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts the thread that `builder` describes. What starts a thread is some
/// 2 KB of code for each type of body, so all bodies are of one here.
///
/// # Errors
/// The system has no threads left.
pub fn spawn(builder: Builder, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let body: Box<dyn FnOnce() + Send> = Box::new(body);
    builder.spawn(body)
}
